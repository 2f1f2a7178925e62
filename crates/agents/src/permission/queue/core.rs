//! Which question is shown. Pure.

use super::handle::Answer;
use crate::permission::ask::{AskRequest, Reply};
use claw_kernel::ids::AgentId;
use std::collections::{HashSet, VecDeque};

/// A question in the queue.
#[derive(Debug)]
pub(super) struct Waiting<R> {
    pub(super) request: AskRequest,
    pub(super) reply: R,
}

/// What was answered for longer than once.
#[derive(Clone, Debug, Default)]
pub(super) struct Remembered {
    /// For this session: of one agent, exactly this call. Not inherited by others.
    session: HashSet<(AgentId, String, String)>,
    /// For always: whoever asks.
    always: HashSet<(String, String)>,
}

impl Remembered {
    pub(super) fn answers(&self, request: &AskRequest) -> bool {
        let (tool, subject) = (request.tool.clone(), request.subject.clone());
        request.rule.is_some()
            && (self.always.contains(&(tool.clone(), subject.clone()))
                || self.session.contains(&(request.agent.clone(), tool, subject)))
    }

    pub(super) fn remember(&mut self, request: &AskRequest, answer: &Answer) {
        let (tool, subject) = (request.tool.clone(), request.subject.clone());
        match answer {
            // What is asked each time is answered once, whatever was typed.
            Answer::Session | Answer::Always if request.rule.is_none() => {}
            Answer::Session => drop(self.session.insert((request.agent.clone(), tool, subject))),
            Answer::Always => drop(self.always.insert((tool, subject))),
            Answer::Once | Answer::No(_) => {}
        }
    }
}

/// What an answer says to the call.
pub(super) fn reply_of(answer: Option<Answer>) -> Reply {
    match answer {
        Some(Answer::Once | Answer::Session | Answer::Always) => Reply::Allow,
        Some(Answer::No(message)) => Reply::Deny { message },
        None => Reply::Nobody,
    }
}

/// Those who wait, in the order in which they came.
#[derive(Debug)]
pub(super) struct Queue<R> {
    waiting: VecDeque<Waiting<R>>,
    is_showing: bool,
}

impl<R> Queue<R> {
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::new(), is_showing: false }
    }

    pub(super) fn push(&mut self, waiting: Waiting<R>) {
        self.waiting.push_back(waiting);
    }

    /// The question that stood there is over.
    pub(super) fn is_over(&mut self) {
        self.is_showing = false;
    }

    /// The next to be shown, where none is; those that need no answer any more are handed to `settle`.
    pub(super) fn next(
        &mut self,
        needs_none: impl Fn(&Waiting<R>) -> bool,
        mut settle: impl FnMut(Waiting<R>),
    ) -> Option<Waiting<R>> {
        while !self.is_showing {
            let next = self.waiting.pop_front()?;
            if needs_none(&next) {
                settle(next);
            } else {
                self.is_showing = true;
                return Some(next);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(agent: &AgentId, subject: &str, rule: Option<&str>) -> AskRequest {
        AskRequest {
            agent: agent.clone(),
            label: "a".into(),
            tool: "bash".into(),
            subject: subject.into(),
            parts: Vec::new(),
            why: String::new(),
            rule: rule.map(str::to_owned),
        }
    }

    #[test]
    fn one_question_stands_at_a_time_and_the_next_may_need_none() {
        let agent = AgentId::fresh();
        let mut queue = Queue::new();
        for (no, subject) in [(1, "x"), (2, "y"), (3, "x"), (4, "z")] {
            queue.push(Waiting { request: request(&agent, subject, Some("r")), reply: no });
        }
        let mut known = Remembered::default();
        let shown = queue.next(|_| false, |_| panic!("none is settled")).unwrap();
        assert_eq!(shown.reply, 1);
        assert!(queue.next(|_| false, |_| {}).is_none());
        known.remember(&shown.request, &Answer::Session);
        queue.is_over();
        assert_eq!(queue.next(|it| known.answers(&it.request), |_| {}).unwrap().reply, 2);
        queue.is_over();
        let mut settled = Vec::new();
        let next = queue.next(|it| known.answers(&it.request), |it| settled.push(it.reply)).unwrap();
        assert_eq!((next.reply, settled), (4, vec![3]));
    }

    #[test]
    fn an_answer_for_the_session_is_not_inherited_and_never_given_to_what_is_asked_each_time() {
        let (one, other) = (AgentId::fresh(), AgentId::fresh());
        let mut known = Remembered::default();
        known.remember(&request(&one, "x", Some("r")), &Answer::Session);
        assert!(known.answers(&request(&one, "x", Some("r"))));
        assert!(!known.answers(&request(&other, "x", Some("r"))));
        assert!(!known.answers(&request(&one, "x ", Some("r"))));
        known.remember(&request(&one, "p", None), &Answer::Always);
        assert!(!known.answers(&request(&one, "p", None)));
        known.remember(&request(&one, "y", Some("r")), &Answer::Always);
        assert!(known.answers(&request(&other, "y", Some("r"))));
    }
}
