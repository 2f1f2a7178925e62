//! Text into columns. Wide characters count two; nothing that steers a terminal gets through.

use claw_kernel::visible::visible_line;
use console::{measure_text_width, truncate_str};
use std::borrow::Cow;

/// Columns that a text takes.
pub(super) fn columns(text: &str) -> usize {
    measure_text_width(text)
}

/// Cut to so many columns, with a sign where something was left out.
pub(super) fn cut(text: &str, width: usize) -> String {
    if width == 0 {
        return String::new();
    }
    let shown: Cow<'_, str> = visible_line(text);
    truncate_str(&shown, width, "…").into_owned()
}

/// Filled with blanks to so many columns, cut where it is longer.
pub(super) fn padded(text: &str, width: usize) -> String {
    let text = cut(text, width);
    let rest = width.saturating_sub(columns(&text));
    format!("{text}{}", " ".repeat(rest))
}

/// A piece of a line: how dear it is (0 = always kept), and its text.
pub(super) struct Piece {
    pub(super) rank: u8,
    pub(super) text: String,
    /// May be cut down to so many columns before cheaper pieces are dropped; `None` = whole or not at all.
    pub(super) least: Option<usize>,
}

impl Piece {
    pub(super) fn whole(rank: u8, text: impl Into<String>) -> Self {
        Self { rank, text: text.into(), least: None }
    }

    pub(super) fn elastic(rank: u8, text: impl Into<String>, least: usize) -> Self {
        Self { rank, text: text.into(), least: Some(least) }
    }

    fn smallest(&self) -> usize {
        self.least.map_or_else(|| columns(&self.text), |least| least.min(columns(&self.text)))
    }
}

/// Pieces in order, one blank between them, within `width` columns. Pieces of the highest rank go first; elastic ones
/// take what is left.
pub(super) fn compose(mut pieces: Vec<Piece>, width: usize) -> String {
    pieces.retain(|piece| !piece.text.is_empty());
    let needed = |pieces: &[Piece]| -> usize {
        pieces.iter().map(Piece::smallest).sum::<usize>() + pieces.len().saturating_sub(1)
    };
    while needed(&pieces) > width {
        let Some(dearest) = pieces.iter().map(|piece| piece.rank).max().filter(|rank| *rank > 0) else {
            break;
        };
        if let Some(at) = pieces.iter().rposition(|piece| piece.rank == dearest) {
            pieces.remove(at);
        }
    }
    let mut spare = width.saturating_sub(needed(&pieces));
    let shown: Vec<String> = pieces
        .iter()
        .map(|piece| {
            let wanted = columns(&piece.text);
            let room = (piece.smallest() + spare).min(wanted);
            spare -= room.saturating_sub(piece.smallest()).min(spare);
            if room < wanted { cut(&piece.text, room) } else { piece.text.clone() }
        })
        .collect();
    cut(&shown.join(" "), width)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_are_cut_by_columns() {
        assert_eq!(cut("日本語のテキスト", 7), "日本語…");
        assert_eq!(columns(&padded("日本", 6)), 6);
        assert_eq!(cut("a\u{1b}[2J\nb", 20), "a␛[2J b");
        assert_eq!(cut("abc", 0), "");
    }

    #[test]
    fn cheap_pieces_survive_a_narrow_line() {
        let pieces = || {
            vec![
                Piece::elastic(0, "explore=security", 8),
                Piece::elastic(1, "grep_search unsafe in src/", 6),
                Piece::whole(2, "12s"),
                Piece::whole(3, "$0.42"),
            ]
        };
        assert_eq!(compose(pieces(), 80), "explore=security grep_search unsafe in src/ 12s $0.42");
        assert_eq!(compose(pieces(), 40), "explore=security grep_search … 12s $0.42");
        assert_eq!(compose(pieces(), 20), "explore=… grep_… 12s");
        assert_eq!(compose(pieces(), 9), "explore=…");
        for width in 0..60 {
            assert!(columns(&compose(pieces(), width)) <= width, "{width}");
        }
    }
}
