//! Facts about an attempt become its manifest. Pure.

use super::schema::{Manifest, ManifestArtifact, ManifestStatus, ManifestUsage, SCHEMA};
use crate::addr::StepAddr;
use crate::journal::record::EndState;
use crate::rundir::RunDir;
use claw_agents::outcome::FailureClass;
use claw_kernel::clock::Timestamp;
use claw_kernel::ids::AgentId;
use claw_providers::usage::Usage;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What is known of an attempt from its start on.
#[derive(Clone, Debug, PartialEq)]
pub struct StepFacts {
    /// Which step.
    pub step: StepAddr,
    /// From 1.
    pub attempt: u32,
    /// Where it is an agent.
    pub agent: Option<AgentId>,
    /// Short, for people.
    pub name: String,
    /// One line, for people.
    pub description: String,
    /// The agent's definition.
    pub subagent_type: Option<String>,
    /// As it resolved.
    pub model: Option<String>,
    /// As it resolved.
    pub permission_mode: Option<String>,
    /// As they resolved.
    pub tools: Vec<String>,
    /// Admitted.
    pub created_at: Timestamp,
    /// Its output is a JSON value, in `output.json`.
    pub json_output: bool,
    /// What its work tree started from.
    pub base_commit: Option<String>,
    /// Where it works, if apart.
    pub worktree: Option<PathBuf>,
    /// Holds its work.
    pub branch: Option<String>,
    /// The agent that started it.
    pub parent_agent: Option<AgentId>,
    /// The process that runs it.
    pub pid: u32,
    /// Its boot.
    pub boot_id: String,
}

/// How an attempt stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// It could start and waits for a slot.
    Queued,
    /// It works.
    Running {
        /// Since when.
        started_at: Timestamp,
    },
    /// It waits.
    Waiting {
        /// When its work began.
        started_at: Timestamp,
        /// For what.
        waiting_for: String,
    },
    /// It is final.
    Ended(Box<AttemptEnd>),
}

/// The end of an attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptEnd {
    /// How.
    pub state: EndState,
    /// When its work began; `None` where it never did.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub at: Timestamp,
    /// Spent in its own requests.
    pub usage: Option<Usage>,
    /// Spent with all that it started; `None` where it started nothing.
    pub subtree: Option<Usage>,
    /// Turns of its conversation.
    pub turns: Option<u32>,
    /// Calls by tool.
    pub tool_calls: BTreeMap<String, u32>,
    /// The model that answered last.
    pub model: Option<String>,
    /// Why it did not complete.
    pub error: Option<String>,
    /// Class of a failure.
    pub class: Option<FailureClass>,
    /// Files that it left.
    pub artifacts: Vec<ManifestArtifact>,
}

/// The manifest of an attempt; `None` where there is none: skipped and cached steps have no attempt.
pub fn manifest(run: &RunDir, facts: &StepFacts, standing: &Standing) -> Option<Manifest> {
    let mut manifest = start(run, facts);
    match standing {
        Standing::Queued => manifest.status = ManifestStatus::Queued,
        Standing::Running { started_at } => manifest.started_at = Some(*started_at),
        Standing::Waiting { started_at, waiting_for } => {
            manifest.status = ManifestStatus::Waiting;
            manifest.started_at = Some(*started_at);
            manifest.waiting_for = Some(waiting_for.clone());
        }
        Standing::Ended(end) => finish(&mut manifest, end)?,
    }
    Some(manifest)
}

/// How an end stands in a manifest.
pub fn status_of(state: EndState) -> Option<ManifestStatus> {
    match state {
        EndState::Succeeded => Some(ManifestStatus::Completed),
        EndState::Failed => Some(ManifestStatus::Failed),
        EndState::Cancelled => Some(ManifestStatus::Cancelled),
        EndState::Interrupted => Some(ManifestStatus::Interrupted),
        EndState::Skipped | EndState::Cached => None,
    }
}

fn start(run: &RunDir, facts: &StepFacts) -> Manifest {
    let (step, attempt) = (&facts.step, facts.attempt);
    Manifest {
        schema: SCHEMA,
        agent_id: facts.agent.clone(),
        run_id: run.id(),
        step: step.clone(),
        attempt,
        name: facts.name.clone(),
        description: facts.description.clone(),
        subagent_type: facts.subagent_type.clone(),
        model: facts.model.clone(),
        permission_mode: facts.permission_mode.clone(),
        tools: facts.tools.clone(),
        status: ManifestStatus::Running,
        created_at: facts.created_at,
        started_at: None,
        completed_at: None,
        output_file: Some(run.output(step, attempt, facts.json_output)),
        transcript_file: facts.agent.is_some().then(|| run.transcript(step, attempt)),
        manifest_file: run.manifest(step, attempt),
        usage: None,
        turns: None,
        tool_calls: BTreeMap::new(),
        error: None,
        error_class: None,
        waiting_for: None,
        artifacts: Vec::new(),
        base_commit: facts.base_commit.clone(),
        worktree: facts.worktree.clone(),
        branch: facts.branch.clone(),
        parent_agent_id: facts.parent_agent.clone(),
        pid: Some(facts.pid),
        boot_id: (!facts.boot_id.is_empty()).then(|| facts.boot_id.clone()),
    }
}

fn finish(manifest: &mut Manifest, end: &AttemptEnd) -> Option<()> {
    manifest.status = status_of(end.state)?;
    manifest.started_at = end.started_at;
    manifest.completed_at = Some(end.at);
    manifest.usage =
        end.usage.map(|own| ManifestUsage { own: own.into(), subtree: end.subtree.unwrap_or(own).into() });
    manifest.turns = end.turns;
    manifest.tool_calls.clone_from(&end.tool_calls);
    if end.model.is_some() {
        manifest.model.clone_from(&end.model);
    }
    manifest.error.clone_from(&end.error);
    manifest.error_class = end.class;
    manifest.artifacts.clone_from(&end.artifacts);
    Some(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use claw_kernel::ids::RunId;

    /// Facts of an agent `fix@2/edit`, attempt 1.
    pub(crate) fn facts() -> StepFacts {
        StepFacts {
            step: "fix@2/edit".parse().unwrap(),
            attempt: 1,
            agent: Some("ag_0123456789abcdefghjkmnpqrs".parse().unwrap()),
            name: "edit".into(),
            description: "Carry out the plan".into(),
            subagent_type: Some("general-purpose".into()),
            model: Some("sonnet".into()),
            permission_mode: Some("workspace-write".into()),
            tools: vec!["bash".into(), "edit_file".into()],
            created_at: Timestamp::from_millis(1_764_581_022_042),
            json_output: false,
            base_commit: None,
            worktree: None,
            branch: None,
            parent_agent: None,
            pid: 4242,
            boot_id: "b00t".into(),
        }
    }

    /// An end of it.
    pub(crate) fn ended(state: EndState) -> AttemptEnd {
        AttemptEnd {
            state,
            started_at: Some(Timestamp::from_millis(1_764_581_022_100)),
            at: Timestamp::from_millis(1_764_581_025_100),
            usage: Some(Usage { input: 27, output: 47, usd: Some(0.25), ..Usage::NOTHING }),
            subtree: None,
            turns: Some(3),
            tool_calls: BTreeMap::from([("bash".to_owned(), 2)]),
            model: Some("model-of-that-day".into()),
            error: None,
            class: None,
            artifacts: Vec::new(),
        }
    }

    fn run() -> RunDir {
        let id: RunId = "01KBCDEFGHJKMNPQRSTVWXYZ01".parse().unwrap();
        RunDir::at("/project/.claw/runs".as_ref(), id)
    }

    #[test]
    fn a_finished_agent_has_a_manifest_with_every_field_of_the_contract() {
        let manifest = manifest(&run(), &facts(), &Standing::Ended(Box::new(ended(EndState::Succeeded))));
        insta::assert_snapshot!(serde_json::to_string_pretty(&manifest).unwrap(), @r###"
        {
          "schema": 1,
          "agentId": "ag_0123456789abcdefghjkmnpqrs",
          "runId": "01KBCDEFGHJKMNPQRSTVWXYZ01",
          "step": "fix@2/edit",
          "attempt": 1,
          "name": "edit",
          "description": "Carry out the plan",
          "subagentType": "general-purpose",
          "model": "model-of-that-day",
          "permissionMode": "workspace-write",
          "tools": [
            "bash",
            "edit_file"
          ],
          "status": "completed",
          "createdAt": "2025-12-01T09:23:42.042Z",
          "startedAt": "2025-12-01T09:23:42.100Z",
          "completedAt": "2025-12-01T09:23:45.100Z",
          "outputFile": "/project/.claw/runs/01KBCDEFGHJKMNPQRSTVWXYZ01/nodes/fix@2/edit.1/output.md",
          "transcriptFile": "/project/.claw/runs/01KBCDEFGHJKMNPQRSTVWXYZ01/nodes/fix@2/edit.1/transcript.jsonl",
          "manifestFile": "/project/.claw/runs/01KBCDEFGHJKMNPQRSTVWXYZ01/nodes/fix@2/edit.1/manifest.json",
          "usage": {
            "self": {
              "input": 27,
              "output": 47,
              "cacheRead": 0,
              "cacheWrite": 0,
              "usd": 0.25
            },
            "subtree": {
              "input": 27,
              "output": 47,
              "cacheRead": 0,
              "cacheWrite": 0,
              "usd": 0.25
            }
          },
          "turns": 3,
          "toolCalls": {
            "bash": 2
          },
          "pid": 4242,
          "bootId": "b00t"
        }
        "###);
    }

    #[test]
    fn a_step_without_an_attempt_has_no_manifest() {
        for state in [EndState::Skipped, EndState::Cached] {
            assert_eq!(manifest(&run(), &facts(), &Standing::Ended(Box::new(ended(state)))), None);
        }
    }

    #[test]
    fn what_it_waits_for_is_said_while_it_waits() {
        let started_at = Timestamp::from_millis(1);
        let waiting = Standing::Waiting { started_at, waiting_for: "permission".into() };
        let manifest = manifest(&run(), &facts(), &waiting).unwrap();
        assert_eq!((manifest.status, manifest.completed_at), (ManifestStatus::Waiting, None));
        assert_eq!(manifest.waiting_for.as_deref(), Some("permission"));
    }
}
