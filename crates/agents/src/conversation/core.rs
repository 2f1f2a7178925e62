//! Decides what a conversation does next: ask, run calls, end. Pure: no clock, no tasks, no files, no models.
//!
//! The rule for a batch of calls: those that are whole run; one that was cut, is unknown or is outside the set gets an
//! error result in its place. Results go back in the order of the calls, in one message.

use super::history::History;
use super::reading::{Reader, Reading};
use super::schema::{self, AnswerSchema};
use super::steering::Steering;
use super::toolbox::{Meaning, Toolbox};
use crate::children;
use crate::effects::CallNo;
use crate::outcome::{AgentEnd, FailureClass};
use crate::transcript::OpenCall;
use claw_providers::event::{Answer, StopReason};
use claw_providers::message::{Block, Image, Message, Role};
use serde_json::Value;
use std::sync::Arc;

/// Answers in a row that were cut in the same way, after which it ends.
const MOST_CUTS: u32 = 3;
/// Requests in a row to go on after a pause of the service.
const MOST_PAUSES: u32 = 8;
/// Times in a row that it is sent on when it is done.
const MOST_SENT_ON: u32 = 8;

/// What the conversation was started with.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) max_turns: Option<u32>,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) answer: AnswerRule,
    /// Somebody may send it on when it is done.
    pub(crate) heeds_stop: bool,
    /// Turns that do not count against the limit.
    pub(crate) turns_before: u32,
    /// What was said and not heard goes back to whoever said it, where a stop ends the conversation.
    pub(crate) gives_back: bool,
}

/// How the final answer is given.
#[derive(Clone, Debug)]
pub(crate) enum AnswerRule {
    /// As text.
    Text,
    /// By a call of `structured_output`.
    Call(Arc<AnswerSchema>),
    /// As a JSON text that the service is held to.
    Document(Arc<AnswerSchema>),
}

/// Where a conversation takes up its history: the prompt, or what a transcript held.
#[derive(Debug, Default)]
pub(crate) struct Beginning {
    /// Why the model stopped in the last message, where that is its own.
    pub(crate) last_stop: Option<StopReason>,
    /// Its calls in that message, all without a result.
    pub(crate) open: Vec<OpenCall>,
}

/// A fact.
#[derive(Debug)]
pub(crate) enum Event {
    /// The first.
    Started(Beginning),
    /// The model's message is whole. `text_calls`: its model writes calls into its text.
    Answered { answer: Box<Answer>, text_calls: bool },
    /// The request ended without an answer.
    RequestFailed(AgentEnd),
    /// Whether it may end; else the words that send it on.
    EndJudged(Option<String>),
    /// A call ended, one way or another.
    CallEnded { call: CallNo, result: CallResult },
    /// A person says something into the running conversation.
    Steered(Steering),
    /// Everything stops; `say` is the result of calls that have none.
    Stopped { end: AgentEnd, say: String },
}

/// The result of a call, for the model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CallResult {
    pub(crate) text: String,
    pub(crate) images: Vec<Image>,
    pub(crate) is_error: bool,
    /// The call was ended by a cancel, so that it has no result of its own.
    pub(crate) is_cancelled: bool,
    /// For people: the lines of a difference, where it changed a file.
    pub(crate) patch: Vec<String>,
}

impl CallResult {
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_error: true, ..Self::default() }
    }
}

/// A call to run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlannedCall {
    pub(crate) no: CallNo,
    pub(crate) tool: &'static str,
    pub(crate) input: Value,
}

/// What is to be done, in order.
#[derive(Debug)]
pub(crate) enum Command {
    /// Write to the transcript, before anything that follows.
    Keep { turn: u32, message: Message, stop: Option<StopReason> },
    /// Write as thrown away: never part of the history.
    KeepAbandoned(Vec<Block>),
    /// The turn is whole in the transcript.
    TurnKept(u32),
    /// Send the history. `forced`: the tool that must be called.
    Ask { turn: u32, forced: Option<&'static str> },
    /// The model's message is kept.
    Answered { turn: u32, text: String },
    /// A call that does not run has this result.
    Refused { no: CallNo, tool: String, result: String },
    /// Run at the same time.
    Run(Vec<PlannedCall>),
    /// Ask whether it may end. `again`: it was sent on already.
    AskToEnd { last: String, again: bool },
    /// Cancel the request or the calls; each still reports its end.
    StopWork,
    /// The last command.
    End(AgentEnd),
}

/// A call's place in its batch.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) id: String,
    pub(super) no: CallNo,
    pub(super) result: Option<CallResult>,
}

#[derive(Debug)]
struct Batch {
    slots: Vec<Slot>,
    /// What happens once all results are in.
    then: Option<AgentEnd>,
}

#[derive(Debug)]
enum State {
    New,
    Asking,
    Running(Batch),
    /// Done, if nobody sends it on.
    Closing(AgentEnd),
    /// Waits for whoever judged its end to be gone.
    CalledOff(AgentEnd),
    /// Waits for what runs to report its end.
    Stopping {
        batch: Option<Batch>,
        end: AgentEnd,
        say: String,
    },
    Ended,
}

/// One conversation.
#[derive(Debug)]
pub(crate) struct Conversation {
    rules: Rules,
    history: History,
    state: State,
    turn: u32,
    steering: Vec<Steering>,
    wrong_answers: u32,
    /// The last cut: which calls (none: the text), and how often in a row.
    cuts: (Vec<String>, u32),
    pauses: u32,
    sent_on: u32,
    /// Text of answers that were cut, waiting for its rest.
    carried: String,
    forced: Option<&'static str>,
}

impl Conversation {
    /// `turns`: those that the history holds already.
    pub(crate) fn new(rules: Rules, history: History, turns: u32) -> Self {
        Self {
            rules,
            history,
            state: State::New,
            turn: turns,
            steering: Vec::new(),
            wrong_answers: 0,
            cuts: (Vec::new(), 0),
            pauses: 0,
            sent_on: 0,
            carried: String::new(),
            forced: None,
        }
    }

    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    pub(crate) fn into_history(self) -> History {
        self.history
    }

    /// A summary took the place of its older messages.
    pub(crate) fn replace_history(&mut self, history: History) {
        self.history = history;
    }

    /// A request is under way, and nobody stops it.
    pub(crate) fn is_asking(&self) -> bool {
        matches!(self.state, State::Asking)
    }

    pub(crate) fn turn(&self) -> u32 {
        self.turn
    }

    pub(crate) fn toolbox(&self) -> &Arc<Toolbox> {
        &self.rules.toolbox
    }

    /// From the next answer on, names mean these.
    pub(crate) fn set_toolbox(&mut self, toolbox: Arc<Toolbox>) {
        self.rules.toolbox = toolbox;
    }

    pub(crate) fn is_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    /// Whether this result is of a call that runs.
    pub(crate) fn awaits(&self, call: CallNo) -> bool {
        let batch = match &self.state {
            State::Running(batch) | State::Stopping { batch: Some(batch), .. } => batch,
            State::New
            | State::Asking
            | State::Closing(_)
            | State::CalledOff(_)
            | State::Stopping { batch: None, .. }
            | State::Ended => return false,
        };
        batch.slots.iter().any(|slot| slot.no == call && slot.result.is_none())
    }

    /// The one door.
    pub(crate) fn on(&mut self, event: Event) -> Vec<Command> {
        let mut out = Vec::new();
        match event {
            Event::Started(beginning) => self.started(beginning, &mut out),
            Event::Answered { answer, text_calls } => self.answered(*answer, text_calls, &mut out),
            Event::RequestFailed(end) => self.request_failed(end, &mut out),
            Event::EndJudged(refused) => self.end_judged(refused, &mut out),
            Event::CallEnded { call, result } => self.call_ended(call, result, &mut out),
            Event::Steered(message) => {
                if !self.is_ended() && !message.is_empty() {
                    self.steering.push(message);
                }
            }
            Event::Stopped { end, say } => self.stopped(end, say, &mut out),
        }
        out
    }

    fn started(&mut self, Beginning { last_stop, open }: Beginning, out: &mut Vec<Command>) {
        if !matches!(self.state, State::New) {
            return;
        }
        match self.history.last() {
            Some(last) if last.role == Role::Assistant && !open.is_empty() => {
                let text = last.text();
                let reader = Reader { rules: &self.rules, history: &self.history, turn: self.turn };
                let reading = reader.take_up(open);
                self.run_calls(text, reading, out);
            }
            // The process ended between the last answer and its outcome: nothing is asked again.
            Some(last) if last.role == Role::Assistant => {
                let text = last.text();
                self.without_calls(text, &last_stop.unwrap_or(StopReason::EndTurn), false, out);
            }
            Some(_) | None => self.ask(out),
        }
    }

    fn ask(&mut self, out: &mut Vec<Command>) {
        if let Some(most) = self.rules.max_turns
            && self.turn - self.rules.turns_before.min(self.turn) >= most
        {
            let message =
                format!("the limit of {most} turns (max_turns) was reached before the task was done");
            return self.fail(FailureClass::Limit, message, out);
        }
        self.turn += 1;
        self.state = State::Asking;
        out.push(Command::Ask { turn: self.turn, forced: self.forced.take() });
    }

    fn end(&mut self, end: AgentEnd, out: &mut Vec<Command>) {
        if let AgentEnd::Completed { text, .. } = &end
            && self.rules.heeds_stop
            && self.sent_on < MOST_SENT_ON
        {
            out.push(Command::AskToEnd { last: text.clone(), again: self.sent_on > 0 });
            self.state = State::Closing(end);
            return;
        }
        self.close(end, out);
    }

    fn end_judged(&mut self, refused: Option<String>, out: &mut Vec<Command>) {
        let end = match std::mem::replace(&mut self.state, State::Ended) {
            State::Closing(end) => end,
            State::CalledOff(end) => return self.close(end, out),
            other @ (State::New
            | State::Asking
            | State::Running(_)
            | State::Stopping { .. }
            | State::Ended) => {
                self.state = other;
                return;
            }
        };
        let Some(words) = refused else {
            if self.steering.is_empty() {
                return self.close(end, out);
            }
            // What a person said while the end was judged is heard first.
            self.keep_steering(out);
            return self.ask(out);
        };
        self.sent_on += 1;
        self.say(&words, out);
        self.ask(out);
    }

    fn close(&mut self, end: AgentEnd, out: &mut Vec<Command>) {
        self.state = State::Ended;
        out.push(Command::End(end));
    }

    fn fail(&mut self, class: FailureClass, message: String, out: &mut Vec<Command>) {
        let partial = self.history.last_text();
        self.end(AgentEnd::Failed { class, message, partial, retry_at: None }, out);
    }

    fn keep(&mut self, message: Message, stop: Option<StopReason>, out: &mut Vec<Command>) {
        self.history.push(message.clone());
        out.push(Command::Keep { turn: self.turn, message, stop });
    }

    fn request_failed(&mut self, end: AgentEnd, out: &mut Vec<Command>) {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Asking => {
                // The turn has no message.
                self.turn -= 1;
                self.keep_unheard(out);
                self.end(end, out);
            }
            State::Stopping { batch: None, end, .. } => {
                self.turn -= 1;
                self.keep_unheard(out);
                self.end(end, out);
            }
            State::CalledOff(end) => self.close(end, out),
            other @ (State::New
            | State::Running(_)
            | State::Closing(_)
            | State::Stopping { .. }
            | State::Ended) => self.state = other,
        }
    }

    fn answered(&mut self, answer: Answer, text_calls: bool, out: &mut Vec<Command>) {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::Asking => {}
            State::Stopping { batch: None, end, .. } => {
                // It came too late: kept, but not part of the history.
                out.push(Command::KeepAbandoned(answer.blocks));
                self.turn -= 1;
                self.keep_unheard(out);
                return self.end(end, out);
            }
            other @ (State::New
            | State::Running(_)
            | State::Closing(_)
            | State::CalledOff(_)
            | State::Stopping { .. }
            | State::Ended) => {
                self.state = other;
                return;
            }
        }
        if answer.stop == StopReason::Refusal {
            let said: String = answer.blocks.iter().filter_map(Block::as_text).collect();
            out.push(Command::KeepAbandoned(answer.blocks));
            let words = if said.trim().is_empty() { String::new() } else { format!(": {}", said.trim()) };
            return self.fail(
                FailureClass::Refused,
                format!("the model or its service refused to answer{words}"),
                out,
            );
        }
        let reader = Reader { rules: &self.rules, history: &self.history, turn: self.turn };
        let mut reading = reader.read(answer.blocks, &answer.cut_calls, text_calls);
        let content = std::mem::take(&mut reading.content);
        let text: String = content.iter().filter_map(Block::as_text).collect();
        if !content.is_empty() {
            let message = Message { role: Role::Assistant, content };
            self.keep(message, Some(answer.stop.clone()), out);
        }
        out.push(Command::Answered { turn: self.turn, text: text.clone() });
        if reading.slots.is_empty() {
            out.push(Command::TurnKept(self.turn));
            return self.without_calls(text, &answer.stop, text_calls, out);
        }
        self.run_calls(text, reading, out);
    }

    /// The model's message is in the history; its calls run, but for those that have their result already.
    fn run_calls(&mut self, text: String, reading: Reading, out: &mut Vec<Command>) {
        let Reading { content: _, slots, planned, cut, output, wrong } = reading;
        self.wrong_answers += wrong;
        self.carried.clear();
        self.pauses = 0;
        let then = match output {
            Some(output) => Some(AgentEnd::Completed { text, output: Some(output) }),
            None => self.count_cuts(cut).or_else(|| self.too_many_wrong_answers()),
        };
        self.state = State::Running(Batch { slots, then });
        out.extend(self.refusals());
        if planned.is_empty() { self.batch_is_in(out) } else { out.push(Command::Run(planned)) }
    }

    fn count_cuts(&mut self, cut: Vec<String>) -> Option<AgentEnd> {
        if cut.is_empty() {
            self.cuts = (Vec::new(), 0);
            return None;
        }
        let times = if self.cuts.0 == cut { self.cuts.1 + 1 } else { 1 };
        let names = cut.join(", ");
        self.cuts = (cut, times);
        (times >= MOST_CUTS).then(|| AgentEnd::Failed {
            class: FailureClass::Limit,
            message: format!(
                "the model's call of {names} was cut {times} times in a row, so it was never run; a higher output limit or a smaller step would help"
            ),
            partial: self.history.last_text(),
            retry_at: None,
        })
    }

    fn too_many_wrong_answers(&self) -> Option<AgentEnd> {
        (self.wrong_answers >= schema::MOST_WRONG).then(|| AgentEnd::Failed {
            class: FailureClass::Schema,
            message: format!(
                "{} structured answers in this attempt did not satisfy the schema",
                self.wrong_answers
            ),
            partial: self.history.last_text(),
            retry_at: None,
        })
    }

    /// The results that are there before anything runs, for those who watch.
    fn refusals(&self) -> Vec<Command> {
        let State::Running(batch) = &self.state else { return Vec::new() };
        let names: Vec<String> =
            self.history.last().map(|last| call_names(&last.content)).unwrap_or_default();
        let with_names = batch.slots.iter().zip(names);
        with_names
            .filter_map(|(slot, name)| {
                let result = slot.result.as_ref().filter(|result| result.is_error)?;
                Some(Command::Refused { no: slot.no, tool: name, result: result.text.clone() })
            })
            .collect()
    }

    fn without_calls(&mut self, text: String, stop: &StopReason, text_calls: bool, out: &mut Vec<Command>) {
        match stop {
            StopReason::MaxTokens => {
                let times = if self.cuts.0.is_empty() { self.cuts.1 + 1 } else { 1 };
                self.cuts = (Vec::new(), times);
                self.carried.push_str(&text);
                if times >= MOST_CUTS {
                    let message = format!("the answer reached the output limit {times} times in a row");
                    let said = std::mem::take(&mut self.carried);
                    if matches!(self.rules.answer, AnswerRule::Text) && !said.trim().is_empty() {
                        // What was said is worth keeping; that it is not all is said with it.
                        let text = format!("{}\n[{message}: it ends here]", said.trim_end());
                        return self.end(AgentEnd::Completed { text, output: None }, out);
                    }
                    return self.fail(FailureClass::Limit, message, out);
                }
                self.say("Your answer was cut at the output limit. Go on exactly where it stopped.", out);
                self.ask(out);
            }
            StopReason::PauseTurn if self.pauses < MOST_PAUSES => {
                self.pauses += 1;
                self.carried.push_str(&text);
                self.say("Go on.", out);
                self.ask(out);
            }
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::StopSequence
            | StopReason::PauseTurn
            | StopReason::Other(_)
            // Taken care of before.
            | StopReason::Refusal => {
                self.cuts = (Vec::new(), 0);
                self.pauses = 0;
                let text = std::mem::take(&mut self.carried) + &text;
                self.model_is_done(text, text_calls, out);
            }
        }
    }

    fn model_is_done(&mut self, text: String, text_calls: bool, out: &mut Vec<Command>) {
        if !self.steering.is_empty() {
            self.keep_steering(out);
            return self.ask(out);
        }
        let fault = match &self.rules.answer {
            AnswerRule::Text => {
                let text =
                    if text.trim().is_empty() { self.history.last_text().unwrap_or_default() } else { text };
                return self.end(AgentEnd::Completed { text, output: None }, out);
            }
            AnswerRule::Document(schema) => match AnswerSchema::parse(&text) {
                Ok(value) => match schema.answer(&value) {
                    Ok(value) => return self.end(AgentEnd::Completed { text, output: Some(value) }, out),
                    Err(fault) => fault.to_string(),
                },
                Err(error) => {
                    format!("the answer is not JSON ({error}); answer with the JSON document alone")
                }
            },
            AnswerRule::Call(schema) => {
                // A model that writes its calls as text may write its answer so too.
                let written = if text_calls { AnswerSchema::parse(&text).ok() } else { None };
                if let Some(value) = written.and_then(|value| schema.answer(&value).ok()) {
                    return self.end(AgentEnd::Completed { text, output: Some(value) }, out);
                }
                self.forced = Some(schema::TOOL);
                "The task ends with a call of the tool `structured_output` that holds the whole answer. Call it now.".to_owned()
            }
        };
        self.wrong_answers += 1;
        if let Some(end) = self.too_many_wrong_answers() {
            return self.end(end, out);
        }
        self.say(&fault, out);
        self.ask(out);
    }

    fn say(&mut self, text: &str, out: &mut Vec<Command>) {
        self.keep(Message::user(text), None, out);
    }

    /// At the end of a conversation that was stopped.
    fn keep_unheard(&mut self, out: &mut Vec<Command>) {
        if !self.rules.gives_back {
            self.keep_steering(out);
        }
    }

    fn keep_steering(&mut self, out: &mut Vec<Command>) {
        let content: Vec<Block> = self.steering.drain(..).flat_map(Steering::blocks).collect();
        if !content.is_empty() {
            self.keep(Message { role: Role::User, content }, None, out);
        }
    }

    fn call_ended(&mut self, call: CallNo, result: CallResult, out: &mut Vec<Command>) {
        let (batch, say) = match &mut self.state {
            State::Running(batch) => (batch, None),
            State::Stopping { batch: Some(batch), say, .. } => (batch, Some(&*say)),
            State::New
            | State::Asking
            | State::Closing(_)
            | State::CalledOff(_)
            | State::Stopping { batch: None, .. }
            | State::Ended => return,
        };
        let Some(slot) = batch.slots.iter_mut().find(|slot| slot.no == call && slot.result.is_none()) else {
            return;
        };
        slot.result = Some(match say {
            Some(say) if result.is_cancelled => CallResult { text: say.clone(), ..result },
            Some(_) | None => result,
        });
        self.batch_is_in(out);
    }

    fn batch_is_in(&mut self, out: &mut Vec<Command>) {
        let (batch, end) = match std::mem::replace(&mut self.state, State::Ended) {
            State::Running(mut batch) if batch.slots.iter().all(|slot| slot.result.is_some()) => {
                let end = batch.then.take();
                (batch, end)
            }
            State::Stopping { batch: Some(batch), end, .. }
                if batch.slots.iter().all(|slot| slot.result.is_some()) =>
            {
                // Calls that wait for children stay open: whoever goes on from here is told how these ended.
                if self.steering.is_empty() && self.waits_for_children_alone() {
                    return self.end(end, out);
                }
                (batch, Some(end))
            }
            other @ (State::New
            | State::Asking
            | State::Running(_)
            | State::Closing(_)
            | State::CalledOff(_)
            | State::Stopping { .. }
            | State::Ended) => {
                self.state = other;
                return;
            }
        };
        let is_spoken_to = !self.steering.is_empty();
        let mut content: Vec<Block> = batch.slots.into_iter().map(result_block).collect();
        let stops = matches!(&end, Some(AgentEnd::Cancelled));
        if !(stops && self.rules.gives_back) {
            content.extend(self.steering.drain(..).flat_map(Steering::blocks));
        }
        self.keep(Message { role: Role::User, content }, None, out);
        out.push(Command::TurnKept(self.turn));
        match end {
            // Its answer was given before it heard the person: it goes on with what was said.
            Some(AgentEnd::Completed { .. }) if is_spoken_to => self.ask(out),
            Some(end) => self.end(end, out),
            None => self.ask(out),
        }
    }

    /// All calls of the last message start children.
    fn waits_for_children_alone(&self) -> bool {
        let names = self.history.last().map(|last| call_names(&last.content)).unwrap_or_default();
        let is_child = |name: &String| self.rules.toolbox.meaning(name) == Meaning::Offered(children::TOOL);
        !names.is_empty() && names.iter().all(is_child)
    }

    fn stopped(&mut self, end: AgentEnd, say: String, out: &mut Vec<Command>) {
        match std::mem::replace(&mut self.state, State::Ended) {
            State::New => self.end(end, out),
            State::Asking => {
                self.state = State::Stopping { batch: None, end, say };
                out.push(Command::StopWork);
            }
            State::Running(batch) => {
                self.state = State::Stopping { batch: Some(batch), end, say };
                out.push(Command::StopWork);
            }
            State::Closing(_) => {
                self.state = State::CalledOff(end);
                out.push(Command::StopWork);
            }
            other @ (State::CalledOff(_) | State::Stopping { .. } | State::Ended) => self.state = other,
        }
    }
}

fn call_names(content: &[Block]) -> Vec<String> {
    content
        .iter()
        .filter_map(|block| match block {
            Block::ToolUse { name, .. } => Some(name.clone()),
            Block::Text { .. }
            | Block::Thinking { .. }
            | Block::RedactedThinking { .. }
            | Block::ToolResult { .. }
            | Block::Image(_) => None,
        })
        .collect()
}

fn result_block(slot: Slot) -> Block {
    let CallResult { text, images, is_error, .. } = slot.result.unwrap_or_default();
    let content = if text.trim().is_empty() && images.is_empty() { "(no output)".to_owned() } else { text };
    Block::ToolResult { tool_use_id: slot.id, content, images, is_error }
}

#[cfg(test)]
mod tests;
