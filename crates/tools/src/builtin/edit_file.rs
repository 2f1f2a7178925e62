//! `edit_file`: one text for another, within a file whose line ends, mark and mode stay.

use super::edits::{Edit, Edited, Editor};
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
use std::path::Path;

const NAME: &str = "edit_file";

/// Edits a file.
#[derive(Debug)]
pub struct EditFile;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// The file, absolute or from the working folder.
    #[serde(alias = "file_path", alias = "filePath")]
    path: String,
    /// The text to replace, exactly as in the file and without line numbers; it must be found once.
    #[serde(alias = "oldString", alias = "old_str")]
    old_string: String,
    /// What takes its place.
    #[serde(alias = "newString", alias = "new_str")]
    new_string: String,
    /// Replace every place where it is found.
    #[serde(default, alias = "replaceAll")]
    replace_all: bool,
}

impl Tool for EditFile {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["edit", "str_replace"]
    }

    fn description(&self) -> String {
        "Replaces a text in a file by another. The old text must be found exactly once, or set replace_all."
            .to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    fn effect(&self, ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        let input: Input = input::parse(NAME, input)?;
        let path = ctx.folder.resolve(&input.path);
        // What is found or not says what is in the file: it reads, too.
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
            let path = judged.written(NAME)?.to_owned();
            let turn = tokio::select! {
                turn = write_turn([path.clone()]) => turn,
                () = ctx.cancel.cancelled() => return Err(ToolError::Cancelled),
            };
            let editor = Editor::of(ctx);
            let shown = ctx.folder.shown(&path).into_owned();
            // Once begun it is brought to its end, turn included, also when the call is dropped.
            let work = tasks::blocking(NAME, move || {
                let _turn = turn;
                let Input { old_string: old, new_string: new, replace_all, .. } = &input;
                let edit = Edit { old, new, everywhere: *replace_all };
                editor.edit(&path, &[edit]).map(|done| output(&done, &path, &shown, &input))
            });
            work.await.map_err(|error| ToolError::Panicked(error.to_string()))?
        })
    }
}

fn output(done: &Edited, path: &Path, shown: &str, input: &Input) -> ToolOutput {
    let place = match done.lines.as_slice() {
        [line] => format!("line {line}"),
        lines => format!("{} places", lines.len()),
    };
    let data = json!({
        "type": "update",
        "filePath": path,
        "oldString": input.old_string,
        "newString": input.new_string,
        "replaceAll": input.replace_all,
        "structuredPatch": hunks(&done.old, &done.new),
    });
    let text = format!("edited {shown} at {place}{}", done.stored.note());
    ToolOutput { text, data, ..ToolOutput::default() }
}

#[cfg(test)]
mod tests;
