//! Control characters made visible: nothing that a model, a tool or a file says steers a terminal.

use std::borrow::Cow;

/// Line ends and tabs stay; every other control, format and direction character is shown as a sign.
pub fn visible(text: &str) -> Cow<'_, str> {
    show(text, |c| c == '\n' || c == '\t')
}

/// The same for one line: line ends and tabs become a space.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    if text.contains(['\n', '\r', '\t']) {
        let flat = text.replace("\r\n", " ").replace(['\n', '\r', '\t'], " ");
        Cow::Owned(show(&flat, |_| false).into_owned())
    } else {
        show(text, |_| false)
    }
}

fn show(text: &str, keep: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(|c| is_control(c) && !keep(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            c if !is_control(c) || keep(c) => shown.push(c),
            '\u{7f}' => shown.push('\u{2421}'),
            c if u32::from(c) < 0x20 => {
                shown.push(char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'))
            }
            c => shown.push_str(&format!("<U+{:04X}>", u32::from(c))),
        }
    }
    Cow::Owned(shown)
}

fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{fff9}'..='\u{fffb}')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escape_sequence_is_shown_and_not_sent() {
        assert_eq!(visible("a\u{1b}[2Jb\n"), "a␛[2Jb\n");
        assert_eq!(visible("\u{202e}x\u{9b}"), "<U+202E>x<U+009B>");
        assert_eq!(
            visible("\u{61c}\u{ad}\u{180e}\u{fff9}\u{fffb}"),
            "<U+061C><U+00AD><U+180E><U+FFF9><U+FFFB>"
        );
        assert!(matches!(visible("plain\ttext"), Cow::Borrowed(_)));
    }

    #[test]
    fn one_line_stays_one_line() {
        assert_eq!(visible_line("a\r\nb\tc\u{7}"), "a b c␇");
    }
}
