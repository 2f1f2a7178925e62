//! The keys under the bars: stop, pause, detach, an agent's output, a word to it; the terminal is always given back.

use claw_kit::{
    Claw, Gate, Key, Pty, Reply, Route, Sandbox, ScriptedProvider, Signal, Terminal, Wire, wait_until,
};
use serde_json::json;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(30);
/// Rows and columns.
const SIZES: [(u16, u16); 2] = [(24, 80), (12, 40)];

const TWO_AND_SUM: &str = r#"
schema = 1
[workflow]
name = "pair"
result = "sum"
[node.left]
agent = "Explore"
prompt = "LEFT"
[node.right]
agent = "Explore"
prompt = "RIGHT"
[node.sum]
prompt = "SUM"
needs = ["left", "right"]
"#;

/// Two agents whose answers are held back behind their first words.
fn held() -> (ScriptedProvider, Gate, Sandbox) {
    let gate = Gate::closed();
    let held = |text: &str| Reply::text(text.repeat(40)).in_pieces(40).gate_at(2500, &gate);
    let provider = ScriptedProvider::new([
        Route::reply(held("left words ")).contains("LEFT").times(1),
        Route::reply(held("right words ")).contains("RIGHT").times(1),
        Route::reply(Reply::text("the sum")).contains("SUM"),
        Route::reply(Reply::text("heard")),
    ]);
    let sandbox = Sandbox::new().with_provider(&provider, Wire::Anthropic);
    sandbox.write("wf.toml", TWO_AND_SUM);
    (provider, gate, sandbox)
}

fn started(sandbox: &Sandbox, args: &[&str], (rows, columns): (u16, u16)) -> Terminal {
    let terminal = Pty::new(CLAW, sandbox).args(args).size(rows, columns).start();
    terminal.wait_for_screen("two agents and the keys", BOUND, |screen| {
        screen.contains("2 running") && screen.contains("q stop")
    });
    terminal
}

#[test]
fn q_asks_and_only_a_yes_stops_the_run() {
    for size in SIZES {
        let (_provider, _gate, sandbox) = held();
        let mut terminal = started(&sandbox, &["run", "wf.toml"], size);
        assert!(!terminal.is_cooked(), "keys are read one by one");
        terminal.send("q");
        terminal.wait_for_text("[y/N]", BOUND);
        terminal.send("n");
        terminal.wait_for_text("q stop", BOUND);
        terminal.send("q");
        terminal.wait_for_text("[y/N]", BOUND);
        terminal.send("y");
        let output = terminal.wait(BOUND);
        assert_eq!(output.code, 130, "{}", output.raw);
        assert!(output.cooked && !output.screen.cursor_hidden, "{}", output.raw);
        let statuses = sandbox.newest_run().statuses();
        assert!(statuses.values().all(|status| status == "cancelled"), "{statuses:?}");
    }
}

#[test]
fn p_pauses_and_resume_goes_on() {
    for size in SIZES {
        let (provider, gate, sandbox) = held();
        let mut terminal = started(&sandbox, &["run", "wf.toml"], size);
        terminal.send("p");
        let output = terminal.wait(BOUND);
        assert_eq!((output.code, output.cooked), (4, true), "{}", output.raw);
        assert_eq!(sandbox.newest_run().events("paused").len(), 1);
        assert_eq!(provider.requests_with("SUM").len(), 0);
        gate.open();
        let again = Claw::new(CLAW, &sandbox).args(["run", "wf.toml", "--resume"]).run(BOUND).expect_code(0);
        assert_eq!(again.stdout, "the sum\n");
        assert_eq!(provider.requests_with("SUM").len(), 1);
    }
}

const FIRST_THEN_TWO: &str = r#"
schema = 1
[workflow]
name = "three"
result = "sum"
[node.first]
agent = "Explore"
prompt = "FIRST"
[node.mark]
kind = "command"
needs = ["first"]
run = ["sh", "-c", "echo once >> marks"]
[node.left]
agent = "Explore"
needs = ["first"]
after = ["mark"]
prompt = "LEFT"
[node.right]
agent = "Explore"
needs = ["first"]
after = ["mark"]
prompt = "RIGHT"
[node.sum]
prompt = "SUM"
needs = ["left", "right"]
"#;

#[test]
fn d_hands_the_run_over_to_the_background_and_what_is_done_is_not_done_again() {
    for size in SIZES {
        let (provider, gate, sandbox) = held();
        sandbox.write("wf.toml", FIRST_THEN_TWO);
        let mut terminal =
            started(&sandbox, &["run", "wf.toml", "--permission-mode", "workspace-write"], size);
        terminal.send("d");
        let output = terminal.wait(BOUND);
        assert_eq!((output.code, output.cooked), (0, true), "{}", output.raw);
        assert!(output.raw.contains("goes on in the background"), "{}", output.raw);
        gate.open();
        wait_until("the end", BOUND, || sandbox.newest_run().events("run_ended").len() == 2);
        let ends = sandbox.newest_run().events("run_ended");
        assert_eq!(ends[1]["data"]["status"], json!("succeeded"), "{ends:?}");
        assert_eq!(provider.requests_with("FIRST").len(), 1, "what is done is not done again");
        assert_eq!((sandbox.read("marks"), provider.requests_with("SUM").len()), ("once\n".into(), 1));
        let left = Claw::new(CLAW, &sandbox).args(["runs", "watch", "latest"]).run(BOUND);
        assert_eq!(left.code, Some(0), "{left}");
    }
}

#[test]
fn an_agents_output_opens_and_a_message_reaches_it() {
    for size in SIZES {
        let (provider, gate, sandbox) = held();
        let mut terminal = started(&sandbox, &["run", "wf.toml"], size);
        terminal.press(Key::Down);
        terminal.press(Key::Down);
        terminal.wait_for_screen("the mark", BOUND, |screen| {
            screen.lines.iter().any(|line| line.starts_with('▸') && line.contains("right"))
        });
        terminal.press(Key::Enter);
        terminal.wait_for_text("right words right words", BOUND);
        terminal.send("suse ünicode 漢");
        terminal.wait_for_text("use ünicode 漢", BOUND);
        terminal.press(Key::Enter);
        terminal.wait_for_text("you: use ünicode 漢", BOUND);
        wait_until("the record", BOUND, || !sandbox.newest_run().events("steered").is_empty());
        terminal.press(Key::Esc);
        terminal.wait_for_text("q stop", BOUND);
        gate.open();
        let output = terminal.wait(BOUND);
        assert_eq!((output.code, output.cooked), (0, true), "{}", output.raw);
        let heard = provider.requests_with("use ünicode 漢");
        assert!(
            !heard.is_empty()
                && heard.iter().all(|request| !request.body.to_string().contains("LEFT")
                    || request.body.to_string().contains("SUM")),
            "{heard:?}"
        );
    }
}

#[test]
fn whoever_watches_has_the_same_keys_and_leaves_the_run_alone_with_d() {
    for size in SIZES {
        let (provider, gate, sandbox) = held();
        let running = Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).spawn();
        provider.wait_for_in_flight(2, BOUND);
        let mut terminal = started(&sandbox, &["runs", "watch", "latest"], size);
        terminal.send("ssmall steps\r");
        wait_until("the record", BOUND, || !sandbox.newest_run().events("steered").is_empty());
        terminal.send("d");
        let output = terminal.wait(BOUND);
        assert_eq!((output.code, output.cooked), (0, true), "{}", output.raw);
        assert!(running.is_running() && output.raw.contains("goes on"), "{}", output.raw);
        let mut terminal = started(&sandbox, &["runs", "watch", "latest"], size);
        terminal.send("qy");
        let output = terminal.wait(BOUND);
        assert_ne!(output.code, 0, "{}", output.raw);
        assert!(output.cooked && !running.wait(BOUND).left_behind);
        gate.open();
    }
}

#[test]
fn ctrl_z_gives_the_terminal_back_and_fg_takes_it_again() {
    let (_provider, gate, sandbox) = held();
    let mut terminal = started(&sandbox, &["run", "wf.toml"], (24, 80));
    let stat = format!("/proc/{}/stat", terminal.pid());
    terminal.press(Key::Ctrl('z'));
    wait_until("the stop", BOUND, || std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T ")));
    assert!(terminal.is_cooked());
    terminal.wait_for_screen("no bars", BOUND, |screen| !screen.contains("q stop"));
    terminal.signal(Signal::CONT);
    terminal.wait_for_text("q stop", BOUND);
    wait_until("the keys", BOUND, || !terminal.is_cooked());
    gate.open();
    let output = terminal.wait(BOUND);
    assert_eq!((output.code, output.cooked), (0, true), "{}", output.raw);
}

#[test]
fn every_signal_gives_the_terminal_back_from_any_key_mode() {
    for (keys, signal, code) in
        [("s half a mess", Signal::INT, 130), ("q", Signal::TERM, 143), ("\r", Signal::HUP, 129)]
    {
        let (_provider, _gate, sandbox) = held();
        let mut terminal = started(&sandbox, &["run", "wf.toml"], (24, 80));
        terminal.send(keys);
        terminal.wait_for_screen("another foot", BOUND, |screen| !screen.contains("q stop"));
        terminal.signal(signal);
        let output = terminal.wait(BOUND);
        assert_eq!(
            (output.code, output.cooked, output.screen.cursor_hidden),
            (code, true, false),
            "{}",
            output.raw
        );
    }
}
