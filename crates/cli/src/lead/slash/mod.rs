//! Slash commands: one file each. A new one is a file, a `mod` line and a line of the table.
//!
//! Owns what they are called and what they give back. Must not draw anything.

mod add_dir;
mod agents;
mod clear;
mod command;
mod compact;
mod config;
mod context;
mod cost;
mod diff;
mod exit;
mod export;
mod help;
mod init;
mod memory;
mod model;
mod output;
mod permissions;
mod plan;
mod registry;
mod rename;
mod resume;
mod review;
mod rewind;
mod run;
mod runs;
mod search;
mod session;
mod skills;
mod status;
mod stop;
mod theme;
mod undo;
mod version;

pub(super) use command::{Desk, Slash};
pub(super) use registry::{choices, find, nearest};

/// All commands, in the order of the help.
static ALL: &[&dyn Slash] = &[
    &help::Help,
    &status::Status,
    &model::Model,
    &permissions::Permissions,
    &plan::Plan,
    &cost::Cost,
    &context::Context,
    &compact::Compact,
    &clear::Clear,
    &resume::Resume,
    &session::Session,
    &rename::Rename,
    &search::Search,
    &export::Export,
    &rewind::Rewind,
    &undo::Undo,
    &diff::Diff,
    &review::Review,
    &output::Output,
    &agents::Agents,
    &run::Run,
    &runs::Runs,
    &stop::Stop,
    &config::Config,
    &skills::Skills,
    &memory::Memory,
    &init::Init,
    &add_dir::AddDir,
    &theme::Theme,
    &version::Version,
    &exit::Exit,
];
