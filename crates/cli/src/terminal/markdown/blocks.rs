//! Where a block of Markdown ends while its text still comes. Pure.

/// A block of more bytes is shown as it stands, at the end of a line.
const MOST: usize = 32 * 1024;

/// Bytes of the text that are whole blocks: what follows cannot change how they look, short of a reference defined below.
pub(super) fn complete(text: &str) -> usize {
    let mut done = 0;
    let mut at = 0;
    let mut fence: Option<Fence> = None;
    let mut in_list = false;
    let mut blank_before = false;
    let mut begun = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let whole = line.ends_with('\n');
        if let Some(open) = &fence {
            if whole && open.is_closed_by(line) {
                let top = open.indent == 0;
                fence = None;
                if top && !in_list {
                    done = at;
                    begun = at;
                }
            }
            blank_before = false;
            continue;
        }
        let empty = line.trim().is_empty();
        if blank_before && !empty {
            if !whole && is_undecided(line) {
                break;
            }
            // A blank line ends what is not continued by an indent or, in a list, by its next item.
            let goes_on = in_list && (line.starts_with([' ', '\t']) || is_item(line));
            if !goes_on {
                done = start;
                begun = start;
                in_list = false;
            }
        }
        if !whole {
            break;
        }
        if !empty {
            if start == begun {
                in_list = is_item(line);
            }
            fence = Fence::opened_by(line);
            if fence.is_none() && is_heading(line) && !in_list {
                done = at;
                begun = at;
            }
        } else if start == begun {
            begun = at;
        }
        blank_before = empty;
    }
    if done == 0 { too_long(text) } else { done }
}

/// Too little of the line is there to say what it begins.
fn is_undecided(line: &str) -> bool {
    let start = line.trim_start();
    start.is_empty() || start.len() < 4 && start.chars().all(|c| c.is_ascii_digit() || "-*+.) ".contains(c))
}

fn is_item(line: &str) -> bool {
    let start = line.trim_start();
    if line.len() - start.len() > 3 {
        return false;
    }
    if start.starts_with("- ") || start.starts_with("* ") || start.starts_with("+ ") {
        return true;
    }
    let digits = start.bytes().take_while(u8::is_ascii_digit).count();
    (1..=9).contains(&digits)
        && start[digits..].starts_with([')', '.'])
        && start[digits + 1..].starts_with(' ')
}

fn is_heading(line: &str) -> bool {
    let marks = line.bytes().take_while(|b| *b == b'#').count();
    (1..=6).contains(&marks) && line[marks..].starts_with([' ', '\n'])
}

/// Code between fences.
struct Fence {
    sign: char,
    count: usize,
    indent: usize,
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let start = line.trim_start();
        let sign = start.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let count = start.chars().take_while(|c| *c == sign).count();
        let info = &start[count..];
        let is_fence = count >= 3 && (sign == '~' || !info.contains('`'));
        is_fence.then_some(Self { sign, count, indent: line.len() - start.len() })
    }

    fn is_closed_by(&self, line: &str) -> bool {
        let text = line.trim();
        text.len() >= self.count && text.chars().all(|c| c == self.sign)
    }
}

/// Nobody waits for the end of what is very long.
fn too_long(text: &str) -> usize {
    if text.len() <= MOST {
        return 0;
    }
    let cut = text.floor_char_boundary(MOST);
    text[..cut].rfind('\n').map_or(cut, |at| at + 1)
}

/// The fence that is open at the end of a piece that was cut, as it has to be opened again.
pub(super) fn open_fence(text: &str) -> Option<String> {
    let mut fence: Option<(Fence, String)> = None;
    for line in text.lines() {
        fence = match fence {
            Some((open, _)) if open.is_closed_by(line) => None,
            Some(open) => Some(open),
            None => Fence::opened_by(line).map(|open| (open, line.to_owned())),
        };
    }
    fence.map(|(_, line)| line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn done(text: &str) -> &str {
        &text[..complete(text)]
    }

    #[test]
    fn a_paragraph_is_whole_when_something_else_begins() {
        assert_eq!(done("one two"), "");
        assert_eq!(done("one two\n"), "");
        assert_eq!(done("one two\n\n"), "");
        assert_eq!(done("one two\n\nthree"), "one two\n\n");
        assert_eq!(done("one\n\n- "), "", "not yet known what it is");
    }

    #[test]
    fn a_heading_is_whole_with_its_line() {
        assert_eq!(done("# head"), "");
        assert_eq!(done("# head\ntext"), "# head\n");
    }

    #[test]
    fn a_list_goes_on_over_blank_lines() {
        assert_eq!(done("- a\n\n- b\n\n  more\n"), "");
        assert_eq!(done("- a\n\n- b\n\ntext here"), "- a\n\n- b\n\n");
        assert_eq!(done("1. a\n\n2. b\n"), "");
    }

    #[test]
    fn code_is_whole_with_its_fence() {
        assert_eq!(done("```rust\nfn main() {\n\n}\n"), "");
        assert_eq!(done("```rust\nfn main() {\n\n}\n```\n"), "```rust\nfn main() {\n\n}\n```\n");
        assert_eq!(done("````\n```\n\n```\n"), "");
    }

    #[test]
    fn a_block_without_end_is_given_in_pieces() {
        let long = format!("```\n{}", "x = 1\n".repeat(10_000));
        let piece = done(&long);
        assert!(!piece.is_empty() && piece.ends_with('\n') && piece.len() <= MOST);
        assert_eq!(open_fence(piece).as_deref(), Some("```"));
        assert_eq!(open_fence("```\na\n```\n"), None);
    }
}
