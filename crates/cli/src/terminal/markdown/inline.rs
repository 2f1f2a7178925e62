//! The words of one paragraph while they are read: styles that open and close. Pure.

use crate::terminal::paint::{Line, Style, Theme};

/// Collects styled text; a hard break begins the next line.
pub(super) struct Inline {
    lines: Vec<Line>,
    styles: Vec<Style>,
    links: Vec<(String, usize)>,
}

impl Inline {
    pub(super) fn new(base: Style) -> Self {
        Self { lines: vec![Line::empty()], styles: vec![base], links: Vec::new() }
    }

    pub(super) fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    pub(super) fn open(&mut self, style: Style) {
        self.styles.push(style.over(self.style()));
    }

    pub(super) fn close(&mut self) {
        if self.styles.len() > 1 {
            self.styles.pop();
        }
    }

    pub(super) fn text(&mut self, text: &str) {
        let style = self.style();
        self.push(text, style);
    }

    pub(super) fn code(&mut self, text: &str, theme: &Theme) {
        // Without colours the signs stay, so that code is told from words.
        let style = theme.code.over(self.style());
        if theme.code == Style::PLAIN {
            self.push(&format!("`{text}`"), style);
        } else {
            self.push(text, style);
        }
    }

    fn push(&mut self, text: &str, style: Style) {
        if let Some(line) = self.lines.last_mut() {
            line.push(text, style);
        }
    }

    pub(super) fn new_line(&mut self) {
        self.lines.push(Line::empty());
    }

    pub(super) fn open_link(&mut self, address: &str, theme: &Theme) {
        self.links.push((address.to_owned(), self.written()));
        self.open(theme.link);
    }

    /// The address follows where the words do not say it.
    pub(super) fn close_link(&mut self, theme: &Theme) {
        self.close();
        let Some((address, from)) = self.links.pop() else { return };
        let text: String = self.lines.iter().map(Line::text).collect::<String>().chars().skip(from).collect();
        let bare = address.strip_prefix("mailto:").unwrap_or(&address);
        if !address.is_empty() && text.trim() != bare {
            let style = theme.quiet.over(self.style());
            self.push(&format!(" ({address})"), style);
        }
    }

    fn written(&self) -> usize {
        self.lines.iter().map(|line| line.text().chars().count()).sum()
    }

    pub(super) fn take(&mut self) -> Vec<Line> {
        let lines = std::mem::replace(&mut self.lines, vec![Line::empty()]);
        let blank = lines.iter().all(|line| line.text().is_empty());
        if blank { Vec::new() } else { lines }
    }
}
