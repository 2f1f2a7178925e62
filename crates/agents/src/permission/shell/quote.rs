//! Quotes: a word in them, and the inside of `$'…'` and backquotes.

/// One word of a command line that means exactly this text.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The text of `$'…'`, from behind its opening quote: what it means, and the bytes up to and with the closing one.
/// `None`: it does not close.
pub(super) fn ansi_c(rest: &str) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut chars = rest.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\'' => return Some((text, at + 1)),
            '\\' => {
                let (_, escaped) = chars.next()?;
                let number = |chars: &mut std::iter::Peekable<std::str::CharIndices<'_>>,
                              radix,
                              most,
                              first: Option<u32>| {
                    let mut value = first;
                    let mut left: usize = most;
                    while left > 0
                        && let Some(digit) = chars.peek().and_then(|(_, c)| c.to_digit(radix))
                    {
                        value = Some(value.unwrap_or(0).saturating_mul(radix).saturating_add(digit));
                        chars.next();
                        left -= 1;
                    }
                    value.and_then(char::from_u32)
                };
                let meant = match escaped {
                    'a' => Some('\u{7}'),
                    'b' => Some('\u{8}'),
                    'e' | 'E' => Some('\u{1b}'),
                    'f' => Some('\u{c}'),
                    'n' => Some('\n'),
                    'r' => Some('\r'),
                    't' => Some('\t'),
                    'v' => Some('\u{b}'),
                    'x' => number(&mut chars, 16, 2, None),
                    'u' => number(&mut chars, 16, 4, None),
                    'U' => number(&mut chars, 16, 8, None),
                    'c' => chars.next().and_then(|(_, c)| char::from_u32(u32::from(c) & 0x1f)),
                    '0'..='7' => number(&mut chars, 8, 2, escaped.to_digit(8)),
                    other => Some(other),
                };
                text.extend(meant);
            }
            c => text.push(c),
        }
    }
    None
}

/// The commands between backquotes, from behind the opening one, and the bytes up to and with the closing one.
/// `None`: it does not close.
pub(super) fn backquoted(rest: &str, in_double: bool) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut chars = rest.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '`' => return Some((text, at + 1)),
            '\\' => match chars.peek() {
                Some((_, next @ ('`' | '\\' | '$'))) => {
                    text.push(*next);
                    chars.next();
                }
                Some((_, '"')) if in_double => {
                    text.push('"');
                    chars.next();
                }
                Some(_) | None => text.push('\\'),
            },
            c => text.push(c),
        }
    }
    None
}
