//! The screen of a run: plain lines off a terminal, bars on one, and a terminal that is left as it was.

use claw_kit::{Claw, Gate, Key, Pty, Reply, Route, Sandbox, ScriptedProvider, Signal, Wire};
use serde_json::json;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

const THREE: &str = r#"
schema = 1
[workflow]
name = "three"
[node.look]
agent = "Explore"
label = "look {{ item }}"
prompt = "look at {{ item }}"
[node.look.each]
key = "{{ item }}"
items = ["alpha", "beta", "gamma"]
[node.sum]
kind = "merge"
needs = ["look"]
from = ["look.outputs"]
strategy = "concat"
"#;

fn house(provider: &ScriptedProvider) -> Sandbox {
    let sandbox = Sandbox::new().with_provider(provider, Wire::Anthropic);
    sandbox.write("wf.toml", THREE);
    sandbox
}

fn gated() -> (ScriptedProvider, Gate) {
    let gate = Gate::closed();
    (ScriptedProvider::always(Reply::text("seen").gate(&gate)), gate)
}

#[test]
fn off_a_terminal_each_start_and_end_is_one_plain_line() {
    let provider = ScriptedProvider::always(Reply::text("seen"));
    let sandbox = house(&provider);
    for variables in [&[][..], &[("TERM", "dumb")], &[("NO_COLOR", "1")], &[("COLUMNS", "0")], &[("CI", "1")]]
    {
        let mut claw = Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]);
        for (name, value) in variables {
            claw = claw.env(name, value);
        }
        let output = claw.run(BOUND).expect_code(0);
        assert_eq!(output.stdout, "seen\n\nseen\n\nseen\n", "{variables:?}");
        assert!(!output.stderr.contains(['\u{1b}', '\r']), "{output}");
        for step in ["look=alpha", "look=beta", "look=gamma"] {
            assert_eq!(output.stderr.matches(&format!("{step}: started")).count(), 1, "{output}");
            assert_eq!(output.stderr.matches(&format!("{step}: succeeded")).count(), 1, "{output}");
        }
        assert_eq!(output.stderr.matches("started: three").count(), 1, "{output}");
    }
}

#[test]
fn a_terminal_without_room_or_skill_gets_plain_lines_and_the_same_result() {
    let provider = ScriptedProvider::always(Reply::text("seen"));
    let sandbox = house(&provider);
    for (rows, columns, term, flag) in
        [(24, 100, "dumb", "--yes"), (2, 5, "xterm", "--yes"), (24, 100, "xterm", "--no-progress")]
    {
        let pty =
            Pty::new(CLAW, &sandbox).args(["run", "wf.toml", flag]).env("TERM", term).size(rows, columns);
        let output = pty.start().wait(BOUND);
        assert_eq!(output.code, 0, "{}", output.raw);
        assert!(!output.raw.contains('\u{1b}'), "{term} {rows}×{columns}: {:?}", output.raw);
        assert!(output.raw.contains("look=beta: succeeded"), "{}", output.raw);
    }
}

#[test]
fn bars_show_who_works_and_finished_agents_scroll_up() {
    let (provider, gate) = gated();
    let sandbox = house(&provider);
    let terminal = Pty::new(CLAW, &sandbox).args(["run", "wf.toml"]).start();
    provider.wait_for_in_flight(3, BOUND);
    let screen = terminal.wait_for_screen("three agents at work", BOUND, |screen| {
        ["look alpha", "look beta", "look gamma", "3 running", "0/3"].iter().all(|text| screen.contains(text))
    });
    assert!(screen.lines.iter().any(|line| line.starts_with("three ")), "{}", screen.text());
    gate.let_pass(1);
    terminal.wait_for_screen("one that is done", BOUND, |screen| {
        screen.lines.iter().any(|line| line.starts_with("✓ look")) && screen.contains("1/3")
    });
    gate.open();
    let output = terminal.wait(BOUND);
    assert_eq!(output.code, 0, "{}", output.raw);
    let text = output.screen.text();
    assert!(text.contains("three succeeded") && !text.contains("⠋"), "{text}");
    assert!(output.cooked && !output.screen.cursor_hidden && !output.screen.alternate);
}

#[test]
fn a_narrow_terminal_and_a_resize_keep_the_bars_right() {
    let (provider, gate) = gated();
    let sandbox = house(&provider);
    let terminal = Pty::new(CLAW, &sandbox).args(["run", "wf.toml"]).size(10, 40).start();
    terminal.wait_for_screen("three agents", BOUND, |screen| {
        screen.lines.iter().filter(|line| line.contains("look ")).count() >= 3
    });
    terminal.resize(20, 100);
    let screen = terminal.wait_for_screen("a wide header", BOUND, |screen| screen.contains("0/3 steps"));
    assert_eq!(
        screen.lines.iter().filter(|line| line.contains("look alpha")).count(),
        1,
        "{}",
        screen.text()
    );
    gate.open();
    assert_eq!(terminal.wait(BOUND).code, 0);
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was_and_tells_how_to_go_on() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let (provider, gate) = gated();
        let sandbox = house(&provider);
        let terminal = Pty::new(CLAW, &sandbox).args(["run", "wf.toml"]).start();
        terminal.wait_for_text("3 running", BOUND);
        terminal.signal(signal);
        let output = terminal.wait(BOUND);
        assert_eq!((output.code, output.signal.as_deref()), (code, None), "{}", output.raw);
        assert!(output.cooked && !output.screen.cursor_hidden && !output.screen.alternate);
        assert!(output.raw.contains("resume: claw run wf.toml --resume="), "{}", output.raw);
        let statuses = sandbox.newest_run().statuses();
        assert!(statuses.values().all(|status| status == "cancelled"), "{statuses:?}");
        gate.open();
        let again = Claw::new(CLAW, &sandbox).args(["run", "wf.toml", "--resume"]).run(BOUND).expect_code(0);
        assert_eq!(again.stdout, "seen\n\nseen\n\nseen\n");
    }
}

#[test]
fn ctrl_c_twice_ends_it_at_once() {
    let gate = Gate::closed();
    let provider = ScriptedProvider::new([
        Route::reply(Reply::tool("t1", "bash", json!({"command": "trap '' TERM; sleep 30"}))).times(1),
        Route::reply(Reply::text("never").gate(&gate)),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("wf.toml", "schema = 1\n[workflow]\nname = \"one\"\n[node.a]\nprompt = \"sleep\"\n");
    let mut terminal = Pty::new(CLAW, &sandbox).args(["run", "wf.toml"]).start();
    terminal.wait_for_text("bash trap", BOUND);
    terminal.press(Key::Ctrl('c'));
    terminal.wait_for_text("stopping", BOUND);
    terminal.press(Key::Ctrl('c'));
    let output = terminal.wait(Duration::from_secs(2));
    assert_eq!(output.code, 130, "{}", output.raw);
    assert!(output.cooked && !output.screen.cursor_hidden);
    gate.open();
}

#[test]
fn a_person_is_asked_on_the_terminal_and_the_default_is_no() {
    for (key, made) in [("y\r", true), ("\r", false)] {
        let provider = ScriptedProvider::new([
            Route::reply(Reply::tool("t1", "bash", json!({"command": "touch made"}))).times(1),
            Route::reply(Reply::text("done")),
        ]);
        let sandbox = Sandbox::anthropic(&provider);
        sandbox.write("wf.toml", "schema = 1\n[workflow]\nname = \"one\"\n[node.a]\nprompt = \"make it\"\n");
        let mut terminal =
            Pty::new(CLAW, &sandbox).args(["run", "wf.toml", "--permission-mode", "prompt"]).start();
        let screen = terminal.wait_for_text("[y] once", BOUND);
        assert!(screen.contains("touch made"), "{}", screen.text());
        terminal.send(key);
        let output = terminal.wait(BOUND);
        assert_eq!(output.code, 0, "{}", output.raw);
        assert_eq!(sandbox.has("made"), made, "{}", output.raw);
    }
}
