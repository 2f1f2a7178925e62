//! One node out of its keys.

use super::build::{Build, Stand, Visible};
use super::from_source::budget;
use super::key::static_key;
use super::model::{
    Artifact, Base, Isolation, Join, MergeShow, Node, NodeIx, OnCrash, OnError, OutputSpec, Retry,
};
use crate::workflow::file::{NodeFile, Section, Val};
use crate::workflow::keys::NodeKind;
use claw_agents::outcome::FailureClass;
use std::time::Duration;

impl<'a> Build<'a> {
    /// `None` where a problem was said.
    pub(super) fn node(&mut self, ix: NodeIx, output: OutputSpec) -> Option<Node> {
        let forest = self.forest;
        let node = forest.slot(ix).node;
        let keys = &node.keys;
        self.enter(forest.slot(ix).file);
        let outside = Visible::from(Stand::At(ix));
        let when = self.optional_expr(node, keys, ("when", "when"), &outside);
        let each = self.each(node, &outside);
        let with_item = Visible { item: forest.bind(ix), ..outside };
        let inside = Visible { own_loop: keys.get("loop").map(|_| ix), ..with_item };
        let repeat = self.repeat(ix, node, &inside);
        let work = self.work(ix, &inside);
        // What owns a body has one label for all its iterations.
        let of_step = match node.kind {
            NodeKind::Group | NodeKind::Workflow => with_item,
            NodeKind::Agent | NodeKind::Command | NodeKind::Gate | NodeKind::Merge | NodeKind::Set => inside,
        };
        let label = self.optional_template(node, keys, "label", &of_step);
        let artifacts = self.artifacts(node, &of_step);
        let work = work?;
        let each = each.map(|each| self.warmed(each, &work));
        let graph = forest.graph_of(ix);
        let static_key = static_key(&work, &output, self.folder_of(ix));
        Some(Node {
            id: node.id.clone(),
            parent: graph.parent,
            needs: graph.needs(ix).to_vec(),
            after: graph.after(ix).to_vec(),
            merge: merge_show(keys, graph.parent.is_none() && graph.dependents(ix).is_empty()),
            dependents: graph.dependents(ix).to_vec(),
            when,
            join: join(keys),
            each,
            repeat,
            retry: retry(node.kind, keys.section("retry")),
            timeout: keys.duration("timeout").unwrap_or(match node.kind {
                NodeKind::Gate => GATE_TIMEOUT,
                _ => TIMEOUT,
            }),
            idle_timeout: keys.duration("idle_timeout").unwrap_or(IDLE),
            on_error: on_error(keys),
            on_crash: on_crash(keys),
            optional: keys.flag("optional").unwrap_or(false),
            is_final: keys.flag("final").unwrap_or(false),
            budget: keys.section("budget").map(budget),
            locks: locks(keys),
            isolation: isolation(keys),
            output,
            artifacts,
            priority: keys.int("priority").unwrap_or(0),
            critical_path: forest.critical_path[ix.at()],
            phase: keys.text("phase").map(str::to_owned),
            label,
            tags: keys.texts("tags"),
            work,
            static_key,
        })
    }

    /// The worktree that a step works in: its own, or that of a group round it.
    fn folder_of(&self, ix: NodeIx) -> Isolation {
        let forest = self.forest;
        let round = std::iter::successors(Some(ix), |ix| forest.graph_of(*ix).parent);
        round
            .map(|ix| isolation(&forest.slot(ix).node.keys))
            .find(|isolation| *isolation != Isolation::None)
            .unwrap_or(Isolation::None)
    }

    fn artifacts(&mut self, node: &'a NodeFile, visible: &Visible<'_>) -> Vec<Artifact> {
        let mut out = Vec::new();
        for artifact in node.keys.list("artifacts").iter().filter_map(Val::section) {
            if let Some(path) = self.optional_template(node, artifact, "path", visible) {
                out.push(Artifact {
                    path,
                    required: artifact.flag("required").unwrap_or(false),
                    max_size: artifact.size("max_size"),
                });
            }
        }
        out
    }
}

/// Of each attempt.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30 * 60);
/// Without a byte of the provider and without a tool that runs.
pub(super) const IDLE: Duration = Duration::from_secs(5 * 60);
/// Of the wait for an answer.
const GATE_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

fn join(keys: &Section) -> Join {
    match keys.text("join") {
        Some("all_done") => Join::AllDone,
        Some("none_failed") => Join::NoneFailed,
        Some(_) | None => Join::AllSucceeded,
    }
}

fn on_error(keys: &Section) -> OnError {
    match keys.text("on_error") {
        Some("continue") => OnError::Continue,
        Some(_) | None => OnError::Fail,
    }
}

fn on_crash(keys: &Section) -> OnCrash {
    match keys.text("on_crash") {
        Some("retry") => OnCrash::Retry,
        Some("skip") => OnCrash::Skip,
        Some(_) | None => OnCrash::Ask,
    }
}

fn isolation(keys: &Section) -> Isolation {
    match (keys.text("isolation"), keys.text("base")) {
        (Some("worktree"), Some("parent_dirty")) => Isolation::Worktree(Base::ParentDirty),
        (Some("worktree"), _) => Isolation::Worktree(Base::ParentHead),
        _ => Isolation::None,
    }
}

fn locks(keys: &Section) -> Vec<String> {
    let mut locks = keys.texts("lock");
    locks.sort_unstable();
    locks.dedup();
    locks
}

fn merge_show(keys: &Section, terminal: bool) -> MergeShow {
    match keys.text("merge") {
        Some("none") => MergeShow::None,
        Some("full") => MergeShow::Full,
        Some(_) => MergeShow::Digest,
        None if terminal => MergeShow::Digest,
        None => MergeShow::None,
    }
}

pub(super) fn retry(kind: NodeKind, keys: Option<&Section>) -> Retry {
    let none = Section::default();
    let keys = keys.unwrap_or(&none);
    let on = match (keys.get("on"), kind) {
        (Some(_), _) => keys.texts("on").iter().filter_map(|word| class(word)).collect(),
        // Groups and gates are never tried again: their `attempts` are 1 as well.
        (None, NodeKind::Command | NodeKind::Group | NodeKind::Workflow | NodeKind::Gate) => Vec::new(),
        (None, _) => vec![
            FailureClass::Transient,
            FailureClass::Overloaded,
            FailureClass::RateLimit,
            FailureClass::Timeout,
        ],
    };
    Retry {
        attempts: keys.int("attempts").and_then(|n| u32::try_from(n).ok()).unwrap_or(match kind {
            NodeKind::Group | NodeKind::Workflow | NodeKind::Gate => 1,
            NodeKind::Agent | NodeKind::Command | NodeKind::Merge | NodeKind::Set => 3,
        }),
        on,
        backoff: keys.duration("backoff").unwrap_or(Duration::from_secs(2)),
        factor: keys.get("factor").and_then(Val::float).unwrap_or(2.0),
        max: keys.duration("max").unwrap_or(Duration::from_secs(60)),
        jitter: keys.flag("jitter").unwrap_or(true),
    }
}

/// The classes that may be tried again; the reader has refused all other words.
fn class(word: &str) -> Option<FailureClass> {
    Some(match word {
        "transient" => FailureClass::Transient,
        "rate_limit" => FailureClass::RateLimit,
        "overloaded" => FailureClass::Overloaded,
        "timeout" => FailureClass::Timeout,
        "schema" => FailureClass::Schema,
        "tool" => FailureClass::Tool,
        "exit" => FailureClass::Exit,
        "artifact" => FailureClass::Artifact,
        "conflict" => FailureClass::Conflict,
        "panic" => FailureClass::Panic,
        "expr" => FailureClass::Expr,
        _ => return None,
    })
}
