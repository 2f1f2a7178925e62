//! The parent of all servers.

mod actor;

pub(super) use actor::{Root, ServersActor, Slot};
