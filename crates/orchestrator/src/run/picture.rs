//! The picture of one attempt on disk: its manifest when it starts and when it ends, its output for people.
//!
//! Decides nothing: the journal is the truth. A picture that cannot be written is said and drawn again at the next open.

use super::agent_step::make_folder;
use super::hands::Hands;
use crate::manifest::build::{AttemptEnd, Standing, StepFacts};
use crate::manifest::output::{self, AgentResult};
use crate::manifest::schema::{ManifestArtifact, ManifestStatus};
use crate::manifest::store::{self, ManifestError};
use crate::plan::model::{Node, OutputSpec};
use crate::scheduler::{Launch, OutcomeEnd, Prepared, Settlement};
use crate::worktree::OpenFolder;
use claw_agents::outcome::AgentOutcome;
use claw_agents::request::AgentRequest;
use claw_kernel::clock::{self, Timestamp};
use claw_kernel::digest::Digest;
use claw_providers::usage::Usage;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Characters of a description.
const DESCRIPTION: usize = 120;

/// What is known of an attempt so far.
pub(super) struct Picture {
    hands: Arc<Hands>,
    facts: StepFacts,
    started_at: Timestamp,
    prompt: Option<String>,
    usage: Option<Usage>,
    turns: Option<u32>,
    tool_calls: BTreeMap<String, u32>,
    model: Option<String>,
    artifacts: Vec<ManifestArtifact>,
    said: Option<String>,
}

impl Picture {
    pub fn new(hands: &Arc<Hands>, launch: &Launch, node: &Node) -> Self {
        let now = clock::now();
        if let Err(error) = make_folder(&hands.run.node(&launch.addr, launch.attempt)) {
            hands.bus.note(Some(&launch.addr), format!("cannot make its folder: {error}"));
        }
        let agent = match &launch.work {
            Prepared::Agent(agent) => Some(agent.id.clone()),
            Prepared::Command(_) | Prepared::Value(_) | Prepared::GitMerge(_) => None,
        };
        let child = match &launch.work {
            Prepared::Agent(agent) => agent.child.as_ref(),
            Prepared::Command(_) | Prepared::Value(_) | Prepared::GitMerge(_) => None,
        };
        let parent_agent = child.and_then(|child| child.parent.clone());
        let json_output = child.is_none()
            && match (&node.output, &node.work) {
                (OutputSpec::Json | OutputSpec::Schema(_), _) => true,
                (OutputSpec::Text, _) => false,
            };
        let facts = StepFacts {
            step: launch.addr.clone(),
            attempt: launch.attempt,
            agent,
            name: hands.agents.redactor.apply(&launch.label).into_owned(),
            description: hands.agents.redactor.apply(&launch.label).into_owned(),
            subagent_type: None,
            model: None,
            permission_mode: None,
            tools: Vec::new(),
            created_at: now,
            json_output,
            base_commit: None,
            worktree: None,
            branch: None,
            parent_agent,
            pid: std::process::id(),
            boot_id: hands.boot_id.clone(),
        };
        Self {
            hands: Arc::clone(hands),
            facts,
            started_at: now,
            prompt: None,
            usage: None,
            turns: None,
            tool_calls: BTreeMap::new(),
            model: None,
            artifacts: Vec::new(),
            said: None,
        }
    }

    /// It is an agent, and this is how it resolved.
    pub fn agent(&mut self, request: &AgentRequest) {
        let offered = claw_agents::tools_of(&self.hands.agents.registry.current(), request);
        let facts = &mut self.facts;
        let first = self.hands.agents.redactor.apply(request.prompt.lines().next().unwrap_or_default());
        facts.description = first.chars().take(DESCRIPTION).collect();
        facts.subagent_type = Some(request.definition.name.clone());
        facts.model =
            request.models.first().cloned().or_else(|| Some(self.hands.agents.model.default_model()));
        facts.permission_mode = Some(request.permission.to_string());
        facts.tools = offered.into_iter().map(str::to_owned).collect();
    }

    /// It works in a folder of its own, or in that of its group.
    pub fn folder(&mut self, folder: &OpenFolder) {
        self.facts.base_commit = Some(folder.base.clone());
        self.facts.worktree = Some(folder.path.clone());
        self.facts.branch = Some(folder.branch.clone());
    }

    /// Its work begins.
    pub fn started(&mut self, prompt: Option<&str>) {
        self.prompt = prompt.map(|prompt| self.hands.agents.redactor.apply(prompt).into_owned());
        let standing = Standing::Running { started_at: self.started_at };
        let drawn = store::write(&self.hands.run, &self.facts, &standing);
        self.say_if_failed(drawn);
    }

    /// A file that it left.
    pub fn artifact(&mut self, path: &str, bytes: u64, sha256: Digest) {
        self.artifacts.push(ManifestArtifact { path: path.into(), bytes, sha256 });
    }

    /// Its work is over; the value, where it is JSON, is on disk before the journal says so.
    pub fn ended(&mut self, agent: Option<&AgentOutcome>, end: &OutcomeEnd) {
        if let Some(agent) = agent {
            self.usage = Some(agent.usage);
            self.turns = Some(agent.turns);
            self.tool_calls.clone_from(&agent.tool_calls);
            self.model.clone_from(&agent.model);
        }
        if let OutcomeEnd::Succeeded { value, .. } = end {
            let (step, attempt) = (&self.facts.step, self.facts.attempt);
            match value.as_str() {
                Some(text) => self.said = Some(text.to_owned()),
                None => {
                    self.said = Some(serde_json::to_string_pretty(value.as_ref()).unwrap_or_default());
                    let drawn = output::write_json(&self.hands.run, step, attempt, value);
                    self.say_if_failed(drawn);
                }
            }
        }
        self.for_people(end);
    }

    /// An agent's `output.md`: there before anybody is told that the agent is done.
    fn for_people(&self, end: &OutcomeEnd) {
        let Some(prompt) = &self.prompt else { return };
        let (status, error) = match end {
            OutcomeEnd::Succeeded { .. } => (ManifestStatus::Completed, ""),
            OutcomeEnd::Failed(failure) => (ManifestStatus::Failed, failure.message.as_str()),
            OutcomeEnd::Cancelled => (ManifestStatus::Cancelled, "cancelled"),
            OutcomeEnd::Asks(_) => (ManifestStatus::Waiting, "asks"),
            OutcomeEnd::Interrupted(why) => (ManifestStatus::Interrupted, why.as_str()),
        };
        let text = self.said.as_deref().ok_or(error);
        let drawn =
            output::write_markdown(&self.hands.run, &self.facts, prompt, Some(&AgentResult { status, text }));
        self.say_if_failed(drawn);
    }

    /// Its end is on record.
    pub fn settled(self, settlement: &Settlement) {
        let end = AttemptEnd {
            state: settlement.state,
            started_at: Some(self.started_at),
            at: clock::now(),
            usage: self.usage,
            subtree: self.usage.map(|own| own.plus(&settlement.children)),
            turns: self.turns,
            tool_calls: self.tool_calls.clone(),
            model: self.model.clone(),
            error: settlement.error.clone(),
            class: settlement.class,
            artifacts: self.artifacts.clone(),
        };
        let drawn = store::write(&self.hands.run, &self.facts, &Standing::Ended(Box::new(end)));
        self.say_if_failed(drawn);
    }

    fn say_if_failed<T>(&self, drawn: Result<T, ManifestError>) {
        if let Err(error) = drawn {
            self.hands.bus.note(Some(&self.facts.step), error.to_string());
        }
    }
}
