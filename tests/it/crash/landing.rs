//! A merge of branches that is killed while it goes into the workspace: all of it is there once, or nothing is.

use super::graph::{BOUND, CLAW};
use super::{at_all_points, dying, points};
use claw_kit::{Claw, Sandbox, run_program};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

const FILES: usize = 8;

fn workflow(apply: &str) -> String {
    format!(
        r#"
schema = 1
[workflow]
name = "landing"
[node.w]
kind = "command"
isolation = "worktree"
run = 'for n in 1 2 3 4; do echo "$CLAW_STEP" > "$CLAW_STEP-$n.txt"; mkdir -p "deep/$n"; echo new > "deep/$n/$CLAW_STEP.txt"; done; rm "gone-$CLAW_STEP.txt"; chmod +x "prog-$CLAW_STEP"; ln -s a.txt "link-$CLAW_STEP"'
each = {{ items = ["x", "y"], key = "{{{{ item }}}}" }}
[node.go]
kind = "command"
on_crash = "retry"
needs = ["w"]
run = ["test", "-e", "go"]
[node.land]
kind = "merge"
strategy = "git"
apply = "{apply}"
needs = ["w", "go"]
from = ["w"]
[node.after]
kind = "command"
on_crash = "retry"
needs = ["land"]
run = "echo after >> effects.txt; ls | wc -l"
"#
    )
}

fn house(apply: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitignore", ".claw/\n*.toml\neffects.txt\ngo\n");
    sandbox.write("a.txt", "as it was\n");
    for step in ["w=x", "w=y"] {
        for n in 1..=4 {
            sandbox.write(&format!("{step}-{n}.txt"), "as it was\n");
        }
        sandbox.write(&format!("gone-{step}.txt"), "as it was\n");
        sandbox.write(&format!("prog-{step}"), "as it was\n");
    }
    let sandbox = sandbox.with_git();
    sandbox.write("wf.toml", workflow(apply));
    sandbox
}

const RESUME: [&str; 4] = ["run", "wf.toml", "--resume", "--no-progress"];

/// All of the merge, once.
fn is_landed(sandbox: &Sandbox, apply: &str, what: &str) {
    let status = sandbox.git(&["status", "--porcelain", "--untracked-files=all"]);
    let commits = sandbox.git(&["rev-list", "--count", "--first-parent", "HEAD"]);
    match apply {
        "patch" => {
            assert_eq!(commits.trim(), "1", "{what}");
            assert_eq!(status.lines().count(), 2 * (FILES + 3), "{what}: {status}");
        }
        "squash" => assert_eq!((status.as_str(), commits.trim()), ("", "2"), "{what}"),
        // Two branches, two commits that merge them.
        _ => assert_eq!((status.as_str(), commits.trim()), ("", "3"), "{what}"),
    }
    for step in ["w=x", "w=y"] {
        for n in 1..=4 {
            assert_eq!(sandbox.read(&format!("{step}-{n}.txt")), format!("{step}\n"), "{what}");
            assert_eq!(sandbox.read(&format!("deep/{n}/{step}.txt")), "new\n", "{what}");
        }
        assert!(!sandbox.has(&format!("gone-{step}.txt")), "{what}");
        assert!(sandbox.project().join(format!("link-{step}")).is_symlink(), "{what}");
        let prog = sandbox.project().join(format!("prog-{step}"));
        let mode = std::os::unix::fs::MetadataExt::mode(&prog.metadata().unwrap());
        assert_eq!(mode & 0o100, 0o100, "{what}");
    }
    // A command that was in doubt may run again here.
    let begun = sandbox.newest_run().events("intent");
    let begun = begun.iter().filter(|record| record["step"] == "after").count();
    let effects = sandbox.read("effects.txt").lines().count();
    assert!((1..=begun).contains(&effects), "{what}: {effects} of {begun}");
    let strange = sandbox.git(&["ls-files", "--others", "--ignored", "--exclude-standard", "--directory"]);
    assert_eq!(strange, ".claw/\neffects.txt\ngo\nwf.toml\n", "{what}");
    let own = run_program(&sandbox.project(), "ls", &[".git"]).unwrap_or_default();
    assert!(!own.contains("lock") && !own.contains("claw") && !own.contains("index."), "{what}: {own}");
    let run = sandbox.newest_run();
    let good = run
        .events("ended")
        .into_iter()
        .filter(|record| record["step"] == "land" && record["data"]["state"] == "succeeded");
    assert_eq!(good.count(), 1, "{what}: it succeeds once");
    assert!(!run.path().join("landing").exists(), "{what}: something is left of the landing");
}

/// The first three are made by a landing alone.
const CALLS: [(&str, usize); 9] = [
    ("renameat", 20),
    ("fchmod", 16),
    ("linkat,symlinkat", 3),
    ("unlink,unlinkat", 24),
    ("rename,renameat,renameat2", 24),
    ("write", 60),
    ("fdatasync,fsync", 30),
    ("openat", 150),
    ("close", 150),
];

#[test]
fn a_merge_killed_while_it_lands_is_there_once_and_never_half() {
    if run_program(Path::new("/"), "strace", &["-V"]).is_none() {
        return;
    }
    let kills = AtomicUsize::new(0);
    let half = AtomicUsize::new(0);
    at_all_points(points(5, 100), |point| {
        let mut dice = fastrand::Rng::with_seed(2_000 + point as u64);
        let apply = ["squash", "patch", "merge"][point % 3];
        let sandbox = house(apply);
        Claw::new(CLAW, &sandbox).args(["run", "wf.toml", "--no-progress"]).run(BOUND).expect_code(1);
        sandbox.write("go", "");
        let mut what = format!("landing {point}, {apply}");
        for take in 0..dice.usize(1..=3) {
            let (call, most) = CALLS[(point + take) % CALLS.len()];
            let when = dice.usize(1..=most);
            what += &format!(", {call} {when}");
            let output = dying(&sandbox, call, when).args(RESUME).run(BOUND);
            if output.signal != Some(9) && output.code != Some(137) {
                assert_eq!(output.code, Some(0), "{what}: {output}");
                break;
            }
            kills.fetch_add(1, Ordering::SeqCst);
            let begun = sandbox.newest_run().path().join("landing/land.1/landing.json").exists();
            half.fetch_add(usize::from(begun), Ordering::SeqCst);
        }
        let output = Claw::new(CLAW, &sandbox).args(RESUME).run(BOUND);
        assert_eq!(output.code, Some(0), "{what}: {output}");
        is_landed(&sandbox, apply, &what);
    });
    eprintln!("landings: {kills:?} kills, {half:?} of them while it landed");
}
