//! What others need to know of a node before it is built: whether it gives a list, and which fields.

use super::build::Facts;
use super::forest::Forest;
use super::model::OutputSpec;
use crate::expr::Expr;
use crate::workflow::keys::NodeKind;
use serde_json::{Map, Value as Json, json};
use std::sync::Arc;

/// Of all nodes. Bodies stand behind their groups, so the last come first.
pub(super) fn of_all(forest: &Forest<'_>, outputs: &[OutputSpec]) -> Vec<Facts> {
    let mut facts = vec![Facts::default(); outputs.len()];
    for ix in forest.all().rev() {
        let node = forest.slot(ix).node;
        let schema = match &outputs[ix.at()] {
            OutputSpec::Schema(schema) => Some(Arc::clone(schema)),
            OutputSpec::Text | OutputSpec::Json => match (node.kind, forest.slot(ix).inner) {
                (NodeKind::Gate, _) => Some(Arc::new(fields(&["choice", "comment"]))),
                (NodeKind::Merge, _) if node.keys.text("strategy") == Some("git") => {
                    Some(Arc::new(fields(&["applied", "backed_out", "conflicts", "commit"])))
                }
                (NodeKind::Group, Some(inner)) => match node.keys.text("result") {
                    Some(result) => of_result(forest, inner, result, &facts),
                    None => Some(Arc::new(of_body(forest, inner, &facts))),
                },
                (NodeKind::Workflow, Some(inner)) => {
                    let file = &forest.files[forest.graphs[inner].file].written;
                    let result = file.top.section("workflow").and_then(|keys| keys.text("result"));
                    result.and_then(|result| of_result(forest, inner, result, &facts))
                }
                _ => None,
            },
        };
        facts[ix.at()] = Facts { schema, each: node.keys.get("each").is_some() };
    }
    facts
}

fn fields(names: &[&str]) -> Json {
    let properties: Map<String, Json> = names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
    json!({ "type": "object", "properties": properties })
}

/// A result that is the output of one node of the body.
fn of_result(forest: &Forest<'_>, graph: usize, text: &str, facts: &[Facts]) -> Option<Arc<Json>> {
    let expr = Expr::parse(text).ok()?;
    let [name] = expr.references() else { return None };
    let node = forest.graphs[graph].by_name.get(text.trim())?;
    let facts = &facts[node.at()];
    if facts.each || name.text() != text.trim() { None } else { facts.schema.clone() }
}

/// The object of a body's outputs.
fn of_body(forest: &Forest<'_>, graph: usize, facts: &[Facts]) -> Json {
    let mut properties = Map::new();
    for ix in forest.graphs[graph].body().nodes() {
        let known = facts[ix.at()].schema.as_deref().filter(|_| !facts[ix.at()].each);
        properties.insert(forest.slot(ix).node.id.to_string(), known.cloned().unwrap_or_else(|| json!({})));
    }
    json!({ "type": "object", "properties": properties })
}
