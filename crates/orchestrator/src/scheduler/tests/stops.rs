//! Gates, locks, pauses, budgets, final nodes.

use super::groups::{asked, group, plan_with, play, prompt};
use super::*;

fn gate(id: &str, needs: &[u32], default: Option<&str>) -> Node {
    let work = GateWork {
        message: Template::parse("go on?").unwrap(),
        show: vec![Expr::parse("1 + 1").unwrap()],
        choices: vec!["approve".into(), "reject".into()],
        default: default.map(str::to_owned),
        on_timeout: OnTimeout::Pause,
    };
    node(id, needs, Work::Gate(work))
}

fn with_somebody() -> ScheduleContext {
    ScheduleContext { can_ask: true, ..context() }
}

fn answer(choice: &str) -> Answer {
    Answer { choice: choice.into(), comment: Some("why not".into()), by: AnsweredBy::Person }
}

fn answered(play: &mut Play, step: &str, choice: &str) {
    play.hear(Event::Answered { step: step.parse().unwrap(), answer: answer(choice) });
}

#[test]
fn a_gate_waits_for_an_answer_and_gives_it_on() {
    let nodes = vec![gate("g", &[], None), set("after", &[0], "g.choice ~ ':' ~ g.comment")];
    let mut play = Play::of(plan_of(nodes, 1), with_somebody(), Box::new(NoPast));
    assert!(play.end.is_none());
    answered(&mut play, "g", "perhaps");
    answered(&mut play, "nobody", "approve");
    assert_eq!(
        play.refused,
        ["g has no choice `perhaps`: approve, reject", "nobody does not wait for an answer"]
    );
    answered(&mut play, "g", "approve");
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
    assert_eq!(play.end.as_ref().unwrap().result, json!("approve:why not"));
    let names: Vec<&str> = play
        .records
        .iter()
        .filter_map(|(_, entry)| match entry {
            Entry::Asked(_) => Some("asked"),
            Entry::Answered(_) => Some("answered"),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["asked", "answered"]);
}

#[test]
fn with_nobody_there_the_default_is_taken_or_the_run_pauses_when_all_else_is_done() {
    let play = Play::new(vec![gate("g", &[], Some("reject"))], 1);
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
    assert_eq!(play.end.unwrap().result["choice"], json!("reject"));
    let mut play = Play::new(vec![gate("g", &[], None), agent("a", &[]), agent("b", &[0])], 1);
    assert!(play.end.is_none());
    play.succeed("a");
    assert_eq!(play.status(), (RunStatus::Paused, 4));
    assert!(play.end.unwrap().reason.unwrap().contains("claw runs answer R g CHOICE"));
}

#[test]
fn what_was_answered_while_no_process_held_the_run_counts_at_resume_for_the_same_question() {
    let first = Play::new(vec![gate("g", &[], None)], 1);
    let question = first.records.iter().find_map(|(_, entry)| match entry {
        Entry::Asked(question) => Some(question.clone()),
        _ => None,
    });
    let mut memory = Memory::default();
    memory.answers.insert("g".into(), (question.unwrap(), answer("approve")));
    let other = |message: &str| {
        let mut node = gate("g", &[], None);
        if let Work::Gate(gate) = &mut node.work {
            gate.message = Template::parse(message).unwrap();
        }
        Play::with_past(vec![node], 1, Box::new(memory.clone())).status()
    };
    assert_eq!(other("go on?"), (RunStatus::Succeeded, 0));
    assert_eq!(other("really?"), (RunStatus::Paused, 4));
}

#[test]
fn a_gate_that_is_not_answered_in_time_pauses_or_takes_its_choice() {
    for (on_timeout, expected) in [
        (OnTimeout::Pause, (RunStatus::Paused, 4)),
        (OnTimeout::Choose("reject".into()), (RunStatus::Succeeded, 0)),
    ] {
        let mut node = gate("g", &[], None);
        if let Work::Gate(gate) = &mut node.work {
            gate.on_timeout = on_timeout;
        }
        let mut play = Play::of(plan_of(vec![node], 1), with_somebody(), Box::new(NoPast));
        let step = play.timers[0];
        play.hear(Event::GateExpired { step });
        assert_eq!(play.status(), expected);
    }
}

#[test]
fn a_lock_is_held_by_one_step_at_a_time_and_goes_to_the_next() {
    let locked = |id: &str| {
        let mut node = agent(id, &[]);
        node.locks = vec!["target".into()];
        node
    };
    let mut play = Play::new(vec![locked("a"), locked("b"), agent("free", &[])], 9);
    assert_eq!(play.running(), ["free"]);
    assert_eq!(play.locks.len(), 1);
    let step = play.locks[0].0;
    play.hear(Event::LocksHeld { step, result: Ok(()) });
    assert_eq!(play.running(), ["a", "free"]);
    play.succeed("a");
    let step = play.locks[1].0;
    play.hear(Event::LocksHeld { step, result: Ok(()) });
    assert_eq!(play.running(), ["b", "free"]);
    play.succeed("b");
    play.succeed("free");
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
}

#[test]
fn a_body_does_not_wait_for_the_lock_that_its_group_holds() {
    let mut outer = group("g", &[]);
    outer.locks = vec!["x".into()];
    let mut inner = agent("a", &[]);
    inner.locks = vec!["x".into()];
    let mut play = play(plan_with(vec![outer], vec![(0, vec![inner])]));
    let step = play.locks[0].0;
    play.hear(Event::LocksHeld { step, result: Ok(()) });
    assert_eq!(play.running(), ["g/a"]);
    play.succeed("g/a");
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
}

#[test]
fn a_lock_that_cannot_be_taken_fails_its_step_with_the_cause() {
    let mut node = agent("a", &[]);
    node.locks = vec!["x".into()];
    let mut play = Play::new(vec![node], 9);
    let step = play.locks[0].0;
    play.hear(Event::LocksHeld { step, result: Err(NotLocked { message: "no such folder".into() }) });
    assert_eq!(play.states()["a"].1.as_deref(), Some("no such folder"));
}

#[test]
fn a_spent_budget_lets_what_runs_end_and_starts_only_final_nodes() {
    let mut report = prompt(agent("report", &[0, 1]), "{{ a.outputs | json }} {{ nodes.b.status }}");
    report.is_final = true;
    let mut play = Play::new(vec![each(agent("a", &[]), items(9)), agent("b", &[0]), report], 2);
    play.succeed("a=0");
    play.hear(Event::BudgetSpent { reason: "budget.tokens = 10 is spent".into() });
    play.succeed("a=1");
    assert_eq!(play.running(), ["a=2"]);
    play.finish("a=2", OutcomeEnd::Interrupted("budget.tokens = 10 is spent".into()));
    assert_eq!(play.running(), ["report"]);
    let told = asked(&play, "report");
    assert!(told.contains(r#"["out of a=0","out of a=1"]"#) && told.ends_with("interrupted"), "{told}");
    play.succeed("report");
    assert_eq!(play.status(), (RunStatus::Stopped, 3));
    assert!(play.end.as_ref().unwrap().reason.as_ref().unwrap().contains("budget.tokens"));
    assert_eq!(play.states()["report"].0, Some(EndState::Succeeded));
    assert_eq!(play.states()["b"].0, None);
}

#[test]
fn a_final_node_runs_behind_a_failure_too() {
    let mut report = agent("report", &[0]);
    report.is_final = true;
    let mut play = Play::new(vec![agent("a", &[]), report], 2);
    play.fail("a", FailureClass::Tool);
    play.succeed("report");
    assert_eq!(play.status(), (RunStatus::Failed, 1));
}

#[test]
fn a_pause_stops_agents_lets_commands_end_and_a_resume_goes_on() {
    let nodes = || vec![agent("a", &[]), command("c", &[]), agent("late", &[1])];
    let mut first = Play::new(nodes(), 9);
    first.hear(Event::Pause { reason: "asked to".into(), until: None });
    assert_eq!(first.stopped.len(), 1);
    first.finish("a", OutcomeEnd::Cancelled);
    first.succeed("c");
    assert_eq!(first.status(), (RunStatus::Paused, 4));
    let interrupted = first.records.iter().any(|(addr, entry)| {
        let is = |ended: &crate::journal::record::Ended| ended.state == EndState::Interrupted;
        addr.as_deref() == Some("a") && matches!(entry, Entry::Ended(ended) if is(ended))
    });
    assert!(interrupted);
    let second = Play::with_past(nodes(), 9, Box::new(remembered(&first)));
    assert_eq!(second.started, ["a", "late"]);
}

#[test]
fn a_merge_of_branches_that_asks_starts_again_with_the_answer() {
    let git =
        GitMerge { nodes: Vec::new(), apply: Apply::Patch, verify: None, on_conflict: OnConflict::Gate };
    let work = Work::Merge(MergeWork { from: Vec::new(), strategy: MergeStrategy::Git(git), write: None });
    let question = || Question {
        message: "conflict".into(),
        show: Vec::new(),
        choices: vec!["keep".into(), "retry".into(), "stop".into()],
        default: None,
        until: None,
    };
    for (choice, ends) in [("keep", false), ("stop", true)] {
        let plan = plan_of(vec![node("land", &[], clone_of(&work))], 1);
        let mut play = Play::of(plan, with_somebody(), Box::new(NoPast));
        play.finish("land", OutcomeEnd::Asks(Box::new(question())));
        answered(&mut play, "land", choice);
        assert_eq!(play.end.is_some(), ends);
        if !ends {
            let launch = play.launches.last().unwrap();
            let Prepared::GitMerge(merge) = &launch.work else { panic!("no merge") };
            assert_eq!(merge.answer.as_ref().map(|answer| answer.choice.as_str()), Some("keep"));
            assert_eq!(launch.attempt, 2);
        }
    }
}

fn clone_of(work: &Work) -> Work {
    match work {
        Work::Merge(MergeWork { strategy: MergeStrategy::Git(git), .. }) => Work::Merge(MergeWork {
            from: Vec::new(),
            strategy: MergeStrategy::Git(GitMerge {
                nodes: git.nodes.clone(),
                apply: git.apply,
                verify: None,
                on_conflict: git.on_conflict,
            }),
            write: None,
        }),
        _ => panic!("only merges of branches"),
    }
}

#[test]
fn words_to_an_agent_are_on_record_and_refused_where_none_runs() {
    let mut play = Play::new(vec![agent("a", &[]), agent("b", &[0])], 1);
    let say = |play: &mut Play, step: &str| {
        play.hear(Event::Steered { step: step.parse().unwrap(), text: "look at x".into() });
    };
    say(&mut play, "a");
    say(&mut play, "b");
    assert_eq!(play.refused, ["no agent of b is running"]);
    let steered = play.records.iter().filter(|(_, entry)| matches!(entry, Entry::Steered { number: 1, .. }));
    assert_eq!(steered.count(), 1);
}

#[test]
fn the_rest_of_a_fan_out_waits_until_the_first_answer_begins_or_long_enough() {
    let warm = || {
        let mut node = each(agent("a", &[]), items(3));
        node.each.as_mut().unwrap().warm = Some(true);
        Play::new(vec![node], 9)
    };
    let mut play = warm();
    assert_eq!(play.running(), ["a=0"]);
    assert!(play.launches[0].warms);
    let step = play.launches[0].step;
    play.hear(Event::Warmed { step });
    assert_eq!(play.running(), ["a=0", "a=1", "a=2"]);
    assert!(!play.launches[1].warms);
    play.hear(Event::Warmed { step });
    for addr in ["a=0", "a=1", "a=2"] {
        play.succeed(addr);
    }
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
    let mut failed = warm();
    failed.fail("a=0", FailureClass::Tool);
    assert_eq!(failed.running(), ["a=1"]);
}

#[test]
fn what_an_earlier_take_did_asks_for_no_lock_again() {
    let plan = || {
        let mut node = agent("a", &[]);
        node.locks = vec!["x".into()];
        plan_of(vec![node, agent("b", &[0])], 9)
    };
    let mut first = play(plan());
    let step = first.locks[0].0;
    first.hear(Event::LocksHeld { step, result: Ok(()) });
    first.succeed("a");
    let second = Play::of(plan(), context(), Box::new(remembered(&first)));
    assert!(second.locks.is_empty());
    assert_eq!(second.running(), ["b"]);
}

#[test]
fn a_person_decides_on_a_command_in_doubt() {
    for (choice, started, state) in [("retry", 1, EndState::Succeeded), ("skip", 0, EndState::Skipped)] {
        let memory = Memory { doubt: vec!["c".into()], ..Memory::default() };
        let mut play = Play::of(plan_of(vec![command("c", &[])], 1), with_somebody(), Box::new(memory));
        assert!(play.started.is_empty() && play.end.is_none());
        answered(&mut play, "c", choice);
        assert_eq!(play.started.len(), started);
        if started == 1 {
            play.succeed("c");
        }
        assert_eq!(play.states()["c"].0, Some(state));
    }
}
