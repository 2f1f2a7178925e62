use super::super::history::fault;
use super::super::steering::Room;
use super::super::toolbox::ToolNames;
use super::*;
use claw_providers::event::{CutCall, CutReason};
use claw_providers::usage::Usage;
use claw_tools::registry::Registry;
use proptest::prelude::*;
use serde_json::json;

fn toolbox(answer: Option<Arc<AnswerSchema>>) -> Arc<Toolbox> {
    let names = ToolNames::of(&["bash", "read_file"], &[]);
    Arc::new(Toolbox::new(Arc::new(Registry::builtin()), &names, answer))
}

fn schema() -> Arc<AnswerSchema> {
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    Arc::new(AnswerSchema::new(Arc::new(schema)).unwrap())
}

fn conversation(max_turns: Option<u32>, answer: AnswerRule) -> Conversation {
    let called = match &answer {
        AnswerRule::Call(schema) => Some(schema.clone()),
        AnswerRule::Text | AnswerRule::Document(_) => None,
    };
    let rules = Rules {
        max_turns,
        toolbox: toolbox(called),
        answer,
        heeds_stop: false,
        turns_before: 0,
        gives_back: false,
    };
    let mut conversation = Conversation::new(rules, History::from_repaired(vec![Message::user("go")]), 0);
    assert!(asks(&conversation.on(Event::Started(Beginning::default()))));
    conversation
}

fn plain() -> Conversation {
    conversation(None, AnswerRule::Text)
}

fn said(text: &str) -> Steering {
    Room::default().place(vec![Block::Text { text: text.into() }]).unwrap()
}

fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

fn call(id: &str, name: &str) -> Block {
    Block::ToolUse { id: id.into(), name: name.into(), input: json!({"command": "ls"}) }
}

fn answer(blocks: Vec<Block>, stop: StopReason) -> Event {
    Event::Answered { answer: Box::new(whole(blocks, stop)), text_calls: false }
}

fn whole(blocks: Vec<Block>, stop: StopReason) -> Answer {
    Answer {
        blocks,
        stop,
        cut_calls: Vec::new(),
        usage: Usage::NOTHING,
        provider: "p".into(),
        model: "m".into(),
        attempts: 1,
    }
}

fn calls(blocks: Vec<Block>) -> Event {
    answer(blocks, StopReason::ToolUse)
}

fn cut(blocks: Vec<Block>, at: usize) -> Event {
    let mut answer = whole(blocks, StopReason::MaxTokens);
    answer.cut_calls.push(CutCall { block: at, why: CutReason::OutputLimit });
    Event::Answered { answer: Box::new(answer), text_calls: false }
}

fn done(turn: u32, index: u32, text: &str) -> Event {
    let result = CallResult { text: text.into(), ..CallResult::default() };
    Event::CallEnded { call: CallNo { turn, index }, result }
}

fn dropped(turn: u32, index: u32) -> Event {
    let result = CallResult { is_cancelled: true, ..CallResult::error("cancelled") };
    Event::CallEnded { call: CallNo { turn, index }, result }
}

fn stop() -> Event {
    Event::Stopped { end: AgentEnd::Cancelled, say: "cancelled by user".into() }
}

fn asks(commands: &[Command]) -> bool {
    commands.iter().any(|command| matches!(command, Command::Ask { .. }))
}

fn end(commands: &[Command]) -> Option<&AgentEnd> {
    commands.iter().find_map(|command| if let Command::End(end) = command { Some(end) } else { None })
}

fn run(commands: &[Command]) -> Vec<PlannedCall> {
    commands
        .iter()
        .find_map(|c| if let Command::Run(calls) = c { Some(calls.clone()) } else { None })
        .unwrap_or_default()
}

fn class(commands: &[Command]) -> Option<FailureClass> {
    match end(commands) {
        Some(AgentEnd::Failed { class, .. }) => Some(*class),
        Some(AgentEnd::Completed { .. } | AgentEnd::OutOfBudget { .. } | AgentEnd::Cancelled) | None => None,
    }
}

fn results(conversation: &Conversation) -> Vec<(String, String, bool)> {
    let last = conversation.history().last().unwrap();
    let of = |block: &Block| match block {
        Block::ToolResult { tool_use_id, content, is_error, .. } => {
            Some((tool_use_id.clone(), content.clone(), *is_error))
        }
        _ => None,
    };
    last.content.iter().filter_map(of).collect()
}

fn taken_up(answer: AnswerRule, open: Vec<(&str, &str, Value, bool)>) -> (Conversation, Vec<Command>) {
    let open: Vec<OpenCall> = open
        .into_iter()
        .map(|(id, name, input, reads_only)| OpenCall { id: id.into(), name: name.into(), input, reads_only })
        .collect();
    let blocks = open.iter().map(|call| Block::ToolUse {
        id: call.id.clone(),
        name: call.name.clone(),
        input: call.input.clone(),
    });
    let last = Message { role: Role::Assistant, content: blocks.collect() };
    let history = History::from_repaired(vec![Message::user("go"), last]);
    let called = match &answer {
        AnswerRule::Call(schema) => Some(schema.clone()),
        AnswerRule::Text | AnswerRule::Document(_) => None,
    };
    let rules = Rules {
        max_turns: None,
        toolbox: toolbox(called),
        answer,
        heeds_stop: false,
        turns_before: 0,
        gives_back: false,
    };
    let mut it = Conversation::new(rules, history, 3);
    let commands = it.on(Event::Started(Beginning { last_stop: Some(StopReason::ToolUse), open }));
    (it, commands)
}

#[test]
fn of_an_interrupted_batch_what_only_reads_runs_again_and_the_rest_is_told() {
    let (mut it, commands) = taken_up(
        AnswerRule::Text,
        vec![
            ("w", "bash", json!({"command": "make"}), false),
            ("r", "read_file", json!({"path": "f"}), true),
            ("x", "no_such_tool", json!({}), false),
        ],
    );
    let planned: Vec<(CallNo, &str)> = run(&commands).iter().map(|call| (call.no, call.tool)).collect();
    assert_eq!(planned, [(CallNo { turn: 3, index: 2 }, "read_file")]);
    assert!(asks(&it.on(done(3, 2, "the file"))));
    let results = results(&it);
    assert_eq!(
        results[0],
        ("w".into(), "interrupted: state unknown, check before you repeat it".into(), true)
    );
    assert_eq!(results[1], ("r".into(), "the file".into(), false));
    assert!(results[2].1.contains("no tool"), "{results:?}");
    assert_eq!((it.turn(), fault(it.history().messages())), (4, None));
}

#[test]
fn an_interrupted_batch_without_a_reading_call_asks_at_once() {
    let (it, commands) = taken_up(AnswerRule::Text, vec![("w", "bash", json!({"command": "make"}), false)]);
    assert!(asks(&commands) && run(&commands).is_empty());
    assert_eq!(fault(it.history().messages()), None);
}

#[test]
fn an_answer_in_an_interrupted_batch_still_ends_it() {
    let rule = AnswerRule::Call(schema());
    let (_, commands) = taken_up(rule, vec![("a", schema::TOOL, json!({"n": 7}), false)]);
    assert!(
        matches!(end(&commands), Some(AgentEnd::Completed { output: Some(n), .. }) if *n == json!({"n": 7}))
    );
}

#[test]
fn a_text_ends_the_conversation() {
    let mut it = plain();
    let commands = it.on(answer(vec![text("hello")], StopReason::EndTurn));
    assert_eq!(end(&commands), Some(&AgentEnd::Completed { text: "hello".into(), output: None }));
    assert!(it.is_ended() && it.on(stop()).is_empty());
}

#[test]
fn results_go_back_in_the_order_of_the_calls_in_one_message() {
    let mut it = plain();
    let commands = it.on(calls(vec![call("a", "bash"), call("b", "Read"), call("c", "bash")]));
    assert_eq!(run(&commands).iter().map(|c| c.tool).collect::<Vec<_>>(), ["bash", "read_file", "bash"]);
    assert!(it.on(done(1, 3, "three")).is_empty());
    assert!(it.on(done(1, 1, "one")).is_empty());
    assert!(asks(&it.on(done(1, 2, ""))));
    let texts: Vec<_> = results(&it).into_iter().map(|(id, text, _)| (id, text)).collect();
    let want = [("a", "one"), ("b", "(no output)"), ("c", "three")];
    assert_eq!(texts, want.map(|(id, text)| (id.to_owned(), text.to_owned())));
    assert_eq!(fault(it.history().messages()), None);
}

#[test]
fn a_repeated_or_empty_id_is_replaced_by_one_of_claws_own() {
    let mut it = plain();
    it.on(calls(vec![call("call_0", "bash"), call("call_0", "bash")]));
    it.on(done(1, 1, "ONE"));
    it.on(done(1, 2, "TWO"));
    assert_eq!(results(&it).iter().map(|r| r.0.as_str()).collect::<Vec<_>>(), ["call_0", "call_1_2"]);
    it.on(calls(vec![call("call_0", "bash"), call("", "bash"), call("fresh", "bash")]));
    for index in 1..=3 {
        it.on(done(2, index, "x"));
    }
    assert_eq!(
        results(&it).iter().map(|r| r.0.as_str()).collect::<Vec<_>>(),
        ["call_2_1", "call_2_2", "fresh"]
    );
    assert_eq!(fault(it.history().messages()), None);
}

#[test]
fn a_cut_call_is_not_run_and_its_sibling_is() {
    let mut it = plain();
    let commands = it.on(cut(vec![call("a", "bash"), call("b", "bash")], 1));
    assert_eq!(run(&commands).len(), 1);
    assert!(asks(&it.on(done(1, 1, "ok"))));
    let results = results(&it);
    assert!(!results[0].2 && results[1].2 && results[1].1.contains("cut at the output limit"), "{results:?}");
}

#[test]
fn three_identical_cuts_end_with_a_clear_error() {
    let mut it = plain();
    for _ in 0..2 {
        assert!(asks(&it.on(cut(vec![call("", "bash")], 0))));
    }
    let commands = it.on(cut(vec![call("", "bash")], 0));
    assert_eq!(class(&commands), Some(FailureClass::Limit));
    assert_eq!(fault(it.history().messages()), None);
    let mut it = plain();
    for _ in 0..2 {
        it.on(cut(vec![call("", "bash")], 0));
        it.on(cut(vec![call("", "read_file")], 0));
    }
    assert!(!it.is_ended());
}

#[test]
fn unknown_and_withheld_tools_are_error_results_that_help() {
    let mut it = plain();
    let commands = it.on(calls(vec![call("a", "bsah"), call("b", "write_file")]));
    assert!(asks(&commands) && run(&commands).is_empty());
    let results = results(&it);
    assert!(results[0].1.contains("did you mean `bash`"), "{results:?}");
    assert!(results[1].1.contains("`write_file` is not in this agent's set"), "{results:?}");
    assert_eq!(commands.iter().filter(|c| matches!(c, Command::Refused { .. })).count(), 2);
}

#[test]
fn the_turn_limit_keeps_the_last_results() {
    let mut it = conversation(Some(1), AnswerRule::Text);
    it.on(calls(vec![text("I look."), call("a", "bash")]));
    let commands = it.on(done(1, 1, "kept"));
    assert_eq!(class(&commands), Some(FailureClass::Limit));
    let Some(AgentEnd::Failed { message, partial, .. }) = end(&commands) else { panic!() };
    assert!(message.contains("max_turns") && message.contains('1'), "{message}");
    assert_eq!(partial.as_deref(), Some("I look."));
    assert_eq!(results(&it)[0].1, "kept");
}

#[test]
fn a_text_cut_at_the_limit_goes_on_and_is_joined() {
    let mut it = plain();
    assert!(asks(&it.on(answer(vec![text("one ")], StopReason::MaxTokens))));
    let commands = it.on(answer(vec![text("two")], StopReason::EndTurn));
    assert_eq!(end(&commands), Some(&AgentEnd::Completed { text: "one two".into(), output: None }));
    assert_eq!(fault(it.history().messages()), None);
    let mut it = plain();
    it.on(answer(vec![], StopReason::MaxTokens));
    it.on(answer(vec![], StopReason::MaxTokens));
    assert_eq!(class(&it.on(answer(vec![], StopReason::MaxTokens))), Some(FailureClass::Limit));
}

#[test]
fn a_text_that_never_ends_is_kept_and_says_that_it_is_cut() {
    let mut it = plain();
    it.on(answer(vec![text("a ")], StopReason::MaxTokens));
    it.on(answer(vec![text("b ")], StopReason::MaxTokens));
    let commands = it.on(answer(vec![text("c")], StopReason::MaxTokens));
    let Some(AgentEnd::Completed { text, .. }) = end(&commands) else { panic!() };
    assert_eq!(text, "a b c\n[the answer reached the output limit 3 times in a row: it ends here]");
}

#[test]
fn a_pause_goes_on_and_a_refusal_ends_without_a_message() {
    let mut it = plain();
    assert!(asks(&it.on(answer(vec![text("a")], StopReason::PauseTurn))));
    let commands = it.on(answer(vec![text("I cannot.")], StopReason::Refusal));
    assert_eq!(class(&commands), Some(FailureClass::Refused));
    assert!(matches!(&commands[0], Command::KeepAbandoned(blocks) if blocks.len() == 1));
    assert_eq!(it.history().last().unwrap().role, Role::User);
}

#[test]
fn a_right_structured_answer_ends_and_a_call_beside_it_still_runs() {
    let mut it = conversation(None, AnswerRule::Call(schema()));
    let right = Block::ToolUse { id: "s".into(), name: "StructuredOutput".into(), input: json!({"n": 1}) };
    let commands = it.on(calls(vec![right, call("a", "bash")]));
    assert_eq!(run(&commands).len(), 1);
    let commands = it.on(done(1, 2, "x"));
    let Some(AgentEnd::Completed { output, .. }) = end(&commands) else { panic!("{commands:?}") };
    assert_eq!(output, &Some(json!({"n": 1})));
    assert_eq!(fault(it.history().messages()), None);
}

#[test]
fn three_wrong_structured_answers_fail_the_attempt() {
    let mut it = conversation(None, AnswerRule::Call(schema()));
    let wrong =
        || Block::ToolUse { id: String::new(), name: "structured_output".into(), input: json!({"n": "x"}) };
    assert!(asks(&it.on(calls(vec![wrong()]))));
    // An end without the call counts as one; the next request insists on it.
    let commands = it.on(answer(vec![text("done")], StopReason::EndTurn));
    assert!(
        matches!(commands.last(), Some(Command::Ask { forced: Some("structured_output"), .. })),
        "{commands:?}"
    );
    assert_eq!(class(&it.on(calls(vec![wrong()]))), Some(FailureClass::Schema));
    assert_eq!(fault(it.history().messages()), None);
}

#[test]
fn a_document_is_held_to_the_schema() {
    let mut it = conversation(None, AnswerRule::Document(schema()));
    assert!(asks(&it.on(answer(vec![text("{\"n\": \"x\"}")], StopReason::EndTurn))));
    let commands = it.on(answer(vec![text("```json\n{\"n\": 2}\n```")], StopReason::EndTurn));
    let Some(AgentEnd::Completed { output, .. }) = end(&commands) else { panic!("{commands:?}") };
    assert_eq!(output, &Some(json!({"n": 2})));
}

#[test]
fn calls_written_as_text_are_read_only_for_models_that_write_them() {
    let said = "Look:\n```json\n{\"name\":\"bash\",\"arguments\":{\"command\":\"ls\"}}\n```";
    let mut it = plain();
    let event =
        Event::Answered { answer: Box::new(whole(vec![text(said)], StopReason::EndTurn)), text_calls: true };
    let commands = it.on(event);
    assert_eq!(run(&commands)[0].input, json!({"command": "ls"}));
    it.on(done(1, 1, "x"));
    assert_eq!(fault(it.history().messages()), None);
    let commands = plain().on(answer(vec![text(said)], StopReason::EndTurn));
    assert_eq!(end(&commands), Some(&AgentEnd::Completed { text: said.into(), output: None }));
}

#[test]
fn a_cancel_while_calls_run_answers_each_and_asks_no_more() {
    let mut it = plain();
    it.on(calls(vec![call("a", "bash"), call("b", "bash"), call("c", "bash")]));
    it.on(done(1, 2, "came in time"));
    let commands = it.on(stop());
    assert!(matches!(commands.as_slice(), [Command::StopWork]));
    it.on(Event::Steered(said("and another thing")));
    assert!(it.on(dropped(1, 1)).is_empty());
    let commands = it.on(dropped(1, 3));
    assert_eq!(end(&commands), Some(&AgentEnd::Cancelled));
    let texts: Vec<_> = results(&it).into_iter().map(|(_, text, _)| text).collect();
    assert_eq!(texts, ["cancelled by user", "came in time", "cancelled by user"]);
    assert!(it.history().last().unwrap().text().contains("another thing"));
    assert_eq!(fault(it.history().messages()), None);
}

#[test]
fn a_cancel_while_asking_drops_a_late_answer() {
    let mut it = plain();
    assert!(matches!(it.on(stop()).as_slice(), [Command::StopWork]));
    let commands = it.on(calls(vec![call("a", "bash")]));
    assert!(matches!(commands.as_slice(), [Command::KeepAbandoned(_), Command::End(AgentEnd::Cancelled)]));
    assert_eq!((it.history().messages().len(), it.turn()), (1, 0));
}

#[test]
fn steering_is_put_in_at_the_next_step() {
    let mut it = plain();
    it.on(calls(vec![call("a", "bash")]));
    assert!(it.on(Event::Steered(said("use b instead"))).is_empty());
    it.on(done(1, 1, "x"));
    let last = it.history().last().unwrap().clone();
    assert!(matches!(last.content.as_slice(), [Block::ToolResult { .. }, Block::Text { .. }]));
    it.on(Event::Steered(said("and c")));
    assert!(asks(&it.on(answer(vec![text("done")], StopReason::EndTurn))));
    assert_eq!(it.history().last().unwrap().text(), "and c");
    assert_eq!(fault(it.history().messages()), None);
}

#[test]
fn an_answer_that_was_given_before_the_person_was_heard_is_not_the_last_word() {
    let mut it = conversation(None, AnswerRule::Call(schema()));
    let right = Block::ToolUse { id: "s".into(), name: "StructuredOutput".into(), input: json!({"n": 1}) };
    it.on(calls(vec![right, call("a", "bash")]));
    it.on(Event::Steered(said("count b too")));
    let commands = it.on(done(1, 2, "x"));
    assert!(asks(&commands) && end(&commands).is_none());
    assert_eq!(fault(it.history().messages()), None);
}

#[test]
fn thinking_goes_back_byte_for_byte_and_in_order() {
    let blocks = vec![
        Block::Thinking {
            thinking: String::new(),
            signature: Some("c2ln+/=".into()),
            model: Some("m".into()),
        },
        Block::RedactedThinking { data: "ZGF0YQ==".into(), model: Some("m".into()) },
        text("look"),
        Block::Thinking { thinking: " more ".into(), signature: Some("x".into()), model: Some("m".into()) },
        call("t", "bash"),
    ];
    let mut it = plain();
    it.on(calls(blocks.clone()));
    it.on(done(1, 1, "x"));
    assert_eq!(it.history().messages()[1].content, blocks);
}

#[test]
fn a_finished_transcript_is_not_asked_again() {
    let rules = Rules {
        max_turns: None,
        toolbox: toolbox(None),
        answer: AnswerRule::Text,
        heeds_stop: false,
        turns_before: 0,
        gives_back: false,
    };
    let said = Message { role: Role::Assistant, content: vec![text("the end")] };
    let history = History::from_repaired(vec![Message::user("go"), said]);
    let mut it = Conversation::new(rules, history, 1);
    let commands =
        it.on(Event::Started(Beginning { last_stop: Some(StopReason::EndTurn), ..Beginning::default() }));
    assert_eq!(end(&commands), Some(&AgentEnd::Completed { text: "the end".into(), output: None }));
}

/// One step of a random conversation.
#[derive(Clone, Debug)]
enum Step {
    Text(&'static str),
    Calls(Vec<(u8, u8, bool)>),
    CallsEnd(u64),
    Steer,
    Stop,
    Fail,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let one = prop_oneof![
        2 => prop::sample::select(vec!["", " ", "text"]).prop_map(Step::Text),
        6 => prop::collection::vec((0..4u8, 0..5u8, prop::bool::weighted(0.2)), 1..5).prop_map(Step::Calls),
        8 => any::<u64>().prop_map(Step::CallsEnd),
        1 => Just(Step::Steer),
        1 => Just(Step::Stop),
        1 => Just(Step::Fail),
    ];
    prop::collection::vec(one, 1..40)
}

fn events(step: Step, it: &Conversation) -> Vec<Event> {
    match step {
        Step::Text(said) => {
            let stop = if said == " " { StopReason::MaxTokens } else { StopReason::PauseTurn };
            vec![answer(vec![text(said)], stop)]
        }
        Step::Calls(wanted) => {
            let ids = ["", "a", "b", "call_1_1"];
            let names = ["bash", "read_file", "write_file", "nothing", "structured_output"];
            let blocks =
                wanted.iter().map(|(id, name, _)| call(ids[usize::from(*id)], names[usize::from(*name)]));
            let mut answer = whole(blocks.collect(), StopReason::ToolUse);
            let cuts = wanted.iter().enumerate().filter(|(_, (_, _, is_cut))| *is_cut);
            answer.cut_calls = cuts.map(|(block, _)| CutCall { block, why: CutReason::NotJson }).collect();
            vec![Event::Answered { answer: Box::new(answer), text_calls: false }]
        }
        Step::CallsEnd(seed) => {
            let mut open: Vec<u32> =
                (1..=5).filter(|i| it.awaits(CallNo { turn: it.turn(), index: *i })).collect();
            let most = open.len().max(1);
            open.rotate_left(usize::try_from(seed % 7).unwrap() % most);
            let ends =
                |index| if seed % 2 == 0 { done(it.turn(), index, "r") } else { dropped(it.turn(), index) };
            open.into_iter().map(ends).collect()
        }
        Step::Steer => vec![Event::Steered(said("please"))],
        Step::Stop => vec![stop()],
        Step::Fail => vec![Event::RequestFailed(AgentEnd::Cancelled)],
    }
}

proptest! {
    #[test]
    fn whatever_happens_every_request_and_the_final_history_are_valid(steps in steps(), structured in any::<bool>()) {
        let rule = if structured { AnswerRule::Call(schema()) } else { AnswerRule::Text };
        let mut it = conversation(Some(12), rule);
        let mut kept = vec![Message::user("go")];
        let mut ends = 0;
        let mut asked_while_busy = false;
        for step in steps {
            for event in events(step, &it) {
                for command in it.on(event) {
                    match command {
                        Command::Ask { .. } => {
                            prop_assert_eq!(fault(it.history().messages()), None);
                            prop_assert_eq!(it.history().last().map(|m| m.role), Some(Role::User));
                            asked_while_busy |= ends > 0;
                        }
                        Command::End(_) => {
                            ends += 1;
                            prop_assert_eq!(fault(it.history().messages()), None);
                        }
                        Command::Keep { message, .. } => kept.push(message),
                        _ => {}
                    }
                }
            }
        }
        prop_assert!(ends <= 1 && !asked_while_busy);
        // The transcript's messages, merged, are the history.
        let mut merged = History::default();
        kept.into_iter().for_each(|message| merged.push(message));
        prop_assert_eq!(merged.messages(), it.history().messages());
    }
}

#[test]
fn an_end_that_is_refused_goes_on_and_is_bounded() {
    let rules = Rules {
        max_turns: None,
        toolbox: toolbox(None),
        answer: AnswerRule::Text,
        heeds_stop: true,
        turns_before: 0,
        gives_back: false,
    };
    let mut core = Conversation::new(rules, History::from_repaired(vec![Message::user("go")]), 0);
    core.on(Event::Started(Beginning::default()));
    for round in 0..8 {
        let commands = core.on(answer(vec![text("done")], StopReason::EndTurn));
        assert!(
            matches!(commands.last(), Some(Command::AskToEnd { again, .. }) if *again == (round > 0)),
            "{commands:?}"
        );
        let commands = core.on(Event::EndJudged(Some("not yet".into())));
        assert!(matches!(commands.last(), Some(Command::Ask { .. })), "{commands:?}");
        assert_eq!(core.history().last().map(Message::text).as_deref(), Some("not yet"));
    }
    let commands = core.on(answer(vec![text("done")], StopReason::EndTurn));
    assert!(matches!(commands.last(), Some(Command::End(AgentEnd::Completed { .. }))), "{commands:?}");
}

#[test]
fn a_stop_while_the_end_is_judged_waits_for_the_judge() {
    let rules = Rules {
        max_turns: None,
        toolbox: toolbox(None),
        answer: AnswerRule::Text,
        heeds_stop: true,
        turns_before: 0,
        gives_back: false,
    };
    let mut core = Conversation::new(rules, History::from_repaired(vec![Message::user("go")]), 0);
    core.on(Event::Started(Beginning::default()));
    core.on(answer(vec![text("done")], StopReason::EndTurn));
    let commands = core.on(Event::Stopped { end: AgentEnd::Cancelled, say: "cancelled by user".into() });
    assert!(matches!(commands.as_slice(), [Command::StopWork]), "{commands:?}");
    let commands = core.on(Event::EndJudged(None));
    assert!(matches!(commands.as_slice(), [Command::End(AgentEnd::Cancelled)]), "{commands:?}");
}
