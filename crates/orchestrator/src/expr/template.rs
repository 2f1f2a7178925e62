//! Text with `{{ expr }}` in it: parsed when the plan is made, expanded once.

use super::error::{EvalError, ParseError};
use super::expression::{Expr, content};
use super::fence::{PROMPT_LIMIT, cut, fence};
use super::filters;
use super::lexer::end_of_expression;
use super::reference::{Reference, Root};
use super::scope::Scope;
use crate::workflow::problem::Code;
use claw_kernel::digest::Digest;
use minijinja::value::{Value, ValueKind};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

enum Part {
    Text(Box<str>),
    Print { expr: Expr, offset: usize },
}

struct Inner {
    source: Box<str>,
    parts: Vec<Part>,
}

/// A parsed template. Cheap to clone.
#[derive(Clone)]
pub struct Template(Arc<Inner>);

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.0.source).finish()
    }
}

/// How a template is expanded.
#[derive(Clone, Copy, Debug)]
pub enum Render<'a> {
    /// Values as they are: arguments, environment, paths, labels.
    Plain,
    /// What a model reads: text of agents is fenced, long texts are cut.
    Prompt {
        /// Random for each run; never in a content key.
        nonce: &'a str,
    },
}

/// An expanded prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rendered {
    /// The text.
    pub text: String,
    /// Files that the text names (cut texts, `path`): that agent may read them.
    pub readable: Vec<PathBuf>,
}

impl Template {
    /// Reads a text.
    ///
    /// # Errors
    /// E162 for `{%` and `{#`, E163 for an expression that is none or has no end.
    pub fn parse(source: &str) -> Result<Self, ParseError> {
        let mut parts = Vec::new();
        let mut from = 0;
        // A `-` inside the braces takes the blanks beside it away.
        let mut trim_next = false;
        while let Some((at, kind)) = next_open(source, from) {
            if kind != b'{' {
                let message = format!("`{{{}` is not part of this language", kind as char);
                let error = ParseError::new(Code::E162, at, message);
                return Err(
                    error.help("only `{{ expression }}` is; for the characters themselves write `{{ '…' }}`")
                );
            }
            let end = end_of_expression(source, at + 2)
                .ok_or_else(|| ParseError::new(Code::E163, at, "`{{` is never closed by `}}`"))?;
            let inner = &source[at + 2..end];
            let (trim_before, trim_after) = (inner.starts_with('-'), inner.len() > 1 && inner.ends_with('-'));
            push_text(&mut parts, &source[from..at], trim_next, trim_before);
            let start = at + 2 + usize::from(trim_before);
            let text = &source[start..end - usize::from(trim_after)];
            let trimmed = text.trim();
            let offset = start + (text.len() - text.trim_start().len());
            let expr = Expr::parse(trimmed)
                .map_err(|error| ParseError { offset: offset + error.offset, ..error })?;
            parts.push(Part::Print { expr, offset });
            trim_next = trim_after;
            from = end + 2;
        }
        push_text(&mut parts, &source[from..], trim_next, false);
        Ok(Self(Arc::new(Inner { source: source.into(), parts })))
    }

    /// A text that is never expanded, whatever stands in it.
    pub fn literal(text: &str) -> Self {
        Self(Arc::new(Inner { source: text.into(), parts: vec![Part::Text(text.into())] }))
    }

    /// As written.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Whether there is nothing to expand.
    pub fn is_static(&self) -> bool {
        self.0.parts.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// The literal text in front of the first expression.
    pub fn head(&self) -> &str {
        match self.0.parts.first() {
            Some(Part::Text(text)) => text,
            Some(Part::Print { .. }) | None => "",
        }
    }

    /// Every name in it with the byte in the template's text where it stands, in the order of the text.
    pub fn references(&self) -> impl Iterator<Item = (&Reference, usize)> {
        self.0
            .parts
            .iter()
            .flat_map(|part| match part {
                Part::Text(_) => (&[] as &[Reference]).iter().zip(std::iter::repeat(0)),
                Part::Print { expr, offset } => expr.references().iter().zip(std::iter::repeat(*offset)),
            })
            .map(|(reference, offset)| (reference, offset + reference.offset))
    }

    /// Part of a content key: the text, each name replaced by the digest of the value it stands for.
    pub fn content_digest(&self, scope: &Scope) -> Digest {
        content(self.source(), self.references().map(|(reference, _)| reference), scope)
    }

    /// Expands, once.
    ///
    /// # Errors
    /// E182 where null is printed, E183 where a prompt is too long, E164 where an expression fails.
    pub fn render(&self, scope: &Scope, style: Render<'_>) -> Result<String, EvalError> {
        self.render_whole(scope, style).map(|rendered| rendered.text)
    }

    /// Expands, once, and says which files the text leads to.
    ///
    /// # Errors
    /// As [`Template::render`].
    pub fn render_whole(&self, scope: &Scope, style: Render<'_>) -> Result<Rendered, EvalError> {
        let mut out = Rendered::default();
        for part in &self.0.parts {
            match part {
                Part::Text(text) => out.text.push_str(text),
                Part::Print { expr, .. } => print(&mut out, expr, scope, style)?,
            }
        }
        match style {
            Render::Prompt { .. } if out.text.len() > PROMPT_LIMIT => {
                Err(EvalError::TooLong { bytes: out.text.len(), limit: PROMPT_LIMIT })
            }
            Render::Prompt { .. } | Render::Plain => Ok(out),
        }
    }
}

fn next_open(source: &str, from: usize) -> Option<(usize, u8)> {
    let bytes = source.as_bytes();
    let mut at = from;
    while let Some(found) = source.get(at..)?.find('{') {
        at += found;
        if let Some(kind @ (b'{' | b'%' | b'#')) = bytes.get(at + 1) {
            return Some((at, *kind));
        }
        at += 1;
    }
    None
}

fn push_text(parts: &mut Vec<Part>, text: &str, trim_start: bool, trim_end: bool) {
    let text = if trim_start { text.trim_start() } else { text };
    let text = if trim_end { text.trim_end() } else { text };
    if !text.is_empty() {
        parts.push(Part::Text(text.into()));
    }
}

fn print(out: &mut Rendered, expr: &Expr, scope: &Scope, style: Render<'_>) -> Result<(), EvalError> {
    let value = expr.value(scope)?;
    if value.is_undefined() || value.is_none() {
        return Err(EvalError::Null { expr: expr.source().to_owned() });
    }
    match style {
        Render::Plain => push_value(&mut out.text, expr, &value),
        Render::Prompt { nonce } => print_in_prompt(out, expr, &value, scope, nonce),
    }
}

fn push_value(out: &mut String, expr: &Expr, value: &Value) -> Result<(), EvalError> {
    match value.as_str() {
        Some(text) => out.push_str(text),
        None => out.push_str(&shown(expr, value)?),
    }
    Ok(())
}

fn shown(expr: &Expr, value: &Value) -> Result<String, EvalError> {
    filters::shown(value).map_err(|error| EvalError::failed(expr.source(), error))
}

fn print_in_prompt(
    out: &mut Rendered,
    expr: &Expr,
    value: &Value,
    scope: &Scope,
    nonce: &str,
) -> Result<(), EvalError> {
    let data = scope.data();
    let names = expr.names();
    let text = shown(expr, value)?;
    let has = |wanted: &[&str]| names.filters.iter().any(|word| wanted.contains(&word.name.as_str()));
    let file = names.references.iter().find_map(|reference| data.file_of(&reference.text()));
    if has(&["path"]) {
        out.readable.extend(file.map(PathBuf::from));
    }
    let bounded = names.references.is_empty() || has(&["head", "tail", "lines", "path"]);
    let text = match cut(&text, file).filter(|_| !bounded) {
        Some(short) => {
            out.readable.extend(file.map(PathBuf::from));
            short
        }
        None => text,
    };
    let mut producers: Vec<String> = Vec::new();
    for reference in names.references.iter().filter(|reference| data.fenced(reference)) {
        let producer = expression_producer(reference);
        if !producers.contains(&producer) {
            producers.push(producer);
        }
    }
    let harmless = matches!(value.kind(), ValueKind::Number | ValueKind::Bool)
        || names.last_filter.as_deref().is_some_and(|filter| matches!(filter, "raw" | "path"))
        || (names.plain
            && names.filters.is_empty()
            && names.references.iter().all(|name| data.is_enum(name)));
    if producers.is_empty() || harmless {
        out.text.push_str(&text);
    } else {
        fence(&mut out.text, &text, nonce, &producers.join(", "));
    }
    Ok(())
}

fn expression_producer(reference: &Reference) -> String {
    match reference.root() {
        Root::Inputs | Root::Loop => reference.path.iter().take(2).cloned().collect::<Vec<_>>().join("."),
        Root::Nodes => reference.path.get(1).cloned().unwrap_or_default(),
        Root::Run | Root::Other => reference.name().to_owned(),
    }
}
