//! Decides who may send next. First come, first served.
//!
//! Owns permits, the shared pause and the pace after it. Pure: moments are given, chance is given.

use super::breaker::{Breaker, BreakerPolicy, MaySend, Shut};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The first gap between two grants after a pause; gaps shrink from there.
const FIRST_GAP: Duration = Duration::from_millis(200);
/// Below this the crowd is no crowd any more.
const LAST_GAP: Duration = Duration::from_millis(1);
/// Retries that an account may make at once.
const RETRY_BURST: f64 = 100.0;
/// Retries that come back with each second.
const RETRIES_PER_SECOND: f64 = 5.0;
/// The longest delay that the budget adds.
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// State of one account; `W` stands for whoever waits.
#[derive(Debug)]
pub(super) struct Core<W> {
    max: usize,
    in_flight: usize,
    queue: VecDeque<W>,
    /// Nobody starts before this.
    gate: Option<Instant>,
    /// After a pause: the gap to the next grant.
    gap: Option<Duration>,
    retries: f64,
    retries_at: Instant,
    pub(super) breaker: Breaker,
}

impl<W> Core<W> {
    /// `max` requests in flight, at least one.
    pub(super) fn new(max: usize, policy: BreakerPolicy, now: Instant) -> Self {
        Self {
            max: max.max(1),
            in_flight: 0,
            queue: VecDeque::new(),
            gate: None,
            gap: None,
            retries: RETRY_BURST,
            retries_at: now,
            breaker: Breaker::new(policy),
        }
    }

    /// Somebody wants to send.
    pub(super) fn want(&mut self, who: W) {
        self.queue.push_back(who);
    }

    /// A request is over, one way or another.
    pub(super) fn done(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// The service asks everybody to wait. An earlier, longer pause holds.
    pub(super) fn pause(&mut self, until: Instant) {
        self.gate = self.gate.max(Some(until));
        self.gap = Some(FIRST_GAP);
    }

    /// Who may send now, if anybody, and whether as the probe. `chance` lies in 0..1. Call until `None`.
    pub(super) fn grant(&mut self, now: Instant, chance: f64) -> Option<(W, bool)> {
        if self.in_flight >= self.max || self.gate.is_some_and(|gate| gate > now) {
            return None;
        }
        let is_probe = match self.breaker.may_send(now) {
            MaySend::Yes => false,
            MaySend::Probe => true,
            MaySend::No => return None,
        };
        let who = self.queue.pop_front()?;
        if is_probe {
            self.breaker.probing();
        }
        self.in_flight += 1;
        self.gate = self.gap.map(|gap| now + gap.mul_f64(0.5 + chance));
        self.gap =
            self.gap.map(|gap| gap.mul_f64(0.85)).filter(|gap| *gap > LAST_GAP && !self.queue.is_empty());
        if self.gap.is_none() && self.queue.is_empty() {
            self.gate = None;
        }
        Some((who, is_probe))
    }

    /// Whoever waits for an account that is closed. Call until `None`.
    pub(super) fn refuse(&mut self) -> Option<(W, Shut)> {
        let shut = self.breaker.is_shut()?.clone();
        Some((self.queue.pop_front()?, shut))
    }

    /// A grant did not reach whoever waited.
    pub(super) fn revoked(&mut self) {
        self.done();
    }

    /// When to ask again, if time alone lets somebody go.
    pub(super) fn wake_at(&self) -> Option<Instant> {
        if self.queue.is_empty() || self.in_flight >= self.max || self.breaker.is_shut().is_some() {
            return None;
        }
        match (self.breaker.why(), self.breaker.next_probe()) {
            (None, _) => self.gate,
            (Some(_), None) => None,
            (Some(_), Some(next)) => self.gate.max(Some(next)),
        }
    }

    /// Until when everybody waits.
    pub(super) fn gate(&self) -> Option<Instant> {
        self.gate
    }

    /// Takes one retry out of the budget; the answer is a delay to add.
    pub(super) fn spend_retry(&mut self, now: Instant) -> Duration {
        let passed = now.saturating_duration_since(self.retries_at).as_secs_f64();
        self.retries_at = now;
        self.retries = (self.retries + passed * RETRIES_PER_SECOND).min(RETRY_BURST) - 1.0;
        if self.retries >= 0.0 {
            return Duration::ZERO;
        }
        Duration::from_secs_f64(-self.retries / RETRIES_PER_SECOND).min(LONGEST_DELAY)
    }

    /// An answer came whole: one more retry may be made.
    pub(super) fn succeeded(&mut self) {
        self.retries = (self.retries + 1.0).min(RETRY_BURST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn core(max: usize) -> (Core<u32>, Instant) {
        let now = Instant::now();
        (Core::new(max, BreakerPolicy::default(), now), now)
    }

    fn all(core: &mut Core<u32>, now: Instant) -> Vec<u32> {
        std::iter::from_fn(|| core.grant(now, 0.5)).map(|(who, _)| who).collect()
    }

    #[test]
    fn no_more_than_the_limit_are_in_flight_and_order_is_kept() {
        let (mut core, now) = core(2);
        (0..5).for_each(|who| core.want(who));
        assert_eq!(all(&mut core, now), [0, 1]);
        core.done();
        assert_eq!(all(&mut core, now), [2]);
        core.done();
        core.done();
        assert_eq!(all(&mut core, now), [3, 4]);
        assert_eq!(core.wake_at(), None);
    }

    #[test]
    fn a_pause_holds_everybody_and_the_restart_is_spread() {
        let (mut core, start) = core(256);
        core.pause(start + Duration::from_secs(3));
        (0..10).for_each(|who| core.want(who));
        assert!(all(&mut core, start + Duration::from_millis(2999)).is_empty());
        let mut times = Vec::new();
        while let Some(at) = core.wake_at() {
            times.extend(all(&mut core, at).iter().map(|_| (at - start).as_millis()));
        }
        assert_eq!(times.len(), 10);
        assert_eq!(times[0], 3000);
        assert!(times.windows(2).all(|w| w[0] < w[1]), "{times:?}");
        assert!(times[9] < 5000, "{times:?}");
        core.want(10);
        assert_eq!(all(&mut core, start + Duration::from_secs(6)), [10]);
    }

    #[test]
    fn a_thousand_come_back_within_seconds() {
        let (mut core, start) = core(2000);
        core.pause(start);
        (0..1000).for_each(|who| core.want(who));
        let mut now = start;
        let mut granted = all(&mut core, now).len();
        while let Some(at) = core.wake_at() {
            now = at;
            granted += all(&mut core, now).len();
        }
        assert_eq!(granted, 1000);
        assert!(now - start < Duration::from_secs(4), "{:?}", now - start);
    }

    #[test]
    fn a_shorter_pause_does_not_end_a_longer_one() {
        let (mut core, start) = core(1);
        core.pause(start + Duration::from_secs(9));
        core.pause(start + Duration::from_secs(1));
        assert_eq!(core.gate(), Some(start + Duration::from_secs(9)));
    }

    #[test]
    fn retries_beyond_the_budget_are_slowed_down_and_successes_give_them_back() {
        let (mut core, now) = core(1);
        assert!((0..100).all(|_| core.spend_retry(now).is_zero()));
        assert_eq!(core.spend_retry(now), Duration::from_millis(200));
        core.succeeded();
        core.succeeded();
        assert_eq!(core.spend_retry(now), Duration::ZERO);
        assert!((0..1000).map(|_| core.spend_retry(now)).all(|delay| delay <= LONGEST_DELAY));
    }
}
