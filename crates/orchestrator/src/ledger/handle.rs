//! The accounts as steps use them: shared, with the run's clock, telling once what is told.
//!
//! Owns the lock, those who wait for room and the timer of `wall`. Decides nothing; see `core.rs`.

use super::accounts::{Tree, of_plan};
use super::core::{AccountIx, Amount, Ceiling, Held, Spender, Verdict, nanos};
use super::words;
use crate::journal::history::History;
use crate::plan::model::{NodeIx, Plan};
use claw_agents::purse::{Purse, Quote, Refused, Reserved};
use claw_kernel::tasks;
use claw_providers::usage::Usage;
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// What the ledger tells by itself.
pub enum LedgerNews {
    /// A ceiling of the run is reached; once.
    Spent(String),
    /// A word for people.
    Note(String),
}

type Listener = Box<dyn Fn(LedgerNews) + Send + Sync>;

/// The accounts of one run. Shared.
pub struct Ledger {
    state: Mutex<State>,
    /// Rises whenever something was given back.
    given_back: watch::Sender<u64>,
    listener: OnceLock<Listener>,
    began: Instant,
    file: String,
}

struct State {
    tree: Tree,
    is_told: bool,
    timer: Option<AbortHandle>,
}

impl Ledger {
    /// For a plan, with what earlier takes spent. `max_usd`: the ceiling of this take.
    pub fn new(plan: &Plan, history: &History, max_usd: Option<f64>) -> Arc<Self> {
        let mut tree = of_plan(plan, max_usd);
        super::past::recall(&mut tree, plan, history);
        Arc::new(Self {
            state: Mutex::new(State { tree, is_told: false, timer: None }),
            given_back: watch::Sender::new(0),
            listener: OnceLock::new(),
            began: Instant::now(),
            file: plan.file.display().to_string(),
        })
    }

    /// Who hears the news. The first one counts.
    pub fn listen(&self, listener: impl Fn(LedgerNews) + Send + Sync + 'static) {
        let _ = self.listener.set(Box::new(listener));
    }

    /// What agents of a node pay from; `None` where nothing holds them.
    pub fn purse(self: &Arc<Self>, node: NodeIx) -> Option<Arc<dyn Purse>> {
        let state = self.state();
        let account = state.tree.of_node[node.at()];
        let who = if state.tree.is_final[node.at()] { Spender::Final } else { Spender::Usual };
        let bounded = state.tree.accounts.is_bounded(account);
        drop(state);
        bounded.then(|| Arc::new(NodePurse { ledger: Arc::clone(self), account, who }) as Arc<dyn Purse>)
    }

    /// A step of a node runs as long as this is held.
    pub fn enter(self: &Arc<Self>, node: NodeIx) -> Working {
        let account = self.state().tree.of_node[node.at()];
        self.state().tree.accounts.entered(account, self.began.elapsed());
        self.set_timer();
        Working { ledger: Arc::clone(self), account }
    }

    /// Settled so far, in all takes.
    pub fn spent(&self) -> Amount {
        self.state().tree.accounts.spent(AccountIx::RUN)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Sums are changed in one piece; whatever a panic left is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, news: LedgerNews) {
        if let Some(listener) = self.listener.get() {
            listener(news);
        }
    }

    /// The run's `wall` is reached while its steps run: one timer for the rest of it.
    fn set_timer(self: &Arc<Self>) {
        let mut state = self.state();
        let left = state.tree.accounts.wall_left(self.began.elapsed());
        match left {
            None => {
                if let Some(timer) = state.timer.take() {
                    timer.abort();
                }
            }
            Some(left) if state.timer.is_none() => {
                let ledger = Arc::clone(self);
                let timer = tasks::spawn("wall", async move {
                    tokio::time::sleep(left + Duration::from_millis(1)).await;
                    ledger.look_at_the_run();
                });
                state.timer = Some(timer.abort_handle());
            }
            Some(_) => {}
        }
    }

    fn look_at_the_run(&self) {
        let now = self.began.elapsed();
        let reached = self.state().tree.accounts.reached(AccountIx::RUN, Spender::Usual, now);
        if let Some(held) = reached {
            self.run_is_spent(&held);
        }
    }

    /// Told once. The text says what to do.
    fn run_is_spent(&self, held: &Held) -> String {
        let mut state = self.state();
        let reason = self.reason(&state, held);
        let is_told = std::mem::replace(&mut state.is_told, true);
        drop(state);
        if !is_told {
            self.tell(LedgerNews::Spent(reason.clone()));
        }
        reason
    }

    fn reason(&self, state: &State, held: &Held) -> String {
        let spent = words::spent(held);
        let name = &state.tree.accounts.account(held.account).name;
        let key = format!("{name}.{}", held.ceiling.key());
        if held.account != AccountIx::RUN {
            return format!("{key}: {spent}; raise it in {}, then go on with --resume", self.file);
        }
        if held.ceiling == Ceiling::Usd && state.tree.usd_by_flag {
            return format!("--max-usd: {spent}; go on with --resume and a higher --max-usd");
        }
        format!("{key}: {spent}; raise `{key}` in {}, then go on with --resume", self.file)
    }

    fn try_reserve(&self, purse: &NodePurse, quote: &Quote) -> Result<Option<Amount>, Refused> {
        let now = self.began.elapsed();
        let mut state = self.state();
        let accounts = &mut state.tree.accounts;
        if let (Some(model), Some(account)) = (&quote.unpriced, accounts.wants_prices(purse.account)) {
            let name = &accounts.account(account).name;
            return Err(Refused::Limit(format!(
                "the price of `{model}` is not known, and `{name}.usd` holds here; state its price in a profile, or write `unknown_price = \"tokens_only\"` and a ceiling of `tokens` in that budget"
            )));
        }
        let most = Usage { input: quote.input, output: quote.output, ..Usage::NOTHING };
        let cost = quote.price.map_or(0.0, |price| price.cost(&most));
        let ask = Amount { nanos: nanos(cost), ..Amount::of(&most, 1) };
        match accounts.reserve(purse.account, ask, purse.who, now) {
            Verdict::Granted => Ok(Some(ask)),
            Verdict::Wait => Ok(None),
            Verdict::Refused(held) if held.account == AccountIx::RUN => {
                drop(state);
                Err(Refused::Run(self.run_is_spent(&held)))
            }
            Verdict::Refused(held) => Err(Refused::Limit(self.reason(&state, &held))),
        }
    }

    fn settle(&self, account: AccountIx, set_aside: Amount, used: Amount) {
        let now = self.began.elapsed();
        let mut state = self.state();
        let near = state.tree.accounts.settle(account, set_aside, used, now);
        let notes: Vec<String> = near
            .iter()
            .map(|held| {
                let name = &state.tree.accounts.account(held.account).name;
                format!("{name}.{}: {}", held.ceiling.key(), words::spent(held))
            })
            .collect();
        drop(state);
        for note in notes {
            self.tell(LedgerNews::Note(note));
        }
        self.given_back.send_modify(|version| *version += 1);
    }
}

/// A step that runs.
pub struct Working {
    ledger: Arc<Ledger>,
    account: AccountIx,
}

impl Drop for Working {
    fn drop(&mut self) {
        let now = self.ledger.began.elapsed();
        self.ledger.state().tree.accounts.left(self.account, now);
        self.ledger.set_timer();
    }
}

/// What the agents of one node pay from.
struct NodePurse {
    ledger: Arc<Ledger>,
    account: AccountIx,
    who: Spender,
}

impl Purse for NodePurse {
    fn reserve<'a>(&'a self, quote: &'a Quote) -> BoxFuture<'a, Result<Box<dyn Reserved>, Refused>> {
        Box::pin(async move {
            let mut given_back = self.ledger.given_back.subscribe();
            loop {
                given_back.borrow_and_update();
                if let Some(set_aside) = self.ledger.try_reserve(self, quote)? {
                    let input = Usage { input: quote.input, ..Usage::NOTHING };
                    let cost = quote.price.map_or(0.0, |price| price.cost(&input));
                    return Ok(Box::new(SetAside {
                        ledger: Arc::clone(&self.ledger),
                        account: self.account,
                        set_aside,
                        lost: Amount { nanos: nanos(cost), ..Amount::of(&input, 0) },
                        is_settled: false,
                    }) as Box<dyn Reserved>);
                }
                // The sender lives in the ledger that this purse holds.
                let _ = given_back.changed().await;
            }
        })
    }
}

/// Set aside for one request.
struct SetAside {
    ledger: Arc<Ledger>,
    account: AccountIx,
    set_aside: Amount,
    /// What it counts as where nothing is heard of it.
    lost: Amount,
    is_settled: bool,
}

impl Reserved for SetAside {
    fn settle(mut self: Box<Self>, usage: &Usage, answered: bool) {
        self.is_settled = true;
        self.ledger.settle(self.account, self.set_aside, Amount::of(usage, u64::from(answered)));
    }
}

impl Drop for SetAside {
    fn drop(&mut self) {
        if !self.is_settled {
            self.ledger.settle(self.account, self.set_aside, self.lost);
        }
    }
}
