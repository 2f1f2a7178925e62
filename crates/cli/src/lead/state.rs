//! The screen as it stands: what is written, what runs, what waits. Pure: keys and news in, wishes and lines out.
//!
//! Time is given as the time since the start.

use super::act::Act;
use super::ask_view::AskView;
use super::deed::Deed;
use super::editor::{Completer, Editor, History};
use super::picker::Picker;
use super::status::Status;
use super::tool_lines::EndedCall;
use crate::terminal::markdown;
use crate::terminal::paint::{Line, Theme, ThemeName};
use claw_agents::effects::CallNo;
use claw_agents::permission::{Answer, AskRequest};
use std::collections::VecDeque;
use std::time::Duration;

/// Whole results that are kept for the pager.
const MOST_KEPT: usize = 60;
/// Lines that wait to be drawn; with more the screen is drawn at once.
const MOST_PENDING: usize = 400;

/// A call at work.
#[derive(Clone, Debug)]
pub(super) struct RunningCall {
    pub(super) call: CallNo,
    pub(super) tool: String,
    pub(super) subject: String,
    pub(super) started: Duration,
    pub(super) asking: bool,
}

/// What the model is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// Nothing runs.
    Idle,
    /// A turn runs since then.
    Turn {
        /// Since.
        since: Duration,
        /// The words: thinking, writing, waits for the service.
        what: String,
    },
}

/// A thing that stands in the place of the input.
#[derive(Debug)]
pub(super) enum Dialog {
    /// A list.
    Pick(Picker),
    /// A yes or no.
    Confirm {
        /// The question.
        question: String,
        /// What a yes does.
        deed: Box<Deed>,
    },
}

/// All of it.
pub(super) struct State {
    pub(super) theme: Theme,
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) editor: Editor,
    pub(super) status: Status,
    pub(super) doing: Doing,
    pub(super) answer: markdown::Answer,
    /// A sign stands before the answer that comes.
    pub(super) spoken: bool,
    pub(super) thinking: Option<Duration>,
    pub(super) calls: Vec<RunningCall>,
    pub(super) readings: Vec<EndedCall>,
    pub(super) asks: VecDeque<AskView>,
    pub(super) dialog: Option<Dialog>,
    /// Messages said during a turn that the model has not heard, by their first lines.
    pub(super) unheard: Vec<String>,
    /// Lines of background agents.
    pub(super) bars: Vec<String>,
    /// A word below the input that goes with the next key.
    pub(super) hint: Option<String>,
    kept: VecDeque<(String, String)>,
    above: Vec<Line>,
    /// When somebody typed into the input last.
    typed: Option<Duration>,
    interrupted: Option<Duration>,
    last_was_blank: bool,
}

/// A second Ctrl-C within this time ends the program.
const TWICE: Duration = Duration::from_secs(2);

impl State {
    pub(super) fn new(theme: ThemeName, history: History, status: Status, size: (usize, usize)) -> Self {
        Self {
            theme: theme.theme(),
            width: size.0,
            height: size.1,
            editor: Editor::new(history),
            status,
            doing: Doing::Idle,
            answer: markdown::Answer::default(),
            spoken: false,
            thinking: None,
            calls: Vec::new(),
            readings: Vec::new(),
            asks: VecDeque::new(),
            dialog: None,
            unheard: Vec::new(),
            bars: Vec::new(),
            hint: None,
            kept: VecDeque::new(),
            above: Vec::new(),
            typed: None,
            interrupted: None,
            last_was_blank: true,
        }
    }

    /// Columns of text above the region.
    pub(super) fn room(&self) -> usize {
        self.width.saturating_sub(1).max(8)
    }

    /// Something moves by itself: the screen is drawn again and again.
    pub(super) fn is_moving(&self) -> bool {
        self.doing != Doing::Idle || !self.bars.is_empty()
    }

    pub(super) fn is_idle(&self) -> bool {
        self.doing == Doing::Idle
    }

    /// Adds finished lines.
    pub(super) fn put(&mut self, lines: impl IntoIterator<Item = Line>) {
        for line in lines {
            let blank = line.is_blank();
            if blank && self.last_was_blank {
                continue;
            }
            self.last_was_blank = blank;
            self.above.push(line);
        }
    }

    /// The next lines stand apart from those before.
    pub(super) fn gap(&mut self) {
        self.put([Line::empty()]);
    }

    pub(super) fn note(&mut self, text: &str) {
        let line = Line::styled(format!("· {text}"), self.theme.quiet);
        let lines = line.wrap(self.room(), &Line::plain("  "));
        self.put(lines);
    }

    pub(super) fn wrong(&mut self, text: &str) {
        let style = self.theme.error;
        let lines: Vec<Line> = text
            .lines()
            .flat_map(|line| Line::styled(line, style).wrap(self.room(), &Line::plain("  ")))
            .collect();
        self.put(lines);
    }

    /// Finished lines that were not drawn yet.
    pub(super) fn take_above(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.above)
    }

    /// So much waits that it should be drawn.
    pub(super) fn is_full(&self) -> bool {
        self.above.len() >= MOST_PENDING
    }

    /// Keeps a whole result for the pager.
    pub(super) fn keep(&mut self, title: String, text: String) {
        if self.kept.len() >= MOST_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back((title, text));
    }

    /// A question of an agent.
    pub(super) fn ask(&mut self, id: u64, request: AskRequest, now: Duration) {
        self.asks.push_back(AskView::new(id, request, now, self.typed));
    }

    /// Nobody waits for this answer any more.
    pub(super) fn withdraw_ask(&mut self, id: u64) {
        self.asks.retain(|ask| ask.id != id);
    }

    /// What a slash command gave back.
    pub(super) fn on_deed(&mut self, deed: Deed) -> Option<Act> {
        match deed {
            Deed::Show(lines) => {
                let lines: Vec<Line> =
                    lines.iter().flat_map(|line| line.wrap(self.room(), &Line::plain("  "))).collect();
                self.put(lines);
            }
            Deed::Wrong(text) => self.wrong(&text),
            Deed::Pick(pick) => self.dialog = Some(Dialog::Pick(Picker::new(pick))),
            Deed::Confirm { question, deed } => self.dialog = Some(Dialog::Confirm { question, deed }),
            Deed::Theme(name) => {
                self.theme = name.theme();
                self.note(&format!("theme {}", name.word()));
            }
            Deed::Page { title, text } => return Some(Act::Page { title, text }),
            other @ (Deed::Order(_)
            | Deed::Prompt { .. }
            | Deed::Resume(_)
            | Deed::Fork
            | Deed::Refresh
            | Deed::Quit) => {
                return Some(Act::Deed(Box::new(other)));
            }
        }
        None
    }

    /// One key.
    pub(super) fn on_key(
        &mut self,
        key: crate::terminal::Key,
        completer: &dyn Completer,
        now: Duration,
    ) -> Vec<Act> {
        use super::editor::Edit;
        use crate::terminal::Key;
        self.hint = None;
        if key == Key::Resized {
            return Vec::new();
        }
        if key == Key::Ctrl('z') {
            return vec![Act::Suspend];
        }
        if key == Key::Ctrl('c') {
            return self.on_interrupt(now);
        }
        self.interrupted = None;
        if let Some(ask) = self.asks.front_mut() {
            let id = ask.id;
            return match ask.on(&key, now) {
                Some(answer) => self.answered(id, answer),
                None => Vec::new(),
            };
        }
        if self.dialog.is_some() {
            return self.on_dialog(&key);
        }
        self.typed = match key {
            Key::Char(_) | Key::Paste(_) | Key::Backspace => Some(now),
            _ => None,
        };
        match self.editor.on(key, completer) {
            Edit::Done => Vec::new(),
            Edit::Send { text, shown } => self.send(text, &shown),
            Edit::Unused(key) => self.on_other(&key),
        }
    }

    fn answered(&mut self, id: u64, answer: Answer) -> Vec<Act> {
        self.asks.pop_front();
        vec![Act::Answer { ask: id, answer }]
    }

    fn send(&mut self, text: String, shown: &str) -> Vec<Act> {
        let remember = Act::Remember(text.clone());
        if let Some(line) = text.strip_prefix('/').filter(|line| is_command(line)) {
            let (name, args) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            let echo = Line::styled(format!("❯ {}", text.trim_end()), self.theme.user);
            self.gap();
            self.put(echo.wrap(self.room(), &Line::plain("  ")));
            return vec![remember, Act::Slash { name: name.to_owned(), args: args.trim().to_owned() }];
        }
        let deed = Deed::Prompt { text, shown: shown.to_owned() };
        vec![remember, Act::Deed(Box::new(deed))]
    }

    /// What a person said, as it stays on the screen.
    pub(super) fn echo(&mut self, shown: &str) {
        self.gap();
        let style = self.theme.user;
        let lines: Vec<Line> = shown
            .lines()
            .enumerate()
            .flat_map(|(n, line)| {
                let line =
                    Line::styled(if n == 0 { "❯ " } else { "  " }, self.theme.accent).with(line, style);
                line.wrap(self.room(), &Line::plain("  "))
            })
            .collect();
        self.put(lines);
        self.gap();
    }

    fn on_other(&mut self, key: &crate::terminal::Key) -> Vec<Act> {
        use crate::terminal::Key;
        match key {
            Key::Esc if !self.is_idle() => vec![Act::Order(claw_agents::lead::LeadCommand::Interrupt)],
            Key::Esc => {
                self.editor.clear();
                Vec::new()
            }
            Key::Ctrl('d') => vec![Act::Quit],
            Key::Ctrl('l') => vec![Act::Refresh],
            Key::Ctrl('o') => match self.kept.back() {
                Some((title, text)) => vec![Act::Page { title: title.clone(), text: text.clone() }],
                None => {
                    self.hint = Some("nothing was folded yet".to_owned());
                    Vec::new()
                }
            },
            _ => Vec::new(),
        }
    }

    /// All results that are kept, the newest first.
    pub(super) fn kept(&self) -> impl Iterator<Item = &(String, String)> {
        self.kept.iter().rev()
    }

    /// Ctrl-C: what stands in the way goes first, then what is written, then the turn, then the program.
    fn on_interrupt(&mut self, now: Duration) -> Vec<Act> {
        let twice = self.interrupted.is_some_and(|before| now.saturating_sub(before) < TWICE);
        self.interrupted = Some(now);
        if twice && self.editor.is_empty() {
            return vec![Act::Quit];
        }
        if let Some(ask) = self.asks.front() {
            let id = ask.id;
            let mut acts = self.answered(id, Answer::No(None));
            acts.push(Act::Order(claw_agents::lead::LeadCommand::Interrupt));
            return acts;
        }
        if self.dialog.take().is_some() {
            self.interrupted = None;
            return Vec::new();
        }
        if !self.is_idle() {
            self.hint = Some("stopping; Ctrl-C again ends claw".to_owned());
            return vec![Act::Order(claw_agents::lead::LeadCommand::Interrupt)];
        }
        if self.editor.is_empty() {
            self.hint = Some("Ctrl-C again ends claw".to_owned());
        } else {
            self.editor.clear();
        }
        Vec::new()
    }

    fn on_dialog(&mut self, key: &crate::terminal::Key) -> Vec<Act> {
        use super::picker::Picked;
        use crate::terminal::Key;
        let deed = match &mut self.dialog {
            Some(Dialog::Pick(picker)) => match picker.on(key) {
                Picked::Open => return Vec::new(),
                Picked::Closed => None,
                Picked::Chosen(deed) => Some(deed),
            },
            Some(Dialog::Confirm { deed, .. }) => match key {
                Key::Char('y' | 'Y') => Some((**deed).clone()),
                Key::Char('n' | 'N') | Key::Enter | Key::Esc => None,
                _ => return Vec::new(),
            },
            None => None,
        };
        self.dialog = None;
        deed.and_then(|deed| self.on_deed(deed)).into_iter().collect()
    }
}

/// A path such as `/etc/passwd is wrong` is a prompt.
fn is_command(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    !word.is_empty()
        && word.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':'))
        && !line.starts_with(char::is_whitespace)
}
