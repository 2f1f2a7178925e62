//! Where each check of the scheduler is: bugs that other programs had, and the tests that keep them out.

use std::path::Path;

/// What must hold; the file below the top of the repository; the tests.
const CHECKS: &[(&str, &str, &[&str])] = &[
    (
        "1. a map killed at half: exactly the unfinished items run, after a second kill too",
        "tests/it/resume.rs",
        &["of_a_map_exactly_the_unfinished_items_run_after_one_kill_and_after_two"],
    ),
    (
        "2. one failed item of many: one runs",
        "tests/it/resume.rs",
        &["only_the_failed_item_of_many_runs_again"],
    ),
    (
        "3. an edited prompt: what is done and does not depend on it stays",
        "tests/it/resume.rs",
        &["an_edited_prompt_runs_that_node_and_what_depends_on_it_and_says_why"],
    ),
    (
        "5. quota: no further request, paused, resumes",
        "tests/it/budget.rs",
        &["a_quota_error_at_item_ten_of_many_stops_every_further_request_and_the_run_resumes"],
    ),
    (
        "6. the concurrency holds under map, loop and nested files together",
        "tests/it/bodies.rs",
        &["items_rounds_and_nested_files_together_never_pass_the_limit_of_the_run"],
    ),
    (
        "6. and with children that agents start; 7. the depth",
        "tests/it/spawn.rs",
        &[
            "map_loop_and_children_together_never_pass_the_concurrency",
            "children_that_start_children_end_at_the_depth_and_at_the_number_of_agents",
        ],
    ),
    (
        "8. no slot leaks",
        "crates/orchestrator/src/scheduler/tests/children.rs",
        &["a_thousand_children_one_after_another_leak_no_slot"],
    ),
    (
        "8. no slot leaks over agents that fail; 9. a stuck item; 14. templates in shell strings; 15. forged fences; 16. nobody to ask",
        "tests/it/run.rs",
        &[
            "no_slot_leaks_over_hundreds_of_agents_of_which_some_fail",
            "one_stuck_item_is_ended_by_the_idle_limit_and_the_others_keep_their_results",
            "a_template_in_a_shell_string_is_refused_wherever_a_shell_is_hidden",
            "upstream_text_stays_inside_its_fence_even_with_a_forged_end",
            "what_would_have_to_ask_with_nobody_there_waits_for_nothing",
        ],
    ),
    (
        "10. writers in folders of their own: not a byte of the workspace; the base is its HEAD",
        "tests/it/worktrees.rs",
        &[
            "two_writers_at_once_touch_nothing_and_a_merge_lands_what_does_not_conflict",
            "twenty_writers_touch_nothing_until_their_merge_lands_and_losers_keep_their_branches",
        ],
    ),
    (
        "11. what a parent is told stays below its bound",
        "crates/orchestrator/src/merge/turn.rs",
        &["the_merge_of_fifty_large_outputs_stays_below_its_bound"],
    ),
    (
        "13. a ceiling is passed by one request of each agent at most; totals hold over a resume",
        "tests/it/budget.rs",
        &[
            "eight_agents_at_once_pass_a_ceiling_by_no_more_than_a_request_each_with_failures_counted",
            "a_run_that_spent_its_budget_stops_and_goes_on_with_a_higher_one",
        ],
    ),
    (
        "17. one failed node: exit 1, and it says failed",
        "tests/it/run.rs",
        &[
            "the_summary_of_a_failed_run_counts_and_says_failed",
            "a_failed_node_skips_its_dependents_and_nothing_else",
        ],
    ),
    ("18. the journal's cost", "tests/it/state.rs", &["the_journal_of_an_agent_stays_below_four_kibibytes"]),
    (
        "kills at any moment and at exact system calls",
        "tests/it/crash.rs",
        &[
            "killed_at_any_moment_nothing_is_lost_or_done_twice",
            "killed_at_exact_system_calls_nothing_is_lost_or_done_twice",
        ],
    ),
    (
        "kills of a merge while it lands",
        "tests/it/crash/landing.rs",
        &["a_merge_killed_while_it_lands_is_there_once_and_never_half"],
    ),
    (
        "several processes and one run",
        "tests/it/owners.rs",
        &["of_many_that_start_at_once_exactly_one_writes_and_the_others_name_it"],
    ),
    (
        "equal seeds give equal logs",
        "crates/orchestrator/src/scheduler/tests/seeds.rs",
        &[
            "equal_seeds_give_equal_logs",
            "a_kill_at_any_moment_and_a_resume_come_to_the_same_end_and_repeat_nothing",
        ],
    ),
];

#[test]
fn each_check_has_its_tests() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (what, file, tests) in CHECKS {
        let text = std::fs::read_to_string(top.join(file)).unwrap_or_default();
        for test in *tests {
            assert!(text.contains(&format!("fn {test}(")), "{what}: no {test} in {file}");
        }
    }
}
