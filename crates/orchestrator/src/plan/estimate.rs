//! What a plan may cost, before anything runs: agents that it knows of or allows for, and their price by typical tokens.
//!
//! Pure; prices come from outside. Not a ceiling: `budget` is.

use super::model::{EachSource, Node, NodeIx, Plan};
use claw_providers::models::Price;
use claw_providers::usage::Usage;
use std::collections::BTreeMap;

/// Turns of a typical agent.
const TURNS: u64 = 8;
/// Tokens of instructions, tools and prompt.
const PROMPT: u64 = 4_000;
/// Tokens that a turn adds: results of tools.
const RESULTS: u64 = 2_000;
/// Tokens that a model writes in a turn.
const WRITTEN: u64 = 500;

/// What a plan may come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Agents, where every list has as many items as it may and every loop as many iterations.
    pub agents: usize,
    /// Whether that is a bound and not a count: lists are made while it runs, loops may end early.
    pub at_most: bool,
    /// Dollars, of the agents whose model has a known price.
    pub usd: f64,
    /// Agents on models without a known price.
    pub unpriced: usize,
    /// Agents by model, as named in the file.
    pub by_model: BTreeMap<String, usize>,
}

/// What an agent of so many turns at most typically uses: each turn reads all that came before from the cache.
pub fn typical(max_turns: u32) -> Usage {
    let turns = TURNS.min(u64::from(max_turns)).max(1);
    let earlier: u64 = (1..turns).map(|turn| PROMPT + RESULTS * (turn - 1)).sum();
    Usage {
        input: PROMPT + RESULTS * (turns - 1),
        output: WRITTEN * turns,
        cache_read: earlier,
        ..Usage::NOTHING
    }
}

impl Plan {
    /// Estimates. `price` knows the price of a model by its name; `default` is the model of agents that name none.
    pub fn estimate(&self, default: &str, price: &dyn Fn(&str) -> Option<Price>) -> Estimate {
        let mut sum =
            Estimate { agents: 0, at_most: false, usd: 0.0, unpriced: 0, by_model: BTreeMap::new() };
        for (at, node) in self.nodes.iter().enumerate() {
            let Some(agent) = node.agent() else { continue };
            let (times, exact) = self.times(NodeIx(u32::try_from(at).unwrap_or(u32::MAX)));
            let named = agent.models.first().or_else(|| agent.definition.models.first());
            let model = named.map_or(default, String::as_str);
            sum.agents = sum.agents.saturating_add(times);
            sum.at_most |= !exact;
            let count = sum.by_model.entry(model.to_owned()).or_default();
            *count = count.saturating_add(times);
            match price(model) {
                #[expect(clippy::cast_precision_loss, reason = "counts of agents are far below 2^52")]
                Some(price) => sum.usd += price.cost(&typical(agent.max_turns)) * times as f64,
                None => sum.unpriced = sum.unpriced.saturating_add(times),
            }
        }
        sum
    }

    /// How often a node may run, and whether that is certain.
    fn times(&self, ix: NodeIx) -> (usize, bool) {
        let node = &self.nodes[ix.at()];
        let (outside, certain) = node.parent.map_or((1, true), |parent| self.times(parent));
        let (items, listed) = items(node);
        let iterations = node.repeat.as_ref().map_or(1, |repeat| repeat.max as usize);
        let times = outside.saturating_mul(items).saturating_mul(iterations);
        (times, certain && listed && iterations == 1 && node.when.is_none())
    }
}

fn items(node: &Node) -> (usize, bool) {
    let Some(each) = &node.each else { return (1, true) };
    match &each.source {
        EachSource::Static(items) => (items.len(), true),
        EachSource::Listed(items) => (items.len(), true),
        EachSource::Items(_) | EachSource::Glob { .. } | EachSource::Lines(_) | EachSource::Jsonl(_) => {
            (each.max.unwrap_or(1), false)
        }
    }
}

impl Estimate {
    /// Lines for people: what it comes to and how that was found.
    pub fn text(&self, workflow: &str) -> String {
        let most = if self.at_most { "up to " } else { "" };
        let agents = if self.agents == 1 { "agent" } else { "agents" };
        let mut text = format!("{workflow} starts {most}{} {agents}", self.agents);
        let models: Vec<String> =
            self.by_model.iter().map(|(model, count)| format!("{count} on {model}")).collect();
        text.push_str(&format!(" ({}); ", models.join(", ")));
        match (self.agents - self.unpriced.min(self.agents), self.unpriced) {
            (0, _) => text.push_str("their price is not known"),
            (_, 0) => text.push_str(&format!("about {:.2} USD", self.usd)),
            (_, unpriced) => {
                text.push_str(&format!("about {:.2} USD and {unpriced} without a known price", self.usd));
            }
        }
        let usage = typical(u32::MAX);
        text.push_str(&format!(
            ".\nThat is {TURNS} turns for each: {}k tokens read, {}k of them from the cache, {}k written; lists as long as their `max`, loops to their end.",
            (usage.input + usage.cache_read) / 1000,
            usage.cache_read / 1000,
            usage.output / 1000,
        ));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typical_agent_reads_more_from_the_cache_the_longer_it_works() {
        let one = typical(1);
        assert_eq!((one.input, one.cache_read, one.output), (4_000, 0, 500));
        let two = typical(2);
        assert_eq!((two.input, two.cache_read, two.output), (6_000, 4_000, 1_000));
        assert_eq!(typical(8), typical(1_000));
    }

    #[test]
    fn the_text_says_what_it_comes_to_and_how_that_was_found() {
        let estimate = Estimate {
            agents: 41,
            at_most: true,
            usd: 5.125,
            unpriced: 1,
            by_model: BTreeMap::from([("opus".to_owned(), 40), ("own".to_owned(), 1)]),
        };
        assert_eq!(
            estimate.text("review"),
            "review starts up to 41 agents (40 on opus, 1 on own); about 5.12 USD and 1 without a known price.\n\
             That is 8 turns for each: 88k tokens read, 70k of them from the cache, 4k written; \
             lists as long as their `max`, loops to their end."
        );
    }
}
