//! The one admission gate: how many agents and commands run at once, who is next, how many agents in all.
//!
//! Order: priority, then length of the critical path, then the order in the file, then the order of the items.

use super::event::StepIx;
use crate::plan::model::Limits;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Which slots a step takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    /// `limits.concurrency`.
    Agents,
    /// `limits.commands`.
    Commands,
}

/// A step's rank in its queue: the largest goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub priority: i64,
    pub critical_path: u32,
    pub order: Reverse<(u32, u32)>,
    pub step: StepIx,
}

#[derive(Debug)]
struct Queue {
    waiting: BinaryHeap<Rank>,
    running: usize,
    slots: usize,
}

impl Queue {
    fn new(slots: usize) -> Self {
        Self { waiting: BinaryHeap::new(), running: 0, slots }
    }
}

/// The gate.
#[derive(Debug)]
pub(super) struct Gate {
    agents: Queue,
    commands: Queue,
    /// Agents that may still be started in this run.
    agents_left: usize,
}

impl Gate {
    /// `started`: agents of earlier takes.
    pub fn new(limits: &Limits, started: usize) -> Self {
        Self {
            agents: Queue::new(limits.concurrency.max(1)),
            commands: Queue::new(limits.commands.max(1)),
            agents_left: limits.agents.saturating_sub(started),
        }
    }

    fn lane(&mut self, lane: Lane) -> &mut Queue {
        match lane {
            Lane::Agents => &mut self.agents,
            Lane::Commands => &mut self.commands,
        }
    }

    /// Puts a step into its queue. The value is its place, from 1, counted roughly: the length of the queue.
    pub fn queue(&mut self, lane: Lane, rank: Rank) -> usize {
        let queue = self.lane(lane);
        queue.waiting.push(rank);
        queue.waiting.len()
    }

    /// The next step that may start, where a slot is free. Takes the slot.
    pub fn admit(&mut self, lane: Lane) -> Option<StepIx> {
        let queue = self.lane(lane);
        if queue.running >= queue.slots {
            return None;
        }
        let rank = queue.waiting.pop()?;
        queue.running += 1;
        Some(rank.step)
    }

    /// Counts one more agent. False: the limit of the run is reached.
    pub fn count_agent(&mut self) -> bool {
        match self.agents_left.checked_sub(1) {
            Some(left) => {
                self.agents_left = left;
                true
            }
            None => false,
        }
    }

    /// Gives a slot back.
    pub fn release(&mut self, lane: Lane) {
        let queue = self.lane(lane);
        queue.running = queue.running.saturating_sub(1);
    }

    /// Whether nothing runs.
    pub fn is_quiet(&self) -> bool {
        self.agents.running + self.commands.running == 0
    }

    /// Nobody waits any longer.
    pub fn drain(&mut self) {
        self.agents.waiting.clear();
        self.commands.waiting.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indexmap::IndexMap;

    fn limits(concurrency: usize, agents: usize) -> Limits {
        Limits { concurrency, commands: 1, agents, depth: 2, providers: IndexMap::new() }
    }

    fn rank(priority: i64, critical_path: u32, order: u32) -> Rank {
        Rank { priority, critical_path, order: Reverse((order, 0)), step: StepIx(order) }
    }

    #[test]
    fn priority_then_critical_path_then_order_of_the_file() {
        let mut gate = Gate::new(&limits(9, 9), 0);
        for r in [rank(0, 1, 0), rank(0, 5, 1), rank(0, 5, 2), rank(1, 0, 3)] {
            gate.queue(Lane::Agents, r);
        }
        let order: Vec<u32> = std::iter::from_fn(|| gate.admit(Lane::Agents)).map(|s| s.0).collect();
        assert_eq!(order, [3, 1, 2, 0]);
    }

    #[test]
    fn a_thousand_steps_one_after_another_leak_no_slot() {
        let mut gate = Gate::new(&limits(2, 2000), 0);
        for order in 0..1000 {
            gate.queue(Lane::Agents, rank(0, 0, order));
        }
        let mut running = 0;
        for _ in 0..1000 {
            while gate.admit(Lane::Agents).is_some() {
                running += 1;
            }
            assert!(running <= 2);
            gate.release(Lane::Agents);
            running -= 1;
        }
        assert!(gate.is_quiet());
    }

    #[test]
    fn the_number_of_agents_is_counted_down() {
        let mut gate = Gate::new(&limits(1, 2), 1);
        assert!(gate.count_agent());
        assert!(!gate.count_agent());
    }
}
