//! What a run tells while it goes: one stream, many readers (plain lines, JSON, bars, another process).

use crate::addr::StepAddr;
use crate::journal::record::{EndState, Question, RunStatus};
use claw_kernel::clock::Timestamp;
use claw_kernel::ids::RunId;
use claw_providers::usage::Usage;
use std::sync::Arc;
use std::time::Duration;

/// One event of one run. `seq` rises by one.
#[derive(Clone, Debug)]
pub struct RunEvent {
    /// Which run.
    pub run: RunId,
    /// From 1.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
    /// Which step; `None` for the run.
    pub step: Option<StepAddr>,
    /// Which attempt.
    pub attempt: Option<u32>,
    /// What.
    pub kind: RunEventKind,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum RunEventKind {
    /// `run.started`.
    RunStarted {
        /// `workflow.name`.
        workflow: String,
        /// Nodes in the file.
        nodes: usize,
        /// Take, from 1: above 1 the run goes on.
        take: u32,
    },
    /// `step.state`.
    StepState(StepState),
    /// `agent.turn`.
    AgentTurn {
        /// From 1.
        turn: u32,
        /// Asked first.
        model: String,
    },
    /// `agent.tool`.
    AgentTool {
        /// Canonical.
        name: String,
        /// One line.
        subject: String,
        /// Where it stands.
        phase: ToolPhase,
    },
    /// `agent.usage`: spent by this attempt so far.
    AgentUsage(Usage),
    /// `agent.text`: only where partial messages are asked for.
    AgentText(Arc<str>),
    /// `gate.asked`.
    GateAsked(Box<Question>),
    /// `note`.
    Note(String),
    /// `run.ended`.
    RunEnded {
        /// How.
        status: RunStatus,
        /// Of the process.
        exit_code: u8,
    },
}

/// Where a call stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolPhase {
    /// It runs.
    Started,
    /// It is done.
    Succeeded,
    /// It failed or was denied.
    Failed,
}

/// Where a step stands, live.
#[derive(Clone, Debug, PartialEq)]
pub enum StepState {
    /// It could start and waits for a slot.
    Ready {
        /// Place in the queue, from 1.
        position: usize,
    },
    /// It works.
    Running,
    /// It waits.
    Waiting(WaitingFor),
    /// It is final.
    Ended {
        /// How.
        state: EndState,
        /// Why, where it did not succeed.
        error: Option<String>,
    },
}

/// What a step waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum WaitingFor {
    /// Its next attempt.
    Retry {
        /// From now.
        delay: Duration,
        /// The last error.
        error: String,
    },
    /// The provider.
    Provider {
        /// From now.
        delay: Duration,
        /// Such as `rate limited`.
        why: &'static str,
    },
    /// An answer of a person to a call.
    Permission,
    /// An answer of a person to a gate.
    Gate,
    /// A named mutex.
    Lock {
        /// Its name.
        name: String,
    },
    /// A service that is down or refuses: one request tries, the others wait.
    Breaker {
        /// Why.
        why: String,
    },
}
