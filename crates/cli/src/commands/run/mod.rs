//! `claw run FILE`: from the file to a plan, from the plan to a run, from the run to its result.

mod ask;
mod begin;
mod detach;
mod end;
mod lines;
mod watch;

pub use begin::run;
pub(crate) use end::folder as folder_error;
