//! What the core remembers of nodes, steps and earlier takes.

use super::children::{Child, Family};
use super::event::StepIx;
use super::frame::FrameIx;
use super::owner::Owner;
use crate::addr::{ItemKey, StepAddr};
use crate::expr::Data;
use crate::journal::history::Difference;
use crate::journal::record::{Answer, EndState, Question, SpawnedOrder};
use crate::plan::model::NodeIx;
use claw_agents::outcome::{Denial, FailureClass};
use claw_kernel::digest::Digest;
use claw_kernel::ids::AgentId;
use claw_providers::usage::Usage;
use serde_json::Value;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

/// A node of a body that became final before a step of it was: skipped, mostly.
#[derive(Debug)]
pub(super) struct Aside {
    pub addr: StepAddr,
    /// In whose iteration.
    pub owner: StepIx,
    /// Steps that were there before it.
    pub behind: usize,
    pub node: NodeIx,
    pub state: EndState,
    pub error: Option<String>,
    pub class: Option<FailureClass>,
}

/// What earlier takes of this run left behind.
pub trait Past: Send {
    /// A success of the same content: at this address, else at an address that is no longer in the plan. One success
    /// serves one step.
    fn success(&mut self, addr: &StepAddr, key: &Digest) -> Option<PastSuccess>;
    /// Attempts made so far.
    fn attempts(&self, addr: &StepAddr) -> u32;
    /// The last attempt of the same content whose transcript can be gone on from.
    fn transcript(&self, addr: &StepAddr, key: &Digest) -> Option<Earlier>;
    /// An effect of this step may have happened: it was intended and never reported.
    fn in_doubt(&self, addr: &StepAddr) -> bool;
    /// What differs from a success of this step of other content; `None` where there was none. `own` is the static part of
    /// the node's key today.
    fn differs(&self, addr: &StepAddr, key: &Digest, own: &Digest) -> Option<Difference>;
    /// What was last asked here and answered, where no attempt followed.
    fn answer(&self, addr: &StepAddr) -> Option<(Question, Answer)>;
    /// What persons said to the agents of this step, in order.
    fn said(&self, addr: &StepAddr) -> Vec<String>;
    /// Children that agents of this step started, with the call of each, in order.
    fn spawned(&self, _addr: &StepAddr) -> Vec<(String, StepAddr)> {
        Vec::new()
    }
    /// What the caller of this take wants of a step.
    fn wanted(&self, _addr: &StepAddr) -> Wanted {
        Wanted::Run
    }
    /// The last success of this step, whatever its content was.
    fn kept(&mut self, _addr: &StepAddr) -> Option<PastSuccess> {
        None
    }
    /// Agents that the session's own conversation started, in order; a workflow has none.
    fn team(&self) -> Vec<PastMate> {
        Vec::new()
    }
    /// Takes so far.
    fn takes(&self) -> u32 {
        0
    }
    /// Agents started in all takes, retries counted.
    fn agents(&self) -> usize;
    /// Whether there is nothing.
    fn is_empty(&self) -> bool;
}

/// An agent that a session's conversation started in an earlier take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PastMate {
    /// Its address.
    pub addr: StepAddr,
    /// What it is for.
    pub order: SpawnedOrder,
    /// How it ended, where it did.
    pub end: Option<EndState>,
    /// Why it did not succeed.
    pub error: Option<String>,
    /// Its end is in the session's log.
    pub is_told: bool,
}

/// What the caller of a take wants of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// As its content key says.
    Run,
    /// Its earlier success stands, whatever changed.
    Keep,
    /// It is left alone.
    Leave,
}

/// An attempt that can be gone on from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// Its number.
    pub attempt: u32,
    /// Why what it gave was refused, where it was done.
    pub fault: Option<String>,
}

/// A success of an earlier take.
#[derive(Clone, Debug)]
pub struct PastSuccess {
    /// The content that it was made for.
    pub key: Digest,
    /// What it gave.
    pub value: Arc<Value>,
    /// The file that holds the whole of it.
    pub file: Option<PathBuf>,
    /// The agent, where it was one.
    pub agent: Option<AgentId>,
    /// The attempt that succeeded.
    pub attempt: u32,
    /// The address where it was made: names its folder and its branch.
    pub addr: StepAddr,
    /// Spent on it in all earlier takes.
    pub usage: Usage,
}

/// The past of a fresh run.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPast;

impl Past for NoPast {
    fn success(&mut self, _: &StepAddr, _: &Digest) -> Option<PastSuccess> {
        None
    }
    fn attempts(&self, _: &StepAddr) -> u32 {
        0
    }
    fn transcript(&self, _: &StepAddr, _: &Digest) -> Option<Earlier> {
        None
    }
    fn in_doubt(&self, _: &StepAddr) -> bool {
        false
    }
    fn differs(&self, _: &StepAddr, _: &Digest, _: &Digest) -> Option<Difference> {
        None
    }
    fn answer(&self, _: &StepAddr) -> Option<(Question, Answer)> {
        None
    }
    fn said(&self, _: &StepAddr) -> Vec<String> {
        Vec::new()
    }
    fn agents(&self) -> usize {
        0
    }
    fn is_empty(&self) -> bool {
        true
    }
}

/// Where a node stands.
#[derive(Debug)]
pub(super) enum NodePhase {
    /// Something it needs is not final.
    Waiting,
    /// Its items are being read.
    Reading,
    /// Its steps are known.
    Active(Active),
    /// Final.
    Final(NodeFinal),
}

/// A node whose steps are known.
#[derive(Debug, Default)]
pub(super) struct Active {
    /// In the order of the input.
    pub steps: Vec<StepIx>,
    /// Steps that were not handed to the gate yet: `each.concurrency` holds them back.
    pub held: VecDeque<StepIx>,
    /// Handed to the gate and not final.
    pub open: usize,
    /// Final with an output.
    pub succeeded: usize,
    /// Of these from an earlier take.
    pub cached: usize,
    /// Final without.
    pub failed: usize,
    /// The rest was called off (`fail = "fast"`).
    pub called_off: bool,
    /// The rest waits until the first answer begins (`each.warm`).
    pub cold: bool,
    /// Merges by agents in levels, by the step that will be their root.
    pub trees: Vec<super::trees::Tree>,
}

/// A final node.
#[derive(Clone, Debug)]
pub(super) struct NodeFinal {
    pub state: EndState,
    /// The node whose failure or condition is the root of this end.
    pub cause: Option<NodeIx>,
    pub error: Option<String>,
    pub class: Option<FailureClass>,
}

/// A node of the run.
#[derive(Debug)]
pub(super) struct NodeRun {
    pub phase: NodePhase,
    /// Entries of `needs` and `after` that are not final.
    pub open_needs: usize,
}

/// Where a step stands.
#[derive(Debug, PartialEq)]
pub(super) enum StepPhase {
    /// Held back by `each.concurrency`.
    Held,
    /// In the queue of the gate.
    Queued,
    /// An attempt runs.
    Running,
    /// Waits for its next attempt, or for a later take.
    Backoff,
    /// Waits for a lock.
    Locking,
    /// Waits for a person's answer.
    Asking,
    /// Its iterations run: a group or a loop.
    Open,
    /// Final.
    Final(EndState),
}

impl StepPhase {
    /// How it ended, where it did.
    pub fn ended(&self) -> Option<EndState> {
        match self {
            Self::Final(state) => Some(*state),
            Self::Held
            | Self::Queued
            | Self::Running
            | Self::Backoff
            | Self::Locking
            | Self::Asking
            | Self::Open => None,
        }
    }
}

/// An item of a node.
#[derive(Clone, Debug)]
pub(super) struct Item {
    /// As in the address.
    pub key: ItemKey,
    /// As in the output.
    pub shown: Arc<str>,
    pub value: Data,
    /// From 1.
    pub index: usize,
}

/// Why this step exists.
#[derive(Clone, Debug)]
pub(super) enum StepRole {
    /// The node's own work (for one item).
    Work,
    /// A value that is known and has a file to be written.
    Value(Data),
    /// One window of a merge by agents: texts to merge.
    Window(Data),
}

/// A step of the run.
#[derive(Debug)]
pub(super) struct Step {
    pub frame: FrameIx,
    pub node: NodeIx,
    pub addr: StepAddr,
    pub item: Option<Item>,
    pub role: StepRole,
    pub phase: StepPhase,
    /// The last attempt, over all takes; 0 for none.
    pub attempt: u32,
    /// Attempts in this take.
    pub tries: u32,
    pub key: Option<Digest>,
    pub agent: Option<AgentId>,
    /// Spent in this take.
    pub usage: Usage,
    /// Spent in earlier takes, where a success of one stands for it.
    pub before: Usage,
    pub output: Option<Data>,
    pub file: Option<PathBuf>,
    pub error: Option<String>,
    pub class: Option<FailureClass>,
    pub denials: Vec<Denial>,
    /// The attempt of an earlier take that it goes on from.
    pub goes_on_from: Option<u32>,
    /// Why what its last attempt gave was refused: the next one is told.
    pub fault: Option<String>,
    /// Its items' siblings no longer need it.
    pub called_off: bool,
    /// The loop of which it is one iteration.
    pub iteration_of: Option<StepIx>,
    /// Where it owns iterations.
    pub owner: Option<Box<Owner>>,
    /// What its content rests on beside its texts and its needs.
    pub context: Option<Digest>,
    /// What it asks.
    pub question: Option<Box<Question>>,
    /// What was answered last.
    pub answer: Option<Answer>,
    /// Where its success was made: names folder and branch.
    pub made: Option<(StepAddr, u32)>,
    /// It holds the locks of its node.
    pub locked: bool,
    /// Where another agent started it.
    pub child: Option<Box<Child>>,
    /// The agents that it started, and how it waits for them.
    pub family: Option<Box<Family>>,
    /// What persons said to its agents in this take, and how often in earlier ones.
    pub said: Vec<String>,
}
