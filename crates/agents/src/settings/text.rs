//! From the text of a settings file to values with places: JSON with comments and trailing commas, nothing looser.

use super::diagnostic::{Diagnostic, Severity};
use super::node::{Member, Node, Place, Source, Value};
use jsonc_parser::ast;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions};
use std::str::FromStr;
use std::sync::Arc;

/// How settings are written.
pub(super) fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// The text without the mark that some editors put in front.
pub(super) fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

/// Lines of a text.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
    source: &'a Arc<Source>,
}

impl Lines<'_> {
    fn place(&self, at: usize) -> Place {
        if self.source.file.is_none() {
            return Place::whole(self.source);
        }
        let at = self.text.floor_char_boundary(at.min(self.text.len()));
        let line = self.starts.partition_point(|start| *start <= at).max(1);
        let column = self.text[self.starts[line - 1]..at].chars().count() + 1;
        let small = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Place { source: Arc::clone(self.source), line: small(line), column: small(column) }
    }

    fn node(&self, value: &ast::Value<'_>) -> Node {
        let place = self.place(value.range().start);
        let value = match value {
            ast::Value::NullKeyword(_) => Value::Null,
            ast::Value::BooleanLit(bool) => Value::Bool(bool.value),
            // What is no number for JSON was refused by the parser.
            ast::Value::NumberLit(number) => match serde_json::Number::from_str(number.value) {
                Ok(number) => Value::Number(number),
                Err(_) => Value::Text(number.value.to_owned()),
            },
            ast::Value::StringLit(text) => Value::Text(text.value.clone().into_owned()),
            ast::Value::Array(array) => {
                Value::List(array.elements.iter().map(|value| self.node(value)).collect())
            }
            ast::Value::Object(object) => {
                let member = |prop: &ast::ObjectProp<'_>| Member {
                    name: prop.name.as_str().to_owned(),
                    place: self.place(prop.name.range().start),
                    node: self.node(&prop.value),
                };
                Value::Object(object.properties.iter().map(member).collect())
            }
        };
        Node { place, value }
    }
}

/// Reads a whole text.
///
/// # Errors
/// It is no JSON with comments, or nested deeper than 512 levels.
pub fn parse(text: &str, source: &Arc<Source>) -> Result<Node, Diagnostic> {
    let text = without_mark(text);
    let starts = std::iter::once(0)
        .chain(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1))
        .collect();
    let lines = Lines { text, starts, source };
    let error =
        |at: usize, message: String| Diagnostic::new(Severity::Error, lines.place(at).origin(""), message);
    let parsed =
        jsonc_parser::parse_to_ast(text, &CollectOptions::default(), &options()).map_err(|wrong| {
            let said = wrong.kind().to_string();
            let mut letters = said.chars();
            let first: String = letters.next().into_iter().flat_map(char::to_lowercase).collect();
            error(wrong.range().start, format!("no valid JSON: {first}{}", letters.as_str()))
                .with_help("correct it there; comments and trailing commas are fine")
        })?;
    match &parsed.value {
        Some(value @ ast::Value::Object(_)) => Ok(lines.node(value)),
        Some(other) => Err(error(other.range().start, "settings are one object".to_owned())
            .with_help("write { \"key\": value }")),
        None => Err(error(0, "the file is empty".to_owned()).with_help("write {}, or remove it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Scope;
    use proptest::prelude::*;

    fn source() -> Arc<Source> {
        Arc::new(Source { scope: Scope::User, file: Some("/s.json".into()), says: String::new() })
    }

    #[test]
    fn every_key_and_value_knows_its_place_behind_a_mark_and_comments() {
        let text = "\u{feff}{\n // é\n \"é\": [1, \"x\",], /* c */ \"b\": null\n}";
        let node = parse(text, &source()).unwrap();
        let member = &node.members()[0];
        assert_eq!((member.place.line, member.place.column), (3, 2));
        let second = &member.node.elements()[1];
        assert_eq!((second.place.line, second.place.column), (3, 11));
        assert_eq!(node.to_json(), serde_json::json!({"é": [1, "x"], "b": null}));
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        for (text, place) in [
            ("{\n  \"a\": {\n", "/s.json:2:8"),
            ("{\"a\" 1}", "/s.json:1:6"),
            ("{'a': 1}", "/s.json:1:2"),
            ("{\"a\": 0x1}", "/s.json:1:7"),
            ("[]", "/s.json:1:1"),
            ("", "/s.json:1:1"),
            ("{} {}", "/s.json:1:4"),
        ] {
            let error = parse(text, &source()).unwrap_err();
            assert!(error.origin.to_string().starts_with(place), "{text}: {error}");
            assert!(error.help.is_some());
        }
    }

    #[test]
    fn a_text_that_is_nested_too_deep_is_an_error() {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let text = format!("{{\"a\":{}1{}}}", open.repeat(100_000), close.repeat(100_000));
            assert!(parse(&text, &source()).unwrap_err().message.contains("nesting"));
        }
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            ".{0,12}".prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::hash_map(".{0,6}", inner, 0..6)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_was_written_is_what_is_read(value in json()) {
            let text = serde_json::to_string_pretty(&serde_json::json!({ "x": value })).unwrap();
            prop_assert_eq!(&parse(&text, &source()).unwrap().to_json()["x"], &value);
        }

        #[test]
        fn no_text_brings_it_down(text in "[{}\\[\\]\",:/*a-zé0-9.\\\\ \n\u{feff}-]{0,80}") {
            if let Ok(node) = parse(&text, &source()) {
                let _ = crate::settings::walk::walk(&node, crate::settings::Kind::Settings);
            }
        }
    }
}
