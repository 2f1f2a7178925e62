//! Isolation by git: folders of their own for steps and groups, branches that keep their work, merges of branches, the
//! landing of a merge in the workspace, and the clearing of what is over.
//!
//! Owns every call of the `git` program, the names of folders and branches, and the one place that writes a merged
//! difference into the workspace. Knows nothing of schedules: which folder a step gets is said to it.

mod base;
mod error;
mod folder;
mod gc;
mod git;
mod names;
mod record;
mod repo;
#[cfg(test)]
mod tests;

pub use error::WorktreeError;
pub use gc::{BranchState, GcDone, GcItem, GcScope, clear, list};

pub(crate) use names::branch_of;
