//! What a node does, by its kind; and agents, with all their texts parsed.

use super::build::{Build, Spot, Visible};
use super::model::{AgentWork, NodeIx, Work};
use crate::expr::{Expr, Template};
use crate::workflow::file::{NodeFile, Section};
use crate::workflow::keys::NodeKind;
use crate::workflow::problem::Code;
use crate::workflow::spans::Source;
use claw_providers::request::Effort;

/// The agent of a node that names none.
const DEFAULT_AGENT: &str = "general-purpose";
/// Turns where neither the node nor the agent says.
const DEFAULT_TURNS: u32 = 50;

impl<'a> Build<'a> {
    pub(super) fn work(&mut self, ix: NodeIx, visible: &Visible<'_>) -> Option<Work> {
        let node = self.forest.slot(ix).node;
        match node.kind {
            NodeKind::Agent => self.agent_work(node, visible).map(Work::Agent),
            NodeKind::Command => self.command(node, visible).map(Work::Command),
            NodeKind::Set => {
                let value = node.keys.get("value")?;
                let spot = self.spot(node, "value", value);
                self.expr(&spot, value.text()?, visible).map(|value| Work::Set { value })
            }
            NodeKind::Merge => self.merge(node, visible).map(Work::Merge),
            NodeKind::Group => self.group(ix, node).map(|group| Work::Group(Box::new(group))),
            NodeKind::Workflow => self.nested(ix, node, visible).map(|group| Work::Group(Box::new(group))),
            NodeKind::Gate => self.gate(node, visible).map(Work::Gate),
        }
    }

    pub(super) fn optional_template(
        &mut self,
        node: &'a NodeFile,
        keys: &Section,
        key: &'static str,
        visible: &Visible<'_>,
    ) -> Option<Template> {
        let value = keys.get(key)?;
        let spot = self.spot(node, key, value);
        self.template(&spot, value.text()?, visible)
    }

    pub(super) fn optional_expr(
        &mut self,
        node: &'a NodeFile,
        keys: &Section,
        (name, key): (&str, &'static str),
        visible: &Visible<'_>,
    ) -> Option<Expr> {
        let value = keys.get(name)?;
        let spot = self.spot(node, key, value);
        self.expr(&spot, value.text()?, visible)
    }

    pub(super) fn agent_work(&mut self, node: &'a NodeFile, visible: &Visible<'_>) -> Option<AgentWork> {
        let keys = &node.keys;
        let spot = Spot {
            source: self.source,
            span: node.span.clone(),
            node: Some(node),
            key: "agent",
            exact: false,
        };
        let named = match keys.get("agent") {
            Some(value) => self.spot(node, "agent", value),
            None => spot.clone(),
        };
        let definition = self.agent(&named, keys.text("agent").unwrap_or(DEFAULT_AGENT));
        let prompt = self.prompt(node, visible);
        let system_append = self.optional_template(node, keys, "system_append", visible);
        let mut attach = Vec::new();
        for value in keys.list("attach") {
            let spot = self.spot(node, "attach", value);
            attach.extend(self.template(&spot, value.text().unwrap_or_default(), visible));
        }
        let own_models = self.models(&spot, keys);
        let tools = keys.get("tools").map(|_| self.tools(&spot, keys, "tools"));
        let deny_tools = self.tools(&spot, keys, "deny_tools");
        let permission = self.permission(&spot, keys);
        let (definition, prompt) = (definition?, prompt?);
        let spawn = keys.flag("spawn").unwrap_or(false);
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
            spawn,
            startable: if spawn { self.startable() } else { Vec::new() },
            definition,
        })
    }

    fn prompt(&mut self, node: &'a NodeFile, visible: &Visible<'_>) -> Option<Template> {
        let keys = &node.keys;
        let Some(value) = keys.get("prompt_file") else {
            return self.optional_template(node, keys, "prompt", visible);
        };
        let path = self.folder.join(value.text()?);
        match self.surroundings.read_text(&path) {
            Ok(text) => {
                let source = Source::new(&path, &text);
                let spot = Spot {
                    source: &source,
                    span: 0..text.len(),
                    node: Some(node),
                    key: "prompt_file",
                    exact: true,
                };
                self.template(&spot, &text, visible)
            }
            Err(error) => {
                let message = format!("`{}` cannot be read: {error}", path.display());
                self.problems.push(self.spot(node, "prompt_file", value).problem(Code::E109, message));
                None
            }
        }
    }
}
