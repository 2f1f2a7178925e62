//! How services spell requests and streams: pure translation, no network.
//!
//! A new wire is a folder here and an arm in [`Decoder`] and [`encode`].

pub mod anthropic;
pub mod chat;
mod codec;
mod faults;
mod lenient;

pub use codec::{Asked, Decoder, EncodeError, NotUnderstood, Wire, encode};
pub use faults::{Fault, classify_kind, name, read_fault, words};
