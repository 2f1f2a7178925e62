//! Files as tools see them: where a path leads, what kind of thing is there, text with its line ends kept.

pub mod kind;
pub mod paths;
pub mod remove;
pub mod text;
pub mod write;
