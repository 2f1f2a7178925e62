//! The run that is killed: fifty agents in all kinds of nodes, commands with effects, writers in folders of their own, a
//! merge of their branches. What it did is told by the provider and by a file outside of claw.

use claw_kit::{
    Claw, Output, Reply, Request, RunFolder, Sandbox, ScriptedProvider, replace_file, run_program,
};
use claw_kit::{Route, wait_until};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

pub const CLAW: &str = env!("CARGO_BIN_EXE_claw");
pub const BOUND: Duration = Duration::from_secs(90);
/// Steps that ask a model at once.
pub const CONCURRENCY: usize = 6;
/// Requests of a run that nobody disturbs.
pub const REQUESTS: usize = 20 + 1 + 12 + 6 + 4 + 8 + 1;
/// Commands that leave a line outside: their steps.
pub const EFFECTS: usize = 6 + 3 + 2 + 1;
const WRITERS: [&str; 6] = ["w=0", "w=1", "w=2", "w=3", "v=x", "v=y"];

const GRAPH: &str = r#"
schema = 1
[workflow]
name = "crash"
result = "{'team': team.outputs, 'fix': fix, 'parts': parts.outputs, 'last': last, 'applied': land.applied}"
[limits]
concurrency = 6
commands = 3
[node.look]
agent = "Explore"
prompt = "ASK look={{ item }}."
each = { range = 20, key = "{{ item }}" }
[node.plan]
agent = "Plan"
needs = ["look"]
prompt = "ASK plan. {{ look.outputs | bullets }}"
[node.team]
kind = "group"
each = { range = 6, key = "{{ item }}" }
[node.team.body.first]
agent = "Explore"
prompt = "ASK team={{ item }}/first."
[node.team.body.act]
kind = "command"
on_crash = "ask"
needs = ["first"]
run = 'echo "$CLAW_STEP_ID $CLAW_STEP" >> effects.txt; echo effect'
[node.team.body.last]
agent = "Explore"
needs = ["act", "first"]
prompt = "ASK team={{ item }}/last. {{ first }} {{ act }}"
[node.fix]
kind = "group"
[node.fix.loop]
max = 4
until = "check.verdict == 'pass'"
carry = { left = "check.left" }
[node.fix.body.edit]
agent = "Explore"
prompt = "ASK fix@{{ loop.index }}/edit. {{ loop.left | default('all') }}"
[node.fix.body.act]
kind = "command"
on_crash = "ask"
needs = ["edit"]
run = 'echo "$CLAW_STEP_ID $CLAW_STEP" >> effects.txt; echo effect'
[node.fix.body.check]
agent = "Explore"
needs = ["edit", "act"]
output = { type = "object", required = ["verdict", "left"], properties = { verdict = { enum = ["pass", "fail"] }, left = { type = "integer" } } }
prompt = "ASK fix@{{ loop.index }}/check. {{ edit }}"
[node.parts]
kind = "workflow"
file = "inner.toml"
with = { what = "item" }
each = { items = ["a", "b"], key = "{{ item }}" }
[node.w]
isolation = "worktree"
prompt = "ASK w={{ item }}."
each = { range = 4, key = "{{ item }}" }
[node.v]
kind = "command"
on_crash = "ask"
isolation = "worktree"
run = 'echo "$CLAW_STEP" > "new-$CLAW_STEP.txt"; echo "$CLAW_STEP" > "old-$CLAW_STEP.txt"; rm "gone-$CLAW_STEP.txt"; echo made'
each = { items = ["x", "y"], key = "{{ item }}" }
[node.land]
kind = "merge"
strategy = "git"
apply = "squash"
needs = ["w", "v"]
from = ["w", "v"]
verify = ["test", "-e", "a.txt"]
[node.landed]
kind = "command"
on_crash = "ask"
needs = ["land"]
run = 'echo "$CLAW_STEP_ID $CLAW_STEP" >> effects.txt; git rev-list --count HEAD'
[node.last]
agent = "Explore"
needs = ["plan", "landed", "team", "fix", "parts"]
prompt = "ASK last. {{ plan }} {{ landed }} {{ fix.check.verdict }}"
"#;

const INNER: &str = r#"
schema = 1
[workflow]
name = "inner"
result = "two"
[inputs.what]
type = "string"
[node.one]
agent = "Explore"
prompt = "ASK parts={{ inputs.what }}/one."
[node.act]
kind = "command"
on_crash = "ask"
needs = ["one"]
run = 'echo "$CLAW_STEP_ID $CLAW_STEP" >> effects.txt; echo effect'
[node.two]
agent = "Explore"
needs = ["one", "act"]
prompt = "ASK parts={{ inputs.what }}/two. {{ one }}"
"#;

/// The step that asks.
pub fn asked(request: &Request) -> String {
    let text = request.text.split("ASK ").nth(1).unwrap_or_default();
    text.split('.').next().unwrap_or_default().to_owned()
}

fn answer(request: &Request) -> Reply {
    let step = asked(request);
    if let Some(round) = step.strip_prefix("fix@").and_then(|rest| rest.strip_suffix("/check")) {
        let left = 3 - round.parse::<i64>().unwrap();
        let verdict = if left == 0 { "pass" } else { "fail" };
        return Reply::tool("t", "structured_output", json!({ "verdict": verdict, "left": left }));
    }
    let last = request.messages().last().map(Value::to_string).unwrap_or_default();
    // What was interrupted is written once more, as a careful model would.
    if step.starts_with("w=") && (last.contains("interrupted") || !last.contains("tool_result")) {
        let file =
            |kind: &str| json!({ "path": format!("{kind}-{step}.txt"), "content": format!("{step}\n") });
        return Reply::tool("t1", "write_file", file("new")).with_tool("t2", "write_file", file("made/new"));
    }
    Reply::text(format!("answer of {step}"))
}

/// The last line that one process appended may be half there.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)]
}

/// What is known at one moment. A later moment may only have more of it.
#[derive(Debug, Default)]
struct Moment {
    journal: Vec<u8>,
    /// Steps that a record calls done or succeeded.
    done: BTreeSet<String>,
    effects: BTreeMap<String, usize>,
    requests: BTreeMap<String, usize>,
}

/// One run in a place of its own.
#[derive(Debug)]
pub struct Case {
    pub provider: ScriptedProvider,
    pub sandbox: Sandbox,
    what: String,
    known: Moment,
    /// Requests that a kill may have cost at most.
    lost: usize,
    pub kills: usize,
    pub in_doubt: usize,
}

impl Case {
    pub fn new(what: String) -> Self {
        let provider = ScriptedProvider::new([Route::answer(answer)]);
        let sandbox = Sandbox::anthropic(&provider);
        sandbox.write(".gitignore", ".claw/\n*.toml\neffects.txt\n");
        for name in ["a", "old-v=x", "old-v=y", "gone-v=x", "gone-v=y"] {
            sandbox.write(&format!("{name}.txt"), "as it was\n");
        }
        let sandbox = sandbox.with_git();
        sandbox.write("wf.toml", GRAPH);
        sandbox.write("inner.toml", INNER);
        let known = Moment::default();
        Self { provider, sandbox, what, known, lost: 0, kills: 0, in_doubt: 0 }
    }

    fn run(&self) -> Option<RunFolder> {
        self.sandbox.runs().pop()
    }

    /// What makes the next take: a run without a journal never began.
    pub fn arguments(&self) -> Vec<&'static str> {
        let begun = self.run().is_some_and(|run| !whole_lines(&journal(&run)).is_empty());
        let resume: &[&str] = if begun { &["--resume"] } else { &[] };
        [&["run", "wf.toml", "--no-progress"], resume].concat()
    }

    pub fn claw(&self) -> Claw {
        Claw::new(CLAW, &self.sandbox).args(self.arguments())
    }

    pub fn lines(&self) -> usize {
        let text = self.run().map(|run| journal(&run)).unwrap_or_default();
        text.iter().filter(|byte| **byte == b'\n').count()
    }

    /// Commands of which nobody knows whether they took effect.
    fn doubts(&self) -> BTreeSet<String> {
        let mut open = BTreeSet::new();
        for record in self.run().map(|run| run.journal()).unwrap_or_default() {
            let Some(step) = record["step"].as_str().filter(|step| is_command(step)) else { continue };
            match record["event"].as_str() {
                Some("intent") => open.insert(step.to_owned()),
                Some("done" | "ended") => open.remove(step),
                _ => false,
            };
        }
        open
    }

    /// Its process was killed: nothing that was known is lost, nothing that was done is done again.
    pub fn killed(&mut self) {
        self.kills += 1;
        self.provider.wait_for_idle(BOUND);
        self.compare();
        self.lost += self.in_flight();
        self.work_is_kept();
    }

    /// Agents that the last take admitted and that have no end on record.
    fn in_flight(&self) -> usize {
        let mut open = BTreeSet::new();
        for record in self.run().map(|run| run.journal()).unwrap_or_default() {
            if record["event"] == "take" {
                open.clear();
            }
            let Some(step) = record["step"].as_str() else { continue };
            match record["event"].as_str() {
                Some("admitted") if !is_command(step) && step != "land" => open.insert(step.to_owned()),
                Some("ended") => open.remove(step),
                _ => false,
            };
        }
        assert!(open.len() <= CONCURRENCY, "{}: {open:?} are open", self.what);
        // A writer that was interrupted writes again: one request more.
        open.len() + open.iter().filter(|step| step.starts_with("w=")).count()
    }

    fn moment(&self) -> Moment {
        // First the effects, then the records of them.
        let effects = effects(&self.sandbox);
        let mut requests = BTreeMap::new();
        for request in self.provider.requests() {
            *requests.entry(asked(&request)).or_default() += 1;
        }
        let Some(run) = self.run() else { return Moment { requests, effects, ..Moment::default() } };
        let done = run.journal().into_iter().filter(is_done);
        let done = done.filter_map(|record| record["step"].as_str().map(str::to_owned)).collect();
        Moment { journal: whole_lines(&journal(&run)).to_vec(), done, effects, requests }
    }

    fn compare(&mut self) {
        let (what, now) = (&self.what, self.moment());
        assert!(now.journal.starts_with(&self.known.journal), "{what}: records were lost");
        assert!(now.done.is_superset(&self.known.done), "{what}: what was done is forgotten");
        for step in &self.known.done {
            assert_eq!(now.effects.get(step), self.known.effects.get(step), "{what}: {step} ran again");
            assert_eq!(now.requests.get(step), self.known.requests.get(step), "{what}: {step} asked again");
        }
        let mut intents: BTreeMap<String, usize> = BTreeMap::new();
        let run = self.run();
        for record in run.map(|run| run.events("intent")).unwrap_or_default() {
            *intents.entry(record["step"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        for (step, times) in &now.effects {
            let announced = intents.get(step).copied().unwrap_or(0);
            assert!(*times <= announced, "{what}: {step} took effect {times} times, announced {announced}");
        }
        self.known = now;
    }

    /// What a writer finished is on its branch, or in the workspace.
    fn work_is_kept(&self) {
        let Some(run) = self.run() else { return };
        let is_landed = self.sandbox.git(&["rev-list", "--count", "HEAD"]).trim() == "2";
        for record in run.events("ended") {
            let step = record["step"].as_str().unwrap_or_default();
            if is_landed || record["data"]["state"] != "succeeded" || !WRITERS.contains(&step) {
                continue;
            }
            let at = format!("refs/heads/claw/{}/{step}.{}:new-{step}.txt", run.id(), record["attempt"]);
            let text = run_program(&self.sandbox.project(), "git", &["cat-file", "-p", &at]);
            assert_eq!(text, Some(format!("{step}\n")), "{}: {at} is lost", self.what);
        }
    }

    /// Goes on to the end. What is in doubt is named, left alone, and run again only when a person says so.
    pub fn finish(&mut self) -> Value {
        let doubts = self.doubts();
        let intents = |case: &Self| case.run().map_or(0, |run| count_of(&run, "intent", &doubts));
        let before = intents(self);
        let mut output = self.claw().run(BOUND);
        self.compare();
        if !doubts.is_empty() {
            output = self.as_expected(output, 4);
            for step in &doubts {
                let named = output.stderr.contains(step.as_str());
                assert!(named, "{}: {step} is in doubt and not named: {output}", self.what);
            }
            assert_eq!(intents(self), before, "{}: a step in doubt ran again in silence", self.what);
            self.in_doubt += doubts.len();
            self.landed();
            for (name, text) in [("wf.toml", GRAPH), ("inner.toml", INNER)] {
                let text = text.replace("on_crash = \"ask\"", "on_crash = \"retry\"");
                replace_file(self.sandbox.project().join(name), text);
            }
            output = self.claw().run(BOUND);
            self.compare();
        }
        let output = self.as_expected(output, 0);
        self.is_whole();
        output.json()
    }

    fn as_expected(&self, output: Output, code: i32) -> Output {
        if output.code == Some(code) && !output.stderr.contains("panicked") {
            return output;
        }
        let run = self.run().map(|run| String::from_utf8_lossy(&journal(&run)).into_owned());
        panic!("{}: expected exit {code}: {output}\n{}", self.what, run.unwrap_or_default());
    }

    /// Whether the merge is in the workspace: all of it or nothing.
    fn landed(&self) -> bool {
        let (what, sandbox) = (&self.what, &self.sandbox);
        let status = sandbox.git(&["status", "--porcelain", "--untracked-files=all"]);
        assert_eq!(status, "", "{what}: the workspace is not what HEAD says");
        let commits = sandbox.git(&["rev-list", "--count", "HEAD"]);
        let is_landed = commits.trim() == "2";
        assert!(is_landed || commits.trim() == "1", "{what}: merged {commits} times");
        for step in WRITERS {
            assert_eq!(sandbox.has(&format!("new-{step}.txt")), is_landed, "{what}: {step} is half there");
        }
        for step in ["v=x", "v=y"] {
            let old = sandbox.read(&format!("old-{step}.txt"));
            assert_eq!(old == format!("{step}\n"), is_landed, "{what}: {step} is half there");
            assert_eq!(sandbox.has(&format!("gone-{step}.txt")), !is_landed, "{what}: {step}");
        }
        is_landed
    }

    /// At the end.
    fn is_whole(&self) {
        let what = &self.what;
        assert!(self.landed(), "{what}: the merge is not there");
        assert_eq!(effects(&self.sandbox).len(), EFFECTS, "{what}");
        let extra = self.provider.count() - REQUESTS;
        assert!(extra <= self.lost, "{what}: {extra} requests more, {} were in flight", self.lost);
        let run = self.sandbox.newest_run();
        for (step, status) in run.statuses() {
            assert!(
                ["completed", "failed", "cancelled", "interrupted"].contains(&status.as_str()),
                "{what}: {step} is {status}"
            );
        }
        unreadable(run.path(), what);
        let files = self.sandbox.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
        assert_eq!(files.lines().count(), 2 + 2 + 6 + 4, "{what}: {files}");
        let worktrees = self.sandbox.git(&["worktree", "list"]);
        assert_eq!(worktrees.lines().count(), 1, "{what}: {worktrees}");
        let own = run_program(&self.sandbox.project(), "ls", &[".git"]).unwrap_or_default();
        assert!(!own.contains("lock") && !own.contains("claw"), "{what}: {own}");
        Claw::new(CLAW, &self.sandbox).args(["runs", "show", "latest"]).run(BOUND).expect_code(0);
    }
}

/// Every file of a run that is JSON.
fn unreadable(folder: &std::path::Path, what: &str) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            unreadable(&path, what);
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let parts: Vec<&str> = match name.rsplit_once('.').map_or("", |(_, end)| end) {
            "json" => vec![&text],
            "jsonl" => text.split_inclusive('\n').filter(|line| line.ends_with('\n')).collect(),
            _ => Vec::new(),
        };
        for part in parts {
            let value = serde_json::from_str::<Value>(part);
            assert!(value.is_ok(), "{what}: {} cannot be read: {part}", path.display());
        }
    }
}

fn journal(run: &RunFolder) -> Vec<u8> {
    std::fs::read(run.path().join("journal.jsonl")).unwrap_or_default()
}

fn is_command(step: &str) -> bool {
    step.ends_with("/act") || step.starts_with("v=") || step == "landed"
}

fn is_done(record: &Value) -> bool {
    match record["event"].as_str() {
        Some("done") => record["data"]["call"].is_null(),
        Some("ended") => record["data"]["state"] == "succeeded",
        _ => false,
    }
}

fn count_of(run: &RunFolder, event: &str, steps: &BTreeSet<String>) -> usize {
    let of = |record: &Value| record["step"].as_str().is_some_and(|step| steps.contains(step));
    run.events(event).into_iter().filter(of).count()
}

/// How often each command ran, as the file outside tells: its step; its key is always the same.
fn effects(sandbox: &Sandbox) -> BTreeMap<String, usize> {
    let mut keys: BTreeMap<String, String> = BTreeMap::new();
    let mut counts = BTreeMap::new();
    let text = std::fs::read_to_string(sandbox.project().join("effects.txt")).unwrap_or_default();
    for line in text.lines() {
        let (key, step) = line.split_once(' ').expect("a key and a step");
        let first = keys.entry(step.to_owned()).or_insert_with(|| key.to_owned());
        assert_eq!(first, key, "{step} has another key");
        *counts.entry(step.to_owned()).or_default() += 1;
    }
    counts
}

/// Waits for a line of the journal, or the end.
pub fn wait_for_line(case: &Case, running: &claw_kit::Running, line: usize) {
    wait_until("a line of the journal", BOUND, || case.lines() >= line || !running.is_running());
}
