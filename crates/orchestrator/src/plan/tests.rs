//! Plans out of texts: every problem with its words and place, and what a good file becomes.

mod big;
mod bodies;
mod codes;
pub(crate) mod fixture;
mod good;
mod properties;
