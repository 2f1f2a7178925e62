//! Questions of agents on their way to the screen of the lead, and the answers back.

use super::act::Answer;
use claw_agents::permission::{AskRequest, Asker, Reply};
use futures_util::future::BoxFuture;
use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
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
}

/// Hands questions to the screen.
#[derive(Debug)]
pub(super) struct ScreenAsker {
    /// As many as agents that wait, which are bounded.
    door: mpsc::UnboundedSender<Asked>,
    next: AtomicU64,
    /// What was allowed for this session: agent's name, tool and subject, exactly.
    allowed: Mutex<HashSet<(String, String, String)>>,
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

impl ScreenAsker {
    /// The asker, and the end of the queue that the screen reads.
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<Asked>) {
        let (door, asked) = mpsc::unbounded_channel();
        (Self { door, next: AtomicU64::new(1), allowed: Mutex::default() }, asked)
    }

    async fn present(&self, request: AskRequest) -> Option<Answer> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        self.door.send(Asked::Question { id, request: Box::new(request), reply }).ok()?;
        let _standing = Standing { id, door: &self.door };
        answer.await.ok()
    }
}

impl Asker for ScreenAsker {
    fn ask(&self, request: AskRequest) -> BoxFuture<'_, Reply> {
        Box::pin(async move {
            let key = (request.label.clone(), request.tool.clone(), request.subject.clone());
            // A panic while it was held left a set that is whole.
            let allowed = || self.allowed.lock().unwrap_or_else(PoisonError::into_inner);
            if allowed().contains(&key) {
                return Reply::Allow;
            }
            match self.present(request).await {
                Some(Answer::Once) => Reply::Allow,
                Some(Answer::Session) => {
                    allowed().insert(key);
                    Reply::Allow
                }
                Some(Answer::No) => Reply::Deny { message: None },
                Some(Answer::NoBecause(words)) => Reply::Deny { message: Some(words) },
                None => Reply::Nobody,
            }
        })
    }
}
