//! The question of a gate to the person at the terminal: message, values, choices with a key each, a word with it.

use super::question::{Unwanted, ask_again, ask_line, cut, subject};
use claw_kernel::tasks;
use claw_kernel::visible::visible_line;
use claw_orchestrator::addr::StepAddr;
use claw_orchestrator::journal::record::{Answer, AnsweredBy, Question};
use serde_json::Value;

/// Values that are shown.
const MOST_SHOWN: usize = 6;
/// Characters of the message, and of a choice.
const MOST_TEXT: usize = 480;

/// One question of a gate.
#[derive(Clone, Debug)]
pub struct GateQuestion {
    /// Which step asks.
    pub step: StepAddr,
    /// What.
    pub question: Question,
}

impl GateQuestion {
    /// Asks until one of the choices is said; `None`: nobody is there to answer. Nothing else may write to the terminal
    /// until it is done. Dropping it leaves the question unanswered.
    pub async fn put(self) -> Option<(StepAddr, Answer)> {
        let keys = keys(&self.question.choices);
        let mut text = text(&self, &keys);
        let mut is_first = true;
        loop {
            let unwanted = Unwanted::default();
            let (asked, flag) = (text.clone(), unwanted.flag());
            let ask = if is_first { ask_line } else { ask_again };
            is_first = false;
            let line = tasks::blocking("question", move || ask(&asked, &flag)).await.ok().flatten()?;
            if let Some((choice, comment)) = read(&line, &self.question.choices, &keys) {
                return Some((self.step, Answer { choice, comment, by: AnsweredBy::Person }));
            }
            text = prompt(&self.question.choices, &keys);
        }
    }
}

/// A key for each choice: its first letter that no other has, else its number.
fn keys(choices: &[String]) -> Vec<String> {
    let mut taken: Vec<String> = Vec::new();
    for (at, choice) in choices.iter().enumerate() {
        let letters = choice.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_lowercase().to_string());
        let free = letters.into_iter().find(|letter| !taken.contains(letter));
        taken.push(free.unwrap_or_else(|| (at + 1).to_string()));
    }
    taken
}

fn text(gate: &GateQuestion, keys: &[String]) -> String {
    let GateQuestion { step, question } = gate;
    let mut out = format!("\n{step} asks: {}\n", cut(&visible_line(&question.message), MOST_TEXT));
    for shown in question.show.iter().take(MOST_SHOWN) {
        let value = match &shown.value {
            Value::String(text) => text.clone(),
            Value::Array(items) if items.iter().all(Value::is_string) => {
                items.iter().filter_map(Value::as_str).map(|item| format!("- {item}\n")).collect()
            }
            other => format!("{other:#}"),
        };
        out.push_str(&format!("{}:\n  {}\n", visible_line(&shown.name), subject(&value)));
    }
    if question.show.len() > MOST_SHOWN {
        out.push_str(&format!("and {} more values\n", question.show.len() - MOST_SHOWN));
    }
    out + &prompt(&question.choices, keys)
}

fn prompt(choices: &[String], keys: &[String]) -> String {
    let shown: Vec<String> = choices
        .iter()
        .zip(keys)
        .map(|(choice, key)| format!("[{key}] {}", cut(&visible_line(choice), MOST_TEXT)))
        .collect();
    format!("{} (a comment may follow): ", shown.join("  "))
}

/// A key or a choice, then a comment.
fn read(line: &str, choices: &[String], keys: &[String]) -> Option<(String, Option<String>)> {
    let line = line.trim();
    // Choices may hold blanks: the longest that the line begins with.
    let whole = |choice: &&String| {
        line.strip_prefix(choice.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
    };
    let (choice, rest) = match choices.iter().filter(whole).max_by_key(|choice| choice.len()) {
        Some(choice) => (choice, &line[choice.len()..]),
        None => {
            let word = line.split_whitespace().next()?;
            let at = keys.iter().position(|key| *key == word.to_lowercase())?;
            (&choices[at], &line[word.len()..])
        }
    };
    let comment = rest.trim();
    Some((choice.clone(), (!comment.is_empty()).then(|| comment.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_orchestrator::journal::record::Shown;
    use serde_json::json;

    fn choices(all: &[&str]) -> Vec<String> {
        all.iter().map(|choice| (*choice).to_owned()).collect()
    }

    #[test]
    fn each_choice_has_a_key_of_its_own() {
        assert_eq!(keys(&choices(&["approve", "reject"])), ["a", "r"]);
        assert_eq!(keys(&choices(&["keep", "kill", "k"])), ["k", "i", "3"]);
    }

    #[test]
    fn a_key_or_the_choice_is_read_and_what_follows_is_the_comment() {
        let all = choices(&["approve", "approve all", "reject"]);
        let keys = keys(&all);
        let said = |line| read(line, &all, &keys);
        assert_eq!(said("A\n"), Some(("approve".into(), None)));
        assert_eq!(said("reject  too big \n"), Some(("reject".into(), Some("too big".into()))));
        assert_eq!(said("approve all"), Some(("approve all".into(), None)));
        assert_eq!(said("approve alligators"), Some(("approve".into(), Some("alligators".into()))));
        assert_eq!((said(""), said("yes"), said("approved")), (None, None, None));
    }

    #[test]
    fn the_question_is_bounded_and_cannot_overdraw_the_screen() {
        let lines: Vec<String> = (0..500).map(|n| format!("step {n}\u{1b}[2K")).collect();
        let question = Question {
            message: "Apply\r500?".into(),
            show: vec![Shown { name: "plan.steps".into(), value: json!(lines) }],
            choices: choices(&["approve", "reject"]),
            default: None,
            until: None,
        };
        let gate = GateQuestion { step: "approve".parse().unwrap(), question };
        let shown = text(&gate, &keys(&gate.question.choices));
        assert!(!shown.contains(['\u{1b}', '\r']) && shown.lines().count() < 20, "{shown}");
        assert!(
            shown.contains("- step 499")
                && shown.ends_with("[a] approve  [r] reject (a comment may follow): ")
        );
    }
}
