//! Names from models, files and people on their way into a path: this is the only way.

use crate::digest::Digest;
use std::fmt::Write as _;

const LONGEST: usize = 64;
const HEAD: usize = 40;

/// Keeps letters, digits, `_`, `-` and `.`; the rest is percent-encoded. Above 64 bytes, and for the empty text: the
/// first 40, `~`, 16 hex digits of the digest. Two different texts never give one name.
pub fn encode(raw: &str) -> String {
    let mut name = String::with_capacity(raw.len());
    for byte in raw.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.') {
            name.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(name, "%{byte:02X}");
        }
        if name.len() > LONGEST {
            break;
        }
    }
    if name.len() > LONGEST || name.is_empty() {
        name.truncate(HEAD);
        let _ = write!(name, "~{}", &Digest::of(raw).hex()[..16]);
    }
    name
}

/// Whether a text could have come out of [`encode`].
pub fn is_encoded(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= LONGEST
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'%' | b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn dangerous_names_lose_their_teeth() {
        assert_eq!(encode("../a b"), "..%2Fa%20b");
        assert_eq!(encode("漢"), "%E6%BC%A2");
        assert!(encode("").starts_with('~'));
    }

    proptest! {
        #[test]
        fn two_texts_never_meet(a in "\\PC{0,80}", b in "\\PC{0,80}") {
            prop_assert!(is_encoded(&encode(&a)));
            prop_assert_eq!(a == b, encode(&a) == encode(&b));
        }
    }
}
