//! What a shell command line would run: every simple command in it, and what cannot be known before it runs.
//!
//! Owns the reading of command lines: one pass, linear, bounded in depth. Must not know rules: it only lists. Where it
//! is not sure it says so; a command too many in the list does no harm, one too few would.

mod command;
mod expand;
mod quote;
mod scan;
#[cfg(test)]
mod tests;
mod word;
mod wrap;

pub use command::{Analysis, Doubt, SimpleCommand};
pub use quote::quoted;
pub use scan::{analyse, rough_words};
pub use word::Word;
