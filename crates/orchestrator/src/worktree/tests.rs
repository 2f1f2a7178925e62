//! Real repositories in temporary folders.

mod clearing;
mod folders;
mod kit;
mod merging;
