//! Every file in `workflows/` is checked, planned and run. A new one needs its surroundings named here.

use claw_kit::{Claw, Reply, Sandbox, ScriptedProvider, run_program};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

/// Each example: its file, what is copied of the repository, how many requests a run takes.
const EXAMPLES: &[(&str, &[&str], usize)] = &[("tour.toml", &["crates"], 4)];

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn house(provider: &ScriptedProvider, surroundings: &[&str]) -> Sandbox {
    let sandbox = Sandbox::anthropic(provider);
    let project = sandbox.project();
    for part in surroundings.iter().chain(&["workflows"]) {
        let copied = run_program(&repository(), "cp", &["-r", part, &project.to_string_lossy()]);
        assert!(copied.is_some(), "cannot copy {part}");
    }
    sandbox
}

#[test]
fn all_examples_are_known_here() {
    let names: BTreeSet<String> = std::fs::read_dir(repository().join("workflows"))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    let known: BTreeSet<String> = EXAMPLES.iter().map(|(name, ..)| (*name).to_owned()).collect();
    assert_eq!(names, known);
}

#[test]
fn every_example_is_checked_planned_and_drawn() {
    for (name, surroundings, _) in EXAMPLES {
        let provider = ScriptedProvider::always(Reply::text("never"));
        let sandbox = house(&provider, surroundings);
        let file = format!("workflows/{name}");
        let claw = |args: &[&str]| Claw::new(CLAW, &sandbox).args(args).run(BOUND).expect_code(0);
        let checked = claw(&["workflow", "check", &file]);
        assert!(!checked.stderr.contains("W1") && !checked.stderr.contains("E1"), "{checked}");
        let plan = claw(&["run", &file, "--plan"]).stdout;
        insta::assert_snapshot!(format!("{name}.plan"), machine_free(&plan));
        insta::assert_snapshot!(format!("{name}.ascii"), claw(&["workflow", "graph", &file]).stdout);
        insta::assert_snapshot!(
            format!("{name}.mermaid"),
            claw(&["run", &file, "--graph", "mermaid"]).stdout
        );
        insta::assert_snapshot!(format!("{name}.dot"), claw(&["run", &file, "--graph", "dot"]).stdout);
        assert_eq!(provider.count(), 0);
        assert!(!sandbox.has(".claw"), "a plan starts nothing");
    }
}

/// What depends on the number of cores is left out.
fn machine_free(plan: &str) -> String {
    let parts = |line: &str| -> String {
        line.split(", ").filter(|part| !part.ends_with("commands at once")).collect::<Vec<_>>().join(", ")
    };
    plan.lines()
        .map(|line| if line.starts_with("limits") { parts(line) } else { line.to_owned() } + "\n")
        .collect()
}

#[test]
fn every_example_runs_to_its_end() {
    for (name, surroundings, requests) in EXAMPLES {
        for wire in ["anthropic", "openai"] {
            let provider = ScriptedProvider::always(Reply::text("what I found"));
            let mut sandbox = house(&provider, surroundings);
            if wire == "openai" {
                sandbox = sandbox
                    .without_env("ANTHROPIC_API_KEY")
                    .without_env("ANTHROPIC_BASE_URL")
                    .with_provider(&provider, claw_kit::Wire::OpenAi);
            }
            let output = Claw::new(CLAW, &sandbox)
                .args(["run", &format!("workflows/{name}")])
                .run(BOUND)
                .expect_code(0);
            assert_eq!(provider.count(), *requests, "{name}");
            assert!(output.stdout.contains("what I found"), "{output}");
            let open: Vec<_> = sandbox
                .newest_run()
                .statuses()
                .into_values()
                .filter(|status| status != "completed")
                .collect();
            assert!(open.is_empty(), "{open:?}");
        }
    }
}

#[test]
fn the_tour_shows_three_explorers_at_once() {
    let gate = claw_kit::Gate::closed();
    let provider = ScriptedProvider::always(Reply::text("seen").gate(&gate));
    let sandbox = house(&provider, &["crates"]);
    let running = Claw::new(CLAW, &sandbox).args(["run", "workflows/tour.toml"]).spawn();
    gate.wait_for_waiting(3, BOUND);
    gate.open();
    running.wait(BOUND).expect_code(0);
    assert_eq!(provider.max_in_flight(), 3);
}
