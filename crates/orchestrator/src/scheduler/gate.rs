//! The one admission gate: how many agents and commands run at once, who is next, how many agents in all.
//!
//! Order: priority, then length of the critical path, then the order in the file, then the order of the items. A nested
//! file is one more level: what its limits hold back waits beside the queue until one of its own slots is free.

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

/// A level of limits: the run's own, or that of a nested file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LevelIx(u32);

/// A step's rank in its queue: the largest goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    /// Children before all others, and first of all agents that have what they waited for.
    pub kin: u32,
    pub priority: i64,
    pub critical_path: u32,
    pub order: Reverse<(u32, u32)>,
    pub step: StepIx,
    pub level: LevelIx,
}

#[derive(Debug)]
struct Slots {
    running: usize,
    most: usize,
    /// Held back by this level alone.
    parked: Vec<Rank>,
}

impl Slots {
    fn new(most: usize) -> Self {
        Self { running: 0, most: most.max(1), parked: Vec::new() }
    }
}

#[derive(Debug)]
struct Level {
    parent: Option<LevelIx>,
    agents: Slots,
    commands: Slots,
    /// Agents that may still be started.
    agents_left: usize,
}

impl Level {
    fn new(limits: &Limits, parent: Option<LevelIx>, started: usize) -> Self {
        Self {
            parent,
            agents: Slots::new(limits.concurrency),
            commands: Slots::new(limits.commands),
            agents_left: limits.agents.saturating_sub(started),
        }
    }

    fn slots(&mut self, lane: Lane) -> &mut Slots {
        match lane {
            Lane::Agents => &mut self.agents,
            Lane::Commands => &mut self.commands,
        }
    }
}

/// The gate.
#[derive(Debug)]
pub(super) struct Gate {
    agents: BinaryHeap<Rank>,
    commands: BinaryHeap<Rank>,
    levels: Vec<Level>,
}

impl Gate {
    /// `started`: agents of earlier takes.
    pub fn new(limits: &Limits, started: usize) -> Self {
        let root = Level::new(limits, None, started);
        Self { agents: BinaryHeap::new(), commands: BinaryHeap::new(), levels: vec![root] }
    }

    /// One more level below another.
    pub fn level(&mut self, limits: &Limits, parent: LevelIx) -> LevelIx {
        let ix = LevelIx(u32::try_from(self.levels.len()).unwrap_or(u32::MAX));
        self.levels.push(Level::new(limits, Some(parent), 0));
        ix
    }

    fn queue_of(&mut self, lane: Lane) -> &mut BinaryHeap<Rank> {
        match lane {
            Lane::Agents => &mut self.agents,
            Lane::Commands => &mut self.commands,
        }
    }

    /// A level and those above it, the innermost first.
    fn chain(&self, level: LevelIx) -> impl Iterator<Item = LevelIx> {
        let mut at = Some(level);
        let parents: Vec<LevelIx> = std::iter::from_fn(|| {
            let level = at?;
            at = self.levels[level.0 as usize].parent;
            Some(level)
        })
        .collect();
        parents.into_iter()
    }

    /// Puts a step into its queue. The value is its place, from 1, counted roughly: the length of the queue.
    pub fn queue(&mut self, lane: Lane, rank: Rank) -> usize {
        let queue = self.queue_of(lane);
        queue.push(rank);
        queue.len()
    }

    /// The next step that may start, where a slot is free. Takes the slots.
    pub fn admit(&mut self, lane: Lane) -> Option<StepIx> {
        loop {
            let root = self.levels[0].slots(lane);
            if root.running >= root.most {
                return None;
            }
            let rank = self.queue_of(lane).pop()?;
            let levels: Vec<LevelIx> = self.chain(rank.level).collect();
            let full = levels.iter().copied().find(|level| {
                let slots = self.levels[level.0 as usize].slots(lane);
                slots.running >= slots.most
            });
            if let Some(level) = full {
                self.levels[level.0 as usize].slots(lane).parked.push(rank);
                continue;
            }
            for level in levels {
                self.levels[level.0 as usize].slots(lane).running += 1;
            }
            return Some(rank.step);
        }
    }

    /// Counts one more agent. False: a limit is reached.
    pub fn count_agent(&mut self, level: LevelIx) -> bool {
        let levels: Vec<LevelIx> = self.chain(level).collect();
        if levels.iter().any(|level| self.levels[level.0 as usize].agents_left == 0) {
            return false;
        }
        for level in levels {
            self.levels[level.0 as usize].agents_left -= 1;
        }
        true
    }

    /// From here on so many agents may be started in all.
    pub fn count_anew(&mut self, agents: usize) {
        self.levels[0].agents_left = agents;
    }

    /// How many wait for a slot.
    pub fn waiting(&self, lane: Lane) -> usize {
        let slots = match lane {
            Lane::Agents => &self.levels[0].agents,
            Lane::Commands => &self.levels[0].commands,
        };
        let queue = match lane {
            Lane::Agents => self.agents.len(),
            Lane::Commands => self.commands.len(),
        };
        (slots.running + queue).saturating_sub(slots.most)
    }

    /// Whether one more agent may be started.
    pub fn has_agents_left(&self, level: LevelIx) -> bool {
        self.chain(level).all(|level| self.levels[level.0 as usize].agents_left > 0)
    }

    /// Gives the slots back.
    pub fn release(&mut self, lane: Lane, level: LevelIx) {
        let levels: Vec<LevelIx> = self.chain(level).collect();
        for level in levels {
            let slots = self.levels[level.0 as usize].slots(lane);
            slots.running = slots.running.saturating_sub(1);
            let parked = std::mem::take(&mut slots.parked);
            self.queue_of(lane).extend(parked);
        }
    }

    /// Whether nothing runs.
    pub fn is_quiet(&self) -> bool {
        self.levels[0].agents.running + self.levels[0].commands.running == 0
    }

    /// Nobody waits any longer.
    pub fn drain(&mut self) {
        self.agents.clear();
        self.commands.clear();
        for level in &mut self.levels {
            level.agents.parked.clear();
            level.commands.parked.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indexmap::IndexMap;

    const ROOT: LevelIx = LevelIx(0);

    fn limits(concurrency: usize, agents: usize) -> Limits {
        Limits { concurrency, commands: 1, agents, depth: 2, providers: IndexMap::new() }
    }

    fn rank(priority: i64, critical_path: u32, order: u32) -> Rank {
        Rank { kin: 0, priority, critical_path, order: Reverse((order, 0)), step: StepIx(order), level: ROOT }
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
            gate.release(Lane::Agents, ROOT);
            running -= 1;
        }
        assert!(gate.is_quiet());
    }

    #[test]
    fn the_number_of_agents_is_counted_down_at_every_level() {
        let mut gate = Gate::new(&limits(1, 4), 1);
        let inner = gate.level(&limits(1, 1), ROOT);
        assert!(gate.count_agent(inner));
        assert!(!gate.count_agent(inner));
        assert!(gate.count_agent(ROOT) && gate.count_agent(ROOT));
        assert!(!gate.count_agent(ROOT));
    }

    #[test]
    fn a_nested_file_holds_only_its_own_steps_back() {
        let mut gate = Gate::new(&limits(3, 9), 0);
        let inner = gate.level(&limits(1, 9), ROOT);
        for order in 0..3 {
            gate.queue(Lane::Agents, Rank { level: inner, ..rank(0, 9, order) });
        }
        gate.queue(Lane::Agents, rank(0, 0, 7));
        let started: Vec<u32> = std::iter::from_fn(|| gate.admit(Lane::Agents)).map(|s| s.0).collect();
        assert_eq!(started, [0, 7]);
        gate.release(Lane::Agents, inner);
        assert_eq!(gate.admit(Lane::Agents), Some(StepIx(1)));
        assert_eq!(gate.admit(Lane::Agents), None);
    }
}
