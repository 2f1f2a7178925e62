//! The loop round one request: place, send, read, retry, fall back.

mod attempt;
mod body;
mod target;
mod turn;

pub(crate) use target::Headers;
pub(crate) use turn::{Engine, class_of};

#[cfg(test)]
mod tests;
