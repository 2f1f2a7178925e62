//! `notebook_edit`: one cell of a notebook, changed, added or taken out.

use super::edits::{Editor, content};
use super::notebook::{Notebook, source};
use crate::error::ToolError;
use crate::files::text::TextFile;
use crate::files::write::store;
use crate::input;
use crate::output::ToolOutput;
use crate::read_state::write_turn;
use crate::tool::{Effect, Tool, ToolContext};
use claw_kernel::digest::Digest;
use claw_kernel::tasks;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;

const NAME: &str = "notebook_edit";

/// Edits a notebook.
#[derive(Debug)]
pub struct NotebookEdit;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    #[default]
    Replace,
    Insert,
    Delete,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Code,
    Markdown,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// The notebook (.ipynb).
    #[serde(alias = "notebookPath", alias = "path", alias = "file_path")]
    notebook_path: String,
    /// The cell, as read_file names it. With insert: the one before the new cell; left out: at the start.
    #[serde(default, alias = "cellId")]
    cell_id: Option<String>,
    /// Its whole new text.
    #[serde(default, alias = "newSource")]
    new_source: String,
    /// For a new cell, or to change the kind.
    #[serde(default, alias = "cellType")]
    cell_type: Option<Kind>,
    /// replace if left out.
    #[serde(default, alias = "editMode")]
    edit_mode: Mode,
}

impl Tool for NotebookEdit {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn description(&self) -> String {
        "Replaces, inserts or deletes one cell of a Jupyter notebook. read_file shows the cells with their ids.".to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    fn effect(&self, ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        let input: Input = input::parse(NAME, input)?;
        let path = ctx.folder.resolve(&input.notebook_path);
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
            let (editor, shown) = (Editor::of(ctx), ctx.folder.shown(&path).into_owned());
            // Once begun it is brought to its end, turn included, also when the call is dropped.
            let work = tasks::blocking(NAME, move || {
                let _turn = turn;
                edit(&editor, &path, &input, &shown)
            });
            work.await.map_err(|error| ToolError::Panicked(error.to_string()))?
        })
    }
}

fn edit(editor: &Editor, path: &Path, input: &Input, shown: &str) -> Result<ToolOutput, ToolError> {
    let refused = |why: String| ToolError::Refused(format!("{} cannot be edited: {why}", path.display()));
    let (bytes, seen) = content(path)?;
    editor.refuse_stale(path, &seen)?;
    let file = TextFile::decode(&bytes).map_err(|why| refused(why.to_string()))?;
    let mut notebook = Notebook::parse(file.text()).map_err(|why| refused(why.to_string()))?;
    let (done, id) = change(&mut notebook, input)?;
    let text = notebook.text().map_err(|why| refused(why.to_string()))?;
    let encoded = file.with_text(&text).encode();
    let stored = store(path, &encoded)?;
    editor.wrote(path, &encoded)?;
    let data = json!({"type": "update", "filePath": path, "cellId": id, "cells": notebook.cells().len()});
    Ok(ToolOutput { data, ..ToolOutput::text(format!("{done} cell {id} of {shown}{}", stored.note())) })
}

/// What was done, and to which cell.
fn change(notebook: &mut Notebook, input: &Input) -> Result<(&'static str, String), ToolError> {
    let wrong = |path: &str, message: String| ToolError::Input { tool: NAME, path: path.to_owned(), message };
    let place = match &input.cell_id {
        Some(id) => Some(notebook.place_of(id.trim()).ok_or_else(|| {
            wrong(
                "cell_id",
                format!("there is no cell `{id}`; the notebook has {} cells", notebook.cells().len()),
            )
        })?),
        None => None,
    };
    let named = |notebook: &Notebook, at: usize| {
        let id = notebook.cells().get(at).and_then(|cell| cell.get("id")).and_then(Value::as_str);
        id.map_or_else(|| format!("cell-{at}"), str::to_owned)
    };
    let needed = || place.ok_or_else(|| wrong("cell_id", "which cell? read_file shows the ids".to_owned()));
    match input.edit_mode {
        Mode::Delete => {
            let at = needed()?;
            let id = named(notebook, at);
            if let Some(cells) = notebook.cells_mut() {
                cells.remove(at);
            }
            Ok(("deleted", id))
        }
        Mode::Insert => {
            let kind =
                input.cell_type.ok_or_else(|| wrong("cell_type", "needed for a new cell".to_owned()))?;
            let at = place.map_or(0, |at| at + 1);
            let cell = new_cell(notebook, kind, &input.new_source);
            if let Some(cells) = notebook.cells_mut() {
                cells.insert(at, cell);
            }
            Ok(("inserted", named(notebook, at)))
        }
        Mode::Replace => {
            let at = needed()?;
            if let Some(cell) = notebook.cells_mut().and_then(|cells| cells.get_mut(at)) {
                replace(cell, input);
            }
            Ok(("replaced", named(notebook, at)))
        }
    }
}

fn replace(cell: &mut Value, input: &Input) {
    let Some(map) = cell.as_object_mut() else { return };
    map.insert("source".to_owned(), source(&input.new_source));
    match input.cell_type {
        Some(Kind::Markdown) => {
            map.insert("cell_type".to_owned(), json!("markdown"));
        }
        Some(Kind::Code) => {
            map.insert("cell_type".to_owned(), json!("code"));
        }
        None => {}
    }
    if map.get("cell_type").is_some_and(|kind| kind == "code") {
        // What it gave belongs to the old text.
        map.insert("outputs".to_owned(), json!([]));
        map.insert("execution_count".to_owned(), Value::Null);
    } else {
        map.shift_remove("outputs");
        map.shift_remove("execution_count");
    }
}

fn new_cell(notebook: &Notebook, kind: Kind, text: &str) -> Value {
    let mut cell = match kind {
        Kind::Markdown => json!({"cell_type": "markdown", "metadata": {}, "source": source(text)}),
        Kind::Code => json!({
            "cell_type": "code",
            "execution_count": null,
            "metadata": {},
            "outputs": [],
            "source": source(text),
        }),
    };
    if notebook.has_ids()
        && let Some(map) = cell.as_object_mut()
    {
        let seed = format!("{}\0{text}", notebook.cells().len());
        let mut id: String =
            Digest::of(seed.as_bytes()).to_string().chars().filter(char::is_ascii_alphanumeric).collect();
        id.truncate(12);
        while notebook.place_of(&id).is_some() {
            id.push('x');
        }
        map.insert("id".to_owned(), json!(id));
    }
    cell
}

#[cfg(test)]
mod tests {
    use super::super::ReadFile;
    use super::super::testing::{Work, ok, refused};
    use super::*;

    const BOOK: &str = "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": 3,\n   \"id\": \"aaa\",\n   \"metadata\": {},\n   \"outputs\": [{\"output_type\": \"stream\", \"name\": \"stdout\", \"text\": [\"hi\\n\"]}],\n   \"source\": [\"print('hi')\\n\", \"x = 1\"]\n  },\n  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"bbb\",\n   \"metadata\": {},\n   \"source\": [\"# Title\"]\n  }\n ],\n \"metadata\": {\"own\": 7},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n";

    #[tokio::test]
    async fn a_notebook_is_read_as_cells() {
        let work = Work::new();
        work.put("n.ipynb", BOOK);
        let text = ok(&ReadFile, &work.agent("A"), json!({"notebook_path": "n.ipynb"})).await.text;
        for part in ["<cell id=\"aaa\" type=\"code\">", "print('hi')\n", "[output]\nhi", "# Title"] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
    }

    #[tokio::test]
    async fn a_cell_is_replaced_inserted_and_deleted() {
        let work = Work::new();
        work.put("n.ipynb", BOOK);
        let ctx = work.agent("A");
        let edit = |more: Value| {
            let mut input = json!({"notebook_path": "n.ipynb"});
            input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            input
        };
        ok(&NotebookEdit, &ctx, edit(json!({"cell_id": "aaa", "new_source": "y = 2"}))).await;
        let added =
            edit(json!({"cell_id": "aaa", "new_source": "z\n", "edit_mode": "insert", "cell_type": "code"}));
        ok(&NotebookEdit, &ctx, added).await;
        ok(&NotebookEdit, &ctx, edit(json!({"cell_id": "cell-2", "edit_mode": "delete"}))).await;
        let text = String::from_utf8(work.bytes("n.ipynb")).unwrap();
        assert!(text.starts_with("{\n \"cells\"") && text.ends_with("}\n"), "{text}");
        let book: Value = serde_json::from_str(&text).unwrap();
        let cells = book["cells"].as_array().unwrap();
        assert_eq!(cells.len(), 2);
        assert_eq!((&cells[0]["source"], &cells[0]["outputs"]), (&json!(["y = 2"]), &json!([])));
        assert_eq!(cells[1]["source"], json!(["z\n"]));
        assert!(cells[1]["id"].is_string() && book["metadata"]["own"] == 7);
        let text = refused(&NotebookEdit, &ctx, edit(json!({"cell_id": "zzz", "new_source": "y"}))).await;
        assert!(text.contains("cell_id") && text.contains("2 cells"), "{text}");
    }
}
