//! `multi_edit`: several edits of one file, all or none.

use super::edits::{Edit, Editor};
use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::patch::hunks;
use crate::read_state::write_turn;
use crate::tool::{Effect, Tool, ToolContext};
use claw_kernel::tasks;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const NAME: &str = "multi_edit";
/// Edits of one call.
const MOST: usize = 200;

/// Edits a file at several places.
#[derive(Debug)]
pub struct MultiEdit;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// The file, absolute or from the working folder.
    #[serde(alias = "file_path", alias = "filePath")]
    path: String,
    /// One after the other, each on what the one before left.
    edits: Vec<One>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct One {
    /// The text to replace; found once.
    #[serde(alias = "oldString", alias = "old_str")]
    old_string: String,
    /// What takes its place.
    #[serde(alias = "newString", alias = "new_str")]
    new_string: String,
    /// Replace every place.
    #[serde(default, alias = "replaceAll")]
    replace_all: bool,
}

impl Tool for MultiEdit {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn description(&self) -> String {
        "Several edits of one file, as edit_file does them, in order; all are made or none.".to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    fn effect(&self, ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        let input: Input = input::parse(NAME, input)?;
        let path = ctx.folder.resolve(&input.path);
        Ok(Effect { reads: vec![path.clone()], writes: vec![path], ..Effect::default() })
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let input: Input = input::parse(NAME, &input)?;
            if input.edits.is_empty() || input.edits.len() > MOST {
                let message = format!("1 to {MOST} edits are made at once, not {}", input.edits.len());
                return Err(ToolError::Input { tool: NAME, path: "edits".to_owned(), message });
            }
            let path = judged.written(NAME)?.to_owned();
            let turn = tokio::select! {
                turn = write_turn([path.clone()]) => turn,
                () = ctx.cancel.cancelled() => return Err(ToolError::Cancelled),
            };
            let (editor, shown) = (Editor::of(ctx), ctx.folder.shown(&path).into_owned());
            // Once begun it is brought to its end, turn included, also when the call is dropped.
            let work = tasks::blocking(NAME, move || {
                let _turn = turn;
                let edits = input.edits.iter().map(|one| Edit {
                    old: &one.old_string,
                    new: &one.new_string,
                    everywhere: one.replace_all,
                });
                let edits: Vec<Edit<'_>> = edits.collect();
                let done = editor.edit(&path, &edits)?;
                let text = format!(
                    "made {} edits in {shown} at {} place(s){}",
                    edits.len(),
                    done.lines.len(),
                    done.stored.note()
                );
                let data = json!({
                    "type": "update",
                    "filePath": path,
                    "edits": edits.len(),
                    "structuredPatch": hunks(&done.old, &done.new),
                });
                Ok(ToolOutput { text, data, ..ToolOutput::default() })
            });
            work.await.map_err(|error| ToolError::Panicked(error.to_string()))?
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Work, ok, refused};
    use super::*;

    #[tokio::test]
    async fn all_edits_are_made_or_none() {
        let work = Work::new();
        work.put("f", "one\r\ntwo\r\nthree\r\n");
        let ctx = work.agent("A");
        let edit = |old: &str, new: &str| json!({"old_string": old, "new_string": new});
        let wrong = json!({"path": "f", "edits": [edit("one", "1"), edit("four", "4")]});
        let text = refused(&MultiEdit, &ctx, wrong).await;
        assert!(text.contains("edit 2 of 2") && text.contains("nothing was changed"), "{text}");
        assert_eq!(work.bytes("f"), b"one\r\ntwo\r\nthree\r\n");
        let good = json!({"file_path": "f", "edits": [edit("one\n", "1\n"), edit("1\ntwo", "2")]});
        assert!(ok(&MultiEdit, &ctx, good).await.text.starts_with("made 2 edits in f"));
        assert_eq!(work.bytes("f"), b"2\r\nthree\r\n");
        assert!(refused(&MultiEdit, &ctx, json!({"path": "f", "edits": []})).await.contains("edits"));
    }
}
