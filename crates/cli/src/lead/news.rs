//! What the lead tells, as lines and as the state of the screen. Pure.

use super::state::{Doing, RunningCall, State};
use super::tool_lines::{EndedCall, ended, summary};
use crate::terminal::figures::{tokens, took};
use crate::terminal::paint::{Line, Style};
use claw_agents::event::AgentEvent;
use claw_agents::hooks::HookState;
use claw_agents::lead::{LeadEvent, LeadView};
use claw_agents::outcome::{AgentEnd, AgentOutcome};
use claw_providers::message::Block;
use std::time::Duration;

impl State {
    /// One piece of news.
    pub(super) fn on_news(&mut self, event: LeadEvent, now: Duration) {
        match event {
            LeadEvent::Opened(view) => self.on_opened(&view),
            LeadEvent::TurnStarted { .. } => {
                self.unheard.clear();
                self.begin_turn(now);
            }
            LeadEvent::Agent(event) => self.on_agent(event, now),
            LeadEvent::TurnEnded { outcome, .. } => self.on_turn_ended(&outcome, now),
            LeadEvent::Unheard { messages } => self.on_unheard(&messages),
            LeadEvent::Told { .. } => {}
            LeadEvent::Compacted { removed, before, after, without_model } => {
                self.on_compacted(removed, (before, after), without_model);
            }
            LeadEvent::Reckoning(reckoning) => {
                let session = reckoning.session;
                self.status.tokens = (session.total().saturating_sub(session.output), session.output);
                self.status.usd = session.usd;
            }
            LeadEvent::Context { used, window } => self.status.context = Some((used, window)),
            LeadEvent::ModelSet { model } => {
                self.note(&format!("model {model}"));
                self.status.model = model;
            }
            LeadEvent::PermissionSet { permission } => {
                self.status.permission = permission;
                self.note(&format!("permission mode {permission}"));
            }
            LeadEvent::DirAdded { path } => self.note(&format!("added {}", path.display())),
            LeadEvent::Rewound { said, files, .. } => {
                for (path, wrong) in &files {
                    match wrong {
                        None => self.note(&format!("put back {}", path.display())),
                        Some(why) => self.wrong(&format!("could not put back {}: {why}", path.display())),
                    }
                }
                if files.is_empty() {
                    self.note("no file was put back");
                }
                if !said.is_empty() {
                    self.note("the session stands before that prompt again");
                    self.editor.set(&text_of(&said));
                }
            }
            LeadEvent::Renamed { name } if name.is_empty() => self.note("the session has no name now"),
            LeadEvent::Renamed { name } => self.note(&format!("the session is called {name}")),
            LeadEvent::Refused { what, why } => self.wrong(&format!("{what}: {why}")),
            LeadEvent::Note(text) => self.note(&text),
            LeadEvent::Idle => {
                self.close_turn();
                self.doing = Doing::Idle;
            }
            LeadEvent::Closed => {}
        }
    }

    fn on_compacted(&mut self, removed: usize, (before, after): (u64, u64), without_model: Option<String>) {
        let how = without_model.map(|why| format!(" (without the model: {why})")).unwrap_or_default();
        let (before, after) = (tokens(before), tokens(after));
        self.note(&format!("compacted: {removed} messages became a summary, {before} → {after} tokens{how}"));
    }

    fn on_opened(&mut self, view: &LeadView) {
        self.status.model.clone_from(&view.model);
        self.status.permission = view.permission;
        self.status.tokens = (view.spent.total().saturating_sub(view.spent.output), view.spent.output);
        self.status.usd = view.spent.usd;
        for repair in &view.repairs {
            self.note(repair);
        }
        if view.messages > 0 {
            let name = view.name.clone().unwrap_or_else(|| view.session.to_string());
            self.note(&format!("goes on with {name}: {} messages", view.messages));
            if let Some((_, first)) = view.prompts.last() {
                self.note(&format!("last prompt: {first}"));
            }
        }
    }

    fn begin_turn(&mut self, now: Duration) {
        self.doing = Doing::Turn { since: now, what: "waits for the model".to_owned() };
        self.spoken = false;
        self.thinking = None;
    }

    fn what(&mut self, words: impl Into<String>) {
        if let Doing::Turn { what, .. } = &mut self.doing {
            *what = words.into();
        }
    }

    fn on_agent(&mut self, event: AgentEvent, now: Duration) {
        match event {
            AgentEvent::TurnStarted { .. } => {
                self.close_readings();
                self.what("waits for the model");
            }
            AgentEvent::Alive => {}
            AgentEvent::Text(piece) => self.on_text(&piece, now),
            AgentEvent::Thinking(_) => {
                if self.thinking.is_none() {
                    self.thinking = Some(now);
                    self.what("thinking");
                }
            }
            AgentEvent::Withdrawn => {
                self.answer.withdraw();
                self.thinking = None;
                self.what("asks again");
            }
            AgentEvent::Waiting { delay, why, error } => {
                let seconds = delay.as_secs_f64();
                self.what(format!("{why}, next try in {seconds:.0} s"));
                self.note(&format!("{why}; next try in {seconds:.1} s: {error}"));
            }
            AgentEvent::Held { why } => self.what(format!("waits for the service: {why}")),
            AgentEvent::FellBack { to, error } => self.note(&format!("goes on with {to}: {error}")),
            AgentEvent::Answered { .. } => {
                self.close_answer(now);
                self.what("works");
            }
            AgentEvent::ToolStarted { call, tool, subject } => {
                self.close_answer(now);
                self.calls.push(RunningCall { call, tool, subject, started: now, asking: false });
            }
            AgentEvent::Asking { call, .. } => {
                if let Some(running) = self.calls.iter_mut().find(|running| running.call == call) {
                    running.asking = true;
                }
            }
            AgentEvent::ToolEnded { call, tool, is_error, result, patch } => {
                let running = self.calls.iter().position(|running| running.call == call);
                let running = running.map(|at| self.calls.remove(at));
                let (subject, started) =
                    running.map_or((String::new(), now), |run| (run.subject, run.started));
                let took = now.saturating_sub(started);
                self.on_call_ended(EndedCall { tool, subject, is_error, result, patch, took });
            }
            AgentEvent::TurnKept { .. } => {}
            AgentEvent::Hook(news) => match news.state {
                HookState::Started => self.what(format!("{} hook {}", news.event, news.command)),
                HookState::Finished { is_denial: true, .. } => {
                    self.note(&format!("{} hook said no: {}", news.event, news.command));
                }
                HookState::Finished { .. } | HookState::Cancelled => self.what("works"),
            },
            AgentEvent::Compacted { removed, before, after, without_model } => {
                self.on_compacted(removed, (before, after), without_model);
            }
            AgentEvent::Context { used, window } => self.status.context = Some((used, window)),
            AgentEvent::Note(text) => self.note(&text),
        }
    }

    fn on_text(&mut self, piece: &str, now: Duration) {
        self.close_readings();
        self.close_thinking(now);
        self.what("writes");
        let (theme, room) = (self.theme, self.room());
        let lines = self.answer.push(piece, &theme, room);
        self.say(lines);
    }

    /// Lines of the answer; the first of them stand apart.
    fn say(&mut self, lines: Vec<Line>) {
        if lines.is_empty() {
            return;
        }
        if !self.spoken {
            self.spoken = true;
            self.gap();
        }
        self.put(lines);
    }

    fn close_answer(&mut self, now: Duration) {
        self.close_thinking(now);
        let (theme, room) = (self.theme, self.room());
        let lines = self.answer.finish(&theme, room);
        self.say(lines);
        if self.spoken {
            self.gap();
        }
        self.spoken = false;
    }

    fn close_thinking(&mut self, now: Duration) {
        if let Some(since) = self.thinking.take() {
            self.gap();
            let time = now.saturating_sub(since);
            let text = if time.as_secs() == 0 {
                "∴ thought".to_owned()
            } else {
                format!("∴ thought for {}", took(time))
            };
            self.put([Line::styled(text, self.theme.quiet)]);
        }
    }

    fn on_call_ended(&mut self, call: EndedCall) {
        let title = format!("{} {}", call.tool, call.subject);
        let whole = if call.patch.is_empty() { call.result.clone() } else { call.patch.join("\n") };
        self.keep(title, whole);
        if call.is_reading() {
            self.readings.push(call);
        } else {
            self.close_readings();
            let lines = ended(&call, &self.theme, self.room());
            self.put(lines);
        }
        if self.calls.is_empty() {
            self.close_readings();
        }
    }

    fn close_readings(&mut self) {
        if !self.readings.is_empty() {
            let calls = std::mem::take(&mut self.readings);
            let lines = summary(&calls, &self.theme, self.room());
            self.put(lines);
        }
    }

    fn close_turn(&mut self) {
        self.close_readings();
        self.calls.clear();
    }

    fn on_turn_ended(&mut self, outcome: &AgentOutcome, now: Duration) {
        self.close_answer(now);
        self.close_turn();
        match &outcome.end {
            AgentEnd::Completed { .. } => {}
            AgentEnd::Failed { message, .. } => self.wrong(&format!("error: {message}")),
            AgentEnd::OutOfBudget { reason } => self.wrong(&format!("error: {reason}")),
            AgentEnd::Cancelled => {
                let line = Line::styled("interrupted", self.theme.warning);
                self.put([line]);
            }
        }
        self.gap();
        self.doing = Doing::Idle;
    }

    fn on_unheard(&mut self, messages: &[Vec<Block>]) {
        self.unheard.clear();
        let mut texts: Vec<String> = messages.iter().map(|blocks| text_of(blocks)).collect();
        if !self.editor.is_empty() {
            texts.push(self.editor.text().to_owned());
        }
        self.editor.set(&texts.join("\n"));
    }

    /// Somebody said something while a turn runs.
    pub(super) fn on_steered(&mut self, shown: &str) {
        self.unheard.push(shown.lines().next().unwrap_or_default().to_owned());
    }

    /// A line that says what goes on.
    pub(super) fn activity(&self, now: Duration) -> Option<Line> {
        const SPIN: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
        let Doing::Turn { since, what } = &self.doing else { return None };
        let spin = SPIN[usize::try_from(now.as_millis() / 100).unwrap_or(0) % SPIN.len()];
        let mut line = Line::styled(format!("{spin} "), self.theme.accent);
        let time = took_whole(now.saturating_sub(*since));
        line.push(what, Style::PLAIN);
        line.push(format!(" {time} · Esc interrupts"), self.theme.quiet);
        Some(line)
    }
}

/// Whole seconds do not flicker.
fn took_whole(time: Duration) -> String {
    crate::terminal::figures::elapsed(time)
}

/// The texts of a message.
fn text_of(blocks: &[Block]) -> String {
    blocks.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n")
}
