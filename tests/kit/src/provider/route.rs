//! Which request gets which answer.

use super::reply::Reply;
use super::request::Request;
use super::wire::dumps;
use std::fmt;
use std::sync::Arc;

/// A condition and an answer. The first route that matches and is not used up answers.
#[derive(Clone)]
pub struct Route {
    pub(crate) label: Option<String>,
    path: Option<String>,
    contains: Vec<String>,
    lacks: Vec<String>,
    last_contains: Vec<String>,
    pub(crate) times: usize,
    pub(crate) answer: Answer,
}

#[derive(Clone)]
pub(crate) enum Answer {
    Fixed(Box<Reply>),
    Made(Arc<dyn Fn(&Request) -> Reply + Send + Sync>),
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route").field("label", &self.label).field("path", &self.path).finish_non_exhaustive()
    }
}

impl Route {
    fn with(answer: Answer) -> Self {
        Self {
            label: None,
            path: None,
            contains: Vec::new(),
            lacks: Vec::new(),
            last_contains: Vec::new(),
            times: usize::MAX,
            answer,
        }
    }

    /// Answers each matching request with the same reply.
    pub fn reply(reply: Reply) -> Self {
        Self::with(Answer::Fixed(Box::new(reply)))
    }

    /// Answers each matching request with what `make` says.
    pub fn answer(make: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::with(Answer::Made(Arc::new(make)))
    }

    /// A name for the records.
    pub fn label(mut self, label: &str) -> Self {
        self.label = Some(label.to_owned());
        self
    }

    /// The path contains this.
    pub fn path(mut self, part: &str) -> Self {
        self.path = Some(part.to_owned());
        self
    }

    /// The body contains this text. May be said several times: all of them.
    pub fn contains(mut self, text: &str) -> Self {
        self.contains.push(text.to_owned());
        self
    }

    /// The body does not contain this text.
    pub fn lacks(mut self, text: &str) -> Self {
        self.lacks.push(text.to_owned());
        self
    }

    /// The last message contains this text.
    pub fn last_contains(mut self, text: &str) -> Self {
        self.last_contains.push(text.to_owned());
        self
    }

    /// Answers at most this often.
    pub fn times(mut self, times: usize) -> Self {
        self.times = times;
        self
    }

    pub(crate) fn matches(&self, request: &Request) -> bool {
        let last = || match request.messages().last() {
            Some(message) => dumps(message),
            None => request.text.clone(),
        };
        self.path.as_ref().is_none_or(|part| request.path.contains(part))
            && self.contains.iter().all(|text| request.text.contains(text))
            && !self.lacks.iter().any(|text| request.text.contains(text))
            && (self.last_contains.is_empty() || {
                let last = last();
                self.last_contains.iter().all(|text| last.contains(text))
            })
    }
}
