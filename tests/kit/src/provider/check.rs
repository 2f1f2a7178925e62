//! The laws of the two wires, as the services themselves would answer 400. Pure.

use super::wire::Wire;
use serde_json::Value;
use std::collections::BTreeSet;

/// What is wrong with a request: one sentence each, empty when it is legal. `secrets` are texts that must
/// not stand in a body.
pub fn violations_in(
    wire: Wire,
    headers: &[(String, String)],
    text: &str,
    secrets: &[String],
) -> Vec<String> {
    let mut found = Vec::new();
    for secret in secrets.iter().filter(|s| !s.is_empty() && text.contains(s.as_str())) {
        found.push(format!("a secret stands in the body: {}…", secret.chars().take(10).collect::<String>()));
    }
    let Ok(body) = serde_json::from_str::<Value>(text) else {
        found.push("the body is no JSON".to_owned());
        return found;
    };
    if body["model"].as_str().is_none_or(str::is_empty) {
        found.push("no model".to_owned());
    }
    tool_definitions(wire, &body, &mut found);
    let empty = Vec::new();
    let messages = body["messages"].as_array().unwrap_or(&empty);
    if messages.is_empty() {
        found.push("no messages".to_owned());
    }
    match wire {
        Wire::Anthropic => {
            if !headers.iter().any(|(name, _)| name == "anthropic-version") {
                found.push("no anthropic-version header".to_owned());
            }
            if body["max_tokens"].as_u64().is_none_or(|n| n == 0) {
                found.push("no max_tokens".to_owned());
            }
            anthropic(messages, &mut found);
        }
        Wire::OpenAi => openai(messages, &mut found),
    }
    found
}

fn tool_definitions(wire: Wire, body: &Value, found: &mut Vec<String>) {
    let mut names = BTreeSet::new();
    for tool in body["tools"].as_array().into_iter().flatten() {
        let (name, schema) = match wire {
            Wire::Anthropic => (&tool["name"], &tool["input_schema"]),
            Wire::OpenAi => (&tool["function"]["name"], &tool["function"]["parameters"]),
        };
        let name = name.as_str().unwrap_or_default();
        if !is_word(name, 64) {
            found.push(format!("illegal tool name {name:?}"));
        }
        if !names.insert(name) {
            found.push(format!("tool {name} is offered twice"));
        }
        if schema["type"] != "object" {
            found.push(format!("the schema of tool {name} is not of type object"));
        }
    }
}

/// Letters, digits, `_` and `-`, at least one.
fn is_word(text: &str, most: usize) -> bool {
    (1..=most).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// Notes ids of calls: legal, and unique in the whole request.
fn note_calls(ids: &[String], seen: &mut BTreeSet<String>, found: &mut Vec<String>) {
    for id in ids {
        if !is_word(id, 256) {
            found.push(format!("illegal tool call id {id:?}"));
        }
        if !seen.insert(id.clone()) {
            found.push(format!("tool call id {id} is used twice"));
        }
    }
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn blocks<'a>(message: &'a Value, kind: &str) -> Vec<&'a Value> {
    message["content"].as_array().into_iter().flatten().filter(|block| block["type"] == kind).collect()
}

fn anthropic(messages: &[Value], found: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    let mut open: Vec<String> = Vec::new();
    if messages.first().is_some_and(|m| m["role"] != "user") {
        found.push("the first message is not the user's".to_owned());
    }
    if messages.last().is_some_and(|m| m["role"] == "assistant") {
        found.push("the last message is the assistant's".to_owned());
    }
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role != "user" && role != "assistant" {
            found.push(format!("message {at}: illegal role {role:?}"));
        }
        anthropic_content(at, message, found);
        let results: Vec<String> =
            blocks(message, "tool_result").iter().map(|b| word(&b["tool_use_id"])).collect();
        if role == "assistant" && !results.is_empty() {
            found.push(format!("message {at}: the assistant sends tool results"));
        }
        compare(at, &std::mem::take(&mut open), results, found);
        let calls = blocks(message, "tool_use");
        if role != "assistant" && !calls.is_empty() {
            found.push(format!("message {at}: the user calls tools"));
        }
        for call in calls.iter().filter(|call| !call["input"].is_object()) {
            found.push(format!("message {at}: the input of call {} is no object", call["id"]));
        }
        open = calls.iter().map(|call| word(&call["id"])).collect();
        note_calls(&open, &mut seen, found);
    }
    if !open.is_empty() {
        found.push(format!("calls without results at the end: {}", open.join(", ")));
    }
}

/// Results answer exactly the calls of the message before.
fn compare(at: usize, calls: &[String], mut results: Vec<String>, found: &mut Vec<String>) {
    let mut calls = calls.to_vec();
    calls.sort();
    results.sort();
    if calls != results {
        found.push(format!(
            "message {at}: results [{}] for calls [{}]",
            results.join(", "),
            calls.join(", ")
        ));
    }
}

fn anthropic_content(at: usize, message: &Value, found: &mut Vec<String>) {
    let empty = match &message["content"] {
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => true,
    };
    if empty {
        found.push(format!("message {at}: empty content"));
    }
    let list = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    for block in list.iter().filter(|b| b["type"] == "text") {
        if block["text"].as_str().is_none_or(|text| text.trim().is_empty()) {
            found.push(format!("message {at}: an empty text block"));
        }
    }
    let other = list.iter().position(|b| b["type"] != "tool_result");
    let last_result = list.iter().rposition(|b| b["type"] == "tool_result");
    if let (Some(other), Some(result)) = (other, last_result)
        && other < result
    {
        found.push(format!("message {at}: tool results come after other blocks"));
    }
}

fn openai(messages: &[Value], found: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    let mut open: Vec<String> = Vec::new();
    let mut results: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            results.push(word(&message["tool_call_id"]));
            if message["content"].is_null() {
                found.push(format!("message {at}: a result without content"));
            }
            continue;
        }
        compare(at, &std::mem::take(&mut open), std::mem::take(&mut results), found);
        let empty = Vec::new();
        let calls = message["tool_calls"].as_array().unwrap_or(&empty);
        match role {
            "system" | "developer" | "user" if !calls.is_empty() => {
                found.push(format!("message {at}: role {role} calls tools"));
            }
            "system" | "developer" | "user" if message["content"].is_null() => {
                found.push(format!("message {at}: empty content"));
            }
            "assistant" if calls.is_empty() && message["content"].is_null() => {
                found.push(format!("message {at}: neither content nor calls"));
            }
            "system" | "developer" | "user" | "assistant" => {}
            _ => found.push(format!("message {at}: illegal role {role:?}")),
        }
        for call in calls {
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            if !serde_json::from_str::<Value>(arguments).is_ok_and(|v| v.is_object()) {
                found.push(format!("message {at}: the arguments of call {} are no object", call["id"]));
            }
        }
        open = calls.iter().map(|call| word(&call["id"])).collect();
        note_calls(&open, &mut seen, found);
    }
    compare(messages.len(), &open, results, found);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(wire: Wire, messages: Value) -> Vec<String> {
        let headers = [("anthropic-version".to_owned(), "2023-06-01".to_owned())];
        let body = json!({"model": "m", "max_tokens": 5, "messages": messages}).to_string();
        violations_in(wire, &headers, &body, &["sk-canary".to_owned()])
    }

    #[test]
    fn a_legal_conversation_passes_on_both_wires() {
        let anthropic = json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "t", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"},
                                         {"type": "text", "text": "and"}]},
        ]);
        assert_eq!(check(Wire::Anthropic, anthropic), Vec::<String>::new());
        let openai = json!([
            {"role": "system", "content": "s"}, {"role": "user", "content": "go"},
            {"role": "assistant", "content": null,
             "tool_calls": [{"id": "a", "function": {"name": "t", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "a", "content": "x"},
        ]);
        assert_eq!(check(Wire::OpenAi, openai), Vec::<String>::new());
    }

    #[test]
    fn a_call_without_its_result_is_found_on_both_wires() {
        let call = json!([{"type": "tool_use", "id": "a", "name": "t", "input": {}}]);
        let found = check(
            Wire::Anthropic,
            json!([{"role": "user", "content": "go"}, {"role": "assistant", "content": call},
                   {"role": "user", "content": "and?"}]),
        );
        assert_eq!(found, ["message 2: results [] for calls [a]"]);
        let found = check(
            Wire::OpenAi,
            json!([{"role": "user", "content": "go"},
                   {"role": "assistant", "tool_calls": [{"id": "a", "function": {"arguments": "{}"}}]},
                   {"role": "user", "content": "and?"}]),
        );
        assert_eq!(found, ["message 2: results [] for calls [a]"]);
    }

    #[test]
    fn a_repeated_id_a_foreign_role_and_a_secret_are_found() {
        let call = json!([{"type": "tool_use", "id": "a", "name": "t", "input": {}},
                          {"type": "tool_use", "id": "a", "name": "t", "input": {}}]);
        let results = json!([{"type": "tool_result", "tool_use_id": "a", "content": "x"},
                             {"type": "tool_result", "tool_use_id": "a", "content": "sk-canary"}]);
        let found = check(
            Wire::Anthropic,
            json!([{"role": "user", "content": "go"}, {"role": "assistant", "content": call},
                   {"role": "user", "content": results}, {"role": "system", "content": "x"}]),
        );
        assert_eq!(
            found,
            [
                "a secret stands in the body: sk-canary…",
                "tool call id a is used twice",
                "message 3: illegal role \"system\""
            ]
        );
    }
}
