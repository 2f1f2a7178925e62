//! Plans out of texts: every problem with its words and place, and what a good file becomes.

mod big;
mod codes;
mod fixture;
mod good;
mod properties;
