//! The shell and its actor with a scripted model and tools, in paused time.

pub(crate) mod fakes;

use crate::conversation::NotSteered;
use crate::event::AgentEvent;
use crate::outcome::{AgentEnd, FailureClass};
use crate::permission::Permission;
use crate::request::AgentRequest;
use claw_kernel::durable::{self, Mode, Sync};
use claw_providers::error::ErrorClass;
use claw_providers::event::StreamEvent;
use claw_providers::message::Block;
use fakes::{Desk, Reply, Said, call, calls, say};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

fn completed(text: &str) -> AgentEnd {
    AgentEnd::Completed { text: text.into(), output: None }
}

fn class(end: &AgentEnd) -> Option<FailureClass> {
    match end {
        AgentEnd::Failed { class, .. } => Some(*class),
        AgentEnd::Completed { .. } | AgentEnd::OutOfBudget { .. } | AgentEnd::Cancelled => None,
    }
}

#[tokio::test(start_paused = true)]
async fn three_tools_run_at_the_same_time_and_their_results_keep_the_order() {
    let desk = Desk::new([
        calls([
            ("wait", json!({"ms": 3_000})),
            ("wait", json!({"ms": 1_000})),
            ("wait", json!({"ms": 2_000})),
        ]),
        say("done"),
    ]);
    let start = Instant::now();
    let outcome = desk.run().await;
    assert_eq!(outcome.end, completed("done"));
    assert!(start.elapsed() < Duration::from_millis(3_500), "{:?}", start.elapsed());
    let results: Vec<String> = desk.results_of_request(1);
    assert_eq!(results, ["waited 3000", "waited 1000", "waited 2000"]);
    assert_eq!((outcome.turns, outcome.tool_calls["wait"]), (2, 3));
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_a_tool_is_an_error_result() {
    let desk = Desk::new([calls([("panic", json!({})), ("echo", json!({"text": "fine"}))]), say("went on")]);
    assert_eq!(desk.run().await.end, completed("went on"));
    let results = desk.results_of_request(1);
    assert!(results[0].contains("failed unexpectedly: boom"), "{results:?}");
    assert_eq!(results[1], "fine");
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_model_is_an_outcome() {
    let desk = Desk::new([Reply::Panic]);
    assert_eq!(class(&desk.run().await.end), Some(FailureClass::Panic));
}

#[tokio::test(start_paused = true)]
async fn a_silent_model_fails_with_timeout_and_a_tool_may_take_longer() {
    let desk = Desk::new([calls([("wait", json!({"ms": 600_000}))]), Reply::Hang(Said::Text("half".into()))]);
    let start = Instant::now();
    let outcome = desk.run().await;
    assert_eq!(class(&outcome.end), Some(FailureClass::Timeout), "{:?}", outcome.end);
    assert!(start.elapsed() >= Duration::from_secs(660) && start.elapsed() < Duration::from_secs(665));
    assert_eq!(outcome.turns, 1);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_the_rate_limit_is_not_silence() {
    let desk = Desk::new([Reply::WaitThen(Duration::from_secs(300), "late".into())]);
    assert_eq!(desk.run().await.end, completed("late"));
}

#[tokio::test(start_paused = true)]
async fn a_cancel_while_asking_ends_at_once() {
    let desk = Desk::new([Reply::Hang(Said::Nothing)]);
    let running = desk.start();
    desk.model.asked(1).await;
    desk.cancel.cancel();
    assert_eq!(running.outcome().await.end, AgentEnd::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_before_the_start_asks_nothing() {
    let desk = Desk::new([say("never")]);
    desk.cancel.cancel();
    let outcome = desk.run().await;
    assert_eq!((outcome.end, desk.model.requests().len()), (AgentEnd::Cancelled, 0));
}

#[tokio::test(start_paused = true)]
async fn a_transcript_that_cannot_be_opened_is_an_outcome_that_names_it() {
    let desk = Desk::new([say("never")]);
    durable::replace(desk.transcript().parent().unwrap(), b"a file", Mode::Private, Sync::No).unwrap();
    let AgentEnd::Failed { class, message, .. } = desk.run().await.end else { panic!() };
    assert_eq!(class, FailureClass::Tool);
    assert!(message.contains("state"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_while_tools_run_answers_every_call_and_a_resume_goes_on() {
    let desk = Desk::new([calls([
        ("wait", json!({"ms": 400_000})),
        ("echo", json!({"text": "quick"})),
        ("stubborn", json!({})),
    ])]);
    let running = desk.start();
    desk.until(|event| matches!(event, AgentEvent::ToolEnded { tool, .. } if tool == "echo")).await;
    let start = Instant::now();
    running.cancel_because("a sibling failed");
    let outcome = running.outcome().await;
    assert_eq!(outcome.end, AgentEnd::Cancelled);
    assert!(start.elapsed() <= Duration::from_secs(2), "{:?}", start.elapsed());
    // The next attempt sends what is there, and only that.
    desk.model.then([say("resumed")]);
    let outcome = desk.again().await;
    assert_eq!((outcome.end, outcome.turns), (completed("resumed"), 2));
    let say = "cancelled because a sibling failed";
    assert_eq!(desk.results_of_request(1), [say, "quick", say]);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_waits_ends_with_the_cancel() {
    let mut desk = Desk::new([calls([("outside", json!({"path": "/etc/x"}))])]);
    desk.ask_forever();
    let running = desk.start();
    desk.until(|event| matches!(event, AgentEvent::Asking { .. })).await;
    desk.cancel.cancel();
    assert_eq!(running.outcome().await.end, AgentEnd::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn nobody_to_ask_is_a_denial_that_names_the_flag_and_the_agent_goes_on() {
    let desk = Desk::new([calls([("outside", json!({"path": "/etc/x"}))]), say("without it")]);
    let outcome = desk.run().await;
    assert_eq!(outcome.end, completed("without it"));
    assert_eq!(outcome.denials.len(), 1);
    assert!(
        outcome.denials[0].reason.contains("--permission-mode danger-full-access"),
        "{:?}",
        outcome.denials
    );
    assert!(desk.results_of_request(1)[0].contains("nobody is there to ask"));
    assert_eq!(desk.ran(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn calls_that_write_one_file_run_in_their_order() {
    let write = |tag: &str, ms: u64| ("inside", json!({"path": "f", "tag": tag, "ms": ms}));
    let desk = Desk::new([calls([write("one", 500), write("two", 300), write("three", 100)]), say("done")]);
    desk.run().await;
    assert_eq!(desk.ran(), ["one", "two", "three"]);
    assert_eq!(
        desk.effects.lines(),
        ["intent 1.1", "done 1.1", "intent 1.2", "done 1.2", "intent 1.3", "done 1.3"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_cannot_be_written_ends_the_agent_before_the_effect() {
    let desk = Desk::new([calls([("inside", json!({"path": "f", "tag": "never"}))]), say("never")]);
    desk.effects.fail();
    let outcome = desk.run().await;
    assert_eq!(class(&outcome.end), Some(FailureClass::Tool), "{:?}", outcome.end);
    assert_eq!((desk.ran(), desk.model.requests().len()), (Vec::new(), 1));
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_taken_out_where_it_enters() {
    let desk = Desk::new([calls([("echo", json!({"text": "key=hunter2hunter2 end"}))]), say("done")]);
    desk.run().await;
    let sent = desk.results_of_request(1);
    assert!(!sent[0].contains("hunter2") && sent[0].contains(" end"), "{sent:?}");
    // The model's own words are its own; its result in the transcript is the redacted one.
    let kept = std::fs::read_to_string(desk.transcript()).unwrap();
    assert!(!kept.lines().any(|line| line.contains("tool_result") && line.contains("hunter2")));
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_try_leaves_nothing_in_the_history() {
    let desk = Desk::new([Reply::WithdrawnThen("PARTIAL-ONE".into(), "SECOND-TRY-OK".into())]);
    let outcome = desk.run().await;
    assert_eq!(outcome.end, completed("SECOND-TRY-OK"));
    let kept = std::fs::read_to_string(desk.transcript()).unwrap();
    let abandoned: Vec<&str> = kept.lines().filter(|line| line.contains("PARTIAL-ONE")).collect();
    assert!(abandoned.len() == 1 && abandoned[0].contains("\"abandoned\""), "{kept}");
    let news = desk.news();
    assert!(news.iter().any(|event| matches!(event, AgentEvent::Withdrawn)));
}

#[tokio::test(start_paused = true)]
async fn a_failed_request_tells_its_class_and_what_had_come() {
    let desk = Desk::new([Reply::Fail(ErrorClass::Overloaded, "so far".into())]);
    let AgentEnd::Failed { class, message, partial, .. } = desk.run().await.end else { panic!() };
    assert_eq!((class, partial.as_deref()), (FailureClass::Overloaded, Some("so far")));
    assert!(message.contains("ended the stream early"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_message_of_a_person_is_sent_at_the_next_step_and_kept() {
    let desk = Desk::new([calls([("wait", json!({"ms": 1_000}))]), say("ok")]);
    let running = desk.start();
    desk.until(|event| matches!(event, AgentEvent::ToolStarted { .. })).await;
    running.steer("use b").unwrap();
    // However often the conversation takes them in, no more than these wait.
    let said = (0..40).filter(|_| running.steer("more").is_ok()).count();
    // The clock is paused: everybody had their turn, and the tool still runs.
    tokio::time::advance(Duration::from_millis(500)).await;
    assert_eq!((said, running.steer("too much")), (15, Err(NotSteered::Full)));
    let orders = running.orders();
    running.outcome().await;
    assert_eq!(orders.steer("too late"), Err(NotSteered::Ended));
    let requests = desk.model.requests();
    assert!(requests[1].messages.last().unwrap().text().starts_with("use b"));
    assert!(std::fs::read_to_string(desk.transcript()).unwrap().contains("use b"));
}

#[tokio::test(start_paused = true)]
async fn text_deltas_are_coalesced() {
    let deltas = (0..1_000).map(|_| StreamEvent::TextDelta { index: 0, text: "abcd".into() }).collect();
    let desk = Desk::new([Reply::Stream(deltas, "abcd".repeat(1_000))]);
    desk.run().await;
    let texts: Vec<String> = desk
        .news()
        .into_iter()
        .filter_map(|e| if let AgentEvent::Text(t) = e { Some(t) } else { None })
        .collect();
    assert_eq!(texts.concat().len(), 4_000);
    assert!(texts.len() <= 10, "{}", texts.len());
}

#[tokio::test(start_paused = true)]
async fn the_next_request_after_a_kill_is_the_one_that_would_have_been_sent() {
    let script = || [calls([("echo", json!({"text": "A"})), ("echo", json!({"text": "B"}))]), say("done")];
    let desk = Desk::new(script());
    desk.run().await;
    let whole = desk.model.requests()[1].messages.clone();
    // Killed right after the turn was kept.
    let kept = desk.news().into_iter().find_map(|event| match event {
        AgentEvent::TurnKept { turn: 1, bytes, .. } => Some(bytes),
        _ => None,
    });
    let bytes = std::fs::read(desk.transcript()).unwrap();
    let bytes = &bytes[..usize::try_from(kept.unwrap()).unwrap()];
    durable::replace(&desk.transcript(), bytes, Mode::Private, Sync::No).unwrap();
    desk.model.then([say("done")]);
    desk.again().await;
    assert_eq!(desk.model.requests()[2].messages, whole);
}

#[tokio::test(start_paused = true)]
async fn a_completed_transcript_gives_its_outcome_again_without_a_request() {
    let desk = Desk::new([say("once")]);
    desk.run().await;
    let outcome = desk.again().await;
    assert_eq!((outcome.end, desk.model.requests().len()), (completed("once"), 1));
}

#[tokio::test(start_paused = true)]
async fn a_refused_answer_is_told_and_the_conversation_goes_on() {
    let mut desk = Desk::new([say("not it")]);
    desk.run().await;
    desk.fault = Some("the answer is not JSON, key=hunter2hunter2".into());
    desk.model.then([say("[]")]);
    let outcome = desk.again().await;
    assert_eq!((outcome.end, outcome.turns), (completed("[]"), 2));
    let told = desk.model.requests()[1].messages.last().unwrap().text();
    assert!(told.starts_with("The answer was refused: the answer is not JSON"), "{told}");
    assert!(!told.contains("hunter2"), "{told}");
    // Kept: a later attempt that nobody refuses gives the second answer.
    desk.fault = None;
    assert_eq!(desk.again().await.end, completed("[]"));
    assert_eq!(desk.model.requests().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_refused_structured_answer_is_told_behind_its_result() {
    let answer = || calls([("structured_output", json!({"n": 7}))]);
    let mut desk = Desk::new([answer(), answer()]);
    desk.schema = Some(Arc::new(json!({"type": "object", "required": ["n"]})));
    desk.run().await;
    desk.fault = Some("the file out.txt is missing".into());
    assert!(matches!(desk.again().await.end, AgentEnd::Completed { output: Some(_), .. }));
    let request = &desk.model.requests()[1];
    assert!(request.messages.last().unwrap().text().contains("out.txt is missing"));
}

#[tokio::test(start_paused = true)]
async fn a_fault_means_nothing_to_a_conversation_that_has_not_ended() {
    let mut desk = Desk::new([Reply::Fail(ErrorClass::Overloaded, String::new())]);
    desk.run().await;
    desk.fault = Some("never told".into());
    desk.model.then([say("done")]);
    assert_eq!(desk.again().await.end, completed("done"));
    assert_eq!(desk.model.requests()[1].messages.len(), 1);
}

/// The transcript of an attempt that was killed while the calls of its first turn ran.
fn killed_in_its_calls(desk: &Desk) {
    let text = std::fs::read_to_string(desk.transcript()).unwrap();
    let kept: String =
        text.lines().take_while(|line| !line.contains("tool_result")).flat_map(|line| [line, "\n"]).collect();
    durable::replace(&desk.transcript(), kept.as_bytes(), Mode::Private, Sync::No).unwrap();
}

#[tokio::test(start_paused = true)]
async fn after_a_kill_what_only_reads_runs_again_and_what_writes_does_not() {
    let desk = Desk::new([
        calls([("inside", json!({"path": "f", "tag": "once"})), ("echo", json!({"text": "read"}))]),
        say("done"),
    ]);
    desk.run().await;
    killed_in_its_calls(&desk);
    // And killed once more in the same place: nothing was written for the calls.
    killed_in_its_calls(&desk);
    desk.model.then([say("looked")]);
    let outcome = desk.again().await;
    assert_eq!((outcome.end, outcome.turns, desk.ran().len()), (completed("looked"), 2, 1));
    let told = "interrupted: state unknown, check before you repeat it";
    assert_eq!(desk.results_of_request(2), [told, "read"]);
}

#[tokio::test(start_paused = true)]
async fn a_kept_turn_says_what_the_attempt_has_spent() {
    let desk = Desk::new([calls([("echo", json!({"text": "A"}))]), say("done")]);
    desk.run().await;
    let spent: Vec<u64> = desk
        .news()
        .into_iter()
        .filter_map(|e| if let AgentEvent::TurnKept { usage, .. } = e { Some(usage.input) } else { None })
        .collect();
    assert_eq!(spent, [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_secret_in_a_long_command_leaves_nothing_at_the_cut_of_its_subject() {
    let command = format!("{}hunter2hunter2", "x".repeat(194));
    let desk = Desk::new([calls([("echo", json!({"text": "", "command": command}))]), say("done")]);
    desk.run().await;
    let shown = desk.news().into_iter().find_map(|event| match event {
        AgentEvent::ToolStarted { subject, .. } => Some(subject),
        _ => None,
    });
    assert!(!shown.unwrap().contains("hunt"));
}

#[tokio::test(start_paused = true)]
async fn a_torn_transcript_is_repaired_and_its_bytes_are_kept_beside_it() {
    let desk = Desk::new([calls([("echo", json!({"text": "A"}))]), Reply::Hang(Said::Nothing)]);
    let running = desk.start();
    desk.model.asked(2).await;
    desk.cancel.cancel();
    running.outcome().await;
    let mut bytes = std::fs::read(desk.transcript()).unwrap();
    bytes.extend_from_slice(b"{\"v\":1,\"type\":\"mes");
    durable::replace(&desk.transcript(), &bytes, Mode::Private, Sync::No).unwrap();
    desk.model.then([say("went on")]);
    assert_eq!(desk.again().await.end, completed("went on"));
    let notes: Vec<AgentEvent> = desk
        .news()
        .into_iter()
        .filter(|e| matches!(e, AgentEvent::Note(text) if text.contains("torn")))
        .collect();
    assert_eq!(notes.len(), 1);
    let beside = std::fs::read_dir(desk.transcript().parent().unwrap()).unwrap();
    assert!(beside.flatten().any(|entry| entry.file_name().to_string_lossy().contains("torn-at")));
}

#[tokio::test(start_paused = true)]
async fn a_structured_answer_is_checked_and_told() {
    let mut desk = Desk::new([
        calls([("structured_output", json!({"n": "x"}))]),
        calls([("structured_output", json!({"n": 7}))]),
    ]);
    desk.schema = Some(Arc::new(json!({
        "type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}
    })));
    let AgentEnd::Completed { output, .. } = desk.run().await.end else { panic!() };
    assert_eq!(output, Some(json!({"n": 7})));
    assert!(desk.model.requests()[0].tools.iter().any(|tool| tool.name == "structured_output"));
}

#[tokio::test(start_paused = true)]
async fn a_service_that_holds_to_a_schema_is_asked_for_a_document_where_no_tool_is_needed() {
    let mut desk = Desk::new([say("{\"n\": 7}")]);
    desk.schema = Some(Arc::new(json!({"type": "object", "required": ["n"]})));
    desk.tools = Some(Vec::new());
    desk.model.hold_to_schema();
    let AgentEnd::Completed { output, .. } = desk.run().await.end else { panic!() };
    assert_eq!(output, Some(json!({"n": 7})));
    let request = &desk.model.requests()[0];
    assert!(request.tools.is_empty() && request.answer_schema.is_some());
}

#[tokio::test(start_paused = true)]
async fn read_only_denies_a_write_at_once() {
    let mut desk = Desk::new([calls([("inside", json!({"path": "f", "tag": "x"}))]), say("ok")]);
    desk.permission = Permission::READ_ONLY;
    let outcome = desk.run().await;
    assert_eq!((outcome.denials.len(), desk.ran().len()), (1, 0));
    assert!(outcome.denials[0].reason.contains("read-only"));
}

#[tokio::test(start_paused = true)]
async fn the_first_request_is_small() {
    let desk = Desk::with_tools([say("x")], claw_tools::registry::Registry::builtin());
    desk.run().await;
    let request = &desk.model.requests()[0];
    let tools: usize =
        request.tools.iter().map(|t| t.description.len() + t.input_schema.to_string().len()).sum();
    assert!(request.system.len() + tools < 16_000, "{} {tools}", request.system.len());
    assert!(tools > 1_000);
}

#[tokio::test]
async fn a_thousand_agents_share_what_they_have_in_common() {
    let desk = Desk::new(std::iter::empty());
    desk.model.always(calls([("echo", json!({"text": "x"}))]), say("done"));
    let running: Vec<_> = (0..1_000).map(|n| desk.start_as(&format!("n={n}"))).collect();
    for agent in running {
        assert_eq!(agent.outcome().await.end, completed("done"));
    }
    let requests = desk.model.requests();
    assert_eq!(requests.len(), 2_000);
    assert!(requests.iter().all(|r| Arc::ptr_eq(&r.system, &requests[0].system)));
    assert!(requests.iter().all(|r| Arc::ptr_eq(&r.tools, &requests[0].tools)));
}

#[test]
fn a_request_is_cheap_to_clone() {
    fn clones<T: Clone>() {}
    clones::<AgentRequest>();
    assert!(matches!(call("a", "b", json!({})), Block::ToolUse { .. }));
}
