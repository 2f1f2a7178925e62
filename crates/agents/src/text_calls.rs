//! Tool calls that a model wrote as JSON into its text, for models whose traits say that they do so.
//!
//! Owns the spellings. Must not know which models need it or what the tools do.

use serde_json::{Map, Value};

/// A part of a text, in order.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Text around calls, trimmed, never empty.
    Text(String),
    /// A call.
    Call {
        /// As the model wrote it.
        name: String,
        /// A JSON object.
        input: Value,
    },
}

/// Calls above this number in one text are left as text.
const MOST_CALLS: usize = 32;

/// Splits a text at the calls in it; `None` where there is none. A name counts only where `offered` knows it.
pub fn split(text: &str, offered: &dyn Fn(&str) -> bool) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut kept_from = 0;
    let mut at = 0;
    let mut calls = 0;
    while let Some(start) = next_start(text, at) {
        match calls_at(text, start, offered) {
            Some((found, end)) if calls + found.len() <= MOST_CALLS => {
                calls += found.len();
                push_text(&mut pieces, &text[kept_from..start]);
                pieces.extend(found);
                kept_from = end;
                at = end;
            }
            Some(_) | None => at = start + 1,
        }
    }
    push_text(&mut pieces, &text[kept_from..]);
    (calls > 0).then_some(pieces)
}

fn push_text(pieces: &mut Vec<Piece>, text: &str) {
    let text = text.trim();
    if !text.is_empty() {
        pieces.push(Piece::Text(text.to_owned()));
    }
}

/// Where the next envelope may begin: a fence, a tag, or JSON at the beginning of a line.
fn next_start(text: &str, from: usize) -> Option<usize> {
    let rest = text.as_bytes();
    (from..rest.len()).find(|&at| match rest[at] {
        b'`' => rest[at..].starts_with(b"```"),
        b'<' => rest[at..].starts_with(OPEN.as_bytes()),
        b'{' | b'[' => is_first_of_its_line(&rest[..at]),
        _ => false,
    })
}

fn is_first_of_its_line(before: &[u8]) -> bool {
    before.iter().rev().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r')).is_none_or(|byte| *byte == b'\n')
}

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";
const FENCE: &str = "```";

/// The calls that begin at `start`, and where they end.
fn calls_at(text: &str, start: usize, offered: &dyn Fn(&str) -> bool) -> Option<(Vec<Piece>, usize)> {
    let rest = &text[start..];
    let (skip, close) = if rest.starts_with(FENCE) {
        // The info word (`json`, `tool_call`, none) ends with the line.
        (rest.find('\n')? + 1, Some(FENCE))
    } else if rest.starts_with(OPEN) {
        (OPEN.len(), Some(CLOSE))
    } else {
        (0, None)
    };
    let body = &rest[skip..];
    let mut found = Vec::new();
    let mut used = 0;
    // One envelope may hold several values, one after the other.
    loop {
        let mut values = serde_json::Deserializer::from_str(&body[used..]).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else { break };
        found.extend(calls_of(value, offered)?);
        used += values.byte_offset();
        if close.is_none() {
            break;
        }
    }
    if found.is_empty() {
        return None;
    }
    let mut end = start + skip + used;
    if let Some(close) = close {
        let after = text[end..].trim_start();
        match after.strip_prefix(close) {
            Some(after) => end = text.len() - after.len(),
            // The model stopped right after the JSON: the envelope ends with the text.
            None if after.is_empty() => end = text.len(),
            None => return None,
        }
    }
    Some((found, end))
}

/// The calls that a value spells; `None` where any part of it is no call.
fn calls_of(value: Value, offered: &dyn Fn(&str) -> bool) -> Option<Vec<Piece>> {
    match value {
        Value::Array(items) if !items.is_empty() => {
            let mut calls = Vec::with_capacity(items.len());
            for item in items {
                calls.extend(calls_of(item, offered)?);
            }
            Some(calls)
        }
        Value::Object(mut map) => {
            if let Some(inner) = map.remove("tool_calls").or_else(|| map.remove("tool_call")) {
                return calls_of(inner, offered);
            }
            if matches!(map.get("function"), Some(Value::Object(_))) {
                return map.remove("function").and_then(|inner| calls_of(inner, offered));
            }
            one_call(map, offered).map(|call| vec![call])
        }
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn one_call(mut map: Map<String, Value>, offered: &dyn Fn(&str) -> bool) -> Option<Piece> {
    let name = ["name", "tool", "tool_name", "function"]
        .iter()
        .find_map(|key| map.get(*key).and_then(Value::as_str))
        .filter(|name| offered(name))?
        .to_owned();
    let input = ["arguments", "parameters", "input", "args"].iter().find_map(|key| map.remove(*key))?;
    let input = match input {
        Value::String(text) => serde_json::from_str(&text).ok()?,
        other => other,
    };
    input.is_object().then_some(Piece::Call { name, input })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn known(name: &str) -> bool {
        matches!(name, "bash" | "read_file")
    }
    fn call(name: &str, input: Value) -> Piece {
        Piece::Call { name: name.into(), input }
    }
    fn said(text: &str) -> Piece {
        Piece::Text(text.into())
    }

    #[test]
    fn a_fenced_call_is_found_and_the_text_around_it_kept() {
        let text = "I will look.\n```json\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}\n```\nThen more.";
        assert_eq!(
            split(text, &known),
            Some(vec![said("I will look."), call("bash", json!({"command": "ls"})), said("Then more.")])
        );
    }

    #[test]
    fn tags_bare_objects_arrays_and_other_keys_are_understood() {
        let ls = json!({"command": "ls"});
        for text in [
            r#"<tool_call>{"name":"bash","arguments":{"command":"ls"}}</tool_call>"#,
            r#"<tool_call>{"name":"bash","arguments":{"command":"ls"}}"#,
            r#"{"tool":"bash","parameters":{"command":"ls"}}"#,
            r#"{"name":"bash","arguments":"{\"command\":\"ls\"}"}"#,
            r#"{"type":"function","function":{"name":"bash","arguments":{"command":"ls"}}}"#,
            "```\n{\"tool_calls\":[{\"name\":\"bash\",\"input\":{\"command\":\"ls\"}}]}\n```",
        ] {
            assert_eq!(split(text, &known), Some(vec![call("bash", ls.clone())]), "{text}");
        }
        let two = r#"[{"name":"bash","arguments":{}},{"name":"read_file","arguments":{"path":"x"}}]"#;
        assert_eq!(
            split(two, &known),
            Some(vec![call("bash", json!({})), call("read_file", json!({"path": "x"}))])
        );
    }

    #[test]
    fn an_example_in_a_sentence_or_of_an_unknown_tool_stays_text() {
        for text in [
            "Write {\"name\":\"bash\",\"arguments\":{}} to call it.",
            r#"{"name":"launch","arguments":{}}"#,
            r#"{"name":"bash"}"#,
            r#"{"name":"bash","arguments":{"command":"l"#,
            "```json\n{\"a\": 1}\n```",
            "plain",
        ] {
            assert_eq!(split(text, &known), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "[`<>\\[\\]{}a-z\":,\\n é]{0,200}") {
            let _ = split(&text, &|_| true);
        }
    }
}
