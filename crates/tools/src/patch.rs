//! The difference of two texts as hunks, bounded: for reports and for who asked for data.

use serde::Serialize;
use similar::{Algorithm, ChangeTag, TextDiff};
use std::time::Duration;

/// Texts above this are not compared.
const MOST_BYTES: usize = 2 * 1024 * 1024;
/// Lines of all hunks together.
const MOST_LINES: usize = 1_000;

/// A changed place with three lines around it. Lines are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hunk {
    /// First line in the old text.
    pub old_start: usize,
    /// Lines of the old text.
    pub old_lines: usize,
    /// First line in the new text.
    pub new_start: usize,
    /// Lines of the new text.
    pub new_lines: usize,
    /// Lines with ` `, `-` or `+` in front.
    pub lines: Vec<String>,
}

/// The hunks; empty where the texts are equal or too long to compare.
pub fn hunks(old: &str, new: &str) -> Vec<Hunk> {
    if old.len() + new.len() > MOST_BYTES {
        return Vec::new();
    }
    let diff = TextDiff::configure()
        .algorithm(Algorithm::Myers)
        .timeout(Duration::from_millis(200))
        .diff_lines(old, new);
    let mut room = MOST_LINES;
    let mut hunks = Vec::new();
    for group in diff.grouped_ops(3) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        let (old_range, new_range) =
            (first.old_range().start..last.old_range().end, first.new_range().start..last.new_range().end);
        let lines: Vec<String> = group
            .iter()
            .flat_map(|op| diff.iter_changes(op))
            .take(room)
            .map(|change| {
                let sign = match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                };
                format!("{sign}{}", change.value().trim_end_matches(['\n', '\r']))
            })
            .collect();
        room -= lines.len();
        hunks.push(Hunk {
            old_start: old_range.start + 1,
            old_lines: old_range.len(),
            new_start: new_range.start + 1,
            new_lines: new_range.len(),
            lines,
        });
        if room == 0 {
            break;
        }
    }
    hunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_line_is_one_hunk() {
        let hunks = hunks("a\nb\nc\n", "a\nB\nc\n");
        assert_eq!(hunks.len(), 1);
        assert_eq!(hunks[0].lines, [" a", "-b", "+B", " c"]);
        assert_eq!((hunks[0].old_start, hunks[0].old_lines), (1, 3));
    }
}
