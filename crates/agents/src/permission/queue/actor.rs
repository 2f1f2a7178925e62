//! The actor of the queue: takes questions, has one shown at a time. It has no children but the task that shows.

use super::core::{Queue, Remembered, Waiting, reply_of};
use super::handle::{Answer, Presenter};
use crate::permission::ask::{AskRequest, Reply};
use crate::settings::{Places, RuleList, remember_rule};
use claw_kernel::supervise::spawn_root;
use claw_kernel::tasks;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// What outlives the actor.
pub(super) struct Shared {
    pub(super) presenter: Arc<dyn Presenter>,
    pub(super) places: Option<Places>,
    pub(super) remembered: Mutex<Remembered>,
}

impl Shared {
    fn remembered(&self) -> MutexGuard<'_, Remembered> {
        // A set of answers: whatever a panic left in it is whole.
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a question, keeps what is to be kept, answers.
    async fn show(self: Arc<Self>, waiting: Waiting<oneshot::Sender<Reply>>) {
        let Waiting { request, mut reply } = waiting;
        let answer = tokio::select! {
            answer = self.presenter.present(request.clone()) => answer,
            () = reply.closed() => return,
        };
        if let Some(answer) = &answer {
            self.remembered().remember(&request, answer);
            if *answer == Answer::Always {
                self.keep(&request).await;
            }
        }
        // Whoever asked may have been stopped at this very moment.
        let _ = reply.send(reply_of(answer));
    }

    async fn keep(&self, request: &AskRequest) {
        let (Some(places), Some(rule)) = (self.places.clone(), request.rule.clone()) else { return };
        let kept = tasks::blocking("rule", move || remember_rule(&places, RuleList::Allow, &rule)).await;
        let fault = match kept {
            Ok(Ok(_)) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        self.presenter.tell(format!("note: {fault}; the answer holds for this session"));
    }
}

/// What the queue hears.
pub(super) enum Ask {
    /// Question.
    Question { request: Box<AskRequest>, reply: oneshot::Sender<Reply> },
    /// Fact: what was shown is over.
    Over,
    /// Fact: what was shown ended in a panic.
    Failed,
}

/// The actor as its handle holds it.
#[derive(Clone)]
pub(super) struct Line(ActorRef<Ask>);

impl Line {
    /// Starts the actor. `None`: it cannot be started.
    pub(super) async fn start(shared: Arc<Shared>) -> Option<Self> {
        let started = spawn_root("the queue of permissions", PermissionsActor, shared).await;
        started.ok().map(|(actor, _join)| Self(actor))
    }

    /// Whether both are one actor.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.0.get_id() == other.0.get_id()
    }

    /// Waits for the answer. `None`: the actor is gone.
    pub(super) async fn ask(&self, request: AskRequest) -> Option<Reply> {
        let (reply, answer) = oneshot::channel();
        self.0.cast(Ask::Question { request: Box::new(request), reply }).ok()?;
        answer.await.ok()
    }

    /// Ends the actor.
    pub(super) fn stop(&self) {
        self.0.stop(None);
    }
}

pub(super) struct PermissionsActor;

pub(super) struct State {
    shared: Arc<Shared>,
    queue: Queue<oneshot::Sender<Reply>>,
}

impl State {
    fn show_next(&mut self, me: &ActorRef<Ask>) {
        let known = self.shared.remembered().clone();
        let needs_none = |waiting: &Waiting<oneshot::Sender<Reply>>| {
            waiting.reply.is_closed() || known.answers(&waiting.request)
        };
        let settle = |waiting: Waiting<oneshot::Sender<Reply>>| {
            // It is closed, or somebody still listens.
            let _ = waiting.reply.send(Reply::Allow);
        };
        let Some(next) = self.queue.next(needs_none, settle) else { return };
        let (shared, me) = (Arc::clone(&self.shared), me.clone());
        let showing = tasks::spawn("question", shared.show(next));
        tasks::spawn("question's end", async move {
            let fact = if showing.await.is_ok() { Ask::Over } else { Ask::Failed };
            // A queue that is gone shows nothing more.
            let _ = me.cast(fact);
        });
    }
}

impl Actor for PermissionsActor {
    type Msg = Ask;
    type State = State;
    type Arguments = Arc<Shared>;

    async fn pre_start(&self, _: ActorRef<Ask>, shared: Arc<Shared>) -> Result<State, ActorProcessingErr> {
        Ok(State { shared, queue: Queue::new() })
    }

    async fn handle(&self, me: ActorRef<Ask>, ask: Ask, state: &mut State) -> Result<(), ActorProcessingErr> {
        match ask {
            Ask::Question { request, reply } => state.queue.push(Waiting { request: *request, reply }),
            Ask::Over => state.queue.is_over(),
            // Nobody knows in which state the screen is: all who wait ask again.
            Ask::Failed => return Err("a question could not be shown".into()),
        }
        state.show_next(&me);
        Ok(())
    }
}
