//! The actors round [`Core`]: one supervisor, below it one limiter for each account.
//!
//! Owns messages and timers. Must not decide anything; see `core.rs`.

use super::breaker::{BreakerPolicy, Shut, Stand};
use super::core::Core;
use crate::error::ErrorClass;
use claw_kernel::supervise::{ChildDown, RestartBudget, SpawnFailed, spawn_below, spawn_root};
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, ActorStatus, SupervisionEvent};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{OnceCell, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Restarts of limiters that are made, and within what time.
const RESTARTS: (usize, Duration) = (3, Duration::from_secs(60));

/// A place among the requests in flight; dropping it gives the place back.
#[derive(Debug)]
pub struct Permit {
    limiter: ActorRef<LimiterMsg>,
    is_probe: bool,
    /// The account knows how the probe went.
    is_told: AtomicBool,
}

impl Permit {
    /// Fact: the answer came whole.
    pub fn succeeded(&self) {
        let _ = self.limiter.send_message(LimiterMsg::Succeeded);
        self.answered();
    }

    /// Fact: the service answered, be it with a refusal.
    pub fn answered(&self) {
        if self.is_probe && !self.is_told.swap(true, Ordering::Relaxed) {
            let _ = self.limiter.send_message(LimiterMsg::Answered);
        }
    }

    /// Whether the account waits for this request.
    pub fn is_probe(&self) -> bool {
        self.is_probe
    }

    /// Fact: the service is down or refuses all. How the account stands now.
    ///
    /// # Errors
    /// [`LimiterGone`].
    pub async fn failed(
        &self,
        class: ErrorClass,
        why: &str,
        wait: Option<Duration>,
    ) -> Result<Stand, LimiterGone> {
        let (reply, stand) = oneshot::channel();
        let is_probe = self.is_probe && !self.is_told.swap(true, Ordering::Relaxed);
        let trouble = Trouble { is_probe, class, why: why.into(), wait };
        let _ = self.limiter.send_message(LimiterMsg::Failed { trouble, reply });
        stand.await.map_err(|_| LimiterGone)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        // A limiter that is gone has no places to take back.
        let _ = self.limiter.send_message(LimiterMsg::Done {
            is_probe: self.is_probe && !self.is_told.load(Ordering::Relaxed),
        });
    }
}

/// The limiter of one account. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Limiter {
    actor: ActorRef<LimiterMsg>,
    gate: watch::Receiver<Option<Gate>>,
}

/// Everybody waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Until then at least.
    pub until: Instant,
    /// The service is down: one probes, the others wait.
    pub held_back: Option<Arc<str>>,
}

/// A place among the requests in flight, or why there is none any more.
pub type Place = Result<Permit, Shut>;

/// A request that failed.
#[derive(Debug)]
pub(super) struct Trouble {
    is_probe: bool,
    class: ErrorClass,
    why: Arc<str>,
    wait: Option<Duration>,
}

/// A limiter ended while somebody waited for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the limiter of the account has ended")]
pub struct LimiterGone;

impl Limiter {
    fn is_alive(&self) -> bool {
        self.actor.get_status() < ActorStatus::Stopping
    }

    /// Asks for a place; first come, first served. Dropping the receiver gives the place up.
    pub fn want(&self) -> oneshot::Receiver<Place> {
        let (reply, permit) = oneshot::channel();
        // If the limiter is gone the reply is dropped with the message: the receiver hears of it.
        let _ = self.actor.send_message(LimiterMsg::Want { reply });
        permit
    }

    /// Until when everybody waits, and news of it.
    pub fn gate(&self) -> watch::Receiver<Option<Gate>> {
        self.gate.clone()
    }

    /// Order: nothing more is sent; whoever waits is told.
    pub fn shut(&self, class: ErrorClass, why: &str, until: Option<Instant>) {
        let _ = self.actor.send_message(LimiterMsg::Shut { class, why: why.into(), until });
    }

    /// Order: nobody starts before `until`.
    pub fn pause(&self, until: Instant) {
        let _ = self.actor.send_message(LimiterMsg::Pause { until });
    }

    /// Takes one retry out of the account's budget; the answer is a delay to add.
    ///
    /// # Errors
    /// [`LimiterGone`].
    pub async fn spend_retry(&self) -> Result<Duration, LimiterGone> {
        let (reply, delay) = oneshot::channel();
        let _ = self.actor.send_message(LimiterMsg::SpendRetry { reply });
        delay.await.map_err(|_| LimiterGone)
    }
}

/// What a limiter hears.
#[derive(Debug)]
pub(super) enum LimiterMsg {
    /// Question: a place, when there is one.
    Want { reply: oneshot::Sender<Place> },
    /// Fact: a request is over.
    Done { is_probe: bool },
    /// Fact: the service answered the probe.
    Answered,
    /// Question: how does the account stand after this?
    Failed { trouble: Trouble, reply: oneshot::Sender<Stand> },
    /// Order: nothing more is sent.
    Shut { class: ErrorClass, why: Arc<str>, until: Option<Instant> },
    /// Fact: an answer came whole.
    Succeeded,
    /// Order: everybody waits.
    Pause { until: Instant },
    /// Question: may somebody retry, and how much later?
    SpendRetry { reply: oneshot::Sender<Duration> },
    /// Fact: the moment came for which the timer was set.
    Woke,
}

/// A message to be sent later.
type Timer = JoinHandle<Result<(), ractor::MessagingErr<LimiterMsg>>>;

struct LimiterActor;

struct LimiterState {
    core: Core<oneshot::Sender<Place>>,
    gate: watch::Sender<Option<Gate>>,
    timer: Option<(Instant, Timer)>,
}

impl Actor for LimiterActor {
    type Msg = LimiterMsg;
    type State = LimiterState;
    type Arguments = (usize, BreakerPolicy, watch::Sender<Option<Gate>>);

    async fn pre_start(
        &self,
        _me: ActorRef<LimiterMsg>,
        (max, policy, gate): Self::Arguments,
    ) -> Result<LimiterState, ActorProcessingErr> {
        Ok(LimiterState { core: Core::new(max, policy, Instant::now().into_std()), gate, timer: None })
    }

    async fn handle(
        &self,
        me: ActorRef<LimiterMsg>,
        message: LimiterMsg,
        state: &mut LimiterState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            LimiterMsg::Want { reply } => state.core.want(reply),
            LimiterMsg::Done { is_probe } => {
                state.core.done();
                if is_probe {
                    // One that told how it went is no probe any more.
                    state.core.breaker.probe_lost(Instant::now().into_std());
                }
            }
            LimiterMsg::Answered => state.core.breaker.answered(true),
            LimiterMsg::Failed { trouble, reply } => {
                let Trouble { is_probe, class, why, wait } = trouble;
                let now = Instant::now().into_std();
                let _ = reply.send(state.core.breaker.failed(now, is_probe, (class, why), wait));
            }
            LimiterMsg::Shut { class, why, until } => {
                state.core.breaker.shut(class, why, until.map(Instant::into_std));
            }
            LimiterMsg::Succeeded => state.core.succeeded(),
            LimiterMsg::Pause { until } => state.core.pause(until.into_std()),
            LimiterMsg::SpendRetry { reply } => {
                let _ = reply.send(state.core.spend_retry(Instant::now().into_std()));
            }
            LimiterMsg::Woke => state.timer = None,
        }
        state.pump(&me);
        Ok(())
    }
}

impl LimiterState {
    fn pump(&mut self, me: &ActorRef<LimiterMsg>) {
        let now = Instant::now();
        while let Some((reply, is_probe)) = self.core.grant(now.into_std(), fastrand::f64()) {
            if reply.is_closed() {
                self.core.revoked();
                if is_probe {
                    self.core.breaker.probe_lost(now.into_std());
                }
            } else {
                // Should the receiver vanish just now, the permit comes back and its drop says `Done`.
                let _ =
                    reply.send(Ok(Permit { limiter: me.clone(), is_probe, is_told: AtomicBool::new(false) }));
            }
        }
        while let Some((reply, shut)) = self.core.refuse() {
            let _ = reply.send(Err(shut));
        }
        let held_back = self.core.breaker.why().cloned();
        let next = self.core.breaker.next_probe().map(Instant::from_std);
        let until = self.core.gate().map(Instant::from_std).max(next).filter(|gate| *gate > now);
        let gate = match (until, &held_back) {
            (None, None) => None,
            (until, _) => Some(Gate { until: until.unwrap_or(now), held_back }),
        };
        self.gate.send_if_modified(|known| {
            // While a probe is out there is no moment to wait for: the reason alone is news.
            let is_news = match (&*known, &gate) {
                (Some(known), Some(new)) if until.is_none() => known.held_back != new.held_back,
                (known, new) => known != new,
            };
            if is_news {
                *known = gate;
            }
            is_news
        });
        self.set_timer(me, now);
    }

    fn set_timer(&mut self, me: &ActorRef<LimiterMsg>, now: Instant) {
        let wanted = self.core.wake_at().map(Instant::from_std);
        if self.timer.as_ref().map(|(at, _)| *at) == wanted {
            return;
        }
        if let Some((_, old)) = self.timer.take() {
            old.abort();
        }
        self.timer = wanted.map(|at| {
            // A millisecond more: timers of the runtime may be that early.
            let wait = at.saturating_duration_since(now) + Duration::from_millis(1);
            (at, me.send_after(wait, || LimiterMsg::Woke))
        });
    }
}

/// All limiters of the process, by account. Cheap to clone; the supervisor starts with the first request.
#[derive(Clone, Debug, Default)]
pub struct Limiters {
    root: Arc<OnceCell<ActorRef<SupervisorMsg>>>,
    /// Those that were asked for: spares every request the way over the supervisor.
    known: Arc<RwLock<HashMap<String, Limiter>>>,
}

impl Limiters {
    /// The limiter of an account, started where there is none; `max` counts at its start.
    ///
    /// # Errors
    /// [`LimiterGone`] when it failed too often to be started again.
    pub async fn of(&self, account: &str, max: usize, policy: BreakerPolicy) -> Result<Limiter, LimiterGone> {
        if let Some(limiter) = self.known.read().unwrap_or_else(PoisonError::into_inner).get(account)
            && limiter.is_alive()
        {
            return Ok(limiter.clone());
        }
        let root = self.root.get_or_try_init(start_root).await.map_err(|_| LimiterGone)?;
        let (reply, limiter) = oneshot::channel();
        let _ =
            root.send_message(SupervisorMsg::LimiterOf { account: account.to_owned(), max, policy, reply });
        let limiter = limiter.await.map_err(|_| LimiterGone)?;
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.insert(account.to_owned(), limiter.clone());
        Ok(limiter)
    }

    /// Ends all limiters; whoever waits for a place hears of it.
    pub fn stop(&self) {
        if let Some(root) = self.root.get() {
            root.stop(None);
        }
    }
}

async fn start_root() -> Result<ActorRef<SupervisorMsg>, SpawnFailed> {
    let (root, _join) = spawn_root("providers", SupervisorActor, ()).await?;
    Ok(root)
}

#[derive(Debug)]
enum SupervisorMsg {
    /// Question: the limiter of an account.
    LimiterOf { account: String, max: usize, policy: BreakerPolicy, reply: oneshot::Sender<Limiter> },
}

struct SupervisorActor;

struct SupervisorState {
    limiters: HashMap<String, Limiter>,
    budget: RestartBudget,
    is_spent: bool,
}

impl Actor for SupervisorActor {
    type Msg = SupervisorMsg;
    type State = SupervisorState;
    type Arguments = ();

    async fn pre_start(
        &self,
        _me: ActorRef<SupervisorMsg>,
        _: (),
    ) -> Result<SupervisorState, ActorProcessingErr> {
        let budget = RestartBudget::new(RESTARTS.0, RESTARTS.1);
        Ok(SupervisorState { limiters: HashMap::new(), budget, is_spent: false })
    }

    async fn handle(
        &self,
        me: ActorRef<SupervisorMsg>,
        message: SupervisorMsg,
        state: &mut SupervisorState,
    ) -> Result<(), ActorProcessingErr> {
        let SupervisorMsg::LimiterOf { account, max, policy, reply } = message;
        if let Some(limiter) = state.limiters.get(&account) {
            let _ = reply.send(limiter.clone());
        } else if !state.is_spent {
            let limiter = start(max, policy, me.get_cell()).await?;
            let _ = reply.send(limiter.clone());
            state.limiters.insert(account, limiter);
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<SupervisorMsg>,
        event: SupervisionEvent,
        state: &mut SupervisorState,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(down) = ChildDown::from_event(&event) {
            tracing::error!(how = ?down.how, "a limiter ended");
            // It starts again with the next request of its account.
            state.limiters.retain(|_, limiter| limiter.actor.get_id() != down.id);
            state.is_spent |= !state.budget.spend(std::time::Instant::now());
        }
        Ok(())
    }
}

async fn start(max: usize, policy: BreakerPolicy, parent: ActorCell) -> Result<Limiter, SpawnFailed> {
    let (sender, gate) = watch::channel(None);
    let actor = spawn_below("limiter", LimiterActor, (max, policy, sender), parent).await?;
    Ok(Limiter { actor, gate })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn places_are_given_in_order_and_come_back() {
        let limiters = Limiters::default();
        let limiter = limiters.of("a", 1, BreakerPolicy::default()).await.unwrap();
        let first = limiter.want().await.unwrap().unwrap();
        let mut second = limiter.want();
        let given_up = limiter.want();
        let fourth = limiter.want();
        drop(given_up);
        assert!(second.try_recv().is_err());
        drop(first);
        drop(second.await.unwrap().unwrap());
        fourth.await.unwrap().unwrap();
        limiters.stop();
    }

    #[tokio::test(start_paused = true)]
    async fn everybody_waits_for_the_shared_pause() {
        let limiters = Limiters::default();
        let limiter = limiters.of("a", 256, BreakerPolicy::default()).await.unwrap();
        let start = Instant::now();
        limiter.pause(start + Duration::from_secs(3));
        let waiting: Vec<_> = (0..10).map(|_| limiter.want()).collect();
        let mut gate = limiter.gate();
        gate.wait_for(Option::is_some).await.unwrap();
        let mut starts = Vec::new();
        for permit in waiting {
            std::mem::forget(permit.await.unwrap().unwrap());
            starts.push(start.elapsed());
        }
        assert!(starts[0] >= Duration::from_secs(3) && starts[9] < Duration::from_secs(6), "{starts:?}");
        assert!(starts.windows(2).all(|w| w[0] < w[1]), "{starts:?}");
        limiters.stop();
    }

    #[tokio::test(start_paused = true)]
    async fn accounts_do_not_share_places() {
        let limiters = Limiters::default();
        let _a = limiters.of("a", 1, BreakerPolicy::default()).await.unwrap().want().await.unwrap().unwrap();
        let _b = limiters.of("b", 1, BreakerPolicy::default()).await.unwrap().want().await.unwrap().unwrap();
        assert!(limiters.of("a", 1, BreakerPolicy::default()).await.unwrap().want().try_recv().is_err());
    }
}
