//! Styled text before it meets a terminal: styles, themes, lines, and how they are written at a depth of colour.
//!
//! Owns the only control sequences for colours. Must not know what a line means.

mod depth;
mod line;
mod style;
mod theme;

pub use depth::{ColorVariables, Depth};
pub use line::Line;
pub use style::{Rgb, Style};
pub use theme::{Theme, ThemeName};
