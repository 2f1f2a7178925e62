//! The lead at a terminal: what a person types, what the lead tells, and the region at the bottom of the screen.
//!
//! Owns the conversation's look and its keys. Must not know how a model is asked or a tool works.

mod editor;
