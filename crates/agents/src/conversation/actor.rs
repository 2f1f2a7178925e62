//! The actor of one conversation: a mailbox round the shell. Its owner (`running.rs`) waits for it; it has no children
//! but tasks, each of which posts its end here.

use super::core::{Beginning, Event};
use super::running::Ended;
use super::shell::{Finished, Post, Shell, failed};
use super::steering::Steering;
use crate::outcome::{AgentEnd, FailureClass};
use claw_kernel::tasks::panic_message;
use futures_util::FutureExt;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tokio::sync::oneshot;

/// What a conversation hears.
pub(crate) enum ConversationMsg {
    /// Order: begin, or go on.
    Start(Beginning),
    /// Order: say this to the model at the next step.
    Steer(Steering),
    /// Order: end.
    Stop { end: AgentEnd, say: String },
    /// Fact: a task ended.
    Finished(Finished),
}

pub(crate) struct ConversationActor;

pub(crate) struct State {
    /// Gone once it has ended.
    shell: Option<Box<Shell>>,
    post: Post,
    ended: Option<oneshot::Sender<Ended>>,
}

impl Actor for ConversationActor {
    type Msg = ConversationMsg;
    type State = State;
    type Arguments = (Box<Shell>, oneshot::Sender<Ended>);

    async fn pre_start(
        &self,
        me: ActorRef<ConversationMsg>,
        (shell, ended): Self::Arguments,
    ) -> Result<State, ActorProcessingErr> {
        let post: Post = Arc::new(move |finished| {
            // A conversation that is gone has ended what ran; its late ends are for nobody.
            let _ = me.cast(ConversationMsg::Finished(finished));
        });
        Ok(State { shell: Some(shell), post, ended: Some(ended) })
    }

    async fn handle(
        &self,
        me: ActorRef<ConversationMsg>,
        message: ConversationMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        let State { shell, post, .. } = state;
        let Some(shell) = shell else { return Ok(()) };
        let step = async {
            match message {
                ConversationMsg::Start(beginning) => shell.on(Event::Started(beginning), post).await,
                ConversationMsg::Steer(message) => shell.on(Event::Steered(message), post).await,
                ConversationMsg::Stop { end, say } => shell.on(Event::Stopped { end, say }, post).await,
                ConversationMsg::Finished(finished) => shell.finished(finished, post).await,
            }
        };
        let outcome = match AssertUnwindSafe(step).catch_unwind().await {
            Ok(outcome) => outcome,
            Err(panic) => {
                let end = failed(FailureClass::Panic, panic_message(panic.as_ref()));
                Some(shell.died(end))
            }
        };
        if let Some(outcome) = outcome {
            let remains = state.shell.take().map(|shell| shell.remains());
            if let Some(reply) = state.ended.take() {
                // Whoever stopped waiting does not want it.
                let _ = reply.send(Ended { outcome, remains });
            }
            me.stop(None);
        }
        Ok(())
    }
}
