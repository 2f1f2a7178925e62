//! Known secrets leave a text once, where it enters: what is sent, shown and stored is the same text.

use std::borrow::Cow;
use std::cmp::Reverse;

/// Shorter values of the environment are no secrets: replacing them would maim ordinary text.
const SHORTEST: usize = 8;
/// What somebody declared to be a secret is one, down to here. Below it every text would be maimed, and the value could
/// be guessed from what is missing.
const SHORTEST_DECLARED: usize = 4;
const MARK: &str = "[redacted]";

/// Holds the known secrets.
#[derive(Clone, Default)]
pub struct Redactor {
    /// In every form in which they may stand in a text, the longest first.
    forms: Vec<String>,
}

impl std::fmt::Debug for Redactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Redactor({} forms of secrets)", self.forms.len())
    }
}

impl Redactor {
    /// Values below 8 bytes are left out. A longer secret that holds a shorter one is replaced first.
    pub fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        Self::default().with(secrets, SHORTEST)
    }

    /// Also knows values that somebody declared to be secret; only those below 4 bytes are left out.
    #[must_use]
    pub fn declared(self, secrets: impl IntoIterator<Item = String>) -> Self {
        self.with(secrets, SHORTEST_DECLARED)
    }

    fn with(mut self, secrets: impl IntoIterator<Item = String>, shortest: usize) -> Self {
        let long_enough = |form: &String| form.len() >= shortest;
        for secret in secrets {
            // A shell drops the line end of a value, a document escapes what is in it.
            let bare = secret.trim();
            let mut forms = vec![in_json(&secret), in_json(bare), bare.to_owned()];
            forms.push(secret);
            self.forms.extend(forms.into_iter().filter(long_enough));
        }
        self.forms.sort_unstable_by(|a, b| (Reverse(a.len()), a).cmp(&(Reverse(b.len()), b)));
        self.forms.dedup();
        self
    }

    /// The text without any known secret.
    pub fn apply<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut clean = Cow::Borrowed(text);
        for form in &self.forms {
            if clean.contains(form.as_str()) {
                clean = Cow::Owned(clean.replace(form.as_str(), MARK));
            }
        }
        clean
    }
}

impl Redactor {
    /// Bytes at the end of a text in which a known secret may have begun: what is shown before more of the text has come
    /// ends before them. Beginnings below 4 bytes do not count.
    pub fn begun(&self, text: &str) -> usize {
        let begun = |form: &String| {
            let most = form.len().saturating_sub(1).min(text.len());
            (SHORTEST_DECLARED..=most)
                .rev()
                .find(|length| form.as_bytes()[..*length] == text.as_bytes()[text.len() - length..])
        };
        let longest = self.forms.iter().filter_map(begun).max().unwrap_or(0);
        text.len() - text.floor_char_boundary(text.len() - longest)
    }
}

/// As it stands inside a JSON string.
fn in_json(text: &str) -> String {
    // A string can always be written.
    let quoted = serde_json::to_string(text).unwrap_or_default();
    quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_secret_is_taken_out() {
        let redactor =
            Redactor::new(["sk-12345678".to_owned(), "sk-12345678-long".to_owned(), "none".to_owned()]);
        assert_eq!(redactor.apply("a sk-12345678-long b sk-12345678 none"), "a [redacted] b [redacted] none");
    }

    #[test]
    fn a_declared_secret_may_be_short_and_one_of_the_environment_may_not() {
        let redactor = Redactor::new(["pin9876".to_owned()]);
        assert_eq!(redactor.apply("pin9876"), "pin9876");
        let redactor = redactor.declared(["pin9876".to_owned(), "abc".to_owned(), String::new()]);
        assert_eq!(redactor.apply("a pin9876 abc"), "a [redacted] abc");
    }

    #[test]
    fn a_secret_is_found_inside_a_json_string_and_without_its_line_end() {
        let redactor = Redactor::default().declared(["two \"l\"\nines\n".to_owned()]);
        let document = serde_json::json!({ "a": "x two \"l\"\nines\n y" }).to_string();
        assert_eq!(redactor.apply(&document), r#"{"a":"x [redacted] y"}"#);
        assert_eq!(redactor.apply("two \"l\"\nines."), "[redacted].");
    }

    #[test]
    fn the_beginning_of_a_secret_at_the_end_is_known() {
        let redactor = Redactor::new(["hunter2hunter2".to_owned()]);
        assert_eq!(redactor.begun("it is hunter2hu"), 9);
        assert_eq!(redactor.begun("it is hun"), 0);
        assert_eq!(redactor.begun("it is hunter2hunter2"), 7, "it could begin again");
        assert_eq!(Redactor::default().begun("x"), 0);
    }
}
