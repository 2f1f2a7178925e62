//! Whole runs under a seed: equal seeds give equal logs, a kill anywhere loses nothing and repeats nothing.

use super::groups::{group, looped, plan_with, prompt};
use super::*;
use crate::expr::ParseError;
use std::collections::BTreeSet;

/// Runs of a quick and of a long test.
fn seeds() -> u64 {
    if std::env::var_os("CLAW_LONG_TESTS").is_some() { 1_000 } else { 60 }
}

fn needs(dice: &mut fastrand::Rng, at: usize) -> Vec<u32> {
    let count = dice.usize(0..=3.min(at));
    let found: BTreeSet<u32> = (0..count).map(|_| dice.u32(0..at as u32)).collect();
    found.into_iter().collect()
}

fn reading(node: Node, names: &[String]) -> Node {
    let text = names.iter().map(|name| format!("{{{{ {name} | json }}}} ")).collect::<String>();
    match Template::parse(&text) {
        Ok(_) => prompt(node, &text),
        Err(ParseError { message, .. }) => panic!("{message}"),
    }
}

/// Some thirty nodes of all kinds, twenty more in bodies.
fn random_plan(seed: u64) -> Arc<Plan> {
    let mut dice = fastrand::Rng::with_seed(seed);
    let mut top: Vec<Node> = Vec::new();
    let mut bodies = Vec::new();
    for at in 0..30 {
        let id = format!("n{at}");
        let before = needs(&mut dice, at);
        let names: Vec<String> = before.iter().map(|need| format!("n{need}")).collect();
        let mut node = match dice.u32(0..8) {
            0 => set(&id, &before, "1 + 1"),
            1 => command(&id, &before),
            2 => each(reading(agent(&id, &before), &names), items(dice.usize(0..5))),
            3 => looped(agent(&id, &before), 3, &format!("{id} == 'out of {id}@2'")),
            4 => {
                let body = (0..4).map(|inner| {
                    let needs = needs(&mut dice, inner);
                    agent(&format!("b{inner}"), &needs)
                });
                bodies.push((at, body.collect()));
                let mut node = group(&id, &before);
                if dice.bool() {
                    node = each(node, items(dice.usize(0..4)));
                }
                if dice.bool() {
                    node = looped(node, 2, "loop.index == 2");
                }
                node
            }
            _ => reading(agent(&id, &before), &names),
        };
        node.join = [Join::AllSucceeded, Join::AllDone, Join::NoneFailed][dice.usize(0..3)];
        node.priority = dice.i64(0..3);
        top.push(node);
    }
    plan_with(top, bodies)
}

/// Whether this step fails, in every run alike.
fn fails(addr: &str) -> bool {
    Digest::of(addr).as_bytes()[0] < 16
}

/// Plays to the end, or as many ends of steps as said. What the order of ends is, the seed says.
fn play_on(play: &mut Play, seed: u64, mut most: usize) {
    let mut dice = fastrand::Rng::with_seed(seed);
    while play.end.is_none() && most > 0 {
        most -= 1;
        let running: Vec<String> = play.running().into_iter().map(str::to_owned).collect();
        assert!(!running.is_empty(), "nothing runs and the run is not over");
        let addr = &running[dice.usize(0..running.len())];
        if fails(addr) { play.fail(addr, FailureClass::Tool) } else { play.succeed(addr) }
    }
}

fn log(play: &Play) -> Vec<String> {
    let lines = play.records.iter().map(|(addr, entry)| match entry {
        // Ids of agents are random by design.
        Entry::Admitted { key, .. } => format!("{addr:?} admitted {key}"),
        other => format!("{addr:?} {other:?}"),
    });
    lines.collect()
}

fn came_to(play: &Play) -> (RunStatus, Value, Vec<(String, Option<EndState>)>) {
    let end = play.end.as_ref().unwrap();
    let alike = |state: EndState| if state == EndState::Cached { EndState::Succeeded } else { state };
    let nodes = play.schedule.report().into_iter();
    (end.status, end.result.clone(), nodes.map(|node| (node.id.to_string(), node.state.map(alike))).collect())
}

#[test]
fn equal_seeds_give_equal_logs() {
    for seed in 0..seeds() {
        let logs = [0, 1].map(|_| {
            let mut play = Play::of(random_plan(seed), context(), Box::new(NoPast));
            play_on(&mut play, seed, usize::MAX);
            log(&play)
        });
        assert_eq!(logs[0], logs[1], "seed {seed}");
    }
}

#[test]
fn a_kill_at_any_moment_and_a_resume_come_to_the_same_end_and_repeat_nothing() {
    for seed in 0..seeds() {
        let mut whole = Play::of(random_plan(seed), context(), Box::new(NoPast));
        play_on(&mut whole, seed, usize::MAX);
        let ends = whole.started.len();
        let mut memory = Memory::default();
        let mut dice = fastrand::Rng::with_seed(seed);
        // Killed up to three times, at any moment of what is left.
        for kill in 0..=dice.usize(1..=3) {
            let mut play = Play::of(random_plan(seed), context(), Box::new(memory.clone()));
            play_on(&mut play, seed ^ kill as u64, dice.usize(0..=ends));
            let done =
                |launch: &&Launch| memory.successes.contains_key(&(launch.addr.to_string(), launch.key));
            if let Some(again) = play.launches.iter().find(done) {
                panic!("seed {seed}: {} was done before", again.addr);
            }
            // Nine agents and four commands.
            assert!(play.most_running <= 13);
            memory.successes.extend(remembered(&play).successes);
        }
        let mut last = Play::of(random_plan(seed), context(), Box::new(memory));
        play_on(&mut last, seed, usize::MAX);
        assert_eq!(came_to(&last), came_to(&whole), "seed {seed}");
    }
}
