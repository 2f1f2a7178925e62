//! The plan's types. A value of these cannot be wrong: names resolve, the graph has no cycle, templates parse.

use super::decl::InputDecl;
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
    /// All nodes: those of the file in its order, then the bodies of its groups and nested files, each in its order
    /// and in one piece.
    pub nodes: Vec<Node>,
    /// The nodes of the file itself: the first ones of `nodes`.
    pub top: Body,
    /// Checked values by id.
    pub inputs: IndexMap<String, InputValue>,
    /// The one node of a session's plan: its conversation, which is no step.
    pub host: Option<NodeIx>,
    /// Ceilings.
    pub limits: Limits,
    /// `budget` of the run.
    pub budget: Option<Budget>,
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

impl Limits {
    /// What holds where nobody says otherwise.
    pub fn standard(commands: usize) -> Self {
        Self { concurrency: 16, commands, agents: 200, depth: 2, providers: IndexMap::new() }
    }
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

/// The nodes of one graph: neighbours in `Plan::nodes`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// The first one's place.
    pub first: u32,
    /// How many.
    pub count: u32,
}

impl Body {
    /// Its nodes.
    pub fn nodes(self) -> impl ExactSizeIterator<Item = NodeIx> + Clone {
        (self.first..self.first + self.count).map(NodeIx)
    }
}

/// `budget`: ceilings of a run or a node. What is not given is not held.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// Dollars.
    pub usd: Option<f64>,
    /// Input (cached or not) and output together.
    pub tokens: Option<u64>,
    /// Output alone.
    pub output_tokens: Option<u64>,
    /// Time in which a step runs or waits for a provider.
    pub wall: Option<Duration>,
    /// Requests.
    pub turns: Option<u64>,
    /// A word is said at this part of a ceiling, 0 to 1.
    pub warn: f64,
    /// This part is kept for `final` nodes where there are any, 0 to 1.
    pub reserve: f64,
    /// A model without a known price counts its tokens only; without it such a model is E131 under `usd`.
    pub tokens_only: bool,
}

/// `loop`.
#[derive(Debug)]
pub struct Loop {
    /// Iterations at most.
    pub max: u32,
    /// Over this iteration: true ends it.
    pub until: Option<Expr>,
    /// Names and values for the next iteration, in the order of the file.
    pub carry: Vec<(String, Expr)>,
    /// So many iterations with equal carried values end it as `max` does.
    pub stall: Option<u32>,
    /// What `max` does.
    pub on_exhausted: OnExhausted,
}

/// `loop.on_exhausted`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnExhausted {
    /// The node fails.
    Fail,
    /// The last iteration is its output.
    Continue,
}

/// `isolation` and `base`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// In the workspace; in a body, in the folder of the group.
    None,
    /// A folder and a branch of its own.
    Worktree(Base),
}

/// `base`: what a worktree starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// The commit that the workspace stands on.
    ParentHead,
    /// That, and what is changed there and not committed.
    ParentDirty,
}

/// One node.
#[derive(Debug)]
pub struct Node {
    /// Its name.
    pub id: NodeId,
    /// The group or nested file in whose body it stands.
    pub parent: Option<NodeIx>,
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
    /// Again until; with `each`, inside each item.
    pub repeat: Option<Loop>,
    /// Attempts after a failure.
    pub retry: Retry,
    /// Of each attempt; of a gate, the wait for an answer. Not of groups, see [`GroupWork::timeout`].
    pub timeout: Duration,
    /// Of each attempt, agents only.
    pub idle_timeout: Duration,
    /// What a failure does.
    pub on_error: OnError,
    /// A step in doubt after a crash.
    pub on_crash: OnCrash,
    /// Its failure makes the run partial.
    pub optional: bool,
    /// Runs even after a budget or a failure stopped the rest.
    pub is_final: bool,
    /// Ceilings of the node, over all its items, iterations and attempts.
    pub budget: Option<Budget>,
    /// Names of mutexes, sorted, each once.
    pub locks: Vec<String>,
    /// The folder it works in.
    pub isolation: Isolation,
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
    /// A graph inside the node: a body, or a nested file.
    Group(Box<GroupWork>),
    /// A question to a person.
    Gate(GateWork),
}

/// Keys of a group or of a nested file.
#[derive(Debug)]
pub struct GroupWork {
    /// Its nodes.
    pub body: Body,
    /// Its output, over the body. `None`: of a group an object of the body's outputs, of a nested file the outputs of
    /// its terminal nodes.
    pub result: Option<Expr>,
    /// Of one item, all iterations together. `None`: what its body takes.
    pub timeout: Option<Duration>,
    /// Where it is a nested file.
    pub nested: Option<NestedFile>,
}

/// A nested file: what holds inside it alone.
#[derive(Debug)]
pub struct NestedFile {
    /// As found from the calling file.
    pub file: PathBuf,
    /// Its `workflow.name`.
    pub name: String,
    /// Values for its inputs, over what the calling node sees.
    pub with: Vec<(String, Expr)>,
    /// What it declares.
    pub inputs: IndexMap<String, InputDecl>,
    /// One more level: the smaller holds.
    pub limits: Limits,
    /// One more level.
    pub budget: Option<Budget>,
}

/// Keys of a gate.
#[derive(Debug)]
pub struct GateWork {
    /// The question.
    pub message: Template,
    /// Shown with it.
    pub show: Vec<Expr>,
    /// The answers, at least one, each once.
    pub choices: Vec<String>,
    /// The answer where nobody can be asked; one of the choices.
    pub default: Option<String>,
    /// What the end of `timeout` does.
    pub on_timeout: OnTimeout,
}

/// `on_timeout` of a gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnTimeout {
    /// The run pauses.
    Pause,
    /// This choice is taken.
    Choose(String),
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
    /// Whether it may start children.
    pub spawn: bool,
    /// The agents that its children may be; empty where it starts none.
    pub startable: Vec<Arc<AgentDefinition>>,
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
    /// Branches of isolated steps become one change of the workspace.
    Git(GitMerge),
}

/// Keys of a merge of branches.
#[derive(Debug)]
pub struct GitMerge {
    /// Nodes with an isolation, in the order of `from`: their successful steps in the order of their inputs.
    pub nodes: Vec<NodeIx>,
    /// How the work lands.
    pub apply: Apply,
    /// Must succeed in the merged tree, or the branch is taken back.
    pub verify: Option<Vec<Template>>,
    /// What a conflict does.
    pub on_conflict: OnConflict,
}

/// `apply`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apply {
    /// Left uncommitted.
    Patch,
    /// One commit.
    Squash,
    /// A merge commit for each branch.
    Merge,
}

/// `on_conflict`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    /// Its branch keeps the work, the merge goes on.
    Keep,
    /// The merge fails.
    Fail,
    /// A person chooses: keep, retry, stop.
    Gate,
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
    /// Whether the rest waits until the first answer begins; `None`: where the model's prices make it worth it.
    pub warm: Option<bool>,
}

/// Source of items.
#[derive(Debug)]
pub enum EachSource {
    /// Known when planned: key and value, keys distinct.
    Static(Vec<(ItemKey, Value)>),
    /// A list in the file whose keys name inputs that are known when the file is called.
    Listed(Vec<Value>),
    /// A list out of an expression.
    Items(Expr),
    /// Files by pattern.
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
