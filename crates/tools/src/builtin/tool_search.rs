//! `tool_search`: finds tools that were held back and loads them.

use crate::cut;
use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::registry::{ToolSpec, key};
use crate::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const NAME: &str = "tool_search";
/// Tools that one call loads.
const MOST: usize = 20;
const DEFAULT: usize = 5;
/// Characters of a description in the result.
const MOST_TEXT: usize = 160;
/// The start of the line that names what was loaded.
const LOADED: &str = "loaded: ";

/// Loads tools.
#[derive(Debug)]
pub struct ToolSearch;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// Names, separated by commas, or words that say what the tool should do.
    query: String,
    /// 5 if left out.
    #[serde(default, alias = "maxResults")]
    max_results: Option<usize>,
}

/// The tools that an earlier call loaded, from its result. For conversations that go on.
pub fn loaded_by(result: &str) -> impl Iterator<Item = &str> {
    let line = result.lines().next().and_then(|line| line.strip_prefix(LOADED)).unwrap_or_default();
    line.split(", ").filter(|name| !name.is_empty())
}

impl Tool for ToolSearch {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn description(&self) -> String {
        "Loads tools that are not shown yet, by name or by words; you can call them from your next message on.".to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    fn effect(&self, _ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        input::parse::<Input>(NAME, input).map(|_| Effect::default())
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        _judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let input: Input = input::parse(NAME, &input)?;
            let held_back = ctx.state.held_back();
            let most = input.max_results.unwrap_or(DEFAULT).clamp(1, MOST);
            let found = find(&held_back, &input.query, most);
            let names = ctx.state.load(found.iter().map(|spec| spec.name));
            if names.is_empty() {
                let known: Vec<&str> = held_back.iter().map(|spec| spec.name).take(100).collect();
                let text = if known.is_empty() {
                    "there are no tools but those you have".to_owned()
                } else {
                    format!("no tool fits; there are {}", known.join(", "))
                };
                return Ok(ToolOutput { data: json!({"loaded": []}), ..ToolOutput::text(text) });
            }
            let lines = found.iter().map(|spec| {
                let line = spec.description.lines().next().unwrap_or_default();
                format!("\n- {}: {}", spec.name, cut::head(line, MOST_TEXT))
            });
            let text = format!("{LOADED}{}{}", names.join(", "), lines.collect::<String>());
            Ok(ToolOutput { data: json!({"loaded": names}), ..ToolOutput::text(text) })
        })
    }
}

/// Those that are named; else those in which most words are found, in the name rather than in the description.
fn find<'s>(tools: &'s [ToolSpec], query: &str, most: usize) -> Vec<&'s ToolSpec> {
    let query = query.trim();
    let list = query.strip_prefix("select:").unwrap_or(query);
    let named = |name: &str| tools.iter().find(|spec| key(spec.name) == key(name));
    let by_name: Vec<&ToolSpec> = list.split(',').filter_map(|name| named(name.trim())).collect();
    if !by_name.is_empty() {
        return by_name.into_iter().take(MOST).collect();
    }
    let words: Vec<String> = query
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() > 1)
        .map(str::to_lowercase)
        .collect();
    let mut scored: Vec<(usize, &ToolSpec)> = tools
        .iter()
        .map(|spec| {
            let (name, text) = (spec.name.to_lowercase(), spec.description.to_lowercase());
            let worth = |word: &String| match (name.contains(word.as_str()), text.contains(word.as_str())) {
                (true, _) => 3,
                (false, true) => 1,
                (false, false) => 0,
            };
            (words.iter().map(worth).sum(), spec)
        })
        .filter(|(worth, _)| *worth > 0)
        .collect();
    scored.sort_by_key(|(worth, _)| std::cmp::Reverse(*worth));
    scored.into_iter().take(most).map(|(_, spec)| spec).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Work, ok};
    use super::*;

    fn spec(name: &'static str, description: &str) -> ToolSpec {
        ToolSpec { name, description: description.to_owned(), input_schema: json!({"type": "object"}) }
    }

    #[tokio::test]
    async fn tools_are_loaded_by_name_or_by_words() {
        let ctx = Work::new().agent("A");
        ctx.state.hold_back(
            [
                spec("notebook_edit", "Edits a cell of a notebook."),
                spec("sleep", "Waits."),
                spec("mcp__db__query", "Runs a query against the database."),
            ]
            .into(),
        );
        let found = ok(&ToolSearch, &ctx, json!({"query": "database query"})).await;
        assert_eq!(loaded_by(&found.text).collect::<Vec<_>>(), ["mcp__db__query"]);
        let found = ok(&ToolSearch, &ctx, json!({"query": "NotebookEdit, Sleep"})).await;
        assert_eq!(loaded_by(&found.text).collect::<Vec<_>>(), ["notebook_edit", "sleep"]);
        assert_eq!(ctx.state.loaded(), ["mcp__db__query", "notebook_edit", "sleep"]);
        let none = ok(&ToolSearch, &ctx, json!({"query": "zzz"})).await.text;
        assert!(none.contains("sleep") && loaded_by(&none).next().is_none(), "{none}");
    }
}
