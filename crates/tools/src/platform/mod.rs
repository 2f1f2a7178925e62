//! What only one operating system has: the write wall, mounts in a child, finding what a job left behind.
//!
//! Linux holds all of it; elsewhere the same names exist and say what is missing. Knows nothing of tools.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
pub(crate) use linux::{ChildPlan, Group, Wall, adopt_orphans, open_resolved, prepare, rehearse};
#[cfg(not(target_os = "linux"))]
pub(crate) use other::{ChildPlan, Group, Wall, adopt_orphans, open_resolved, prepare, rehearse};
