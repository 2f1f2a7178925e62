//! Partial runs: which steps run again in this take, whatever the journal says of them. Pure.
//!
//! Owns `--from`, `--only` and `--rerun failed`. Must not know how a step's past is loaded.

use super::error::NoSuchStep;
use crate::addr::{AddrPart, ItemKey, NodeId, StepAddr};
use crate::journal::history::{History, StepHistory};
use crate::journal::record::EndState;
use crate::plan::model::{EachSource, Node, NodeIx, Plan, Work};
use claw_kernel::near::nearest;
use std::collections::BTreeSet;

/// Names that a note lists.
const LISTED: usize = 12;

/// What a take is to run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Again {
    /// This step and all that depends on it: an address or the path of a node.
    From(String),
    /// This step and nothing else.
    Only(String),
    /// What did not succeed, and all that depends on it.
    Failed,
}

/// A part of a pattern.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Node { node: NodeId, item: Option<ItemKey>, iteration: Iteration },
    Child(u32),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Iteration {
    Any,
    At(u32),
    /// All later ones: what they were given came out of it.
    After(u32),
}

/// Steps: those at these parts, and unless it is `whole` those below.
#[derive(Clone, Debug, PartialEq)]
struct Pattern {
    parts: Vec<Part>,
    whole: bool,
}

/// The steps that this take was asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    /// As asked for.
    named: Vec<Pattern>,
    /// Made from what those give.
    follow: Vec<Pattern>,
    /// The groups round them.
    round: Vec<Pattern>,
    only: bool,
    /// Named steps begin anew: nothing of an earlier attempt is gone on from.
    anew: bool,
    notes: Vec<String>,
}

impl Selection {
    /// Finds the steps.
    ///
    /// # Errors
    /// The name names nothing.
    pub fn new(again: Option<&Again>, plan: &Plan, history: &History) -> Result<Self, NoSuchStep> {
        let Some(again) = again else { return Ok(Self::default()) };
        let targets = match again {
            Again::From(step) | Again::Only(step) => vec![find(step, plan, history)?],
            Again::Failed => failed(plan, history),
        };
        let follow = targets.iter().flat_map(|target| followers(target, plan)).collect();
        let round = targets.iter().flat_map(groups_round).collect();
        let named = targets.iter().map(|target| Pattern::of(target, false)).collect();
        let only = matches!(again, Again::Only(_));
        let mut selection =
            Self { named, follow, round, only, anew: *again != Again::Failed, notes: Vec::new() };
        selection.notes = selection.tell(again, &targets, history);
        Ok(selection)
    }

    /// What will run and what is kept.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Whether nothing but what was named may run.
    pub fn is_only(&self) -> bool {
        self.only
    }

    /// Whether the step itself was named.
    pub fn names(&self, addr: &StepAddr) -> bool {
        self.named.iter().any(|pattern| pattern.fits(addr))
    }

    /// Whether the step begins anew: also where an effect of it is in doubt, which is a person's word on it.
    pub fn begins_anew(&self, addr: &StepAddr) -> bool {
        self.anew && self.names(addr)
    }

    /// Whether it is a group with a named step in it: it is not taken over as a whole.
    pub fn is_round(&self, addr: &StepAddr) -> bool {
        self.round.iter().any(|pattern| pattern.fits(addr))
    }

    /// Whether no earlier success may stand for it.
    pub fn runs_again(&self, addr: &StepAddr) -> bool {
        self.names(addr)
            || self.is_round(addr)
            || (!self.only && self.follow.iter().any(|pattern| pattern.fits(addr)))
    }

    fn tell(&self, again: &Again, targets: &[StepAddr], history: &History) -> Vec<String> {
        let is_step = |step: &&StepAddr| history.step(step).is_some_and(|known| known.success.is_some());
        let done: Vec<&StepAddr> = history.steps().map(|(step, _)| step).filter(is_step).collect();
        let (stale, kept): (Vec<_>, Vec<_>) = done
            .into_iter()
            .filter(|step| !self.names(step))
            .partition(|step| self.follow.iter().any(|pattern| pattern.fits(step)));
        let named = listed(targets);
        let mut notes = Vec::new();
        match again {
            Again::Failed if targets.is_empty() => {
                notes.push("nothing failed in the last take: what is new or changed runs".to_owned());
            }
            Again::From(_) | Again::Failed => {
                notes.push(format!("runs again: {named}"));
                if !stale.is_empty() {
                    notes.push(format!("runs again because it depends on that: {}", listed(stale)));
                }
                if !kept.is_empty() {
                    notes.push(format!("kept where nothing changed: {}", listed(kept)));
                }
            }
            Again::Only(_) => {
                notes.push(format!("only {named} runs; every other step stays as it is"));
                if !stale.is_empty() {
                    let stale = listed(stale);
                    notes.push(format!("stale from now on, made from an earlier {named}: {stale}"));
                }
            }
        }
        notes
    }
}

fn listed<T: ToString>(steps: impl IntoIterator<Item = T>) -> String {
    let all: Vec<String> = steps.into_iter().map(|step| step.to_string()).collect();
    let mut text = all.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    if all.len() > LISTED {
        text.push_str(&format!(" and {} more", all.len() - LISTED));
    }
    text
}

impl Pattern {
    fn of(addr: &StepAddr, whole: bool) -> Self {
        Self { parts: parts(addr.parts()), whole }
    }

    fn fits(&self, addr: &StepAddr) -> bool {
        let theirs = addr.parts();
        let long_enough =
            if self.whole { theirs.len() == self.parts.len() } else { theirs.len() >= self.parts.len() };
        long_enough && self.parts.iter().zip(theirs).all(|(part, other)| part.fits(other))
    }
}

impl Part {
    fn fits(&self, other: &AddrPart) -> bool {
        match (self, other) {
            (Self::Child(k), AddrPart::Child(other)) => k == other,
            (
                Self::Node { node, item, iteration },
                AddrPart::Node { node: name, item: key, iteration: n },
            ) => {
                let item_fits = item.is_none() || item == key;
                let iteration_fits = match iteration {
                    Iteration::Any => true,
                    Iteration::At(at) => *n == Some(*at),
                    Iteration::After(at) => n.is_some_and(|n| n > *at),
                };
                node == name && item_fits && iteration_fits
            }
            (Self::Child(_), AddrPart::Node { .. }) | (Self::Node { .. }, AddrPart::Child(_)) => false,
        }
    }
}

fn parts(addr: &[AddrPart]) -> Vec<Part> {
    addr.iter()
        .map(|part| match part {
            AddrPart::Child(k) => Part::Child(*k),
            AddrPart::Node { node, item, iteration } => Part::Node {
                node: node.clone(),
                item: item.clone(),
                iteration: iteration.map_or(Iteration::Any, Iteration::At),
            },
        })
        .collect()
}

/// What is made from the outputs of a step: in its body, its later iterations, and so on outwards.
fn followers(target: &StepAddr, plan: &Plan) -> Vec<Pattern> {
    let mut patterns = Vec::new();
    let (mut at, own) = (target.parts().len(), target.parts());
    while at > 0 {
        at -= 1;
        let AddrPart::Node { node, item, iteration } = &own[at] else { continue };
        let frame = parts(&own[..at]);
        let with =
            |part: Part| Pattern { parts: frame.iter().cloned().chain([part]).collect(), whole: false };
        if let Some(n) = iteration {
            let part = Part::Node { node: node.clone(), item: item.clone(), iteration: Iteration::After(*n) };
            patterns.push(with(part));
        }
        for follower in dependents(plan, &own[..=at]) {
            let node = plan.nodes[follower.at()].id.clone();
            patterns.push(with(Part::Node { node, item: None, iteration: Iteration::Any }));
        }
    }
    patterns
}

/// The steps of the groups that a step lies in, in any iteration.
fn groups_round(target: &StepAddr) -> Vec<Pattern> {
    let own = parts(target.parts());
    let ends = 1..own.len();
    ends.map(|end| {
        let mut parts = own[..end].to_vec();
        if let Some(Part::Node { iteration, .. }) = parts.last_mut() {
            *iteration = Iteration::Any;
        }
        Pattern { parts, whole: true }
    })
    .collect()
}

/// All that waits for a node, through any number of others, in its own graph.
fn dependents(plan: &Plan, addr: &[AddrPart]) -> BTreeSet<NodeIx> {
    let ids = addr.iter().filter_map(|part| match part {
        AddrPart::Node { node, .. } => Some(node.as_str()),
        AddrPart::Child(_) => None,
    });
    let mut found = BTreeSet::new();
    let mut open: Vec<NodeIx> = plan.at_path(ids).into_iter().collect();
    while let Some(ix) = open.pop() {
        open.extend(plan.nodes[ix.at()].dependents.iter().copied().filter(|next| found.insert(*next)));
    }
    found
}

/// A step as a person names it.
fn find(typed: &str, plan: &Plan, history: &History) -> Result<StepAddr, NoSuchStep> {
    let addr: Option<StepAddr> = typed.trim().parse().ok();
    let known = |addr: &StepAddr| {
        let node = plan.at_path(addr.nodes())?;
        is_there(addr, &plan.nodes[node.at()], history).then_some(())
    };
    match addr {
        Some(addr) if known(&addr).is_some() => Ok(addr),
        Some(_) | None => Err(NoSuchStep { near: near(typed, plan, history), asked: typed.to_owned() }),
    }
}

/// Whether the items, iterations and children that it names were heard of.
fn is_there(addr: &StepAddr, node: &Node, history: &History) -> bool {
    let is_plain = |part: &AddrPart| matches!(part, AddrPart::Node { item: None, iteration: None, .. });
    if addr.parts().iter().all(is_plain) {
        return true;
    }
    let pattern = Pattern::of(addr, false);
    if history.steps().any(|(step, _)| pattern.fits(step)) {
        return true;
    }
    let [AddrPart::Node { node: id, item: Some(item), iteration: None }] = addr.parts() else { return false };
    let listed = match node.each.as_ref().map(|each| &each.source) {
        Some(EachSource::Static(items)) => items.iter().any(|(key, _)| key == item),
        Some(
            EachSource::Listed(_)
            | EachSource::Items(_)
            | EachSource::Glob { .. }
            | EachSource::Lines(_)
            | EachSource::Jsonl(_),
        )
        | None => false,
    };
    let expanded = history.step(&StepAddr::node(id.clone())).and_then(|step| step.expanded.as_ref());
    listed || expanded.is_some_and(|keys| keys.iter().any(|key| ItemKey::of(key) == *item))
}

fn near(typed: &str, plan: &Plan, history: &History) -> Option<String> {
    let steps = history.steps().map(|(step, _)| step.to_string());
    let all: Vec<String> = plan.paths().map(|(_, path)| path).chain(steps).collect();
    nearest(typed.trim(), all.iter().map(String::as_str)).map(str::to_owned)
}

/// Steps of today's plan that did not succeed when they were last tried.
fn failed(plan: &Plan, history: &History) -> Vec<StepAddr> {
    let found: Vec<&StepAddr> = history
        .steps()
        .filter(|(_, step)| is_failed(step))
        .map(|(addr, _)| addr)
        .filter(|addr| {
            let node = plan.at_path(addr.nodes()).map(|ix| &plan.nodes[ix.at()]);
            // A fan-out as a whole fails by its items.
            node.is_some_and(|node| {
                let whole = matches!(addr.parts().last(), Some(AddrPart::Node { item: None, .. }));
                !(whole && node.each.is_some())
            })
        })
        .collect();
    // A group fails by what is in it.
    let holds = |addr: &StepAddr, other: &StepAddr| {
        addr != other && Pattern { parts: parts(addr.parts()), whole: false }.fits(other)
    };
    let is_group = |addr: &StepAddr| {
        plan.at_path(addr.nodes()).is_some_and(|ix| matches!(plan.nodes[ix.at()].work, Work::Group(_)))
    };
    let own = |addr: &&&StepAddr| !(is_group(addr) && found.iter().any(|other| holds(addr, other)));
    found.iter().filter(own).map(|addr| (*addr).clone()).collect()
}

fn is_failed(step: &StepHistory) -> bool {
    if step.attempts.last().is_some_and(|last| last.ended.is_none()) {
        return true;
    }
    step.last_end.as_ref().is_some_and(|(_, ended)| {
        matches!(ended.state, EndState::Failed | EndState::Cancelled | EndState::Interrupted)
    })
}

#[cfg(test)]
mod tests;
