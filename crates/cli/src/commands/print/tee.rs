//! Listens at the model's door: what goes in and what comes out becomes lines of `stream-json`.

use super::shapes::{self, Partial};
use crate::terminal::Stdout;
use claw_agents::model::{Model, ModelTraits};
use claw_kernel::cancel::CancelToken;
use claw_kernel::ids::SessionId;
use claw_providers::error::ProviderError;
use claw_providers::event::{Answer, RequestEvent, StreamEvent};
use claw_providers::request::Request;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Events that may wait for a slow reader.
const QUEUE: usize = 64;

/// A model whose talk is printed.
pub(super) struct Tee {
    pub(super) inner: Arc<dyn Model>,
    pub(super) out: Arc<Stdout>,
    pub(super) session: SessionId,
    /// Pieces of text as they come, not only whole messages.
    pub(super) partial: bool,
}

impl Tee {
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
        Box::pin(async move {
            if let Some(results) =
                request.messages.last().and_then(|last| shapes::results(self.session, last))
            {
                self.print(&results).await;
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
