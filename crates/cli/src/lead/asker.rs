//! Questions of agents on their way to the screen of the lead, and the answers back.

use super::act::Answer;
use claw_agents::permission::{AskRequest, Asker, Reply};
use futures_util::future::BoxFuture;
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// Questions that may wait for the screen to take them.
const QUEUE: usize = 16;

/// One question.
#[derive(Debug)]
pub(super) struct Asked {
    /// What is asked.
    pub(super) request: AskRequest,
    /// Dropped without an answer: nobody is there.
    pub(super) reply: oneshot::Sender<Answer>,
}

/// Hands questions to the screen.
#[derive(Debug)]
pub(super) struct ScreenAsker {
    door: mpsc::Sender<Asked>,
    /// What was allowed for this session: agent's name, tool and subject, exactly.
    allowed: Mutex<HashSet<(String, String, String)>>,
}

impl ScreenAsker {
    /// The asker, and the end of the queue that the screen reads.
    pub(super) fn new() -> (Self, mpsc::Receiver<Asked>) {
        let (door, asked) = mpsc::channel(QUEUE);
        (Self { door, allowed: Mutex::default() }, asked)
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
            let (reply, answer) = oneshot::channel();
            if self.door.send(Asked { request, reply }).await.is_err() {
                return Reply::Nobody;
            }
            match answer.await {
                Ok(Answer::Once) => Reply::Allow,
                Ok(Answer::Session) => {
                    allowed().insert(key);
                    Reply::Allow
                }
                Ok(Answer::No) => Reply::Deny { message: None },
                Ok(Answer::NoBecause(words)) => Reply::Deny { message: Some(words) },
                Err(_) => Reply::Nobody,
            }
        })
    }
}
