//! `claw -p`: one conversation, its answer on standard output.

mod question;
mod shapes;
mod talk;
mod tee;

pub use talk::run;
