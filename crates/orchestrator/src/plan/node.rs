//! One node out of its keys.

use super::build::{Build, Visible};
use super::key::static_key;
use super::model::{Artifact, Isolation, Join, MergeShow, Node, NodeIx, OnCrash, OnError, OutputSpec, Retry};
use crate::workflow::file::{NodeFile, Section, Val};
use crate::workflow::keys::NodeKind;
use claw_agents::outcome::FailureClass;
use std::time::Duration;

impl<'a> Build<'a> {
    /// `None` where a problem was said.
    pub(super) fn node(
        &mut self,
        ix: NodeIx,
        node: &'a NodeFile,
        keys: &'a Section,
        output: OutputSpec,
    ) -> Option<Node> {
        let id = node.id.as_str();
        let outside = Visible { node: Some(ix), ..Visible::default() };
        let when = match keys.get("when") {
            Some(value) => {
                let spot = self.spot(id, "when", value);
                self.expr(&spot, value.text()?, &outside)
            }
            None => None,
        };
        let each = self.each(node, keys, &outside);
        let bind = keys.section("each").map(|each| each.text("as").unwrap_or("item"));
        let visible = Visible { item: bind, ..outside };
        let work = self.work(node, keys, &visible);
        let label = self.optional_template(id, keys, "label", &visible);
        let artifacts = self.artifacts(node, keys, &visible);
        let graph = self.graph;
        let dependents = graph.dependents[ix.at()].clone();
        let (work, each) = (work?, each);
        let static_key = static_key(&work, &output);
        Some(Node {
            id: node.id.clone(),
            parent: None,
            needs: graph.needs[ix.at()].clone(),
            after: graph.after[ix.at()].clone(),
            merge: merge_show(keys, dependents.is_empty()),
            dependents,
            when,
            join: match keys.text("join") {
                Some("all_done") => Join::AllDone,
                Some("none_failed") => Join::NoneFailed,
                Some(_) | None => Join::AllSucceeded,
            },
            each,
            repeat: None,
            retry: retry(node.kind, keys.section("retry")),
            timeout: keys.duration("timeout").unwrap_or(Duration::from_secs(30 * 60)),
            idle_timeout: keys.duration("idle_timeout").unwrap_or(Duration::from_secs(5 * 60)),
            on_error: if keys.text("on_error") == Some("continue") {
                OnError::Continue
            } else {
                OnError::Fail
            },
            on_crash: match keys.text("on_crash") {
                Some("retry") => OnCrash::Retry,
                Some("skip") => OnCrash::Skip,
                Some(_) | None => OnCrash::Ask,
            },
            optional: keys.flag("optional").unwrap_or(false),
            is_final: false,
            budget: None,
            locks: Vec::new(),
            isolation: Isolation::None,
            output,
            artifacts,
            priority: keys.int("priority").unwrap_or(0),
            critical_path: graph.critical_path[ix.at()],
            phase: keys.text("phase").map(str::to_owned),
            label,
            tags: keys.texts("tags"),
            work,
            static_key,
        })
    }

    fn artifacts(&mut self, node: &'a NodeFile, keys: &'a Section, visible: &Visible<'_>) -> Vec<Artifact> {
        let mut out = Vec::new();
        for artifact in keys.list("artifacts").iter().filter_map(Val::section) {
            if let Some(path) = self.optional_template(node.id.as_str(), artifact, "path", visible) {
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

fn merge_show(keys: &Section, terminal: bool) -> MergeShow {
    match keys.text("merge") {
        Some("none") => MergeShow::None,
        Some("full") => MergeShow::Full,
        Some(_) => MergeShow::Digest,
        None if terminal => MergeShow::Digest,
        None => MergeShow::None,
    }
}

fn retry(kind: NodeKind, keys: Option<&Section>) -> Retry {
    let none = Section::default();
    let keys = keys.unwrap_or(&none);
    let on = match (keys.get("on"), kind) {
        (Some(_), _) => keys.texts("on").iter().filter_map(|word| class(word)).collect(),
        (None, NodeKind::Command) => Vec::new(),
        (None, _) => vec![
            FailureClass::Transient,
            FailureClass::Overloaded,
            FailureClass::RateLimit,
            FailureClass::Timeout,
        ],
    };
    Retry {
        attempts: keys.int("attempts").and_then(|n| u32::try_from(n).ok()).unwrap_or(3),
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
