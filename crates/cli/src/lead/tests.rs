use super::act::Act;
use super::deed::{Deed, Pick, PickItem};
use super::editor::{Completer, History, Menu};
use super::state::State;
use super::status::Status;
use crate::terminal::paint::{Line, ThemeName};
use crate::terminal::{Key, Picture};
use claw_agents::effects::CallNo;
use claw_agents::event::AgentEvent;
use claw_agents::lead::{LeadCommand, LeadEvent};
use claw_agents::outcome::{AgentEnd, AgentOutcome};
use claw_agents::permission::{Answer, AskRequest, Permission};
use claw_providers::message::Block;
use claw_providers::usage::Usage;
use std::collections::BTreeMap;
use std::time::Duration;

struct NoWords;

impl Completer for NoWords {
    fn complete(&self, _: &str, _: usize) -> Option<Menu> {
        None
    }
}

fn state(width: usize, height: usize) -> State {
    let status = Status {
        model: "claude-sonnet".into(),
        permission: Permission::WORKSPACE_WRITE,
        folder: "~/src/claw".into(),
        branch: Some("main".into()),
        tokens: (0, 0),
        usd: Some(0.0),
        context: None,
        agents: 0,
    };
    State::new(ThemeName::Dark, History::default(), status, (width, height))
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn typed(state: &mut State, text: &str) -> Vec<Act> {
    text.chars().flat_map(|c| press(state, Key::Char(c))).collect()
}

fn press(state: &mut State, key: Key) -> Vec<Act> {
    state.on_key(key, &NoWords, at(100))
}

fn agent(state: &mut State, event: AgentEvent) {
    state.on_news(LeadEvent::Agent(event), at(3));
}

fn text(lines: &[Line]) -> String {
    lines.iter().map(Line::text).map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// What was finished, a rule, and the region.
fn shown(state: &mut State) -> String {
    let above = text(&state.take_above());
    let Picture { lines, cursor } = state.picture(at(5));
    assert!(lines.len() < state.height.max(3), "{} rows of {}", lines.len(), state.height);
    assert!(lines.iter().all(|line| line.width() < state.width.max(9)), "{}", text(&lines));
    format!("{above}\n----\n{}\n{cursor:?}", text(&lines))
}

fn started(state: &mut State, index: u32, tool: &str, subject: &str) {
    let call = CallNo { turn: 1, index };
    agent(state, AgentEvent::ToolStarted { call, tool: tool.into(), subject: subject.into() });
}

fn ended(state: &mut State, index: u32, tool: &str, result: &str) {
    let call = CallNo { turn: 1, index };
    let (tool, result) = (tool.into(), result.into());
    agent(state, AgentEvent::ToolEnded { call, tool, is_error: false, result, patch: Vec::new() });
}

fn outcome(end: AgentEnd) -> Box<AgentOutcome> {
    Box::new(AgentOutcome {
        end,
        usage: Usage::NOTHING,
        turns: 1,
        tool_calls: BTreeMap::new(),
        denials: Vec::new(),
        model: None,
    })
}

#[test]
fn a_turn_is_shown_as_reviewed() {
    let mut pages = Vec::new();
    for (width, height) in [(80, 24), (40, 12)] {
        let mut state = state(width, height);
        pages.push(shown(&mut state));
        state.echo("What does the parser do with an empty file?");
        state.on_news(LeadEvent::TurnStarted { prompt: 1 }, at(1));
        agent(&mut state, AgentEvent::TurnStarted { turn: 1, model: "x".into() });
        agent(&mut state, AgentEvent::Thinking("hm".into()));
        agent(&mut state, AgentEvent::Text("I look at it.\n\nFirst the *tests*".into()));
        pages.push(shown(&mut state));
        started(&mut state, 1, "read_file", "src/parser.rs");
        started(&mut state, 2, "grep_search", "empty in tests");
        started(&mut state, 3, "bash", "cargo test parser::tests::an_empty_file_is_an_error -- --nocapture");
        pages.push(shown(&mut state));
        ended(&mut state, 1, "read_file", "fn parse() {}\n");
        ended(&mut state, 2, "grep_search", "tests/parser.rs:3\n");
        let result: String = (1..=20).map(|n| format!("test {n} ... ok\n")).collect();
        ended(&mut state, 3, "bash", &result);
        agent(&mut state, AgentEvent::Text("It gives an **error**.\n".into()));
        state.on_news(LeadEvent::Context { used: 30_000, window: Some(200_000) }, at(4));
        let end = AgentEnd::Completed { text: String::new(), output: None };
        state.on_news(LeadEvent::TurnEnded { prompt: 1, outcome: outcome(end) }, at(4));
        state.on_news(LeadEvent::Idle, at(4));
        pages.push(shown(&mut state));
    }
    insta::assert_snapshot!(pages.join("\n\n====\n"));
}

#[test]
fn what_is_typed_during_a_turn_waits_and_comes_back_unheard() {
    let mut state = state(80, 24);
    state.on_news(LeadEvent::TurnStarted { prompt: 1 }, at(1));
    typed(&mut state, "and the docs");
    let acts = press(&mut state, Key::Enter);
    assert!(
        matches!(&acts[..], [Act::Remember(_), Act::Deed(deed)] if matches!(&**deed, Deed::Prompt { text, .. } if text == "and the docs"))
    );
    state.on_steered("and the docs");
    assert!(shown(&mut state).contains("waits: and the docs"));
    assert_eq!(press(&mut state, Key::Esc), [Act::Order(LeadCommand::Interrupt)]);
    state.on_news(LeadEvent::TurnEnded { prompt: 1, outcome: outcome(AgentEnd::Cancelled) }, at(2));
    let messages = vec![vec![Block::Text { text: "and the docs".into() }]];
    state.on_news(LeadEvent::Unheard { messages }, at(2));
    state.on_news(LeadEvent::Idle, at(2));
    assert_eq!(state.editor.text(), "and the docs");
    assert!(shown(&mut state).contains("interrupted"));
}

#[test]
fn ctrl_c_interrupts_then_ends() {
    let mut state = state(80, 24);
    typed(&mut state, "draft");
    assert_eq!(press(&mut state, Key::Ctrl('c')), []);
    assert!(state.editor.is_empty());
    assert_eq!(press(&mut state, Key::Ctrl('c')), [Act::Quit]);
    state.on_news(LeadEvent::TurnStarted { prompt: 1 }, at(1));
    typed(&mut state, "x");
    press(&mut state, Key::Backspace);
    assert_eq!(press(&mut state, Key::Ctrl('c')), [Act::Order(LeadCommand::Interrupt)]);
    assert_eq!(press(&mut state, Key::Ctrl('c')), [Act::Quit]);
    assert_eq!(press(&mut state, Key::Ctrl('d')), [Act::Quit]);
}

#[test]
fn a_slash_command_is_told_from_a_path() {
    let mut state = state(80, 24);
    typed(&mut state, "/cost now");
    let acts = press(&mut state, Key::Enter);
    assert_eq!(acts[1], Act::Slash { name: "cost".into(), args: "now".into() });
    typed(&mut state, "/etc/passwd is wrong");
    assert!(matches!(&press(&mut state, Key::Enter)[1], Act::Deed(_)));
}

#[test]
fn questions_stand_in_the_place_of_the_input_one_after_another() {
    let mut state = state(80, 24);
    let ask = |label: &str| AskRequest {
        agent: claw_kernel::ids::AgentId::fresh(),
        label: label.into(),
        tool: "bash".into(),
        subject: "curl https://example.org\x1b[2J".into(),
        parts: Vec::new(),
        rule: Some("Bash(curl https://example.org)".into()),
        why: "the call uses the network; mode in force: workspace-write, needed: danger-full-access".into(),
    };
    state.ask(7, ask("explore"), at(1));
    state.ask(8, ask("verify"), at(1));
    insta::assert_snapshot!(shown(&mut state));
    assert_eq!(press(&mut state, Key::Char('y')), [Act::Answer { ask: 7, answer: Answer::Once }]);
    assert!(shown(&mut state).contains("verify wants to use bash"));
    state.withdraw_ask(8);
    assert!(!shown(&mut state).contains("wants to use"));
}

#[test]
fn a_list_is_narrowed_and_chosen_from() {
    let mut state = state(60, 20);
    let item =
        |text: &str| PickItem { text: text.into(), about: "about".into(), deed: Deed::Resume(text.into()) };
    let items = vec![item("alpha"), item("beta"), item("gamma")];
    state.on_deed(Deed::Pick(Pick { title: "Which?".into(), items }));
    typed(&mut state, "et");
    assert!(shown(&mut state).contains("❯ beta"));
    let chosen = press(&mut state, Key::Enter);
    assert_eq!(chosen, [Act::Deed(Box::new(Deed::Resume("beta".into())))]);
    state.on_deed(Deed::Confirm { question: "Really?".into(), deed: Box::new(Deed::Quit) });
    assert_eq!(press(&mut state, Key::Enter), [], "the default is no");
    state.on_deed(Deed::Confirm { question: "Really?".into(), deed: Box::new(Deed::Quit) });
    assert!(matches!(&press(&mut state, Key::Char('y'))[..], [Act::Deed(_)]));
}

#[test]
fn the_region_fits_every_terminal() {
    for (width, height) in [(20, 4), (20, 6), (40, 12), (80, 24), (200, 60)] {
        let mut state = state(width, height);
        state.on_news(LeadEvent::TurnStarted { prompt: 1 }, at(1));
        agent(&mut state, AgentEvent::Text("日本語のテキスト that goes on and on ".repeat(40)));
        for index in 0..10 {
            started(&mut state, index, "bash", "a command that is longer than the narrow terminal");
        }
        state.bars = (0..50).map(|n| format!("agent {n} works on something that is rather long")).collect();
        typed(&mut state, &"word ".repeat(60));
        shown(&mut state);
        let request = AskRequest {
            agent: claw_kernel::ids::AgentId::fresh(),
            label: "explore".into(),
            tool: "bash".into(),
            subject: "x\n".repeat(100),
            parts: Vec::new(),
            rule: None,
            why: "why ".repeat(50),
        };
        state.ask(1, request, at(2));
        shown(&mut state);
    }
}

#[test]
fn typing_beside_fifty_agents_costs_less_than_a_frame() {
    let mut state = state(120, 60);
    state.on_news(LeadEvent::TurnStarted { prompt: 1 }, at(1));
    state.bars = (0..50).map(|n| format!("agent {n} works on something that is rather long")).collect();
    let begun = std::time::Instant::now();
    for _ in 0..100 {
        press(&mut state, Key::Char('x'));
        state.picture(at(2));
    }
    // Ten times the figure for a build without optimisation, to catch what grows.
    assert!(begun.elapsed() < Duration::from_millis(16 * 100 * 10), "{:?}", begun.elapsed());
}
