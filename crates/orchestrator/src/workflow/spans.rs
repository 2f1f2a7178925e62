//! From bytes of the text to lines and columns.

use super::problem::{Code, Place, Problem};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The text with the beginnings of its lines.
#[derive(Debug)]
pub struct Source {
    /// As the user named it.
    pub file: PathBuf,
    /// The whole text.
    pub text: Arc<str>,
    lines: Vec<usize>,
}

impl Source {
    /// Looks through the text once.
    pub fn new(file: &Path, text: &str) -> Self {
        let starts = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        Self { file: file.to_owned(), text: text.into(), lines: std::iter::once(0).chain(starts).collect() }
    }

    /// The place of some bytes.
    pub fn place(&self, span: Range<usize>) -> Place {
        let start = self.text.floor_char_boundary(span.start.min(self.text.len()));
        let line = self.lines.partition_point(|begin| *begin <= start).max(1);
        let begin = self.lines[line - 1];
        let column = self.text[begin..start].chars().count() + 1;
        Place { file: self.file.clone(), line, column, span }
    }

    /// A problem at some bytes.
    pub fn problem(
        &self,
        code: Code,
        span: Range<usize>,
        path: impl Into<String>,
        message: impl Into<String>,
    ) -> Problem {
        Problem { code, place: self.place(span), path: path.into(), message: message.into(), help: None }
    }
}

impl Problem {
    /// With a line of help.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// With the near name, where there is one.
    #[must_use]
    pub fn near(self, near: Option<&str>) -> Self {
        match near {
            Some(name) => self.with_help(format!("did you mean `{name}`?")),
            None => self,
        }
    }
}
