//! The rules of the house that a compiler does not check. Each test first shows that its rule finds a
//! broken sample, then asks the repository. A rule is a function from files to sentences.

mod cargo;
mod rust;
mod texts;
mod tree;

use tree::Tree;

type Rule = fn(&Tree) -> Vec<String>;

/// Checks that the rule finds each bad sample and is quiet on each good one, then that the repository obeys.
fn house_rule(rule: Rule, bad: &[(&str, &str)], good: &[(&str, &str)]) {
    for sample in bad {
        let found = rule(&Tree::of(&[*sample]));
        assert!(!found.is_empty(), "the rule does not find what is wrong with {}:\n{}", sample.0, sample.1);
    }
    for sample in good {
        let found = rule(&Tree::of(&[*sample]));
        assert!(found.is_empty(), "the rule is wrong about {}:\n{}\n{found:?}", sample.0, sample.1);
    }
    let found = rule(&Tree::of_repository());
    assert!(found.is_empty(), "{} broken:\n{}", found.len(), found.join("\n"));
}

#[test]
fn crates_depend_downwards_only() {
    house_rule(
        cargo::arrows,
        &[
            ("crates/kernel/Cargo.toml", "[dependencies]\nclaw-tools.workspace = true"),
            ("crates/tools/Cargo.toml", "[dependencies]\nclaw-providers = { path = \"../providers\" }"),
            ("crates/agents/Cargo.toml", "[dev-dependencies]\nclaw-cli.workspace = true"),
            ("crates/agents/Cargo.toml", "[dependencies]\nclaw-kit.workspace = true"),
            ("crates/agents/Cargo.toml", "[dependencies.claw-orchestrator]\nworkspace = true"),
            ("tests/kit/Cargo.toml", "[dependencies]\nclaw-kernel.workspace = true"),
            ("crates/new/Cargo.toml", "[dependencies]\nclaw-unheard-of.workspace = true"),
        ],
        &[(
            "crates/cli/Cargo.toml",
            "[dependencies]\nclaw-tools.workspace = true\n[dev-dependencies]\nclaw-kit.workspace = true",
        )],
    );
}

#[test]
fn versions_and_lints_stand_in_the_root_manifest_only() {
    house_rule(
        cargo::inherited,
        &[
            ("crates/tools/Cargo.toml", "[lints]\nworkspace = true\n[dependencies]\nserde = \"1\""),
            ("crates/tools/Cargo.toml", "[dependencies]\nserde.workspace = true"),
        ],
        &[(
            "crates/tools/Cargo.toml",
            "[lints]\nworkspace = true\n[dependencies]\nserde.workspace = true\nx = { workspace = true, features = [] }",
        )],
    );
}

#[test]
fn each_direct_dependency_has_a_reason() {
    house_rule(
        cargo::reasons,
        &[("Cargo.toml", "[workspace.dependencies]\n# Data.\nserde = \"1\"\n\ntoml = \"1\"")],
        &[(
            "Cargo.toml",
            "[workspace.dependencies]\n# Data.\nserde = \"1\"\n\ntoml = \"1\" # the workflow file",
        )],
    );
}

#[test]
fn the_lock_file_stays_small_and_has_one_crypto_library() {
    let many = "[[package]]\nname = \"x\"\n".repeat(cargo::MOST_PACKAGES + 1);
    house_rule(
        cargo::locked,
        &[("Cargo.lock", &many), ("Cargo.lock", "[[package]]\nname = \"aws-lc-rs\"\nversion = \"1\"")],
        &[("Cargo.lock", "[[package]]\nname = \"ring\"")],
    );
}

#[test]
fn the_release_unwinds_and_functions_stay_short() {
    house_rule(
        cargo::settings,
        &[
            ("Cargo.toml", "[profile.release]\npanic = \"abort\""),
            ("Cargo.toml", "[profile.release]\nstrip = true"),
            ("clippy.toml", "too-many-lines-threshold = 200\ntoo-many-arguments-threshold = 7"),
        ],
        &[("clippy.toml", "too-many-lines-threshold = 60\ntoo-many-arguments-threshold = 7")],
    );
}

#[test]
fn one_library_lives_in_one_room() {
    house_rule(
        rust::one_library_one_room,
        &[
            ("crates/cli/src/run.rs", "use clap::Parser;"),
            ("crates/tools/src/a.rs", "fn f() { reqwest::get(\"x\") }"),
            ("crates/agents/src/conversation/mod.rs", "use ractor::Actor;"),
            ("crates/orchestrator/src/plan/check.rs", "type G = ::petgraph::Graph<(), ()>;"),
            ("crates/cli/src/args_too.rs", "#[derive(clap::Parser)] struct A;"),
        ],
        &[
            ("crates/cli/src/args/run.rs", "use clap::Parser;"),
            ("crates/agents/src/conversation/actor.rs", "use ractor::Actor;"),
            ("crates/kernel/src/supervise.rs", "use ractor::Actor;"),
            ("crates/cli/src/run.rs", "// clap::Parser\nlet x = \"clap::Parser\"; self::console::log();"),
        ],
    );
}

#[test]
fn exceptions_to_the_bans_stand_in_their_room() {
    house_rule(
        rust::exceptions,
        &[("crates/agents/src/a.rs", "#[expect(clippy::disallowed_methods, reason = \"x\")]\nfn f() {}")],
        &[(
            "crates/tools/src/process/spawn.rs",
            "#[expect(clippy::disallowed_methods, reason = \"x\")] fn f() {}",
        )],
    );
}

#[test]
fn lints_are_not_switched_off_and_expectations_have_a_reason() {
    house_rule(
        rust::no_allow,
        &[
            ("crates/a/src/a.rs", "#[allow(dead_code)]\nfn f() {}"),
            ("crates/a/src/a.rs", "#![allow(dead_code)]"),
            ("crates/a/src/a.rs", "#[cfg_attr(test, allow(dead_code))]\nfn f() {}"),
            ("crates/a/src/a.rs", "#[expect(dead_code)]\nfn f() {}"),
        ],
        &[(
            "crates/a/src/a.rs",
            "#[expect(dead_code, reason = \"kept for [x]\")]\nfn f() { x.expect(\"y\"); }",
        )],
    );
}

#[test]
fn files_stay_short() {
    let code = "fn f() {}\n".repeat(rust::MOST_CODE_LINES + 1);
    let tests = "fn f() {}\n".repeat(rust::MOST_TEST_LINES + 1);
    let fine = format!(
        "{}#[cfg(test)]\nmod tests {{\n{}}}\n",
        "fn f() {}\n// why\n".repeat(500),
        "// x\n".repeat(800)
    );
    house_rule(
        rust::file_sizes,
        &[("crates/a/src/a.rs", &code), ("tests/it/a.rs", &tests), ("crates/a/src/a/tests.rs", &tests)],
        &[("crates/a/src/a.rs", &fine), ("crates/a/src/b/tests.rs", &code)],
    );
}

#[test]
fn lib_and_mod_files_hold_no_logic_and_main_is_short() {
    let long = "// x\n".repeat(rust::MOST_MAIN_LINES + 1);
    house_rule(
        rust::no_logic_at_the_door,
        &[
            ("crates/a/src/lib.rs", "//! A.\nmod b;\npub fn f() {}"),
            ("crates/a/src/b/mod.rs", "//! B.\npub struct S;"),
            ("crates/cli/src/main.rs", &long),
        ],
        &[(
            "crates/a/src/lib.rs",
            "//! A fn.\n#![forbid(unsafe_code)]\nmod b;\npub use b::{C, D};\n#[cfg(test)]\nmod tests {\n fn f() {}\n}",
        )],
    );
}

#[test]
fn no_module_is_called_after_nothing() {
    house_rule(
        rust::module_names,
        &[
            ("crates/a/src/utils.rs", ""),
            ("crates/a/src/helpers/mod.rs", ""),
            ("crates/a/src/a.rs", "mod common {}"),
        ],
        &[("crates/a/src/common_ground.rs", "")],
    );
}

#[test]
fn errors_are_types() {
    house_rule(
        rust::no_text_errors,
        &[
            ("crates/a/src/a.rs", "fn f() -> Result<Vec<(u8, u8)>, String> {}"),
            ("crates/a/src/a.rs", "type R<T> = std::result::Result<T,\n    std::string::String>;"),
        ],
        &[("crates/a/src/a.rs", "fn f() -> Result<String, Error> {} // Result<(), String>")],
    );
}

#[test]
fn tests_do_not_sleep() {
    house_rule(
        rust::no_sleep_in_tests,
        &[
            ("tests/it/a.rs", "std::thread::sleep(x);"),
            ("crates/a/src/a.rs", "#[cfg(test)]\nmod tests { async fn f() { tokio::time::sleep(x).await } }"),
            ("crates/a/src/a/tests.rs", "thread::sleep(x);"),
        ],
        &[
            ("tests/kit/src/machine.rs", "std::thread::sleep(x);"),
            ("crates/a/src/a.rs", "async fn f() { tokio::time::sleep(x).await }"),
            (
                "crates/a/src/a/tests.rs",
                "#[tokio::test(start_paused = true)] async fn f() { time::sleep(x).await }",
            ),
        ],
    );
}

#[test]
fn each_module_says_what_it_owns() {
    house_rule(
        rust::module_docs,
        &[("crates/a/src/a.rs", "use b;\n//! late"), ("tests/it/a.rs", "fn f() {}")],
        &[("crates/a/src/a.rs", "//! Owns a."), ("crates/a/src/a/tests.rs", "use super::*;")],
    );
}

#[test]
fn no_text_names_this_machine_or_how_the_work_was_done() {
    let machine = concat!("see /wo", "rk/main");
    let words = concat!("see DEVELO", "PERS.md");
    house_rule(
        texts::no_machine_paths,
        &[("README.md", machine), ("scripts/a.sh", words), ("a.toml", concat!("x = \"/tmp", "/tb\""))],
        &[("README.md", concat!("cd ~/wo", "rk/claw"))],
    );
}

#[test]
fn each_example_workflow_is_named_in_a_test() {
    house_rule(texts::workflows_are_tested, &[("workflows/lonely.toml", "")], &[("docs/lonely.toml", "")]);
}

#[test]
fn scripts_say_what_they_do_and_stop_at_errors() {
    house_rule(
        texts::scripts_have_heads,
        &[
            ("scripts/a.sh", "#!/usr/bin/env bash\nset -euo pipefail\necho"),
            ("scripts/a.sh", "#!/usr/bin/env bash\n# Does a.\necho"),
            (".ci/run", "echo"),
        ],
        &[("scripts/a.sh", "#!/usr/bin/env bash\n# Does a.\nset -euo pipefail\necho")],
    );
}

#[test]
fn comments_texts_and_tests_are_told_from_code() {
    let text = r##"a(); // b
/* c /* d */ e */ f("g \" h", r#"i " j"#, 'k', '\'', b"l"); fn m<'n>(o: &'n str) {}
#[cfg(test)]
mod tests { p(); }
"##;
    let tree = Tree::of(&[("crates/a/src/a.rs", text)]);
    let file = tree.rust().next().unwrap();
    let words: String = file.code.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(
        words,
        r##"a(); f(" ", r#" "#, ' ', ' ', b" "); fn m<'n>(o: &'n str) {} #[cfg(test)] mod tests { p(); }"##
    );
    assert!(!file.own_code().contains("p()") && file.test_code().contains("p()"));
    assert_eq!(file.code.len(), text.len());
}
