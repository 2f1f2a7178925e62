//! Listens at the model's door: what goes in and what comes out becomes lines of `stream-json`.

use super::shapes::{self, Partial};
use crate::terminal::Stdout;
use claw_agents::compaction::is_summary;
use claw_agents::model::{Model, ModelTraits};
use claw_kernel::cancel::CancelToken;
use claw_kernel::ids::SessionId;
use claw_providers::error::ProviderError;
use claw_providers::event::{Answer, RequestEvent, StreamEvent};
use claw_providers::request::Request;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::mpsc;

/// Events that may wait for a slow reader.
const QUEUE: usize = 64;

/// A model whose talk is printed.
pub(super) struct Tee {
    inner: Arc<dyn Model>,
    out: Arc<Stdout>,
    session: SessionId,
    /// Pieces of text as they come, not only whole messages.
    partial: bool,
    /// The results printed last: a request that is sent again prints them once.
    results: Mutex<Option<String>>,
}

impl Tee {
    pub(super) fn new(inner: Arc<dyn Model>, out: Arc<Stdout>, session: SessionId, partial: bool) -> Self {
        Self { inner, out, session, partial, results: Mutex::default() }
    }

    async fn print_results(&self, results: &Value) {
        let line = results.to_string();
        let is_new = {
            let mut last = self.results.lock().unwrap_or_else(PoisonError::into_inner);
            let is_new = last.as_ref() != Some(&line);
            *last = Some(line.clone());
            is_new
        };
        if is_new {
            let _ = self.out.line(line).await;
        }
    }

    async fn print(&self, line: &Value) {
        // That nobody reads any more is noticed by whoever owns the output.
        let _ = self.out.line(line.to_string()).await;
    }

    async fn pass(
        &self,
        mut from: mpsc::Receiver<RequestEvent>,
        to: &mpsc::Sender<RequestEvent>,
    ) -> Option<String> {
        let mut partial = Partial::default();
        let mut last = None;
        while let Some(event) = from.recv().await {
            if let RequestEvent::Stream(StreamEvent::MessageStart { id, .. }) = &event {
                last.clone_from(id);
            }
            match &event {
                RequestEvent::Stream(event) if self.partial => {
                    for piece in partial.on(event) {
                        self.print(&shapes::stream_event(self.session, &piece)).await;
                    }
                }
                RequestEvent::Withdrawn { .. } if self.partial => {
                    self.print(&shapes::withdrawn(self.session)).await
                }
                RequestEvent::Stream(_)
                | RequestEvent::Withdrawn { .. }
                | RequestEvent::Sent { .. }
                | RequestEvent::Waiting { .. }
                | RequestEvent::FellBack { .. } => {}
            }
            if to.send(event).await.is_err() {
                break;
            }
        }
        last
    }
}

impl Model for Tee {
    fn ask<'a>(
        &'a self,
        request: Request,
        events: &'a mpsc::Sender<RequestEvent>,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<Answer, ProviderError>> {
        if is_summary(&request) {
            return self.inner.ask(request, events, cancel);
        }
        Box::pin(async move {
            if let Some(results) =
                request.messages.last().and_then(|last| shapes::results(self.session, last))
            {
                self.print_results(&results).await;
            }
            let (door, inbox) = mpsc::channel(QUEUE);
            let asking = async {
                let answer = self.inner.ask(request, &door, cancel).await;
                drop(door);
                answer
            };
            let (answer, id) = tokio::join!(asking, self.pass(inbox, events));
            if let Ok(answer) = &answer {
                self.print(&shapes::assistant(self.session, id.as_deref(), answer)).await;
            }
            answer
        })
    }

    fn traits_of(&self, model: &str) -> ModelTraits {
        self.inner.traits_of(model)
    }

    fn default_model(&self) -> String {
        self.inner.default_model()
    }
}
