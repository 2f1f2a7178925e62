//! The line editor: text, cursor, history, pastes and the menu of completions. Pure but for the history's file.
//!
//! Owns what keys do to a text. Must not know what the text is for or how it is drawn.

mod history;
mod history_file;
mod input;
mod layout;
mod menu;
mod paste;
mod search;
mod text;

pub use history::History;
pub use history_file::HistoryFile;
pub use input::{Edit, Editor};
pub use menu::{Choice, Completer, Menu};
