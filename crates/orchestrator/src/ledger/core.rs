//! The sums: a tree of accounts, each below the ceilings of all above it. Pure: moments are given, from the run's start.
//!
//! A request is granted where its most fits below every ceiling of its chain. Where only what others have set aside is
//! in the way it waits; where nobody else has, it is granted as long as a ceiling is not reached: so spend passes a
//! ceiling by one request at most.

use crate::plan::model::Budget;
use claw_providers::usage::Usage;
use std::time::Duration;

/// Place of an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountIx(pub(super) usize);

impl AccountIx {
    /// The run's own.
    pub const RUN: Self = Self(0);
}

/// What is counted beside time. Money in billionths of a dollar: sums do not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// 10⁻⁹ US dollars.
    pub nanos: u64,
    /// Input (cached or not) and output.
    pub tokens: u64,
    /// Output alone.
    pub output: u64,
    /// Requests that were answered.
    pub turns: u64,
}

/// Dollars as they are counted.
pub(super) fn nanos(usd: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float becomes the nearest number that there is: below zero none, above all the largest"
    )]
    let nanos = (usd * 1e9).round() as u64;
    nanos
}

impl Amount {
    /// Of a usage; what has no known price costs nothing here.
    pub fn of(usage: &Usage, turns: u64) -> Self {
        let nanos = usage.usd.map_or(0, nanos);
        Self { nanos, tokens: usage.total(), output: usage.output, turns }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
            tokens: self.tokens.saturating_add(other.tokens),
            output: self.output.saturating_add(other.output),
            turns: self.turns.saturating_add(other.turns),
        }
    }

    fn minus(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_sub(other.nanos),
            tokens: self.tokens.saturating_sub(other.tokens),
            output: self.output.saturating_sub(other.output),
            turns: self.turns.saturating_sub(other.turns),
        }
    }
}

/// What can be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ceiling {
    /// `usd`.
    Usd,
    /// `tokens`.
    Tokens,
    /// `output_tokens`.
    OutputTokens,
    /// `turns`.
    Turns,
    /// `wall`, in milliseconds.
    Wall,
}

const COUNTED: [Ceiling; 4] = [Ceiling::Usd, Ceiling::Tokens, Ceiling::OutputTokens, Ceiling::Turns];

impl Ceiling {
    fn of(self, amount: Amount) -> u64 {
        match self {
            Self::Usd => amount.nanos,
            Self::Tokens => amount.tokens,
            Self::OutputTokens => amount.output,
            Self::Turns => amount.turns,
            Self::Wall => 0,
        }
    }

    fn limit(self, budget: &Budget) -> Option<u64> {
        match self {
            Self::Usd => budget.usd.map(nanos),
            Self::Tokens => budget.tokens,
            Self::OutputTokens => budget.output_tokens,
            Self::Turns => budget.turns,
            Self::Wall => budget.wall.map(millis),
        }
    }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Whose money it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spender {
    /// A step of a final node: the reserve is for it.
    Final,
    /// Any other.
    Usual,
}

/// One account.
#[derive(Clone, Debug)]
pub struct Account {
    /// The path of its table: `budget`, `node.fix.budget`.
    pub name: String,
    pub(super) parent: Option<AccountIx>,
    pub(super) budget: Budget,
    /// Whether final nodes draw from it.
    pub(super) has_finals: bool,
    spent: Amount,
    held: Amount,
    /// Requests that are set aside.
    in_flight: usize,
    /// Steps that run, since when, and the time before.
    running: usize,
    since: Duration,
    wall: Duration,
    warned: Vec<Ceiling>,
}

impl Account {
    /// One that nothing was drawn from.
    pub fn new(name: String, parent: Option<AccountIx>, budget: Budget, has_finals: bool) -> Self {
        Self {
            name,
            parent,
            budget,
            has_finals,
            spent: Amount::default(),
            held: Amount::default(),
            in_flight: 0,
            running: 0,
            since: Duration::ZERO,
            wall: Duration::ZERO,
            warned: Vec::new(),
        }
    }

    fn limit(&self, ceiling: Ceiling, who: Spender) -> Option<u64> {
        let limit = ceiling.limit(&self.budget)?;
        if who == Spender::Final || !self.has_finals {
            return Some(limit);
        }
        Some(part(limit, 1.0 - self.budget.reserve))
    }

    fn wall(&self, now: Duration) -> Duration {
        let running = if self.running > 0 { now.saturating_sub(self.since) } else { Duration::ZERO };
        self.wall + running
    }

    fn spent_of(&self, ceiling: Ceiling, now: Duration) -> u64 {
        match ceiling {
            Ceiling::Wall => millis(self.wall(now)),
            Ceiling::Usd | Ceiling::Tokens | Ceiling::OutputTokens | Ceiling::Turns => ceiling.of(self.spent),
        }
    }
}

fn part(whole: u64, part: f64) -> u64 {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a part of a ceiling is no exact number"
    )]
    let part = (whole as f64 * part.clamp(0.0, 1.0)).floor() as u64;
    part
}

/// A ceiling that is reached, or nearly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Whose.
    pub account: AccountIx,
    /// Which.
    pub ceiling: Ceiling,
    /// Spent, in the unit of the ceiling.
    pub spent: u64,
    /// The ceiling as the file says it.
    pub limit: u64,
    /// Part of it is kept for final nodes.
    pub kept: bool,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is set aside in the whole chain.
    Granted,
    /// Others may give back enough.
    Wait,
    /// A ceiling is reached: the highest of the chain that is.
    Refused(Held),
}

/// All accounts of a run.
#[derive(Clone, Debug)]
pub struct Accounts {
    accounts: Vec<Account>,
}

impl Accounts {
    /// With the run's account first, each behind its parent.
    pub fn new(accounts: Vec<Account>) -> Self {
        Self { accounts }
    }

    /// How many.
    pub(super) fn len(&self) -> usize {
        self.accounts.len()
    }

    /// Whether what is drawn from `from` is drawn from `above` too.
    pub(super) fn draws_from(&self, from: AccountIx, above: AccountIx) -> bool {
        self.chain(from).contains(&above)
    }

    /// One of them.
    pub fn account(&self, ix: AccountIx) -> &Account {
        &self.accounts[ix.0]
    }

    /// Settled so far.
    pub fn spent(&self, ix: AccountIx) -> Amount {
        self.accounts[ix.0].spent
    }

    /// Time in which a step ran.
    pub fn wall(&self, ix: AccountIx, now: Duration) -> Duration {
        self.accounts[ix.0].wall(now)
    }

    /// From the account itself up to the run.
    fn chain(&self, from: AccountIx) -> Vec<AccountIx> {
        std::iter::successors(Some(from), |ix| self.accounts[ix.0].parent).collect()
    }

    /// The first account of the chain that has a ceiling in dollars and does not let models without a price pass.
    pub fn wants_prices(&self, from: AccountIx) -> Option<AccountIx> {
        let strict = |ix: &AccountIx| {
            let budget = &self.accounts[ix.0].budget;
            budget.usd.is_some() && !budget.tokens_only
        };
        self.chain(from).into_iter().find(strict)
    }

    /// Whether anything holds there.
    pub fn is_bounded(&self, from: AccountIx) -> bool {
        let all = [Ceiling::Usd, Ceiling::Tokens, Ceiling::OutputTokens, Ceiling::Turns, Ceiling::Wall];
        self.chain(from)
            .iter()
            .any(|ix| all.iter().any(|ceiling| ceiling.limit(&self.accounts[ix.0].budget).is_some()))
    }

    /// A request wants to leave.
    pub fn reserve(&mut self, from: AccountIx, ask: Amount, who: Spender, now: Duration) -> Verdict {
        let chain = self.chain(from);
        let reached = chain.iter().rev().find_map(|ix| self.reached(*ix, who, now));
        if let Some(held) = reached {
            return Verdict::Refused(held);
        }
        if !chain.iter().all(|ix| self.fits(*ix, ask, who)) {
            return Verdict::Wait;
        }
        for ix in chain {
            let account = &mut self.accounts[ix.0];
            account.held = account.held.plus(ask);
            account.in_flight += 1;
        }
        Verdict::Granted
    }

    /// The ceiling of an account that is reached.
    pub fn reached(&self, ix: AccountIx, who: Spender, now: Duration) -> Option<Held> {
        let account = &self.accounts[ix.0];
        COUNTED.into_iter().chain([Ceiling::Wall]).find_map(|ceiling| {
            let (most, spent) = (account.limit(ceiling, who)?, account.spent_of(ceiling, now));
            (spent >= most).then(|| self.held(ix, ceiling, spent, most))
        })
    }

    fn held(&self, account: AccountIx, ceiling: Ceiling, spent: u64, most: u64) -> Held {
        let limit = ceiling.limit(&self.accounts[account.0].budget).unwrap_or(most);
        Held { account, ceiling, spent, limit, kept: most < limit }
    }

    fn fits(&self, ix: AccountIx, ask: Amount, who: Spender) -> bool {
        let account = &self.accounts[ix.0];
        let sum = account.spent.plus(account.held).plus(ask);
        account.in_flight == 0
            || COUNTED
                .iter()
                .all(|ceiling| account.limit(*ceiling, who).is_none_or(|most| ceiling.of(sum) <= most))
    }

    /// A request is over. Ceilings that are nearly reached, each told once.
    pub fn settle(&mut self, from: AccountIx, set_aside: Amount, used: Amount, now: Duration) -> Vec<Held> {
        let chain = self.chain(from);
        for ix in &chain {
            let account = &mut self.accounts[ix.0];
            account.held = account.held.minus(set_aside);
            account.in_flight = account.in_flight.saturating_sub(1);
            account.spent = account.spent.plus(used);
        }
        chain.into_iter().flat_map(|ix| self.warnings(ix, now)).collect()
    }

    fn warnings(&mut self, ix: AccountIx, now: Duration) -> Vec<Held> {
        let mut near = Vec::new();
        for ceiling in COUNTED.into_iter().chain([Ceiling::Wall]) {
            let account = &self.accounts[ix.0];
            let Some(limit) = ceiling.limit(&account.budget) else { continue };
            let spent = account.spent_of(ceiling, now);
            if spent >= part(limit, account.budget.warn) && !account.warned.contains(&ceiling) {
                near.push(self.held(ix, ceiling, spent, limit));
                self.accounts[ix.0].warned.push(ceiling);
            }
        }
        near
    }

    /// Spent in earlier takes.
    pub fn recall(&mut self, from: AccountIx, used: Amount) {
        for ix in self.chain(from) {
            let account = &mut self.accounts[ix.0];
            account.spent = account.spent.plus(used);
        }
    }

    /// Time of earlier takes, of this account alone.
    pub fn recall_wall(&mut self, ix: AccountIx, wall: Duration) {
        self.accounts[ix.0].wall = wall;
    }

    /// What is nearly reached already was told in an earlier take.
    pub fn recalled(&mut self) {
        for at in 0..self.accounts.len() {
            let _told = self.warnings(AccountIx(at), Duration::ZERO);
        }
    }

    /// A step runs from now on.
    pub fn entered(&mut self, from: AccountIx, now: Duration) {
        for ix in self.chain(from) {
            let account = &mut self.accounts[ix.0];
            if account.running == 0 {
                account.since = now;
            }
            account.running += 1;
        }
    }

    /// A step runs no more.
    pub fn left(&mut self, from: AccountIx, now: Duration) {
        for ix in self.chain(from) {
            let account = &mut self.accounts[ix.0];
            account.wall = if account.running == 1 { account.wall(now) } else { account.wall };
            account.running = account.running.saturating_sub(1);
        }
    }

    /// How long the run may go on with its steps before its `wall` is reached; `None`: no end, or nothing runs.
    pub fn wall_left(&self, now: Duration) -> Option<Duration> {
        let run = &self.accounts[AccountIx::RUN.0];
        let limit = run.limit(Ceiling::Wall, Spender::Usual).filter(|_| run.running > 0)?;
        Some(Duration::from_millis(limit).saturating_sub(run.wall(now)))
    }
}

#[cfg(test)]
mod tests;
