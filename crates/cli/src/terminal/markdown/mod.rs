//! Markdown for a terminal: answers block by block as they stream, and diffs.
//!
//! Owns how Markdown looks. Must not know who wrote it. The only room that knows pulldown-cmark and syntect.

mod blocks;
mod code;
mod inline;
mod render;
mod stream;
mod table;

pub use stream::Answer;
