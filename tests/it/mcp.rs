//! Servers of the Model Context Protocol, seen from outside.

use claw_kit::{CANARY, Claw, Gate, Output, Reply, Route, Sandbox, ScriptedProvider, Signal, processes_with};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(30);

/// A server with one tool that says what it was given; `BEFORE` changes it.
const SERVER: &str = r#"
import sys, json, os, time, signal, subprocess
def send(o): sys.stdout.write(json.dumps(o) + "\n"); sys.stdout.flush()
def ok(i, r): send({"jsonrpc": "2.0", "id": i, "result": r})
def text(s): return {"content": [{"type": "text", "text": s}]}
tools = [{"name": "echo", "description": "echo", "inputSchema": {"type": "object"}}]
def call(m): ok(m["id"], text("ECHO " + json.dumps(m["params"].get("arguments"))))
exec(os.environ.get("BEFORE", ""))
for line in sys.stdin:
    m = json.loads(line); k = m.get("method")
    if k == "initialize": ok(m["id"], {"protocolVersion": m["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}})
    elif k == "tools/list": ok(m["id"], {"tools": tools})
    elif k == "tools/call": call(m)
"#;

fn server(sandbox: &Sandbox, before: &str) -> Value {
    let file = sandbox.write_home("server.py", SERVER);
    json!({"command": "python3", "args": [file.display().to_string(), before], "env": {"BEFORE": before}})
}

/// What the command lines of this sandbox's servers hold.
fn own(sandbox: &Sandbox) -> String {
    sandbox.home().join("server.py").display().to_string()
}

fn settings(sandbox: &Sandbox, servers: &Value) {
    let text = json!({"mcpServers": servers, "permissions": {"allow": ["mcp__*"]}}).to_string();
    sandbox.write_home(".claw/settings.json", text);
}

fn print(sandbox: &Sandbox, more: &[&str]) -> Output {
    Claw::new(CLAW, sandbox).args(["-p", "GO", "--output-format", "json"]).args(FULL).args(more).run(BOUND)
}

const FULL: [&str; 3] = ["--permission-mode", "danger-full-access", "--allow-root"];

fn results(provider: &ScriptedProvider) -> Vec<String> {
    let request = provider.last_request();
    let blocks = request.messages().iter().filter_map(|message| message["content"].as_array()).flatten();
    blocks.filter(|block| block["type"] == "tool_result").map(|block| block["content"].to_string()).collect()
}

fn calls(calls: &[(&str, Value)]) -> ScriptedProvider {
    let one = |(at, (tool, input)): (usize, &(&str, Value))| {
        Route::reply(Reply::tool(&format!("t{at}"), tool, input.clone())).times(1)
    };
    let routes = calls.iter().enumerate().map(one).chain([Route::reply(Reply::text("done"))]);
    ScriptedProvider::new(routes.collect::<Vec<_>>())
}

#[test]
fn tools_of_a_noisy_and_a_clean_server_are_called_and_no_server_sees_a_key() {
    let provider = calls(&[("mcp__noisy__echo", json!({"v": 1})), ("mcp__clean__echo", json!({}))]);
    let sandbox = Sandbox::anthropic(&provider);
    let noisy = "print('Starting \\x1b[31mdemo'); print('[1]'); sys.stdout.flush()";
    let clean = "def call(m): ok(m['id'], text('ENV ' + str([k for k, v in os.environ.items() if ('can' + 'ary') in v])))";
    let mut keyed = server(&sandbox, clean);
    keyed["env"]["STOLEN"] = json!("${ANTHROPIC_API_KEY:-nothing}");
    settings(&sandbox, &json!({"noisy": server(&sandbox, noisy), "clean": keyed}));
    let output = print(&sandbox, &[]).expect_code(0);
    let told = results(&provider);
    assert!(told[0].contains("ECHO {\\\"v\\\": 1}"), "{told:?} {output}");
    assert!(told[1].contains("ENV []") && !told[1].contains(CANARY), "{told:?}");
    assert!(!output.stderr.contains('\u{1b}'), "{output}");
    assert_eq!(processes_with(&own(&sandbox)), 0);
}

#[test]
fn a_server_is_asked_about_where_nothing_says_that_it_may_and_denied_where_it_only_reads() {
    for (mode, words) in [("workspace-write", "outside of the sandbox"), ("read-only", "read-only")] {
        let provider = calls(&[("mcp__s__echo", json!({}))]);
        let sandbox = Sandbox::anthropic(&provider);
        let servers = json!({"s": server(&sandbox, "")});
        sandbox.write_home(".claw/settings.json", json!({"mcpServers": servers}).to_string());
        let output = Claw::new(CLAW, &sandbox)
            .args(["-p", "GO", "--output-format", "json", "--permission-mode", mode])
            .run(BOUND)
            .expect_code(0);
        let told = results(&provider);
        assert!(told[0].contains(words) && !told[0].contains("ECHO"), "{mode}: {told:?} {output}");
    }
}

#[test]
fn a_server_of_the_repository_does_not_start_before_the_user_says_so() {
    let provider = calls(&[("mcp__s__echo", json!({}))]);
    let sandbox = Sandbox::anthropic(&provider);
    let mark = sandbox.home().join("STARTED");
    let before = format!("open({:?}, 'w').close()", mark.display().to_string());
    let servers = json!({"s": server(&sandbox, &before)});
    sandbox.write(".mcp.json", json!({"mcpServers": servers}).to_string());
    print(&sandbox, &[]).expect_code(0);
    assert!(!mark.exists());
    print(&sandbox, &["--trust"]).expect_code(0);
    assert!(mark.exists());
}

#[test]
fn slow_servers_delay_the_first_request_by_no_more_than_two_seconds() {
    let provider = ScriptedProvider::always(Reply::text("done"));
    let sandbox = Sandbox::anthropic(&provider);
    let slow = ["time.sleep(9) # a", "time.sleep(9) # b", "time.sleep(9) # c"]
        .map(|before| server(&sandbox, before));
    let [a, b, c] = slow;
    settings(&sandbox, &json!({"a": a, "b": b, "c": c}));
    let began = Instant::now();
    let running = Claw::new(CLAW, &sandbox).args(["-p", "GO"]).spawn();
    provider.wait_for_requests(1, BOUND);
    assert!(began.elapsed() < Duration::from_millis(3_500), "{:?}", began.elapsed());
    running.wait(BOUND).expect_code(0);
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    assert_eq!(processes_with(&own(&sandbox)), 0);
}

#[test]
fn a_server_that_falls_in_a_call_comes_back_for_the_next() {
    let provider = calls(&[("mcp__s__echo", json!({"n": 1})), ("mcp__s__echo", json!({"n": 2}))]);
    let sandbox = Sandbox::anthropic(&provider);
    let flag = sandbox.home().join("fell").display().to_string();
    let before = format!(
        "plain = call\ndef call(m):\n    if os.path.exists({flag:?}): return plain(m)\n    open({flag:?}, 'w').close(); sys.stderr.write('out of paper'); sys.stderr.flush(); os._exit(7)\n"
    );
    settings(&sandbox, &json!({"s": server(&sandbox, &before)}));
    let output = print(&sandbox, &[]).expect_code(0);
    let told = results(&provider);
    assert!(told[0].contains("MCP server `s`") && told[0].contains("status 7"), "{told:?} {output}");
    assert!(told[0].contains("out of paper"), "{told:?}");
    assert!(told[1].contains("ECHO {\\\"n\\\": 2}"), "{told:?}");
}

#[test]
fn nothing_of_hooks_and_servers_is_left_by_any_signal() {
    let stubborn = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsubprocess.Popen(['sleep', '30401'], start_new_session=True)";
    for signal in [Signal::INT, Signal::TERM, Signal::HUP, Signal::KILL] {
        let gate = Gate::closed();
        let provider = ScriptedProvider::always(Reply::text("done").gate(&gate));
        let sandbox = Sandbox::anthropic(&provider);
        // What a server started in a session of its own is beyond the kernel's reach after a SIGKILL.
        let mut launched = server(&sandbox, if matches!(signal, Signal::KILL) { "" } else { stubborn });
        let file = launched["args"][0].as_str().unwrap().to_owned();
        launched["command"] = json!("sh");
        launched["args"] = json!(["-c", format!("python3 {file}; sleep 30402")]);
        settings(&sandbox, &json!({"s": launched, "t": server(&sandbox, "")}));
        let running = Claw::new(CLAW, &sandbox).args(["-p", "GO"]).spawn();
        gate.wait_for_waiting(1, BOUND);
        let began = Instant::now();
        running.signal(signal);
        let output = running.wait(BOUND);
        assert!(began.elapsed() < Duration::from_secs(3), "{:?} {output}", began.elapsed());
        gate.open();
        if matches!(signal, Signal::KILL) {
            claw_kit::wait_until("servers are gone", Duration::from_secs(3), || {
                processes_with(&own(&sandbox)) == 0
            });
            continue;
        }
        for left in ["sleep 30401", "sleep 30402", &own(&sandbox)] {
            assert_eq!(processes_with(left), 0, "{left} {output}");
        }
    }
}

#[test]
fn servers_are_added_listed_shown_and_removed() {
    let sandbox = Sandbox::new();
    let file = sandbox.write_home("server.py", SERVER).display().to_string();
    let claw = |args: &[&str]| Claw::new(CLAW, &sandbox).args(args).run(BOUND);
    claw(&["mcp", "add", "one", "--env", "A=b", "--", "python3", &file]).expect_code(0);
    claw(&["mcp", "add", "gone", "/no/such/program"]).expect_code(0);
    claw(&["mcp", "add", "far", "-t", "http", "-H", "X-Key: k", "http://127.0.0.1:1/mcp"]).expect_code(0);
    let text = std::fs::read_to_string(sandbox.home().join(".claw/settings.json")).unwrap();
    let kept: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(kept["mcpServers"]["far"]["headers"]["X-Key"], "k");
    let listed = claw(&["mcp", "list", "--output-format", "json"]).expect_code(0);
    let states: Vec<(String, String)> = listed
        .json()
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["name"].as_str().unwrap().to_owned(), one["state"].as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(states[0], ("one".to_owned(), "connected".to_owned()), "{listed}");
    assert!(states[1].1 != "connected" && states[2].1 != "connected", "{listed}");
    let shown = claw(&["mcp", "get", "one"]).expect_code(0);
    assert!(shown.stdout.contains("mcp__one__echo") && !shown.stdout.contains("A=b"), "{shown}");
    let table = claw(&["mcp", "list"]).expect_code(0);
    assert!(table.stdout.contains("/no/such/program"), "{table}");
    claw(&["mcp", "remove", "gone"]).expect_code(0);
    let again = claw(&["mcp", "remove", "gone"]);
    assert!(again.stderr.contains("holds no server `gone`"), "{again}");
    claw(&["mcp", "get", "gone"]).expect_code(2);
}

/// The real servers of the test beds; `CLAW_TESTBEDS` names the folder.
#[test]
fn an_agent_calls_a_tool_of_each_real_server() {
    let Ok(beds) = std::env::var("CLAW_TESTBEDS") else { return };
    let beds = PathBuf::from(beds);
    let (node, python) = (beds.join("mcp/node_modules/.bin"), beds.join("v-mcp/bin"));
    // The first call waits for all of them: some take longer than the first prompt waits.
    let provider = calls(&[
        ("list_mcp_resources", json!({})),
        ("mcp__everything__echo", json!({"message": "hi"})),
        ("mcp__filesystem__list_directory", json!({"path": "."})),
        ("mcp__memory__read_graph", json!({})),
        ("mcp__git__git_status", json!({"repo_path": "."})),
        ("mcp__time__get_current_time", json!({"timezone": "UTC"})),
    ]);
    let sandbox = Sandbox::anthropic(&provider).with_git();
    let project = sandbox.project().display().to_string();
    let at = |folder: &PathBuf, name: &str, args: &[&str]| json!({"command": folder.join(name), "args": args, "startTimeout": 60});
    settings(
        &sandbox,
        &json!({
            "everything": at(&node, "mcp-server-everything", &["stdio"]),
            "filesystem": at(&node, "mcp-server-filesystem", &[&project]),
            "memory": at(&node, "mcp-server-memory", &[]),
            "git": at(&python, "mcp-server-git", &["--repository", &project]),
            "time": at(&python, "mcp-server-time", &["--local-timezone", "UTC"]),
        }),
    );
    let output = print(&sandbox, &[]).expect_code(0);
    let told = results(&provider);
    for (text, wanted) in told.iter().zip(["everything", "hi", "", "entities", "branch", "UTC"]) {
        assert!(text.contains(wanted), "{wanted}: {told:#?} {output}");
    }
}
