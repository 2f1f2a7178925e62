//! A text on rows of a width, and where the cursor stands in them. Pure.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Rows of a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Byte offsets: where each row begins and ends.
    rows: Vec<(usize, usize)>,
    /// Row and column of the cursor.
    pub cursor: (usize, usize),
}

/// Columns that a character takes in the input: control characters are shown as one sign.
fn width_of(grapheme: &str) -> usize {
    if grapheme == "\t" { 4 } else { claw_kernel::visible::visible(grapheme).width() }
}

impl Layout {
    /// Breaks the text at the width, anywhere.
    pub fn of(text: &str, cursor: usize, width: usize) -> Self {
        let width = width.max(2);
        let mut rows = Vec::new();
        let (mut start, mut column) = (0, 0);
        let mut place = None;
        for (at, grapheme) in text.grapheme_indices(true) {
            let is_break = grapheme == "\n" || grapheme == "\r\n";
            let wide = width_of(grapheme);
            if !is_break && column + wide > width {
                rows.push((start, at));
                (start, column) = (at, 0);
            }
            if at == cursor {
                place = Some((rows.len(), column));
            }
            if is_break {
                rows.push((start, at));
                (start, column) = (at + grapheme.len(), 0);
            } else {
                column += wide;
            }
        }
        if place.is_none() && column >= width {
            // The cursor behind a full row stands in the next one.
            rows.push((start, text.len()));
            (start, column) = (text.len(), 0);
        }
        let cursor = place.unwrap_or((rows.len(), column));
        rows.push((start, text.len()));
        Self { rows, cursor }
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The text of a row.
    pub fn row<'a>(&self, text: &'a str, row: usize) -> &'a str {
        self.rows.get(row).and_then(|(from, to)| text.get(*from..*to)).unwrap_or_default()
    }

    /// The byte offset nearest to a column of a row.
    pub fn offset(&self, text: &str, row: usize, column: usize) -> Option<usize> {
        let (from, to) = *self.rows.get(row)?;
        let mut taken = 0;
        for (at, grapheme) in text.get(from..to)?.grapheme_indices(true) {
            if taken >= column {
                return Some(from + at);
            }
            taken += width_of(grapheme);
        }
        Some(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_and_the_cursor_is_found() {
        let text = "abcdef\n日本語x";
        let layout = Layout::of(text, 4, 4);
        let rows: Vec<&str> = (0..layout.len()).map(|row| layout.row(text, row)).collect();
        assert_eq!(rows, ["abcd", "ef", "日本", "語x"]);
        assert_eq!(layout.cursor, (1, 0));
        assert_eq!(Layout::of(text, text.len(), 4).cursor, (3, 3));
        assert_eq!(Layout::of("abcd", 4, 4).cursor, (1, 0));
        assert_eq!(Layout::of("", 0, 4).cursor, (0, 0));
        assert_eq!(layout.offset(text, 2, 3), Some(13));
    }
}
