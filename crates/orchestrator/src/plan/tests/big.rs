//! Large graphs, and the example with everything in it.

use super::fixture::{HEAD, plan_of, said};
use crate::plan::InputArgs;
use crate::plan::render::GraphStyle;
use std::fmt::Write;

/// Digests say nothing to a reader.
fn hide_keys(nodes: &mut serde_json::Value) {
    for node in nodes.as_array_mut().into_iter().flatten() {
        node["key"] = "…".into();
        if node.get("body").is_some() {
            hide_keys(&mut node["body"]);
        }
    }
}

#[test]
fn the_large_example_plans_without_a_word() {
    let plan = match plan_of(include_str!("review_and_fix.toml"), &InputArgs::default()) {
        Ok(plan) => plan,
        Err(problems) => panic!("{}", said(&problems)),
    };
    assert!(plan.warnings.is_empty(), "{}", said(&plan.warnings));
    insta::assert_snapshot!("review_and_fix_plan", plan.text());
    let drawn =
        [GraphStyle::Ascii, GraphStyle::Mermaid, GraphStyle::Dot].map(|style| plan.graph(style)).join("\n");
    insta::assert_snapshot!("review_and_fix_graphs", drawn);
    let mut json = plan.json();
    hide_keys(&mut json["nodes"]);
    insta::assert_snapshot!("review_and_fix_json", serde_json::to_string_pretty(&json).unwrap());
}

fn chain(count: usize, cyclic: bool) -> String {
    let mut text = format!("{HEAD}[limits]\nagents = 1000000\n");
    for at in 0..count {
        let needs = match (at, cyclic) {
            (0, true) => format!("needs = ['n{}']\n", count - 1),
            (0, false) => String::new(),
            _ => format!("needs = ['n{}']\n", at - 1),
        };
        let _ = write!(text, "[node.n{at}]\nprompt = 'p'\n{needs}");
    }
    text
}

#[test]
fn a_chain_of_twenty_thousand_needs_no_stack() {
    let (good, cyclic) = std::thread::Builder::new()
        .stack_size(512 * 1024)
        .spawn(|| {
            (
                plan_of(&chain(20_000, false), &InputArgs::default()),
                plan_of(&chain(20_000, true), &InputArgs::default()),
            )
        })
        .unwrap()
        .join()
        .unwrap();
    assert_eq!(good.unwrap().nodes[0].critical_path, 20_000);
    let problems = cyclic.unwrap_err();
    assert!(problems.len() == 1 && problems[0].message.contains("… 19961 more …"), "{}", said(&problems));
}
