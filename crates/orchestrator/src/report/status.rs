//! The status of a run and its exit code, derived from how its nodes ended and what else happened. Pure.

use crate::journal::record::{EndState, RunStatus};

/// A signal that ends claw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndSignal {
    /// Ctrl-C.
    Int,
    /// A plain kill.
    Term,
    /// The terminal went away.
    Hup,
    /// The reader of standard output went away.
    Pipe,
}

impl EndSignal {
    /// 128 and the signal's number.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Int => 130,
            Self::Term => 143,
            Self::Hup => 129,
            Self::Pipe => 141,
        }
    }
}

/// How a node ended, as far as it counts for the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeEnd {
    /// `None`: it never became final.
    pub state: Option<EndState>,
    /// Its failure makes the run partial only.
    pub optional: bool,
    /// `on_error = "continue"`: its failure does not count.
    pub tolerated: bool,
}

/// All that decides how a run ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// A signal ended it.
    pub signal: Option<EndSignal>,
    /// A fault of claw itself.
    pub fault: bool,
    /// State could not be written or read.
    pub io: bool,
    /// It waits for time or a person.
    pub paused: bool,
    /// A budget or a limit ended it.
    pub stopped: bool,
    /// A person stopped it (`claw runs stop`, `q`).
    pub cancelled: bool,
    /// An optional node inside a group failed.
    pub partial: bool,
    /// Its nodes.
    pub nodes: Vec<NodeEnd>,
}

/// Status and exit code. The first that holds wins: signal, 70, 74, 4, 3, 5, 1, 7, 0.
pub fn derive(facts: &RunFacts) -> (RunStatus, u8) {
    if let Some(signal) = facts.signal {
        return (RunStatus::Cancelled, signal.exit_code());
    }
    let counts = |optional: bool| facts.nodes.iter().any(|node| node.optional == optional && fails(node));
    let cases = [
        (facts.fault, RunStatus::Failed, 70),
        (facts.io, RunStatus::Failed, 74),
        (facts.paused, RunStatus::Paused, 4),
        (facts.stopped, RunStatus::Stopped, 3),
        (facts.cancelled, RunStatus::Cancelled, 5),
        (counts(false), RunStatus::Failed, 1),
        (counts(true) || facts.partial, RunStatus::Partial, 7),
    ];
    let first = cases.into_iter().find(|(holds, ..)| *holds);
    first.map_or((RunStatus::Succeeded, 0), |(_, status, code)| (status, code))
}

/// A skipped node does not count: what made `join` refuse it does.
fn fails(node: &NodeEnd) -> bool {
    match node.state {
        Some(EndState::Succeeded | EndState::Cached | EndState::Skipped) => false,
        Some(EndState::Failed) => !node.tolerated,
        // Without a result a node is never completed.
        Some(EndState::Cancelled | EndState::Interrupted) | None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use EndState::{Cached, Cancelled, Failed, Skipped, Succeeded};

    fn node(state: EndState) -> NodeEnd {
        NodeEnd { state: Some(state), optional: false, tolerated: false }
    }

    fn of(nodes: &[NodeEnd]) -> (RunStatus, u8) {
        derive(&RunFacts { nodes: nodes.to_vec(), ..RunFacts::default() })
    }

    #[test]
    fn a_run_succeeded_only_if_every_required_node_did() {
        assert_eq!(of(&[node(Succeeded), node(Cached), node(Skipped)]), (RunStatus::Succeeded, 0));
        assert_eq!(of(&[node(Succeeded), node(Failed)]), (RunStatus::Failed, 1));
        assert_eq!(of(&[node(Cancelled)]), (RunStatus::Failed, 1));
        assert_eq!(of(&[NodeEnd { state: None, ..node(Failed) }]), (RunStatus::Failed, 1));
    }

    #[test]
    fn optional_failures_make_it_partial_and_tolerated_ones_nothing() {
        let optional = NodeEnd { optional: true, ..node(Failed) };
        let tolerated = NodeEnd { tolerated: true, ..node(Failed) };
        assert_eq!(of(&[node(Succeeded), optional]), (RunStatus::Partial, 7));
        assert_eq!(of(&[node(Failed), optional]), (RunStatus::Failed, 1));
        assert_eq!(of(&[node(Succeeded), tolerated]), (RunStatus::Succeeded, 0));
    }

    #[test]
    fn the_first_that_holds_wins() {
        let mut facts = RunFacts {
            signal: Some(EndSignal::Term),
            fault: true,
            io: true,
            paused: true,
            stopped: true,
            cancelled: true,
            partial: true,
            nodes: vec![node(Failed), NodeEnd { optional: true, ..node(Failed) }],
        };
        let mut codes = vec![derive(&facts).1];
        facts.signal = None;
        codes.push(derive(&facts).1);
        facts.fault = false;
        codes.push(derive(&facts).1);
        facts.io = false;
        codes.push(derive(&facts).1);
        facts.paused = false;
        codes.push(derive(&facts).1);
        facts.stopped = false;
        codes.push(derive(&facts).1);
        facts.cancelled = false;
        codes.push(derive(&facts).1);
        facts.nodes.remove(0);
        codes.push(derive(&facts).1);
        facts.nodes.clear();
        codes.push(derive(&facts).1);
        facts.partial = false;
        codes.push(derive(&facts).1);
        assert_eq!(codes, [143, 70, 74, 4, 3, 5, 1, 7, 7, 0]);
    }
}
