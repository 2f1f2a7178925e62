//! What earlier takes spent, out of the journal's history: attempts that failed or were killed are counted.

use super::accounts::Tree;
use super::core::{AccountIx, Amount};
use crate::addr::StepAddr;
use crate::journal::history::History;
use crate::plan::model::{NodeIx, Plan};
use std::collections::HashMap;
use std::time::Duration;

/// Puts the sums of earlier takes into the accounts of today's plan.
pub(super) fn recall(tree: &mut Tree, plan: &Plan, history: &History) {
    let mut account_of: HashMap<&StepAddr, AccountIx> = HashMap::new();
    for (addr, step) in history.steps() {
        let account = node_of(plan, addr).map_or(AccountIx::RUN, |ix| tree.of_node[ix.at()]);
        account_of.insert(addr, account);
        for attempt in &step.attempts {
            if let Some(usage) = attempt.cost() {
                tree.accounts.recall(account, Amount::of(&usage, u64::from(attempt.turns)));
            }
        }
    }
    let accounts: Vec<AccountIx> = (0..tree.accounts.len()).map(AccountIx).collect();
    for ix in accounts {
        let draws =
            |addr: &StepAddr| account_of.get(addr).is_some_and(|from| tree.accounts.draws_from(*from, ix));
        let wall: Duration = history.worked(&draws);
        tree.accounts.recall_wall(ix, wall);
    }
    tree.accounts.recalled();
}

/// The node of a step, or of the nearest step above it that a node stands for (parts of a merge, children).
fn node_of(plan: &Plan, addr: &StepAddr) -> Option<NodeIx> {
    let nodes: Vec<&str> = addr.nodes().collect();
    (1..=nodes.len()).rev().find_map(|length| plan.at_path(nodes[..length].iter().copied()))
}
