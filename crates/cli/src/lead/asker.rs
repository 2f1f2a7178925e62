//! Questions of agents on their way to the screen of the lead, and the answers back.

use claw_agents::permission::{Answer, AskRequest, Presenter};
use futures_util::future::BoxFuture;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{mpsc, oneshot};

/// What the screen hears.
#[derive(Debug)]
pub(super) enum Asked {
    /// A question. Its reply dropped without an answer: nobody is there.
    Question {
        /// Which.
        id: u64,
        /// What is asked.
        request: Box<AskRequest>,
        /// Where the answer goes.
        reply: oneshot::Sender<Answer>,
    },
    /// Nobody waits for this answer any more.
    Withdrawn {
        /// Which.
        id: u64,
    },
    /// A word about an answer.
    Word(String),
}

/// Hands questions to the screen.
#[derive(Debug)]
pub(super) struct ScreenPresenter {
    /// The queue behind it shows one question at a time.
    door: mpsc::UnboundedSender<Asked>,
    next: AtomicU64,
}

/// Takes the question from the screen when nobody waits for it any more.
struct Standing<'a> {
    id: u64,
    door: &'a mpsc::UnboundedSender<Asked>,
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        // A screen that is gone shows nothing.
        let _ = self.door.send(Asked::Withdrawn { id: self.id });
    }
}

impl ScreenPresenter {
    /// The presenter, and the end of the queue that the screen reads.
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Asked>) {
        let (door, asked) = mpsc::unbounded_channel();
        (Self { door, next: AtomicU64::new(1) }, asked)
    }
}

impl Presenter for ScreenPresenter {
    fn present(&self, request: AskRequest) -> BoxFuture<'_, Option<Answer>> {
        Box::pin(async move {
            let id = self.next.fetch_add(1, Ordering::Relaxed);
            let (reply, answer) = oneshot::channel();
            self.door.send(Asked::Question { id, request: Box::new(request), reply }).ok()?;
            let _standing = Standing { id, door: &self.door };
            answer.await.ok()
        })
    }

    fn tell(&self, text: String) {
        // A screen that is gone shows nothing.
        let _ = self.door.send(Asked::Word(text));
    }
}
