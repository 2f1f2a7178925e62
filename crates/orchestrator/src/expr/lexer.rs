//! Reads the tokens of one expression: its names, its filters and tests, and where an expression ends in a template.
//!
//! An expression has no statements, so every name in it is a reference, but for keywords, attributes, filters, tests
//! and names of arguments. Whether the whole is an expression is the engine's to say.

use super::reference::Reference;

const KEYWORDS: [&str; 13] =
    ["and", "or", "not", "in", "is", "if", "else", "true", "false", "none", "True", "False", "None"];

/// Functions of the engine that are left in.
pub(super) const FUNCTIONS: [&str; 2] = ["range", "dict"];

/// A word after `|` or `is`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub name: String,
    pub offset: usize,
}

/// What an expression names.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub references: Vec<Reference>,
    pub filters: Vec<Word>,
    pub tests: Vec<Word>,
    /// The filter that is applied last to the whole expression.
    pub last_filter: Option<String>,
    /// The text with `<reference> | path` turned into a call.
    pub rewritten: Option<String>,
    /// `| path` behind something that is no plain name.
    pub stray_path: Option<usize>,
    /// The whole expression is one reference and filters behind it.
    pub plain: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Token<'a> {
    Ident(&'a str),
    Text(&'a str),
    Number,
    Op(char),
    Equals,
}

fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let quote = bytes[start];
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b if b == quote => return Some(at + 1),
            _ => at += 1,
        }
    }
    None
}

/// The byte of the `}}` that ends the expression beginning at `start`; `None` where there is none.
pub(super) fn end_of_expression(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (start, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            b'\'' | b'"' => {
                at = string_end(bytes, at)?;
                continue;
            }
            b'{' | b'(' | b'[' => depth += 1,
            b'}' if depth == 0 && bytes.get(at + 1) == Some(&b'}') => return Some(at),
            b'}' | b')' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || byte >= 0x80
}

fn tokens(text: &str) -> Vec<(Token<'_>, usize, usize)> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let byte = bytes[at];
        let token = if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        } else if byte.is_ascii_digit() {
            // A number with its dots and exponents; `1.foo` is no attribute in this language.
            while at < bytes.len() && (is_word(bytes[at]) || bytes[at] == b'.') {
                at += 1;
            }
            Token::Number
        } else if is_word(byte) {
            while at < bytes.len() && is_word(bytes[at]) {
                at += 1;
            }
            Token::Ident(&text[start..at])
        } else if byte == b'\'' || byte == b'"' {
            at = string_end(bytes, at).unwrap_or(bytes.len());
            Token::Text(&text[start..at])
        } else if byte == b'=' && bytes.get(at + 1) != Some(&b'=') && !follows_comparison(bytes, at) {
            at += 1;
            Token::Equals
        } else {
            at += 1;
            Token::Op(byte as char)
        };
        out.push((token, start, at));
    }
    out
}

fn follows_comparison(bytes: &[u8], at: usize) -> bool {
    at > 0 && matches!(bytes[at - 1], b'=' | b'!' | b'<' | b'>')
}

fn op(token: Option<&(Token<'_>, usize, usize)>, wanted: char) -> bool {
    matches!(token, Some((Token::Op(c), _, _)) if *c == wanted)
}

/// Reads the names of an expression. Never fails: a text that is no expression gives whatever words are in it.
pub(super) fn names(text: &str) -> Names {
    let tokens = tokens(text);
    let plain = matches!(tokens.first(), Some((Token::Ident(_), _, _)));
    let mut scan =
        Scan { tokens, out: Names::default(), depth: 0, plain, calls: Vec::new(), reference_end: None };
    let mut at = 0;
    while at < scan.tokens.len() {
        at = scan.step(at);
    }
    let Scan { mut out, plain, calls, .. } = scan;
    out.plain = plain && !out.references.is_empty();
    out.rewritten = rewrite(text, &calls);
    out
}

struct Scan<'t> {
    tokens: Vec<(Token<'t>, usize, usize)>,
    out: Names,
    /// Open brackets.
    depth: usize,
    /// Whole so far: one reference, then filters with their arguments.
    plain: bool,
    /// `<reference> | path`: begin, end, name.
    calls: Vec<(usize, usize, String)>,
    /// Place of the token behind the last reference.
    reference_end: Option<usize>,
}

impl Scan<'_> {
    /// Reads at one token; gives the place of the next.
    fn step(&mut self, at: usize) -> usize {
        match self.tokens[at].0 {
            Token::Op('(' | '[' | '{') => self.depth += 1,
            Token::Op(')' | ']' | '}') => self.depth = self.depth.saturating_sub(1),
            Token::Op('|') => return self.filter(at),
            Token::Ident("is") => return self.test(at),
            Token::Ident(name) if !KEYWORDS.contains(&name) => return self.name(at),
            Token::Op('.') => {}
            Token::Ident(_) | Token::Op(_) | Token::Text(_) | Token::Number | Token::Equals => self.other(),
        }
        at + 1
    }

    /// An operator or a value: the whole is more than a reference with filters.
    fn other(&mut self) {
        if self.depth == 0 {
            self.out.last_filter = None;
            self.plain = false;
        }
    }

    fn filter(&mut self, at: usize) -> usize {
        let Some((Token::Ident(name), offset, end)) = self.tokens.get(at + 1).cloned() else { return at + 1 };
        if name == "path" {
            match self.out.references.last() {
                Some(reference) if self.reference_end == Some(at) => {
                    self.calls.push((reference.offset, end, reference.text()));
                }
                _ => self.out.stray_path = self.out.stray_path.or(Some(offset)),
            }
        }
        if self.depth == 0 {
            self.out.last_filter = Some(name.to_owned());
        }
        self.out.filters.push(Word { name: name.to_owned(), offset });
        at + 2
    }

    fn test(&mut self, at: usize) -> usize {
        self.other();
        let skip = usize::from(matches!(self.tokens.get(at + 1), Some((Token::Ident("not"), _, _))));
        match self.tokens.get(at + 1 + skip) {
            Some((Token::Ident(name), offset, _)) if !KEYWORDS.contains(name) => {
                self.out.tests.push(Word { name: (*name).to_owned(), offset: *offset });
                at + 2 + skip
            }
            _ => at + 1,
        }
    }

    fn name(&mut self, at: usize) -> usize {
        let (Token::Ident(name), start, end) = self.tokens[at].clone() else { return at + 1 };
        let argument = matches!(self.tokens.get(at + 1), Some((Token::Equals, _, _)));
        let attribute = at > 0 && op(self.tokens.get(at - 1), '.');
        if argument || attribute {
            return at + 1;
        }
        if at > 0 {
            self.other();
        }
        let (path, next, path_end) = path_of(&self.tokens, at, name, end);
        let function = path.len() == 1 && op(self.tokens.get(next), '(') && FUNCTIONS.contains(&name);
        if function {
            self.plain = false;
        } else {
            self.out.references.push(Reference { path, offset: start, end: path_end });
            self.reference_end = Some(next);
        }
        next
    }
}

/// Follows `.name` and `['name']` behind a name. A method's name is no attribute.
fn path_of(
    tokens: &[(Token<'_>, usize, usize)],
    start: usize,
    name: &str,
    name_end: usize,
) -> (Vec<String>, usize, usize) {
    let mut path = vec![name.to_owned()];
    let (mut next, mut end) = (start + 1, name_end);
    loop {
        if op(tokens.get(next), '.')
            && let Some((Token::Ident(attribute), _, attribute_end)) = tokens.get(next + 1)
            && !op(tokens.get(next + 2), '(')
        {
            path.push((*attribute).to_owned());
            end = *attribute_end;
            next += 2;
        } else if op(tokens.get(next), '[')
            && let Some((Token::Text(text), _, _)) = tokens.get(next + 1)
            && op(tokens.get(next + 2), ']')
            && text.len() >= 2
            && !text.contains('\\')
        {
            path.push(text[1..text.len() - 1].to_owned());
            end = tokens[next + 2].2;
            next += 3;
        } else {
            return (path, next, end);
        }
    }
}

fn rewrite(text: &str, calls: &[(usize, usize, String)]) -> Option<String> {
    if calls.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut from = 0;
    for (start, end, name) in calls {
        out.push_str(&text[from..*start]);
        out.push_str(&format!("{}('{}')", super::env::PATH_FUNCTION, name.replace(['\'', '\\'], "")));
        from = *end;
    }
    out.push_str(&text[from..]);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refs(text: &str) -> Vec<String> {
        names(text).references.iter().map(Reference::text).collect()
    }

    #[test]
    fn names_are_found_with_their_paths() {
        assert_eq!(
            refs("plan.steps | length > 0 and inputs['base'] == item.a.b"),
            ["plan.steps", "inputs.base", "item.a.b"]
        );
        assert_eq!(refs("xs | map(attribute='findings') | join(sep)"), ["xs", "sep"]);
        assert_eq!(refs("x is defined and y is not none and 'a.b' ~ \"c|d\""), ["x", "y"]);
        assert_eq!(refs("{'verdict': fix.verdict | default('no'), 'n': range(3)}"), ["fix.verdict"]);
        assert_eq!(refs("a.items() | list"), ["a"]);
        assert_eq!(refs("a == b"), ["a", "b"]);
        assert_eq!(refs("f(x=y, z=1)"), ["f", "y"]);
    }

    #[test]
    fn the_last_filter_is_the_one_of_the_whole_expression() {
        assert_eq!(names("a | raw").last_filter.as_deref(), Some("raw"));
        assert_eq!(names("a | head('1KiB') | raw").last_filter.as_deref(), Some("raw"));
        assert_eq!(names("(a | raw) ~ b").last_filter, None);
        assert_eq!(names("a | raw ~ b").last_filter, None);
        assert_eq!(names("a | join(b | raw)").last_filter.as_deref(), Some("join"));
        assert_eq!(names("a if b | raw else c").last_filter, None);
    }

    #[test]
    fn only_a_reference_with_filters_is_plain() {
        assert!(names("a.b | lines(2)").plain && names("a").plain);
        for text in
            ["a ~ b", "'x'", "a if b else c", "not a", "a | join(',') ~ 'x'", "a == 1", "1", "a is none"]
        {
            assert!(!names(text).plain, "{text}");
        }
    }

    #[test]
    fn path_behind_a_name_becomes_a_call() {
        assert_eq!(names("a.b | path ~ 'x'").rewritten.as_deref(), Some("__claw_path('a.b') ~ 'x'"));
        assert_eq!(names("(a ~ b) | path").stray_path, Some(10));
    }

    #[test]
    fn an_expression_ends_outside_strings_and_braces() {
        let text = "{{ {'a': {'b': '}}'}} }} tail";
        assert_eq!(end_of_expression(text, 2), text.find(" tail").map(|at| at - 2));
        assert_eq!(end_of_expression("{{ 'open }}", 2), None);
    }
}
