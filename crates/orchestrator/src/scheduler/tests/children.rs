//! Agents that agents start.

use super::*;

fn order(prompt: &str) -> ChildOrder {
    ChildOrder {
        id: None,
        definition: definition(),
        prompt: prompt.into(),
        label: prompt.into(),
        model: None,
        background: false,
        isolated: false,
    }
}

fn call(index: u32) -> CallNo {
    CallNo { turn: 1, index }
}

impl Play {
    fn spawn(&mut self, parent: &str, index: u32) {
        let (parent, attempt) = self.running[parent];
        let order = order(&format!("task {index}"));
        self.hear(Event::Spawn { parent, attempt, call: call(index), order });
    }

    /// What calls were told, by their index.
    fn told(&self) -> Vec<(u32, Result<String, String>)> {
        let told = self.told.iter().map(|(_, call, end)| match end {
            ChildEnd::Done { value, .. } => (call.index, Ok(value.as_str().unwrap_or_default().to_owned())),
            ChildEnd::Begun { step, waiting } => (call.index, Err(format!("{step} begun behind {waiting}"))),
            ChildEnd::Failed(why) => (call.index, Err(why.clone())),
        });
        told.collect()
    }

    fn with_limits(nodes: Vec<Node>, limits: impl FnOnce(&mut Limits)) -> Self {
        let mut plan = Arc::into_inner(plan_of(nodes, 1)).unwrap();
        limits(&mut plan.limits);
        Self::of(Arc::new(plan), context(), Box::new(NoPast))
    }
}

#[test]
fn at_one_slot_a_parent_waits_without_it_and_has_it_again_before_the_last_answer() {
    let mut play = Play::new(vec![agent("a", &[]), agent("z", &[])], 1);
    for index in 1..=3 {
        play.spawn("a", index);
    }
    assert_eq!(play.running(), ["a", "a/+1"], "children go before other nodes");
    play.succeed("a/+1");
    assert_eq!(play.told(), [(1, Ok("out of a/+1".into()))]);
    play.succeed("a/+2");
    assert_eq!(play.running(), ["a", "a/+3"]);
    play.succeed("a/+3");
    assert_eq!(play.told().len(), 3);
    assert_eq!(play.running(), ["a"], "its slot is its own again");
    play.succeed("a");
    play.succeed("z");
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
}

#[test]
fn a_child_is_on_record_before_it_starts_and_in_the_report_below_its_parent() {
    let mut play = Play::new(vec![agent("a", &[]), agent("z", &[])], 3);
    play.spawn("a", 1);
    let spawned = play.records.iter().position(|(_, entry)| matches!(entry, Entry::Spawned { .. })).unwrap();
    let admitted = |(step, entry): &(Option<String>, Entry)| {
        step.as_deref() == Some("a/+1") && matches!(entry, Entry::Admitted { .. })
    };
    assert!(spawned < play.records.iter().position(admitted).unwrap());
    assert_eq!(play.records[spawned].0.as_deref(), Some("a"));
    play.spawn("a/+1", 1);
    play.succeed("a/+1/+1");
    play.succeed("a/+1");
    play.succeed("a");
    play.succeed("z");
    let report = play.schedule.report();
    let names: Vec<String> = report[0].steps.iter().map(|step| step.addr.to_string()).collect();
    assert_eq!(names, ["a", "a/+1", "a/+1/+1"]);
}

#[test]
fn beyond_the_depth_a_call_is_refused_and_names_the_limit() {
    let mut play = Play::with_limits(vec![agent("a", &[])], |limits| limits.depth = 1);
    play.spawn("a", 1);
    play.spawn("a/+1", 7);
    let told = play.told();
    assert!(matches!(&told[0], (7, Err(why)) if why.contains("limits.depth = 1")), "{told:?}");
    play.fail("a/+1", FailureClass::Transient);
    let (step, attempt, _) = play.wakes[0];
    play.hear(Event::Woke { step, attempt });
    play.spawn("a/+1", 8);
    assert!(matches!(&play.told()[1], (8, Err(why)) if why.contains("limits.depth = 1")));
    play.succeed("a/+1");
    play.succeed("a");
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
}

#[test]
fn beyond_the_number_of_agents_a_call_is_refused_and_the_parent_goes_on() {
    let mut play = Play::with_limits(vec![agent("a", &[])], |limits| limits.agents = 3);
    for index in 1..=3 {
        play.spawn("a", index);
    }
    play.succeed("a/+1");
    play.succeed("a/+2");
    let told = play.told();
    assert!(matches!(&told[2], (3, Err(why)) if why.contains("limits.agents = 3")), "{told:?}");
    play.spawn("a", 4);
    assert!(matches!(&play.told()[3], (4, Err(why)) if why.contains("limits.agents = 3")));
    play.succeed("a");
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
}

#[test]
fn a_thousand_children_one_after_another_leak_no_slot() {
    let mut play = Play::with_limits(vec![agent("a", &[]), agent("b", &[])], |limits| {
        (limits.concurrency, limits.agents) = (2, 5000);
    });
    for index in 1..=1000 {
        let parent = if index % 2 == 0 { "a" } else { "b" };
        play.spawn(parent, index);
        let child = format!("{parent}/+{}", index.div_ceil(2));
        assert_eq!(play.running().len(), 3, "{index}");
        play.succeed(&child);
        assert_eq!(play.told.len(), index as usize);
    }
    play.succeed("a");
    play.succeed("b");
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
}

#[test]
fn a_child_that_fails_is_an_error_for_its_parent_which_goes_on() {
    let mut play = Play::new(vec![agent("a", &[])], 2);
    play.spawn("a", 1);
    play.fail("a/+1", FailureClass::Refused);
    assert_eq!(play.told(), [(1, Err("a/+1 failed: boom".into()))]);
    play.succeed("a");
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
}

#[test]
fn a_parent_that_ends_ends_its_children_first() {
    let mut play = Play::new(vec![agent("a", &[])], 2);
    play.spawn("a", 1);
    play.spawn("a", 2);
    play.spawn("a", 3);
    let child = play.running["a/+1"].0;
    play.fail("a", FailureClass::Refused);
    assert!(play.stopped.contains(&child), "{:?}", play.stopped);
    assert_eq!(play.end, None, "children of it still run");
    play.finish("a/+1", OutcomeEnd::Cancelled);
    play.finish("a/+2", OutcomeEnd::Cancelled);
    assert_eq!(play.status(), (RunStatus::Failed, 1));
    assert!(play.schedule.report()[0].steps.iter().all(|step| step.state.is_some()));
}

#[test]
fn a_cancel_reaches_parents_and_children_alike() {
    let mut play = Play::new(vec![agent("a", &[])], 1);
    play.spawn("a", 1);
    play.spawn("a", 2);
    play.hear(Event::Cancel { signal: None });
    assert_eq!(play.stopped.len(), 2);
    play.finish("a", OutcomeEnd::Cancelled);
    play.finish("a/+1", OutcomeEnd::Cancelled);
    assert_eq!(play.status().0, RunStatus::Cancelled);
}

#[test]
fn a_service_that_refuses_all_pauses_parents_with_their_children() {
    let mut play = Play::new(vec![agent("a", &[])], 1);
    play.spawn("a", 1);
    play.spawn("a", 2);
    let parent = play.running["a"].0;
    play.fail("a/+1", FailureClass::Quota);
    assert_eq!(play.stopped, [parent]);
    play.finish("a", OutcomeEnd::Cancelled);
    assert_eq!(play.status().0, RunStatus::Paused);
    assert_eq!(play.told(), []);
}

#[test]
fn a_spent_budget_leaves_children_that_wait_and_their_parents_are_told() {
    let mut play = Play::new(vec![agent("a", &[])], 1);
    play.spawn("a", 1);
    play.spawn("a", 2);
    play.hear(Event::BudgetSpent { reason: "spent".into() });
    play.succeed("a/+1");
    let told = play.told();
    assert!(told.iter().any(|(index, end)| *index == 2 && end.is_err()), "{told:?}");
    assert!(told.iter().any(|(index, end)| *index == 1 && end.is_ok()), "{told:?}");
    play.succeed("a");
    assert_eq!(play.status().0, RunStatus::Stopped);
}

#[test]
fn other_calls_keep_the_slot_until_they_are_done() {
    let mut play = Play::new(vec![agent("a", &[]), agent("z", &[])], 1);
    let (step, attempt) = play.running["a"];
    play.hear(Event::Busy { step, attempt, is_busy: true });
    play.spawn("a", 1);
    assert_eq!(play.running(), ["a"]);
    play.hear(Event::Busy { step, attempt, is_busy: false });
    assert_eq!(play.running(), ["a", "a/+1"]);
    play.succeed("a/+1");
    play.succeed("a");
    play.succeed("z");
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
}

#[test]
fn an_attempt_that_goes_on_hears_of_the_child_that_its_call_started() {
    let mut play = Play::new(vec![agent("a", &[])], 2);
    play.spawn("a", 1);
    play.succeed("a/+1");
    play.fail("a", FailureClass::Transient);
    let (step, attempt, _) = play.wakes[0];
    play.hear(Event::Woke { step, attempt });
    play.spawn("a", 1);
    assert_eq!(play.told().len(), 2);
    assert_eq!(play.started, ["a", "a/+1", "a"]);
    play.succeed("a");
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
}
