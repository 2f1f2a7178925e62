//! The core without a runtime: facts in, orders out.

use super::*;
use crate::addr::StepAddr;
use crate::expr::{Expr, RunView, Template};
use crate::journal::history::Difference;
use crate::journal::record::{Answer, AnsweredBy, EndState, Entry, OutputRef, Question, RunStatus};
use crate::plan::model::*;
use claw_agents::definition::{AgentDefinition, ToolSet};
use claw_agents::effects::CallNo;
use claw_agents::outcome::FailureClass;
use claw_kernel::digest::Digest;
use claw_providers::usage::Usage;
use indexmap::IndexMap;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

mod children;
mod groups;
mod seeds;
mod session;
mod stops;

fn definition() -> Arc<AgentDefinition> {
    Arc::new(AgentDefinition {
        name: "general-purpose".into(),
        description: String::new(),
        revision: 1,
        prompt: String::new(),
        tools: ToolSet::All,
        deny_tools: Vec::new(),
        models: Vec::new(),
        permission: None,
        max_turns: None,
    })
}

fn agent(id: &str, needs: &[u32]) -> Node {
    let work = Work::Agent(AgentWork {
        definition: definition(),
        prompt: Template::parse(&format!("do {id}")).unwrap(),
        system_append: None,
        models: Vec::new(),
        effort: None,
        tools: None,
        deny_tools: Vec::new(),
        permission: None,
        max_turns: 50,
        attach: Vec::new(),
        spawn: false,
        startable: Vec::new(),
    });
    node(id, needs, work)
}

fn set(id: &str, needs: &[u32], value: &str) -> Node {
    node(id, needs, Work::Set { value: Expr::parse(value).unwrap() })
}

fn command(id: &str, needs: &[u32]) -> Node {
    let work = Work::Command(CommandWork {
        run: CommandLine::Argv(vec![Template::literal("true")]),
        cwd: None,
        env: IndexMap::new(),
        stdin: None,
        ok_exit: vec![0],
        parse: CommandOutput::Text,
        permission: None,
    });
    node(id, needs, work)
}

fn node(id: &str, needs: &[u32], work: Work) -> Node {
    Node {
        id: id.parse().unwrap(),
        parent: None,
        needs: needs.iter().map(|n| NodeIx(*n)).collect(),
        after: Vec::new(),
        dependents: Vec::new(),
        when: None,
        join: Join::AllSucceeded,
        each: None,
        repeat: None,
        retry: Retry {
            attempts: 3,
            on: vec![FailureClass::Transient],
            backoff: Duration::from_secs(2),
            factor: 2.0,
            max: Duration::from_secs(60),
            jitter: false,
        },
        timeout: Duration::from_secs(60),
        idle_timeout: Duration::from_secs(60),
        on_error: OnError::Fail,
        on_crash: OnCrash::Ask,
        optional: false,
        is_final: false,
        budget: None,
        locks: Vec::new(),
        isolation: Isolation::None,
        output: OutputSpec::Text,
        artifacts: Vec::new(),
        priority: 0,
        critical_path: 1,
        phase: None,
        label: None,
        tags: Vec::new(),
        merge: MergeShow::Digest,
        work,
        static_key: Digest::of(id),
    }
}

fn each(mut node: Node, source: EachSource) -> Node {
    node.each = Some(Each {
        source,
        bind: "item".into(),
        key: Some(Template::parse("{{ item }}").unwrap()),
        max: None,
        concurrency: None,
        min_success: None,
        fail: EachFail::Collect,
        warm: None,
    });
    node
}

fn items(n: usize) -> EachSource {
    EachSource::Items(Expr::parse(&format!("range({n})|list")).unwrap())
}

fn plan_of(mut nodes: Vec<Node>, concurrency: usize) -> Arc<Plan> {
    for at in 0..nodes.len() {
        let before: Vec<NodeIx> = nodes[at].needs.iter().chain(&nodes[at].after).copied().collect();
        for need in before {
            nodes[need.at()].dependents.push(NodeIx(at as u32));
        }
    }
    Arc::new(Plan {
        name: "test".into(),
        description: String::new(),
        result: None,
        top: Body { first: 0, count: nodes.len() as u32 },
        nodes,
        budget: None,
        inputs: IndexMap::new(),
        host: None,
        limits: Limits { concurrency, commands: 4, agents: 200, depth: 2, providers: IndexMap::new() },
        merge: MergeReport { max_tokens: 2000, per_node_tokens: 300 },
        warnings: Vec::new(),
        file: "test.toml".into(),
        source: "".into(),
    })
}

fn succeeded(value: Arc<Value>, effect: Option<Digest>) -> OutcomeEnd {
    OutcomeEnd::Succeeded { kept: OutputRef::Inline(Arc::clone(&value)), value, file: None, effect }
}

fn context() -> ScheduleContext {
    ScheduleContext {
        inputs: Arc::default(),
        run: Arc::new(RunView { id: "R".into(), dir: "/runs/R".into(), base_commit: None }),
        nonce: "N".into(),
        seed: 7,
        can_ask: false,
    }
}

/// Plays the actor: keeps what was ordered.
struct Play {
    schedule: Schedule,
    running: BTreeMap<String, (StepIx, u32)>,
    most_running: usize,
    started: Vec<String>,
    wakes: Vec<(StepIx, u32, Duration)>,
    stopped: Vec<StepIx>,
    records: Vec<(Option<String>, Entry)>,
    launches: Vec<Launch>,
    locks: Vec<(StepIx, Vec<String>)>,
    closed: Vec<Folder>,
    timers: Vec<StepIx>,
    refused: Vec<String>,
    told: Vec<(StepIx, CallNo, ChildEnd)>,
    news: Vec<ChildNews>,
    end: Option<RunEnd>,
}

impl Play {
    fn new(nodes: Vec<Node>, concurrency: usize) -> Self {
        Self::with_past(nodes, concurrency, Box::new(NoPast))
    }

    fn with_past(nodes: Vec<Node>, concurrency: usize, past: Box<dyn Past>) -> Self {
        Self::of(plan_of(nodes, concurrency), context(), past)
    }

    fn of(plan: Arc<Plan>, context: ScheduleContext, past: Box<dyn Past>) -> Self {
        let mut play = Self {
            schedule: Schedule::new(plan, context, past),
            running: BTreeMap::new(),
            most_running: 0,
            started: Vec::new(),
            wakes: Vec::new(),
            stopped: Vec::new(),
            records: Vec::new(),
            launches: Vec::new(),
            locks: Vec::new(),
            closed: Vec::new(),
            timers: Vec::new(),
            refused: Vec::new(),
            told: Vec::new(),
            news: Vec::new(),
            end: None,
        };
        play.hear(Event::Begin);
        play
    }

    fn hear(&mut self, event: Event) {
        for order in self.schedule.on(event) {
            match order {
                Command::Start(launch) => {
                    self.started.push(launch.addr.to_string());
                    self.running.insert(launch.addr.to_string(), (launch.step, launch.attempt));
                    self.most_running = self.most_running.max(self.running.len());
                    self.launches.push(*launch);
                }
                Command::WakeAfter { step, attempt, delay } => self.wakes.push((step, attempt, delay)),
                Command::Stop(step) => self.stopped.push(step),
                Command::Record { step, entry, .. } => {
                    self.records.push((step.map(|s: StepAddr| s.to_string()), *entry));
                }
                Command::End(end) => self.end = Some(end),
                Command::Lock { step, names } => self.locks.push((step, names)),
                Command::CloseFolder(folder) => self.closed.push(folder),
                Command::ExpireGate { step, .. }
                | Command::ExpireGroup { step, .. }
                | Command::ExpireWarming { step, .. } => self.timers.push(step),
                Command::Refuse { reason } => self.refused.push(reason),
                Command::Announce(news) => self.news.push(*news),
                Command::Deliver { parent, call, end } => self.told.push((parent, call, *end)),
                Command::ReadItems { .. }
                | Command::Unlock { .. }
                | Command::Steer { .. }
                | Command::Settled { .. }
                | Command::WriteOutput { .. }
                | Command::NodeClosed
                | Command::Tell { .. } => {}
            }
        }
    }

    fn give(&mut self, addr: &str, value: Value) {
        self.finish(addr, succeeded(Arc::new(value), None));
    }

    fn finish(&mut self, addr: &str, end: OutcomeEnd) {
        let (step, attempt) = self.running.remove(addr).unwrap_or_else(|| panic!("{addr} does not run"));
        self.hear(Event::Finished {
            step,
            attempt,
            outcome: Outcome { end, usage: None, denials: Vec::new() },
        });
    }

    fn succeed(&mut self, addr: &str) {
        let value = Arc::new(json!(format!("out of {addr}")));
        self.finish(addr, succeeded(value, None));
    }

    fn fail(&mut self, addr: &str, class: FailureClass) {
        self.finish(addr, OutcomeEnd::Failed(Failure::new(class, "boom")));
    }

    fn running(&self) -> Vec<&str> {
        self.running.keys().map(String::as_str).collect()
    }

    fn states(&self) -> HashMap<String, (Option<EndState>, Option<String>)> {
        let nodes = self.schedule.report();
        nodes.into_iter().map(|node| (node.id.to_string(), (node.state, node.error))).collect()
    }

    fn status(&self) -> (RunStatus, u8) {
        let end = self.end.as_ref().expect("the run is over");
        (end.status, end.exit_code)
    }
}

#[test]
fn a_step_starts_when_its_last_need_is_met() {
    let mut play = Play::new(vec![agent("a", &[]), agent("b", &[]), agent("c", &[0, 1])], 9);
    assert_eq!(play.running(), ["a", "b"]);
    play.succeed("a");
    assert_eq!(play.running(), ["b"]);
    play.succeed("b");
    assert_eq!(play.running(), ["c"]);
    play.succeed("c");
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
    assert_eq!(play.end.unwrap().result, json!("out of c"));
}

#[test]
fn a_fast_branch_never_waits_for_a_slow_one() {
    let mut play = Play::new(vec![agent("fast", &[]), agent("slow", &[]), agent("after_fast", &[0])], 9);
    play.succeed("fast");
    assert_eq!(play.running(), ["after_fast", "slow"]);
}

#[test]
fn a_failed_node_skips_its_dependents_names_the_root_and_lets_the_rest_go_on() {
    let nodes = vec![
        agent("a", &[]),
        agent("b", &[0]),
        agent("c", &[0]),
        agent("d", &[1, 2]),
        agent("e", &[3]),
        agent("z", &[]),
    ];
    let mut play = Play::new(nodes, 9);
    play.succeed("a");
    play.fail("b", FailureClass::Refused);
    play.succeed("c");
    play.succeed("z");
    assert_eq!(play.status(), (RunStatus::Failed, 1));
    let states = play.states();
    assert_eq!(states["d"], (Some(EndState::Skipped), Some("b failed".into())));
    assert_eq!(states["e"], (Some(EndState::Skipped), Some("b failed".into())));
    assert_eq!(states["c"].0, Some(EndState::Succeeded));
}

#[test]
fn only_classes_of_the_list_are_repeated_with_growing_waits() {
    let mut play = Play::new(vec![agent("a", &[])], 1);
    play.fail("a", FailureClass::Transient);
    let (step, attempt, delay) = play.wakes[0];
    assert_eq!((attempt, delay), (2, Duration::from_secs(2)));
    play.hear(Event::Woke { step, attempt });
    play.fail("a", FailureClass::Transient);
    assert_eq!(play.wakes[1].2, Duration::from_secs(4));
    play.hear(Event::Woke { step, attempt: 3 });
    play.fail("a", FailureClass::Transient);
    assert_eq!(play.status(), (RunStatus::Failed, 1));
    assert_eq!(play.started, ["a", "a", "a"]);
    let mut play = Play::new(vec![agent("a", &[])], 1);
    play.fail("a", FailureClass::Refused);
    assert_eq!(play.started, ["a"]);
}

#[test]
fn a_waiting_retry_gives_its_slot_to_another() {
    let mut play = Play::new(vec![agent("a", &[]), agent("b", &[])], 1);
    play.fail("a", FailureClass::Transient);
    assert_eq!(play.running(), ["b"]);
}

#[test]
fn the_concurrency_is_never_passed_and_all_items_run() {
    let mut play = Play::new(vec![each(agent("a", &[]), items(100))], 3);
    while let Some(addr) = play.running().first().map(ToString::to_string) {
        play.succeed(&addr);
    }
    assert_eq!(play.most_running, 3);
    assert_eq!(play.started.len(), 100);
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
}

#[test]
fn an_each_gives_its_results_in_the_order_of_the_input() {
    let mut play = Play::new(vec![each(agent("a", &[]), items(3)), set("s", &[0], "a.outputs")], 9);
    for addr in ["a=2", "a=0", "a=1"] {
        play.succeed(addr);
    }
    assert_eq!(play.end.unwrap().result, json!(["out of a=0", "out of a=1", "out of a=2"]));
}

#[test]
fn enough_successes_make_an_each_succeed() {
    let mut node = each(agent("a", &[]), items(3));
    node.each.as_mut().unwrap().min_success = Some(2);
    let mut play = Play::new(vec![node, set("s", &[0], "a | map(attribute='status') | list")], 9);
    play.succeed("a=0");
    play.fail("a=1", FailureClass::Refused);
    play.succeed("a=2");
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
    assert_eq!(play.end.unwrap().result, json!(["succeeded", "failed", "succeeded"]));
}

#[test]
fn fail_fast_stops_the_rest_as_soon_as_success_is_out_of_reach() {
    let mut node = each(agent("a", &[]), items(5));
    node.each.as_mut().unwrap().fail = EachFail::Fast;
    let mut play = Play::new(vec![node], 2);
    play.fail("a=0", FailureClass::Refused);
    assert_eq!(play.stopped.len(), 1);
    play.finish("a=1", OutcomeEnd::Cancelled);
    assert_eq!(play.status(), (RunStatus::Failed, 1));
    assert_eq!(play.started, ["a=0", "a=1"]);
}

#[test]
fn two_items_with_one_key_fail_the_node_before_anything_starts() {
    let source = EachSource::Items(Expr::parse("['x', 'x']").unwrap());
    let play = Play::new(vec![each(agent("a", &[]), source)], 2);
    assert_eq!(play.started.len(), 0);
    assert!(play.states()["a"].1.as_ref().unwrap().contains("E171"), "{:?}", play.states());
}

#[test]
fn more_items_than_the_max_fail_the_node_before_anything_starts() {
    let mut node = each(agent("a", &[]), items(5));
    node.each.as_mut().unwrap().max = Some(4);
    let play = Play::new(vec![node], 2);
    assert_eq!(play.started.len(), 0);
    assert_eq!(play.status(), (RunStatus::Failed, 1));
}

#[test]
fn a_false_condition_skips_and_its_output_is_null() {
    let mut conditional = agent("a", &[]);
    conditional.when = Some(Expr::parse("1 > 2").unwrap());
    let mut after = set("s", &[0], "a | default('none')");
    after.join = Join::AllDone;
    let play = Play::new(vec![conditional, after], 2);
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
    assert_eq!(play.end.unwrap().result, json!("none"));
}

#[test]
fn continue_on_error_satisfies_every_join_and_does_not_count() {
    let mut flaky = agent("a", &[]);
    flaky.on_error = OnError::Continue;
    let mut play = Play::new(vec![flaky, set("s", &[0], "nodes.a.status")], 2);
    play.fail("a", FailureClass::Refused);
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
    assert_eq!(play.end.unwrap().result, json!("failed"));
}

#[test]
fn only_an_optional_failure_makes_the_run_partial() {
    let mut extra = agent("a", &[]);
    extra.optional = true;
    let mut play = Play::new(vec![extra, agent("b", &[])], 2);
    play.fail("a", FailureClass::Refused);
    play.succeed("b");
    assert_eq!(play.status(), (RunStatus::Partial, 7));
}

#[test]
fn cancel_stops_what_runs_and_starts_nothing() {
    let mut play = Play::new(vec![agent("a", &[]), agent("b", &[]), agent("c", &[0])], 1);
    play.hear(Event::Cancel { signal: None });
    assert_eq!(play.stopped.len(), 1);
    assert!(play.end.is_none());
    play.finish("a", OutcomeEnd::Cancelled);
    assert_eq!(play.status(), (RunStatus::Cancelled, 5));
    assert_eq!(play.started, ["a"]);
}

#[test]
fn a_quota_error_pauses_the_run_and_lets_requests_in_flight_finish() {
    let mut play = Play::new(vec![each(agent("a", &[]), items(9))], 2);
    play.fail("a=0", FailureClass::Quota);
    assert!(play.end.is_none());
    play.succeed("a=1");
    assert_eq!(play.status(), (RunStatus::Paused, 4));
    assert_eq!(play.started, ["a=0", "a=1"]);
    assert!(play.records.iter().any(|(_, entry)| matches!(entry, Entry::Paused { .. })));
}

#[test]
fn the_limit_of_agents_ends_the_run_with_its_own_code() {
    let mut plan = plan_of(vec![each(agent("a", &[]), items(3))], 9);
    Arc::get_mut(&mut plan).unwrap().limits.agents = 2;
    let mut play = Play::new(Vec::new(), 1);
    play.schedule = Schedule::new(plan, context(), Box::new(NoPast));
    play.end = None;
    play.hear(Event::Begin);
    play.succeed("a=0");
    play.succeed("a=1");
    assert_eq!(play.status(), (RunStatus::Stopped, 3));
    assert!(play.end.unwrap().reason.unwrap().contains("limits.agents = 2"));
}

#[test]
fn an_intent_stands_before_a_command_and_its_done_before_the_end() {
    let mut play = Play::new(vec![command("c", &[])], 1);
    let value = Arc::new(json!("x"));
    play.finish("c", succeeded(value, Some(Digest::of("x"))));
    let names: Vec<&str> = play
        .records
        .iter()
        .map(|(_, entry)| match entry {
            Entry::Admitted { .. } => "admitted",
            Entry::Intent { .. } => "intent",
            Entry::Done { .. } => "done",
            Entry::Ended(_) => "ended",
            Entry::Take(_)
            | Entry::Expanded { .. }
            | Entry::Turn { .. }
            | Entry::Paused { .. }
            | Entry::Spawned { .. }
            | Entry::MergeEnqueued { .. }
            | Entry::MergeDelivered { .. }
            | Entry::Asked(_)
            | Entry::Answered(_)
            | Entry::Steered { .. }
            | Entry::Damaged { .. }
            | Entry::RunEnded { .. } => "other",
        })
        .collect();
    assert_eq!(names, ["admitted", "intent", "done", "ended"]);
}

#[test]
fn ten_thousand_computed_items_and_a_chain_of_as_many_need_no_stack() {
    let play = Play::new(vec![each(set("s", &[], "item + 1"), items(9_000))], 1);
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
    let chain: Vec<Node> = (0..10_000)
        .map(|n: u32| {
            let before = n.checked_sub(1);
            let value = before.map_or_else(|| "0".to_owned(), |b| format!("n{b} + 1"));
            set(&format!("n{n}"), before.as_slice(), &value)
        })
        .collect();
    let play = Play::new(chain, 1);
    assert_eq!(play.end.unwrap().result, json!(9_999));
}

/// Remembers successes by address and key, as a journal would.
#[derive(Clone, Default)]
struct Memory {
    successes: HashMap<(String, Digest), Value>,
    doubt: Vec<String>,
    answers: HashMap<String, (Question, Answer)>,
}

impl Past for Memory {
    fn success(&mut self, addr: &StepAddr, key: &Digest) -> Option<PastSuccess> {
        let value = self.successes.get(&(addr.to_string(), *key))?;
        Some(PastSuccess {
            key: *key,
            value: Arc::new(value.clone()),
            file: None,
            agent: None,
            attempt: 1,
            addr: addr.clone(),
            usage: Usage::NOTHING,
        })
    }
    fn attempts(&self, _: &StepAddr) -> u32 {
        1
    }
    fn transcript(&self, _: &StepAddr, _: &Digest) -> Option<Earlier> {
        None
    }
    fn in_doubt(&self, addr: &StepAddr) -> bool {
        self.doubt.contains(&addr.to_string())
    }
    fn differs(&self, _: &StepAddr, _: &Digest, _: &Digest) -> Option<Difference> {
        None
    }
    fn answer(&self, addr: &StepAddr) -> Option<(Question, Answer)> {
        self.answers.get(&addr.to_string()).cloned()
    }
    fn said(&self, _: &StepAddr) -> Vec<String> {
        Vec::new()
    }
    fn agents(&self) -> usize {
        0
    }
    fn is_empty(&self) -> bool {
        false
    }
}

fn remembered(play: &Play) -> Memory {
    let mut memory = Memory::default();
    for (addr, entry) in &play.records {
        if let (Some(addr), Entry::Ended(ended)) = (addr, entry)
            && let (EndState::Succeeded, Some(key)) = (ended.state, ended.key)
        {
            memory.successes.insert((addr.clone(), key), json!(format!("out of {addr}")));
        }
    }
    memory
}

#[test]
fn a_resume_runs_what_is_not_done_and_only_that() {
    let nodes = || vec![each(agent("a", &[]), items(10)), agent("b", &[0])];
    let mut first = Play::new(nodes(), 4);
    for n in 0..4 {
        first.succeed(&format!("a={n}"));
    }
    let mut second = Play::with_past(nodes(), 9, Box::new(remembered(&first)));
    assert_eq!(second.started, (4..10).map(|n| format!("a={n}")).collect::<Vec<_>>());
    for n in 4..10 {
        second.succeed(&format!("a={n}"));
    }
    second.succeed("b");
    let mut memory = remembered(&first);
    memory.successes.extend(remembered(&second).successes);
    let third = Play::with_past(nodes(), 9, Box::new(memory));
    assert_eq!(third.started, Vec::<String>::new());
    assert_eq!(third.end.as_ref().map(|end| &end.result), second.end.as_ref().map(|end| &end.result));
}

#[test]
fn a_command_in_doubt_pauses_the_run_unless_the_file_decides() {
    let memory = Memory { doubt: vec!["c".into()], ..Memory::default() };
    let play = Play::with_past(vec![command("c", &[])], 1, Box::new(memory.clone()));
    assert_eq!(play.status(), (RunStatus::Paused, 4));
    assert!(play.end.unwrap().reason.unwrap().starts_with("c waits for an answer"));
    let mut again = command("c", &[]);
    again.on_crash = OnCrash::Retry;
    assert_eq!(Play::with_past(vec![again], 1, Box::new(memory.clone())).started, ["c"]);
    let mut skip = command("c", &[]);
    skip.on_crash = OnCrash::Skip;
    let play = Play::with_past(vec![skip], 1, Box::new(memory));
    assert_eq!(play.states()["c"].0, Some(EndState::Skipped));
}

#[test]
fn a_merge_by_agents_goes_in_levels_and_ends_at_the_node() {
    let list = set("parts", &[], "range(6) | map('string') | list");
    let Work::Agent(by) = agent("m", &[]).work else { panic!() };
    let work = Work::Merge(MergeWork {
        from: vec![Expr::parse("parts").unwrap()],
        strategy: MergeStrategy::Agent { agent: Box::new(by), window: 2 },
        write: None,
    });
    let mut play = Play::new(vec![list, node("m", &[0], work)], 9);
    let mut seen = 0;
    while let Some(addr) = play.running().first().map(ToString::to_string) {
        seen += 1;
        assert!(seen < 50, "levels do not shrink");
        let (step, attempt) = play.running.remove(&addr).unwrap();
        let value = Arc::new(json!("x"));
        let end = succeeded(value, None);
        play.hear(Event::Finished {
            step,
            attempt,
            outcome: Outcome { end, usage: None, denials: Vec::new() },
        });
    }
    assert_eq!(play.started.last().unwrap(), "m");
    assert!(play.started.iter().any(|addr| addr == "m/+1"), "{:?}", play.started);
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever order steps end in: never more than the limit, each once, and the run comes to an end.
    #[test]
    fn any_graph_in_any_order_comes_to_an_end(
        edges in proptest::collection::vec((0_u32..20, 0_u32..20), 0..40),
        picks in proptest::collection::vec((0_usize..20, proptest::bool::weighted(0.2)), 0..60),
        concurrency in 1_usize..5,
    ) {
        let nodes = (0..20)
            .map(|n| {
                let mut needs: Vec<u32> = edges.iter().filter(|(a, b)| *b == n && a < b).map(|(a, _)| *a).collect();
                needs.dedup();
                agent(&format!("n{n}"), &needs)
            })
            .collect();
        let mut play = Play::new(nodes, concurrency);
        let mut picks = picks.into_iter();
        while !play.running.is_empty() {
            let (pick, fails) = picks.next().unwrap_or((0, false));
            let addr = play.running().get(pick % play.running.len()).map(ToString::to_string).unwrap();
            if fails { play.fail(&addr, FailureClass::Refused) } else { play.succeed(&addr) }
        }
        prop_assert!(play.end.is_some());
        prop_assert!(play.most_running <= concurrency);
        let mut once = play.started.clone();
        once.sort();
        once.dedup();
        prop_assert_eq!(once.len(), play.started.len());
    }
}

#[test]
fn every_agent_that_meets_the_breaker_waits_and_none_is_called_failed() {
    let mut play = Play::new(vec![each(agent("a", &[]), items(3))], 3);
    for addr in ["a=0", "a=1", "a=2"] {
        play.fail(addr, FailureClass::Auth);
    }
    assert_eq!(play.status(), (RunStatus::Paused, 4));
    let ends: Vec<EndState> = play
        .records
        .iter()
        .filter_map(|(_, entry)| if let Entry::Ended(ended) = entry { Some(ended.state) } else { None })
        .collect();
    assert_eq!(ends, [EndState::Interrupted; 3]);
}

#[test]
fn merges_by_agents_under_an_each_keep_their_windows_apart() {
    let Work::Agent(by) = agent("m", &[]).work else { panic!() };
    let work = Work::Merge(MergeWork {
        from: vec![Expr::parse("range(4) | map('string') | list").unwrap()],
        strategy: MergeStrategy::Agent { agent: Box::new(by), window: 2 },
        write: None,
    });
    let mut play = Play::new(vec![each(node("m", &[], work), items(2))], 9);
    while let Some(addr) = play.running().first().map(ToString::to_string) {
        play.succeed(&addr);
    }
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
    assert_eq!(play.end.unwrap().result, json!(["out of m=0", "out of m=1"]));
}

#[test]
fn steps_in_doubt_are_named_together_after_everything_else_has_run() {
    let memory = Memory { doubt: vec!["c=0".into(), "c=1".into()], ..Memory::default() };
    let nodes = vec![each(command("c", &[]), items(2)), agent("other", &[])];
    let mut play = Play::with_past(nodes, 9, Box::new(memory));
    assert_eq!(play.started, ["other"]);
    assert!(play.end.is_none());
    play.succeed("other");
    assert_eq!(play.status(), (RunStatus::Paused, 4));
    let reason = play.end.unwrap().reason.unwrap();
    assert!(reason.contains("c=0, c=1"), "{reason}");
}

#[test]
fn what_was_refused_is_told_to_the_next_attempt() {
    let mut node = agent("a", &[]);
    node.retry.on = vec![FailureClass::Schema];
    let mut play = Play::new(vec![node], 1);
    play.fail("a", FailureClass::Schema);
    let (step, attempt, _) = play.wakes[0];
    let orders = play.schedule.on(Event::Woke { step, attempt });
    let fault = orders.iter().find_map(|order| match order {
        Command::Start(launch) => match &launch.work {
            Prepared::Agent(agent) => Some((agent.goes_on_from, agent.fault.clone())),
            Prepared::Command(_) | Prepared::Value(_) | Prepared::GitMerge(_) => None,
        },
        _ => None,
    });
    assert_eq!(fault, Some((Some(1), Some("boom".to_owned()))));
}
