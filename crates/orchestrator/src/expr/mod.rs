//! The one language of expressions and templates.
//!
//! Owns parsing (at plan time), the names that a text uses, evaluation with fuel, the fence round text of agents and
//! the bounds of what is printed. Knows nothing of files, nodes' kinds, actors or time: a [`Scope`] is all it sees.

mod env;
mod error;
mod expression;
mod fence;
mod filters;
mod lexer;
mod reference;
mod scope;
mod template;

pub use error::{EvalError, ParseError};
pub use expression::Expr;
pub(crate) use fence::fence;
pub use fence::{CUT_ABOVE, PROMPT_LIMIT};
pub use reference::{Reference, Root};
pub use scope::{Binding, Data, InputView, NodeView, RunView, Scope, ScopeData};
pub use template::{Render, Rendered, Template};

#[cfg(test)]
mod tests;
