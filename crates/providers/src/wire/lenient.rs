//! Reads fields that services spell in more ways than one: an odd number is no reason to lose an answer.
//!
//! Owns what counts as a number, a word or nothing. Must not know which wire it reads for.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A count: also as `12.0` or `"12"`. Anything else is as good as left out.
pub(super) fn count<'de, D: Deserializer<'de>>(field: D) -> Result<Option<u64>, D::Error> {
    Ok(whole(&Value::deserialize(field)?).and_then(|number| u64::try_from(number).ok()))
}

/// An index of either sign, as [`count`] reads it.
pub(super) fn index<'de, D: Deserializer<'de>>(field: D) -> Result<Option<i64>, D::Error> {
    Ok(whole(&Value::deserialize(field)?))
}

/// An index of a block.
pub(super) fn block_index<'de, D: Deserializer<'de>>(field: D) -> Result<Option<u32>, D::Error> {
    Ok(whole(&Value::deserialize(field)?).and_then(|number| u32::try_from(number).ok()))
}

/// A string, or a number in its place.
pub(super) fn word<'de, D: Deserializer<'de>>(field: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(field)? {
        Value::String(word) => Some(word),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    })
}

/// What is not of this form is as good as left out.
pub(super) fn maybe<'de, D: Deserializer<'de>, T: DeserializeOwned>(field: D) -> Result<Option<T>, D::Error> {
    Ok(T::deserialize(Value::deserialize(field)?).ok())
}

/// An error says something: `false`, `null` and nothing at all are none.
pub(super) fn error<'de, D: Deserializer<'de>>(field: D) -> Result<Option<Value>, D::Error> {
    let says = |error: &Value| match error {
        Value::Object(_) => true,
        Value::String(text) => !text.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => false,
    };
    Ok(Some(Value::deserialize(field)?).filter(says))
}

fn whole(value: &Value) -> Option<i64> {
    /// Up to here a float holds every whole number.
    const MOST: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => number.as_i64().or_else(|| {
            let float = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() <= MOST)?;
            format!("{float:.0}").parse().ok()
        }),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// The text with half surrogate pairs (`\ud83d` alone: a character that was cut in two) replaced; none where there is
/// none.
pub(super) fn mended(json: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(json.len());
    let mut has_changed = false;
    let mut rest = json;
    while let Some((&byte, after)) = rest.split_first() {
        let (taken, replaced) = match (byte, unit(rest)) {
            (b'\\', Some(0xd800..=0xdbff)) if matches!(unit(&rest[6..]), Some(0xdc00..=0xdfff)) => {
                (12, false)
            }
            (b'\\', Some(0xd800..=0xdfff)) => (6, true),
            // The next byte is escaped, whatever it is.
            (b'\\', _) => (2.min(after.len() + 1), false),
            _ => (1, false),
        };
        if replaced {
            out.extend_from_slice(br"\ufffd");
        } else {
            out.extend_from_slice(&rest[..taken]);
        }
        has_changed |= replaced;
        rest = &rest[taken..];
    }
    has_changed.then_some(out)
}

/// The number of a `\uXXXX` at the beginning.
fn unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(br"\u")?.get(..4)?;
    digits.iter().try_fold(0, |sum, digit| Some(sum * 16 + char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_are_read_as_they_are_meant() {
        for (value, expected) in [
            (json!(12), Some(12)),
            (json!(12.0), Some(12)),
            (json!("12"), Some(12)),
            (json!(-1), None),
            (json!(1.5), None),
            (json!(1e300), None),
            (json!("many"), None),
            (json!({}), None),
        ] {
            assert_eq!(count(&value).unwrap(), expected, "{value}");
        }
        assert_eq!(index(json!("0")).unwrap(), Some(0));
        assert_eq!(block_index(json!(-1)).unwrap(), None);
        assert_eq!(word(json!(7)).unwrap(), Some("7".to_owned()));
        assert_eq!(error(json!(false)).unwrap(), None);
    }

    #[test]
    fn only_half_pairs_are_replaced() {
        assert_eq!(mended(br#""a\ud83d\ude00 \\ud83d \n""#), None);
        assert_eq!(mended(br#""\ud83d""#).unwrap(), br#""\ufffd""#);
        assert_eq!(
            mended(br#""\ude00\ud83dx\ud83d\ud83d\ude00""#).unwrap(),
            br#""\ufffd\ufffdx\ufffd\ud83d\ude00""#
        );
        assert_eq!(mended(br"\ud83"), None);
        assert_eq!(mended(b"\\"), None);
    }
}
