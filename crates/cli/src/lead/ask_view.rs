//! A question of an agent in the region: what it wants, why it is asked, and the keys. Pure.
//!
//! A key that was meant for the input must not answer: right after typing a question waits for a moment of quiet.

use crate::terminal::Key;
use crate::terminal::paint::{Line, Style, Theme};
use claw_agents::permission::{Answer, AskRequest};
use std::time::Duration;

/// Typing within this time before the question means that keys may still be on their way.
const TYPING: Duration = Duration::from_millis(1_500);
/// So long nobody must have typed before keys count.
const QUIET: Duration = Duration::from_millis(600);
/// Rows of what is asked about; even.
const MOST_ROWS: usize = 10;

/// Simple commands of one line that are named.
const MOST_PARTS: usize = 6;

/// One question.
#[derive(Clone, Debug)]
pub(super) struct AskView {
    pub(super) id: u64,
    request: AskRequest,
    /// The reason being written.
    because: Option<String>,
    /// Keys count from here on.
    armed: Duration,
}

impl AskView {
    /// `typed`: when somebody typed into the input last.
    pub(super) fn new(id: u64, request: AskRequest, now: Duration, typed: Option<Duration>) -> Self {
        let armed = match typed {
            Some(typed) if now.saturating_sub(typed) < TYPING => now + QUIET,
            Some(_) | None => now,
        };
        Self { id, request, because: None, armed }
    }

    /// `None`: nothing is decided.
    pub(super) fn on(&mut self, key: &Key, now: Duration) -> Option<Answer> {
        if now < self.armed {
            self.armed = now + QUIET;
            return None;
        }
        if let Some(words) = &mut self.because {
            match key {
                Key::Enter if words.trim().is_empty() => return Some(Answer::No(None)),
                Key::Enter => return Some(Answer::No(Some(words.trim().to_owned()))),
                Key::Esc => self.because = None,
                Key::Backspace => {
                    words.pop();
                }
                Key::Char(letter) => words.push(*letter),
                Key::Paste(text) => words.push_str(text),
                _ => {}
            }
            return None;
        }
        match key {
            Key::Char('y' | 'Y') => Some(Answer::Once),
            // Without a rule it is asked each time.
            Key::Char('s' | 'S') if self.request.rule.is_some() => Some(Answer::Session),
            Key::Char('a' | 'A') if self.request.rule.is_some() => Some(Answer::Always),
            Key::Char('n' | 'N') | Key::Enter | Key::Esc => Some(Answer::No(None)),
            Key::Char('w' | 'W') => {
                self.because = Some(String::new());
                None
            }
            _ => None,
        }
    }

    pub(super) fn lines(&self, theme: &Theme, width: usize, behind: usize) -> Vec<Line> {
        let bar = |line: Line| {
            let mut whole = Line::styled("│ ", theme.warning);
            whole.append(line);
            whole.cut(width)
        };
        let room = width.saturating_sub(4).max(4);
        let mut head = Line::styled(&self.request.label, theme.strong);
        head.push(" wants to use ", Style::PLAIN);
        head.push(&self.request.tool, theme.strong);
        if behind > 0 {
            head.push(format!(" · {behind} more wait"), theme.quiet);
        }
        let mut lines = vec![bar(head)];
        lines.extend(subject(&self.request.subject, room).into_iter().map(|line| {
            let mut indented = Line::plain("  ");
            indented.append(line);
            bar(indented)
        }));
        for part in self.request.parts.iter().take(MOST_PARTS) {
            lines.push(bar(Line::styled("  · ", theme.quiet).with(part, theme.code)));
        }
        let why = Line::styled(&self.request.why, theme.quiet);
        let why = why.wrap(room, &Line::empty());
        lines.extend(why.into_iter().take(4).map(bar));
        lines.extend(self.keys(theme).wrap(room, &Line::empty()).into_iter().map(bar));
        lines
    }

    fn keys(&self, theme: &Theme) -> Line {
        if let Some(words) = &self.because {
            return Line::styled("Why not? ", theme.strong).with(words, Style::PLAIN).with("▏", theme.accent);
        }
        let mut line = Line::styled("Allow it? ", theme.strong);
        let lasting: &[(&str, &str)] = match self.request.rule {
            Some(_) => &[("s", " this session "), ("a", " always ")],
            None => &[],
        };
        let no = [("n", " no (Enter) "), ("w", " no, with a word")];
        for (key, what) in [("y", " once ")].iter().chain(lasting).chain(&no) {
            line.push(format!("[{key}]"), theme.accent);
            line.push(*what, Style::PLAIN);
        }
        line
    }
}

/// Both ends of what is asked about, whatever its length.
fn subject(text: &str, width: usize) -> Vec<Line> {
    const LONGEST: usize = 2_000;
    let shown = |line: &str| {
        let count = line.chars().count();
        if count <= LONGEST {
            return Line::plain(line);
        }
        let head: String = line.chars().take(LONGEST / 2).collect();
        let tail: String = line.chars().skip(count - LONGEST / 2).collect();
        Line::plain(format!("{head} … {} more characters … {tail}", count - LONGEST))
    };
    let lines: Vec<Line> = text.lines().flat_map(|line| shown(line).fold(width)).collect();
    let hidden = lines.len().saturating_sub(MOST_ROWS);
    if hidden == 0 {
        return lines;
    }
    let half = MOST_ROWS / 2;
    let mut both = lines[..half].to_vec();
    both.push(Line::plain(format!("… {hidden} more lines …")));
    both.extend_from_slice(&lines[lines.len() - half..]);
    both
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::paint::ThemeName;

    fn ask(subject: &str, typed: Option<u64>) -> AskView {
        let request = AskRequest {
            agent: claw_kernel::ids::AgentId::fresh(),
            label: "explore\x1b[2J".into(),
            tool: "bash".into(),
            subject: subject.into(),
            parts: vec!["curl x".into(), "rm y".into()],
            rule: Some("Bash(x)".into()),
            why: "the call uses the network; mode in force: workspace-write".into(),
        };
        AskView::new(1, request, Duration::from_secs(10), typed.map(Duration::from_millis))
    }

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn only_its_keys_answer_and_enter_is_a_no() {
        assert_eq!(ask("x", None).on(&Key::Char('y'), at(10_000)), Some(Answer::Once));
        assert_eq!(ask("x", None).on(&Key::Enter, at(10_000)), Some(Answer::No(None)));
        assert_eq!(ask("x", None).on(&Key::Char('q'), at(10_000)), None);
        let mut why = ask("x", None);
        for key in [Key::Char('w'), Key::Char('n'), Key::Char('o')] {
            assert_eq!(why.on(&key, at(10_000)), None);
        }
        assert_eq!(why.on(&Key::Enter, at(10_000)), Some(Answer::No(Some("no".into()))));
    }

    #[test]
    fn what_is_being_typed_is_no_answer() {
        let mut view = ask("x", Some(9_800));
        assert_eq!(view.on(&Key::Char('y'), at(10_200)), None);
        assert_eq!(view.on(&Key::Char('y'), at(10_700)), None, "still typing");
        assert_eq!(view.on(&Key::Char('y'), at(11_400)), Some(Answer::Once));
    }

    #[test]
    fn it_stays_on_the_screen_and_cannot_be_overdrawn() {
        let long: String = (1..=500).map(|n| format!("line {n}\x1b[1A\r\n")).collect();
        for width in [20, 40, 80] {
            let lines = ask(&long, None).lines(&ThemeName::Dark.theme(), width, 2);
            assert!(lines.len() <= 24, "{}", lines.len());
            let text: Vec<String> = lines.iter().map(Line::text).collect();
            assert!(!text.concat().contains(|c: char| c.is_control()));
            assert!(
                text.iter().any(|line| line.contains("line 1"))
                    && text.iter().any(|line| line.contains("line 500"))
            );
            assert!(lines.iter().all(|line| line.width() <= width));
        }
    }
}
