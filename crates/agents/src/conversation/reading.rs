//! Sorts the blocks of an answer: what the history keeps, which calls run, which have their result already. Pure.

use super::core::{AnswerRule, CallResult, PlannedCall, Rules, Slot};
use super::history::History;
use super::schema;
use super::toolbox::Meaning;
use crate::effects::CallNo;
use crate::text_calls::{self, Piece};
use crate::transcript::{INTERRUPTED, OpenCall};
use claw_providers::event::{CutCall, CutReason};
use claw_providers::message::Block;
use serde_json::Value;
use std::collections::HashSet;

/// An answer, sorted.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// For the history.
    pub(super) content: Vec<Block>,
    /// One for each call, in order.
    pub(super) slots: Vec<Slot>,
    pub(super) planned: Vec<PlannedCall>,
    /// Names of the calls that were cut.
    pub(super) cut: Vec<String>,
    /// A structured answer that satisfies the schema.
    pub(super) output: Option<Value>,
    /// Structured answers that do not.
    pub(super) wrong: u32,
}

/// Reads one answer.
pub(super) struct Reader<'a> {
    pub(super) rules: &'a Rules,
    pub(super) history: &'a History,
    pub(super) turn: u32,
}

impl Reader<'_> {
    /// Sorts an answer's blocks.
    pub(super) fn read(&self, blocks: Vec<Block>, cuts: &[CutCall], text_calls: bool) -> Reading {
        let mut reading = Reading::default();
        let mut taken = HashSet::new();
        for (at, block) in blocks.into_iter().enumerate() {
            let why = cuts.iter().find(|cut| cut.block == at).map(|cut| cut.why);
            for block in self.spelled(block, text_calls) {
                let Block::ToolUse { id, name, input } = block else {
                    reading.content.push(block);
                    continue;
                };
                let index = u32::try_from(reading.slots.len() + 1).unwrap_or(u32::MAX);
                let no = CallNo { turn: self.turn, index };
                let id = self.history.unique_id(&id, &taken, no.turn, no.index);
                taken.insert(id.clone());
                let input = if input.is_object() { input } else { Value::Object(serde_json::Map::new()) };
                let result = match why {
                    Some(why) => {
                        reading.cut.push(name.clone());
                        Some(CallResult::error(cut_words(why)))
                    }
                    None => self.judge(&name, &input, no, &mut reading),
                };
                reading.slots.push(Slot { id: id.clone(), no, result });
                reading.content.push(Block::ToolUse { id, name, input });
            }
        }
        reading
    }

    /// Sorts the calls that an interrupted attempt left without a result: those that only read run again. What the
    /// others did is not known.
    pub(super) fn take_up(&self, open: Vec<OpenCall>) -> Reading {
        let mut reading = Reading::default();
        for OpenCall { id, name, input, reads_only } in open {
            let index = u32::try_from(reading.slots.len() + 1).unwrap_or(u32::MAX);
            let no = CallNo { turn: self.turn, index };
            let may_have_run = matches!(self.rules.toolbox.meaning(&name), Meaning::Offered(_))
                && !self.takes_the_answer(&name)
                && !reads_only;
            let result = if may_have_run {
                Some(CallResult::error(INTERRUPTED))
            } else {
                self.judge(&name, &input, no, &mut reading)
            };
            reading.slots.push(Slot { id, no, result });
        }
        reading
    }

    fn takes_the_answer(&self, name: &str) -> bool {
        matches!(self.rules.answer, AnswerRule::Call(_)) && schema::is_answer_tool(name)
    }

    /// Leaves out empty texts; finds calls in a text where the model writes them so.
    fn spelled(&self, block: Block, text_calls: bool) -> Vec<Block> {
        let Block::Text { text } = block else { return vec![block] };
        if text.trim().is_empty() {
            return Vec::new();
        }
        let offered = |name: &str| {
            matches!(self.rules.toolbox.meaning(name), Meaning::Offered(_)) || self.takes_the_answer(name)
        };
        let pieces = if text_calls { text_calls::split(&text, &offered) } else { None };
        match pieces {
            None => vec![Block::Text { text }],
            Some(pieces) => pieces
                .into_iter()
                .map(|piece| match piece {
                    Piece::Text(text) => Block::Text { text },
                    Piece::Call { name, input } => Block::ToolUse { id: String::new(), name, input },
                })
                .collect(),
        }
    }

    /// The result of a call that does not run; `None` where it takes its place among those that do.
    fn judge(&self, name: &str, input: &Value, no: CallNo, reading: &mut Reading) -> Option<CallResult> {
        if let AnswerRule::Call(schema) = &self.rules.answer
            && schema::is_answer_tool(name)
        {
            return Some(match schema.answer(input) {
                Ok(answer) => {
                    reading.output.get_or_insert(answer);
                    CallResult { text: "accepted".into(), ..CallResult::default() }
                }
                Err(fault) => {
                    reading.wrong += 1;
                    CallResult::error(fault.to_string())
                }
            });
        }
        let toolbox = &self.rules.toolbox;
        let refusal = match toolbox.meaning(name) {
            Meaning::Offered(tool) => {
                reading.planned.push(PlannedCall { no, tool, input: input.clone() });
                return None;
            }
            Meaning::Withheld(tool) => {
                format!("the tool `{tool}` is not in this agent's set; its tools: {}", toolbox.listed())
            }
            Meaning::Unknown { near: Some(near) } => {
                format!("there is no tool `{name}`; did you mean `{near}`? Your tools: {}", toolbox.listed())
            }
            Meaning::Unknown { near: None } => {
                format!("there is no tool `{name}`; your tools: {}", toolbox.listed())
            }
        };
        Some(CallResult::error(refusal))
    }
}

fn cut_words(why: CutReason) -> &'static str {
    match why {
        CutReason::OutputLimit => {
            "the call was cut at the output limit and not run; do it in smaller steps, such as several short edits"
        }
        CutReason::NotJson => {
            "the call was cut at the output limit or broken (its input is no JSON object) and not run; give it again, in smaller steps"
        }
    }
}
