//! Several answers to one event become one. Pure.

use super::event::HookEvent;
use super::reply::Reply;
use serde_json::Value;

/// What a hook decides about a call. The later one wins over those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookDecision {
    /// It may run without a question.
    Allow,
    /// A person is asked.
    Ask,
    /// It does not run; what is over counts as failed; a prompt is not sent; an end is no end yet.
    Deny,
}

/// What all hooks of one event say together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// The strictest word, and the command that spoke it.
    pub decision: Option<(HookDecision, String)>,
    /// For the model, in the order of the configuration.
    pub messages: Vec<String>,
    /// The input as rewritten.
    pub input: Option<Value>,
    /// The turn ends, with these words.
    pub stop: Option<String>,
    /// For people.
    pub warnings: Vec<String>,
    /// A hook was ended with what it stood for: the words for the result.
    pub cancelled: Option<String>,
}

impl Verdict {
    /// Whether something was denied.
    pub fn is_denial(&self) -> bool {
        matches!(self.decision, Some((HookDecision::Deny, _)))
    }

    /// The messages as one text; `None`: there are none.
    pub fn text(&self) -> Option<String> {
        (!self.messages.is_empty()).then(|| self.messages.join("\n"))
    }

    /// Of replies in the order of the configuration.
    pub(super) fn of(event: HookEvent, replies: Vec<(String, Reply)>) -> Self {
        let mut verdict = Self::default();
        let mut rewriters: Vec<String> = Vec::new();
        for (command, reply) in replies {
            if let Some(decision) = reply.decision
                && verdict.decision.as_ref().is_none_or(|(known, _)| *known < decision)
            {
                verdict.decision = Some((decision, command.clone()));
            }
            verdict.messages.extend(reply.messages);
            verdict.warnings.extend(reply.warnings);
            verdict.stop = verdict.stop.or(reply.stop);
            verdict.cancelled = verdict.cancelled.or(reply.cancelled);
            if let Some(input) = reply.input {
                rewriters.push(command);
                verdict.input = Some(input);
            }
        }
        if let [one, other, ..] = rewriters.as_slice() {
            verdict.input = None;
            verdict.decision = Some((HookDecision::Deny, one.clone()));
            verdict.messages.push(format!(
                "two {event} hooks rewrite the input of this call, `{one}` and `{other}`: at most one may"
            ));
        }
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reply(decision: Option<HookDecision>, message: &str) -> Reply {
        Reply { decision, messages: vec![message.to_owned()], ..Reply::default() }
    }

    #[test]
    fn the_strictest_word_counts_and_messages_keep_their_order() {
        use HookDecision::{Allow, Ask, Deny};
        for (first, second, wanted) in
            [(Allow, Ask, Ask), (Ask, Deny, Deny), (Deny, Allow, Deny), (Allow, Allow, Allow)]
        {
            let replies = vec![("a".into(), reply(Some(first), "1")), ("b".into(), reply(Some(second), "2"))];
            let verdict = Verdict::of(HookEvent::PreToolUse, replies);
            assert_eq!(verdict.decision.map(|(decision, _)| decision), Some(wanted));
            assert_eq!(verdict.messages, ["1", "2"]);
        }
    }

    #[test]
    fn two_rewriters_are_an_error_that_names_both() {
        let rewrite = |to: &str| Reply { input: Some(json!({"command": to})), ..Reply::default() };
        let one = Verdict::of(
            HookEvent::PreToolUse,
            vec![("a".into(), rewrite("x")), ("b".into(), Reply::default())],
        );
        assert_eq!(one.input, Some(json!({"command": "x"})));
        let two =
            Verdict::of(HookEvent::PreToolUse, vec![("a".into(), rewrite("x")), ("b".into(), rewrite("y"))]);
        assert!(two.is_denial() && two.input.is_none());
        assert!(two.messages[0].contains("`a`") && two.messages[0].contains("`b`"), "{two:?}");
    }
}
