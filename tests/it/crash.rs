//! Kills at many points of whole runs, and of the takes that go on with them. Nothing is lost, nothing is done twice,
//! whatever is in doubt is named.
//!
//! `CLAW_CRASH_POINTS` says how many points; few by default, 300 with `CLAW_LONG_TESTS=1`.

mod graph;
mod landing;

use claw_kit::{Claw, Sandbox, run_program};
use graph::{BOUND, CLAW, Case, EFFECTS, REQUESTS, wait_for_line};
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

fn is_long() -> bool {
    std::env::var("CLAW_LONG_TESTS").is_ok_and(|long| long == "1")
}

fn points(short: usize, long: usize) -> usize {
    let asked = std::env::var("CLAW_CRASH_POINTS").ok().and_then(|n| n.parse().ok());
    asked.unwrap_or(if is_long() { long } else { short })
}

/// Each point in its own place, some at once: they wait for the disk most of the time.
fn at_all_points(points: usize, point: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..if is_long() { 4 } else { 2 } {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::SeqCst);
                    if at >= points {
                        return;
                    }
                    point(at);
                }
            });
        }
    });
}

/// What a run gives that nobody disturbs, and how many lines it writes.
fn undisturbed() -> (Value, usize) {
    let mut case = Case::new("undisturbed".to_owned());
    let result = case.finish();
    assert_eq!((case.provider.count(), case.in_doubt), (REQUESTS, 0), "{EFFECTS} effects");
    (result, case.lines())
}

#[derive(Debug, Default)]
struct Figures {
    points: AtomicUsize,
    kills: AtomicUsize,
    in_doubt: AtomicUsize,
    extra: AtomicUsize,
}

impl Figures {
    fn add(&self, case: &Case) {
        self.points.fetch_add(1, Ordering::SeqCst);
        self.kills.fetch_add(case.kills, Ordering::SeqCst);
        self.in_doubt.fetch_add(case.in_doubt, Ordering::SeqCst);
        self.extra.fetch_add(case.provider.count() - REQUESTS, Ordering::SeqCst);
    }
}

/// How many takes are killed at a point: the first, and up to five that go on.
fn takes(dice: &mut fastrand::Rng) -> usize {
    if is_long() && dice.bool() { dice.usize(2..=6) } else { dice.usize(1..=2) }
}

#[test]
fn killed_at_any_moment_nothing_is_lost_or_done_twice() {
    let (result, lines) = undisturbed();
    let figures = Figures::default();
    at_all_points(points(3, 150), |point| {
        let mut dice = fastrand::Rng::with_seed(point as u64);
        let mut case = Case::new(format!("moment {point}"));
        for _ in 0..takes(&mut dice) {
            let running = case.claw().spawn();
            let rest = lines.saturating_sub(case.lines()).max(4);
            wait_for_line(&case, &running, case.lines() + dice.usize(1..=rest));
            let until = Instant::now() + std::time::Duration::from_millis(dice.u64(0..30));
            claw_kit::wait_until("a moment", BOUND, || Instant::now() >= until || !running.is_running());
            let ended = !running.is_running();
            running.kill9();
            if ended {
                break;
            }
            case.killed();
        }
        assert_eq!(case.finish(), result, "moment {point}");
        figures.add(&case);
    });
    eprintln!("killed at any moment: {figures:?}");
}

const CALLS: [(&str, usize); 8] = [
    ("fdatasync", 60),
    ("rename,renameat,renameat2", 25),
    ("write", 120),
    ("openat", 200),
    ("fsync", 20),
    ("close", 200),
    ("link,linkat,unlink,unlinkat", 20),
    ("mkdir,mkdirat", 20),
];

/// claw, which dies at the `when`th call of one kind in one of its threads. What it starts is left alone.
fn dying(sandbox: &Sandbox, call: &str, when: usize) -> Claw {
    // A call that is not traced is not injected either.
    let (trace, inject) = (format!("trace={call}"), format!("inject={call}:signal=KILL:when={when}"));
    let args = ["-f", "-b", "execve", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject, CLAW];
    Claw::new("strace", sandbox).args(args)
}

/// A take that dies at the `when`th call of one kind in one of its threads. Says whether it died.
fn dies_at(case: &Case, (call, when): (&str, usize)) -> bool {
    let output = dying(&case.sandbox, call, when).args(case.arguments()).run(BOUND);
    output.signal == Some(9) || output.code == Some(137)
}

#[test]
fn killed_at_exact_system_calls_nothing_is_lost_or_done_twice() {
    if run_program(Path::new("/"), "strace", &["-V"]).is_none() {
        return;
    }
    let (result, _) = undisturbed();
    let figures = Figures::default();
    at_all_points(points(3, 150), |point| {
        let mut dice = fastrand::Rng::with_seed(1_000 + point as u64);
        let mut case = Case::new(format!("call {point}"));
        let mut what = Vec::new();
        for take in 0..takes(&mut dice) {
            let (call, most) = CALLS[(point + take) % CALLS.len()];
            let when = dice.usize(1..=most);
            what.push((call, when));
            if !dies_at(&case, (call, when)) {
                break;
            }
            case.killed();
        }
        assert_eq!(case.finish(), result, "call {point}: {what:?}");
        figures.add(&case);
    });
    assert!(figures.kills.load(Ordering::SeqCst) > 0, "nothing was killed");
    eprintln!("killed at exact calls: {figures:?}");
}
