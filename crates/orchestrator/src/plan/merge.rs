//! Merges, with all their texts parsed.

use super::build::{Build, Visible};
use super::model::{Apply, GitMerge, MergeStrategy, MergeWork, NodeIx, OnConflict};
use crate::expr::{Expr, Root};
use crate::workflow::file::NodeFile;
use crate::workflow::problem::Code;

/// `window` of a merge by agents.
const DEFAULT_WINDOW: u64 = 64 * 1024;

impl<'a> Build<'a> {
    pub(super) fn merge(&mut self, node: &'a NodeFile, visible: &Visible<'_>) -> Option<MergeWork> {
        let keys = &node.keys;
        let git = keys.text("strategy") == Some("git");
        let mut from = Vec::new();
        let mut branches = Vec::new();
        for value in keys.list("from") {
            let spot = self.spot(node, "from", value);
            let Some(expr) = self.expr(&spot, value.text().unwrap_or_default(), visible) else { continue };
            if git {
                match self.branch(&expr, visible) {
                    Ok(target) => branches.extend(target.filter(|target| !branches.contains(target))),
                    Err((message, help)) => {
                        self.problems.push(spot.problem(Code::E142, message).with_help(help));
                    }
                }
            }
            from.push(expr);
        }
        let item = Visible { bound: &["item"], ..*visible };
        let items = Visible { bound: &["items"], ..*visible };
        let strategy = match keys.text("strategy")? {
            "concat" => MergeStrategy::Concat,
            "dedupe" => MergeStrategy::Dedupe {
                key: self.optional_template(node, keys, "key", &item)?,
                prefer: match keys.get("prefer") {
                    Some(_) => Some(self.optional_expr(node, keys, ("prefer", "prefer"), &item)?),
                    None => None,
                },
            },
            "agent" => MergeStrategy::Agent {
                agent: Box::new(self.agent_work(node, &items)?),
                window: usize::try_from(keys.size("window").unwrap_or(DEFAULT_WINDOW)).unwrap_or(usize::MAX),
            },
            "git" => MergeStrategy::Git(self.git(node, branches, visible)?),
            _ => MergeStrategy::List,
        };
        Some(MergeWork { from, strategy, write: self.optional_template(node, keys, "write", visible) })
    }

    fn git(&mut self, node: &'a NodeFile, nodes: Vec<NodeIx>, visible: &Visible<'_>) -> Option<GitMerge> {
        let keys = &node.keys;
        let verify = match keys.get("verify") {
            Some(value) => {
                let spot = self.spot(node, "verify", value);
                Some(self.argv(&spot, keys.list("verify"), visible)?)
            }
            None => None,
        };
        Some(GitMerge {
            nodes,
            apply: match keys.text("apply") {
                Some("squash") => Apply::Squash,
                Some("merge") => Apply::Merge,
                Some(_) | None => Apply::Patch,
            },
            verify,
            on_conflict: match keys.text("on_conflict") {
                Some("fail") => OnConflict::Fail,
                Some("gate") => OnConflict::Gate,
                Some(_) | None => OnConflict::Keep,
            },
        })
    }

    /// The node with a branch that an expression names, or what is wrong and what to do.
    fn branch(&self, expr: &Expr, visible: &Visible<'_>) -> Result<Option<NodeIx>, (String, String)> {
        let name = match expr.references() {
            [name] if name.root() == Root::Other && name.name() == expr.source().trim() => name.name(),
            _ => {
                let message = format!("`{}` is not the name of a node", expr.source());
                return Err((message, "git merges branches: name nodes with `isolation`".to_owned()));
            }
        };
        // A name that is not there was said already.
        let Some((target, _)) = self.find_node(name, visible) else { return Ok(None) };
        if self.forest.slot(target).node.keys.text("isolation") == Some("worktree") {
            return Ok(Some(target));
        }
        let message = format!("`{name}` works in no worktree, so there is no branch to merge");
        Err((message, format!("give `{name}` `isolation = \"worktree\"`")))
    }
}
