//! The accounts of a plan: the run's, one for each node with a budget, one for each nested file with its own.

use super::core::{Account, AccountIx, Accounts};
use crate::plan::model::{Budget, NodeIx, Plan, Work};

/// A budget that holds nothing.
const OPEN: Budget = Budget {
    usd: None,
    tokens: None,
    output_tokens: None,
    wall: None,
    turns: None,
    warn: 0.8,
    reserve: 0.05,
    tokens_only: false,
};

/// The accounts of a plan, and which of them each node's steps draw from.
pub(super) struct Tree {
    pub(super) accounts: Accounts,
    /// By node.
    pub(super) of_node: Vec<AccountIx>,
    /// Whether a node or one around it is final.
    pub(super) is_final: Vec<bool>,
    /// The run's ceiling in dollars is that of the flag.
    pub(super) usd_by_flag: bool,
}

/// `max_usd`: the ceiling of this take, where it is below that of the file.
pub(super) fn of_plan(plan: &Plan, max_usd: Option<f64>) -> Tree {
    let mut run = plan.budget.clone().unwrap_or(OPEN);
    let usd_by_flag = max_usd.is_some_and(|flag| run.usd.is_none_or(|file| flag < file));
    if usd_by_flag {
        run.usd = max_usd;
    }
    let any_final = plan.nodes.iter().any(|node| node.is_final);
    let mut accounts = vec![Account::new("budget".to_owned(), None, run, any_final)];
    let paths: Vec<(NodeIx, String)> = plan.paths().collect();
    let mut of_node = vec![AccountIx::RUN; plan.nodes.len()];
    let mut inside = vec![AccountIx::RUN; plan.nodes.len()];
    let mut is_final = vec![false; plan.nodes.len()];
    // A node stands before those of its body.
    for (at, node) in plan.nodes.iter().enumerate() {
        let around = node.parent.map_or(AccountIx::RUN, |parent| inside[parent.at()]);
        is_final[at] = node.is_final || node.parent.is_some_and(|parent| is_final[parent.at()]);
        let path = || paths.iter().find(|(ix, _)| ix.at() == at).map_or("?", |(_, path)| path.as_str());
        let mut open = |name: String, parent: AccountIx, budget: &Budget| {
            accounts.push(Account::new(name, Some(parent), budget.clone(), any_final));
            AccountIx(accounts.len() - 1)
        };
        let own = match &node.budget {
            Some(budget) => open(format!("node.{}.budget", path()), around, budget),
            None => around,
        };
        let nested = match &node.work {
            Work::Group(group) => group.nested.as_ref(),
            Work::Agent(_) | Work::Command(_) | Work::Set { .. } | Work::Merge(_) | Work::Gate(_) => None,
        };
        let file = nested.and_then(|nested| nested.budget.as_ref().map(|budget| (nested, budget)));
        inside[at] = match file {
            Some((nested, budget)) => open(format!("{}: budget", nested.file.display()), own, budget),
            None => own,
        };
        of_node[at] = own;
    }
    Tree { accounts: Accounts::new(accounts), of_node, is_final, usd_by_flag }
}
