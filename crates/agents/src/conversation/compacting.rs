//! Compaction inside a conversation: before a request that would be too long, and after one that was.
//!
//! Owns the request for the summary and the change of the history. Must not decide what goes: `crate::compaction` does.

use super::asking::{AskEnd, AskReport, Asking};
use super::history::History;
use super::paying;
use super::shell::{Finished, Post, Shell};
use crate::compaction::{CompactionSettings, Fullness, Plan, SYSTEM, Squeeze, question, tokens_of_all};
use crate::event::{AgentEvent, EventSink};
use crate::model::Model;
use crate::outcome::AgentOutcome;
use crate::purse::Purse;
use crate::transcript::{Record, cut_results};
use claw_kernel::cancel::CancelToken;
use claw_kernel::tasks::{self, panic_message};
use claw_providers::error::ErrorClass;
use claw_providers::message::Message;
use claw_providers::request::{Request, ToolChoice};
use claw_providers::usage::Usage;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

/// Compactions in a row after a service said that a request is too long.
const MOST_OVERFLOWS: u32 = 2;

/// What a conversation knows of its own size.
pub(crate) struct Compacting {
    pub(crate) settings: CompactionSettings,
    pub(crate) fullness: Fullness,
    /// The request that is under way, or that waits for the summary.
    pub(super) asked: (u32, Option<&'static str>),
    pub(super) overflows: u32,
}

impl Compacting {
    pub(crate) fn new(settings: CompactionSettings, fullness: Fullness) -> Self {
        Self { settings, fullness, asked: (0, None), overflows: 0 }
    }
}

/// A summary to be made.
pub(crate) struct Summarising {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) models: Arc<[String]>,
    pub(crate) purse: Option<Arc<dyn Purse>>,
    pub(crate) idle: Duration,
    pub(crate) cancel: CancelToken,
    pub(crate) plan: Plan,
    /// What the user wants kept above all.
    pub(crate) keep: Option<String>,
}

/// A summary.
#[derive(Debug)]
pub(crate) struct Summarised {
    pub(crate) plan: Plan,
    pub(crate) text: String,
    pub(crate) usage: Usage,
    /// The model that wrote it.
    pub(crate) model: Option<String>,
    /// Why none did.
    pub(crate) without_model: Option<String>,
}

/// Nobody sees a summary come.
struct Nobody;

impl EventSink for Nobody {
    fn send(&self, _: AgentEvent) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

impl Summarising {
    /// Asks the model; without an answer the summary is made from the messages themselves.
    pub(crate) async fn run(self) -> Summarised {
        let Self { model, models, purse, idle, cancel, plan, keep } = self;
        let window = models.first().and_then(|name| model.traits_of(name).window).map(u64::from);
        let request = Request {
            models,
            system: SYSTEM.into(),
            messages: vec![Arc::new(Message::user(question(&plan, keep.as_deref(), window)))],
            tools: Arc::from([]),
            tool_choice: ToolChoice::Auto,
            max_output: None,
            effort: None,
            answer_schema: None,
        };
        let asking = Asking { model, request, idle, events: Arc::new(Nobody), cancel };
        let paid = async {
            match &purse {
                Some(purse) => paying::ask(asking, &**purse).await,
                None => asking.run().await,
            }
        };
        let report = AssertUnwindSafe(paid)
            .catch_unwind()
            .await
            .unwrap_or_else(|panic| AskReport::without_news(AskEnd::Panicked(panic_message(panic.as_ref()))));
        summarised(plan, report.end)
    }
}

fn summarised(plan: Plan, end: AskEnd) -> Summarised {
    let (usage, model, points, why) = match end {
        AskEnd::Answered(answer) => {
            let text =
                Message { role: claw_providers::message::Role::Assistant, content: answer.blocks }.text();
            let why = text.trim().is_empty().then(|| "the model wrote nothing".to_owned());
            (answer.usage, Some(answer.model), Some(text), why)
        }
        AskEnd::Failed(error) => (error.usage, None, None, Some(error.to_string())),
        AskEnd::Silent(idle, usage) => {
            let why = format!("no data from the model for {} s", idle.as_secs());
            (usage.unwrap_or(Usage::NOTHING), None, None, Some(why))
        }
        AskEnd::Unaffordable(refused) => (Usage::NOTHING, None, None, Some(refused.to_string())),
        AskEnd::Panicked(message) => (Usage::NOTHING, None, None, Some(message)),
    };
    let text = plan.text(points.as_deref());
    Summarised { plan, text, usage, model, without_model: why }
}

/// The history with the summary in the place of what went, and the record that says so.
pub(crate) fn applied(history: &History, done: &Summarised) -> (History, Record, AgentEvent) {
    let plan = &done.plan;
    let messages = history.messages();
    let before = tokens_of_all(messages);
    let mut new = History::default();
    new.push(Message::user(done.text.clone()));
    for message in &messages[messages.len().saturating_sub(plan.kept)..] {
        let mut message = (**message).clone();
        if let Some(most) = plan.cut {
            cut_results(&mut message, most);
        }
        new.push(message);
    }
    let after = tokens_of_all(new.messages());
    let removed = plan.gone.len();
    let record = Record::Compaction {
        summary: done.text.clone(),
        kept: plan.kept,
        cut: plan.cut,
        removed,
        before,
        after,
    };
    let event = AgentEvent::Compacted { removed, before, after, without_model: done.without_model.clone() };
    (new, record, event)
}

impl Shell {
    pub(super) fn window(&self) -> Option<u64> {
        let first = self.shape.models.first()?;
        self.desk.services.model.traits_of(first).window.map(u64::from)
    }

    /// Sends the history, or first makes room for it.
    pub(super) async fn ask_with_room(&mut self, turn: u32, forced: Option<&'static str>, post: &Post) {
        self.compacting.asked = (turn, forced);
        let (window, settings) = (self.window(), self.compacting.settings);
        let history = self.core.history().messages();
        if self.compacting.fullness.is_too_full(history, window, &settings)
            && let Some(plan) = Plan::of(history, settings.preserve_recent_messages, window, Squeeze::Usual)
        {
            return self.summarise(plan, post);
        }
        self.ask(turn, forced, post).await;
    }

    /// A request that was too long: room is made, and it is sent again.
    pub(super) fn makes_room(&mut self, report: &AskReport, post: &Post) -> bool {
        let AskEnd::Failed(error) = &report.end else { return false };
        if error.class != ErrorClass::ContextOverflow
            || self.compacting.overflows >= MOST_OVERFLOWS
            || !self.core.is_asking()
        {
            return false;
        }
        let squeeze = if self.compacting.overflows == 0 { Squeeze::Usual } else { Squeeze::Hard };
        let preserve = self.compacting.settings.preserve_recent_messages;
        let history = self.core.history().messages();
        let plan = Plan::of(history, preserve, self.window(), squeeze)
            .or_else(|| Plan::of(history, preserve, self.window(), Squeeze::Hard));
        let Some(plan) = plan else { return false };
        self.compacting.overflows += 1;
        let usage = error.usage;
        if usage != Usage::NOTHING {
            self.spend(usage, None);
        }
        self.summarise(plan, post);
        true
    }

    fn summarise(&mut self, plan: Plan, post: &Post) {
        let cancel = self.begin_work();
        let order = Summarising {
            model: self.desk.services.model.clone(),
            models: self.shape.models.clone(),
            purse: self.shape.purse.clone(),
            idle: self.shape.idle,
            cancel,
            plan,
            keep: None,
        };
        let (post, epoch) = (post.clone(), self.epoch());
        let task = tasks::spawn("compaction", async move {
            let done = Box::new(order.run().await);
            post(Finished::Summarised { epoch, done });
        });
        self.running_request(task.abort_handle());
    }

    /// The summary is there: it takes its place, and what waited for it is asked.
    pub(super) async fn summarised(&mut self, done: Summarised, post: &Post) -> Option<AgentOutcome> {
        if done.usage != Usage::NOTHING {
            self.spend(done.usage, done.model.clone());
        }
        if !self.core.is_asking() {
            return self
                .on(super::core::Event::RequestFailed(crate::outcome::AgentEnd::Cancelled), post)
                .await;
        }
        let (history, record, event) = applied(self.core.history(), &done);
        self.core.replace_history(history);
        self.compacting.fullness.forget();
        self.write(&record);
        if let Err(error) = self.flush().await {
            return self.broken_log(&error.to_string(), post).await;
        }
        self.tell(event).await;
        let (turn, forced) = self.compacting.asked;
        self.ask(turn, forced, post).await;
        None
    }
}
