//! `agent`: hands a task to another agent and waits for its answer.

use super::spawner::ChildTask;
use crate::definition::{AgentDefinition, ToolSet};
use crate::roles::Catalog;
use claw_tools::error::ToolError;
use claw_tools::output::ToolOutput;
use claw_tools::registry::Registry;
use claw_tools::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

/// Its canonical name.
pub const TOOL: &str = "agent";

/// What the model writes.
#[derive(Deserialize)]
struct Input {
    description: String,
    prompt: String,
    #[serde(default, alias = "subagentType")]
    subagent_type: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default, alias = "runInBackground")]
    run_in_background: bool,
    #[serde(default)]
    isolation: Option<Isolation>,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Isolation {
    None,
    Worktree,
}

/// The tool as it is known to a registry. A conversation that may start children carries its calls out.
#[derive(Clone, Debug)]
pub struct AgentTool {
    description: String,
}

impl AgentTool {
    /// Names the agents of a catalog to the model.
    pub fn new(catalog: &Catalog) -> Self {
        let agents = catalog.iter().map(|agent| format!("\n- {}: {}", agent.name, agent.description));
        let description = format!(
            "Hands a task to another agent and gives back its last message. It sees only your prompt, so put all it needs \
             there and say what it shall answer. Several calls in one message run at the same time. Agents:{}",
            agents.collect::<String>()
        );
        Self { description }
    }
}

/// The input of a call, checked: nothing starts for a task that says nothing.
pub(crate) fn task(input: &Value) -> Result<ChildTask, ToolError> {
    let wrong = |path: &str, message: String| ToolError::Input { tool: TOOL, path: path.to_owned(), message };
    let input = Input::deserialize(input).map_err(|error| wrong(".", error.to_string()))?;
    for (path, text) in [("description", &input.description), ("prompt", &input.prompt)] {
        if text.trim().is_empty() {
            return Err(wrong(path, "must not be blank".to_owned()));
        }
    }
    let said = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    Ok(ChildTask {
        description: input.description,
        prompt: input.prompt,
        subagent_type: said(input.subagent_type),
        name: said(input.name),
        model: said(input.model),
        background: input.run_in_background,
        isolated: input.isolation == Some(Isolation::Worktree),
    })
}

/// Whether an agent that another one starts may start agents itself.
pub fn may_have_children(registry: &Registry, agent: &AgentDefinition) -> bool {
    let names_it = |names: &[String]| names.iter().any(|name| registry.canonical(name) == Some(TOOL));
    let has = match &agent.tools {
        ToolSet::All => true,
        ToolSet::Only(names) => names_it(names),
    };
    has && !names_it(&agent.deny_tools)
}

impl Tool for AgentTool {
    fn name(&self) -> &'static str {
        TOOL
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["task"]
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    fn input_schema(&self) -> Value {
        let text = |words: &str| json!({ "type": "string", "description": words });
        json!({
            "type": "object",
            "properties": {
                "description": text("The task in three to five words, for people"),
                "prompt": text("The whole task"),
                "subagent_type": text("Which agent; general-purpose where left out"),
                "name": text("A name to show instead of the description"),
                "model": text("A model other than the agent's own"),
                "run_in_background": { "type": "boolean",
                    "description": "Answer at once; you go on and are told when it ends" },
                "isolation": { "enum": ["none", "worktree"],
                    "description": "worktree: a folder and a branch of its own" },
            },
            "required": ["description", "prompt"],
        })
    }

    /// By itself it touches nothing: what the child does is judged call by call.
    fn effect(&self, _ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        task(input).map(|_| Effect::default())
    }

    fn call<'a>(
        &'a self,
        _ctx: &'a ToolContext,
        _judged: &'a Effect,
        _input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let refusal = "this conversation cannot start agents".to_owned();
        Box::pin(std::future::ready(Err(ToolError::Refused(refusal))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blank_description_or_prompt_is_an_error() {
        for (input, field) in [
            (json!({"description": " ", "prompt": "x"}), "description"),
            (json!({"description": "x", "prompt": "\n"}), "prompt"),
            (json!({"description": "x"}), "prompt"),
        ] {
            let error = task(&input).unwrap_err().to_string();
            assert!(error.contains(field), "{error}");
        }
        let good = task(&json!({"description": "d", "prompt": "p", "subagentType": "Explore"})).unwrap();
        assert_eq!(good.subagent_type.as_deref(), Some("Explore"));
    }

    #[test]
    fn other_programs_names_mean_it_too() {
        let registry = Registry::empty().with(std::sync::Arc::new(AgentTool::new(&Catalog::builtin())));
        for name in ["Task", "Agent", "agent"] {
            assert_eq!(registry.canonical(name), Some(TOOL), "{name}");
        }
        let catalog = Catalog::builtin();
        assert!(catalog.iter().all(|agent| !may_have_children(&registry, agent)));
    }
}
