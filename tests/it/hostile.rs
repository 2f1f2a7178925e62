//! Text of models, services and files that wants to be more than text: escapes, long lines, odd names.

use claw_kit::{
    Claw, Gate, Pty, Reply, Route, Sandbox, ScriptedProvider, Signal, processes_with, wait_until,
};
use serde_json::json;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);
/// Sets the title, clears the screen, hides the cursor, rings, overwrites the line.
const EVIL: &str = "before\u{1b}]0;PWNED\u{7}\u{1b}[2J\u{1b}[?25l\u{9b}31m\rOVER\u{8}\u{8}after";

fn one(sandbox: &Sandbox, prompt: &str) {
    let text = format!("schema = 1\n[workflow]\nname = \"one\"\n[node.a]\nprompt = \"{prompt}\"\n");
    sandbox.write("wf.toml", text);
}

fn is_clean(raw: &str) -> bool {
    !raw.contains("\u{1b}]0;PWNED")
        && !raw.contains("\u{1b}[2J")
        && !raw.contains('\u{9b}')
        && !raw.contains('\u{7}')
}

#[test]
fn an_answer_cannot_steer_the_terminal() {
    let provider = ScriptedProvider::always(Reply::text(EVIL));
    let sandbox = Sandbox::anthropic(&provider);
    one(&sandbox, "x");
    for args in [&["-p", "x"][..], &["run", "wf.toml"]] {
        let output = Pty::new(CLAW, &sandbox).args(args).start().wait(BOUND);
        assert_eq!(output.code, 0, "{}", output.raw);
        assert!(is_clean(&output.raw) && !output.screen.cursor_hidden, "{args:?}: {:?}", output.raw);
        assert!(output.raw.contains("before") && output.raw.contains("after"), "{:?}", output.raw);
    }
}

#[test]
fn off_a_terminal_an_answer_is_the_bytes_that_came() {
    let provider = ScriptedProvider::always(Reply::text(EVIL));
    let sandbox = Sandbox::anthropic(&provider);
    let output = Claw::new(CLAW, &sandbox).args(["-p", "x"]).run(BOUND).expect_code(0);
    assert_eq!(output.stdout, format!("{EVIL}\n"));
}

#[test]
fn a_command_a_key_and_an_error_cannot_steer_it_either() {
    let evil_error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": EVIL}});
    let gate = Gate::closed();
    let provider = ScriptedProvider::new([
        Route::reply(Reply::tool("t1", "bash", json!({"command": format!("true {EVIL}")})))
            .contains("ITEM")
            .lacks("tool_result"),
        Route::reply(Reply::error(400, &evil_error).gate(&gate)),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"one\"\n[node.look]\nlabel = \"at {{ item }}\"\nprompt = \"ITEM {{ item }}\"\neach = { items = [\"k\\u001b]0;PWNED\\u0007\\u001b[2Jey\"], key = \"{{ item }}\" }\n",
    );
    let terminal = Pty::new(CLAW, &sandbox).args(["run", "wf.toml"]).start();
    gate.wait_for_waiting(1, BOUND);
    terminal.wait_for_text("at k", BOUND);
    gate.open();
    let output = terminal.wait(BOUND);
    assert_eq!(output.code, 1, "{}", output.raw);
    assert!(is_clean(&output.raw) && !output.screen.cursor_hidden, "{:?}", output.raw);
    let plain = Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).run(BOUND).expect_code(1);
    assert!(!plain.stderr.contains(['\u{1b}', '\r', '\u{7}', '\u{9b}']), "{:?}", plain.stderr);
    let list = Claw::new(CLAW, &sandbox).args(["runs", "list"]).run(BOUND).expect_code(0);
    assert!(!list.stdout.contains('\u{1b}'), "{:?}", list.stdout);
}

#[test]
fn a_question_cannot_be_overdrawn() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::tool(
            "t1",
            "bash",
            json!({"command": format!("rm -rf precious # {EVIL}\u{1b}[1A\u{1b}[2Kls")}),
        ))
        .times(1),
        Route::reply(Reply::text("done")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    one(&sandbox, "x");
    let mut terminal =
        Pty::new(CLAW, &sandbox).args(["run", "wf.toml", "--permission-mode", "prompt"]).start();
    let screen = terminal.wait_for_text("[y] once", BOUND);
    assert!(screen.contains("rm -rf precious"), "{}", screen.text());
    terminal.send("\r");
    let output = terminal.wait(BOUND);
    assert!(is_clean(&output.raw), "{:?}", output.raw);
}

#[test]
fn keys_typed_ahead_do_not_answer_a_question() {
    let gate = Gate::closed();
    let provider = ScriptedProvider::new([
        Route::reply(Reply::tool("t1", "bash", json!({"command": "touch made"})).gate(&gate)).times(1),
        Route::reply(Reply::text("done")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    one(&sandbox, "x");
    let mut terminal =
        Pty::new(CLAW, &sandbox).args(["run", "wf.toml", "--permission-mode", "prompt"]).start();
    gate.wait_for_waiting(1, BOUND);
    terminal.send("y\ry\r");
    gate.open();
    terminal.wait_for_text("[y] once", BOUND);
    assert!(!sandbox.has("made"), "an answer that was given before the question");
    terminal.send("n\r");
    assert_eq!(terminal.wait(BOUND).code, 0);
    assert!(!sandbox.has("made"));
}

#[test]
fn a_file_name_with_blanks_and_quotes_is_offered_so_that_it_can_be_pasted() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::error(400, &json!({"error": {"message": "no"}}))).times(1),
        Route::reply(Reply::text("fine")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    one(&sandbox, "x");
    let name = "it's my $(flow).toml";
    sandbox.write(name, sandbox.read("wf.toml"));
    let output = Claw::new(CLAW, &sandbox).args(["run", name]).run(BOUND).expect_code(1);
    let line = output
        .stderr
        .lines()
        .find_map(|line| line.split_once("resume: claw "))
        .map(|(_, rest)| rest.to_owned());
    let script = format!("{CLAW} {}", line.unwrap_or_default());
    let again = Claw::new("/bin/sh", &sandbox).args(["-c", &script]).run(BOUND).expect_code(0);
    assert_eq!(again.stdout, "fine\n");
}

#[test]
fn a_stop_closes_the_request_and_ends_a_wait_at_once() {
    let gate = Gate::closed();
    let provider = ScriptedProvider::always(Reply::text("late").gate(&gate));
    let sandbox = Sandbox::anthropic(&provider);
    let running = Claw::new(CLAW, &sandbox).args(["-p", "x"]).spawn();
    gate.wait_for_waiting(1, BOUND);
    running.signal(Signal::INT);
    running.wait(Duration::from_secs(3)).expect_code(130);
    provider.wait_for_idle(BOUND);
    let body = json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}});
    let provider = ScriptedProvider::always(Reply::error(429, &body).header("retry-after", "120"));
    let sandbox = Sandbox::anthropic(&provider);
    let running = Claw::new(CLAW, &sandbox).args(["-p", "x"]).spawn();
    running.wait_for_stderr("rate limited", BOUND);
    running.signal(Signal::TERM);
    running.wait(Duration::from_secs(3)).expect_code(143);
    assert_eq!(provider.count(), 1);
}

#[test]
fn when_claw_itself_is_killed_its_commands_die_too() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "wf.toml",
        "schema = 1\n[workflow]\nname = \"x\"\n[node.a]\nkind = \"command\"\nrun = \"sleep 7491\"\n[node.b]\nkind = \"command\"\nrun = [\"sleep\", \"7492\"]\n",
    );
    let running = Claw::new(CLAW, &sandbox).args(["run", "wf.toml"]).spawn();
    wait_until("both commands", BOUND, || {
        processes_with("sleep 7491") > 0 && processes_with("sleep 7492") > 0
    });
    running.kill9();
    wait_until("their end", Duration::from_secs(3), || {
        processes_with("sleep 7491") + processes_with("sleep 7492") == 0
    });
}

#[test]
fn deep_and_wide_documents_are_refused_or_read_but_never_crash() {
    let provider = ScriptedProvider::always(Reply::text("fine"));
    let sandbox = Sandbox::anthropic(&provider);
    let head = "schema = 1\n[workflow]\nname = \"x\"\n";
    let deep =
        format!("{head}[node.a]\nkind = \"set\"\nvalue = \"{}1{}\"\n", "(".repeat(5_000), ")".repeat(5_000));
    let nested = format!("{head}x = {}1{}\n", "[".repeat(5_000), "]".repeat(5_000));
    let template = format!("{head}[node.a]\nprompt = \"{}\"\n", "{{ 1 }}".repeat(20_000));
    let endless = format!(
        "{head}[node.a]\nkind = \"set\"\nvalue = \"range(100000) | map('string') | join(range(100000) | join('x'))\"\n"
    );
    let mut chain = String::from(head);
    chain += "[node.n0]\nkind = \"set\"\nvalue = \"0\"\n";
    for n in 1..3_000 {
        chain +=
            &format!("[node.n{n}]\nkind = \"set\"\nneeds = [\"n{}\"]\nvalue = \"n{} + 1\"\n", n - 1, n - 1);
    }
    for (name, text, codes) in [
        ("deep", deep, &[0, 1, 2][..]),
        ("nested", nested, &[2]),
        ("template", template, &[0, 2]),
        ("endless", endless, &[0, 1, 2]),
        ("chain", chain, &[0]),
    ] {
        sandbox.write("wf.toml", text);
        let output = Claw::new(CLAW, &sandbox).args(["run", "wf.toml", "--no-progress"]).run(BOUND);
        assert!(
            output.signal.is_none() && codes.contains(&output.code.unwrap_or(-1)),
            "{name}: {:?} {:?} {}",
            output.code,
            output.signal,
            &output.stderr[..output.stderr.len().min(2_000)]
        );
        assert!(!output.stderr.contains("panicked"), "{name}: {}", output.stderr);
    }
}
