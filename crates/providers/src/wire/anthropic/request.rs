//! A [`Request`] becomes the body of the Messages wire.
//!
//! Owns the order of blocks, the cache breakpoints and which thinking goes back. Pure.

use crate::message::{Block, Image, Message, Role};
use crate::models::Thinking;
use crate::request::{Effort, Request, ToolChoice, ToolSpec};
use crate::wire::Asked;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;

/// What is asked for where nobody says how much (the wire wants a number).
const FALLBACK_MAX_OUTPUT: u32 = 32_000;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Part<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<ThinkingField>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    messages: Vec<Turn<'a>>,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Cache>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Choice<'a> {
    Tool { name: &'a str },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ThinkingField {
    Enabled { budget_tokens: u32 },
    Adaptive,
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Format<'a> {
    JsonSchema { schema: &'a Value },
}

#[derive(Serialize)]
struct Turn<'a> {
    role: Role,
    content: Vec<Part<'a>>,
}

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Cache {
    Ephemeral,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Cache>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    RedactedThinking {
        data: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: &'a str,
        input: &'a Value,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Cache>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: ResultContent<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Cache>,
    },
    Image {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<Cache>,
    },
}

/// The content of a tool's result: plain text, or parts where images are among it.
#[derive(Serialize)]
#[serde(untagged)]
enum ResultContent<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
}

/// The body as JSON.
///
/// # Errors
/// A value that serde cannot write.
pub fn body(request: &Request, asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let mut messages = turns(&request.messages, asked.model);
    mark_moving_end(&mut messages);
    let max_tokens = asked.max_output.unwrap_or(FALLBACK_MAX_OUTPUT);
    let thinks = request.tool_choice == ToolChoice::Auto; // A forced call and thinking exclude each other.
    let effort = request.effort.filter(|_| thinks);
    let body = Body {
        model: asked.model,
        max_tokens,
        stream: asked.stream,
        system: Some(request.system.as_ref())
            .filter(|text| !text.trim().is_empty())
            .map(|text| Part::Text { text, cache_control: Some(Cache::Ephemeral) })
            .into_iter()
            .collect(),
        tools: tools(&request.tools),
        tool_choice: match &request.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::Tool(name) => Some(Choice::Tool { name }),
        },
        thinking: effort.and_then(|effort| thinking(effort, asked.thinking, max_tokens, &messages)),
        output_config: output_config(effort, request, asked),
        messages,
    };
    // Most bodies fit: system prompt and tools are some kilobytes, the history is what grows.
    let mut bytes = Vec::with_capacity(8 * 1024 + request.system.len());
    serde_json::to_writer(&mut bytes, &body)?;
    Ok(bytes)
}

fn tools(specs: &[ToolSpec]) -> Vec<Tool<'_>> {
    let mut tools: Vec<Tool<'_>> = specs
        .iter()
        .map(|spec| Tool {
            name: &spec.name,
            description: &spec.description,
            input_schema: &spec.input_schema,
            cache_control: None,
        })
        .collect();
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(Cache::Ephemeral);
    }
    tools
}

fn output_config<'a>(
    effort: Option<Effort>,
    request: &'a Request,
    asked: &Asked<'_>,
) -> Option<OutputConfig<'a>> {
    let effort = effort.filter(|_| asked.thinking == Thinking::Adaptive).map(Effort::word);
    let format = request
        .answer_schema
        .as_deref()
        .filter(|_| asked.answer_schema)
        .map(|schema| Format::JsonSchema { schema });
    (effort.is_some() || format.is_some()).then_some(OutputConfig { effort, format })
}

fn thinking(effort: Effort, can: Thinking, max_tokens: u32, turns: &[Turn<'_>]) -> Option<ThinkingField> {
    match (can, effort) {
        (Thinking::No | Thinking::Effort, _) | (Thinking::Budget, Effort::Low) => None,
        (Thinking::Adaptive, _) => Some(ThinkingField::Adaptive),
        (Thinking::Budget, Effort::Medium | Effort::High) => {
            let wanted = if effort == Effort::High { 24_000 } else { 8_000 };
            let budget_tokens = wanted.min(max_tokens / 2);
            (budget_tokens >= 1024 && may_think(turns)).then_some(ThinkingField::Enabled { budget_tokens })
        }
    }
}

/// In the middle of a chain of calls the service expects the turn to begin with thinking, if any is asked for.
fn may_think(turns: &[Turn<'_>]) -> bool {
    turns.iter().rev().find(|turn| turn.role == Role::Assistant).is_none_or(|turn| {
        let has_call = turn.content.iter().any(|part| matches!(part, Part::ToolUse { .. }));
        let begins =
            matches!(turn.content.first(), Some(Part::Thinking { .. } | Part::RedactedThinking { .. }));
        !has_call || begins
    })
}

/// Messages of one role that follow each other become one; results of calls come before anything else in it.
fn turns<'a>(messages: &'a [std::sync::Arc<Message>], model: &str) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::with_capacity(messages.len());
    for message in messages {
        let parts = message.content.iter().filter_map(|block| part(block, model));
        match turns.last_mut() {
            Some(last) if last.role == message.role => last.content.extend(parts),
            _ => {
                let content: Vec<_> = parts.collect();
                if !content.is_empty() {
                    turns.push(Turn { role: message.role, content });
                }
            }
        }
    }
    for turn in turns.iter_mut().filter(|turn| turn.role == Role::User) {
        turn.content.sort_by_key(|part| !matches!(part, Part::ToolResult { .. }));
    }
    turns
}

fn part<'a>(block: &'a Block, model: &str) -> Option<Part<'a>> {
    match block {
        // The service refuses texts of white space only.
        Block::Text { text } => (!text.trim().is_empty()).then_some(Part::Text { text, cache_control: None }),
        Block::Thinking { thinking, signature, model: made_by } => {
            let signature = signature.as_deref().filter(|s| !s.is_empty())?;
            (made_by.as_deref() == Some(model)).then_some(Part::Thinking { thinking, signature })
        }
        Block::RedactedThinking { data, model: made_by } => {
            (made_by.as_deref() == Some(model)).then_some(Part::RedactedThinking { data })
        }
        Block::ToolUse { id, name, input } => {
            Some(Part::ToolUse { id: plain_id(id), name, input, cache_control: None })
        }
        Block::ToolResult { tool_use_id, content, images, is_error } => Some(Part::ToolResult {
            tool_use_id: plain_id(tool_use_id),
            content: result(content, images),
            is_error: *is_error,
            cache_control: None,
        }),
        Block::Image(picture) => Some(image(picture)),
    }
}

fn result<'a>(content: &'a str, images: &'a [Image]) -> ResultContent<'a> {
    if images.is_empty() {
        return ResultContent::Text(content);
    }
    let text = (!content.trim().is_empty()).then_some(Part::Text { text: content, cache_control: None });
    ResultContent::Parts(text.into_iter().chain(images.iter().map(image)).collect())
}

fn image(image: &Image) -> Part<'_> {
    let source = Source::Base64 { media_type: &image.media_type, data: &image.data };
    Part::Image { source, cache_control: None }
}

/// This wire takes only letters, digits, `_` and `-` in ids; other services' ids hold more.
fn plain_id(id: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if id.chars().all(is_plain) {
        Cow::Borrowed(id)
    } else {
        Cow::Owned(id.chars().map(|c| if is_plain(c) { c } else { '_' }).collect())
    }
}

/// Breakpoints at the end of the last two turns of the user: the first is what the last request wrote,
/// the second is what the next one reads.
fn mark_moving_end(turns: &mut [Turn<'_>]) {
    for turn in turns.iter_mut().rev().filter(|turn| turn.role == Role::User).take(2) {
        for part in turn.content.iter_mut().rev() {
            match part {
                Part::Text { cache_control, .. }
                | Part::ToolUse { cache_control, .. }
                | Part::ToolResult { cache_control, .. }
                | Part::Image { cache_control, .. } => {
                    *cache_control = Some(Cache::Ephemeral);
                    break;
                }
                Part::Thinking { .. } | Part::RedactedThinking { .. } => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn request(messages: Vec<Message>) -> Request {
        Request {
            models: vec!["claude-opus-4-6".to_owned()].into(),
            system: "be brief".into(),
            messages: messages.into_iter().map(Arc::new).collect(),
            tools: vec![
                ToolSpec {
                    name: "a".into(),
                    description: "A".into(),
                    input_schema: json!({"type": "object"}),
                },
                ToolSpec {
                    name: "b".into(),
                    description: "B".into(),
                    input_schema: json!({"type": "object"}),
                },
            ]
            .into(),
            tool_choice: ToolChoice::Auto,
            max_output: None,
            effort: None,
            answer_schema: None,
        }
    }

    fn asked(thinking: Thinking) -> Asked<'static> {
        Asked { model: "m", max_output: Some(32_000), thinking, answer_schema: false, stream: true }
    }

    fn json_of(request: &Request, thinking: Thinking) -> Value {
        serde_json::from_slice(&body(request, &asked(thinking)).unwrap()).unwrap()
    }

    fn call(id: &str) -> Block {
        Block::ToolUse { id: id.into(), name: "a".into(), input: json!({}) }
    }

    fn answer(id: &str) -> Block {
        Block::ToolResult { tool_use_id: id.into(), content: id.into(), images: vec![], is_error: false }
    }

    fn assistant(content: Vec<Block>) -> Message {
        Message { role: Role::Assistant, content }
    }

    fn thought(model: &str, signature: Option<&str>) -> Block {
        Block::Thinking {
            thinking: String::new(),
            signature: signature.map(str::to_owned),
            model: Some(model.into()),
        }
    }

    #[test]
    fn breakpoints_stand_at_system_tools_and_the_moving_end() {
        let body = json_of(
            &request(vec![
                Message::user("one"),
                assistant(vec![call("x")]),
                Message { role: Role::User, content: vec![answer("x")] },
            ]),
            Thinking::No,
        );
        let mark = json!({"type": "ephemeral"});
        assert_eq!(body["system"], json!([{"type": "text", "text": "be brief", "cache_control": mark}]));
        assert_eq!(body["tools"][0].get("cache_control"), None);
        assert_eq!(body["tools"][1]["cache_control"], mark);
        assert_eq!(body["messages"][0]["content"][0]["cache_control"], mark);
        assert_eq!(body["messages"][1]["content"][0].get("cache_control"), None);
        assert_eq!(body["messages"][2]["content"][0]["cache_control"], mark);
        assert_eq!(body.to_string().matches("ephemeral").count(), 4);
    }

    #[test]
    fn results_come_first_and_turns_of_one_role_are_one() {
        let body = json_of(
            &request(vec![
                Message::user("go"),
                assistant(vec![call("x"), call("y")]),
                Message { role: Role::User, content: vec![Block::Text { text: "note".into() }, answer("x")] },
                Message { role: Role::User, content: vec![answer("y")] },
            ]),
            Thinking::No,
        );
        let last = &body["messages"][2]["content"];
        let kinds: Vec<_> = last.as_array().unwrap().iter().map(|p| p["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["tool_result", "tool_result", "text"]);
        assert_eq!(last[0]["tool_use_id"], "x");
        assert_eq!(last[0]["content"], "x");
    }

    #[test]
    fn only_signed_thinking_of_the_same_model_goes_back_without_added_fields() {
        let redacted =
            |model: &str| Block::RedactedThinking { data: "ZW5j".into(), model: Some(model.into()) };
        let body = json_of(
            &request(vec![
                Message::user("go"),
                assistant(vec![
                    thought("m", Some("Eq/+==sig with / + =")),
                    redacted("m"),
                    Block::Text { text: "t".into() },
                    thought("m", None),
                    thought("other", Some("s")),
                    redacted("other"),
                    call("functions.bash:0"),
                ]),
                Message::user("on"),
            ]),
            Thinking::No,
        );
        assert_eq!(
            body["messages"][1]["content"],
            json!([
                {"type": "thinking", "thinking": "", "signature": "Eq/+==sig with / + ="},
                {"type": "redacted_thinking", "data": "ZW5j"},
                {"type": "text", "text": "t"},
                {"type": "tool_use", "id": "functions_bash_0", "name": "a", "input": {}},
            ])
        );
    }

    #[test]
    fn a_message_of_which_nothing_is_left_is_dropped() {
        let body = json_of(
            &request(vec![Message::user("a"), assistant(vec![thought("m", None)]), Message::user("b")]),
            Thinking::No,
        );
        assert_eq!(body["messages"].as_array().unwrap().len(), 1);
        assert_eq!(body["messages"][0]["content"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn effort_is_said_in_the_way_the_model_knows() {
        let mut asks = request(vec![Message::user("a")]);
        asks.effort = Some(Effort::High);
        let adaptive = json_of(&asks, Thinking::Adaptive);
        assert_eq!(adaptive["thinking"], json!({"type": "adaptive"}));
        assert_eq!(adaptive["output_config"], json!({"effort": "high"}));
        let budget = json_of(&asks, Thinking::Budget);
        assert_eq!(budget["thinking"], json!({"type": "enabled", "budget_tokens": 16_000}));
        assert_eq!(json_of(&asks, Thinking::No).get("thinking"), None);
        asks.tool_choice = ToolChoice::Tool("a".into());
        assert_eq!(json_of(&asks, Thinking::Budget).get("thinking"), None);
        asks.tool_choice = ToolChoice::Auto;
        asks.messages.push(Arc::new(assistant(vec![call("x")])));
        asks.messages.push(Arc::new(Message { role: Role::User, content: vec![answer("x")] }));
        assert_eq!(
            json_of(&asks, Thinking::Budget).get("thinking"),
            None,
            "the chain began without thinking"
        );
    }

    #[test]
    fn images_of_a_result_stand_inside_it() {
        let with_image = Block::ToolResult {
            tool_use_id: "x".into(),
            content: "see".into(),
            images: vec![Image { media_type: "image/png".into(), data: "QQ==".into() }],
            is_error: true,
        };
        let body = json_of(
            &request(vec![
                Message::user("go"),
                assistant(vec![call("x")]),
                Message { role: Role::User, content: vec![with_image] },
            ]),
            Thinking::No,
        );
        let result = &body["messages"][2]["content"][0];
        assert_eq!(result["is_error"], true);
        assert_eq!(result["content"][1]["source"]["media_type"], "image/png");
    }
}
