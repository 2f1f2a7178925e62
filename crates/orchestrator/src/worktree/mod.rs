//! Isolation by git: folders of their own for steps and groups, branches that keep their work, merges of branches, the
//! landing of a merge in the workspace, and the clearing of what is over.
//!
//! Owns every call of the `git` program, the names of folders and branches, and the one place that writes a merged
//! difference into the workspace. Knows nothing of schedules: which folder a step gets is said to it.

mod base;
mod combine;
mod error;
mod folder;
mod folders;
mod gc;
mod git;
mod images;
mod landing;
mod landing_file;
mod names;
mod put;
mod record;
mod repo;
#[cfg(test)]
mod tests;
mod turn;

pub use error::WorktreeError;
pub use gc::{BranchState, GcDone, GcItem, GcScope, clear, list};

pub(crate) use combine::{Combined, Combining, Spoilt, TakenBack, Verdict, Verify};
pub(crate) use folder::OpenFolder;
pub(crate) use folders::Folders;
pub(crate) use landing::{Fate, Recovered, forget, recover};
