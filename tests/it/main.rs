//! What claw does, seen from outside: one module for each behaviour, and the rules of the house.
//! Each module stands behind `cfg(test)`: so clippy takes its `unwrap` for what it is, a test that fails.

#[cfg(test)]
mod cli;
#[cfg(test)]
mod kit_selftest;
#[cfg(test)]
mod progress;
#[cfg(test)]
mod tidy;
