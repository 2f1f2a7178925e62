//! `agent_output`, `agent_message`, `agent_stop`: what a conversation does with agents that work in the background.
//!
//! Owns what a model may ask for. Must not know who carries it out: that is whoever schedules the agents.

use super::spawner::ChildSaid;
use claw_tools::error::ToolError;
use claw_tools::output::ToolOutput;
use claw_tools::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Longest wait for an end.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Agents that work while the conversation that started them goes on. `agent` is an id, an address such as `+2`, or a
/// name that only one of them has.
pub trait Background: Send + Sync {
    /// How it stands, and what it gave; waits so long for its end.
    fn output(&self, agent: String, wait: Duration) -> BoxFuture<'_, ChildSaid>;
    /// Says something to it: it hears it at its next step.
    fn message(&self, agent: String, text: String) -> BoxFuture<'_, ChildSaid>;
    /// Ends it.
    fn stop(&self, agent: String) -> BoxFuture<'_, ChildSaid>;
}

/// One of the three tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackgroundTool {
    /// State and result.
    Output,
    /// A word.
    Message,
    /// The end.
    Stop,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    #[serde(alias = "agentId", alias = "agent_id", alias = "task_id", alias = "to")]
    agent: String,
    #[serde(default, alias = "timeout", alias = "waitMs")]
    wait_ms: u64,
    #[serde(default, alias = "text")]
    message: Option<String>,
}

impl BackgroundTool {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Output, Self::Message, Self::Stop];

    /// The tool of that canonical name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    fn input(self, input: &Value) -> Result<Input, ToolError> {
        let wrong = |path: &str, message: String| ToolError::Input {
            tool: self.name(),
            path: path.to_owned(),
            message,
        };
        let input = Input::deserialize(input).map_err(|error| wrong(".", error.to_string()))?;
        if input.agent.trim().is_empty() {
            return Err(wrong("agent", "must not be blank".to_owned()));
        }
        let says = input.message.as_ref().is_some_and(|text| !text.trim().is_empty());
        if self == Self::Message && !says {
            return Err(wrong("message", "must not be blank".to_owned()));
        }
        Ok(input)
    }

    /// Carries a call out. The future ends early where it is dropped; nothing is undone by that.
    pub(crate) async fn carry_out(self, team: &dyn Background, input: &Value) -> ChildSaid {
        let Input { agent, wait_ms, message } = match self.input(input) {
            Ok(input) => input,
            Err(error) => return ChildSaid::error(error.to_string()),
        };
        match self {
            Self::Output => team.output(agent, Duration::from_millis(wait_ms).min(LONGEST_WAIT)).await,
            Self::Message => team.message(agent, message.unwrap_or_default()).await,
            Self::Stop => team.stop(agent).await,
        }
    }
}

impl Tool for BackgroundTool {
    fn name(&self) -> &'static str {
        match self {
            Self::Output => "agent_output",
            Self::Message => "agent_message",
            Self::Stop => "agent_stop",
        }
    }

    fn aliases(&self) -> &'static [&'static str] {
        match self {
            Self::Output => &["TaskOutput", "AgentOutputTool"],
            Self::Message => &["SendMessage"],
            Self::Stop => &["TaskStop"],
        }
    }

    fn description(&self) -> String {
        match self {
            Self::Output => {
                "Tells how an agent in the background stands and what it gave. Its end is told by itself as well: wait \
                 only where nothing else is to be done."
            }
            Self::Message => "Says something to an agent that works: it hears it at its next step.",
            Self::Stop => "Ends an agent that works in the background.",
        }
        .to_owned()
    }

    fn input_schema(&self) -> Value {
        let agent = json!({ "type": "string", "description": "Its id, its address such as +2, or its name" });
        let (more, required) = match self {
            Self::Output => {
                let wait = json!({ "type": "integer", "minimum": 0, "maximum": 600_000,
                    "description": "Milliseconds to wait for its end; 0 where left out" });
                (Some(("wait_ms", wait)), json!(["agent"]))
            }
            Self::Message => (Some(("message", json!({ "type": "string" }))), json!(["agent", "message"])),
            Self::Stop => (None, json!(["agent"])),
        };
        let mut schema = json!({ "type": "object", "properties": { "agent": agent }, "required": required });
        if let Some((name, property)) = more {
            schema["properties"][name] = property;
        }
        schema
    }

    /// By itself it touches nothing.
    fn effect(&self, _ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        self.input(input).map(|_| Effect::default())
    }

    fn call<'a>(
        &'a self,
        _ctx: &'a ToolContext,
        _judged: &'a Effect,
        _input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let refusal = "this conversation has no agents in the background".to_owned();
        Box::pin(std::future::ready(Err(ToolError::Refused(refusal))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_names_an_agent_and_a_message_says_something() {
        for (tool, input) in [
            (BackgroundTool::Output, json!({"agent": " "})),
            (BackgroundTool::Message, json!({"agent": "+1"})),
            (BackgroundTool::Message, json!({"agent": "+1", "message": "\n"})),
            (BackgroundTool::Stop, json!({})),
        ] {
            assert!(tool.input(&input).is_err(), "{tool:?} {input}");
        }
        let good = BackgroundTool::Output.input(&json!({"agentId": "+1", "wait_ms": 5})).unwrap();
        assert_eq!((good.agent.as_str(), good.wait_ms), ("+1", 5));
    }
}
