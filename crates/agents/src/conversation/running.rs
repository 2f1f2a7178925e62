//! The owner of one conversation: starts its actor, passes orders on, waits for the outcome.

use super::actor::{ConversationActor, ConversationMsg};
use super::core::Beginning;
use super::shell::{Remains, Shell, failed};
use super::steering::{Heard, MOST_STEERING, Room, Steering};
use crate::outcome::{AgentEnd, AgentOutcome, FailureClass};
use claw_kernel::cancel::CancelToken;
use claw_kernel::supervise;
use claw_kernel::tasks::TaskHandle;
use claw_providers::message::Block;
use claw_providers::usage::Usage;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use tokio::sync::{mpsc, oneshot};

/// Why a message did not reach an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotSteered {
    /// It has ended.
    #[error("the agent has ended")]
    Ended,
    /// Too many messages wait already.
    #[error("{MOST_STEERING} messages wait already; the agent takes them at its next step")]
    Full,
}

/// A running agent. Dropping it leaves the agent running: its token ends it.
pub struct RunningAgent {
    pub(crate) task: TaskHandle<AgentOutcome>,
    pub(crate) orders: Orders,
}

/// What can be said to a running agent. Cheap to clone.
#[derive(Clone)]
pub struct Orders {
    pub(crate) steering: mpsc::Sender<Steering>,
    pub(crate) room: Room,
    pub(crate) cancel: CancelToken,
    pub(crate) cause: Arc<OnceLock<String>>,
}

impl Orders {
    /// Of a conversation that is about to run; the receiver is for it.
    pub(crate) fn new(cancel: CancelToken) -> (Self, mpsc::Receiver<Steering>) {
        let (sender, steering) = mpsc::channel(MOST_STEERING);
        (Self { steering: sender, room: Room::default(), cancel, cause: Arc::new(OnceLock::new()) }, steering)
    }

    /// Says something to the model at its next step. An agent that ends before has not heard it.
    pub fn steer(&self, text: impl Into<String>) -> Result<(), NotSteered> {
        self.say(vec![Block::Text { text: text.into() }]).map(|_| ())
    }

    /// As `steer`, of any blocks; tells when they are heard.
    pub fn say(&self, blocks: Vec<Block>) -> Result<Heard, NotSteered> {
        if self.steering.is_closed() {
            return Err(NotSteered::Ended);
        }
        let message = self.room.place(blocks).ok_or(NotSteered::Full)?;
        let heard = message.heard();
        self.steering.try_send(message).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NotSteered::Full,
            mpsc::error::TrySendError::Closed(_) => NotSteered::Ended,
        })?;
        Ok(heard)
    }

    /// Whether one more message would be taken.
    pub fn has_room(&self) -> bool {
        self.room.is_free()
    }

    /// Ends it; calls without a result are told `cancelled by user`.
    pub(crate) fn stop(&self) {
        self.cancel.cancel();
    }

    /// Ends it. Calls without a result are told `cancelled because <cause>`; the first cause counts.
    pub fn cancel_because(&self, cause: impl Into<String>) {
        let _ = self.cause.set(cause.into());
        self.cancel.cancel();
    }
}

impl RunningAgent {
    /// Waits for the end. A panic inside is an outcome like any other.
    pub async fn outcome(self) -> AgentOutcome {
        self.task.await.unwrap_or_else(|gone| without_work(failed(FailureClass::Panic, gone.to_string())))
    }

    /// For those who talk to it while somebody else waits.
    pub fn orders(&self) -> Orders {
        self.orders.clone()
    }

    /// See `Orders::steer`.
    pub fn steer(&self, text: impl Into<String>) -> Result<(), NotSteered> {
        self.orders.steer(text)
    }

    /// See `Orders::cancel_because`.
    pub fn cancel_because(&self, cause: impl Into<String>) {
        self.orders.cancel_because(cause);
    }
}

/// An outcome that spent nothing.
pub(crate) fn without_work(end: AgentEnd) -> AgentOutcome {
    AgentOutcome {
        end,
        usage: Usage::NOTHING,
        turns: 0,
        tool_calls: BTreeMap::new(),
        denials: Vec::new(),
        model: None,
    }
}

/// A conversation that is over. Without remains it died, and its transcript tells what there was.
pub(crate) struct Ended {
    pub(crate) outcome: AgentOutcome,
    pub(crate) remains: Option<Remains>,
}

impl Ended {
    fn died(message: String) -> Self {
        Self { outcome: without_work(failed(FailureClass::Panic, message)), remains: None }
    }
}

/// Runs a conversation to its end.
pub(crate) async fn run(
    shell: Box<Shell>,
    beginning: Beginning,
    orders: &Orders,
    mut steering: mpsc::Receiver<Steering>,
) -> Ended {
    let (reply, mut outcome) = oneshot::channel();
    let (actor, _join) = match supervise::spawn_root("conversation", ConversationActor, (shell, reply)).await
    {
        Ok(started) => started,
        Err(error) => return Ended::died(error.to_string()),
    };
    // An actor that is gone already has sent its outcome, or dropped the reply.
    let say = |message| {
        let _ = actor.cast(message);
    };
    // A cancel that came while the transcript was read: nothing is asked, the order below ends it.
    if !orders.cancel.is_cancelled() {
        say(ConversationMsg::Start(beginning));
    }
    let mut is_told = false;
    loop {
        tokio::select! {
            biased;
            end = &mut outcome => {
                return end.unwrap_or_else(|_| Ended::died("the conversation died".to_owned()));
            }
            () = orders.cancel.cancelled(), if !is_told => {
                is_told = true;
                let say_to_calls = match orders.cause.get() {
                    Some(cause) => format!("cancelled because {cause}"),
                    None => "cancelled by user".to_owned(),
                };
                say(ConversationMsg::Stop { end: AgentEnd::Cancelled, say: say_to_calls });
            }
            Some(message) = steering.recv() => say(ConversationMsg::Steer(message)),
        }
    }
}
