//! The one place that cuts text at a limit: on character boundaries, with a note of the size that was cut.
//!
//! Limits count characters; notes count bytes. Characters are never split, joined ones (graphemes) may be.

/// The first `most` characters; says how many bytes follow that are not shown.
pub fn head(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}[… {} bytes cut]", &text[..at], text.len() - at),
    }
}

/// At most `most` characters: the first half and the last half; says how many bytes between them are not shown.
pub fn middle(text: &str, most: usize) -> String {
    middle_of_bytes(text.as_bytes(), 0, &[], most)
}

/// The first `most` characters without a note: for labels and previews that have no room for one.
pub fn plain(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(at, _)| &text[..at])
}

/// The same for a stream of which `missing` bytes between `head` and `tail` are gone already. Bad bytes become U+FFFD,
/// never because of a cut.
pub(crate) fn middle_of_bytes(head: &[u8], missing: u64, tail: &[u8], most: usize) -> String {
    if missing == 0 {
        let all = [head, tail].concat();
        let text = String::from_utf8_lossy(&all);
        if text.chars().nth(most).is_none() {
            return text.into_owned();
        }
        let (start, end) = (first(&text, most / 2), last(&text, most - most / 2));
        return noted(start, text.len() - start.len() - end.len(), end);
    }
    let whole_head = &head[..head.len() - split_at_end(head)];
    let whole_tail = &tail[split_at_start(tail)..];
    let (start, end) = (String::from_utf8_lossy(whole_head), String::from_utf8_lossy(whole_tail));
    let (start_shown, end_shown) = (first(&start, most / 2), last(&end, most - most / 2));
    let around = head.len() - whole_head.len() + tail.len() - whole_tail.len();
    let more = around + start.len() - start_shown.len() + end.len() - end_shown.len();
    noted(start_shown, usize::try_from(missing).unwrap_or(usize::MAX).saturating_add(more), end_shown)
}

fn noted(start: &str, cut: usize, end: &str) -> String {
    format!("{start}\n[… {cut} bytes cut …]\n{end}")
}

fn first(text: &str, most: usize) -> &str {
    plain(text, most)
}

fn last(text: &str, most: usize) -> &str {
    match most.checked_sub(1) {
        None => "",
        Some(back) => text.char_indices().nth_back(back).map_or(text, |(at, _)| &text[at..]),
    }
}

/// Bytes at the end that are the start of a character whose rest was cut off.
pub(crate) fn split_at_end(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        let length = match byte {
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            0x80..=0xBF => continue,
            _ => 1,
        };
        return if length > back { back } else { 0 };
    }
    0
}

/// Bytes at the start that are the rest of a character whose start was cut off.
fn split_at_start(bytes: &[u8]) -> usize {
    bytes.iter().take(3).take_while(|byte| (0x80..=0xBF).contains(*byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BAD: char = '\u{FFFD}';

    #[test]
    fn a_note_gives_the_size_that_was_cut() {
        assert_eq!(head("a🦀🦀", 2), "a🦀[… 4 bytes cut]");
        assert_eq!(middle("a🦀🦀🦀b", 2), "a\n[… 12 bytes cut …]\nb");
        assert_eq!(middle("abc", 3), "abc");
        assert_eq!(middle("abc", 0), "\n[… 3 bytes cut …]\n");
    }

    proptest! {
        #[test]
        fn no_cut_splits_a_character(before in 0usize..9, most in 0usize..40, keep in 1usize..30) {
            let text = format!("{}{}", "a".repeat(before), "🦀é".repeat(20));
            prop_assert!(!middle(&text, most).contains(BAD));
            let bytes = text.as_bytes();
            let missing = (bytes.len() - 2 * keep) as u64;
            let shown = middle_of_bytes(&bytes[..keep], missing, &bytes[bytes.len() - keep..], most);
            prop_assert!(!shown.contains(BAD), "{}", shown);
        }

        #[test]
        fn any_bytes_are_safe(head in proptest::collection::vec(any::<u8>(), 0..40), tail in proptest::collection::vec(any::<u8>(), 0..40), most in 0usize..50) {
            middle_of_bytes(&head, 7, &tail, most);
        }
    }
}
