//! `claw -p`: one conversation, its answers on standard output.

mod input;
mod purse;
mod question;
mod shapes;
mod talk;
mod tee;
mod tell;
mod watch;

pub use talk::run;
