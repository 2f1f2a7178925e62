//! The parent of all servers: one_for_one. An actor that dies is started anew, at most three times in a minute; a server
//! that falls is the business of its own actor.

use crate::mcp::fault::McpFault;
use crate::mcp::server::{Desk, Now, ServerActor, ServerMsg};
use claw_kernel::supervise::{ChildDown, Down, RestartBudget, spawn_below};
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

const RESTARTS: usize = 3;
const PERIOD: Duration = Duration::from_secs(60);

/// The running parent.
pub(in crate::mcp) type Root = ActorRef<()>;

/// A server's place: who answers for it now.
pub(in crate::mcp) struct Slot {
    pub(in crate::mcp) desk: Arc<Desk>,
    actor: RwLock<Option<ActorRef<ServerMsg>>>,
    wanted: AtomicBool,
}

impl Slot {
    pub(in crate::mcp) fn new(desk: Desk) -> Self {
        Self { desk: Arc::new(desk), actor: RwLock::new(None), wanted: AtomicBool::new(false) }
    }

    /// Wants it to serve, now or as soon as there is somebody to say it to.
    pub(in crate::mcp) fn want(&self) {
        self.wanted.store(true, Ordering::SeqCst);
        self.say(ServerMsg::Want);
    }

    pub(in crate::mcp) fn is_wanted(&self) -> bool {
        self.wanted.load(Ordering::SeqCst)
    }

    /// Says something to it. False: it is gone.
    pub(in crate::mcp) fn say(&self, message: ServerMsg) -> bool {
        let actor = self.actor.read().unwrap_or_else(PoisonError::into_inner);
        actor.as_ref().is_some_and(|actor| actor.cast(message).is_ok())
    }

    fn put(&self, actor: Option<ActorRef<ServerMsg>>) {
        *self.actor.write().unwrap_or_else(PoisonError::into_inner) = actor;
    }

    fn is(&self, id: ActorId) -> bool {
        let actor = self.actor.read().unwrap_or_else(PoisonError::into_inner);
        actor.as_ref().is_some_and(|actor| actor.get_id() == id)
    }
}

pub(in crate::mcp) struct ServersActor;

pub(in crate::mcp) struct State {
    slots: Vec<(Arc<Slot>, RestartBudget)>,
}

impl Actor for ServersActor {
    type Msg = ();
    type State = State;
    type Arguments = Vec<Arc<Slot>>;

    async fn pre_start(&self, me: ActorRef<()>, slots: Vec<Arc<Slot>>) -> Result<State, ActorProcessingErr> {
        for slot in &slots {
            let actor = spawn_below("mcp server", ServerActor, slot.desk.clone(), me.get_cell()).await?;
            slot.put(Some(actor));
        }
        let budget = || RestartBudget::new(RESTARTS, PERIOD);
        Ok(State { slots: slots.into_iter().map(|slot| (slot, budget())).collect() })
    }

    async fn handle_supervisor_evt(
        &self,
        me: ActorRef<()>,
        event: SupervisionEvent,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let Some(down) = ChildDown::from_event(&event) else { return Ok(()) };
        let Some((slot, budget)) = state.slots.iter_mut().find(|(slot, _)| slot.is(down.id)) else {
            return Ok(());
        };
        let words = match down.how {
            // It was told to.
            Down::Stopped(_) => return Ok(()),
            Down::Failed(words) => words,
        };
        let fault = McpFault::GaveUp { restarts: RESTARTS, last: words };
        tracing::error!(server = %slot.desk.spec.name, %fault, "the actor of a server died");
        slot.put(None);
        if !budget.spend(Instant::now()) {
            slot.desk.put(Now::Off { fault });
            return Ok(());
        }
        match spawn_below("mcp server", ServerActor, slot.desk.clone(), me.get_cell()).await {
            Ok(actor) => {
                let _ = actor.cast(ServerMsg::Want);
                slot.put(Some(actor));
            }
            Err(error) => {
                let fault = McpFault::NotStarted(error.to_string());
                slot.desk.put(Now::Off { fault });
            }
        }
        Ok(())
    }
}
