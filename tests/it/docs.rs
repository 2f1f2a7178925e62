//! What stands in the documentation is what the program says of itself.

use claw_kit::{Claw, Sandbox};
use std::path::Path;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

fn document(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

#[test]
fn the_reference_page_is_the_one_that_the_program_prints() {
    let sandbox = Sandbox::new();
    let output = Claw::new(CLAW, &sandbox).args(["workflow", "reference"]).run(BOUND);
    assert_eq!(
        output.stdout,
        document("docs/workflow-reference.md"),
        "renew it: claw workflow reference > docs/workflow-reference.md"
    );
}

#[test]
fn the_page_of_settings_is_the_one_that_the_program_prints() {
    let sandbox = Sandbox::new();
    let output = Claw::new(CLAW, &sandbox).args(["config", "reference"]).run(BOUND);
    assert_eq!(
        output.stdout,
        document("docs/settings-reference.md"),
        "renew it: claw config reference > docs/settings-reference.md"
    );
}

#[test]
fn every_command_that_the_readme_shows_is_one() {
    let sandbox = Sandbox::new();
    let help = Claw::new(CLAW, &sandbox).args(["--help"]).run(BOUND).stdout;
    let readme = document("README.md");
    let commands = readme.split("`claw ").skip(1).filter_map(|rest| rest.split([' ', '`']).next());
    for command in commands.filter(|word| !word.starts_with('-')) {
        assert!(help.contains(&format!("  {command} ")), "`claw {command}` is not in the help");
    }
}
