//! One request as a task: asks the model, turns its stream into news, watches for silence.
//!
//! Owns coalescing and the idle limit. Must not know what an answer means.

use crate::event::{AgentEvent, EventSink};
use crate::model::Model;
use crate::purse::Refused;
use claw_kernel::cancel::CancelToken;
use claw_providers::error::ProviderError;
use claw_providers::event::{Answer, RequestEvent, StreamEvent, WaitReason};
use claw_providers::message::Block;
use claw_providers::request::Request;
use claw_providers::usage::Usage;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

/// Events of the stream that may wait here.
const QUEUE: usize = 64;
/// Text is passed on when it is so long or so old.
const CHUNK: usize = 512;
const CHUNK_AGE: Duration = Duration::from_millis(50);
/// At most one `Alive` in this time.
const ALIVE_EVERY: Duration = Duration::from_secs(1);
/// How long a silent request may take to end once it is cancelled.
const GRACE: Duration = Duration::from_secs(1);

/// How a request ended.
#[derive(Debug)]
pub(crate) enum AskEnd {
    Answered(Box<Answer>),
    Failed(Box<ProviderError>),
    /// No byte came for so long; what it cost, where that was told.
    Silent(Duration, Option<Usage>),
    /// Nothing is left to pay it from: it was not sent.
    Unaffordable(Refused),
    /// The task died.
    Panicked(String),
}

/// A request's end, and what was thrown away on the way.
#[derive(Debug)]
pub(crate) struct AskReport {
    pub(crate) end: AskEnd,
    pub(crate) abandoned: Vec<Vec<Block>>,
    /// Bytes of content that came, in all tries.
    pub(crate) received: u64,
}

impl AskReport {
    /// A request that ended without a byte.
    pub(crate) fn without_news(end: AskEnd) -> Self {
        Self { end, abandoned: Vec::new(), received: 0 }
    }
}

/// What a request's task needs.
pub(crate) struct Asking {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) request: Request,
    pub(crate) idle: Duration,
    pub(crate) events: Arc<dyn EventSink>,
    pub(crate) cancel: CancelToken,
}

impl Asking {
    /// Asks until there is an end.
    pub(crate) async fn run(self) -> AskReport {
        let (sender, mut stream) = mpsc::channel(QUEUE);
        let cancel = self.cancel.child_token();
        let mut news = News::new(self.events, self.idle);
        let mut asked = self.model.ask(self.request, &sender, &cancel);
        let end = loop {
            let (flush_at, silent_at) = (news.flush_at, news.silent_at);
            tokio::select! {
                biased;
                Some(event) = stream.recv() => news.take(event).await,
                end = &mut asked => {
                    while let Ok(event) = stream.try_recv() {
                        news.take(event).await;
                    }
                    break match end {
                        Ok(answer) => AskEnd::Answered(Box::new(answer)),
                        Err(error) => AskEnd::Failed(Box::new(error)),
                    };
                }
                () = at(flush_at) => news.flush().await,
                () = at(silent_at) => {
                    cancel.cancel();
                    // Its usage is worth a moment; its answer is not.
                    stream.close();
                    let usage = match tokio::time::timeout(GRACE, &mut asked).await {
                        Ok(Ok(answer)) => Some(answer.usage),
                        Ok(Err(error)) => Some(error.usage),
                        Err(_) => None,
                    };
                    break AskEnd::Silent(self.idle, usage);
                }
            }
        };
        news.flush().await;
        AskReport { end, abandoned: news.abandoned, received: news.received }
    }
}

async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => pending().await,
    }
}

enum Pending {
    Nothing,
    Text(String),
    Thinking(String),
}

struct News {
    events: Arc<dyn EventSink>,
    idle: Duration,
    pending: Pending,
    flush_at: Option<Instant>,
    /// None while the request waits: for its turn, or between two tries.
    silent_at: Option<Instant>,
    alive_at: Option<Instant>,
    abandoned: Vec<Vec<Block>>,
    received: u64,
}

impl News {
    fn new(events: Arc<dyn EventSink>, idle: Duration) -> Self {
        Self {
            events,
            idle,
            pending: Pending::Nothing,
            flush_at: None,
            silent_at: None,
            alive_at: None,
            abandoned: Vec::new(),
            received: 0,
        }
    }

    async fn take(&mut self, event: RequestEvent) {
        match event {
            RequestEvent::Sent { .. } => self.silent_at = Some(Instant::now() + self.idle),
            RequestEvent::Stream(event) => {
                self.stream(event).await;
                self.silent_at = Some(Instant::now() + self.idle);
            }
            RequestEvent::Withdrawn { partial } => {
                self.pending = Pending::Nothing;
                self.flush_at = None;
                if !partial.is_empty() {
                    self.abandoned.push(partial);
                }
                self.events.send(AgentEvent::Withdrawn).await;
            }
            RequestEvent::Waiting { delay, why, error, .. } => {
                self.silent_at = None;
                let why = match why {
                    WaitReason::RateLimit => "rate limited",
                    WaitReason::Overloaded => "overloaded",
                    WaitReason::Transient => "connection lost",
                    WaitReason::Breaker => {
                        return self.events.send(AgentEvent::Held { why: error }).await;
                    }
                };
                self.events.send(AgentEvent::Waiting { delay, why, error }).await;
            }
            RequestEvent::FellBack { to, error, .. } => {
                self.events.send(AgentEvent::FellBack { to, error }).await;
            }
        }
    }

    async fn stream(&mut self, event: StreamEvent) {
        self.received += match &event {
            StreamEvent::TextDelta { text, .. } => text.len(),
            StreamEvent::ThinkingDelta { thinking, .. } => thinking.len(),
            StreamEvent::ToolInputDelta { json, .. } => json.len(),
            StreamEvent::MessageStart { .. }
            | StreamEvent::TextStart { .. }
            | StreamEvent::SignatureDelta { .. }
            | StreamEvent::RedactedThinking { .. }
            | StreamEvent::ToolUseStart { .. }
            | StreamEvent::BlockStop { .. }
            | StreamEvent::Usage(_)
            | StreamEvent::Stop(_)
            | StreamEvent::MessageStop
            | StreamEvent::Error { .. } => 0,
        } as u64;
        match event {
            StreamEvent::TextDelta { text, .. } => {
                if matches!(self.pending, Pending::Thinking(_)) {
                    self.flush().await;
                }
                match &mut self.pending {
                    Pending::Text(pending) => pending.push_str(&text),
                    Pending::Nothing | Pending::Thinking(_) => self.pending = Pending::Text(text),
                }
            }
            StreamEvent::ThinkingDelta { thinking, .. } => {
                if matches!(self.pending, Pending::Text(_)) {
                    self.flush().await;
                }
                match &mut self.pending {
                    Pending::Thinking(pending) => pending.push_str(&thinking),
                    Pending::Nothing | Pending::Text(_) => self.pending = Pending::Thinking(thinking),
                }
            }
            StreamEvent::MessageStart { .. }
            | StreamEvent::TextStart { .. }
            | StreamEvent::SignatureDelta { .. }
            | StreamEvent::RedactedThinking { .. }
            | StreamEvent::ToolUseStart { .. }
            | StreamEvent::ToolInputDelta { .. }
            | StreamEvent::BlockStop { .. }
            | StreamEvent::Usage(_)
            | StreamEvent::Stop(_)
            | StreamEvent::MessageStop
            | StreamEvent::Error { .. } => self.alive().await,
        }
        let length = match &self.pending {
            Pending::Nothing => return,
            Pending::Text(text) | Pending::Thinking(text) => text.len(),
        };
        if length >= CHUNK {
            self.flush().await;
        } else if self.flush_at.is_none() {
            self.flush_at = Some(Instant::now() + CHUNK_AGE);
        }
    }

    async fn alive(&mut self) {
        let now = Instant::now();
        if self.alive_at.is_none_or(|last| now >= last + ALIVE_EVERY) {
            self.alive_at = Some(now);
            self.events.send(AgentEvent::Alive).await;
        }
    }

    async fn flush(&mut self) {
        self.flush_at = None;
        let event = match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Text(text) if !text.is_empty() => AgentEvent::Text(text),
            Pending::Thinking(text) if !text.is_empty() => AgentEvent::Thinking(text),
            Pending::Nothing | Pending::Text(_) | Pending::Thinking(_) => return,
        };
        self.alive_at = Some(Instant::now());
        self.events.send(event).await;
    }
}
