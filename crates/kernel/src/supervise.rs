//! The thin room over ractor: spawn below a parent, hear of a child's end, count restarts. OTP's words.
//!
//! Actors are spawned without a name: names are global to the process. A parent answers for its children in
//! `handle_supervisor_evt`: the default there stops the parent when a child dies.

use ractor::{Actor, ActorCell, ActorId, ActorRef, SpawnErr, SupervisionEvent};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// A child that could not be started: its `pre_start` failed or panicked.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {what}: {source}")]
pub struct SpawnFailed {
    /// What should have run.
    pub what: &'static str,
    /// The cause.
    source: SpawnErr,
}

/// Starts an actor below `parent`, unnamed.
pub async fn spawn_below<A: Actor>(
    what: &'static str,
    actor: A,
    arguments: A::Arguments,
    parent: ActorCell,
) -> Result<ActorRef<A::Msg>, SpawnFailed> {
    let (child, _join) = Actor::spawn_linked(None, actor, arguments, parent)
        .await
        .map_err(|source| SpawnFailed { what, source })?;
    Ok(child)
}

/// Starts an actor without a parent: the root of a tree, or an actor whose owner waits on the returned handle.
pub async fn spawn_root<A: Actor>(
    what: &'static str,
    actor: A,
    arguments: A::Arguments,
) -> Result<(ActorRef<A::Msg>, JoinHandle<()>), SpawnFailed> {
    Actor::spawn(None, actor, arguments).await.map_err(|source| SpawnFailed { what, source })
}

/// How a child ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Down {
    /// It stopped, with the reason it gave.
    Stopped(Option<String>),
    /// It panicked or returned an error.
    Failed(String),
}

/// A child is gone. The child normally reports its outcome first; this is the backstop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildDown {
    /// Which.
    pub id: ActorId,
    /// How.
    pub how: Down,
}

impl ChildDown {
    /// `None` for events that are no end.
    pub fn from_event(event: &SupervisionEvent) -> Option<Self> {
        match event {
            SupervisionEvent::ActorTerminated(cell, _, reason) => {
                Some(Self { id: cell.get_id(), how: Down::Stopped(reason.clone()) })
            }
            SupervisionEvent::ActorFailed(cell, error) => {
                Some(Self { id: cell.get_id(), how: Down::Failed(error.to_string()) })
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => None,
        }
    }
}

/// OTP's restart intensity: so many restarts within a period, then no more.
#[derive(Debug, Clone)]
pub struct RestartBudget {
    intensity: usize,
    period: Duration,
    restarts: VecDeque<Instant>,
}

impl RestartBudget {
    /// `intensity` restarts within `period`.
    pub fn new(intensity: usize, period: Duration) -> Self {
        Self { intensity, period, restarts: VecDeque::new() }
    }

    /// Whether a restart at `now` is within the budget; if so it is counted.
    pub fn spend(&mut self, now: Instant) -> bool {
        while self.restarts.front().is_some_and(|at| now.saturating_duration_since(*at) > self.period) {
            self.restarts.pop_front();
        }
        if self.restarts.len() >= self.intensity {
            return false;
        }
        self.restarts.push_back(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_spent_and_comes_back_with_time() {
        let start = Instant::now();
        let mut budget = RestartBudget::new(2, Duration::from_secs(60));
        assert!(budget.spend(start) && budget.spend(start));
        assert!(!budget.spend(start + Duration::from_secs(59)));
        assert!(budget.spend(start + Duration::from_secs(61)));
    }
}
