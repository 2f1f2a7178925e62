//! The scripted provider itself: what it answers, in which pieces, and what it finds wrong.

use claw_kit::{
    CANARY, Claw, End, Ended, Gate, Key, Pty, Reply, Route, Sandbox, ScriptedProvider, wait_until,
};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const BOUND: Duration = Duration::from_secs(10);

/// A client of a few lines: one connection, one request after the other.
struct Client {
    stream: BufReader<TcpStream>,
}

struct Answer {
    status: u16,
    headers: String,
    body: String,
    pieces: usize,
}

impl Client {
    fn new(provider: &ScriptedProvider) -> Self {
        let stream = TcpStream::connect(provider.address()).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    fn send(&mut self, path: &str, body: &Value) {
        let body = body.to_string();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nanthropic-version: 2023-06-01\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.stream.get_mut().write_all(format!("{head}{body}").as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line
    }

    fn read(&mut self) -> Answer {
        let status = self.line().split(' ').nth(1).unwrap().parse().unwrap();
        let mut headers = String::new();
        loop {
            match self.line().as_str() {
                "\r\n" => break,
                line => headers.push_str(line),
            }
        }
        let (mut body, mut pieces) = (Vec::new(), 0);
        if headers.contains("transfer-encoding: chunked") {
            loop {
                let size = usize::from_str_radix(self.line().trim(), 16).unwrap();
                let mut chunk = vec![0; size + 2];
                self.stream.read_exact(&mut chunk).unwrap();
                if size == 0 {
                    break;
                }
                body.extend_from_slice(&chunk[..size]);
                pieces += 1;
            }
        } else {
            self.stream.read_to_end(&mut body).unwrap();
        }
        Answer { status, headers, body: String::from_utf8(body).unwrap(), pieces }
    }

    fn ask(&mut self, path: &str, body: &Value) -> Answer {
        self.send(path, body);
        self.read()
    }
}

fn anthropic(prompt: &str) -> Value {
    json!({"model": "m", "max_tokens": 9, "stream": true, "messages": [{"role": "user", "content": prompt}]})
}

fn openai(prompt: &str) -> Value {
    json!({"model": "m", "stream": true, "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": prompt}]})
}

#[test]
fn one_script_speaks_both_wires_over_one_connection() {
    let reply = Reply::text("héllo").with_tool("c1", "bash", json!({"command": "ls"})).tokens(7, 3, 11);
    let provider = ScriptedProvider::always(reply);
    let mut client = Client::new(&provider);
    let first = client.ask("/v1/messages", &anthropic("a")).body;
    assert!(first.starts_with("event: message_start\ndata: {"), "{first}");
    for part in
        [r#""text_delta", "text": "héllo""#, r#"{\"command\": \"ls\"}"#, r#""stop_reason": "tool_use""#]
    {
        assert!(first.contains(part), "{part} is not in {first}");
    }
    let second = client.ask("/v1/chat/completions", &openai("b")).body;
    for part in
        [r#""content": "héllo""#, r#""finish_reason": "tool_calls""#, r#""prompt_tokens": 10"#, "[DONE]"]
    {
        assert!(second.contains(part), "{part} is not in {second}");
    }
    assert_eq!((provider.count(), provider.max_in_flight()), (2, 1));
}

#[test]
fn without_stream_the_answer_is_one_whole_message() {
    let provider = ScriptedProvider::always(Reply::text("hi").stop("max_tokens"));
    let mut client = Client::new(&provider);
    let mut body = anthropic("a");
    body["stream"] = json!(false);
    let answer = client.ask("/v1/messages", &body);
    assert!(answer.headers.contains("application/json"), "{}", answer.headers);
    let message: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!(
        (&message["content"][0]["text"], &message["stop_reason"]),
        (&json!("hi"), &json!("max_tokens"))
    );
    let mut body = openai("a");
    body.as_object_mut().unwrap().remove("stream");
    let message: Value = serde_json::from_str(&client.ask("/v1/chat/completions", &body).body).unwrap();
    assert_eq!(message["choices"][0]["finish_reason"], "length");
}

#[test]
fn routes_choose_by_text_last_message_and_count() {
    let provider = ScriptedProvider::new([
        Route::reply(Reply::text("ONE")).contains("alpha").times(1).label("one"),
        Route::reply(Reply::text("TWO")).last_contains("omega").lacks("beta"),
        Route::reply(Reply::error(529, &json!({"error": "busy"}))).path("completions"),
    ]);
    let ask = |prompt| Client::new(&provider).ask("/v1/messages", &anthropic(prompt));
    assert!(ask("alpha").body.contains("ONE"));
    assert!(ask("alpha omega").body.contains("TWO"));
    assert_eq!(ask("beta omega").status, 404);
    assert_eq!(Client::new(&provider).ask("/v1/chat/completions", &openai("x")).status, 529);
    assert_eq!(provider.requests_of("one").len(), 1);
    assert_eq!(provider.requests_with("omega").len(), 2);
}

#[test]
fn a_gate_holds_an_answer_and_the_test_lets_it_pass() {
    let gate = Gate::closed();
    let provider = ScriptedProvider::always(Reply::text("late").gate(&gate));
    let mut clients = [Client::new(&provider), Client::new(&provider)];
    for client in &mut clients {
        client.send("/v1/messages", &anthropic("a"));
    }
    gate.wait_for_waiting(2, BOUND);
    provider.wait_for_in_flight(2, BOUND);
    gate.let_pass(1);
    wait_until("one answer", BOUND, || gate.waiting() == 1);
    gate.open();
    for client in &mut clients {
        assert!(client.read().body.contains("late"));
    }
    provider.wait_for_idle(BOUND);
    assert_eq!(provider.max_in_flight(), 2);
}

#[test]
fn a_gate_in_the_middle_lets_the_first_half_through() {
    let gate = Gate::closed();
    let provider = ScriptedProvider::always(Reply::raw("abcdef").gate_at(3, &gate));
    let mut client = Client::new(&provider);
    client.send("/v1/messages", &anthropic("a"));
    gate.wait_for_waiting(1, BOUND);
    while client.line() != "\r\n" {}
    assert_eq!((client.line().as_str(), client.line().as_str()), ("3\r\n", "abc\r\n"));
    gate.open();
    assert_eq!((client.line().as_str(), client.line().as_str()), ("3\r\n", "def\r\n"));
}

#[test]
fn a_client_that_goes_away_is_seen() {
    let provider = ScriptedProvider::always(Reply::text("never").gate(&Gate::closed()));
    let mut client = Client::new(&provider);
    client.send("/v1/messages", &anthropic("a"));
    provider.wait_for_in_flight(1, BOUND);
    drop(client);
    provider.wait_for_idle(BOUND);
    wait_until("the record of the end", BOUND, || provider.ended(0) == Some(Ended::ClientGone));
}

#[test]
fn bodies_are_cut_where_the_reply_says() {
    let provider = ScriptedProvider::queue([
        Reply::raw("abcdef").in_chunks_of(1),
        Reply::raw("abcdef").split_at([2, 4, 99]),
        Reply::raw("x").heartbeat(":\n", Duration::from_millis(1), 3).after("y"),
        Reply::raw("abc").end(End::Close),
    ]);
    let mut client = Client::new(&provider);
    let mut next = || client.ask("/v1/messages", &anthropic("a"));
    let answer = next();
    assert_eq!((answer.body.as_str(), answer.pieces), ("abcdef", 6));
    assert_eq!(next().pieces, 3);
    assert_eq!(next().body, "x:\n:\n:\ny");
    let last = next();
    assert!(last.headers.contains("connection: close"));
    assert_eq!(last.body, "abc");
}

#[test]
fn a_cut_and_a_reset_break_the_body() {
    for (end, whole) in [(End::Cut, true), (End::Rst, false)] {
        let provider = ScriptedProvider::always(Reply::raw("abc").end(end));
        let mut client = Client::new(&provider);
        client.send("/v1/messages", &anthropic("a"));
        let mut bytes = Vec::new();
        let result = client.stream.read_to_end(&mut bytes);
        assert_eq!(result.is_ok(), whole, "{end:?}: {result:?}");
        assert!(!String::from_utf8_lossy(&bytes).contains("\r\n0\r\n"), "{end:?} has no last chunk");
    }
}

#[test]
fn illegal_requests_are_named() {
    let provider = ScriptedProvider::always(Reply::text("ok")).lenient();
    let mut client = Client::new(&provider);
    client.ask("/v1/messages", &anthropic(&format!("my key is {CANARY}")));
    let call = json!([{"type": "tool_use", "id": "a", "name": "t", "input": {}}]);
    client.ask(
        "/v1/messages",
        &json!({"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x"},
            {"role": "assistant", "content": call}, {"role": "user", "content": "y"}]}),
    );
    assert_eq!(
        provider.violations(),
        [
            "request 0: a secret stands in the body: sk-canary-…",
            "request 1: message 2: results [] for calls [a]"
        ]
    );
}

#[test]
#[should_panic(expected = "illegal requests came")]
fn a_broken_law_fails_the_test_at_its_end() {
    let provider = ScriptedProvider::always(Reply::text("ok"));
    Client::new(&provider).ask("/v1/messages", &json!({"model": "m", "max_tokens": 1, "messages": []}));
}

#[test]
fn a_thousand_requests_wait_at_once() {
    let gate = Gate::closed();
    let provider = ScriptedProvider::always(Reply::text("x").gate(&gate));
    let mut clients: Vec<_> = (0..1000).map(|_| Client::new(&provider)).collect();
    for client in &mut clients {
        client.send("/v1/messages", &anthropic("a"));
    }
    provider.wait_for_in_flight(1000, BOUND * 3);
    gate.open();
    for client in &mut clients {
        assert_eq!(client.read().status, 200);
    }
    assert_eq!(provider.max_in_flight(), 1000);
}

#[test]
fn a_playlist_file_plays_byte_for_byte() {
    let sandbox = Sandbox::new();
    sandbox.write("body.sse", "data: %N%\n\n");
    let list = json!({"routes": [
        {"label": "f", "body_file": "body.sse", "times": 1, "split_at": [3], "headers": {"X-Y": "z"}},
        {"label": "t", "last_contains": "\"role\": \"user\"", "reply": {"tools": [{"id": "c%N%", "name": "bash", "input": {}}]}},
    ]});
    let provider = ScriptedProvider::playlist(sandbox.write("a.playlist.json", list.to_string()));
    let ask = || Client::new(&provider).ask("/v1/messages", &anthropic("a"));
    let first = ask();
    assert_eq!(first.body, "data: 1\n\n");
    assert!(
        first.headers.contains("x-y: z") && first.headers.contains("connection: close"),
        "{}",
        first.headers
    );
    assert!(ask().body.contains(r#""id": "c2""#));
    assert_eq!(provider.requests_of("t").len(), 1);
}

#[test]
fn a_program_runs_in_the_sandbox_and_nowhere_else() {
    let sandbox = Sandbox::new().env("X", "1");
    let output = Claw::new("/bin/sh", &sandbox)
        .args(["-c", "cat; pwd; echo $HOME $X; echo bad >&2; exit 3"])
        .stdin("in\n")
        .run(BOUND)
        .expect_code(3);
    let (project, home) = (sandbox.project(), sandbox.home());
    assert_eq!(output.stdout, format!("in\n{}\n{} 1\n", project.display(), home.display()));
    assert_eq!((output.stderr.as_str(), output.left_behind), ("bad\n", false));
}

#[test]
fn a_running_program_can_be_watched_and_killed() {
    let sandbox = Sandbox::new();
    let running = Claw::new("/bin/sh", &sandbox).args(["-c", "echo up >&2; read x"]).open_stdin().spawn();
    running.wait_for_stderr("up", BOUND);
    assert!(running.is_running() && running.peak_memory_kib() > 0);
    running.kill9();
    let output = running.wait(BOUND);
    assert_eq!((output.code, output.signal), (None, Some(9)));
}

#[test]
#[should_panic(expected = "--- stdout so far\nhalf")]
fn a_program_that_hangs_fails_with_its_output_so_far() {
    let sandbox = Sandbox::new();
    let running = Claw::new("/bin/sh", &sandbox).args(["-c", "echo half; read x"]).open_stdin().spawn();
    running.wait_for_stdout("half", BOUND);
    running.wait_for_stdout("whole", Duration::from_millis(50));
}

#[test]
fn a_terminal_shows_what_the_program_draws() {
    let sandbox = Sandbox::new();
    let script =
        "printf 'size '; stty size; printf '\\033[?25l\\033[31mname?\\033[0m '; read n; echo hi $n; read x";
    let mut terminal = Pty::new("/bin/sh", &sandbox).args(["-c", script]).size(10, 40).start();
    let screen = terminal.wait_for_text("name?", BOUND);
    assert!(screen.contains("size 10 40") && screen.cursor_hidden, "{screen:?}");
    terminal.send("ann");
    terminal.press(Key::Enter);
    terminal.wait_for_text("hi ann", BOUND);
    terminal.press(Key::Ctrl('c'));
    let output = terminal.wait(BOUND);
    assert!(output.signal.is_some() && output.cooked, "{output:?}");
    assert!(output.raw.contains("\x1b[31m"));
}
