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
        // No line of a bar is left above what the end tells.
        assert!(
            !output.screen.contains("running") && !output.screen.contains("turn 1"),
            "{}",
            output.screen.text()
        );
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

/// Thirty agents, of which as many run as may.
fn thirty(sandbox: &Sandbox, concurrency: usize) {
    sandbox.write(
        "wf.toml",
        format!(
            "schema = 1\n[workflow]\nname = \"thirty\"\n[limits]\nconcurrency = {concurrency}\n[node.look]\nagent = \"Explore\"\nlabel = \"look at 漢字 {{{{ item }}}} with a rather long label that does not fit\"\nprompt = \"{{{{ item }}}}\"\neach = {{ range = 30, key = \"{{{{ item }}}}\" }}\n"
        ),
    );
}

#[test]
fn more_agents_than_rows_are_counted_and_no_line_is_too_wide() {
    for (rows, columns) in [(24, 80), (12, 40)] {
        let (provider, gate) = gated();
        let sandbox = Sandbox::new().with_provider(&provider, Wire::Anthropic);
        thirty(&sandbox, 30);
        let terminal = Pty::new(CLAW, &sandbox).args(["run", "wf.toml", "--yes"]).size(rows, columns).start();
        provider.wait_for_in_flight(30, BOUND);
        let screen = terminal.wait_for_screen("all that do not fit", BOUND, |screen| {
            screen.contains("more") && screen.contains("0/30")
        });
        assert!(screen.lines.len() <= usize::from(rows), "{}", screen.text());
        assert!(screen.lines.iter().any(|line| line.starts_with("thirty")), "{}", screen.text());
        let agents = screen.lines.iter().filter(|line| line.contains("look at 漢")).count();
        let more = screen
            .lines
            .iter()
            .find_map(|line| line.split_once("+ ")?.1.split(' ').next()?.parse::<usize>().ok());
        assert_eq!(more.map(|more| more + agents), Some(30), "{}", screen.text());
        gate.open();
        let output = terminal.wait(BOUND);
        assert_eq!(output.code, 0, "{}", output.raw);
        let text = output.screen.text();
        assert!(
            !text.contains("more agents") && !text.contains('⠋') && !output.screen.cursor_hidden,
            "{text}"
        );
    }
}

#[test]
fn a_terminal_without_size_is_no_trouble() {
    let provider = ScriptedProvider::always(Reply::text("seen"));
    let sandbox = house(&provider);
    let output = Pty::new(CLAW, &sandbox).args(["run", "wf.toml"]).size(0, 0).start().wait(BOUND);
    assert_eq!(output.code, 0, "{}", output.raw);
    assert!(output.raw.contains("seen\r\n\r\nseen") && !output.raw.contains("panicked"), "{}", output.raw);
}

#[test]
fn with_standard_error_closed_the_result_is_the_same() {
    let provider = ScriptedProvider::always(Reply::text("seen"));
    let sandbox = house(&provider);
    for (redirect, expected) in
        [("2>&-", "seen\n\nseen\n\nseen\n"), ("2>/dev/full", "seen\n\nseen\n\nseen\n")]
    {
        let script = format!("exec {CLAW} run wf.toml {redirect}");
        let output = Claw::new("/bin/sh", &sandbox).args(["-c", &script]).run(BOUND).expect_code(0);
        assert_eq!(output.stdout, expected, "{redirect}");
    }
    // No file of the run took the number of the closed one.
    let log = sandbox.newest_run().read("journal.jsonl");
    assert!(log.lines().all(|line| line.starts_with('{')), "{log}");
}

#[test]
fn a_closed_standard_output_is_an_error_and_no_panic() {
    let provider = ScriptedProvider::always(Reply::text("seen"));
    let sandbox = house(&provider);
    for (redirect, code) in [(">&-", 74), (">/dev/full", 74)] {
        let script = format!("exec {CLAW} run wf.toml {redirect}");
        let output = Claw::new("/bin/sh", &sandbox).args(["-c", &script]).run(BOUND).expect_code(code);
        assert!(!output.stderr.contains("panicked"), "{output}");
    }
}

#[test]
fn bars_go_to_the_terminal_and_the_result_to_the_file() {
    let provider = ScriptedProvider::always(Reply::text("seen"));
    let sandbox = house(&provider);
    let script = format!("{CLAW} run wf.toml > out.txt");
    let output = Pty::new("/bin/sh", &sandbox).args(["-c", &script]).start().wait(BOUND);
    assert_eq!(output.code, 0, "{}", output.raw);
    assert_eq!(sandbox.read("out.txt"), "seen\n\nseen\n\nseen\n");
    assert!(output.raw.contains('\u{1b}') && output.cooked && !output.screen.cursor_hidden, "{}", output.raw);
}

#[test]
fn when_the_reader_goes_away_the_agents_that_wait_are_not_started() {
    let provider = ScriptedProvider::always(Reply::text("seen").delay(Duration::from_millis(60)));
    for command in
        ["run wf.toml --output-format stream-json 2>/dev/null | head -n 1", "run wf.toml 2>&1 | head -n 1"]
    {
        let sandbox = Sandbox::new().with_provider(&provider, Wire::Anthropic);
        thirty(&sandbox, 2);
        let asked = provider.count();
        let script = format!("{CLAW} {command}; echo code ${{PIPESTATUS[0]}}");
        let output = Claw::new("/bin/bash", &sandbox).args(["-c", &script]).run(BOUND);
        assert!(
            output.stdout.contains("code 141") || output.stdout.contains("code 0"),
            "{command}: {output}"
        );
        assert!(provider.count() - asked < 30, "{command}: all of it ran for nobody");
        let statuses = sandbox.newest_run().statuses();
        let open: Vec<_> = statuses.iter().filter(|(_, status)| *status == "running").collect();
        assert!(open.is_empty() && !output.left_behind, "{command}: {open:?}");
        provider.wait_for_idle(BOUND);
    }
}

#[test]
fn a_bar_says_for_what_it_waits() {
    let body = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}});
    let provider = ScriptedProvider::new([
        Route::reply(Reply::error(429, &body).header("retry-after", "2")).times(1),
        Route::reply(Reply::text("seen")),
    ]);
    let sandbox = Sandbox::new().with_provider(&provider, Wire::Anthropic);
    sandbox.write("wf.toml", "schema = 1\n[workflow]\nname = \"one\"\n[node.a]\nprompt = \"x\"\n");
    let terminal = Pty::new(CLAW, &sandbox).args(["run", "wf.toml"]).start();
    // The line of the agent itself, with the seconds that are left.
    terminal.wait_for_screen("what the agent waits for", BOUND, |screen| {
        let waits = |line: &String| line.contains("rate limited") && !line.starts_with("a:");
        screen.lines.iter().any(|line| waits(line) && (line.contains("1s") || line.contains("2s")))
    });
    assert_eq!(terminal.wait(BOUND).code, 0);
}

#[test]
fn a_signal_while_a_person_is_asked_leaves_the_terminal_as_it_was() {
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let provider = ScriptedProvider::new([
            Route::reply(Reply::tool("t1", "bash", json!({"command": "touch made"}))).times(1),
            Route::reply(Reply::text("done")),
        ]);
        let sandbox = Sandbox::new().with_provider(&provider, Wire::Anthropic);
        sandbox.write("wf.toml", "schema = 1\n[workflow]\nname = \"one\"\n[node.a]\nprompt = \"make it\"\n");
        let terminal =
            Pty::new(CLAW, &sandbox).args(["run", "wf.toml", "--permission-mode", "prompt"]).start();
        terminal.wait_for_text("[y] once", BOUND);
        terminal.signal(signal);
        let output = terminal.wait(Duration::from_secs(5));
        assert_eq!(
            (output.code, output.cooked, output.screen.cursor_hidden),
            (code, true, false),
            "{}",
            output.raw
        );
        assert!(!sandbox.has("made"));
    }
}
