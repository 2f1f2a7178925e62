//! Bodies of groups, loops, nested files.

use super::*;

/// A plan whose bodies stand behind its nodes: `(place of the group, its body)`, needs counted within the body.
pub(super) fn plan_with(top: Vec<Node>, bodies: Vec<(usize, Vec<Node>)>) -> Arc<Plan> {
    let plan = plan_of(top, 9);
    let mut plan = Arc::into_inner(plan).unwrap();
    for (group, body) in bodies {
        let first = plan.nodes.len() as u32;
        let count = body.len() as u32;
        for mut node in body {
            node.parent = Some(NodeIx(group as u32));
            node.needs.iter_mut().chain(&mut node.after).for_each(|need| need.0 += first);
            plan.nodes.push(node);
        }
        for at in first..first + count {
            for need in plan.nodes[at as usize].needs.clone() {
                plan.nodes[need.at()].dependents.push(NodeIx(at));
            }
        }
        if let Work::Group(work) = &mut plan.nodes[group].work {
            work.body = Body { first, count };
        }
    }
    Arc::new(plan)
}

pub(super) fn group(id: &str, needs: &[u32]) -> Node {
    let work = GroupWork { body: Body::default(), result: None, timeout: None, nested: None };
    node(id, needs, Work::Group(Box::new(work)))
}

pub(super) fn looped(mut node: Node, max: u32, until: &str) -> Node {
    node.repeat = Some(Loop {
        max,
        until: Some(Expr::parse(until).unwrap()),
        carry: Vec::new(),
        stall: None,
        on_exhausted: OnExhausted::Fail,
    });
    node
}

pub(super) fn prompt(mut node: Node, text: &str) -> Node {
    if let Work::Agent(agent) = &mut node.work {
        agent.prompt = Template::parse(text).unwrap();
    }
    node
}

pub(super) fn play(plan: Arc<Plan>) -> Play {
    Play::of(plan, context(), Box::new(NoPast))
}

pub(super) fn asked(play: &Play, addr: &str) -> String {
    let launch = play.launches.iter().rev().find(|launch| launch.addr.to_string() == addr).unwrap();
    match &launch.work {
        Prepared::Agent(agent) => agent.prompt.clone(),
        Prepared::Command(_) | Prepared::Value(_) | Prepared::GitMerge(_) => panic!("no agent"),
    }
}

#[test]
fn items_flow_through_a_body_without_a_barrier() {
    let top = vec![each(group("g", &[]), items(3)), agent("end", &[0])];
    let body =
        vec![prompt(agent("a", &[]), "a {{ item }}"), prompt(agent("b", &[0]), "b {{ item }} {{ a }}")];
    let mut play = play(plan_with(top, vec![(0, body)]));
    assert_eq!(play.running(), ["g=0/a", "g=1/a", "g=2/a"]);
    play.succeed("g=1/a");
    assert_eq!(play.running(), ["g=0/a", "g=1/b", "g=2/a"]);
    assert!(asked(&play, "g=1/b").contains("b 1"), "{}", asked(&play, "g=1/b"));
    assert!(asked(&play, "g=1/b").contains("out of g=1/a"));
    for addr in ["g=1/b", "g=0/a", "g=2/a", "g=0/b", "g=2/b"] {
        play.succeed(addr);
    }
    assert_eq!(play.running(), ["end"]);
    play.succeed("end");
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
}

#[test]
fn the_output_of_a_group_is_its_result_or_the_outputs_of_its_body() {
    let result = |text: &str| {
        let mut node = group("g", &[]);
        if let Work::Group(work) = &mut node.work {
            work.result = (!text.is_empty()).then(|| Expr::parse(text).unwrap());
        }
        let mut play =
            play(plan_with(vec![node], vec![(0, vec![set("x", &[], "1"), set("y", &[0], "x + 1")])]));
        play.end.take().unwrap().result
    };
    assert_eq!(result(""), json!({"x": 1, "y": 2}));
    assert_eq!(result("y * 10"), json!(20));
}

#[test]
fn a_loop_goes_on_until_its_condition_holds_and_hands_values_on() {
    let mut fix = looped(group("fix", &[]), 4, "check.ok");
    fix.repeat.as_mut().unwrap().carry = vec![("left".into(), Expr::parse("check.left").unwrap())];
    let body = vec![
        prompt(agent("edit", &[]), "round {{ loop.index }}: {{ loop.left | default('nothing') }}"),
        agent("check", &[0]),
    ];
    let mut play = play(plan_with(vec![fix], vec![(0, body)]));
    assert!(asked(&play, "fix@1/edit").starts_with("round 1: "));
    assert!(asked(&play, "fix@1/edit").contains("nothing"));
    play.succeed("fix@1/edit");
    play.give("fix@1/check", json!({"ok": false, "left": "two"}));
    assert_eq!(play.running(), ["fix@2/edit"]);
    assert!(asked(&play, "fix@2/edit").starts_with("round 2: "));
    assert!(asked(&play, "fix@2/edit").contains("two"));
    play.succeed("fix@2/edit");
    play.give("fix@2/check", json!({"ok": true}));
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
    assert_eq!(play.end.unwrap().result["check"], json!({"ok": true}));
}

#[test]
fn a_loop_that_comes_to_its_max_or_stalls_fails_or_goes_on_as_it_says() {
    for (on_exhausted, stall, expected) in [
        (OnExhausted::Fail, None, (RunStatus::Failed, 1)),
        (OnExhausted::Continue, None, (RunStatus::Succeeded, 0)),
        (OnExhausted::Fail, Some(2), (RunStatus::Failed, 1)),
    ] {
        let mut node = looped(agent("a", &[]), 3, "a == 'done'");
        let repeat = node.repeat.as_mut().unwrap();
        (repeat.on_exhausted, repeat.stall) = (on_exhausted, stall);
        repeat.carry = vec![("last".into(), Expr::parse("a").unwrap())];
        let mut play = play(plan_with(vec![node], vec![]));
        let rounds = if stall.is_some() { 2 } else { 3 };
        for n in 1..=rounds {
            play.give(&format!("a@{n}"), json!("again"));
        }
        assert_eq!(play.status(), expected, "{stall:?}");
        let error = play.states()["a"].1.clone().unwrap_or_default();
        match (on_exhausted, stall) {
            (OnExhausted::Continue, _) => assert_eq!(error, ""),
            (OnExhausted::Fail, None) => assert!(error.contains("3 iterations (loop.max)"), "{error}"),
            (OnExhausted::Fail, Some(_)) => assert!(error.contains("loop.stall"), "{error}"),
        }
    }
}

#[test]
fn a_leaf_with_a_loop_sees_its_own_output_and_its_last_iteration_is_the_node_s() {
    let mut node = looped(each(agent("a", &[]), items(2)), 9, "a == 'done'");
    node.repeat.as_mut().unwrap().carry = vec![("last".into(), Expr::parse("a").unwrap())];
    let mut play = play(plan_with(vec![node], vec![]));
    assert_eq!(play.running(), ["a=0@1", "a=1@1"]);
    play.give("a=0@1", json!("done"));
    play.give("a=1@1", json!("more"));
    play.give("a=1@2", json!("done"));
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
    assert_eq!(play.end.unwrap().result, json!(["done", "done"]));
}

#[test]
fn a_failure_in_a_body_fails_the_iteration_and_names_the_node() {
    let body = vec![agent("a", &[]), agent("b", &[0])];
    let mut play = play(plan_with(vec![group("g", &[]), agent("next", &[0])], vec![(0, body)]));
    play.fail("g/a", FailureClass::Tool);
    assert_eq!(play.status(), (RunStatus::Failed, 1));
    assert_eq!(play.states()["g"], (Some(EndState::Failed), Some("a: boom".into())));
    assert_eq!(play.states()["next"].0, Some(EndState::Skipped));
}

#[test]
fn a_thousand_computed_iterations_need_no_stack() {
    let node = looped(each(group("g", &[]), items(5)), 1000, "n == 1000");
    let body = vec![set("n", &[], "loop.index")];
    let play = play(plan_with(vec![node], vec![(0, body)]));
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
}

#[test]
fn fast_failure_of_an_item_calls_off_what_runs_in_the_bodies_of_the_others() {
    let mut node = each(group("g", &[]), items(3));
    node.each.as_mut().unwrap().fail = EachFail::Fast;
    let body = vec![agent("a", &[]), agent("b", &[0])];
    let mut play = play(plan_with(vec![node], vec![(0, body)]));
    play.succeed("g=0/a");
    play.fail("g=2/a", FailureClass::Tool);
    assert_eq!(play.stopped.len(), 2);
    play.finish("g=0/b", OutcomeEnd::Cancelled);
    play.finish("g=1/a", OutcomeEnd::Cancelled);
    assert_eq!(play.status(), (RunStatus::Failed, 1));
    assert_eq!(play.started.len(), 4);
}

#[test]
fn a_group_that_takes_too_long_is_called_off_and_fails_by_its_timeout() {
    let mut node = group("g", &[]);
    if let Work::Group(work) = &mut node.work {
        work.timeout = Some(Duration::from_secs(1));
    }
    let mut play = play(plan_with(vec![node], vec![(0, vec![agent("a", &[]), agent("b", &[0])])]));
    let step = play.timers[0];
    play.hear(Event::GroupExpired { step });
    assert_eq!(play.stopped.len(), 1);
    play.finish("g/a", OutcomeEnd::Cancelled);
    assert!(play.states()["g"].1.as_ref().unwrap().contains("timed out"));
    assert_eq!(play.status(), (RunStatus::Failed, 1));
}

#[test]
fn a_resume_takes_over_the_finished_steps_of_bodies_and_iterations() {
    let plan = || {
        let node =
            looped(each(group("g", &[]), items(2)), 3, "b == 'out of g=0@2/b' or b == 'out of g=1@1/b'");
        plan_with(vec![node], vec![(0, vec![agent("a", &[]), agent("b", &[0])])])
    };
    let mut first = play(plan());
    for addr in ["g=0@1/a", "g=0@1/b", "g=0@2/a", "g=1@1/a"] {
        first.succeed(addr);
    }
    let mut second = Play::of(plan(), context(), Box::new(remembered(&first)));
    assert_eq!(second.running(), ["g=0@2/b", "g=1@1/b"]);
    second.succeed("g=0@2/b");
    second.succeed("g=1@1/b");
    assert_eq!(second.status(), (RunStatus::Succeeded, 0));
}

#[test]
fn what_a_group_needs_and_what_an_iteration_is_handed_are_content_of_its_body() {
    let key = |upstream: &str| {
        let plan =
            plan_with(vec![set("up", &[], upstream), group("g", &[0])], vec![(1, vec![agent("a", &[])])]);
        play(plan).launches[0].key
    };
    assert_eq!(key("1"), key("1"));
    assert_ne!(key("1"), key("2"));
    let mut rounds = play(plan_with(vec![looped(agent("a", &[]), 3, "false")], vec![]));
    rounds.succeed("a@1");
    assert_ne!(rounds.launches[0].key, rounds.launches[1].key);
}

fn nested(with: &str) -> NestedFile {
    NestedFile {
        file: "inner.toml".into(),
        name: "inner".into(),
        with: vec![("n".into(), Expr::parse(with).unwrap())],
        inputs: IndexMap::from([(
            "n".to_owned(),
            crate::plan::decl::InputDecl {
                ty: crate::plan::decl::InputType::Int,
                default: None,
                secret: false,
            },
        )]),
        limits: Limits { concurrency: 1, commands: 1, agents: 9, depth: 2, providers: IndexMap::new() },
        budget: None,
    }
}

#[test]
fn the_loop_of_a_nested_file_sees_what_its_caller_sees_and_hands_on_what_it_carries() {
    let mut sub = looped(group("sub", &[0]), 5, "sub.t >= up * 3");
    sub.repeat.as_mut().unwrap().carry = vec![("last".into(), Expr::parse("sub.t").unwrap())];
    if let Work::Group(work) = &mut sub.work {
        work.nested = Some(nested("up + loop.last | default(0)"));
        work.result = Some(Expr::parse("{'t': total}").unwrap());
    }
    let body = vec![agent("ask", &[]), set("total", &[0], "inputs.n")];
    let mut play = play(plan_with(vec![set("up", &[], "4"), sub], vec![(1, body)]));
    for round in 1..=3 {
        play.succeed(&format!("sub@{round}/ask"));
    }
    assert_eq!(play.end.as_ref().unwrap().result, json!({ "t": 12 }));
}

#[test]
fn a_nested_file_has_its_own_inputs_and_is_held_by_its_own_limits() {
    let mut node = each(group("g", &[]), items(2));
    if let Work::Group(work) = &mut node.work {
        work.nested = Some(nested("item"));
    }
    let body = vec![prompt(agent("a", &[]), "{{ inputs.n }}"), prompt(agent("b", &[]), "{{ inputs.n }}")];
    let mut play = play(plan_with(vec![node], vec![(0, body)]));
    assert_eq!(play.running(), ["g=0/a", "g=1/a"]);
    assert_eq!(asked(&play, "g=1/a"), "1");
    play.succeed("g=0/a");
    assert_eq!(play.running(), ["g=0/b", "g=1/a"]);
    for addr in ["g=0/b", "g=1/a", "g=1/b"] {
        play.succeed(addr);
    }
    assert_eq!(play.status(), (RunStatus::Succeeded, 0));
}

#[test]
fn isolated_steps_have_folders_of_their_own_and_a_group_one_for_all_it_does() {
    let worktree = Isolation::Worktree(Base::ParentHead);
    let mut fix = looped(group("fix", &[]), 2, "false");
    fix.repeat.as_mut().unwrap().on_exhausted = OnExhausted::Continue;
    fix.isolation = worktree;
    let mut lone = each(agent("lone", &[]), items(2));
    lone.isolation = worktree;
    let git = GitMerge {
        nodes: vec![NodeIx(0), NodeIx(1)],
        apply: Apply::Patch,
        verify: None,
        on_conflict: OnConflict::Keep,
    };
    let land = Work::Merge(MergeWork { from: Vec::new(), strategy: MergeStrategy::Git(git), write: None });
    let mut play =
        play(plan_with(vec![fix, lone, node("land", &[0, 1], land)], vec![(0, vec![agent("edit", &[])])]));
    let owner = |play: &Play, addr: &str| {
        let launch = play.launches.iter().find(|launch| launch.addr.to_string() == addr).unwrap();
        launch.folder.as_ref().map(|folder| format!("{}.{}", folder.owner, folder.attempt))
    };
    play.succeed("fix@1/edit");
    assert_eq!(owner(&play, "fix@1/edit").as_deref(), Some("fix.1"));
    assert_eq!(owner(&play, "fix@2/edit").as_deref(), Some("fix.1"));
    assert_eq!(owner(&play, "lone=1").as_deref(), Some("lone=1.1"));
    assert!(play.closed.is_empty());
    play.succeed("fix@2/edit");
    assert_eq!(play.closed.len(), 1);
    play.succeed("lone=0");
    play.succeed("lone=1");
    let Prepared::GitMerge(merge) = &play.launches.last().unwrap().work else { panic!("no merge") };
    let branches: Vec<String> =
        merge.branches.iter().map(|folder| format!("{}.{}", folder.owner, folder.attempt)).collect();
    assert_eq!(branches, ["fix.1", "lone=0.1", "lone=1.1"]);
}

#[test]
fn a_loop_that_is_called_off_while_its_step_succeeds_ends_as_cancelled() {
    let mut node = each(looped(agent("a", &[]), 3, "false"), items(2));
    node.each.as_mut().unwrap().fail = EachFail::Fast;
    let mut play = play(plan_with(vec![node], vec![]));
    play.fail("a=0@1", FailureClass::Tool);
    assert_eq!(play.stopped.len(), 1);
    // The end of the attempt was on its way already.
    play.succeed("a=1@1");
    assert_eq!(play.status(), (RunStatus::Failed, 1));
    assert_eq!(play.started.len(), 2);
}

#[test]
fn what_is_skipped_in_a_body_is_told_and_an_optional_failure_there_makes_the_run_partial() {
    let mut maybe = agent("maybe", &[]);
    maybe.optional = true;
    let body = vec![maybe, agent("next", &[0]), agent("last", &[])];
    let mut play = play(plan_with(vec![group("g", &[]), agent("end", &[0])], vec![(0, body)]));
    play.succeed("g/last");
    play.fail("g/maybe", FailureClass::Tool);
    play.succeed("end");
    assert_eq!(play.status(), (RunStatus::Partial, 7));
    let told: Vec<(String, Option<EndState>)> =
        play.schedule.report()[0].steps.iter().map(|step| (step.addr.to_string(), step.state)).collect();
    let expected = [
        ("g", EndState::Succeeded),
        ("g/maybe", EndState::Failed),
        ("g/last", EndState::Succeeded),
        ("g/next", EndState::Skipped),
    ];
    assert_eq!(told, expected.map(|(addr, state)| (addr.to_owned(), Some(state))));
}
