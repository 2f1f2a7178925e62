//! What persons can order a run to do, from this process or another one. Each order is told what became of it.

use crate::addr::StepAddr;
use crate::journal::record::Answer;
use crate::report::status::EndSignal;
use crate::scheduler::{Event, RunMsg, RunRef};
use claw_kernel::cancel::CancelToken;
use claw_kernel::clock::Timestamp;
use tokio::sync::oneshot;

/// An order was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTaken {
    /// It does not fit how the run stands.
    #[error("{reason}")]
    Refused {
        /// What does not hold.
        reason: String,
    },
    /// Nobody hears it any more, or its record could not be written.
    #[error("the run is over")]
    Over,
}

/// Orders for a run. Cheap to clone.
#[derive(Clone)]
pub struct RunOrders {
    actor: RunRef,
    token: CancelToken,
}

impl RunOrders {
    pub(super) fn new(actor: RunRef, token: CancelToken) -> Self {
        Self { actor, token }
    }

    /// Everything stops: within 2 s, manifests final. `signal`: what ended it, where it was one.
    pub fn cancel(&self, signal: Option<EndSignal>) {
        self.actor.tell(RunMsg::Fact(Event::Cancel { signal }));
    }

    /// The token of all steps: for those who end with them.
    pub fn token(&self) -> &CancelToken {
        &self.token
    }

    /// Nothing new starts; the run ends as paused when what runs has come to rest. Done when that is on record.
    ///
    /// # Errors
    /// Refused where the run is stopping already.
    pub async fn pause(&self, reason: String, until: Option<Timestamp>) -> Result<(), NotTaken> {
        self.order(Event::Pause { reason, until }).await
    }

    /// Answers the question of a step. Done when the answer is on record.
    ///
    /// # Errors
    /// Refused where the step is unknown or does not ask, or the choice is none of its choices.
    pub async fn answer(&self, step: StepAddr, answer: Answer) -> Result<(), NotTaken> {
        self.order(Event::Answered { step, answer }).await
    }

    /// Says something to the agent of a step. Done when it is on record; the agent hears it at its next step.
    ///
    /// # Errors
    /// Refused where no agent runs there, or too many messages wait for it.
    pub async fn message(&self, step: StepAddr, text: String) -> Result<(), NotTaken> {
        self.order(Event::Steered { step, text }).await
    }

    async fn order(&self, event: Event) -> Result<(), NotTaken> {
        let (reply, taken) = oneshot::channel();
        self.actor.tell(RunMsg::Order { event, reply });
        taken.await.unwrap_or(Err(NotTaken::Over))
    }
}
