//! The front: arguments, commands, terminal. Everything that a person types or sees.
//!
//! Owns words, exit codes and the screen. Knows no model, no tool and no schedule from the inside.

mod app;
mod args;
mod commands;
mod error;
mod extensions;
mod lead;
mod library;
mod log;
mod servers;
mod services;
mod sessions;
mod signals;
mod terminal;

pub use app::main;
