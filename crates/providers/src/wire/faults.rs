//! Reads what services say when they refuse, on both wires, and sorts it into classes.

use crate::error::ErrorClass;
use claw_kernel::redact::Redactor;
use serde::Deserialize;
use serde_json::Value;

/// The longest message of a service that is kept, in characters.
const MESSAGE_LIMIT: usize = 600;
/// The longest name (type of an error, id of a request) that is kept, in characters.
const NAME_LIMIT: usize = 200;

/// A refusal as the service words it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The service's type, or the status' reason, capped.
    pub kind: String,
    /// The service's words, capped.
    pub message: String,
    /// What to do about it.
    pub class: ErrorClass,
}

impl Fault {
    /// Takes secrets out before anything is cut: half a key is still a part of one.
    pub fn new(kind: &str, message: &str, class: ErrorClass, redactor: &Redactor) -> Self {
        Self { kind: name(kind, redactor), message: words(message, redactor), class }
    }
}

/// A name that a service gave, without secrets, capped.
pub fn name(text: &str, redactor: &Redactor) -> String {
    cap(&redactor.apply(text), NAME_LIMIT)
}

/// Words of a service, without secrets, capped.
pub fn words(text: &str, redactor: &Redactor) -> String {
    cap(&redactor.apply(text), MESSAGE_LIMIT)
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Body {
    error: Option<Value>,
    message: Option<Value>,
    detail: Option<Value>,
}

/// Reads the body of an answer with an error status.
pub fn read_fault(status: u16, reason: &str, body: &[u8], redactor: &Redactor) -> Fault {
    let parsed: Option<Body> = serde_json::from_slice(body).ok();
    let (kind, code, message) = match parsed.and_then(|b| b.error.or(b.message).or(b.detail)) {
        Some(Value::Object(error)) => {
            let text = |key: &str| error.get(key).and_then(plain);
            (text("type"), text("code"), text("message"))
        }
        Some(other) => (None, None, plain(&other)),
        None => (None, None, None),
    };
    let kind = kind.or_else(|| code.clone()).unwrap_or_else(|| reason.to_owned());
    let message = message.unwrap_or_else(|| describe(body));
    let class = classify(status, &kind, code.as_deref().unwrap_or_default(), &message);
    Fault::new(&kind, &message, class, redactor)
}

/// The class of an error event inside a stream, by its type and words.
pub fn classify_kind(kind: &str, message: &str) -> ErrorClass {
    let status = match kind {
        "overloaded_error" | "server_overloaded" | "overloaded" => 529,
        "rate_limit_error" | "rate_limit_exceeded" | "429" => 429,
        "invalid_request_error" | "400" => 400,
        "authentication_error" | "401" => 401,
        "permission_error" | "403" => 403,
        "not_found_error" | "404" => 404,
        "request_too_large" | "413" => 413,
        "timeout_error" | "408" => 408,
        "503" | "529" => 529,
        _ => 500,
    };
    classify(status, kind, "", message)
}

fn classify(status: u16, kind: &str, code: &str, message: &str) -> ErrorClass {
    let words = message.to_lowercase();
    let names = [kind, code];
    let is_quota = names.iter().any(|n| {
        matches!(
            *n,
            "insufficient_quota" | "billing_error" | "billing_hard_limit_reached" | "billing_not_active"
        )
    }) || words.contains("credit balance")
        || words.contains("exceeded your current quota")
        || words.contains("insufficient credit")
        || words.contains("insufficient balance");
    if is_quota || status == 402 {
        return ErrorClass::Quota;
    }
    match status {
        401 | 403 => ErrorClass::Auth,
        429 => ErrorClass::RateLimit,
        503 | 529 => ErrorClass::Overloaded,
        408 | 409 | 500..=599 => ErrorClass::Transient,
        _ if overflows(&names, &words) => ErrorClass::ContextOverflow,
        _ if unknown_model(status, &names, &words) => ErrorClass::UnknownModel,
        _ => ErrorClass::Refused,
    }
}

fn overflows(names: &[&str], words: &str) -> bool {
    names.contains(&"context_length_exceeded")
        || names.contains(&"exceed_context_size_error")
        || words.contains("prompt is too long")
        || words.contains("context length")
        || words.contains("context window")
        || words.contains("context_length")
        || words.contains("exceed context limit")
        || words.contains("available context size")
}

fn unknown_model(status: u16, names: &[&str], words: &str) -> bool {
    names.contains(&"model_not_found")
        || (status == 404 && words.contains("model"))
        || (words.contains("model")
            && (words.contains("does not exist")
                || words.contains("not found")
                || words.contains("not exist")))
}

fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Object(object) => object.get("message").and_then(plain),
        Value::Array(items) if !items.is_empty() => Some(Value::Array(items.clone()).to_string()),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) => None,
    }
}

/// A short text for a body that is no error object.
fn describe(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    if text.is_empty() {
        return "no message".to_owned();
    }
    if text.starts_with('<') {
        return match title(text) {
            Some(title) => format!("an HTML page, \"{title}\""),
            None => "an HTML page".to_owned(),
        };
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The title of an HTML page.
pub(super) fn title(html: &str) -> Option<&str> {
    let lower = html.to_ascii_lowercase();
    let start = lower.find("<title>")? + "<title>".len();
    let end = start + lower[start..].find("</title>")?;
    let title = html[start..end].trim();
    (!title.is_empty() && title.len() <= 200).then_some(title)
}

fn cap(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_fault(status: u16, reason: &str, body: &[u8]) -> Fault {
        super::read_fault(status, reason, body, &Redactor::default())
    }

    #[test]
    fn a_secret_at_the_cut_leaves_nothing_of_itself() {
        let redactor = Redactor::new(["CANARYKEY9876543210".to_owned()]);
        let body = format!("{}CANARYKEY9876543210", "A".repeat(590));
        let fault = super::read_fault(401, "Unauthorized", body.as_bytes(), &redactor);
        assert!(
            !fault.message.contains("CANARY") && fault.message.contains("[redacted]"),
            "{}",
            fault.message
        );
    }

    #[test]
    fn a_type_is_capped_as_well() {
        let body = format!(r#"{{"error":{{"type":"{}","message":"no"}}}}"#, "t".repeat(60_000));
        assert_eq!(read_fault(400, "x", body.as_bytes()).kind.chars().count(), NAME_LIMIT + 1);
        assert_eq!(name(&"r".repeat(60_000), &Redactor::default()).chars().count(), NAME_LIMIT + 1);
    }

    #[test]
    fn error_bodies_of_both_wires_are_read() {
        let anthropic = br#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}"#;
        let fault = read_fault(529, "", anthropic);
        assert_eq!((fault.kind.as_str(), fault.message.as_str()), ("overloaded_error", "Overloaded"));
        assert_eq!(fault.class, ErrorClass::Overloaded);
        let chat = br#"{"error":{"message":"no","type":null,"param":null,"code":"model_not_found"}}"#;
        let fault = read_fault(404, "Not Found", chat);
        assert_eq!((fault.kind.as_str(), fault.class), ("model_not_found", ErrorClass::UnknownModel));
        assert_eq!(read_fault(400, "Bad Request", br#"{"error":"plain words"}"#).message, "plain words");
    }

    #[test]
    fn quota_is_told_from_a_rate_limit() {
        let quota = br#"{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"You exceeded your current quota"}}"#;
        assert_eq!(read_fault(429, "", quota).class, ErrorClass::Quota);
        let credit =
            br#"{"error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#;
        assert_eq!(read_fault(400, "", credit).class, ErrorClass::Quota);
        let rate = br#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#;
        assert_eq!(read_fault(429, "", rate).class, ErrorClass::RateLimit);
    }

    #[test]
    fn every_status_has_its_class() {
        use ErrorClass::{Auth, Overloaded, Quota, RateLimit, Refused, Transient};
        for (status, class) in [
            (400, Refused),
            (401, Auth),
            (402, Quota),
            (403, Auth),
            (404, Refused),
            (408, Transient),
            (409, Transient),
            (413, Refused),
            (422, Refused),
            (429, RateLimit),
            (500, Transient),
            (502, Transient),
            (503, Overloaded),
            (504, Transient),
            (529, Overloaded),
        ] {
            assert_eq!(read_fault(status, "x", b"{}").class, class, "{status}");
        }
    }

    #[test]
    fn a_full_window_is_its_own_class() {
        let body = br#"{"error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000"}}"#;
        assert_eq!(read_fault(400, "", body).class, ErrorClass::ContextOverflow);
    }

    #[test]
    fn html_and_long_texts_are_shortened() {
        let page = b"<html><head><title>502 Bad Gateway</title></head></html>";
        assert_eq!(read_fault(502, "Bad Gateway", page).message, "an HTML page, \"502 Bad Gateway\"");
        assert_eq!(read_fault(500, "x", "ü".repeat(5000).as_bytes()).message.chars().count(), 601);
    }

    #[test]
    fn events_inside_a_stream_have_classes() {
        assert_eq!(classify_kind("overloaded_error", "Overloaded"), ErrorClass::Overloaded);
        assert_eq!(classify_kind("api_error", "oops"), ErrorClass::Transient);
        assert_eq!(classify_kind("invalid_request_error", "no"), ErrorClass::Refused);
    }
}
