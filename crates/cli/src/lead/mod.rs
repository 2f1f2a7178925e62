//! The lead at a terminal: what a person types, what the lead tells, and the region at the bottom of the screen.
//!
//! Owns the conversation's look and its keys. Must not know how a model is asked or a tool works.

mod act;
mod ask_view;
mod asker;
mod changes;
mod deed;
mod drive;
mod editor;
mod news;
mod open;
mod picker;
mod plain;
mod slash;
mod start;
mod state;
mod status;
#[cfg(test)]
mod tests;
mod tool_lines;
mod view;
mod words;

pub use start::run;
