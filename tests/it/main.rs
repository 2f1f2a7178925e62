//! What claw does, seen from outside: one module for each behaviour, and the rules of the house.
//! Each module stands behind `cfg(test)`: so clippy takes its `unwrap` for what it is, a test that fails.

#[cfg(test)]
mod bodies;
#[cfg(test)]
mod budget;
#[cfg(test)]
mod cancel;
#[cfg(test)]
mod checks;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod control;
#[cfg(test)]
mod crash;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod docs;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod hooks;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod kit_selftest;
#[cfg(test)]
mod lack;
#[cfg(test)]
mod lead;
mod library;
#[cfg(test)]
mod machine;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod nodes;
#[cfg(test)]
mod owners;
#[cfg(test)]
mod partial;
#[cfg(test)]
mod permissions;
#[cfg(test)]
mod planning;
#[cfg(test)]
mod print;
#[cfg(test)]
mod progress;
#[cfg(test)]
mod providers;
#[cfg(test)]
mod resume;
#[cfg(test)]
mod routing;
#[cfg(test)]
mod run;
#[cfg(test)]
mod sandbox;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod spawn;
#[cfg(test)]
mod state;
#[cfg(test)]
mod tidy;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod trust;
#[cfg(test)]
mod usage;
#[cfg(test)]
mod worktrees;
