//! The queue as those see it who ask: it outlives its actor, and those who wait ask again.

use super::actor::{Line, Shared};
use super::core::Remembered;
use crate::permission::ask::{AskRequest, Asker, Reply};
use crate::settings::Places;
use claw_kernel::supervise::RestartBudget;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// Restarts of the queue, within `PERIOD`.
const RESTARTS: usize = 3;
const PERIOD: Duration = Duration::from_secs(60);

/// What a person says to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// This call.
    Once,
    /// Exactly this call of this agent, until the process ends.
    Session,
    /// Exactly this call, from now on: the rule is written to the project's local settings.
    Always,
    /// It does not run; perhaps with words for the model.
    No(Option<String>),
}

/// Shows questions to a person, one at a time.
pub trait Presenter: Send + Sync {
    /// Shows it and waits. `None`: nobody is there. Waiting ends when the future is dropped: the question goes.
    fn present(&self, request: AskRequest) -> BoxFuture<'_, Option<Answer>>;
    /// A word about an answer that could not be kept.
    fn tell(&self, text: String);
}

/// The queue of a process.
pub struct Permissions {
    shared: Arc<Shared>,
    current: Mutex<Current>,
}

struct Current {
    actor: Option<Line>,
    budget: RestartBudget,
}

impl std::fmt::Debug for Permissions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Permissions").finish_non_exhaustive()
    }
}

impl Permissions {
    /// A queue before a person. `places`: whose local file gets answers for always; `None`: they hold for the session.
    pub fn new(presenter: Arc<dyn Presenter>, places: Option<Places>) -> Self {
        let shared = Shared { presenter, places, remembered: std::sync::Mutex::new(Remembered::default()) };
        let budget = RestartBudget::new(RESTARTS + 1, PERIOD);
        Self { shared: Arc::new(shared), current: Mutex::new(Current { actor: None, budget }) }
    }

    /// The actor, started where there is none. `None`: it dies too often.
    async fn actor(&self, dead: Option<&Line>) -> Option<Line> {
        let mut current = self.current.lock().await;
        let is_dead = |known: &Line| dead.is_some_and(|dead| dead.is(known));
        if let Some(known) = current.actor.as_ref().filter(|known| !is_dead(known)) {
            return Some(known.clone());
        }
        if !current.budget.spend(Instant::now()) {
            return None;
        }
        current.actor = Line::start(Arc::clone(&self.shared)).await;
        current.actor.clone()
    }
}

impl Asker for Permissions {
    fn ask(&self, request: AskRequest) -> BoxFuture<'_, Reply> {
        Box::pin(async move {
            let mut dead = None;
            while let Some(actor) = self.actor(dead.as_ref()).await {
                if let Some(reply) = actor.ask(request.clone()).await {
                    return reply;
                }
                dead = Some(actor);
            }
            Reply::Nobody
        })
    }
}

impl Drop for Permissions {
    fn drop(&mut self) {
        if let Some(actor) = self.current.get_mut().actor.take() {
            actor.stop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_kernel::ids::AgentId;
    use claw_kernel::tasks;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Semaphore;

    /// Answers each question, once it may; panics at those that say so.
    struct Fake {
        shown: std::sync::Mutex<Vec<String>>,
        at_once: AtomicUsize,
        may: Semaphore,
        answer: Answer,
    }

    impl Presenter for Fake {
        fn present(&self, request: AskRequest) -> BoxFuture<'_, Option<Answer>> {
            Box::pin(async move {
                assert_eq!(self.at_once.fetch_add(1, Ordering::SeqCst), 0, "two questions at once");
                let first = {
                    let mut shown = self.shown.lock().unwrap();
                    shown.push(request.subject.clone());
                    shown.iter().filter(|subject| **subject == request.subject).count() == 1
                };
                self.may.acquire().await.unwrap().forget();
                self.at_once.fetch_sub(1, Ordering::SeqCst);
                assert!(!(first && request.subject.starts_with("panic")), "as asked for");
                Some(self.answer.clone())
            })
        }
        fn tell(&self, text: String) {
            self.shown.lock().unwrap().push(text);
        }
    }

    fn queue(answer: Answer, may: usize, places: Option<Places>) -> (Arc<Fake>, Arc<Permissions>) {
        let fake = Arc::new(Fake {
            shown: std::sync::Mutex::default(),
            at_once: AtomicUsize::new(0),
            may: Semaphore::new(may),
            answer,
        });
        (fake.clone(), Arc::new(Permissions::new(fake, places)))
    }

    fn request(subject: &str) -> AskRequest {
        AskRequest {
            agent: AgentId::fresh(),
            label: "a".into(),
            tool: "bash".into(),
            subject: subject.into(),
            parts: Vec::new(),
            why: String::new(),
            rule: Some(crate::permission::exact("bash", subject)),
        }
    }

    #[tokio::test]
    async fn questions_of_many_agents_are_shown_one_after_another() {
        let (fake, queue) = queue(Answer::Once, 20, None);
        let asks: Vec<_> = (0..20)
            .map(|n| {
                let queue = queue.clone();
                tasks::spawn("ask", async move { queue.ask(request(&format!("{n}"))).await })
            })
            .collect();
        for ask in asks {
            assert_eq!(ask.await, Ok(Reply::Allow));
        }
        assert_eq!(fake.shown.lock().unwrap().len(), 20);
    }

    #[tokio::test]
    async fn whoever_gives_up_frees_the_screen() {
        let (fake, queue) = queue(Answer::No(Some("no".into())), 0, None);
        let own = queue.clone();
        let gives_up = tasks::spawn("ask", async move { own.ask(request("gives up")).await });
        let own = queue.clone();
        let waits = tasks::spawn("ask", async move { own.ask(request("waits")).await });
        while fake.shown.lock().unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        gives_up.abort();
        fake.at_once.store(0, Ordering::SeqCst);
        while fake.shown.lock().unwrap().len() < 2 {
            tokio::task::yield_now().await;
            fake.at_once.store(0, Ordering::SeqCst);
        }
        fake.may.add_permits(1);
        assert_eq!(waits.await, Ok(Reply::Deny { message: Some("no".into()) }));
    }

    #[tokio::test]
    async fn an_answer_for_always_is_written_and_asked_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let places = Places::new(folder.path(), &folder.path().join("home"), folder.path());
        let (fake, queue) = queue(Answer::Always, 1, Some(places));
        assert_eq!(queue.ask(request("curl (x)")).await, Reply::Allow);
        assert_eq!(queue.ask(request("curl (x)")).await, Reply::Allow);
        assert_eq!(fake.shown.lock().unwrap().as_slice(), ["curl (x)"]);
        let text = std::fs::read_to_string(folder.path().join(".claw/settings.local.json")).unwrap();
        assert!(text.contains(r#""bash(curl \\(x\\))""#), "{text}");
    }

    #[tokio::test]
    async fn after_a_restart_those_who_wait_ask_again() {
        let (fake, queue) = queue(Answer::Once, 10, None);
        let own = queue.clone();
        let waits = tasks::spawn("ask", async move { own.ask(request("panic")).await });
        assert_eq!(queue.ask(request("second")).await, Reply::Allow);
        assert_eq!(waits.await, Ok(Reply::Allow));
        let shown = fake.shown.lock().unwrap();
        assert_eq!(shown.iter().filter(|subject| *subject == "panic").count(), 2, "{shown:?}");
    }
}
