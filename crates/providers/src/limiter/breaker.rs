//! Holds an account back whose service is down: after a few failures in a short time everybody waits behind one probe.
//!
//! Owns the states: closed (all may send), open (nobody until the next probe), probing (one does), shut (nobody any
//! more, whoever wants to is told why). Pure: moments are given.

use crate::error::ErrorClass;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// No wait between two probes is longer.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// When to hold back, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BreakerPolicy {
    /// Off: requests fail by their own tries alone.
    pub is_on: bool,
    /// So many failures…
    pub failures: u32,
    /// …within this time.
    pub window: Duration,
    /// Until the first probe; it doubles with each that fails.
    pub wait: Duration,
    /// Held back for so long, an account is given up.
    pub longest: Duration,
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self {
            is_on: false,
            failures: 3,
            window: Duration::from_secs(60),
            wait: Duration::from_secs(2),
            longest: Duration::from_secs(1800),
        }
    }
}

/// Why an account is closed for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shut {
    /// Of the error that closed it.
    pub class: ErrorClass,
    /// Its words.
    pub why: Arc<str>,
    /// When it may work again.
    pub until: Option<Instant>,
}

/// How an account stands after a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stand {
    /// Others may send.
    Closed,
    /// Everybody waits behind one probe.
    Open,
    /// It is given up.
    Shut(Shut),
}

/// Whether a request may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MaySend {
    Yes,
    /// This one, as the probe.
    Probe,
    No,
}

#[derive(Debug)]
enum State {
    Closed { recent: VecDeque<Instant> },
    Open(Held, Instant),
    Probing(Held),
    Shut(Shut),
}

/// What is kept while an account is held back.
#[derive(Clone, Debug)]
struct Held {
    since: Instant,
    wait: Duration,
    why: Arc<str>,
    class: ErrorClass,
}

/// The breaker of one account.
#[derive(Debug)]
pub(super) struct Breaker {
    policy: BreakerPolicy,
    state: State,
}

impl Breaker {
    pub(super) fn new(policy: BreakerPolicy) -> Self {
        Self { policy, state: State::Closed { recent: VecDeque::new() } }
    }

    /// May one more request leave?
    pub(super) fn may_send(&self, now: Instant) -> MaySend {
        match &self.state {
            State::Closed { .. } => MaySend::Yes,
            State::Open(_, next) if now >= *next => MaySend::Probe,
            State::Open(..) | State::Probing(_) | State::Shut(_) => MaySend::No,
        }
    }

    /// The probe left.
    pub(super) fn probing(&mut self) {
        if let State::Open(held, _) = &self.state {
            self.state = State::Probing(held.clone());
        }
    }

    /// The service failed a request. `wait`: what it asks for.
    pub(super) fn failed(
        &mut self,
        now: Instant,
        is_probe: bool,
        trouble: (ErrorClass, Arc<str>),
        wait: Option<Duration>,
    ) -> Stand {
        let (class, why) = trouble;
        match &mut self.state {
            State::Closed { recent } => {
                recent.push_back(now);
                while recent.front().is_some_and(|at| now.saturating_duration_since(*at) > self.policy.window)
                {
                    recent.pop_front();
                }
                if !self.policy.is_on || recent.len() < self.policy.failures.max(1) as usize {
                    recent.truncate(self.policy.failures.max(1) as usize);
                    return Stand::Closed;
                }
                let held = Held { since: now, wait: self.policy.wait, why, class };
                self.open(held, now, wait)
            }
            State::Probing(held) if is_probe => {
                let wait_now = (held.wait * 2).min(LONGEST_WAIT);
                let held = Held { wait: wait_now, why, class, ..held.clone() };
                if now.saturating_duration_since(held.since) >= self.policy.longest {
                    // What is held back for so long is worth a look by a person: in a while at the earliest.
                    let until = Some(now + self.policy.longest.max(Duration::from_secs(600)));
                    return Stand::Shut(self.shut(held.class, held.why, until));
                }
                self.open(held, now, wait)
            }
            // It left before the account was held back.
            State::Open(..) | State::Probing(_) => Stand::Open,
            State::Shut(shut) => Stand::Shut(shut.clone()),
        }
    }

    fn open(&mut self, held: Held, now: Instant, asked: Option<Duration>) -> Stand {
        let end = held.since + self.policy.longest;
        let next = (now + held.wait.max(asked.unwrap_or_default())).min(end.max(now));
        self.state = State::Open(held, next);
        Stand::Open
    }

    /// The service answered: the account is open to all where this was the probe.
    pub(super) fn answered(&mut self, is_probe: bool) {
        if is_probe && matches!(self.state, State::Probing(_)) {
            self.state = State::Closed { recent: VecDeque::new() };
        }
    }

    /// The probe ended without a word of the service: another one takes its place.
    pub(super) fn probe_lost(&mut self, now: Instant) {
        if let State::Probing(held) = &self.state {
            self.state = State::Open(held.clone(), now);
        }
    }

    /// Nothing more is sent.
    pub(super) fn shut(&mut self, class: ErrorClass, why: Arc<str>, until: Option<Instant>) -> Shut {
        if let State::Shut(shut) = &self.state {
            return shut.clone();
        }
        let shut = Shut { class, why, until };
        self.state = State::Shut(shut.clone());
        shut
    }

    /// Why nothing is sent any more.
    pub(super) fn is_shut(&self) -> Option<&Shut> {
        match &self.state {
            State::Shut(shut) => Some(shut),
            State::Closed { .. } | State::Open(..) | State::Probing(_) => None,
        }
    }

    /// Why everybody waits.
    pub(super) fn why(&self) -> Option<&Arc<str>> {
        match &self.state {
            State::Open(held, _) | State::Probing(held) => Some(&held.why),
            State::Closed { .. } | State::Shut(_) => None,
        }
    }

    /// When the next probe may leave.
    pub(super) fn next_probe(&self) -> Option<Instant> {
        match &self.state {
            State::Open(_, next) => Some(*next),
            State::Closed { .. } | State::Probing(_) | State::Shut(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POLICY: BreakerPolicy = BreakerPolicy {
        is_on: true,
        failures: 3,
        window: Duration::from_secs(60),
        wait: Duration::from_secs(2),
        longest: Duration::from_secs(1800),
    };

    fn busy() -> (ErrorClass, Arc<str>) {
        (ErrorClass::Overloaded, "busy".into())
    }

    fn opened() -> (Breaker, Instant) {
        let (mut breaker, now) = (Breaker::new(POLICY), Instant::now());
        assert_eq!(breaker.failed(now, false, busy(), None), Stand::Closed);
        assert_eq!(breaker.failed(now, false, busy(), None), Stand::Closed);
        assert_eq!(breaker.failed(now, false, busy(), None), Stand::Open);
        (breaker, now)
    }

    #[test]
    fn three_failures_within_the_window_hold_back_and_slower_ones_do_not() {
        let (mut breaker, now) = (Breaker::new(POLICY), Instant::now());
        for at in 0..20 {
            let at = now + Duration::from_secs(31) * at;
            assert_eq!(breaker.failed(at, false, busy(), None), Stand::Closed);
        }
        opened();
    }

    #[test]
    fn one_probe_at_a_time_with_growing_waits_until_the_service_answers() {
        let (mut breaker, mut now) = opened();
        let mut waits = Vec::new();
        for _ in 0..7 {
            let next = breaker.next_probe().unwrap();
            waits.push((next - now).as_secs());
            assert_eq!(breaker.may_send(next - Duration::from_millis(1)), MaySend::No);
            assert_eq!(breaker.may_send(next), MaySend::Probe);
            breaker.probing();
            assert_eq!(breaker.may_send(next), MaySend::No);
            now = next;
            assert_eq!(breaker.failed(now, true, busy(), None), Stand::Open);
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60]);
        breaker.probing();
        breaker.answered(false);
        assert_eq!(breaker.may_send(now), MaySend::No, "an old request tells nothing");
        breaker.answered(true);
        assert_eq!(breaker.may_send(now), MaySend::Yes);
    }

    #[test]
    fn after_the_longest_time_the_account_is_given_up() {
        let (mut breaker, start) = opened();
        loop {
            let next = breaker.next_probe().unwrap();
            breaker.probing();
            match breaker.failed(next, true, busy(), None) {
                Stand::Open => assert!(next < start + POLICY.longest),
                Stand::Shut(shut) => {
                    assert_eq!(next, start + POLICY.longest);
                    assert!(shut.until.unwrap() > next + Duration::from_secs(300));
                    break;
                }
                Stand::Closed => panic!("closed"),
            }
        }
        assert_eq!(breaker.may_send(start + POLICY.longest * 2), MaySend::No);
    }

    #[test]
    fn a_probe_that_was_cancelled_is_followed_by_another() {
        let (mut breaker, _) = opened();
        let next = breaker.next_probe().unwrap();
        breaker.probing();
        breaker.probe_lost(next);
        assert_eq!(breaker.may_send(next), MaySend::Probe);
    }

    #[test]
    fn what_is_off_holds_nobody_back() {
        let mut breaker = Breaker::new(BreakerPolicy::default());
        let now = Instant::now();
        assert!((0..100).all(|_| breaker.failed(now, false, busy(), None) == Stand::Closed));
    }

    proptest! {
        /// Whatever comes, no second probe leaves before the first has ended.
        #[test]
        fn never_two_probes(events in prop::collection::vec((0_u8..5, 0_u64..5_000), 1..200)) {
            let (mut breaker, mut now) = opened();
            let mut probe = false;
            for (event, millis) in events {
                now += Duration::from_millis(millis);
                match event {
                    0 | 1 => match breaker.may_send(now) {
                        MaySend::Probe => {
                            prop_assert!(!probe);
                            breaker.probing();
                            probe = true;
                        }
                        MaySend::Yes | MaySend::No => {}
                    },
                    2 => { breaker.failed(now, std::mem::take(&mut probe), busy(), None); }
                    3 => breaker.answered(std::mem::take(&mut probe)),
                    _ => if std::mem::take(&mut probe) { breaker.probe_lost(now) },
                }
            }
        }
    }
}
