//! `claw` alone: the conversation at a terminal, seen on terminals of three sizes, and a terminal that is left as it was.

use claw_kit::{Claw, Gate, Key, Pty, Reply, Route, Sandbox, Screen, ScriptedProvider, Signal, Terminal};
use serde_json::json;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

fn start(sandbox: &Sandbox, rows: u16, columns: u16) -> Terminal {
    let terminal = Pty::new(CLAW, sandbox).size(rows, columns).start();
    terminal.wait_for_text("type a message", BOUND);
    terminal
}

fn say(terminal: &mut Terminal, text: &str) {
    terminal.send(text);
    terminal.press(Key::Enter);
}

/// Ends it and looks at what is left: a shell would go on as before.
fn leaves_all_as_it_was(mut terminal: Terminal) -> Screen {
    terminal.press(Key::Ctrl('d'));
    let output = terminal.wait(BOUND);
    assert_eq!(output.code, 0, "{}", output.raw);
    assert!(output.cooked && !output.screen.cursor_hidden && !output.screen.alternate);
    assert!(output.raw.rfind("\x1b[?2004l") > output.raw.rfind("\x1b[?2004h"), "pastes are as before");
    output.screen
}

const PAGE: &str = "# Findings\n\nThe *parser* has **two** faults:\n\n1. it reads `\"\"` as a value\n2. it is slow\n\n\
    | file | lines |\n|---|---|\n| parser.rs | 120 |\n\n```rust\nfn main() {}\n```\n";

#[test]
fn an_answer_is_a_page_above_the_input_on_terminals_of_three_sizes() {
    let provider = ScriptedProvider::always(Reply::text(PAGE).in_pieces(30).tokens(1200, 0, 80));
    let mut pages = Vec::new();
    for (rows, columns) in [(24, 80), (40, 120), (12, 40)] {
        let sandbox = Sandbox::anthropic(&provider);
        let mut terminal = start(&sandbox, rows, columns);
        say(&mut terminal, "What is wrong?");
        let screen = terminal.wait_for_screen("the end of the page", BOUND, |screen| {
            screen.contains("fn main") && !screen.contains("interrupts")
        });
        pages.push(format!("{columns}×{rows}\n{}", tidied(&screen)));
        leaves_all_as_it_was(terminal);
    }
    insta::assert_snapshot!(pages.join("\n\n"));
}

/// Without the status line, which holds what differs from machine to machine.
fn tidied(screen: &Screen) -> String {
    let status =
        screen.lines.iter().position(|line| line.contains("workspace-write")).unwrap_or(screen.lines.len());
    screen.lines[..status].join("\n").trim_end().to_owned()
}

#[test]
fn a_conversation_goes_on_over_many_prompts_with_its_tools() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::text("I look.").with_tool("t1", "bash", json!({"command": "seq 1 40"}))).times(1),
        Route::reply(Reply::text("It has forty lines.")).times(1),
        Route::reply(Reply::text("You are welcome.")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    let mut terminal = start(&sandbox, 40, 100);
    say(&mut terminal, "count");
    let screen = terminal.wait_for_text("It has forty lines.", BOUND);
    for text in ["❯ count", "I look.", "● bash", "⎿ 1", "… 25 more lines (Ctrl-O shows all)"] {
        assert!(screen.contains(text), "{text}\n{}", screen.text());
    }
    terminal.press(Key::Ctrl('o'));
    terminal.wait_for_screen("the pager", BOUND, |screen| screen.alternate && screen.contains("q closes"));
    terminal.send("G");
    terminal.wait_for_text("40", BOUND);
    terminal.send("q");
    terminal
        .wait_for_screen("the first screen", BOUND, |screen| !screen.alternate && screen.contains("❯ count"));
    say(&mut terminal, "thanks");
    terminal.wait_for_text("You are welcome.", BOUND);
    leaves_all_as_it_was(terminal);
}

#[test]
fn a_question_is_asked_in_the_region_and_answered_by_a_key() {
    for (key, there) in [("n", false), ("y", true)] {
        let provider = ScriptedProvider::new([
            Route::reply(Reply::tool("t1", "write_file", json!({"path": "x.txt", "content": "hello"})))
                .times(1),
            Route::reply(Reply::text("Done.")),
        ]);
        let sandbox = Sandbox::anthropic(&provider);
        let mut terminal =
            Pty::new(CLAW, &sandbox).args(["--permission-mode", "prompt"]).size(24, 80).start();
        terminal.wait_for_text("type a message", BOUND);
        say(&mut terminal, "write it");
        let screen = terminal.wait_for_text("Allow it?", BOUND);
        assert!(
            screen.contains("claw wants to use write_file") && screen.contains("x.txt"),
            "{}",
            screen.text()
        );
        assert!(!sandbox.has("x.txt"));
        terminal.send(key);
        terminal.wait_for_screen("a call that ended", BOUND, |screen| {
            screen.contains("● write_file") && screen.contains("Done.")
        });
        if there {
            terminal.wait_for_screen("the file", BOUND, |_| sandbox.has("x.txt"));
        } else {
            assert!(!sandbox.has("x.txt"));
        }
        drop(terminal);
    }
}

#[test]
fn escape_interrupts_and_the_conversation_goes_on() {
    let gate = Gate::closed();
    let provider = ScriptedProvider::new([
        Route::reply(Reply::text("never seen").gate(&gate)).times(1),
        Route::reply(Reply::text("Here I am.")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    let mut terminal = start(&sandbox, 24, 80);
    say(&mut terminal, "first");
    terminal.wait_for_text("Esc interrupts", BOUND);
    terminal.press(Key::Esc);
    terminal.wait_for_text("interrupted", BOUND);
    gate.open();
    say(&mut terminal, "second");
    terminal.wait_for_text("Here I am.", BOUND);
    leaves_all_as_it_was(terminal);
}

#[test]
fn control_characters_of_a_model_never_reach_the_terminal() {
    let evil = "a\u{1b}]52;c;aGk=\u{7}b\u{1b}[2Jc\u{9b}31m\u{202e}d\r\n\n```\n\u{1b}]0;title\u{7}\n```\n";
    let provider = ScriptedProvider::new([
        Route::reply(Reply::text(evil).with_tool(
            "t1",
            "bash",
            json!({"command": "printf 'x\\033[2J\\033]0;t\\007y\\n'"}),
        ))
        .times(1),
        Route::reply(Reply::text("END")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    let mut terminal = start(&sandbox, 24, 80);
    say(&mut terminal, "go");
    terminal.wait_for_text("END", BOUND);
    let raw = terminal.raw();
    for sequence in ["\x1b]", "\x1b[2J", "\u{9b}", "\u{202e}"] {
        assert!(!raw.contains(sequence), "{sequence:?}");
    }
    assert!(terminal.screen().contains("␛"), "shown as signs");
    leaves_all_as_it_was(terminal);
}

#[test]
fn every_signal_leaves_the_terminal_as_it_was() {
    let gate = Gate::closed();
    let provider = ScriptedProvider::always(Reply::text("x").gate(&gate));
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        for running in [false, true] {
            let sandbox = Sandbox::anthropic(&provider);
            let mut terminal = start(&sandbox, 24, 80);
            if running {
                say(&mut terminal, "first");
                terminal.wait_for_text("Esc interrupts", BOUND);
            } else {
                terminal.send("half a line");
                terminal.wait_for_text("half a line", BOUND);
            }
            terminal.signal(signal);
            let output = terminal.wait(BOUND);
            assert_eq!(output.code, code, "{signal:?} {running}: {}", output.raw);
            assert!(output.cooked && !output.screen.cursor_hidden, "{signal:?} {running}");
        }
    }
    gate.open();
}

#[test]
fn a_stopped_lead_gives_the_terminal_back_and_takes_it_again() {
    let provider = ScriptedProvider::always(Reply::text("Here."));
    let sandbox = Sandbox::anthropic(&provider);
    let mut terminal = start(&sandbox, 24, 80);
    terminal.send("draft");
    terminal.wait_for_text("❯ draft", BOUND);
    for by_key in [true, false] {
        if by_key {
            terminal.press(Key::Ctrl('z'));
        } else {
            terminal.signal(Signal::TSTP);
        }
        terminal.wait_for_screen("an empty screen", BOUND, |screen| !screen.contains("❯ draft"));
        terminal.wait_until_stopped(BOUND);
        assert!(terminal.is_cooked());
        terminal.signal(Signal::CONT);
        terminal.wait_for_text("❯ draft", BOUND);
        assert!(!terminal.is_cooked());
    }
    terminal.press(Key::Enter);
    terminal.wait_for_text("Here.", BOUND);
    leaves_all_as_it_was(terminal);
}

#[test]
fn a_paste_is_folded_and_sent_whole_and_another_size_is_kept_up_with() {
    let provider = ScriptedProvider::always(Reply::text("Read."));
    let sandbox = Sandbox::anthropic(&provider);
    let mut terminal = start(&sandbox, 24, 80);
    let paste: String = (1..=120).map(|n| format!("line {n}\r")).collect();
    terminal.send(&format!("\x1b[200~{paste}\x1b[201~"));
    terminal.wait_for_text("[pasted 120 lines]", BOUND);
    terminal.resize(12, 40);
    terminal.wait_for_screen("the status line of a narrow terminal", BOUND, |screen| {
        screen.contains("[pasted 120 lines]")
            && screen.lines.iter().filter(|line| line.contains("workspace-write")).count() == 1
    });
    terminal.press(Key::Enter);
    terminal.wait_for_text("Read.", BOUND);
    let asked = provider.requests().last().map(|request| request.text.clone()).unwrap_or_default();
    assert!(asked.contains("line 1\\nline 2") && asked.contains("line 120"), "{asked}");
    leaves_all_as_it_was(terminal);
}

#[test]
fn slash_commands_are_completed_and_carried_out() {
    let provider = ScriptedProvider::always(Reply::text("x"));
    let sandbox = Sandbox::anthropic(&provider);
    let mut terminal = start(&sandbox, 40, 100);
    terminal.send("/ver");
    terminal.wait_for_text("shows the version of claw", BOUND);
    terminal.press(Key::Enter);
    terminal.wait_for_text(&format!("claw {}", env!("CARGO_PKG_VERSION")), BOUND);
    say(&mut terminal, "/hlep");
    terminal.wait_for_text("did you mean /help?", BOUND);
    say(&mut terminal, "/theme none");
    terminal.wait_for_text("theme none", BOUND);
    say(&mut terminal, "/permissions");
    terminal.wait_for_text("Permission mode (now workspace-write)", BOUND);
    terminal.send("read");
    terminal.press(Key::Enter);
    terminal.wait_for_text("permission mode read-only", BOUND);
    assert!(provider.requests().is_empty(), "none of them asks the model");
    leaves_all_as_it_was(terminal);
}

#[test]
fn the_history_of_a_project_is_there_at_the_next_start() {
    let provider = ScriptedProvider::always(Reply::text("x"));
    let sandbox = Sandbox::anthropic(&provider);
    let mut terminal = start(&sandbox, 24, 80);
    say(&mut terminal, "/version");
    terminal.wait_for_text("claw 0", BOUND);
    leaves_all_as_it_was(terminal);
    let mut terminal = start(&sandbox, 24, 80);
    terminal.press(Key::Up);
    terminal.wait_for_text("❯ /version", BOUND);
    terminal.press(Key::Ctrl('c'));
    leaves_all_as_it_was(terminal);
}

#[test]
fn a_session_is_gone_on_with_as_its_last_line_says() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::text("I keep it in mind.")).times(1),
        Route::reply(Reply::text("It was plum.")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    let mut terminal = start(&sandbox, 24, 100);
    say(&mut terminal, "the word is plum");
    terminal.wait_for_text("I keep it in mind.", BOUND);
    let last = leaves_all_as_it_was(terminal).text();
    let session =
        last.split("claw --resume ").nth(1).and_then(|rest| rest.split('`').next()).unwrap().to_owned();
    let mut terminal = Pty::new(CLAW, &sandbox).args(["--resume", &session]).size(24, 100).start();
    terminal.wait_for_text("last prompt: the word is plum", BOUND);
    say(&mut terminal, "which word?");
    terminal.wait_for_text("It was plum.", BOUND);
    let asked = provider.requests().last().map(|request| request.text.clone()).unwrap_or_default();
    assert!(asked.contains("the word is plum") && asked.contains("which word?"), "{asked}");
    leaves_all_as_it_was(terminal);
}

#[test]
fn without_a_terminal_a_lone_claw_says_so_or_takes_the_pipe_for_a_question() {
    let provider = ScriptedProvider::always(Reply::text("the answer"));
    let sandbox = Sandbox::anthropic(&provider);
    let output = Claw::new(CLAW, &sandbox).run(BOUND).expect_code(2);
    assert!(output.stderr.contains("wants a terminal") && output.stderr.contains("claw -p"), "{output}");
    let output = Claw::new(CLAW, &sandbox).stdin("what is it?").run(BOUND).expect_code(0);
    assert_eq!(output.stdout, "the answer\n");
}

#[test]
fn a_terminal_of_old_gets_plain_lines() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::text("I look.").with_tool("t1", "bash", json!({"command": "echo hi"}))).times(1),
        Route::reply(Reply::text("Done here.")),
    ]);
    let sandbox = Sandbox::anthropic(&provider);
    let mut terminal = Pty::new(CLAW, &sandbox).env("TERM", "dumb").size(24, 80).start();
    terminal.wait_for_text(">", BOUND);
    terminal.send("look\n");
    terminal.wait_for_text("Done here.", BOUND);
    terminal.send("/version\n");
    terminal.wait_for_text("claw 0", BOUND);
    terminal.send("/exit\n");
    let output = terminal.wait(BOUND);
    assert_eq!(output.code, 0, "{}", output.raw);
    assert!(!output.raw.contains('\x1b'), "{:?}", output.raw);
}

#[test]
fn init_begins_a_project_once() {
    let provider = ScriptedProvider::always(Reply::text("x"));
    let sandbox = Sandbox::anthropic(&provider);
    sandbox.write("Cargo.toml", "[package]\nname = \"x\"\n");
    let first = Claw::new(CLAW, &sandbox).args(["init"]).run(BOUND).expect_code(0);
    insta::assert_snapshot!(
        "init",
        format!("{}\n{}", first.stdout, sandbox.read("CLAUDE.md").replace(&name_of(&sandbox), "NAME"))
    );
    let again = Claw::new(CLAW, &sandbox).args(["init"]).run(BOUND).expect_code(0);
    assert_eq!(again.stdout.matches("left alone").count(), 3, "{again}");
}

fn name_of(sandbox: &Sandbox) -> String {
    sandbox.project().file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
