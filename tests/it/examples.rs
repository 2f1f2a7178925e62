//! Every file in `workflows/` is checked, planned and run. A new one needs its surroundings named here.

use claw_kit::{Claw, Reply, Sandbox, ScriptedProvider, run_program};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

/// An example, with what it is tried on.
struct Example {
    file: &'static str,
    /// Its inputs.
    args: &'static [&'static str],
    /// What it says on standard output is in a snapshot; so is its code.
    code: i32,
}

impl Example {
    fn name(&self) -> &'static str {
        self.file.trim_start_matches("workflows/")
    }
}

const EXAMPLES: &[Example] = &[
    Example { file: "workflows/tour.toml", args: &[], code: 0 },
    Example { file: "workflows/bug-hunt.toml", args: &[], code: 0 },
    Example { file: "workflows/document.toml", args: &["--input", "modules=src/*.rs"], code: 0 },
    Example { file: "workflows/map-files.toml", args: &["--input", "pattern=src/*.rs"], code: 0 },
    Example {
        file: "workflows/migrate.toml",
        args: &["--input", "pattern=src/*.rs", "--input", "change=spaces become tabs"],
        code: 0,
    },
    Example { file: "workflows/release-notes.toml", args: &["--input", "since=HEAD~1"], code: 0 },
    Example { file: "workflows/repair.toml", args: &["--input", "test=test -e repaired"], code: 1 },
    Example { file: "workflows/research.toml", args: &["--input", "question=How is state kept?"], code: 0 },
    // Nobody is there whom its gate could ask.
    Example { file: "workflows/review-and-fix.toml", args: &[], code: 4 },
];

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A small project with a history, and all examples.
fn house(provider: &ScriptedProvider) -> Sandbox {
    let sandbox = Sandbox::anthropic(provider).with_git();
    let project = sandbox.project();
    for part in ["crates", "workflows"] {
        let copied = run_program(&repository(), "cp", &["-r", part, &project.to_string_lossy()]);
        assert!(copied.is_some(), "cannot copy {part}");
    }
    for module in ["one", "two"] {
        sandbox.write(&format!("src/{module}.rs"), format!("//! Module {module}.\n"));
        sandbox.git(&["add", "-A"]);
        sandbox.git(&["commit", "-qm", &format!("Module {module}")]);
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
    let known: BTreeSet<String> = EXAMPLES.iter().map(|example| example.name().to_owned()).collect();
    assert_eq!(names, known);
}

#[test]
fn every_example_is_checked_planned_and_drawn() {
    for example in EXAMPLES {
        let (name, file, args) = (example.name(), example.file, example.args);
        let provider = ScriptedProvider::always(Reply::text("never"));
        let sandbox = house(&provider);
        let claw =
            |words: &[&str]| Claw::new(CLAW, &sandbox).args(words).args(args).run(BOUND).expect_code(0);
        let checked = claw(&["workflow", "check", file]);
        assert!(!checked.stderr.contains("W1") && !checked.stderr.contains("E1"), "{checked}");
        let plan = claw(&["run", file, "--plan"]).stdout;
        insta::assert_snapshot!(format!("{name}.plan"), machine_free(&plan));
        insta::assert_snapshot!(format!("{name}.ascii"), claw(&["workflow", "graph", file]).stdout);
        insta::assert_snapshot!(format!("{name}.mermaid"), claw(&["run", file, "--graph", "mermaid"]).stdout);
        insta::assert_snapshot!(format!("{name}.dot"), claw(&["run", file, "--graph", "dot"]).stdout);
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
fn every_example_runs_to_its_end_with_answers_from_its_file() {
    for example in EXAMPLES.iter().filter(|example| example.name() != "tour.toml") {
        let (name, file, args) = (example.name(), example.file, example.args);
        let provider = ScriptedProvider::always(Reply::text("never"));
        let sandbox = house(&provider);
        let stub = format!("workflows/stubs/{name}");
        let words = ["run", file, "--stub", &stub, "--no-ask"];
        let output = Claw::new(CLAW, &sandbox).args(words).args(args).run(BOUND).expect_code(example.code);
        insta::assert_snapshot!(format!("{name}.result"), output.stdout);
        assert_eq!(provider.count(), 0, "{name}");
        let statuses = sandbox.newest_run().statuses();
        assert!(statuses.values().all(|status| status != "running" && status != "queued"), "{statuses:?}");
    }
}

#[test]
fn the_tour_runs_to_its_end_over_both_wires() {
    for wire in ["anthropic", "openai"] {
        let provider = ScriptedProvider::always(Reply::text("what I found"));
        let mut sandbox = house(&provider);
        if wire == "openai" {
            sandbox = sandbox
                .without_env("ANTHROPIC_API_KEY")
                .without_env("ANTHROPIC_BASE_URL")
                .with_provider(&provider, claw_kit::Wire::OpenAi);
        }
        let output = Claw::new(CLAW, &sandbox).args(["run", "workflows/tour.toml"]).run(BOUND).expect_code(0);
        assert_eq!(provider.count(), 4);
        assert!(output.stdout.contains("what I found"), "{output}");
        let statuses = sandbox.newest_run().statuses();
        assert!(statuses.values().all(|status| status == "completed"), "{statuses:?}");
    }
}

#[test]
fn the_tour_shows_three_explorers_at_once() {
    let gate = claw_kit::Gate::closed();
    let provider = ScriptedProvider::always(Reply::text("seen").gate(&gate));
    let sandbox = house(&provider);
    let running = Claw::new(CLAW, &sandbox).args(["run", "workflows/tour.toml"]).spawn();
    gate.wait_for_waiting(3, BOUND);
    gate.open();
    running.wait(BOUND).expect_code(0);
    assert_eq!(provider.max_in_flight(), 3);
}
