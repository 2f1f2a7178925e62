//! Notebooks as cells: read for `read_file`, changed for `notebook_edit`. Keys that are not known here stay as they are.

use crate::cut;
use serde_json::{Value, json};
use std::fmt::Write;

/// Characters of one output.
const MOST_OUTPUT: usize = 4_000;

/// Why a file is no notebook.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoNotebook {
    #[error("it is no JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("it has no list of `cells`; only notebooks of format 4 are known")]
    NoCells,
}

/// A notebook.
pub(super) struct Notebook {
    all: Value,
    /// How it is indented.
    indent: usize,
    ends_with_line: bool,
}

impl Notebook {
    pub(super) fn parse(text: &str) -> Result<Self, NoNotebook> {
        let all: Value = serde_json::from_str(text)?;
        if !all.get("cells").is_some_and(Value::is_array) {
            return Err(NoNotebook::NoCells);
        }
        let second = text.lines().nth(1).unwrap_or_default();
        let indent = second.len() - second.trim_start_matches(' ').len();
        Ok(Self { all, indent, ends_with_line: text.ends_with('\n') })
    }

    pub(super) fn cells(&self) -> &[Value] {
        self.all.get("cells").and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    pub(super) fn cells_mut(&mut self) -> Option<&mut Vec<Value>> {
        self.all.get_mut("cells").and_then(Value::as_array_mut)
    }

    /// By its id, or by its place: `cell-0`, or a number from 0.
    pub(super) fn place_of(&self, id: &str) -> Option<usize> {
        let cells = self.cells();
        let by_id = cells.iter().position(|cell| cell.get("id").and_then(Value::as_str) == Some(id));
        by_id.or_else(|| {
            let number: usize = id.strip_prefix("cell-").unwrap_or(id).parse().ok()?;
            (number < cells.len()).then_some(number)
        })
    }

    /// Whether cells have ids: since format 4.5.
    pub(super) fn has_ids(&self) -> bool {
        let number = |key: &str| self.all.get(key).and_then(Value::as_u64).unwrap_or(0);
        (number("nbformat"), number("nbformat_minor")) >= (4, 5)
    }

    /// As text again, indented as it was.
    pub(super) fn text(&self) -> Result<String, NoNotebook> {
        let mut text = if self.indent == 0 {
            serde_json::to_string(&self.all)?
        } else {
            let indent = " ".repeat(self.indent);
            let mut bytes = Vec::new();
            let formatter = serde_json::ser::PrettyFormatter::with_indent(indent.as_bytes());
            serde::Serialize::serialize(
                &self.all,
                &mut serde_json::Serializer::with_formatter(&mut bytes, formatter),
            )?;
            String::from_utf8_lossy(&bytes).into_owned()
        };
        if self.ends_with_line {
            text.push('\n');
        }
        Ok(text)
    }

    /// For a reader: each cell with its id, its kind, its text and what it gave.
    pub(super) fn shown(&self) -> String {
        let mut text = String::new();
        for (at, cell) in self.cells().iter().enumerate() {
            let id =
                cell.get("id").and_then(Value::as_str).map_or_else(|| format!("cell-{at}"), str::to_owned);
            let kind = cell.get("cell_type").and_then(Value::as_str).unwrap_or("unknown");
            let _ = writeln!(
                text,
                "<cell id=\"{id}\" type=\"{kind}\">\n{}",
                joined(cell.get("source")).trim_end()
            );
            for output in cell.get("outputs").and_then(Value::as_array).into_iter().flatten() {
                let shown = output_text(output);
                if !shown.trim().is_empty() {
                    let _ = writeln!(text, "[output]\n{}", cut::middle(shown.trim_end(), MOST_OUTPUT));
                }
            }
            text.push_str("</cell>\n");
        }
        text
    }

    /// Images that cells gave: media type and base64, at most `most`.
    pub(super) fn images(&self, most: usize) -> Vec<(String, String)> {
        let outputs = self.cells().iter().filter_map(|cell| cell.get("outputs")?.as_array()).flatten();
        let images = outputs.filter_map(|output| {
            let data = output.get("data")?;
            ["image/png", "image/jpeg"].into_iter().find_map(|kind| {
                let base64: String = joined(Some(data.get(kind)?)).split_whitespace().collect();
                (!base64.is_empty() && base64.len() <= 5_000_000).then(|| (kind.to_owned(), base64))
            })
        });
        images.take(most).collect()
    }
}

/// Texts are strings, or lists of lines.
fn joined(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => String::new(),
    }
}

fn output_text(output: &Value) -> String {
    if let Some(text) = output.get("text") {
        return joined(Some(text));
    }
    if let Some(name) = output.get("ename").and_then(Value::as_str) {
        return format!("{name}: {}", output.get("evalue").and_then(Value::as_str).unwrap_or_default());
    }
    let data = output.get("data");
    let text = joined(data.and_then(|data| data.get("text/plain")));
    let image =
        data.and_then(Value::as_object).and_then(|data| data.keys().find(|key| key.starts_with("image/")));
    match image {
        Some(kind) => format!("{text}\n[{kind}]"),
        None => text,
    }
}

/// A text as notebooks keep it: a list of lines with their ends.
pub(super) fn source(text: &str) -> Value {
    json!(text.split_inclusive('\n').collect::<Vec<_>>())
}
