//! When a server is started, started again, and given up. Pure: no clock of its own, no processes.

use claw_kernel::supervise::RestartBudget;
use std::time::{Duration, Instant};

/// Restarts within a minute.
pub(super) const RESTARTS: usize = 3;
const PERIOD: Duration = Duration::from_secs(60);
/// The first wait, and the longest.
const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(8);

/// What happens to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// Somebody wants it.
    Wanted,
    /// It serves.
    Connected,
    /// It did not come so far. `may_pass`: another try could end otherwise.
    Failed { may_pass: bool },
    /// It served, and fell.
    Fell,
    /// It waited long enough.
    Due,
    /// The process ends.
    Stop,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Connect,
    WaitFor(Duration),
    GiveUp,
    Close,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Starting,
    Serving,
    Waiting,
    Off,
    Stopped,
}

/// One server.
#[derive(Debug)]
pub(super) struct Life {
    state: State,
    budget: RestartBudget,
    wait: Duration,
}

impl Life {
    pub(super) fn new() -> Self {
        Self { state: State::Idle, budget: RestartBudget::new(RESTARTS, PERIOD), wait: FIRST }
    }

    pub(super) fn on(&mut self, fact: Fact, now: Instant) -> Option<Order> {
        let (state, order) = match (self.state, fact) {
            (State::Stopped, _) => (State::Stopped, None),
            (_, Fact::Stop) => (State::Stopped, Some(Order::Close)),
            (State::Idle, Fact::Wanted) | (State::Waiting, Fact::Due) => {
                (State::Starting, Some(Order::Connect))
            }
            (State::Starting, Fact::Connected) => (State::Serving, None),
            (State::Starting, Fact::Failed { may_pass: false }) => (State::Off, Some(Order::GiveUp)),
            (State::Starting, Fact::Failed { may_pass: true }) | (State::Serving, Fact::Fell) => {
                self.again(now)
            }
            (
                state @ (State::Idle | State::Starting | State::Serving | State::Waiting | State::Off),
                Fact::Wanted | Fact::Connected | Fact::Failed { .. } | Fact::Fell | Fact::Due,
            ) => (state, None),
        };
        self.state = state;
        order
    }

    fn again(&mut self, now: Instant) -> (State, Option<Order>) {
        if !self.budget.spend(now) {
            return (State::Off, Some(Order::GiveUp));
        }
        let wait = self.wait;
        self.wait = (wait * 2).min(LONGEST);
        (State::Waiting, Some(Order::WaitFor(wait)))
    }

    /// It served for so long that what was before is forgotten.
    pub(super) fn served(&mut self, time: Duration) {
        if time > PERIOD {
            self.wait = FIRST;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_falls_is_started_three_times_and_then_given_up() {
        let now = Instant::now();
        let mut life = Life::new();
        assert_eq!(life.on(Fact::Wanted, now), Some(Order::Connect));
        assert_eq!(life.on(Fact::Wanted, now), None);
        let mut waits = Vec::new();
        for _ in 0..3 {
            life.on(Fact::Connected, now);
            match life.on(Fact::Fell, now) {
                Some(Order::WaitFor(wait)) => waits.push(wait.as_millis()),
                other => panic!("{other:?}"),
            }
            assert_eq!(life.on(Fact::Due, now), Some(Order::Connect));
        }
        assert_eq!(waits, [500, 1_000, 2_000]);
        assert_eq!(life.on(Fact::Failed { may_pass: true }, now), Some(Order::GiveUp));
        assert_eq!(life.on(Fact::Wanted, now), None);
    }

    #[test]
    fn time_gives_the_budget_back_and_what_cannot_pass_is_given_up_at_once() {
        let now = Instant::now();
        let mut life = Life::new();
        life.on(Fact::Wanted, now);
        for minute in 0..10 {
            let now = now + Duration::from_secs(61) * minute;
            life.on(Fact::Connected, now);
            life.served(Duration::from_secs(61));
            assert_eq!(life.on(Fact::Fell, now), Some(Order::WaitFor(FIRST)));
            life.on(Fact::Due, now);
        }
        assert_eq!(life.on(Fact::Failed { may_pass: false }, now), Some(Order::GiveUp));
        assert_eq!(life.on(Fact::Stop, now), Some(Order::Close));
        assert_eq!(life.on(Fact::Due, now), None);
    }
}
