//! `claw doctor`: what claw finds on this machine, and what is missing. Changes nothing, asks nobody.

mod report;
mod sections;

pub use report::run;
