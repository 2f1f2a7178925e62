//! What requests are paid from: each is reserved at its most before it leaves, and settled at what it cost.
//!
//! Owns the port and the arithmetic of a request's most. Must not know ceilings or who else draws.

use crate::model::Model;
use claw_providers::message::Block;
use claw_providers::models::{Price, default_output};
use claw_providers::request::Request;
use claw_providers::usage::Usage;
use futures_util::future::BoxFuture;

/// Bytes of text in a token, roughly, in every language that models are good at.
const BYTES_IN_A_TOKEN: u64 = 4;
/// Tokens of an image, whatever its size.
const IMAGE: u64 = 1_600;

/// Whoever pays for the requests of one agent.
pub trait Purse: Send + Sync {
    /// Sets aside what a request may cost. Waits while only what others have set aside is in the way.
    ///
    /// # Errors
    /// Nothing is left.
    fn reserve<'a>(&'a self, quote: &'a Quote) -> BoxFuture<'a, Result<Box<dyn Reserved>, Refused>>;
}

/// What was set aside for one request. Dropped without a word it counts as its input.
pub trait Reserved: Send {
    /// Fact: the request is over and cost this. `answered`: an answer came.
    fn settle(self: Box<Self>, usage: &Usage, answered: bool);
}

/// A request that is not paid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// A ceiling of the agent's own work: it fails.
    #[error("{0}")]
    Limit(String),
    /// A ceiling that holds for all: it goes on when that is raised.
    #[error("{0}")]
    Run(String),
}

/// The most that a request may cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Quote {
    /// Tokens sent, estimated.
    pub input: u64,
    /// Tokens asked for at most.
    pub output: u64,
    /// Of the dearest model of the list; `None` where the price of any is not known.
    pub price: Option<Price>,
    /// The first model without a known price.
    pub unpriced: Option<String>,
}

impl Quote {
    /// Of a request, whichever of its models answers.
    pub(crate) fn of(request: &Request, model: &dyn Model) -> Self {
        let input = bytes(request) / BYTES_IN_A_TOKEN + 1;
        let mut quote = Self { input, output: 0, price: Some(Price::FREE), unpriced: None };
        for name in request.models.iter() {
            let traits = model.traits_of(name);
            let most = default_output(name, traits.max_output);
            quote.output = quote.output.max(u64::from(request.max_output.map_or(most, |own| own.min(most))));
            match (traits.price, quote.price) {
                (Some(price), Some(dearest)) if price.output > dearest.output => quote.price = Some(price),
                (Some(_), _) => {}
                (None, _) => {
                    quote.price = None;
                    quote.unpriced.get_or_insert_with(|| name.clone());
                }
            }
        }
        quote
    }

    /// What a request counts as whose cost the service told only in part: its input, and what came of its answer.
    pub(crate) fn counted(&self, told: Usage, received: u64) -> Usage {
        if told.unknown == 0 {
            return told;
        }
        let mut usage = told;
        usage.input = usage.input.saturating_add(self.input.saturating_mul(told.unknown));
        usage.output = usage.output.saturating_add(received / BYTES_IN_A_TOKEN);
        usage.usd = told.usd.or_else(|| self.price.map(|price| price.cost(&usage)));
        usage
    }
}

fn bytes(request: &Request) -> u64 {
    let tools = request.tools.iter();
    let tools: usize = tools
        .map(|tool| tool.name.len() + tool.description.len() + tool.input_schema.to_string().len())
        .sum();
    let blocks = request.messages.iter().flat_map(|message| &message.content);
    let messages: u64 = blocks.map(of_block).sum();
    (request.system.len() + tools) as u64 + messages
}

fn of_block(block: &Block) -> u64 {
    let bytes = match block {
        Block::Text { text } => text.len(),
        Block::Thinking { thinking, .. } => thinking.len(),
        Block::RedactedThinking { data, .. } => data.len(),
        Block::ToolUse { id, name, input } => id.len() + name.len() + input.to_string().len(),
        Block::ToolResult { content, images, .. } => {
            return content.len() as u64 + images.len() as u64 * IMAGE * BYTES_IN_A_TOKEN;
        }
        Block::Image(_) => return IMAGE * BYTES_IN_A_TOKEN,
    };
    bytes as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_unknown_cost_counts_as_its_input_and_what_came() {
        let price = Price { input: 1.0, output: 10.0, cache_read: 0.0, cache_write: 0.0 };
        let quote = Quote { input: 100, output: 64_000, price: Some(price), unpriced: None };
        let silent = Usage { unknown: 1, usd: None, ..Usage::NOTHING };
        let counted = quote.counted(silent, 40);
        assert_eq!((counted.input, counted.output, counted.unknown), (100, 10, 1));
        assert_eq!(counted.usd, Some(200.0 / 1_000_000.0));
        let told = Usage { input: 7, ..Usage::NOTHING };
        assert_eq!(quote.counted(told, 40), told);
    }
}
