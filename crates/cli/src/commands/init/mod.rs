//! `claw init`: what a project needs to be worked on. Each file is reported; a second run changes nothing.

mod begin;
mod describe;
mod stack;

pub use begin::{begin, run};
