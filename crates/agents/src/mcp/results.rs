//! What a server gives back, as a tool's output: bounded. Pure.

use claw_kernel::visible::visible;
use claw_tools::cut;
use claw_tools::output::ToolOutput;
use rmcp::model::{CallToolResult, ContentBlock, ReadResourceResult, ResourceContents};
use serde_json::Value;

/// Characters of a result for the model.
const MOST_TEXT: usize = 100_000;
/// Images of a result, and bytes of one in base64.
const MOST_IMAGES: usize = 10;
const MOST_IMAGE: usize = 5 << 20;
/// What services take.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// The result of a call.
pub(super) fn output(result: CallToolResult) -> ToolOutput {
    let is_error = result.is_error == Some(true);
    let mut made = Made::default();
    for block in result.content {
        made.take(block);
    }
    let data = result.structured_content.unwrap_or(Value::Null);
    if made.texts.is_empty() && made.images.is_empty() && !data.is_null() {
        made.texts.push(data.to_string());
    }
    made.output(is_error, data)
}

/// The contents of a resource.
pub(super) fn resource(result: ReadResourceResult) -> ToolOutput {
    let mut made = Made::default();
    for contents in result.contents {
        made.contents(contents);
    }
    made.output(false, Value::Null)
}

#[derive(Default)]
struct Made {
    texts: Vec<String>,
    images: Vec<(String, String)>,
}

impl Made {
    fn take(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.texts.push(text.text),
            ContentBlock::Image(image) => self.image(image.mime_type, image.data),
            ContentBlock::Audio(audio) => self.texts.push(left_out("audio", &audio.mime_type, &audio.data)),
            ContentBlock::Resource(resource) => self.contents(resource.resource),
            ContentBlock::ResourceLink(link) => {
                let about = link.description.map(|about| format!(": {about}")).unwrap_or_default();
                self.texts.push(format!("[resource {} ({}){about}]", link.uri, link.name));
            }
            // Kinds that a later protocol knows.
            _ => self.texts.push("[content of an unknown kind]".to_owned()),
        }
    }

    fn image(&mut self, mime: String, data: String) {
        let fits = data.len() <= MOST_IMAGE && self.images.len() < MOST_IMAGES;
        if fits && IMAGES.contains(&mime.as_str()) {
            self.images.push((mime, data));
        } else {
            self.texts.push(left_out("image", &mime, &data));
        }
    }

    fn contents(&mut self, contents: ResourceContents) {
        match contents {
            ResourceContents::TextResourceContents { text, .. } => self.texts.push(text),
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                let mime = mime_type.unwrap_or_default();
                if mime.starts_with("image/") {
                    self.image(mime, blob);
                } else {
                    self.texts.push(format!("{} of {uri}", left_out("data", &mime, &blob)));
                }
            }
            // Forms that a later protocol knows.
            _ => self.texts.push("[contents of an unknown kind]".to_owned()),
        }
    }

    fn output(self, is_error: bool, data: Value) -> ToolOutput {
        let text = cut::middle(&visible(&self.texts.join("\n")), MOST_TEXT);
        ToolOutput { text, is_error, data, images: self.images, spilled: None }
    }
}

fn left_out(kind: &str, mime: &str, data: &str) -> String {
    format!("[{kind} {mime}, {} bytes, not shown]", data.len() / 4 * 3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_kind_of_content_has_its_words_and_all_is_bounded() {
        let result: CallToolResult = serde_json::from_value(json!({"content": [
            {"type": "text", "text": "a\u{1b}[2J"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "image", "data": "AAAA", "mimeType": "image/svg+xml"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "x://1", "text": "inside"}},
            {"type": "resource_link", "uri": "x://2", "name": "two"},
        ], "isError": true}))
        .unwrap();
        let made = output(result);
        assert!(made.is_error);
        assert_eq!(
            made.text,
            "a␛[2J\n[image image/svg+xml, 3 bytes, not shown]\n[audio audio/wav, 3 bytes, not shown]\ninside\n[resource x://2 (two)]"
        );
        assert_eq!(made.images, [("image/png".to_owned(), "AAAA".to_owned())]);
        let long: CallToolResult =
            serde_json::from_value(json!({"content": [{"type": "text", "text": "x".repeat(3 << 20)}]}))
                .unwrap();
        assert!(output(long).text.len() < MOST_TEXT + 200);
        let data: CallToolResult =
            serde_json::from_value(json!({"content": [], "structuredContent": {"a": 1}})).unwrap();
        assert_eq!(output(data).text, "{\"a\":1}");
    }
}
