//! What a hook meant: from its end and its output to a decision. Pure.
//!
//! The rule of guards: what stands before an effect and cannot be understood is a denial.

use super::event::HookEvent;
use super::fold::HookDecision;
use serde_json::{Map, Value};
use std::sync::LazyLock;
use std::time::Duration;

/// Bytes of one message for the model.
const MOST_MESSAGE: usize = 16_000;
/// Keys of an answer. One without any of them is a text that happens to be JSON.
const KNOWN: [&str; 7] =
    ["systemMessage", "reason", "continue", "stopReason", "decision", "suppressOutput", "hookSpecificOutput"];

/// How a hook ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Exited(i32),
    Signalled(i32),
    TimedOut(Duration),
    Cancelled,
    /// It could not be started, or its task died.
    Failed(String),
}

/// What came of one hook.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) ended: Ended,
    pub(super) out: Vec<u8>,
    /// Bytes of it that were not kept.
    pub(super) missing: u64,
    pub(super) err: String,
}

/// Which hook, for words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Who<'a> {
    pub(super) event: HookEvent,
    pub(super) command: &'a str,
    pub(super) tool: Option<&'a str>,
    /// The user wants guards that fail to be passed over.
    pub(super) fails_open: bool,
}

/// What one hook says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reply {
    pub(super) decision: Option<HookDecision>,
    pub(super) messages: Vec<String>,
    pub(super) input: Option<Value>,
    /// The turn ends, with these words.
    pub(super) stop: Option<String>,
    pub(super) warnings: Vec<String>,
    /// It was ended with what it stood for.
    pub(super) cancelled: Option<String>,
}

/// Output as understood.
enum Output {
    Text(String),
    /// Texts around them, and objects in order.
    Objects(String, Vec<Map<String, Value>>),
    /// It looks like JSON and is none.
    Broken(String),
}

/// An answer is wrong: which part.
struct Wrong(String);

impl Who<'_> {
    pub(super) fn read(self, said: &Said) -> Reply {
        let output = output(said);
        match &said.ended {
            Ended::Exited(0) => self.understood(output),
            Ended::Exited(2) => Reply {
                decision: Some(HookDecision::Deny),
                messages: vec![bounded(self.why_denied(&output, &said.err))],
                ..Reply::default()
            },
            Ended::Exited(code) => self.failed(&format!("ended with status {code}"), &output, &said.err),
            Ended::Signalled(signal) => {
                self.failed(&format!("was ended by signal {signal}"), &output, &said.err)
            }
            Ended::TimedOut(after) => {
                let words = format!("did not end within {} s", after.as_secs_f64());
                self.failed(&words, &output, &said.err)
            }
            Ended::Failed(why) => self.failed(&format!("did not run: {why}"), &output, &said.err),
            Ended::Cancelled => Reply { cancelled: Some(self.cancelled()), ..Reply::default() },
        }
    }

    /// The words for a hook that was ended with its call.
    pub(super) fn cancelled(self) -> String {
        let handling = self.tool.map(|tool| format!(" while handling {tool}")).unwrap_or_default();
        format!("{} hook {} cancelled{handling}", self.event, self.command)
    }

    fn named(self) -> String {
        format!("{} hook `{}`", self.event, self.command)
    }

    fn why_denied(self, output: &Output, err: &str) -> String {
        let err = err.trim();
        if !err.is_empty() {
            return err.to_owned();
        }
        let said = match output {
            Output::Text(text) | Output::Broken(text) => Some(text.trim().to_owned()),
            Output::Objects(text, objects) => {
                let word = |key: &str| objects.iter().find_map(|object| object.get(key)?.as_str());
                let word = word("reason").or_else(|| word("systemMessage")).map(str::to_owned);
                word.or_else(|| Some(text.trim().to_owned()))
            }
        };
        said.filter(|said| !said.is_empty()).unwrap_or_else(|| match self.tool {
            Some(tool) => format!("{} hook denied tool {tool}", self.event),
            None => format!("{} hook `{}` said no", self.event, self.command),
        })
    }

    fn failed(self, how: &str, output: &Output, err: &str) -> Reply {
        let out = match output {
            Output::Text(text) | Output::Broken(text) => text.trim(),
            Output::Objects(text, _) => text.trim(),
        };
        let said = if out.is_empty() { err.trim() } else { out };
        let colon = if said.is_empty() { "" } else { ": " };
        self.is_bad(bounded(format!("{} {how}{colon}{said}", self.named())))
    }

    /// A failure denies where it guards, and is a warning elsewhere.
    fn is_bad(self, words: String) -> Reply {
        if self.event.is_guard() && !self.fails_open {
            let decision = Some(HookDecision::Deny);
            return Reply { decision, messages: vec![words], ..Reply::default() };
        }
        Reply { warnings: vec![words], ..Reply::default() }
    }

    fn understood(self, output: Output) -> Reply {
        let (text, objects) = match output {
            Output::Text(text) => (text, Vec::new()),
            Output::Objects(text, objects) => (text, objects),
            Output::Broken(why) => {
                // Never let through: an answer that nobody understood may have been a no, whatever the user says of
                // hooks that fail.
                let guarded = Who { fails_open: false, ..self };
                return guarded.is_bad(format!("hook output invalid: {}: {why}", self.named()));
            }
        };
        let mut reply = Reply::default();
        let is_quiet = objects.iter().any(|object| object.get("suppressOutput") == Some(&Value::Bool(true)));
        if !text.trim().is_empty() && !is_quiet {
            reply.messages.push(bounded(text.trim().to_owned()));
        }
        for object in objects {
            if let Err(Wrong(why)) = self.object(&object, &mut reply) {
                let guarded = Who { fails_open: false, ..self };
                return guarded.is_bad(format!("hook output invalid: {}: {why}", self.named()));
            }
        }
        reply
    }

    fn object(self, object: &Map<String, Value>, reply: &mut Reply) -> Result<(), Wrong> {
        if !KNOWN.iter().any(|key| object.contains_key(*key)) {
            let words = format!("{} wrote a JSON object without any key of an answer", self.named());
            reply.warnings.push(words);
            return Ok(());
        }
        let own = part(object, "hookSpecificOutput")?;
        let mut decide = |decision: HookDecision| reply.decision = reply.decision.max(Some(decision));
        if let Some(word) = text(object, "decision")? {
            decide(match word {
                "block" | "deny" => HookDecision::Deny,
                "approve" | "allow" => HookDecision::Allow,
                "ask" => HookDecision::Ask,
                other => return Err(Wrong(format!("`{other}` is no decision (block, approve)"))),
            });
        }
        if let Some(word) = text(own, "permissionDecision")? {
            decide(permission(word)?);
        }
        let request = part(own, "decision")?;
        if let Some(word) = text(request, "behavior")? {
            decide(permission(word)?);
        }
        let stop_reason = text(object, "stopReason")?;
        let goes_on = match object.get("continue") {
            None | Some(Value::Null | Value::Bool(true)) => true,
            Some(Value::Bool(false)) => false,
            Some(_) => return Err(Wrong("`continue` is true or false".to_owned())),
        };
        if !goes_on && self.event.is_of_a_call() {
            decide(HookDecision::Deny);
        }
        for updated in [own.get("updatedInput"), request.get("updatedInput")].into_iter().flatten() {
            if !updated.is_object() {
                return Err(Wrong("`updatedInput` is no object".to_owned()));
            }
            if self.event != HookEvent::PreToolUse {
                return Err(Wrong("`updatedInput` is for PreToolUse".to_owned()));
            }
            reply.input = Some(updated.clone());
        }
        let reasons =
            [text(object, "reason")?, text(own, "permissionDecisionReason")?, text(request, "message")?];
        let words = [text(object, "systemMessage")?]
            .into_iter()
            .chain(reasons)
            .chain([text(own, "additionalContext")?, stop_reason.filter(|_| self.event.is_of_a_call())]);
        for word in words.flatten().map(str::trim).filter(|word| !word.is_empty()) {
            let word = bounded(word.to_owned());
            if !reply.messages.contains(&word) {
                reply.messages.push(word);
            }
        }
        if !goes_on && !self.event.is_of_a_call() {
            let words = stop_reason.map_or_else(|| format!("{} ended the turn", self.named()), str::to_owned);
            reply.stop = Some(bounded(words));
        }
        Ok(())
    }
}

/// An object in an object; an empty one where there is none.
fn part<'a>(object: &'a Map<String, Value>, key: &str) -> Result<&'a Map<String, Value>, Wrong> {
    static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    match object.get(key) {
        None | Some(Value::Null) => Ok(&NONE),
        Some(Value::Object(part)) => Ok(part),
        Some(_) => Err(Wrong(format!("`{key}` is no object"))),
    }
}

fn permission(word: &str) -> Result<HookDecision, Wrong> {
    match word {
        "deny" => Ok(HookDecision::Deny),
        "ask" => Ok(HookDecision::Ask),
        "allow" => Ok(HookDecision::Allow),
        other => Err(Wrong(format!("`{other}` is no permission decision (allow, deny, ask)"))),
    }
}

fn text<'a>(object: &'a Map<String, Value>, key: &str) -> Result<Option<&'a str>, Wrong> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Wrong(format!("`{key}` is no text"))),
    }
}

fn bounded(mut text: String) -> String {
    if text.len() > MOST_MESSAGE {
        text.truncate(text.floor_char_boundary(MOST_MESSAGE));
        text.push_str(" […]");
    }
    text
}

/// Objects start at the beginning of a line: shells greet before they run what they are told.
fn output(said: &Said) -> Output {
    let bytes = said.out.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&said.out);
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) if looks_like_json(&String::from_utf8_lossy(bytes)) => {
            return Output::Broken("it looks like JSON and is not UTF-8".to_owned());
        }
        Err(_) => return Output::Text(String::from_utf8_lossy(bytes).into_owned()),
    };
    if !looks_like_json(text) {
        return Output::Text(text.to_owned());
    }
    if said.missing > 0 {
        return Output::Broken(format!("it is too long: {} bytes of it were cut", said.missing));
    }
    let start = object_start(text);
    let Some(start) = start else {
        return Output::Broken("it holds a decision outside of a JSON object".to_owned());
    };
    let (before, rest) = text.split_at(start);
    let mut objects = Vec::new();
    let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    while let Some(value) = stream.next() {
        match value {
            Ok(Value::Object(object)) => objects.push(object),
            // A text that follows the answer.
            Ok(_) | Err(_)
                if !objects.is_empty() && object_start(&rest[stream.byte_offset()..]).is_none() =>
            {
                let after = &rest[stream.byte_offset()..];
                if mentions_decision(after) {
                    return Output::Broken("a second decision follows that is no JSON object".to_owned());
                }
                return Output::Objects(before.trim().to_owned(), objects);
            }
            Ok(_) => return Output::Broken("it is no JSON object".to_owned()),
            Err(error) => return Output::Broken(format!("it looks like JSON and is none: {error}")),
        }
    }
    Output::Objects(before.trim().to_owned(), objects)
}

fn looks_like_json(text: &str) -> bool {
    object_start(text).is_some() || mentions_decision(text)
}

fn mentions_decision(text: &str) -> bool {
    ["\"decision\"", "\"permissionDecision\"", "\"continue\""].iter().any(|word| text.contains(word))
}

/// Where the first line begins that starts with a brace.
fn object_start(text: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        if bare.starts_with('{') {
            return Some(at + (line.len() - bare.len()));
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use HookDecision::{Allow, Ask, Deny};

    fn who(event: HookEvent) -> Who<'static> {
        Who { event, command: "guard.sh", tool: Some("bash"), fails_open: false }
    }

    fn said(ended: Ended, out: impl Into<Vec<u8>>) -> Said {
        Said { ended, out: out.into(), missing: 0, err: String::new() }
    }

    fn pre(out: impl Into<Vec<u8>>) -> Reply {
        who(HookEvent::PreToolUse).read(&said(Ended::Exited(0), out))
    }

    #[test]
    fn decisions_are_read_in_both_forms() {
        let cases = [
            (r#"{"decision":"block","reason":"no"}"#, Some(Deny)),
            (r#"{"decision":"approve"}"#, Some(Allow)),
            (r#"{"hookSpecificOutput":{"permissionDecision":"ask"}}"#, Some(Ask)),
            (r#"{"continue":false,"stopReason":"over"}"#, Some(Deny)),
            (r#"{"systemMessage":"fyi"}"#, None),
            ("looks fine", None),
            ("", None),
        ];
        for (out, decision) in cases {
            assert_eq!(pre(out).decision, decision, "{out}");
        }
        let reply = pre(
            r#"{"systemMessage":"one","reason":"two","hookSpecificOutput":{"additionalContext":"three","updatedInput":{"command":"ls"}}}"#,
        );
        assert_eq!(reply.messages, ["one", "two", "three"]);
        assert_eq!(reply.input, Some(serde_json::json!({"command": "ls"})));
        assert_eq!(pre(r#"{"continue":false,"stopReason":"over"}"#).messages, ["over"]);
    }

    #[test]
    fn a_guard_that_cannot_be_understood_denies() {
        let greeted = pre(
            "✅ shell ready\n{\"hookSpecificOutput\":{\"permissionDecision\":\"deny\",\"permissionDecisionReason\":\"R-A\"}}\n",
        );
        assert_eq!(
            (greeted.decision, greeted.messages),
            (Some(Deny), vec!["✅ shell ready".into(), "R-A".into()])
        );
        let two = pre("{\"systemMessage\":\"note\"}\n{\"decision\":\"block\",\"reason\":\"R-G\"}\n");
        assert_eq!((two.decision, two.messages), (Some(Deny), vec!["note".into(), "R-G".into()]));
        let marked = pre(b"\xEF\xBB\xBF{\"decision\":\"block\",\"reason\":\"R-C\"}".to_vec());
        assert_eq!(marked.messages, ["R-C"]);
        for broken in [
            b"{\"decision\":\"block\",\"reason\":\"one\ntwo\"}".to_vec(),
            b"{\"decision\":\"block\",\"reason\":\"R-D \xff\xfe\"}".to_vec(),
            b"{\"hookSpecificOutput\":{\"permissionDecision\":\"deny\"".to_vec(),
            b"{\"hookSpecificOutput\":{\"permissionDecision\":\"denied\"}}".to_vec(),
            b"{\"decision\":\"Block\"}".to_vec(),
            b"{\"decision\":true}".to_vec(),
            b"{\"continue\":\"false\"}".to_vec(),
            b"result: {\"decision\":\"block\"}".to_vec(),
            b"{\"systemMessage\":\"x\"}\n{\"decision\":".to_vec(),
            b"{\"systemMessage\":\"x\"} then {\"decision\":\"block\"".to_vec(),
            b"{}{\"decision\":\"block\" , oops".to_vec(),
        ] {
            let reply = pre(broken.clone());
            let shown = String::from_utf8_lossy(&broken).into_owned();
            assert_eq!(reply.decision, Some(Deny), "{shown}");
            assert!(
                reply.messages[0].contains("hook output invalid") && reply.messages[0].contains("guard.sh"),
                "{reply:?}"
            );
            let after = who(HookEvent::PostToolUse).read(&said(Ended::Exited(0), broken));
            assert_eq!((after.decision, after.warnings.len()), (None, 1), "{shown}");
        }
        let echoed = pre(r#"{"session_id":"s","tool_name":"bash"}"#);
        assert_eq!((echoed.decision, echoed.warnings.len()), (None, 1));
    }

    #[test]
    fn every_end_but_success_denies_where_it_guards_and_warns_elsewhere() {
        let failing = [
            Ended::Exited(1),
            Ended::Signalled(9),
            Ended::TimedOut(Duration::from_secs(60)),
            Ended::Failed("no such file".into()),
        ];
        for ended in failing {
            let said = Said { err: "words".into(), ..said(ended.clone(), "") };
            for event in HookEvent::ALL {
                let reply = who(event).read(&said);
                let open = Who { fails_open: true, ..who(event) }.read(&said);
                assert_eq!(reply.decision == Some(Deny), event.is_guard(), "{ended:?} {event}");
                assert!(open.decision.is_none() && open.warnings[0].contains("words"), "{ended:?} {event}");
            }
        }
    }

    #[test]
    fn the_reason_of_a_denial_is_taken_where_it_is() {
        let deny = |out: &str, err: &str| {
            let said = Said { err: err.into(), ..said(Ended::Exited(2), out) };
            who(HookEvent::PreToolUse).read(&said).messages.remove(0)
        };
        assert_eq!(deny("out", "no thanks\n"), "no thanks");
        assert_eq!(deny("out\n", ""), "out");
        assert_eq!(deny(r#"{"systemMessage":"s","reason":"r"}"#, ""), "r");
        assert_eq!(deny("", ""), "PreToolUse hook denied tool bash");
    }

    #[test]
    fn outside_of_calls_a_stop_ends_the_turn() {
        let out = r#"{"continue":false,"stopReason":"enough"}"#;
        let reply = who(HookEvent::UserPromptSubmit).read(&said(Ended::Exited(0), out));
        assert_eq!((reply.decision, reply.stop.as_deref()), (None, Some("enough")));
        assert!(reply.messages.is_empty());
    }
}
