//! Planning of large graphs, and rendering of one template for many items.

use claw_agents::definition::{AgentDefinition, ToolSet};
use claw_orchestrator::expr::{Binding, Data, NodeView, Render, RunView, Scope, ScopeData, Template};
use claw_orchestrator::plan::InputArgs;
use claw_orchestrator::plan::model::Plan;
use claw_orchestrator::plan::surroundings::{ModelProblem, Surroundings};
use divan::Bencher;
use serde_json::json;
use std::collections::HashMap;
use std::fmt::Write;
use std::io;
use std::path::Path;
use std::sync::Arc;

fn main() {
    divan::main();
}

struct One(Arc<AgentDefinition>);

impl Surroundings for One {
    fn agent(&self, _: &str) -> Option<Arc<AgentDefinition>> {
        Some(Arc::clone(&self.0))
    }
    fn agent_names(&self) -> Vec<String> {
        vec![self.0.name.clone()]
    }
    fn tool_names(&self) -> Vec<String> {
        Vec::new()
    }
    fn canonical_tool(&self, name: &str) -> Option<String> {
        Some(name.to_owned())
    }
    fn read_text(&self, _: &Path) -> io::Result<String> {
        Err(io::Error::from(io::ErrorKind::NotFound))
    }
    fn cache_pays(&self, _: Option<&str>) -> bool {
        false
    }

    fn price_known(&self, _: Option<&str>) -> bool {
        true
    }

    fn default_commands(&self) -> usize {
        4
    }
    fn check_model(&self, _: &str) -> Result<(), ModelProblem> {
        Ok(())
    }
}

fn surroundings() -> One {
    One(Arc::new(AgentDefinition {
        name: "general-purpose".into(),
        description: String::new(),
        revision: 1,
        prompt: String::new(),
        tools: ToolSet::All,
        deny_tools: Vec::new(),
        models: Vec::new(),
        permission: None,
        max_turns: None,
    }))
}

/// A chain (`width` 1) or layers that each need two nodes of the layer before.
fn graph(count: usize, width: usize) -> String {
    let mut text = "schema = 1\n[workflow]\nname = \"big\"\n[limits]\nagents = 1000000\n".to_owned();
    for at in 0..count {
        let _ = writeln!(text, "[node.n{at}]");
        match at.checked_sub(width) {
            None => text.push_str("prompt = \"start\"\n"),
            Some(up) => {
                let other = (up + 1).min(at - 1);
                let _ = write!(
                    text,
                    "needs = [\"n{up}\", \"n{other}\"]\nprompt = \"go on with {{{{ n{up} }}}}\"\n"
                );
            }
        }
    }
    text
}

#[divan::bench(args = [1, 1000], sample_count = 3)]
fn plan_of_100_000_nodes(bencher: Bencher, width: usize) {
    let text = graph(100_000, width);
    let surroundings = surroundings();
    bencher.bench_local(|| {
        Plan::from_source(Path::new("big.toml"), &text, &InputArgs::default(), &surroundings)
            .is_ok_and(|plan| plan.nodes.len() == 100_000)
    });
}

#[divan::bench]
fn a_prompt_for_one_item(bencher: Bencher) {
    let view = NodeView {
        output: Data::new(json!({ "steps": ["one", "two", "three"], "text": "x".repeat(4000) })),
        outputs: None,
        status: "succeeded".into(),
        error: None,
        usage: json!({}),
        iterations: 1,
        attempts: 1,
        file: None,
        schema: None,
    };
    let nodes = Arc::new(HashMap::from([("plan".to_owned(), Arc::new(view))]));
    let run = Arc::new(RunView::default());
    let item = Data::new(json!({ "name": "a" }));
    let template = Template::parse(
        "Look at {{ item.name }} ({{ index }}).\n{{ plan.steps | bullets }}\n{{ plan.text }}",
    );
    bencher.bench_local(|| {
        let binding = Binding { name: "item".into(), value: item.clone(), dynamic: false, file: None };
        let data = ScopeData {
            nodes: Arc::clone(&nodes),
            bindings: vec![binding],
            index: Some(1),
            run: Arc::clone(&run),
            ..ScopeData::default()
        };
        let scope = Scope::new(data);
        template.as_ref().ok().map(|template| {
            template.render(&scope, Render::Prompt { nonce: "N" }).map(|text| text.len()).unwrap_or_default()
        })
    });
}
