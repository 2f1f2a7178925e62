//! The text that stands for the messages that went: one message, of a fixed size, that never nests.

use super::outline;
use super::plan::Plan;

const HEAD: &str = "This session goes on from an earlier part of it, which this summary stands for.";
const PREVIOUS: &str = "Previously compacted context:";
const NEW: &str = "Newly compacted context:";
const TIMELINE: &str = "Timeline (newest last):";
const TAIL: &str = "The most recent messages follow verbatim. Go on with the work at once: do not recap this summary and do not ask whether to go on.";

/// Bytes of the parts, at most.
const MOST_PREVIOUS: usize = 4_000;
const MOST_NEW: usize = 6_000;
const MOST_TIMELINE: usize = 1_600;

/// The points of an earlier summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Earlier {
    previous: String,
    new: String,
}

/// Reads a summary. `None`: the text is something else.
pub(super) fn read(text: &str) -> Option<Earlier> {
    let body = text.strip_prefix(HEAD)?;
    let body = body.strip_suffix(TAIL).unwrap_or(body);
    let (before, rest) = body.split_once(NEW)?;
    let previous = before.split_once(PREVIOUS).map_or("", |(_, points)| points);
    let new = rest.split_once(TIMELINE).map_or(rest, |(points, _)| points);
    Some(Earlier { previous: previous.trim().to_owned(), new: new.trim().to_owned() })
}

pub(super) fn write(plan: &Plan, points: Option<&str>) -> String {
    // Half of what goes is for the text, so that it always shrinks.
    let bytes = usize::try_from(plan.tokens.saturating_mul(2)).unwrap_or(usize::MAX);
    let outlined;
    let points = match points.map(str::trim).filter(|points| !points.is_empty()) {
        Some(points) => points,
        None => {
            outlined = outline::points(&plan.gone);
            &outlined
        }
    };
    let mut text = format!("{HEAD}\n\n");
    if let Some(earlier) = &plan.earlier {
        let most = MOST_PREVIOUS.min(bytes / 2);
        let new = cut(&flat(&earlier.new), most * 2 / 3);
        let old = cut(&flat(&earlier.previous), most - new.len().min(most));
        text.push_str(&format!("{PREVIOUS}\n{}\n\n", [old, new].join("\n").trim()));
    }
    let rest = bytes.saturating_sub(text.len() + HEAD.len());
    text.push_str(&format!("{NEW}\n{}\n\n", cut(&flat(points), MOST_NEW.min(rest / 2))));
    let rest = bytes.saturating_sub(text.len() + TAIL.len() + TIMELINE.len());
    text.push_str(&format!("{TIMELINE}\n{}\n\n", outline::timeline(&plan.gone, MOST_TIMELINE.min(rest))));
    text.push_str(TAIL);
    text
}

/// The marks of this room are no part of a point.
fn flat(points: &str) -> String {
    [HEAD, PREVIOUS, NEW, TIMELINE, TAIL].iter().fold(points.to_owned(), |text, mark| text.replace(mark, ""))
}

/// Whole lines, as many as fit; a first line that is too long is cut.
fn cut(text: &str, most: usize) -> String {
    let text = text.trim();
    if text.len() <= most {
        return text.to_owned();
    }
    let head = &text[..text.floor_char_boundary(most)];
    match head.rfind('\n') {
        Some(end) if end > most / 2 => head[..end].trim_end().to_owned(),
        Some(_) | None => head.trim_end().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::compaction::estimate::tokens_of_all;
    use crate::compaction::plan::{Plan, Squeeze};
    use claw_providers::message::{Block, Message, Role};
    use proptest::prelude::*;
    use serde_json::json;
    use std::sync::Arc;

    fn user(text: impl Into<String>) -> Arc<Message> {
        Arc::new(Message::user(text))
    }

    fn says(text: &str) -> Arc<Message> {
        Arc::new(Message { role: Role::Assistant, content: vec![Block::Text { text: text.into() }] })
    }

    fn calls(id: &str) -> [Arc<Message>; 2] {
        let input = json!({"path": "src/a.rs"});
        let call = Block::ToolUse { id: id.into(), name: "read_file".into(), input };
        let result = Block::ToolResult {
            tool_use_id: id.into(),
            content: "x".repeat(900),
            images: Vec::new(),
            is_error: false,
        };
        [
            Arc::new(Message { role: Role::Assistant, content: vec![call] }),
            Arc::new(Message { role: Role::User, content: vec![result] }),
        ]
    }

    fn after(history: &[Arc<Message>], plan: &Plan, points: Option<&str>) -> Vec<Arc<Message>> {
        let tail = &history[history.len() - plan.kept..];
        let mut new = vec![user(plan.text(points))];
        if tail[0].role == Role::User {
            let mut first = (*new[0]).clone();
            first.content.extend(tail[0].content.clone());
            new[0] = Arc::new(first);
            new.extend(tail[1..].iter().cloned());
        } else {
            new.extend(tail.iter().cloned());
        }
        new
    }

    fn long_history() -> Vec<Arc<Message>> {
        let mut history = vec![user("FIRST-REQUEST: build the parser")];
        for n in 0..12 {
            history.extend(calls(&format!("t{n}")));
            history.push(says(&format!("step {n} done; still to do: step {}", n + 1)));
            history.push(user(format!("request number {n}")));
        }
        history
    }

    #[test]
    fn five_compactions_in_a_row_shrink_or_stay_and_never_nest() {
        let mut history = long_history();
        let mut sizes = vec![tokens_of_all(&history)];
        for round in 0..5 {
            if let Some(plan) = Plan::of(&history, 4, None, Squeeze::Usual) {
                history = after(&history, &plan, None);
            }
            let text = history[0].text();
            for mark in [super::HEAD, super::PREVIOUS, super::NEW, super::TIMELINE, super::TAIL] {
                assert!(text.matches(mark).count() <= 1, "round {round}: {mark} nests in\n{text}");
            }
            sizes.push(tokens_of_all(&history));
        }
        assert!(sizes.windows(2).all(|pair| pair[1] <= pair[0]), "{sizes:?}");
        assert!(sizes[1] < sizes[0] / 2, "{sizes:?}");
    }

    #[test]
    fn a_second_compaction_keeps_the_points_of_the_first() {
        let history = long_history();
        let plan = Plan::of(&history, 4, None, Squeeze::Usual).unwrap();
        let mut history = after(&history, &plan, Some("- the parser lives in src/parse.rs (POINT-ONE)"));
        for n in 20..30 {
            history.extend(calls(&format!("t{n}")));
            history.push(says(&format!("later {n}")));
            history.push(user(format!("later request {n}")));
        }
        let plan = Plan::of(&history, 4, None, Squeeze::Usual).unwrap();
        let text = plan.text(Some("- tests are green (POINT-TWO)"));
        let (one, two) = (text.find("POINT-ONE").unwrap(), text.find("POINT-TWO").unwrap());
        assert!(
            text.find(super::PREVIOUS).unwrap() < one && one < text.find(super::NEW).unwrap() && one < two
        );
        assert!(text.contains("later 2") && text.ends_with(super::TAIL), "{text}");
        assert!(text.len() < super::MOST_PREVIOUS + super::MOST_NEW + super::MOST_TIMELINE + 600);
    }

    #[test]
    fn a_call_is_never_parted_from_its_result() {
        let history = long_history();
        for preserve in 0..history.len() {
            if let Some(plan) = Plan::of(&history, preserve, None, Squeeze::Usual) {
                let first = &history[history.len() - plan.kept];
                assert!(!first.content.iter().any(|b| matches!(b, Block::ToolResult { .. })), "{preserve}");
            }
        }
        assert!(Plan::of(&history[..3], 4, None, Squeeze::Usual).is_none(), "nothing is there to go");
    }

    #[test]
    fn the_outline_names_requests_tools_files_and_what_is_pending() {
        let history = long_history();
        let text = Plan::of(&history, 4, None, Squeeze::Usual).unwrap().text(None);
        for words in ["FIRST-REQUEST", "read_file", "src/a.rs", "still to do"] {
            assert!(text.contains(words), "{words} is missing in\n{text}");
        }
    }

    proptest! {
        #[test]
        fn every_compaction_is_smaller_than_what_it_stands_for(
            sizes in proptest::collection::vec((0usize..3_000, any::<bool>()), 6..30),
            points in proptest::option::of("[a-z\n é]{0,9000}"),
        ) {
            let history: Vec<Arc<Message>> = sizes
                .iter()
                .enumerate()
                .map(|(n, (size, _))| if n % 2 == 0 { user("u".repeat(*size)) } else { says(&"a ".repeat(*size)) })
                .collect();
            if let Some(plan) = Plan::of(&history, 4, None, Squeeze::Usual) {
                let new = after(&history, &plan, points.as_deref());
                if plan.tokens > 600 {
                    prop_assert!(tokens_of_all(&new) < tokens_of_all(&history));
                }
            }
        }
    }
}
