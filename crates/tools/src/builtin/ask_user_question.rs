//! `ask_user_question`: a question to the person at the terminal.

use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::ports::{Answer, Choice, Question};
use crate::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const NAME: &str = "ask_user_question";
/// Questions of one call.
const MOST: usize = 4;
/// Choices of a question.
const MOST_CHOICES: usize = 20;
/// Characters of a question.
const MOST_TEXT: usize = 4_000;

/// Asks the user.
#[derive(Debug)]
pub struct AskUserQuestion;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// What you want to know.
    #[serde(default)]
    question: Option<String>,
    /// What can be chosen; left out: any answer.
    #[serde(default)]
    options: Vec<OneChoice>,
    /// Whether several can be chosen.
    #[serde(default, alias = "multiSelect", alias = "multi_select")]
    multi: bool,
    #[serde(default)]
    #[schemars(skip)]
    questions: Vec<Asked>,
}

#[derive(Debug, Deserialize)]
struct Asked {
    question: String,
    #[serde(default)]
    options: Vec<OneChoice>,
    #[serde(default, alias = "multiSelect", alias = "multi_select")]
    multi: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum OneChoice {
    /// Just the words.
    Label(String),
    /// With what it means.
    Described {
        /// The words.
        label: String,
        /// What it means.
        #[serde(default)]
        description: String,
    },
}

fn parse(agent: &str, input: &Value) -> Result<Vec<Question>, ToolError> {
    let Input { question, options, multi, questions } = input::parse(NAME, input)?;
    let one = question.map(|question| Asked { question, options, multi });
    let asked: Vec<Asked> = one.into_iter().chain(questions).collect();
    let wrong = |message: String| ToolError::Input { tool: NAME, path: "question".to_owned(), message };
    if asked.is_empty() || asked.len() > MOST {
        return Err(wrong(format!("1 to {MOST} questions are asked at once, not {}", asked.len())));
    }
    asked
        .into_iter()
        .map(|Asked { question, options, multi }| {
            if question.trim().is_empty() || question.chars().nth(MOST_TEXT).is_some() {
                return Err(wrong(format!("must not be blank, nor longer than {MOST_TEXT} characters")));
            }
            if options.len() > MOST_CHOICES {
                return Err(wrong(format!(
                    "at most {MOST_CHOICES} options are offered, not {}",
                    options.len()
                )));
            }
            let choices = options.into_iter().map(|option| match option {
                OneChoice::Label(label) => Choice { label, description: String::new() },
                OneChoice::Described { label, description } => Choice { label, description },
            });
            Ok(Question {
                agent: agent.to_owned(),
                text: question,
                choices: choices.collect(),
                several: multi,
            })
        })
        .collect()
}

impl Tool for AskUserQuestion {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["ask_user", "ask_followup_question"]
    }

    fn description(&self) -> String {
        "Asks the user and waits for the answer. Only for what you can neither find out nor decide."
            .to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    fn effect(&self, ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        parse(&ctx.agent, input).map(|_| Effect::default())
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        _judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let questions = parse(&ctx.agent, &input)?;
            let nobody = || {
                ToolError::Refused("nobody is there to answer; decide, and say what you assumed".to_owned())
            };
            let person = ctx.ports.person.as_ref().ok_or_else(nobody)?;
            let (mut lines, mut answers) = (Vec::new(), Vec::new());
            let is_one = questions.len() == 1;
            for mut question in questions {
                question.text = ctx.redactor.apply(&question.text).into_owned();
                let text = question.text.clone();
                let answer = tokio::select! {
                    answer = person.ask(question) => answer,
                    () = ctx.cancel.cancelled() => return Err(ToolError::Cancelled),
                };
                let said = match answer {
                    Answer::Chosen(labels) => labels.join(", "),
                    Answer::Said(words) => words,
                    Answer::Nothing => {
                        "[the user did not answer; decide, and say what you assumed]".to_owned()
                    }
                };
                lines.push(if is_one { said.clone() } else { format!("{text}\n{said}") });
                answers.push(json!({"question": text, "answer": said}));
            }
            Ok(ToolOutput { data: json!({"answers": answers}), ..ToolOutput::text(lines.join("\n\n")) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scripted, Work, ok, refused};
    use super::*;

    #[tokio::test]
    async fn a_person_answers_by_choice_or_in_own_words() {
        let work = Work::new();
        let mut ctx = work.agent("A");
        let ask = json!({"question": "Which?", "options": ["one", {"label": "two", "description": "more"}]});
        assert!(refused(&AskUserQuestion, &ctx, ask.clone()).await.contains("nobody"));
        let person = Scripted::answering([
            Answer::Chosen(vec!["two".into()]),
            Answer::Said("neither".into()),
            Answer::Nothing,
        ]);
        ctx.ports = person.ports();
        assert_eq!(ok(&AskUserQuestion, &ctx, ask).await.text, "two");
        let both = json!({"questions": [{"question": "A?", "multiSelect": true}, {"question": "B?"}]});
        let text = ok(&AskUserQuestion, &ctx, both).await.text;
        assert!(text.starts_with("A?\nneither") && text.contains("B?\n[the user did not answer"), "{text}");
        let asked = person.asked();
        assert_eq!((asked[0].choices.len(), asked[0].choices[1].description.as_str()), (2, "more"));
        assert!(asked[1].several && !asked[2].several);
        assert!(refused(&AskUserQuestion, &ctx, json!({"question": " "})).await.contains("question"));
    }
}
