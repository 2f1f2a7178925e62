//! A [`Request`] becomes the body of the chat completions wire.
//!
//! Owns how blocks are spread over messages here. Thinking never goes out on this wire. Pure.

use crate::message::{Block, Image, Message, Role};
use crate::models::Thinking;
use crate::request::{Effort, Request, ToolChoice, ToolSpec};
use crate::wire::Asked;
use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Format<'a>>,
    messages: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
#[serde(tag = "type", content = "function", rename_all = "snake_case")]
enum Tool<'a> {
    Function { name: &'a str, description: &'a str, parameters: &'a Value },
}

#[derive(Serialize)]
#[serde(tag = "type", content = "function", rename_all = "snake_case")]
enum Choice<'a> {
    Function { name: &'a str },
}

#[derive(Serialize)]
#[serde(tag = "type", content = "json_schema", rename_all = "snake_case")]
enum Format<'a> {
    JsonSchema { name: &'static str, schema: &'a Value },
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Entry<'a> {
    System {
        content: &'a str,
    },
    User {
        content: Content<'a>,
    },
    Assistant {
        content: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

/// Plain text where that is all there is: not every server knows parts.
#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(String),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: Url },
}

#[derive(Serialize)]
struct Url {
    url: String,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: String,
}

/// The body as JSON.
///
/// # Errors
/// A value that serde cannot write.
pub fn body(request: &Request, asked: &Asked<'_>) -> Result<Vec<u8>, serde_json::Error> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if !request.system.trim().is_empty() {
        messages.push(Entry::System { content: &request.system });
    }
    for message in &request.messages {
        match message.role {
            Role::User => user(message, &mut messages),
            Role::Assistant => assistant(message, &mut messages),
        }
    }
    let reasons = asked.thinking == Thinking::Effort;
    serde_json::to_vec(&Body {
        model: asked.model,
        stream: asked.stream,
        stream_options: asked.stream.then_some(StreamOptions { include_usage: true }),
        // Reasoning models know only the newer name, many servers only the older one.
        max_tokens: asked.max_output.filter(|_| !reasons),
        max_completion_tokens: asked.max_output.filter(|_| reasons),
        reasoning_effort: request.effort.filter(|_| reasons).map(Effort::word),
        tools: request.tools.iter().map(tool).collect(),
        tool_choice: match &request.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::Tool(name) => Some(Choice::Function { name }),
        },
        response_format: request
            .answer_schema
            .as_deref()
            .filter(|_| asked.answer_schema)
            .map(|schema| Format::JsonSchema { name: "answer", schema }),
        messages,
    })
}

fn tool(spec: &ToolSpec) -> Tool<'_> {
    Tool::Function { name: &spec.name, description: &spec.description, parameters: &spec.input_schema }
}

/// Results of calls come first, each a message of its own; the rest follows as one message.
fn user<'a>(message: &'a Message, out: &mut Vec<Entry<'a>>) {
    let mut parts = Vec::new();
    for block in &message.content {
        match block {
            Block::ToolResult { tool_use_id, content, images, .. } => {
                out.push(Entry::Tool { tool_call_id: tool_use_id, content });
                parts.extend(images.iter().map(image)); // This wire has no images in results.
            }
            Block::Text { text } if !text.is_empty() => parts.push(Part::Text { text }),
            Block::Image(picture) => parts.push(image(picture)),
            Block::Text { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolUse { .. } => {}
        }
    }
    if parts.is_empty() {
        return;
    }
    let texts: Option<Vec<&str>> = parts
        .iter()
        .map(|part| match part {
            Part::Text { text } => Some(*text),
            Part::ImageUrl { .. } => None,
        })
        .collect();
    let content = texts.map_or(Content::Parts(parts), |texts| Content::Text(texts.join("\n\n")));
    out.push(Entry::User { content });
}

fn assistant<'a>(message: &'a Message, out: &mut Vec<Entry<'a>>) {
    let text = message.text();
    let tool_calls: Vec<Call<'a>> = message
        .content
        .iter()
        .filter_map(|block| match block {
            Block::ToolUse { id, name, input } => {
                Some(Call { id, kind: "function", function: Function { name, arguments: input.to_string() } })
            }
            Block::Text { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolResult { .. }
            | Block::Image(_) => None,
        })
        .collect();
    if text.is_empty() && tool_calls.is_empty() {
        return;
    }
    let content = (!text.is_empty()).then_some(text);
    out.push(Entry::Assistant { content, tool_calls });
}

fn image<'a>(image: &Image) -> Part<'a> {
    Part::ImageUrl { image_url: Url { url: format!("data:{};base64,{}", image.media_type, image.data) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    fn request(messages: Vec<Message>) -> Request {
        Request {
            models: vec!["m".to_owned()].into(),
            system: "be brief".into(),
            messages: messages.into_iter().map(Arc::new).collect(),
            tools: Arc::new([]),
            tool_choice: ToolChoice::Auto,
            max_output: None,
            effort: Some(Effort::Low),
            answer_schema: Some(Arc::new(json!({"type": "object"}))),
        }
    }

    fn json_of(request: &Request, thinking: Thinking, answer_schema: bool) -> Value {
        let asked = Asked { model: "m", max_output: Some(100), thinking, answer_schema, stream: true };
        serde_json::from_slice(&body(request, &asked).unwrap()).unwrap()
    }

    #[test]
    fn calls_and_results_are_messages_of_their_own_and_thinking_stays_home() {
        let body = json_of(
            &request(vec![
                Message::user("go"),
                Message {
                    role: Role::Assistant,
                    content: vec![
                        Block::Thinking {
                            thinking: "secret".into(),
                            signature: Some("s".into()),
                            model: Some("m".into()),
                        },
                        Block::RedactedThinking { data: "secret".into(), model: Some("m".into()) },
                        Block::ToolUse { id: "x".into(), name: "a".into(), input: json!({"p": 1}) },
                    ],
                },
                Message {
                    role: Role::User,
                    content: vec![
                        Block::Text { text: "note".into() },
                        Block::ToolResult {
                            tool_use_id: "x".into(),
                            content: "r".into(),
                            images: vec![],
                            is_error: false,
                        },
                    ],
                },
            ]),
            Thinking::No,
            false,
        );
        assert_eq!(
            body["messages"],
            json!([
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "x", "type": "function", "function": {"name": "a", "arguments": "{\"p\":1}"}}]},
                {"role": "tool", "tool_call_id": "x", "content": "r"},
                {"role": "user", "content": "note"},
            ])
        );
        assert_eq!(body["stream_options"], json!({"include_usage": true}));
        assert_eq!((body.get("response_format"), body.get("reasoning_effort")), (None, None));
        assert_eq!(body["max_tokens"], 100);
    }

    #[test]
    fn a_profile_that_can_gets_the_schema_and_a_model_that_thinks_its_effort() {
        let body = json_of(&request(vec![Message::user("go")]), Thinking::Effort, true);
        assert_eq!(
            body["response_format"],
            json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}})
        );
        assert_eq!((&body["reasoning_effort"], &body["max_completion_tokens"]), (&json!("low"), &json!(100)));
    }

    #[test]
    fn images_turn_the_content_into_parts() {
        let picture = Block::Image(Image { media_type: "image/png".into(), data: "QQ==".into() });
        let content = vec![Block::Text { text: "look".into() }, picture];
        let body = json_of(&request(vec![Message { role: Role::User, content }]), Thinking::No, false);
        assert_eq!(body["messages"][1]["content"][1]["image_url"]["url"], "data:image/png;base64,QQ==");
    }
}
