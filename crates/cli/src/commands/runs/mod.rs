//! `claw runs …`: the runs of this project, seen and ordered from outside. One file for each command.

mod answer;
mod dispatch;
mod found;
mod gc;
mod list;
mod message;
mod owner;
mod pause;
mod show;
mod stop;
mod watch;

pub use dispatch::run;
