//! The handle that everybody else sees.

use super::command::LeadCommand;
use super::event::LeadEvent;
use super::life::Life;
use super::setup::LeadSetup;
use crate::session::OpenSession;
use claw_kernel::cancel::CancelToken;
use claw_kernel::tasks::{self, TaskHandle};
use claw_providers::message::Block;
use std::sync::{Arc, OnceLock};
use tokio::sync::mpsc;

/// Orders that may wait.
const QUEUE: usize = 64;

/// A running lead. Dropping it leaves it running: `Shutdown` or `LeadOrders::stop_because` ends it.
pub struct Lead {
    task: TaskHandle<()>,
    orders: LeadOrders,
}

/// The way in. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LeadOrders {
    door: mpsc::Sender<LeadCommand>,
    cancel: CancelToken,
    cause: Arc<OnceLock<String>>,
}

/// Why an order was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOrdered {
    /// The lead has ended.
    #[error("the session has ended")]
    Ended,
    /// Too many orders wait.
    #[error("{QUEUE} orders wait already")]
    Full,
}

impl Lead {
    /// Starts it on a session. Its news go to `door`, `LeadEvent::Opened` first, `LeadEvent::Closed` last.
    pub fn start(setup: LeadSetup, session: OpenSession, door: mpsc::Sender<LeadEvent>) -> Self {
        let (order, inbox) = mpsc::channel(QUEUE);
        let orders = LeadOrders { door: order, cancel: CancelToken::new(), cause: Arc::default() };
        let (cancel, cause) = (orders.cancel.clone(), orders.cause.clone());
        let task = tasks::spawn("lead", async move {
            Box::pin(Life::new(setup, session, door, (cancel, cause)).live(inbox)).await;
        });
        Self { task, orders }
    }

    /// For those who order while somebody else waits.
    pub fn orders(&self) -> LeadOrders {
        self.orders.clone()
    }

    /// See `LeadOrders::order`.
    ///
    /// # Errors
    /// As there.
    pub fn order(&self, command: LeadCommand) -> Result<(), NotOrdered> {
        self.orders.order(command)
    }

    /// Waits for the end: the session is on disk.
    pub async fn ended(self) {
        let Self { task, orders } = self;
        // Its own handle would keep the inbox open.
        drop(orders);
        // A panic has been told by the hook; there is nothing more to wait for.
        let _ = task.await;
    }
}

impl LeadOrders {
    /// Gives an order; never waits.
    ///
    /// # Errors
    /// The lead has ended, or too many orders wait.
    pub fn order(&self, command: LeadCommand) -> Result<(), NotOrdered> {
        self.door.try_send(command).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => NotOrdered::Full,
            mpsc::error::TrySendError::Closed(_) => NotOrdered::Ended,
        })
    }

    /// Says a text.
    ///
    /// # Errors
    /// As `order`.
    pub fn say(&self, text: impl Into<String>) -> Result<(), NotOrdered> {
        self.order(LeadCommand::Say { blocks: vec![Block::Text { text: text.into() }] })
    }

    /// Ends the lead now: before every order that waits. Calls without a result are told `cancelled because <cause>`.
    pub fn stop_because(&self, cause: impl Into<String>) {
        let _ = self.cause.set(cause.into());
        self.cancel.cancel();
    }
}
