//! One request with its payment: reserved before it leaves, settled when it is over.
//!
//! Owns the order of the two. Must not know ceilings.

use super::asking::{AskEnd, AskReport, Asking};
use crate::event::AgentEvent;
use crate::purse::{Purse, Quote, Refused, Reserved};
use claw_providers::error::{ErrorClass, ProviderError, ProviderErrorKind};
use claw_providers::usage::Usage;
use std::future::ready;
use std::time::Duration;

/// One request of which nothing was told.
const UNTOLD: Usage = Usage { unknown: 1, usd: None, ..Usage::NOTHING };

/// Asks, where that can be paid.
pub(super) async fn ask(asking: Asking, purse: &dyn Purse) -> AskReport {
    let quote = Quote::of(&asking.request, &*asking.model);
    let reserved = match reserve(&asking, purse, &quote).await {
        Ok(reserved) => reserved,
        Err(end) => return AskReport::without_news(end),
    };
    let mut report = asking.run().await;
    let received = report.received;
    let (usage, answered) = match &mut report.end {
        AskEnd::Answered(answer) => {
            answer.usage = quote.counted(answer.usage, received);
            (answer.usage, true)
        }
        AskEnd::Failed(error) => {
            error.usage = quote.counted(error.usage, received);
            (error.usage, false)
        }
        AskEnd::Silent(_, told) => {
            let counted = quote.counted(told.unwrap_or(UNTOLD), received);
            *told = Some(counted);
            (counted, false)
        }
        AskEnd::Unaffordable(_) | AskEnd::Panicked(_) => (Usage::NOTHING, false),
    };
    reserved.settle(&usage, answered);
    report
}

async fn reserve(asking: &Asking, purse: &dyn Purse, quote: &Quote) -> Result<Box<dyn Reserved>, AskEnd> {
    let mut reserving = purse.reserve(quote);
    let end = tokio::select! {
        biased;
        () = asking.cancel.cancelled() => return Err(cancelled()),
        end = &mut reserving => Some(end),
        () = ready(()) => None,
    };
    let end: Result<Box<dyn Reserved>, Refused> = match end {
        Some(end) => end,
        None => {
            let error = "what is left of the budget is set aside for requests that run".to_owned();
            let waiting = AgentEvent::Waiting { delay: Duration::ZERO, why: "budget in use", error };
            asking.events.send(waiting).await;
            tokio::select! {
                biased;
                () = asking.cancel.cancelled() => return Err(cancelled()),
                end = &mut reserving => end,
            }
        }
    };
    end.map_err(AskEnd::Unaffordable)
}

fn cancelled() -> AskEnd {
    AskEnd::Failed(Box::new(ProviderError {
        kind: ProviderErrorKind::Cancelled,
        class: ErrorClass::Cancelled,
        retry_at: None,
        usage: Usage::NOTHING,
        partial: Vec::new(),
    }))
}
