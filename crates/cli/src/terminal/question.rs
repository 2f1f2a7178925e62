//! Questions of agents to the person at the terminal: one after another, each with its agent's name, default no.

use super::stdio::{say, stdin_ready};
use claw_agents::permission::{AskRequest, Asker, Reply};
use claw_kernel::tasks;
use claw_kernel::visible::{visible, visible_line};
use futures_util::future::BoxFuture;
use rustix::termios::{QueueSelector, tcflush};
use std::collections::HashSet;
use std::io::BufRead;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc, oneshot};

/// How often a waiting question looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// Lines of what is asked about; even.
const MOST_LINES: usize = 12;
/// Characters of one of them: a few rows of a terminal.
const MOST_OF_A_LINE: usize = 240;

/// One question on its way to the screen.
#[derive(Debug)]
pub struct Question {
    request: AskRequest,
    reply: oneshot::Sender<Answer>,
}

/// What a person can say.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Once,
    Session,
    No(Option<String>),
}

/// Hands questions to the screen that owns the terminal.
#[derive(Debug)]
pub struct TerminalAsker {
    door: mpsc::Sender<Question>,
    /// What was allowed for this session: tool and subject, exactly.
    allowed: Mutex<HashSet<(String, String)>>,
}

impl TerminalAsker {
    /// The asker, and the end of the queue from which the screen takes questions.
    pub fn new() -> (Self, mpsc::Receiver<Question>) {
        let (door, questions) = mpsc::channel(1);
        (Self { door, allowed: Mutex::default() }, questions)
    }
}

impl Asker for TerminalAsker {
    fn ask(&self, request: AskRequest) -> BoxFuture<'_, Reply> {
        Box::pin(async move {
            let key = (request.tool.clone(), request.subject.clone());
            // Held while the person thinks: the next question waits, and profits from an answer for the session.
            let mut allowed = self.allowed.lock().await;
            if allowed.contains(&key) {
                return Reply::Allow;
            }
            let (reply, answer) = oneshot::channel();
            if self.door.send(Question { request, reply }).await.is_err() {
                return Reply::Nobody;
            }
            match answer.await {
                Ok(Answer::Once) => Reply::Allow,
                Ok(Answer::Session) => {
                    allowed.insert(key);
                    Reply::Allow
                }
                Ok(Answer::No(message)) => Reply::Deny { message },
                Err(_) => Reply::Nobody,
            }
        })
    }
}

impl Question {
    /// Asks and hands the answer on. Nothing else may write to the terminal until it is done. Ends early when the agent
    /// no longer waits; dropping it leaves the question unanswered.
    pub async fn put(mut self) {
        let text = text(&self.request);
        let stop = Unwanted::default();
        let unwanted = stop.flag();
        let answer = tokio::select! {
            line = tasks::blocking("question", move || ask_line(&text, &unwanted)) => line.ok().flatten(),
            () = self.reply.closed() => None,
        };
        if let Some(line) = answer {
            // The agent may have been stopped at this very moment.
            let _ = self.reply.send(read(&line));
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
    format!(
        "\n{} wants to use {}:\n  {}\n{}\nAllow it? [y] once, [s] for this session, [N] no, or write why not: ",
        cut(&visible_line(&request.label), MOST_OF_A_LINE),
        visible_line(&request.tool),
        subject(&request.subject),
        cut(&visible_line(&request.why), MOST_OF_A_LINE),
    )
}

fn read(line: &str) -> Answer {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Answer::Once,
        "s" | "session" => Answer::Session,
        "" | "n" | "no" => Answer::No(None),
        _ => Answer::No(Some(line.trim().to_owned())),
    }
}

/// A yes-or-no question before anything runs. Default no.
pub fn confirm(text: &str) -> bool {
    let line = ask_line(&format!("{} [y/N] ", visible(text)), &AtomicBool::new(false));
    line.is_some_and(|line| read(&line) == Answer::Once)
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
            why: "it needs the network; mode in force: workspace-write".into(),
        }
    }

    #[test]
    fn only_a_yes_is_a_yes() {
        assert_eq!(read("Y\n"), Answer::Once);
        assert_eq!(read("s\n"), Answer::Session);
        assert_eq!(read("\n"), Answer::No(None));
        assert_eq!(read("yess\n"), Answer::No(Some("yess".into())));
        assert_eq!(read("use the cache instead\n"), Answer::No(Some("use the cache instead".into())));
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
        assert!(shown.contains("begin") && shown.contains("end\n") && shown.chars().count() < 600, "{shown}");
        assert!(text(&request("a\nb")).contains("  a\n  b\n"));
    }

    #[tokio::test]
    async fn an_answer_for_the_session_answers_the_same_call_again() {
        let (asker, mut questions) = TerminalAsker::new();
        let asker = Arc::new(asker);
        let first = Arc::clone(&asker);
        let waiting = tasks::spawn("first", async move { first.ask(request("curl x")).await });
        let question = questions.recv().await.unwrap();
        question.reply.send(Answer::Session).unwrap();
        assert_eq!(waiting.await, Ok(Reply::Allow));
        assert_eq!(asker.ask(request("curl x")).await, Reply::Allow);
        drop(questions);
        assert_eq!(asker.ask(request("curl y")).await, Reply::Nobody);
    }
}
