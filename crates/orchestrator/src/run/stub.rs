//! `--stub`: answers of agents out of a file. A model of its own, so that transcripts, manifests, checks, retries and
//! resume are those of real answers.
//!
//! Owns the file's shape and which answer serves which step. Must not know the screen or the disk.

use crate::addr::{AddrPart, StepAddr};
use crate::plan::model::{EachSource, Node, NodeIx, Plan};
use crate::scheduler::schema;
use claw_agents::model::{Model, ModelTraits};
use claw_agents::outcome::FailureClass;
use claw_kernel::cancel::CancelToken;
use claw_kernel::near::nearest;
use claw_providers::error::{ErrorClass, ProviderError, ProviderErrorKind};
use claw_providers::event::{Answer, RequestEvent, StopReason};
use claw_providers::message::Block;
use claw_providers::request::Request;
use claw_providers::usage::Usage;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use tokio::sync::mpsc;

/// What stands before the step in the name of a stubbed model.
const MODEL: &str = "stub";

/// Answers by node id, node path or step address.
#[derive(Clone, Debug, PartialEq)]
pub struct Stubs {
    entries: BTreeMap<String, Value>,
}

/// What a stub gives.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum StubAnswer<'a> {
    /// This.
    Says(&'a Value),
    /// The attempt fails.
    Fails {
        /// Its class.
        class: FailureClass,
        /// For people.
        message: String,
    },
}

/// A file of stubs that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StubError {
    /// Not JSON, not TOML.
    #[error("it is neither JSON nor TOML: {0}")]
    Syntax(Box<toml::de::Error>),
    /// Not a table of answers by node.
    #[error("it must be a table: an answer for each node")]
    NotATable,
    /// Answers that do not fit the workflow; all of them.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n  "))]
    Unfit(Vec<StubProblem>),
}

/// One answer that does not fit.
#[derive(Debug, thiserror::Error)]
pub enum StubProblem {
    /// Nothing of that name is an agent.
    #[error("`{key}` names no agent of the workflow{}", near.as_ref().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default())]
    Unknown {
        /// As written.
        key: String,
        /// The nearest.
        near: Option<String>,
    },
    /// An answer that the node would have refused.
    #[error("the answer for `{key}`: {what}")]
    Wrong {
        /// As written.
        key: String,
        /// Where in the answer, and why.
        what: String,
    },
    /// A failure of no known class.
    #[error("the answer for `{key}` fails with `{class}`, which is no class of failures")]
    Class {
        /// As written.
        key: String,
        /// As written.
        class: String,
    },
    /// A list without an answer.
    #[error(
        "the answer for `{key}` is an empty list; a list holds the answers of one attempt or iteration after another"
    )]
    Empty {
        /// As written.
        key: String,
    },
    /// Agents without an answer.
    #[error("no answer for {}", .0.join(", "))]
    Missing(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Failing {
    fail: String,
    #[serde(default)]
    message: Option<String>,
}

impl Stubs {
    /// Reads a file's text, JSON or TOML.
    ///
    /// # Errors
    /// Where it is neither, or no table.
    pub fn parse(text: &str) -> Result<Self, StubError> {
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(_) => toml::from_str(text).map_err(|error| StubError::Syntax(Box::new(error)))?,
        };
        let Value::Object(entries) = value else { return Err(StubError::NotATable) };
        Ok(Self { entries: entries.into_iter().collect() })
    }

    /// Every answer belongs to an agent and is one that it could give; every agent that the plan knows has one.
    ///
    /// # Errors
    /// All that does not fit.
    pub fn check(&self, plan: &Plan) -> Result<(), StubError> {
        let agents: Vec<(NodeIx, String)> =
            plan.paths().filter(|(ix, _)| plan.nodes[ix.at()].agent().is_some()).collect();
        let mut problems = Vec::new();
        for (key, value) in &self.entries {
            let nodes: Vec<&Node> = agents
                .iter()
                .filter(|(ix, path)| serves(key, path, plan.nodes[ix.at()].id.as_str()))
                .map(|(ix, _)| &plan.nodes[ix.at()])
                .collect();
            if nodes.is_empty() {
                let near = nearest(key, agents.iter().map(|(_, path)| path.as_str())).map(str::to_owned);
                problems.push(StubProblem::Unknown { key: key.clone(), near });
            }
            for node in nodes {
                check(key, value, node, &mut problems);
            }
        }
        let missing: Vec<String> =
            agents.iter().flat_map(|(ix, path)| self.missing(&plan.nodes[ix.at()], path)).collect();
        if !missing.is_empty() {
            problems.push(StubProblem::Missing(missing));
        }
        if problems.is_empty() { Ok(()) } else { Err(StubError::Unfit(problems)) }
    }

    /// Agents of a node for which there is certainly no answer.
    fn missing(&self, node: &Node, path: &str) -> Vec<String> {
        if self.entries.contains_key(path) || self.entries.contains_key(node.id.as_str()) {
            return Vec::new();
        }
        let of_steps: Vec<StepAddr> = self
            .entries
            .keys()
            .filter_map(|key| key.parse().ok())
            .filter(|addr: &StepAddr| addr.path() == path)
            .collect();
        let items = match node.each.as_ref().map(|each| &each.source) {
            Some(EachSource::Static(items)) if node.parent.is_none() => items,
            Some(
                EachSource::Static(_)
                | EachSource::Listed(_)
                | EachSource::Items(_)
                | EachSource::Glob { .. }
                | EachSource::Lines(_)
                | EachSource::Jsonl(_),
            )
            | None => return if of_steps.is_empty() { vec![path.to_owned()] } else { Vec::new() },
        };
        let has = |wanted: &str| {
            of_steps.iter().any(|addr| {
                matches!(addr.parts().last(), Some(AddrPart::Node { item: Some(item), .. }) if item.as_str() == wanted)
            })
        };
        items.iter().filter(|(key, _)| !has(key.as_str())).map(|(key, _)| format!("{path}={key}")).collect()
    }

    /// The answer of one attempt of a step: of its address, else of its node. `None` where there is none.
    pub(super) fn answer(&self, addr: &StepAddr, attempt: u32) -> Option<StubAnswer<'_>> {
        let path = addr.path();
        let id = path.rsplit('/').next().unwrap_or_default();
        let value =
            [addr.to_string().as_str(), &path, id].into_iter().find_map(|key| self.entries.get(key))?;
        let iteration = addr.parts().iter().rev().find_map(|part| match part {
            AddrPart::Node { iteration, .. } => *iteration,
            AddrPart::Child(_) => None,
        });
        let value = match iteration {
            Some(n) => turn_of(turn_of(value, n)?, attempt)?,
            None => turn_of(value, attempt)?,
        };
        Some(match failing(value) {
            Some(failing) => StubAnswer::Fails {
                class: class(&failing.fail).unwrap_or(FailureClass::Refused),
                message: failing.message.unwrap_or_else(|| format!("stub: {}", failing.fail)),
            },
            None => StubAnswer::Says(value),
        })
    }

    /// The name of the model that answers one attempt.
    pub(super) fn model_of(addr: &StepAddr, attempt: u32) -> String {
        format!("{MODEL}/{}", addr.folder(attempt))
    }
}

/// Whether a key of the file is meant for a node.
fn serves(key: &str, path: &str, id: &str) -> bool {
    key == path || key == id || key.parse::<StepAddr>().is_ok_and(|addr| addr.path() == path)
}

fn check(key: &str, value: &Value, node: &Node, problems: &mut Vec<StubProblem>) {
    if let Value::Array(list) = value {
        if list.is_empty() {
            problems.push(StubProblem::Empty { key: key.to_owned() });
        }
        return list.iter().for_each(|one| check(key, one, node, problems));
    }
    let key = key.to_owned();
    match failing(value) {
        Some(failing) if class(&failing.fail).is_none() => {
            problems.push(StubProblem::Class { key, class: failing.fail });
        }
        Some(_) => {}
        None => {
            if let Err(wrong) = schema::check(&node.output, value) {
                problems.push(StubProblem::Wrong { key, what: wrong.to_string() });
            }
        }
    }
}

/// One of a list, the last of it for all that come later; anything else is always the same.
fn turn_of(value: &Value, number: u32) -> Option<&Value> {
    match value {
        Value::Array(list) => {
            let at = usize::try_from(number).unwrap_or(usize::MAX).saturating_sub(1);
            list.get(at).or_else(|| list.last())
        }
        other => Some(other),
    }
}

fn failing(value: &Value) -> Option<Failing> {
    value.get("fail").filter(|fail| fail.is_string())?;
    Failing::deserialize(value).ok()
}

fn class(name: &str) -> Option<FailureClass> {
    FailureClass::deserialize(Value::from(name)).ok()
}

/// As a model would have written it.
pub(super) fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

impl Stubs {
    fn say(&self, request: &Request) -> Option<Answer> {
        let model = request.models.first()?;
        let (step, attempt) = model.strip_prefix("stub/")?.rsplit_once('.')?;
        let StubAnswer::Says(value) = self.answer(&step.parse().ok()?, attempt.parse().ok()?)? else {
            return None;
        };
        Some(Answer {
            blocks: vec![Block::Text { text: text_of(value) }],
            stop: StopReason::EndTurn,
            cut_calls: Vec::new(),
            usage: Usage::NOTHING,
            provider: MODEL.to_owned(),
            model: MODEL.to_owned(),
            attempts: 1,
        })
    }
}

impl Model for Stubs {
    fn ask<'a>(
        &'a self,
        request: Request,
        _events: &'a mpsc::Sender<RequestEvent>,
        _cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<Answer, ProviderError>> {
        Box::pin(async move {
            self.say(&request).ok_or_else(|| {
                let model = request.models.first().cloned().unwrap_or_default();
                ProviderError {
                    kind: ProviderErrorKind::Config(format!("the stub file has no answer for {model}")),
                    class: ErrorClass::Refused,
                    retry_at: None,
                    usage: Usage::NOTHING,
                    partial: Vec::new(),
                }
            })
        })
    }

    /// Answers are documents and cost nothing.
    fn traits_of(&self, _model: &str) -> ModelTraits {
        ModelTraits {
            window: None,
            max_output: None,
            text_tool_calls: false,
            answer_schema: true,
            price: Some(claw_providers::models::Price::FREE),
        }
    }

    fn default_model(&self) -> String {
        MODEL.to_owned()
    }
}

#[cfg(test)]
mod tests;
