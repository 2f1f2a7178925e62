//! Questions of agents to the person at the terminal: one after another, each with its agent's name, default no.

use super::stdio::{say, stdin_ready};
use claw_agents::permission::{Answer, AskRequest, Presenter};
use claw_kernel::tasks;
use claw_kernel::visible::{visible, visible_line};
use futures_util::future::BoxFuture;
use rustix::termios::{QueueSelector, tcflush};
use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// How often a waiting question looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// Lines of what is asked about; even.
const MOST_LINES: usize = 12;
/// Characters of the reason.
const MOST_WHY: usize = 600;
/// Characters of one of them: a few rows of a terminal.
const MOST_OF_A_LINE: usize = 240;

/// One question on its way to the screen, or a word about the last.
#[derive(Debug)]
pub struct Question {
    what: What,
}

#[derive(Debug)]
enum What {
    Ask { request: Box<AskRequest>, reply: oneshot::Sender<Answer> },
    Note(String),
}

/// Hands questions to the screen that owns the terminal.
#[derive(Debug)]
pub struct TerminalPresenter {
    door: mpsc::Sender<Question>,
}

/// A question and words about the last: the queue behind them shows one at a time.
const DOOR: usize = 4;

impl TerminalPresenter {
    /// The presenter, and the end of the queue from which the screen takes questions.
    pub fn new() -> (Self, mpsc::Receiver<Question>) {
        let (door, questions) = mpsc::channel(DOOR);
        (Self { door }, questions)
    }
}

impl Presenter for TerminalPresenter {
    fn present(&self, request: AskRequest) -> BoxFuture<'_, Option<Answer>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let what = What::Ask { request: Box::new(request), reply };
            self.door.send(Question { what }).await.ok()?;
            answer.await.ok()
        })
    }

    fn tell(&self, text: String) {
        // A screen that is full of questions has no room for words.
        let _ = self.door.try_send(Question { what: What::Note(text) });
    }
}

impl Question {
    /// Asks and hands the answer on. Nothing else may write to the terminal until it is done. Ends early when the agent
    /// no longer waits; dropping it leaves the question unanswered.
    pub async fn put(self) {
        let (request, mut reply) = match self.what {
            What::Ask { request, reply } => (request, reply),
            What::Note(text) => {
                say(&format!("{}\n", visible_line(&text)));
                return;
            }
        };
        let text = text(&request);
        let stop = Unwanted::default();
        let unwanted = stop.flag();
        let answer = tokio::select! {
            line = tasks::blocking("question", move || ask_line(&text, &unwanted)) => line.ok().flatten(),
            () = reply.closed() => None,
        };
        if let Some(line) = answer {
            // The agent may have been stopped at this very moment.
            let _ = reply.send(read(&line, request.rule.is_some()));
        }
    }
}

/// Ends the reading thread when the question is dropped.
#[derive(Default)]
pub struct Unwanted(Arc<AtomicBool>);

impl Unwanted {
    /// Set when the question is dropped.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for Unwanted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// All of it stays on a screen, whatever the agent wants; the end of a long command is seen as its beginning is.
pub(super) fn subject(subject: &str) -> String {
    let lines: Vec<&str> = subject.lines().collect();
    let left_out = lines.len().saturating_sub(MOST_LINES);
    let (first, last) = if left_out == 0 {
        (lines.as_slice(), [].as_slice())
    } else {
        (&lines[..MOST_LINES / 2], &lines[lines.len() - MOST_LINES / 2..])
    };
    let shown = |lines: &[&str]| lines.iter().map(|line| cut(&visible_line(line), MOST_OF_A_LINE)).collect();
    let mut all: Vec<String> = shown(first);
    if left_out > 0 {
        all.push(format!("… {left_out} more lines …"));
        all.extend::<Vec<String>>(shown(last));
    }
    all.join("\n  ")
}

/// The middle goes.
pub(super) fn cut(text: &str, most: usize) -> String {
    let long = text.chars().count();
    if long <= most {
        return text.to_owned();
    }
    let half = most / 2;
    let first: String = text.chars().take(half).collect();
    let last: String = text.chars().skip(long - half).collect();
    format!("{first} … {} more characters … {last}", long - 2 * half)
}

fn text(request: &AskRequest) -> String {
    let mut out = format!(
        "\n{} wants to use {}:\n  {}\n",
        cut(&visible_line(&request.label), MOST_OF_A_LINE),
        visible_line(&request.tool),
        subject(&request.subject),
    );
    if !request.parts.is_empty() {
        let parts: Vec<String> =
            request.parts.iter().map(|part| format!("- {}", visible_line(part))).collect();
        out.push_str(&format!("it runs:\n  {}\n", subject(&parts.join("\n"))));
    }
    let choices = match &request.rule {
        Some(_) => {
            "[y] once, [s] exactly this for this session, [a] always (a rule in .claw/settings.local.json), [N] no, or write why not"
        }
        None => "[y] once, [N] no, or write why not",
    };
    out.push_str(&format!("{}\nAllow it? {choices}: ", cut(&visible_line(&request.why), MOST_WHY)));
    out
}

/// `may_last`: it may be answered for longer than once.
fn read(line: &str, may_last: bool) -> Answer {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Answer::Once,
        "s" | "session" if may_last => Answer::Session,
        "a" | "always" if may_last => Answer::Always,
        "" | "n" | "no" | "s" | "session" | "a" | "always" => Answer::No(None),
        _ => Answer::No(Some(line.trim().to_owned())),
    }
}

/// A yes-or-no question before anything runs. Default no.
pub fn confirm(text: &str) -> bool {
    let line = ask_line(&format!("{} [y/N] ", visible(text)), &AtomicBool::new(false));
    line.is_some_and(|line| read(&line, false) == Answer::Once)
}

/// What was typed before the question stood there is no answer to it.
pub(super) fn ask_line(text: &str, unwanted: &AtomicBool) -> Option<String> {
    // Where the terminal has no such queue, nothing was typed ahead.
    let _ = tcflush(std::io::stdin(), QueueSelector::IFlush);
    ask_again(text, unwanted)
}

/// The same, where what was typed ahead is meant for it.
pub fn ask_again(text: &str, unwanted: &AtomicBool) -> Option<String> {
    say(text);
    while !stdin_ready(LOOK) {
        if unwanted.load(Ordering::Relaxed) {
            return None;
        }
    }
    if unwanted.load(Ordering::Relaxed) {
        // What is typed now is meant for somebody else.
        return None;
    }
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(subject: &str) -> AskRequest {
        AskRequest {
            agent: claw_kernel::ids::AgentId::fresh(),
            label: "explore".into(),
            tool: "bash".into(),
            subject: subject.into(),
            parts: Vec::new(),
            rule: Some(format!("bash({subject})")),
            why: "it needs the network; mode in force: workspace-write".into(),
        }
    }

    #[test]
    fn only_a_yes_is_a_yes() {
        assert_eq!(read("Y\n", true), Answer::Once);
        assert_eq!(read("s\n", true), Answer::Session);
        assert_eq!(read("always\n", true), Answer::Always);
        assert_eq!((read("s\n", false), read("a\n", false)), (Answer::No(None), Answer::No(None)));
        assert_eq!(read("\n", true), Answer::No(None));
        assert_eq!(read("yess\n", true), Answer::No(Some("yess".into())));
        assert_eq!(read("use the cache instead\n", true), Answer::No(Some("use the cache instead".into())));
    }

    #[test]
    fn a_question_cannot_be_overdrawn() {
        let shown = text(&request("curl x\u{1b}[2K\u{1b}[1A\r"));
        assert!(!shown.contains(['\u{1b}', '\r']), "{shown:?}");
        assert!(shown.contains("explore wants to use bash"));
    }

    #[test]
    fn a_question_stays_on_the_screen_and_shows_both_ends() {
        let lines: String = (1..=500).map(|n| format!("line {n}\n")).collect();
        let shown = text(&request(&lines));
        assert!(shown.lines().count() <= MOST_LINES + 6, "{shown}");
        assert!(shown.contains("line 1\n") && shown.contains("line 500\n"), "{shown}");
        assert!(shown.contains("… 488 more lines …"));
        let shown = text(&request(&format!("begin{}end", "ä".repeat(100_000))));
        assert!(shown.contains("begin") && shown.contains("end\n") && shown.chars().count() < 800, "{shown}");
        assert!(text(&request("a\nb")).contains("  a\n  b\n"));
    }

    #[test]
    fn each_part_of_a_line_is_shown_and_what_is_asked_each_time_offers_no_more() {
        let mut asked = request("git status; touch x");
        asked.parts = vec!["git status".into(), "touch x\u{1b}[2K".into()];
        let shown = text(&asked);
        assert!(shown.contains("it runs:\n  - git status\n  - touch x\u{241b}[2K\n"), "{shown}");
        assert!(shown.contains("[a] always"), "{shown}");
        asked.rule = None;
        assert!(text(&asked).ends_with("Allow it? [y] once, [N] no, or write why not: "));
    }
}
