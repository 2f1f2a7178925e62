//! One server: its actor, and what is known of it.

mod actor;

pub(super) use actor::{Desk, Now, ServerActor, ServerMsg, Serving};
