//! `skill`: loads a skill's text. What the model is told of all of them stands in its description, bounded.

use super::find::{Entry, Library};
use super::skill_file::SkillFile;
use claw_kernel::near::nearest;
use claw_tools::error::ToolError;
use claw_tools::output::ToolOutput;
use claw_tools::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

const NAME: &str = "skill";
/// Bytes of all descriptions together.
const MOST_LIST: usize = 6_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    #[serde(alias = "command", alias = "name")]
    skill: String,
    #[serde(default)]
    args: String,
}

/// The tool over a library.
#[derive(Clone, Debug)]
pub struct SkillTool {
    library: Arc<Library>,
}

impl SkillTool {
    /// Over these skills; `None` where there is none that a model may call.
    pub fn over(library: Arc<Library>) -> Option<Self> {
        let tool = Self { library };
        let has_some = tool.callable().next().is_some();
        has_some.then_some(tool)
    }

    fn callable(&self) -> impl Iterator<Item = &Entry<SkillFile>> {
        self.library.skills().iter().filter(|entry| entry.hidden_by.is_none() && entry.item.model_invocable)
    }

    fn find(&self, name: &str) -> Result<&Entry<SkillFile>, ToolError> {
        let found = self.library.skill(name).filter(|entry| entry.item.model_invocable);
        found.ok_or_else(|| {
            let names = || self.callable().map(|entry| entry.item.name.as_str());
            let near = nearest(name, names()).map(|near| format!("; did you mean `{near}`?"));
            let known = names().collect::<Vec<_>>().join(", ");
            let message =
                format!("there is no skill `{name}`{}; skills are {known}", near.unwrap_or_default());
            ToolError::Input { tool: NAME, path: "skill".to_owned(), message }
        })
    }
}

fn input(value: &Value) -> Result<Input, ToolError> {
    let wrong = |message: String| ToolError::Input { tool: NAME, path: ".".to_owned(), message };
    Input::deserialize(value).map_err(|error| wrong(error.to_string()))
}

impl Tool for SkillTool {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["SlashCommand"]
    }

    fn description(&self) -> String {
        let mut text =
            "Loads a skill: instructions for a kind of task. Call it before you begin such a task. Skills:"
                .to_owned();
        for entry in self.callable() {
            let line = format!("\n- {}: {}", entry.item.name, entry.item.description.replace('\n', " "));
            if text.len() + line.len() > MOST_LIST {
                text.push_str("\n- … more can be called by name");
                break;
            }
            text.push_str(&line);
        }
        text
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "skill": { "type": "string", "description": "Its name" },
                "args": { "type": "string", "description": "What it is to be used on" },
            },
            "required": ["skill"],
        })
    }

    fn effect(&self, _ctx: &ToolContext, value: &Value) -> Result<Effect, ToolError> {
        self.find(&input(value)?.skill).map(|_| Effect::default())
    }

    fn call<'a>(
        &'a self,
        _ctx: &'a ToolContext,
        _judged: &'a Effect,
        value: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let Input { skill, args } = input(&value)?;
            let entry = self.find(&skill)?;
            let SkillFile { name, folder, body, .. } = &entry.item;
            let mut text = format!("Skill {name}; its files are in {}\n\n{}", folder.display(), body.trim());
            if !args.trim().is_empty() {
                text.push_str(&format!("\n\nARGUMENTS: {}", args.trim()));
            }
            Ok(ToolOutput::text(text))
        })
    }
}
