//! Inputs of a merge by agents, in groups that fit: the levels of a tree.

use serde_json::Value;
use std::ops::Range;

/// Inputs that one agent merges.
pub type Window = Range<usize>;

/// Bytes of an input as a prompt shows it.
pub fn size_of(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        other => other.to_string().len(),
    }
}

/// One level of the tree: neighbours in groups of at most `window` bytes. The outputs of the groups are the inputs of
/// the next level; one group is the root. More than one input always give fewer groups than inputs, however large
/// they are, so the tree ends.
pub fn windows(sizes: &[usize], window: usize) -> Vec<Window> {
    let mut out: Vec<Window> = Vec::new();
    let mut bytes = 0_usize;
    for (at, size) in sizes.iter().enumerate() {
        match out.last_mut() {
            Some(last) if bytes.saturating_add(*size) <= window => {
                last.end = at + 1;
                bytes += size;
            }
            Some(_) | None => {
                out.push(at..at + 1);
                bytes = *size;
            }
        }
    }
    if out.len() == sizes.len() && sizes.len() > 1 {
        // Nothing fits together: pairs all the same, each text is cut where the prompt shows it.
        return (0..sizes.len()).step_by(2).map(|at| at..(at + 2).min(sizes.len())).collect();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn neighbours_share_a_window_while_they_fit() {
        assert_eq!(windows(&[10, 10, 10, 25, 5], 30), [0..3, 3..5]);
        assert_eq!(windows(&[50, 50, 50], 30), [0..2, 2..3]);
        assert_eq!(windows(&[], 30), Vec::<Window>::new());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn a_level_holds_every_input_once_and_is_smaller(sizes in proptest::collection::vec(0_usize..100, 0..50), window in 0_usize..200) {
            let level = windows(&sizes, window);
            let flat: Vec<usize> = level.iter().cloned().flatten().collect();
            prop_assert_eq!(flat, (0..sizes.len()).collect::<Vec<_>>());
            prop_assert!(sizes.len() < 2 || level.len() < sizes.len());
        }
    }
}
