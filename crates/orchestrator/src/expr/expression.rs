//! One expression: parsed when the plan is made, evaluated with fuel.

use super::env;
use super::error::{EvalError, ParseError};
use super::lexer::{self, Names, Word};
use super::reference::Reference;
use super::scope::Scope;
use crate::workflow::problem::Code;
use claw_kernel::digest::Digest;
use claw_kernel::near;
use minijinja::Expression;
use minijinja::value::Value;
use serde_json::Value as Json;
use std::fmt;
use std::sync::{Arc, OnceLock};

struct Inner {
    source: Box<str>,
    /// Made again at the first use: a plan of many nodes holds texts, not instructions.
    compiled: OnceLock<Option<Expression<'static, 'static>>>,
    names: Names,
}

/// A parsed expression. Cheap to clone.
#[derive(Clone)]
pub struct Expr(Arc<Inner>);

impl fmt::Debug for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expr").field(&self.0.source).finish()
    }
}

/// Longest text of one expression, in bytes.
const LONGEST: usize = 64 * 1024;

impl Expr {
    /// Reads a text.
    ///
    /// # Errors
    /// E163 where it is no expression, or names a filter or test that does not exist.
    pub fn parse(source: &str) -> Result<Self, ParseError> {
        if source.len() > LONGEST {
            return Err(ParseError::new(
                Code::E163,
                0,
                format!("an expression of {} bytes is too long", source.len()),
            ));
        }
        let names = lexer::names(source);
        known(&names.filters, "filter", env::filter_names)?;
        known(&names.tests, "test", env::test_names)?;
        if let Some(offset) = names.stray_path {
            let error =
                ParseError::new(Code::E163, offset, "`path` must stand right behind the name of a node");
            return Err(error.help("write `<node> | path`"));
        }
        if let Some(reference) = names.references.iter().find(|reference| reference.name().starts_with("__"))
        {
            let message = format!("`{}` is not a name (a letter a-z first)", reference.name());
            return Err(ParseError::new(Code::E163, reference.offset, message));
        }
        let text = names.rewritten.clone().unwrap_or_else(|| source.to_owned());
        env::environment().compile_expression_owned(text).map_err(|error| {
            let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
            ParseError::new(Code::E163, 0, format!("`{}` is not an expression: {detail}", short(source)))
        })?;
        Ok(Self(Arc::new(Inner { source: source.into(), compiled: OnceLock::new(), names })))
    }

    /// As written.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Every name in it, in the order of the text.
    pub fn references(&self) -> &[Reference] {
        &self.0.names.references
    }

    /// Evaluates. A missing name or a path through null is null.
    ///
    /// # Errors
    /// Where a filter or an operator does not fit the value, or the fuel is used up.
    pub fn eval(&self, scope: &Scope) -> Result<Json, EvalError> {
        let value = self.value(scope)?;
        if value.is_undefined() {
            return Ok(Json::Null);
        }
        serde_json::to_value(&value).map_err(|error| EvalError::Failed {
            expr: self.source().to_owned(),
            message: format!("the value is not JSON: {error}"),
            source: None,
        })
    }

    /// Evaluates a condition: null, false, 0, "" and empty lists are false.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    pub fn is_true(&self, scope: &Scope) -> Result<bool, EvalError> {
        self.value(scope).map(|value| value.is_true())
    }

    pub(super) fn value(&self, scope: &Scope) -> Result<Value, EvalError> {
        let compiled = self.0.compiled.get_or_init(|| {
            let text = self.0.names.rewritten.clone().unwrap_or_else(|| self.0.source.to_string());
            env::environment().compile_expression_owned(text).ok()
        });
        match compiled {
            Some(compiled) => {
                compiled.eval(scope.engine()).map_err(|error| EvalError::failed(self.source(), error))
            }
            // It was compiled once, when it was read.
            None => Err(EvalError::Failed {
                expr: self.source().to_owned(),
                message: "it does not compile".to_owned(),
                source: None,
            }),
        }
    }

    /// Part of a content key: the text, each name replaced by the digest of the value it stands for.
    pub fn content_digest(&self, scope: &Scope) -> Digest {
        content(self.source(), self.references(), scope)
    }

    pub(super) fn names(&self) -> &Names {
        &self.0.names
    }
}

pub(super) fn content<'a>(
    source: &str,
    references: impl IntoIterator<Item = &'a Reference>,
    scope: &Scope,
) -> Digest {
    let mut text = format!("{}:{source}", source.len());
    for reference in references {
        text.push('\n');
        text.push_str(&scope.data().digest(reference).hex());
    }
    Digest::of(text.as_bytes())
}

fn short(source: &str) -> &str {
    &source[..source.floor_char_boundary(80)]
}

fn known<I: Iterator<Item = &'static str>>(
    words: &[Word],
    what: &str,
    names: impl Fn() -> I,
) -> Result<(), ParseError> {
    let Some(word) = words.iter().find(|word| names().all(|name| name != word.name)) else { return Ok(()) };
    let error = ParseError::new(Code::E163, word.offset, format!("there is no {what} `{}`", word.name));
    let candidates: Vec<&str> = names().collect();
    Err(match near::nearest(&word.name, candidates.iter().copied()) {
        Some(name) => error.help(format!("did you mean `{name}`?")),
        None => error,
    })
}
