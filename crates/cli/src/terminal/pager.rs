//! A pager for long texts, on the terminal's other screen: what stood on the first one is there again afterwards.

use super::keys::Key;
use super::paint::{Depth, Line, Style, Theme};
use super::raw::write;
use std::io;

/// Bytes of a text that are shown.
const MOST: usize = 16 * 1024 * 1024;

/// The other screen, as long as it is held.
#[derive(Debug)]
struct OtherScreen;

impl OtherScreen {
    fn enter() -> io::Result<Self> {
        write("\x1b[?1049h\x1b[?25l")?;
        Ok(Self)
    }
}

impl Drop for OtherScreen {
    fn drop(&mut self) {
        // Where the terminal is gone there is nothing to restore.
        let _ = write("\x1b[?1049l\x1b[?25h");
    }
}

/// An open pager.
#[derive(Debug)]
pub struct Pager {
    view: PagerView,
    _screen: OtherScreen,
}

impl Pager {
    /// Opens it.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn open(title: &str, text: &str, theme: Theme) -> io::Result<Self> {
        Ok(Self { view: PagerView::new(title, text, theme), _screen: OtherScreen::enter()? })
    }

    /// One key. `false`: it is to be closed.
    pub fn on(&mut self, key: &Key, height: usize) -> bool {
        self.view.on(key, height)
    }

    /// Draws it.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&mut self, size: (usize, usize), depth: Depth) -> io::Result<()> {
        let lines = self.view.lines(size.0, size.1);
        let mut out = String::from("\x1b[H");
        for (n, line) in lines.iter().enumerate() {
            if n > 0 {
                out.push_str("\r\n");
            }
            out.push_str(&line.painted(depth));
            out.push_str("\x1b[K");
        }
        out.push_str("\x1b[J");
        write(&out)
    }
}

/// What it shows. Pure.
#[derive(Debug)]
struct PagerView {
    title: String,
    source: Vec<Line>,
    rows: Vec<Line>,
    width: usize,
    top: usize,
    search: Option<String>,
    found: String,
    theme: Theme,
}

impl PagerView {
    fn new(title: &str, text: &str, theme: Theme) -> Self {
        let text = &text[..text.floor_char_boundary(MOST.min(text.len()))];
        let is_diff = text.lines().any(|line| line.starts_with("@@ "));
        let style = |line: &str| match line.as_bytes().first() {
            Some(b'+') if is_diff => theme.added,
            Some(b'-') if is_diff => theme.removed,
            Some(b'@') if is_diff => theme.accent,
            _ => Style::PLAIN,
        };
        let source = text.lines().map(|line| Line::styled(line, style(line))).collect();
        Self {
            title: title.to_owned(),
            source,
            rows: Vec::new(),
            width: 0,
            top: 0,
            search: None,
            found: String::new(),
            theme,
        }
    }

    fn on(&mut self, key: &Key, height: usize) -> bool {
        let page = height.saturating_sub(2).max(1);
        if let Some(words) = &mut self.search {
            match key {
                Key::Enter => {
                    self.found = self.search.take().unwrap_or_default();
                    self.next(1);
                }
                Key::Esc | Key::Ctrl('c') => self.search = None,
                Key::Backspace => {
                    words.pop();
                }
                Key::Char(letter) => words.push(*letter),
                _ => {}
            }
            return true;
        }
        match key {
            Key::Esc | Key::Char('q' | 'Q') | Key::Ctrl('c' | 'd' | 'o') => return false,
            Key::Down | Key::Enter | Key::Char('j') => self.top += 1,
            Key::Up | Key::Char('k') => self.top = self.top.saturating_sub(1),
            Key::PageDown | Key::Char(' ' | 'f') => self.top += page,
            Key::PageUp | Key::Char('b') => self.top = self.top.saturating_sub(page),
            Key::Home | Key::Char('g') => self.top = 0,
            Key::End | Key::Char('G') => self.top = usize::MAX / 2,
            Key::Char('/') => self.search = Some(String::new()),
            Key::Char('n') => self.next(1),
            Key::Char('N') => self.next(-1),
            _ => {}
        }
        true
    }

    fn next(&mut self, step: isize) {
        let wanted = self.found.to_lowercase();
        if wanted.is_empty() {
            return;
        }
        let holds =
            |at: &usize| self.rows.get(*at).is_some_and(|row| row.text().to_lowercase().contains(&wanted));
        let at = if step > 0 {
            (self.top + 1..self.rows.len()).find(holds)
        } else {
            (0..self.top.min(self.rows.len())).rev().find(holds)
        };
        self.top = at.unwrap_or(self.top);
    }

    fn lines(&mut self, width: usize, height: usize) -> Vec<Line> {
        let width = width.max(4);
        if self.width != width {
            self.rows = self.source.iter().flat_map(|line| line.fold(width)).collect();
            self.width = width;
        }
        let page = height.saturating_sub(1).max(1);
        self.top = self.top.min(self.rows.len().saturating_sub(page));
        let mut lines: Vec<Line> = self.rows.iter().skip(self.top).take(page).cloned().collect();
        lines.resize_with(page, Line::empty);
        let foot = match &self.search {
            Some(words) => Line::styled(format!("/{words}"), self.theme.accent),
            None => {
                let last = (self.top + page).min(self.rows.len());
                let place = format!(" {last}/{} · q closes · / searches · space, b, g, G", self.rows.len());
                Line::styled(&self.title, self.theme.strong).with(place, self.theme.quiet)
            }
        };
        lines.push(foot.cut(width));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::paint::ThemeName;

    #[test]
    fn a_long_text_is_paged_and_searched() {
        let text: String = (1..=100).map(|n| format!("line {n}\n")).collect();
        let mut view = PagerView::new("bash ls", &text, ThemeName::None.theme());
        let top = |view: &mut PagerView| view.lines(40, 11)[0].text();
        assert_eq!(top(&mut view), "line 1");
        assert!(view.on(&Key::Char(' '), 11));
        assert_eq!(top(&mut view), "line 10");
        view.on(&Key::Char('G'), 11);
        assert_eq!(top(&mut view), "line 91");
        view.on(&Key::Char('g'), 11);
        for key in [Key::Char('/'), Key::Char('5'), Key::Char('0'), Key::Enter] {
            view.on(&key, 11);
        }
        assert_eq!(top(&mut view), "line 50");
        assert!(view.lines(40, 11)[10].text().starts_with("bash ls 59/100"));
        assert!(!view.on(&Key::Char('q'), 11));
    }
}
