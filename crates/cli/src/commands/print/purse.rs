//! `--max-usd`: no request starts once the money is spent. What is over: at most the requests in flight.

use claw_agents::purse::{Purse, Quote, Refused, Reserved};
use claw_providers::usage::Usage;
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, PoisonError};

/// The money of one session.
pub(super) struct SessionPurse {
    most: f64,
    spent: Arc<Mutex<f64>>,
}

impl SessionPurse {
    /// `before`: what the session has cost already.
    pub(super) fn new(most: f64, before: f64) -> Self {
        Self { most, spent: Arc::new(Mutex::new(before)) }
    }
}

struct Taken {
    input: f64,
    spent: Arc<Mutex<f64>>,
    settled: bool,
}

fn add(spent: &Mutex<f64>, usd: f64) {
    // A sum: whatever a panic left in it is whole.
    *spent.lock().unwrap_or_else(PoisonError::into_inner) += usd;
}

impl Purse for SessionPurse {
    fn reserve<'a>(&'a self, quote: &'a Quote) -> BoxFuture<'a, Result<Box<dyn Reserved>, Refused>> {
        Box::pin(std::future::ready(self.take(quote)))
    }
}

impl SessionPurse {
    fn take(&self, quote: &Quote) -> Result<Box<dyn Reserved>, Refused> {
        let Some(price) = quote.price else {
            let model = quote.unpriced.as_deref().unwrap_or("the model");
            return Err(Refused::Run(format!("the price of {model} is not known, so --max-usd cannot hold")));
        };
        let input = price.cost(&Usage { input: quote.input, ..Usage::NOTHING });
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        if *spent + input >= self.most && price.input > 0.0 {
            return Err(Refused::Run(format!(
                "the budget of ${:.4} (--max-usd) is spent: ${:.4} so far, and the next request costs at least ${input:.4}",
                self.most, *spent
            )));
        }
        *spent += input;
        Ok(Box::new(Taken { input, spent: self.spent.clone(), settled: false }))
    }
}

impl Reserved for Taken {
    fn settle(mut self: Box<Self>, usage: &Usage, answered: bool) {
        let told = usage.usd.filter(|_| answered || usage.total() > 0);
        add(&self.spent, told.unwrap_or(if answered { self.input } else { 0.0 }) - self.input);
        self.settled = true;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // Dropped without a word it counts as its input, which is counted already.
        debug_assert!(self.settled || self.input >= 0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_providers::models::Price;

    #[test]
    fn nothing_is_sent_once_the_money_is_spent_and_what_it_really_cost_counts() {
        let price = Price { input: 1.0, output: 1.0, cache_read: 0.0, cache_write: 0.0 };
        let quote = Quote { input: 100_000, output: 0, price: Some(price), unpriced: None };
        let purse = SessionPurse::new(1.0, 0.5);
        let first = purse.take(&quote).unwrap_or_else(|refused| panic!("{refused}"));
        first.settle(&Usage { usd: Some(0.45), ..Usage::NOTHING }, true);
        let refused = purse.take(&quote).err().unwrap().to_string();
        assert!(refused.contains("--max-usd") && refused.contains("0.9500"), "{refused}");
        let unpriced = Quote { price: None, unpriced: Some("x".into()), ..quote };
        assert!(purse.take(&unpriced).is_err());
    }
}
