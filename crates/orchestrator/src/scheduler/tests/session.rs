//! The agents of a session, which have no step above them.

use super::*;
use crate::journal::record::SpawnedOrder;
use crate::plan::session::SessionPlan;
use crate::scheduler::PastMate;
use claw_kernel::ids::AgentId;

fn session(concurrency: usize, agents: usize) -> Arc<Plan> {
    let limits = Limits { concurrency, agents, ..Limits::standard(1) };
    let plan = SessionPlan {
        lead: definition(),
        tools: None,
        deny_tools: Vec::new(),
        startable: vec![definition()],
        limits,
    };
    Arc::new(Plan::of_session(plan).unwrap())
}

fn open(concurrency: usize, agents: usize) -> Play {
    Play::of(session(concurrency, agents), context(), Box::new(NoPast))
}

fn task(index: u32, background: bool) -> ChildOrder {
    ChildOrder {
        id: Some(AgentId::fresh()),
        definition: definition(),
        prompt: format!("task {index}"),
        label: format!("label {index}"),
        model: None,
        background,
        isolated: false,
    }
}

impl Play {
    fn ask(&mut self, index: u32, background: bool) {
        let call = CallNo { turn: 1, index };
        let order = task(index, background);
        self.hear(Event::Spawn { parent: StepIx(0), attempt: 1, call, order });
    }

    fn ends(&self) -> Vec<(u32, EndState)> {
        self.news.iter().map(|news| (news.number, news.state)).collect()
    }
}

#[test]
fn a_session_without_agents_waits_and_ends_when_it_is_left() {
    let mut play = open(2, 9);
    assert!(play.end.is_none() && play.records.is_empty());
    play.hear(Event::Left);
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
    assert!(play.schedule.report()[0].steps.is_empty(), "the conversation is no step");
}

#[test]
fn a_call_in_the_foreground_waits_and_one_in_the_background_is_answered_at_once() {
    let mut play = open(2, 9);
    play.ask(0, false);
    play.ask(1, true);
    play.ask(2, true);
    assert_eq!(play.running(), ["+1", "+2"]);
    let begun: Vec<(u32, usize)> = play
        .told
        .iter()
        .filter_map(|(_, call, end)| match end {
            ChildEnd::Begun { waiting, .. } => Some((call.index, *waiting)),
            ChildEnd::Done { .. } | ChildEnd::Failed(_) => None,
        })
        .collect();
    assert_eq!(begun, [(1, 0), (2, 1)], "the third is told its place");
    play.succeed("+2");
    assert_eq!(play.ends(), [(2, EndState::Succeeded)]);
    assert_eq!(play.running(), ["+1", "+3"], "a waiting conversation takes no slot");
    play.succeed("+1");
    assert!(matches!(play.told.last(), Some((_, CallNo { index: 0, .. }, ChildEnd::Done { .. }))));
    play.fail("+3", FailureClass::Refused);
    assert_eq!(play.ends(), [(2, EndState::Succeeded), (3, EndState::Failed)]);
    play.hear(Event::Left);
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
}

#[test]
fn what_is_to_be_told_is_on_record_first() {
    let mut play = open(1, 9);
    play.ask(0, true);
    play.succeed("+1");
    let enqueued =
        play.records.iter().position(|(_, entry)| matches!(entry, Entry::MergeEnqueued { number: 1 }));
    assert!(enqueued.is_some());
    assert_eq!(play.records[0].0, None, "the conversation stands on no record");
    assert!(matches!(&play.records[0].1, Entry::Spawned { order: Some(order), .. } if order.background));
    play.hear(Event::Delivered { number: 1 });
    assert!(matches!(play.records.last(), Some((None, Entry::MergeDelivered { number: 1 }))));
}

#[test]
fn the_number_of_agents_counts_from_the_users_last_message() {
    let mut play = open(9, 2);
    for index in 0..3 {
        play.ask(index, true);
    }
    assert!(matches!(&play.told[2].2, ChildEnd::Failed(why) if why.contains("limits.agents = 2")));
    play.hear(Event::UserSpoke);
    play.ask(3, true);
    assert_eq!(play.running(), ["+1", "+2", "+3"]);
}

#[test]
fn an_agent_that_nobody_waits_for_any_more_ends() {
    let mut play = open(9, 9);
    play.ask(0, false);
    play.ask(1, true);
    play.hear(Event::CallOff { parent: StepIx(0), call: CallNo { turn: 1, index: 0 } });
    play.hear(Event::StopAgent { step: "+2".parse().unwrap() });
    assert_eq!(play.stopped, [StepIx(1), StepIx(2)]);
    play.finish("+1", OutcomeEnd::Cancelled);
    play.finish("+2", OutcomeEnd::Cancelled);
    assert_eq!(play.ends(), [(2, EndState::Cancelled)]);
    play.hear(Event::StopAgent { step: "+2".parse().unwrap() });
    assert!(play.refused[0].contains("+2 has ended already"), "{:?}", play.refused);
    play.hear(Event::Left);
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
}

#[test]
fn a_session_that_is_left_stops_its_agents_and_tells_nobody() {
    let mut play = open(1, 9);
    play.ask(0, true);
    play.ask(1, true);
    play.hear(Event::Left);
    assert!(play.end.is_none());
    play.finish("+1", OutcomeEnd::Cancelled);
    assert_eq!(play.status(), (RunStatus::Paused, 4));
    assert!(play.ends().is_empty());
}

/// A take before: agents with their ends.
struct Before(Vec<(u32, Option<EndState>, bool)>);

impl Past for Before {
    fn team(&self) -> Vec<PastMate> {
        let mate = |(number, end, is_told): &(u32, Option<EndState>, bool)| PastMate {
            addr: format!("+{number}").parse().unwrap(),
            order: SpawnedOrder {
                id: AgentId::fresh(),
                agent: definition().name.clone(),
                prompt: format!("task {number}"),
                label: format!("label {number}"),
                model: None,
                background: true,
                isolated: false,
            },
            end: *end,
            error: end.map(|_| "boom".to_owned()),
            is_told: *is_told,
        };
        self.0.iter().map(mate).collect()
    }
    fn takes(&self) -> u32 {
        1
    }
    fn spawned(&self, addr: &StepAddr) -> Vec<(String, StepAddr)> {
        let all =
            self.0.iter().map(|(number, ..)| (format!("1.{number}"), format!("+{number}").parse().unwrap()));
        if addr.is_session() { all.collect() } else { Vec::new() }
    }
    fn success(&mut self, addr: &StepAddr, key: &Digest) -> Option<PastSuccess> {
        (addr.to_string() == "+4").then(|| PastSuccess {
            key: *key,
            value: Arc::new(json!("found")),
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
    fn transcript(&self, addr: &StepAddr, _: &Digest) -> Option<Earlier> {
        (addr.to_string() == "+1").then_some(Earlier { attempt: 1, fault: None })
    }
    fn in_doubt(&self, _: &StepAddr) -> bool {
        false
    }
    fn differs(&self, _: &StepAddr, _: &Digest, _: &Digest) -> Option<crate::journal::history::Difference> {
        None
    }
    fn answer(&self, _: &StepAddr) -> Option<(Question, Answer)> {
        None
    }
    fn said(&self, _: &StepAddr) -> Vec<String> {
        Vec::new()
    }
    fn agents(&self) -> usize {
        5
    }
    fn is_empty(&self) -> bool {
        false
    }
}

#[test]
fn a_session_that_comes_back_tells_every_end_once_and_goes_on_with_the_rest() {
    let past = Before(vec![
        (1, None, false),
        (2, Some(EndState::Failed), false),
        (3, Some(EndState::Succeeded), true),
        (4, Some(EndState::Succeeded), false),
        (5, Some(EndState::Interrupted), false),
    ]);
    let mut play = Play::of(session(9, 2), context(), Box::new(past));
    assert_eq!(play.running(), ["+1", "+5"]);
    let told: Vec<(u32, bool)> =
        play.news.iter().map(|news| (news.number, matches!(news.end, ChildEnd::Begun { .. }))).collect();
    assert_eq!(told, [(1, true), (2, false), (4, true), (4, false), (5, true)]);
    let goes_on = |launch: &Launch| match &launch.work {
        Prepared::Agent(agent) => agent.goes_on_from,
        Prepared::Command(_) | Prepared::Value(_) | Prepared::GitMerge(_) => None,
    };
    assert_eq!(goes_on(&play.launches[0]), Some(1), "from its last whole turn");
    play.hear(Event::Spawn {
        parent: StepIx(0),
        attempt: 2,
        call: CallNo { turn: 9, index: 0 },
        order: task(6, true),
    });
    assert!(
        matches!(&play.told[0].2, ChildEnd::Failed(why) if why.contains("limits.agents = 2")),
        "{:?}",
        play.told
    );
    play.hear(Event::UserSpoke);
    play.hear(Event::Spawn {
        parent: StepIx(0),
        attempt: 2,
        call: CallNo { turn: 9, index: 1 },
        order: task(7, true),
    });
    assert_eq!(play.running(), ["+1", "+5", "+6"], "numbers go on");
}
