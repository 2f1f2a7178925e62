use super::*;
use crate::conversation::fault;
use claw_kernel::ids::AgentId;
use claw_providers::message::Block;
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;

fn never(_: &str, _: &Value) -> bool {
    false
}

fn read(bytes: &[u8]) -> Loaded {
    load(bytes, &never).unwrap()
}

fn prompt() -> Record {
    Record::Prompt { text: "go é".into() }
}

fn said(turn: u32, content: Vec<Block>) -> Record {
    let stop = Some(StopReason::EndTurn);
    Record::Message { turn, message: Message { role: Role::Assistant, content }, stop }
}

fn told(turn: u32, content: Vec<Block>) -> Record {
    Record::Message { turn, message: Message { role: Role::User, content }, stop: None }
}

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

fn call(id: &str) -> Block {
    Block::ToolUse { id: id.into(), name: "bash".into(), input: json!({"command": "ls"}) }
}

fn result(id: &str, content: &str) -> Block {
    Block::ToolResult { tool_use_id: id.into(), content: content.into(), images: Vec::new(), is_error: false }
}

fn lines(records: &[Record]) -> Vec<u8> {
    records.iter().flat_map(Record::line).collect()
}

/// What the conversation writes for calls that are open.
fn results_of_open(loaded: &Loaded) -> Option<Message> {
    let content: Vec<Block> = loaded.open.iter().map(|call| result(&call.id, "again")).collect();
    (!content.is_empty()).then_some(Message { role: Role::User, content })
}

fn is_valid(loaded: &Loaded) -> Option<String> {
    let history = loaded.history.iter().cloned().chain(results_of_open(loaded));
    let history: Vec<Arc<Message>> = history.map(Arc::new).collect();
    fault(&history)
}

/// A conversation of all kinds of records.
fn whole() -> Vec<Record> {
    vec![
        prompt(),
        Record::Meta { agent: AgentId::fresh(), label: "a/b".into() },
        Record::Usage { usage: Usage::NOTHING, model: Some("m".into()) },
        said(
            1,
            vec![
                Block::Thinking {
                    thinking: "hm\u{2028}".into(),
                    signature: Some("c2ln+/=".into()),
                    model: Some("m".into()),
                },
                text("two calls"),
                call("a"),
                call("b"),
            ],
        ),
        told(1, vec![result("a", "A"), result("b", "line\nline")]),
        Record::Abandoned { blocks: vec![text("thrown away")] },
        told(1, vec![text("steer")]),
        said(2, vec![text("more"), call("c")]),
        told(2, vec![result("c", "C")]),
        said(3, vec![text("done")]),
        Record::End(End::Completed { text: "done".into(), output: Some(json!({"n": 1.5})) }),
    ]
}

#[test]
fn a_whole_transcript_gives_the_history_and_the_end() {
    let loaded = read(&lines(&whole()));
    assert_eq!(loaded.repairs, []);
    assert_eq!((loaded.turns, loaded.history.len(), is_valid(&loaded)), (3, 6, None));
    assert_eq!(loaded.prompt.as_deref(), Some("go é"));
    assert_eq!(loaded.end, Some(End::Completed { text: "done".into(), output: Some(json!({"n": 1.5})) }));
    assert_eq!(loaded.last_stop, Some(StopReason::EndTurn));
    let Block::Thinking { thinking, signature, .. } = &loaded.history[1].content[0] else { panic!() };
    assert_eq!((thinking.as_str(), signature.as_deref()), ("hm\u{2028}", Some("c2ln+/=")));
}

/// Written by the first version, byte for byte. Never edited: a later version adds its own.
const VERSION_1: &str = r#"{"v":1,"type":"prompt","text":"go"}
{"v":1,"type":"meta","agent":"AGENT","label":"fix@2/edit"}
{"v":1,"type":"usage","usage":{"input":10,"output":5,"cache_read":1,"cache_write":2,"usd":0.5},"model":"m"}
{"v":1,"type":"message","turn":1,"message":{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"c2ln","model":"m"},{"type":"redacted_thinking","data":"ZA=="},{"type":"text","text":"look"},{"type":"tool_use","id":"t","name":"bash","input":{"command":"ls"}}]},"stop":"tool_use"}
{"v":1,"type":"message","turn":1,"message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"no","is_error":true}]}}
{"v":1,"type":"abandoned","blocks":[{"type":"text","text":"half"}]}
{"v":1,"type":"message","turn":2,"message":{"role":"assistant","content":[{"type":"text","text":"done"}]},"stop":"end_turn"}
{"v":1,"type":"end","end":"completed","text":"done"}
"#;

#[test]
fn a_transcript_of_version_1_stays_readable_and_is_what_is_written() {
    let text = VERSION_1.replace("AGENT", AgentId::fresh().as_str());
    let loaded = read(text.as_bytes());
    assert_eq!(
        (loaded.repairs.len(), loaded.turns, loaded.history.len(), is_valid(&loaded)),
        (0, 2, 4, None)
    );
    assert_eq!(loaded.usage.usd, Some(0.5));
    let again: Vec<u8> =
        text.lines().flat_map(|line| serde_json::from_str::<Record>(line).unwrap().line()).collect();
    assert_eq!(String::from_utf8(again).unwrap(), text);
}

#[test]
fn a_torn_last_line_is_cut_and_said() {
    let mut bytes = lines(&whole()[..5]);
    let whole = bytes.len();
    bytes.extend_from_slice(b"{\"v\":1,\"type\":\"mess");
    let loaded = read(&bytes);
    assert_eq!(loaded.repairs, [Repair::TornTail { offset: whole as u64, bytes: 19 }]);
    assert_eq!(loaded.whole, whole as u64);
}

#[test]
fn a_bad_line_in_the_middle_is_skipped_with_its_place() {
    let mut bytes = lines(&whole()[..2]);
    let at = bytes.len() as u64;
    bytes.extend(std::iter::repeat_n(0u8, 417));
    bytes.push(b'\n');
    bytes.extend(lines(&[said(1, vec![text("LAST-ANSWER-777")])]));
    let loaded = read(&bytes);
    assert_eq!(loaded.repairs, [Repair::BadLine { line: 3, offset: at }]);
    assert_eq!(loaded.history.last().unwrap().text(), "LAST-ANSWER-777");
}

#[test]
fn an_open_call_before_other_messages_is_told_that_it_was_interrupted() {
    let records = [prompt(), said(1, vec![call("a"), call("b")]), told(1, vec![result("b", "B")])];
    let loaded = load(&lines(&records), &|_, _| true).unwrap();
    let Block::ToolResult { content, is_error, .. } = &loaded.history[2].content[0] else { panic!() };
    assert!(*is_error);
    assert_eq!(content, "interrupted: state unknown, check before you repeat it");
    assert_eq!((loaded.repairs.len(), loaded.open.len(), is_valid(&loaded)), (1, 0, None));
}

#[test]
fn the_calls_of_the_last_message_stay_open_and_those_that_only_read_are_known() {
    let read = Block::ToolUse { id: "b".into(), name: "read_file".into(), input: json!({}) };
    let bytes = lines(&[prompt(), said(1, vec![call("a"), read])]);
    let loaded = load(&bytes, &|name, _| name == "read_file").unwrap();
    let open: Vec<(&str, bool)> =
        loaded.open.iter().map(|call| (call.id.as_str(), call.reads_only)).collect();
    assert_eq!(open, [("a", false), ("b", true)]);
    let tools = |tool: &str| tool.to_owned();
    assert_eq!(
        loaded.repairs,
        [Repair::Orphan { tool: tools("bash") }, Repair::Again { tool: tools("read_file") }]
    );
    assert_eq!((loaded.history.len(), is_valid(&loaded)), (2, None));
}

#[test]
fn stray_results_are_dropped_and_neighbours_merged() {
    let records = [
        prompt(),
        told(0, vec![result("x", "stray"), text("more")]),
        said(1, vec![call("a")]),
        told(1, vec![text("first"), result("a", "A"), result("a", "again"), result("y", "stray")]),
        said(2, vec![text("one")]),
        said(2, vec![text(" ")]),
        said(2, vec![text("two")]),
    ];
    let loaded = read(&lines(&records));
    assert_eq!(loaded.repairs, [Repair::StrayResults(3)]);
    assert_eq!((loaded.history.len(), is_valid(&loaded)), (4, None));
    assert!(matches!(loaded.history[2].content.as_slice(), [Block::ToolResult { .. }, Block::Text { .. }]));
    assert_eq!(loaded.history[3].text(), "onetwo");
}

#[test]
fn a_later_version_is_refused_and_a_record_without_its_newline_is_kept() {
    let error = load(b"{\"v\":2,\"type\":\"prompt\",\"text\":\"x\"}\n", &never).unwrap_err();
    assert!(error.to_string().contains("version 2"), "{error}");
    let mut bytes = lines(&[prompt()]);
    bytes.pop();
    let loaded = read(&bytes);
    assert!(loaded.unended && loaded.repairs.is_empty());
    assert_eq!(loaded.history.len(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_truncation_loads_and_gives_a_valid_request(cut in 0usize..2_000) {
        let bytes = lines(&whole());
        let cut = cut.min(bytes.len());
        let loaded = read(&bytes[..cut]);
        if !loaded.history.is_empty() {
            prop_assert_eq!(is_valid(&loaded), None);
        }
        // What follows is appended to what is whole, and loads again.
        let mut bytes = bytes[..usize::try_from(loaded.whole).unwrap()].to_vec();
        if loaded.unended {
            bytes.push(b'\n');
        }
        let mut history = loaded.history.clone();
        if let Some(message) = results_of_open(&loaded) {
            history.push(message.clone());
            bytes.extend(Record::Message { turn: loaded.turns, message, stop: None }.line());
        }
        let again = read(&bytes);
        prop_assert_eq!(again.repairs, []);
        prop_assert_eq!(again.history, history);
    }

    #[test]
    fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..1_500) {
        let mut all = lines(&whole());
        let at = at.min(all.len());
        all.splice(at..at, bytes);
        let loaded = load(&all, &never);
        if let Ok(loaded) = loaded && !loaded.history.is_empty() {
            prop_assert_eq!(is_valid(&loaded), None);
        }
    }
}
