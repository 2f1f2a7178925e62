//! The region at the bottom: what comes, what runs, background agents, the input or a question, the status. Pure.

use super::ask_view::AskView;
use super::state::{Dialog, State};
use super::tool_lines::head;
use crate::terminal::Picture;
use crate::terminal::figures::elapsed;
use crate::terminal::paint::{Line, Style};
use std::time::Duration;

/// Rows of a menu.
const MENU_ROWS: usize = 8;
/// Calls at work that are shown.
const CALL_ROWS: usize = 6;

impl State {
    /// The region. Never higher than the terminal, the last column stays free.
    pub(super) fn picture(&mut self, now: Duration) -> Picture {
        let room = self.height.saturating_sub(1).max(2);
        let width = self.room();
        let mut bottom = self.bottom(width, room, now);
        let left = room.saturating_sub(bottom.lines.len());
        let mut top = self.top(width, left, now);
        let shift = top.len();
        if let Some(cursor) = &mut bottom.cursor {
            cursor.0 += shift;
        }
        top.append(&mut bottom.lines);
        Picture { lines: top, cursor: bottom.cursor }
    }

    /// The input or what stands in its place, and the status line.
    fn bottom(&mut self, width: usize, room: usize, now: Duration) -> Picture {
        let status = self.foot(width);
        if let Some(ask) = self.asks.front() {
            return asked(ask, self.asks.len() - 1, self, width, room, status);
        }
        if let Some(dialog) = &self.dialog {
            let mut lines = match dialog {
                Dialog::Pick(picker) => picker.lines(&self.theme, width, room),
                Dialog::Confirm { question, .. } => {
                    let mut line = Line::styled(question, self.theme.warning);
                    line.push(" [y] yes [N] no", self.theme.accent);
                    line.wrap(width, &Line::plain("  "))
                }
            };
            lines.truncate(room.saturating_sub(1).max(1));
            lines.push(status);
            return Picture { lines, cursor: None };
        }
        self.input(width, room, status, now)
    }

    fn foot(&self, width: usize) -> Line {
        match &self.hint {
            Some(hint) => Line::styled(hint, self.theme.warning).cut(width),
            None => self.status.line(&self.theme, width),
        }
    }

    fn input(&mut self, width: usize, room: usize, status: Line, _now: Duration) -> Picture {
        let prompt = match self.editor.searching() {
            Some(words) => format!("search `{words}`: "),
            None => "❯ ".to_owned(),
        };
        let indent = Line::plain(&prompt).width().min(width / 2);
        let layout = self.editor.layout(width.saturating_sub(indent));
        let menu = self.menu_lines(width, room.saturating_sub(3).min(MENU_ROWS));
        let most = room.saturating_sub(menu.len() + 1).max(1);
        let from = (layout.cursor.0 + 1).saturating_sub(most).min(layout.len().saturating_sub(1));
        let text = self.editor.text();
        let mut lines: Vec<Line> = (from..layout.len().min(from + most))
            .map(|row| {
                let mut line = if row == 0 {
                    Line::styled(&prompt, self.theme.accent).cut(indent.max(1))
                } else {
                    Line::plain(" ".repeat(indent))
                };
                line.push(layout.row(text, row), Style::PLAIN);
                line
            })
            .collect();
        if self.editor.is_empty() {
            let hint = "type a message · / for commands · @ for files";
            lines[0] = lines[0].clone().with(hint, self.theme.quiet).cut(width);
        }
        let cursor = (layout.cursor.0 - from, indent + layout.cursor.1);
        lines.extend(menu);
        lines.push(status);
        Picture { lines, cursor: Some(cursor) }
    }

    fn menu_lines(&self, width: usize, rows: usize) -> Vec<Line> {
        let Some(menu) = self.editor.menu() else { return Vec::new() };
        let rows = rows.max(1);
        let from = menu.chosen.saturating_sub(rows - 1);
        let shown = menu.choices.iter().enumerate().skip(from).take(rows);
        let names =
            menu.choices.iter().skip(from).take(rows).map(|choice| Line::plain(&choice.insert).width());
        let column = names.max().unwrap_or(0).min(width / 2);
        let mut lines: Vec<Line> = shown
            .map(|(at, choice)| {
                let style = if at == menu.chosen { self.theme.chosen } else { Style::PLAIN };
                let name = Line::styled(&choice.insert, style).cut(column);
                let blanks = " ".repeat(column - name.width() + 2);
                let mut line = Line::plain("  ");
                line.append(name);
                line.push(blanks, Style::PLAIN);
                line.push(&choice.about, self.theme.quiet);
                line.cut(width)
            })
            .collect();
        let hidden = menu.choices.len().saturating_sub(rows);
        if hidden > 0
            && let Some(last) = lines.last_mut()
        {
            *last = std::mem::take(last).with(format!("  + {hidden} more"), self.theme.quiet).cut(width);
        }
        lines
    }

    /// What comes and what runs, in the rows that are left: the newest and the most telling.
    fn top(&self, width: usize, room: usize, now: Duration) -> Vec<Line> {
        let mut lines = Vec::new();
        let mut fixed: Vec<Line> = Vec::new();
        let calls = self.calls.iter().take(CALL_ROWS).map(|call| {
            let sign = if call.asking { "?" } else { "○" };
            let mut line = head(&call.tool, &call.subject, sign, self.theme.accent, &self.theme)
                .cut(width.saturating_sub(8));
            line.push(format!(" {}", elapsed(now.saturating_sub(call.started))), self.theme.quiet);
            line.cut(width)
        });
        fixed.extend(calls);
        if self.calls.len() > CALL_ROWS {
            fixed.push(Line::styled(
                format!("  + {} more calls", self.calls.len() - CALL_ROWS),
                self.theme.quiet,
            ));
        }
        fixed.extend(self.activity(now).map(|line| line.cut(width)));
        fixed.extend(self.bars.iter().map(|bar| Line::plain(bar).cut(width)));
        let unheard = self
            .unheard
            .iter()
            .map(|text| Line::styled("waits: ", self.theme.accent).with(text, self.theme.quiet).cut(width));
        fixed.extend(unheard);
        if fixed.len() > room {
            fixed.truncate(room);
            return fixed;
        }
        let live = room.saturating_sub(fixed.len() + 2).min(self.height / 2);
        let open = if live == 0 { Vec::new() } else { self.answer.live(&self.theme, width, live) };
        if !open.is_empty() {
            lines.push(Line::empty());
            lines.extend(open.into_iter().map(|line| line.cut(width)));
        }
        if !lines.is_empty() || !fixed.is_empty() {
            lines.push(Line::empty());
        }
        lines.extend(fixed);
        let surplus = lines.len().saturating_sub(room);
        lines.drain(..surplus);
        lines
    }
}

fn asked(ask: &AskView, behind: usize, state: &State, width: usize, room: usize, status: Line) -> Picture {
    let mut lines = ask.lines(&state.theme, width, behind);
    let most = room.saturating_sub(1).max(1);
    if lines.len() > most {
        // The head and the keys stay, whatever is between.
        let keys = lines.split_off(lines.len().saturating_sub(most.saturating_sub(1).max(1)));
        lines.truncate(1);
        lines.extend(keys);
        lines.truncate(most);
    }
    lines.push(status);
    Picture { lines, cursor: None }
}
