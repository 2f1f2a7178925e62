//! The plan's types. A value of these cannot be wrong: names resolve, the graph has no cycle, templates parse.

use crate::addr::{ItemKey, NodeId};
use crate::expr::{Expr, Template};
use claw_agents::definition::AgentDefinition;
use claw_agents::outcome::FailureClass;
use claw_agents::permission::Permission;
use claw_kernel::digest::Digest;
use claw_providers::request::Effort;
use indexmap::IndexMap;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Place of a node in `Plan::nodes`: the order of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeIx(pub u32);

impl NodeIx {
    /// As an index.
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// A whole checked workflow.
#[derive(Debug)]
pub struct Plan {
    /// `workflow.name`.
    pub name: String,
    /// `workflow.description`.
    pub description: String,
    /// `workflow.result`; `None` = outputs of the terminal nodes.
    pub result: Option<Expr>,
    /// In the order of the file.
    pub nodes: Vec<Node>,
    /// Checked values by id.
    pub inputs: IndexMap<String, InputValue>,
    /// Ceilings.
    pub limits: Limits,
    /// How the run reports to a parent session.
    pub merge: MergeReport,
    /// What is worth a word (W…): shown once.
    pub warnings: Vec<crate::workflow::problem::Problem>,
    /// The file as named by the user.
    pub file: PathBuf,
    /// Its text as it was read.
    pub source: Arc<str>,
}

/// A value given for an input.
#[derive(Clone, Debug)]
pub struct InputValue {
    /// Checked against the input's type.
    pub value: Value,
    /// Never in prompts, manifests, logs.
    pub secret: bool,
    /// Type `text` or `json`: fenced where a prompt shows it.
    pub fenced: bool,
}

/// `limits`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Agents at once.
    pub concurrency: usize,
    /// Commands at once.
    pub commands: usize,
    /// Agents in all, retries counted.
    pub agents: usize,
    /// Children of children.
    pub depth: u32,
    /// Requests in flight by provider.
    pub providers: IndexMap<String, usize>,
}

/// `merge` of the top level: how a run reports to a parent session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeReport {
    /// Of the whole message.
    pub max_tokens: usize,
    /// Of one node.
    pub per_node_tokens: usize,
}

/// `merge` of a node: what the parent session is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeShow {
    /// Nothing.
    None,
    /// The beginning of its output.
    Digest,
    /// All of it, as far as the message's bound allows.
    Full,
}

/// One node.
#[derive(Debug)]
pub struct Node {
    /// Its name.
    pub id: NodeId,
    /// Order and data.
    pub needs: Vec<NodeIx>,
    /// Order only.
    pub after: Vec<NodeIx>,
    /// Who waits for it (through `needs` or `after`).
    pub dependents: Vec<NodeIx>,
    /// `None` = true.
    pub when: Option<Expr>,
    /// Judged over `needs` when all are final.
    pub join: Join,
    /// Fan-out.
    pub each: Option<Each>,
    /// Repeats.
    pub retry: Retry,
    /// Of each attempt.
    pub timeout: Duration,
    /// Of each attempt, agents only.
    pub idle_timeout: Duration,
    /// What a failure does.
    pub on_error: OnError,
    /// A step in doubt after a crash.
    pub on_crash: OnCrash,
    /// Its failure makes the run partial.
    pub optional: bool,
    /// What it gives.
    pub output: OutputSpec,
    /// Files it leaves.
    pub artifacts: Vec<Artifact>,
    /// Higher starts first.
    pub priority: i64,
    /// Nodes on the longest way from here to an end, itself included: longer starts first.
    pub critical_path: u32,
    /// A word for bars.
    pub phase: Option<String>,
    /// Shown instead of the address.
    pub label: Option<Template>,
    /// For people.
    pub tags: Vec<String>,
    /// What a parent session is told of it.
    pub merge: MergeShow,
    /// Its work.
    pub work: Work,
    /// Digest of the static part of its content key (all that stands in the file or the agent definition).
    pub static_key: Digest,
}

/// What a node does.
#[derive(Debug)]
pub enum Work {
    /// One agent (for each item).
    Agent(AgentWork),
    /// One command (for each item).
    Command(CommandWork),
    /// An expression.
    Set {
        /// Its value.
        value: Expr,
    },
    /// Several outputs become one.
    Merge(MergeWork),
}

/// Keys of an agent, of a node or of a merge.
#[derive(Debug)]
pub struct AgentWork {
    /// Resolved.
    pub definition: Arc<AgentDefinition>,
    /// Fenced as the language says.
    pub prompt: Template,
    /// Fenced likewise.
    pub system_append: Option<Template>,
    /// As the file and the definition say; empty = default.
    pub models: Vec<String>,
    /// How hard.
    pub effort: Option<Effort>,
    /// Narrows.
    pub tools: Option<Vec<String>>,
    /// Takes away.
    pub deny_tools: Vec<String>,
    /// Narrows.
    pub permission: Option<Permission>,
    /// Turns.
    pub max_turns: u32,
    /// Files whose text is put behind the prompt.
    pub attach: Vec<Template>,
}

/// Keys of a command.
#[derive(Debug)]
pub struct CommandWork {
    /// What runs.
    pub run: CommandLine,
    /// Relative to the workspace.
    pub cwd: Option<Template>,
    /// In order.
    pub env: IndexMap<String, Template>,
    /// Given to its standard input.
    pub stdin: Option<Template>,
    /// Codes that count as success.
    pub ok_exit: Vec<i32>,
    /// How stdout becomes the output.
    pub parse: CommandOutput,
    /// What it may do.
    pub permission: Option<Permission>,
}

/// A program with arguments, or a fixed text for the shell.
#[derive(Debug)]
pub enum CommandLine {
    /// Never through a shell.
    Argv(Vec<Template>),
    /// Never rendered.
    Shell(String),
}

/// How the standard output of a command is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandOutput {
    /// As it is, without the last line end.
    Text,
    /// One JSON document.
    Json,
    /// A list of lines.
    Lines,
    /// A list of texts ended by NUL.
    Lines0,
    /// A list of JSON documents, one a line.
    Jsonl,
}

/// Keys of a merge.
#[derive(Debug)]
pub struct MergeWork {
    /// Inputs; one that gives a list is spread.
    pub from: Vec<Expr>,
    /// How they become one.
    pub strategy: MergeStrategy,
    /// Written to this path as well.
    pub write: Option<Template>,
}

/// How inputs become one.
#[derive(Debug)]
pub enum MergeStrategy {
    /// A list.
    List,
    /// Texts joined by a blank line.
    Concat,
    /// A list without doubles.
    Dedupe {
        /// Over `item`.
        key: Template,
        /// Over `item`: the largest stays, of equal ones the first.
        prefer: Option<Expr>,
    },
    /// A model merges, in a tree where the input is larger than the window.
    Agent {
        /// The agent; its prompt sees the inputs as `items`.
        agent: Box<AgentWork>,
        /// Bytes of input for one agent.
        window: usize,
    },
}

/// `join`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Join {
    /// All succeeded (or cached).
    AllSucceeded,
    /// All final.
    AllDone,
    /// None failed.
    NoneFailed,
}

/// `on_error`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// Dependents are skipped.
    Fail,
    /// Output null, satisfies every join.
    Continue,
}

/// `on_crash`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCrash {
    /// A person decides.
    Ask,
    /// Run again.
    Retry,
    /// Take it as skipped.
    Skip,
}

/// `retry`.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// In all, at least 1.
    pub attempts: u32,
    /// Which classes.
    pub on: Vec<FailureClass>,
    /// First wait.
    pub backoff: Duration,
    /// Each further wait is so many times longer.
    pub factor: f64,
    /// Longest wait.
    pub max: Duration,
    /// Spread over zero to the wait.
    pub jitter: bool,
}

/// `each`.
#[derive(Debug)]
pub struct Each {
    /// Where items come from.
    pub source: EachSource,
    /// The name of an item in expressions.
    pub bind: String,
    /// `None` = a digest of the item.
    pub key: Option<Template>,
    /// More items than that fail the node.
    pub max: Option<usize>,
    /// Items at once; `None` = the run's limit.
    pub concurrency: Option<usize>,
    /// `None` = all.
    pub min_success: Option<usize>,
    /// What a failed item does.
    pub fail: EachFail,
}

/// Source of items.
#[derive(Debug)]
pub enum EachSource {
    /// Known when planned: key and value, keys distinct.
    Static(Vec<(ItemKey, Value)>),
    /// A list out of an expression.
    Items(Expr),
    /// A list in the file whose keys need a run to be known (never with duplicates).
    Glob {
        /// Patterns.
        include: Vec<Template>,
        /// Left out.
        exclude: Vec<Template>,
    },
    /// The lines of a file.
    Lines(Template),
    /// The JSON documents of a file, one a line.
    Jsonl(Template),
}

/// `each.fail`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EachFail {
    /// The rest goes on.
    Collect,
    /// The rest is cancelled as soon as `min_success` cannot be reached.
    Fast,
}

/// `output`.
#[derive(Clone, Debug)]
pub enum OutputSpec {
    /// The final text.
    Text,
    /// The final text is JSON.
    Json,
    /// A structured answer.
    Schema(Arc<Value>),
}

/// `artifacts`.
#[derive(Debug)]
pub struct Artifact {
    /// Relative to the workspace.
    pub path: Template,
    /// Missing fails the node.
    pub required: bool,
    /// Bytes.
    pub max_size: Option<u64>,
}
