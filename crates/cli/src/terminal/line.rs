//! One line of the screen each: pure functions of a view and a width.

use super::figures::{elapsed, money, tokens};
use super::fit::{Piece, columns, compose, cut};
use super::view::{Doing, FootView, HeaderView, ManyView, RowView};
use std::time::Duration;

const SPIN: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// Columns of the bar of an `each` node on a wide line.
const BAR: usize = 20;

/// `tour  12s  2/4 nodes  3/5 steps  3 running  1 waiting  2 done  41k tokens  $0.12`.
pub(super) fn header(view: &HeaderView, width: usize) -> String {
    let count = |n: usize, what: &str| if n == 0 { String::new() } else { format!("· {n} {what}") };
    let steps = if view.steps > view.nodes {
        format!("· {}/{} steps", view.steps_done, view.steps)
    } else {
        String::new()
    };
    let pieces = vec![
        Piece::whole(1, view.danger.as_ref().map(|mode| format!("[{mode}]")).unwrap_or_default()),
        Piece::elastic(0, view.workflow.clone(), 8),
        Piece::whole(0, view.notice.as_ref().map(|notice| format!("({notice})")).unwrap_or_default()),
        Piece::whole(1, elapsed(view.elapsed)),
        Piece::whole(0, format!("· {}/{}", view.nodes_done, view.nodes)),
        Piece::whole(7, "nodes"),
        Piece::whole(6, steps),
        Piece::whole(2, count(view.running, "running")),
        Piece::whole(4, count(view.waiting, "waiting")),
        Piece::whole(5, count(view.done, "done")),
        Piece::whole(1, count(view.failed, "failed")),
        Piece::whole(
            6,
            if view.tokens == 0 { String::new() } else { format!("· {} tokens", tokens(view.tokens)) },
        ),
        Piece::whole(3, if view.tokens == 0 { String::new() } else { format!("· {}", money(view.usd)) }),
    ];
    compose(pieces, width)
}

/// `⠙ explore=security 12s turn 3 grep_search unsafe ↑12k ↓950 $0.12`.
pub(super) fn row(view: &RowView, width: usize, now: Duration) -> String {
    let (sign, doing) = match &view.doing {
        Doing::Queued { position } => ("·", format!("queued, place {position}")),
        Doing::Working { tool: Some((name, subject)) } => (spin(now), format!("{name} {subject}")),
        Doing::Working { tool: None } => {
            (spin(now), if view.turn == 0 { String::new() } else { "thinking".to_owned() })
        }
        Doing::Writing { chars } => (spin(now), format!("writing, {chars} characters")),
        Doing::Waiting { on } => ("◌", on.clone()),
        Doing::Over { state } => ("·", (*state).to_owned()),
        Doing::Asking => ("?", "waits for your answer".to_owned()),
    };
    let spent = view.up + view.down > 0;
    let pieces = vec![
        Piece::whole(0, sign),
        Piece::elastic(0, view.label.clone(), 12),
        Piece::whole(6, view.phase.as_ref().map(|phase| format!("[{phase}]")).unwrap_or_default()),
        Piece::whole(2, if view.attempt > 1 { format!("attempt {}", view.attempt) } else { String::new() }),
        Piece::whole(1, elapsed(view.elapsed)),
        Piece::whole(5, if view.turn > 0 { format!("turn {}", view.turn) } else { String::new() }),
        Piece::elastic(1, doing.trim_end(), 10),
        Piece::whole(
            4,
            if spent { format!("↑{} ↓{}", tokens(view.up), tokens(view.down)) } else { String::new() },
        ),
        Piece::whole(3, if spent { money(view.usd) } else { String::new() }),
    ];
    compose(pieces, width)
}

/// `  explore ████████░░░░ 64/128  4 running  1 failed`.
pub(super) fn many(view: &ManyView, width: usize) -> String {
    let bar = BAR.min(width / 3);
    let filled = (bar * view.done.min(view.total)).checked_div(view.total).unwrap_or(0);
    let count = |n: usize, what: &str| if n == 0 { String::new() } else { format!("· {n} {what}") };
    let pieces = vec![
        Piece::elastic(0, view.label.clone(), 8),
        Piece::whole(2, format!("{}{}", "█".repeat(filled), "░".repeat(bar - filled))),
        Piece::whole(0, format!("{}/{}", view.done, view.total)),
        Piece::whole(3, count(view.running, "running")),
        Piece::whole(1, count(view.failed, "failed")),
    ];
    compose(pieces, width)
}

/// The same where rows can be chosen: a sign in front of the one that is.
pub(super) fn row_chosen(view: &RowView, chosen: Option<bool>, width: usize, now: Duration) -> String {
    match chosen {
        None => row(view, width, now),
        Some(chosen) if width > 2 => {
            let sign = if chosen { "▸" } else { " " };
            format!("{sign} {}", row(view, width - 2, now))
        }
        Some(_) => row(view, width, now),
    }
}

/// A line of an agent's output.
pub(super) fn said(text: &str, width: usize) -> String {
    cut(&format!("  {text}"), width)
}

/// The line below all others; of a message the end is seen.
pub(super) fn foot(view: &FootView, width: usize) -> Option<String> {
    match view {
        FootView::Nothing => None,
        FootView::Hint(keys) => Some(cut(keys, width)),
        FootView::Ask(question) if columns(question) <= width => Some(question.clone()),
        FootView::Ask(_) => Some(cut("Stop the run? [y/N]", width)),
        FootView::Typed { to, text } => {
            let to = cut(to, width / 2);
            let room = width.saturating_sub(columns(&to) + 2);
            let mut shown: Vec<char> = Vec::new();
            let mut taken = 0;
            for letter in text.chars().rev() {
                taken += columns(letter.encode_utf8(&mut [0; 4]));
                if taken > room {
                    break;
                }
                shown.push(letter);
            }
            let shown: String = shown.into_iter().rev().collect();
            Some(cut(&format!("{to} {shown}▏"), width))
        }
    }
}

/// `+ 37 more`.
pub(super) fn more(count: usize, width: usize) -> String {
    compose(vec![Piece::whole(0, format!("+ {count} more"))], width)
}

fn spin(now: Duration) -> &'static str {
    let at = usize::try_from(now.as_millis() / 100).unwrap_or(0) % SPIN.len();
    SPIN.get(at).copied().unwrap_or("*")
}

#[cfg(test)]
mod tests {
    use super::super::fit::columns;
    use super::*;

    fn working() -> RowView {
        RowView {
            label: "explore=security".into(),
            phase: Some("look".into()),
            attempt: 2,
            elapsed: Duration::from_secs(75),
            turn: 3,
            doing: Doing::Working { tool: Some(("grep_search".into(), "unsafe in src/".into())) },
            up: 12_400,
            down: 950,
            usd: Some(0.12),
        }
    }

    fn head() -> HeaderView {
        HeaderView {
            workflow: "tour".into(),
            elapsed: Duration::from_secs(12),
            nodes_done: 1,
            nodes: 3,
            steps_done: 2,
            steps: 5,
            running: 3,
            waiting: 1,
            done: 2,
            failed: 1,
            tokens: 41_000,
            usd: Some(0.5),
            danger: None,
            notice: None,
        }
    }

    #[test]
    fn an_agents_line_says_what_it_does() {
        let now = Duration::from_millis(100);
        assert_eq!(
            row(&working(), 120, now),
            "⠙ explore=security [look] attempt 2 1m15s turn 3 grep_search unsafe in src/ ↑12k ↓950 $0.12"
        );
        assert_eq!(row(&working(), 60, now), "⠙ explore=securi… attempt 2 1m15s grep_sear… ↑12k ↓950 $0.12");
        let narrow = row(&working(), 40, now);
        assert_eq!(narrow, "⠙ explore=security 1m15s grep_search un…");
    }

    #[test]
    fn waiting_says_for_what() {
        let mut view = working();
        view.doing = Doing::Waiting { on: "rate limited, 12 s".into() };
        assert!(row(&view, 120, Duration::ZERO).starts_with("◌ explore=security"));
        assert!(row(&view, 120, Duration::ZERO).contains("rate limited, 12 s"));
        view.doing = Doing::Queued { position: 4 };
        view.turn = 0;
        assert!(row(&view, 120, Duration::ZERO).contains("queued, place 4"));
    }

    #[test]
    fn the_header_counts() {
        assert_eq!(
            header(&head(), 120),
            "tour 12s · 1/3 nodes · 2/5 steps · 3 running · 1 waiting · 2 done · 1 failed · 41k tokens · $0.50"
        );
        let mut stopping = head();
        stopping.notice = Some("stopping".into());
        stopping.danger = Some("danger-full-access".into());
        assert_eq!(header(&stopping, 60), "[danger-full-access] tour (stopping) 12s · 1/3 · 1 failed");
    }

    #[test]
    fn an_each_node_is_one_bar() {
        let view = ManyView { label: "explore".into(), total: 128, done: 64, failed: 1, running: 4 };
        assert_eq!(many(&view, 80), "explore ██████████░░░░░░░░░░ 64/128 · 4 running · 1 failed");
        assert_eq!(more(37, 40), "+ 37 more");
    }

    #[test]
    fn no_line_is_wider_than_its_terminal() {
        let mut wide = working();
        wide.label = "調査＝安全性の確認".into();
        let view = ManyView { label: "探索".into(), total: 0, done: 0, failed: 0, running: 0 };
        for width in 0..140 {
            for text in [
                row(&wide, width, Duration::ZERO),
                header(&head(), width),
                many(&view, width),
                more(9, width),
            ] {
                assert!(columns(&text) <= width, "{width}: {text}");
                assert!(!text.contains('\n'));
            }
        }
    }
}
