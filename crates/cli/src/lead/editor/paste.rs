//! Pastes: long ones are folded into a sign and come out whole when the text is sent. Pure.

/// More lines or characters than this are folded.
const MOST_LINES: usize = 8;
const MOST_CHARS: usize = 1_000;

/// The pastes of one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pastes {
    kept: Vec<(String, String)>,
}

/// Line ends as texts have them; terminals paste carriage returns.
pub(super) fn with_line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

impl Pastes {
    /// What stands in the text for a paste.
    pub(super) fn fold(&mut self, paste: String) -> String {
        let lines = paste.lines().count();
        let chars = paste.chars().count();
        if lines <= MOST_LINES && chars <= MOST_CHARS {
            return paste;
        }
        let size = if lines > MOST_LINES { format!("{lines} lines") } else { format!("{chars} characters") };
        let same = self.kept.iter().filter(|(sign, _)| sign.contains(&size)).count();
        let sign = match same {
            0 => format!("[pasted {size}]"),
            n => format!("[pasted {size} #{}]", n + 1),
        };
        self.kept.push((sign.clone(), paste));
        sign
    }

    /// The text with all pastes whole.
    pub(super) fn unfold(&self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        loop {
            let next =
                self.kept.iter().filter_map(|(sign, paste)| Some((rest.find(sign.as_str())?, sign, paste)));
            let Some((at, sign, paste)) =
                next.min_by_key(|(at, sign, _)| (*at, std::cmp::Reverse(sign.len())))
            else {
                out.push_str(rest);
                return out;
            };
            out.push_str(&rest[..at]);
            out.push_str(paste);
            rest = &rest[at + sign.len()..];
        }
    }

    /// The sign that ends right before the cursor.
    pub(super) fn sign_before(&self, text: &str, cursor: usize) -> Option<usize> {
        let head = text.get(..cursor)?;
        self.kept.iter().find(|(sign, _)| head.ends_with(sign.as_str())).map(|(sign, _)| sign.len())
    }

    pub(super) fn clear(&mut self) {
        self.kept.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pastes_are_folded_and_come_out_whole() {
        let mut pastes = Pastes::default();
        assert_eq!(pastes.fold("short".into()), "short");
        let long: String = (0..120).map(|n| format!("line {n}\n")).collect();
        let first = pastes.fold(long.clone());
        let second = pastes.fold(long.to_uppercase());
        assert_eq!((first.as_str(), second.as_str()), ("[pasted 120 lines]", "[pasted 120 lines #2]"));
        let text = format!("look: {second} and {first}");
        assert_eq!(pastes.unfold(&text), format!("look: {} and {long}", long.to_uppercase()));
        assert_eq!(pastes.fold("x".repeat(5000)), "[pasted 5000 characters]");
        assert_eq!(pastes.sign_before(&text, text.len()), Some(first.len()));
        // A paste that holds the sign of another one is not opened again.
        let tricky = format!("{first}\n{}", "y\n".repeat(20));
        let sign = pastes.fold(tricky.clone());
        assert_eq!(pastes.unfold(&sign), tricky);
    }
}
