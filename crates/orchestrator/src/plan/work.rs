//! What a node does: agents, merges and expressions, with all their texts parsed.

use super::build::{Build, Spot, Visible};
use super::model::{AgentWork, MergeStrategy, MergeWork, Work};
use crate::expr::Template;
use crate::workflow::file::{NodeFile, Section};
use crate::workflow::keys::NodeKind;
use crate::workflow::problem::Code;
use crate::workflow::spans::Source;
use claw_providers::request::Effort;

/// The agent of a node that names none.
const DEFAULT_AGENT: &str = "general-purpose";
/// Turns where neither the node nor the agent says.
const DEFAULT_TURNS: u32 = 50;
/// `window` of a merge by agents.
const DEFAULT_WINDOW: u64 = 64 * 1024;

impl<'a> Build<'a> {
    pub(super) fn work(
        &mut self,
        node: &'a NodeFile,
        keys: &'a Section,
        visible: &Visible<'_>,
    ) -> Option<Work> {
        let id = node.id.as_str();
        match node.kind {
            NodeKind::Agent => self.agent_work(node, keys, visible).map(Work::Agent),
            NodeKind::Command => self.command(node, keys, visible).map(Work::Command),
            NodeKind::Set => {
                let value = keys.get("value")?;
                let spot = self.spot(id, "value", value);
                self.expr(&spot, value.text()?, visible).map(|value| Work::Set { value })
            }
            NodeKind::Merge => self.merge(node, keys, visible).map(Work::Merge),
            NodeKind::Group | NodeKind::Gate | NodeKind::Workflow => {
                let message = format!("kind `{}` is not in this version yet", node.kind.as_str());
                let problem =
                    self.source.problem(Code::E107, node.span.clone(), format!("node.{id}.kind"), message);
                self.problems.push(problem);
                None
            }
        }
    }

    pub(super) fn optional_template(
        &mut self,
        id: &'a str,
        keys: &Section,
        key: &'static str,
        visible: &Visible<'_>,
    ) -> Option<Template> {
        let value = keys.get(key)?;
        let spot = self.spot(id, key, value);
        self.template(&spot, value.text()?, visible)
    }

    fn agent_work(
        &mut self,
        node: &'a NodeFile,
        keys: &'a Section,
        visible: &Visible<'_>,
    ) -> Option<AgentWork> {
        let id = node.id.as_str();
        let spot =
            Spot { source: self.source, span: node.span.clone(), node: id, key: "agent", exact: false };
        let named = match keys.get("agent") {
            Some(value) => self.spot(id, "agent", value),
            None => spot.clone(),
        };
        let definition = self.agent(&named, keys.text("agent").unwrap_or(DEFAULT_AGENT));
        let prompt = self.prompt(node, keys, visible);
        let system_append = self.optional_template(id, keys, "system_append", visible);
        let mut attach = Vec::new();
        for value in keys.list("attach") {
            let spot = self.spot(id, "attach", value);
            attach.extend(self.template(&spot, value.text().unwrap_or_default(), visible));
        }
        let own_models = self.models(&spot, keys);
        let tools = keys.get("tools").map(|_| self.tools(&spot, keys, "tools"));
        let deny_tools = self.tools(&spot, keys, "deny_tools");
        let permission = self.permission(&spot, keys);
        let (definition, prompt) = (definition?, prompt?);
        let turns = keys.int("max_turns").and_then(|turns| u32::try_from(turns).ok());
        Some(AgentWork {
            prompt,
            system_append,
            models: if own_models.is_empty() { definition.models.clone() } else { own_models },
            effort: keys.text("effort").map(|word| match word {
                "low" => Effort::Low,
                "high" => Effort::High,
                _ => Effort::Medium,
            }),
            tools,
            deny_tools,
            permission,
            max_turns: turns.or(definition.max_turns).unwrap_or(DEFAULT_TURNS),
            attach,
            spawn: false,
            definition,
        })
    }

    fn prompt(&mut self, node: &'a NodeFile, keys: &Section, visible: &Visible<'_>) -> Option<Template> {
        let id = node.id.as_str();
        let Some(value) = keys.get("prompt_file") else {
            return self.optional_template(id, keys, "prompt", visible);
        };
        let path = self.folder.join(value.text()?);
        match self.surroundings.read_text(&path) {
            Ok(text) => {
                let source = Source::new(&path, &text);
                let spot =
                    Spot { source: &source, span: 0..text.len(), node: id, key: "prompt_file", exact: true };
                self.template(&spot, &text, visible)
            }
            Err(error) => {
                let message = format!("`{}` cannot be read: {error}", path.display());
                self.problems.push(self.spot(id, "prompt_file", value).problem(Code::E109, message));
                None
            }
        }
    }

    fn merge(&mut self, node: &'a NodeFile, keys: &'a Section, visible: &Visible<'_>) -> Option<MergeWork> {
        let id = node.id.as_str();
        let mut from = Vec::new();
        for value in keys.list("from") {
            let spot = self.spot(id, "from", value);
            from.extend(self.expr(&spot, value.text().unwrap_or_default(), visible));
        }
        let item = Visible { bound: &["item"], ..*visible };
        let items = Visible { bound: &["items"], ..*visible };
        let strategy = match keys.text("strategy")? {
            "concat" => MergeStrategy::Concat,
            "dedupe" => MergeStrategy::Dedupe {
                key: self.optional_template(id, keys, "key", &item)?,
                prefer: match keys.get("prefer") {
                    Some(value) => {
                        let spot = self.spot(id, "prefer", value);
                        Some(self.expr(&spot, value.text()?, &item)?)
                    }
                    None => None,
                },
            },
            "agent" => MergeStrategy::Agent {
                agent: Box::new(self.agent_work(node, keys, &items)?),
                window: usize::try_from(keys.size("window").unwrap_or(DEFAULT_WINDOW)).unwrap_or(usize::MAX),
            },
            _ => MergeStrategy::List,
        };
        Some(MergeWork { from, strategy, write: self.optional_template(id, keys, "write", visible) })
    }
}
