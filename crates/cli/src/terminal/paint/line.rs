//! Lines of styled pieces: measured, wrapped, cut and written. Nothing in them steers a terminal. Pure.

use super::depth::Depth;
use super::style::Style;
use claw_kernel::visible::visible_line;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Columns of a tabulator in shown text.
const TAB: &str = "    ";

/// A piece of one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    text: String,
    style: Style,
}

impl Span {
    /// Control characters become visible signs.
    pub fn new(text: impl AsRef<str>, style: Style) -> Self {
        let text = text.as_ref();
        let text = if text.contains('\t') {
            visible_line(&text.replace('\t', TAB)).into_owned()
        } else {
            visible_line(text).into_owned()
        };
        Self { text, style }
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Its style.
    pub fn style(&self) -> Style {
        self.style
    }
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    spans: Vec<Span>,
}

/// One character as people see it.
struct Cell<'a> {
    text: &'a str,
    style: Style,
    width: usize,
}

impl Line {
    /// Without a word.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Plain text.
    pub fn plain(text: impl AsRef<str>) -> Self {
        Self::styled(text, Style::PLAIN)
    }

    /// Text of one style.
    pub fn styled(text: impl AsRef<str>, style: Style) -> Self {
        Self { spans: vec![Span::new(text, style)] }
    }

    /// With one more piece.
    #[must_use]
    pub fn with(mut self, text: impl AsRef<str>, style: Style) -> Self {
        self.push(text, style);
        self
    }

    /// Adds a piece.
    pub fn push(&mut self, text: impl AsRef<str>, style: Style) {
        if text.as_ref().is_empty() {
            return;
        }
        let span = Span::new(text, style);
        match self.spans.last_mut() {
            Some(last) if last.style == span.style => last.text.push_str(&span.text),
            Some(_) | None => self.spans.push(span),
        }
    }

    /// Adds all of another line.
    pub fn append(&mut self, other: Self) {
        for span in other.spans {
            match self.spans.last_mut() {
                Some(last) if last.style == span.style => last.text.push_str(&span.text),
                Some(_) | None => self.spans.push(span),
            }
        }
    }

    /// Its pieces.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Its text alone.
    pub fn text(&self) -> String {
        self.spans.iter().map(Span::text).collect()
    }

    /// Columns that it takes.
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| span.text.width()).sum()
    }

    /// Whether it shows nothing.
    pub fn is_blank(&self) -> bool {
        self.spans.iter().all(|span| span.text.trim().is_empty())
    }

    /// The same with a style laid under all of it.
    #[must_use]
    pub fn under(mut self, style: Style) -> Self {
        for span in &mut self.spans {
            span.style = span.style.over(style);
        }
        self
    }

    fn cells(&self) -> Vec<Cell<'_>> {
        let cells = self.spans.iter().flat_map(|span| {
            span.text.graphemes(true).map(|text| Cell { text, style: span.style, width: text.width() })
        });
        cells.collect()
    }

    /// Cut to so many columns, with a sign where something was left out.
    #[must_use]
    pub fn cut(self, width: usize) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut cut = Self::empty();
        let mut taken = 0;
        let mut last = Style::PLAIN;
        for cell in self.cells() {
            if taken + cell.width + 1 > width {
                break;
            }
            taken += cell.width;
            last = cell.style;
            cut.push(cell.text, cell.style);
        }
        if width > 0 {
            cut.push("…", last);
        }
        cut
    }

    /// Broken between words into lines of at most `width` columns; all but the first begin with `hang`. Words that are
    /// wider are broken anywhere.
    pub fn wrap(&self, width: usize, hang: &Self) -> Vec<Self> {
        if self.width() <= width {
            return vec![self.clone()];
        }
        let cells = self.cells();
        let hang_width = hang.width();
        let room = |first: bool| if first { width } else { width.saturating_sub(hang_width) }.max(2);
        let mut lines = Vec::new();
        let mut start = 0;
        while start < cells.len() {
            let first = lines.is_empty();
            let end = line_end(&cells, start, room(first));
            let mut line = if first { Self::empty() } else { hang.clone() };
            let mut shown = end;
            while shown > start && cells[shown - 1].text == " " && end < cells.len() {
                shown -= 1;
            }
            for cell in &cells[start..shown] {
                line.push(cell.text, cell.style);
            }
            lines.push(line);
            start = end;
            // The blanks of a break belong to neither line.
            while start < cells.len() && cells[start].text == " " {
                start += 1;
            }
        }
        lines
    }

    /// Broken at the width whatever stands there, for code and output.
    pub fn fold(&self, width: usize) -> Vec<Self> {
        let width = width.max(2);
        let mut lines = vec![Self::empty()];
        let mut taken = 0;
        for cell in self.cells() {
            if taken + cell.width > width {
                lines.push(Self::empty());
                taken = 0;
            }
            taken += cell.width;
            if let Some(line) = lines.last_mut() {
                line.push(cell.text, cell.style);
            }
        }
        lines
    }

    /// With its control sequences; plain text at its end.
    pub fn painted(&self, depth: Depth) -> String {
        let mut out = String::new();
        for span in &self.spans {
            let begin = span.style.begin(depth);
            if begin.is_empty() {
                out.push_str(&span.text);
            } else {
                out.push_str(&begin);
                out.push_str(&span.text);
                out.push_str("\x1b[0m");
            }
        }
        out
    }
}

/// One past the last cell that fits; behind a blank where there is one.
fn line_end(cells: &[Cell<'_>], start: usize, room: usize) -> usize {
    let mut taken = 0;
    let mut blank = None;
    for (at, cell) in cells.iter().enumerate().skip(start) {
        if cell.text == " " {
            blank = Some(at + 1);
        }
        if taken + cell.width > room {
            // A blank at the very edge may hang over.
            if cell.text == " " {
                return at + 1;
            }
            let broken = blank.filter(|blank| *blank > start + 1).unwrap_or(at);
            return broken.max(start + 1);
        }
        taken += cell.width;
        // Between wide characters a line may end anywhere.
        if cell.width == 2 {
            blank = Some(at + 1);
        }
    }
    cells.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::paint::Rgb;

    fn texts(lines: &[Line]) -> Vec<String> {
        lines.iter().map(Line::text).collect()
    }

    #[test]
    fn nothing_in_a_line_steers_the_terminal() {
        let line = Line::plain("a\x1b[2J\tb\u{9b}\r\u{202e}");
        assert_eq!(line.text(), "a␛[2J    b<U+009B> <U+202E>");
    }

    #[test]
    fn words_stay_whole_where_they_fit() {
        let line = Line::plain("the quick brown fox jumps over extraordinarily-long things");
        assert_eq!(
            texts(&line.wrap(12, &Line::plain("  "))),
            ["the quick", "  brown fox", "  jumps over", "  extraordin", "  arily-long", "  things"]
        );
        assert_eq!(
            texts(&Line::plain("日本語のテキスト").wrap(5, &Line::empty())),
            ["日本", "語の", "テキ", "スト"]
        );
    }

    #[test]
    fn a_cut_says_that_something_is_left_out() {
        let line = Line::plain("日本").with("語の", Style::PLAIN.bold());
        assert_eq!(line.clone().cut(8).text(), "日本語の");
        assert_eq!(line.clone().cut(7).text(), "日本語…");
        assert_eq!(line.cut(0).text(), "");
    }

    #[test]
    fn output_is_folded_at_the_edge() {
        assert_eq!(texts(&Line::plain("abcdefg").fold(3)), ["abc", "def", "g"]);
        assert_eq!(texts(&Line::empty().fold(3)), [""]);
    }

    #[test]
    fn a_line_is_written_with_its_colours_and_ends_plain() {
        let line = Line::plain("a ").with("b", Style::PLAIN.fg(Rgb(170, 0, 0)));
        assert_eq!(line.painted(Depth::Basic), "a \x1b[31mb\x1b[0m");
        assert_eq!(line.painted(Depth::NoColor), "a b");
        assert_eq!(line.width(), 3);
    }

    #[test]
    fn no_wrapped_line_is_wider_than_its_room() {
        let line = Line::plain("ein 日本語 text with  several   blanks and_one_word_that_is_long")
            .with("x", Style::PLAIN.bold());
        for width in 4..40 {
            for part in line.wrap(width, &Line::plain("| ")) {
                assert!(part.width() <= width, "{width}: {:?}", part.text());
            }
        }
    }
}
