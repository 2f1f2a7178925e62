//! `send_user_message`: a word to the user besides the answer, shown at once.

use crate::cut;
use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::ports::{MessageStatus, UserMessage};
use crate::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const NAME: &str = "send_user_message";
/// Characters of a message.
const MOST: usize = 8_000;
/// Files that it names.
const MOST_FILES: usize = 20;

/// Says something to the user.
#[derive(Debug)]
pub struct SendUserMessage;

#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    #[default]
    #[serde(alias = "normal", alias = "info", alias = "proactive")]
    Working,
    Blocked,
    Done,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// What you say, in Markdown; short.
    message: String,
    /// How far along you are; working if left out.
    #[serde(default)]
    status: Status,
    /// Files to look at.
    #[serde(default)]
    attachments: Vec<String>,
}

fn parse(input: &Value) -> Result<Input, ToolError> {
    let input: Input = input::parse(NAME, input)?;
    let wrong =
        |path: &str, message: String| Err(ToolError::Input { tool: NAME, path: path.to_owned(), message });
    if input.message.trim().is_empty() {
        return wrong("message", "must not be blank".to_owned());
    }
    if input.attachments.len() > MOST_FILES {
        return wrong("attachments", format!("at most {MOST_FILES} files"));
    }
    Ok(input)
}

impl Tool for SendUserMessage {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["brief"]
    }

    fn description(&self) -> String {
        "Tells the user something while you work: a finding that cannot wait, a step that is done. It does not end your task."
            .to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    fn effect(&self, ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        let input = parse(input)?;
        let reads = input.attachments.iter().map(|typed| ctx.folder.resolve(typed)).collect();
        Ok(Effect { reads, ..Effect::default() })
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let input = parse(&input)?;
            if let Some(missing) = judged.reads.iter().find(|path| !path.is_file()) {
                let text = format!("{} is no file: nothing was said", missing.display());
                return Err(ToolError::Refused(text));
            }
            let Some(messenger) = &ctx.messenger else {
                return Ok(ToolOutput::text("nobody is looking; say it in your last message"));
            };
            let status = match input.status {
                Status::Working => MessageStatus::Working,
                Status::Blocked => MessageStatus::Blocked,
                Status::Done => MessageStatus::Done,
            };
            let message = UserMessage {
                agent: ctx.agent.to_string(),
                text: cut::head(&ctx.redactor.apply(input.message.trim()), MOST),
                status,
                attachments: judged.reads.clone(),
            };
            tokio::select! {
                () = messenger.tell(message) => {}
                () = ctx.cancel.cancelled() => return Err(ToolError::Cancelled),
            }
            Ok(ToolOutput { data: json!({"sent": true}), ..ToolOutput::text("shown") })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{SECRET, Scripted, Work, ok, refused};
    use super::*;

    #[tokio::test]
    async fn a_message_is_shown_without_secrets_and_with_its_files() {
        let work = Work::new();
        let mut ctx = work.agent("A");
        assert!(ok(&SendUserMessage, &ctx, json!({"message": "x"})).await.text.contains("nobody"));
        let person = Scripted::answering([]);
        ctx.messenger = Some(person.clone());
        work.put("a.txt", "x");
        let input = json!({"message": format!("see {SECRET}"), "status": "done", "attachments": ["a.txt"]});
        assert_eq!(ok(&SendUserMessage, &ctx, input).await.text, "shown");
        let told = person.told();
        assert_eq!((told[0].text.as_str(), told[0].status), ("see [redacted]", MessageStatus::Done));
        assert_eq!(told[0].attachments, [work.path("a.txt")]);
        let missing = json!({"message": "x", "attachments": ["b.txt"]});
        assert!(refused(&SendUserMessage, &ctx, missing).await.contains("b.txt"));
        assert!(refused(&SendUserMessage, &ctx, json!({"message": " "})).await.contains("message"));
    }
}
