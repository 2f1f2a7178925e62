//! What groups, loops and nested files become.

use super::fixture::{HEAD, good, plan_of};
use crate::plan::InputArgs;
use crate::plan::model::*;
use crate::plan::render::GraphStyle;
use std::time::Duration;

const NESTS: &str = "[node.up]\nprompt = 'x'\n[node.g]\nkind = 'group'\nneeds = ['up']\neach = { range = 2, as = 'n' }\n[node.g.body.h]\nkind = 'group'\nneeds = ['a']\n[node.g.body.h.loop]\nmax = 3\nuntil = 'x and a'\ncarry = { old = 'x' }\n[node.g.body.h.body.x]\nprompt = '{{ a }} {{ up }} {{ n }} {{ loop.old }}'\n[node.g.body.h.body.y]\nprompt = 'x'\nneeds = ['x']\n[node.g.body.a]\nprompt = '{{ nodes.up.error }}'\n[node.k]\nkind = 'group'\nneeds = ['g']\nresult = 'a'\n[node.k.body.a]\nprompt = '{{ g.outputs }}'\n";

fn at<'p>(plan: &'p Plan, name: &str) -> &'p Node {
    &plan.nodes[plan.find(name).unwrap().at()]
}

fn group<'p>(plan: &'p Plan, name: &str) -> &'p GroupWork {
    let Work::Group(group) = &at(plan, name).work else { panic!("{name}") };
    group
}

#[test]
fn bodies_lie_in_one_piece_behind_the_file() {
    let plan = good(NESTS);
    let ids: Vec<&str> = plan.nodes.iter().map(|node| node.id.as_str()).collect();
    assert_eq!(ids, ["up", "g", "k", "h", "a", "a", "x", "y"]);
    assert_eq!(plan.top, Body { first: 0, count: 3 });
    let bodies = ["g", "k", "h"].map(|name| group(&plan, name).body);
    assert_eq!(bodies, [(3, 2), (5, 1), (6, 2)].map(|(first, count)| Body { first, count }));
    let parents: Vec<_> = plan.nodes.iter().map(|node| node.parent.map(|ix| ix.0)).collect();
    assert_eq!(parents, [None, None, None, Some(1), Some(1), Some(2), Some(3), Some(3)]);
    assert_eq!(
        (at(&plan, "h").needs.clone(), plan.nodes[4].dependents.clone()),
        (vec![NodeIx(4)], vec![NodeIx(3)])
    );
    assert_eq!(plan.order(), [0, 1, 4, 3, 6, 7, 2, 5].map(NodeIx));
}

#[test]
fn the_critical_path_goes_through_bodies_and_on_behind_them() {
    let plan = good(NESTS);
    // up, a, x, y, and the a of k; a node in a body counts what comes behind its group.
    assert_eq!(
        plan.nodes.iter().map(|node| node.critical_path).collect::<Vec<_>>(),
        [5, 4, 1, 3, 4, 1, 3, 2]
    );
}

#[test]
fn names_stand_for_the_nearest_node() {
    let plan = good(NESTS);
    assert_eq!(plan.reads(NodeIx(6)), [4, 0].map(NodeIx));
    assert_eq!(plan.reads(NodeIx(3)), [6, 4].map(NodeIx), "until and carry look at the body first");
    assert_eq!(plan.reads(NodeIx(2)), [5].map(NodeIx), "the result of k is its own a");
    assert_eq!(plan.reads(NodeIx(5)), [1].map(NodeIx));
    assert_eq!(plan.resolve(NodeIx(6), "k"), Some(NodeIx(2)));
    let mut inside = plan.names_inside(NodeIx(1));
    inside.sort_unstable();
    inside.dedup();
    assert_eq!(inside, ["a", "n", "up", "x"]);
    let leaf = good("[node.a]\nprompt = 'x'\nloop = { max = 2, until = 'a == 1', carry = { last = 'a' } }\n");
    assert!(leaf.reads(NodeIx(0)).is_empty(), "a loop over one node looks at itself");
}

#[test]
fn keys_of_groups_loops_and_gates_are_read() {
    let plan = good(
        "[budget]\nusd = 2\nwall = '10m'\nreserve = 0.1\n[node.g]\nkind = 'group'\ntimeout = '1h'\nlock = ['b', 'a', 'b']\nfinal = true\nisolation = 'worktree'\nbudget = { turns = 3 }\n[node.g.loop]\nmax = 5\nstall = 2\ncarry = { x = '1', y = '2' }\non_exhausted = 'continue'\n[node.g.body.a]\nprompt = 'x'\nspawn = true\neach = { range = 2, warm = true }\n[node.q]\nkind = 'gate'\nmessage = 'ok?'\nchoices = ['yes', 'no']\non_timeout = 'no'\n[node.p]\nkind = 'gate'\nmessage = 'ok?'\ntimeout = '5m'\n",
    );
    let run = plan.budget.as_ref().unwrap();
    assert_eq!(
        (run.usd, run.wall, run.reserve, run.warn),
        (Some(2.0), Some(Duration::from_secs(600)), 0.1, 0.8)
    );
    let g = at(&plan, "g");
    assert_eq!((g.locks.as_slice(), g.is_final), (["a".to_owned(), "b".to_owned()].as_slice(), true));
    assert_eq!(g.isolation, Isolation::Worktree(Base::ParentHead));
    assert_eq!(g.budget.as_ref().unwrap().turns, Some(3));
    assert_eq!((g.retry.attempts, group(&plan, "g").timeout), (1, Some(Duration::from_secs(3600))));
    let repeat = g.repeat.as_ref().unwrap();
    assert_eq!((repeat.max, repeat.stall, repeat.on_exhausted), (5, Some(2), OnExhausted::Continue));
    assert_eq!(repeat.carry.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["x", "y"]);
    let a = at(&plan, "a");
    assert!(matches!(&a.work, Work::Agent(agent) if agent.spawn));
    assert_eq!(a.each.as_ref().unwrap().warm, Some(true));
    let Work::Gate(gate) = &at(&plan, "q").work else { panic!() };
    assert_eq!(gate.on_timeout, OnTimeout::Choose("no".into()));
    assert_eq!(at(&plan, "q").timeout, Duration::from_secs(24 * 3600));
    assert_eq!(at(&plan, "p").timeout, Duration::from_secs(300));
}

#[test]
fn locks_and_budgets_are_no_part_of_a_key_and_worktrees_are() {
    let key = |keys: &str| good(&format!("[node.a]\nprompt = 'x'\n{keys}")).nodes[0].static_key;
    let plain = key("");
    assert_eq!(
        plain,
        key("lock = ['x']\nbudget = { turns = 1 }\nfinal = true\nphase = 'p'\nretry = { attempts = 1 }\n")
    );
    let head = key("isolation = 'worktree'\n");
    assert_ne!(plain, head);
    assert_ne!(head, key("isolation = 'worktree'\nbase = 'parent_dirty'\n"));
    let body = |keys: &str| {
        let plan = good(&format!("[node.g]\nkind = 'group'\n{keys}[node.g.body.a]\nprompt = 'x'\n"));
        at(&plan, "a").static_key
    };
    assert_eq!(
        (body(""), body("isolation = 'worktree'\n")),
        (plain, head),
        "a body works in the folder of its group"
    );
}

#[test]
fn defaults_reach_bodies_and_speak_of_attempts_only_where_there_are_any() {
    let plan = good(
        "[defaults]\ntimeout = '7s'\nretry = { attempts = 2 }\nisolation = 'worktree'\n[node.g]\nkind = 'group'\n[node.g.body.a]\nprompt = 'x'\n[node.q]\nkind = 'gate'\nmessage = 'ok?'\n[node.s]\nkind = 'set'\nvalue = '1'\n",
    );
    assert_eq!((at(&plan, "a").timeout.as_secs(), at(&plan, "a").retry.attempts), (7, 2));
    assert_eq!((group(&plan, "g").timeout, at(&plan, "g").retry.attempts), (None, 1));
    assert_eq!(at(&plan, "q").timeout.as_secs(), 24 * 3600);
    let isolated = ["g", "a", "q", "s"].map(|name| at(&plan, name).isolation != Isolation::None);
    assert_eq!(isolated, [true, true, false, false]);
}

#[test]
fn a_nested_file_brings_its_inputs_agents_defaults_and_limits() {
    let text = format!(
        "{HEAD}[inputs.key]\ntype = 'string'\nsecret = true\n[limits]\nagents = 50\nconcurrency = 3\n[node.first]\nkind = 'set'\nvalue = '4'\n[node.sub]\nkind = 'workflow'\nfile = 'sub.toml'\nneeds = ['first']\nwith = {{ n = 'first', token = 'inputs.key' }}\n[node.end]\nkind = 'set'\nneeds = ['sub']\nvalue = 'sub.found'\n"
    );
    let mut args = InputArgs::default();
    args.text("key", "hush");
    let plan = plan_of(&text, &args).unwrap_or_else(|problems| panic!("{}", super::fixture::said(&problems)));
    let call = group(&plan, "sub");
    let nested = call.nested.as_ref().unwrap();
    assert_eq!((nested.name.as_str(), nested.file.to_str()), ("sub", Some("dir/sub.toml")));
    assert_eq!(
        (nested.limits.agents, nested.limits.concurrency),
        (5, 3),
        "what it does not say, its caller says"
    );
    assert_eq!(nested.with.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["n", "token"]);
    assert_eq!(nested.inputs.keys().collect::<Vec<_>>(), ["n", "word", "token"]);
    assert_eq!(call.result.as_ref().unwrap().source(), "look");
    assert_eq!(at(&plan, "look").phase.as_deref(), Some("inner"));
    assert_eq!(at(&plan, "look").parent, plan.find("sub"));
    assert_eq!(
        plan.reads(plan.find("sub").unwrap()),
        [plan.find("first").unwrap(), plan.find("look").unwrap()]
    );
    insta::assert_snapshot!("nested_plan", plan.text() + "\n" + &plan.graph(GraphStyle::Ascii));
}

#[test]
fn a_file_called_twice_has_two_bodies() {
    let call =
        |name: &str| format!("[node.{name}]\nkind = 'workflow'\nfile = 'sub.toml'\nwith = {{ n = '1' }}\n");
    let plan = good(&(call("one") + &call("two")));
    let bodies = ["one", "two"].map(|name| group(&plan, name).body);
    assert_eq!(bodies, [(2, 2), (4, 2)].map(|(first, count)| Body { first, count }));
    assert_eq!(plan.nodes[2].static_key, plan.nodes[4].static_key);
}

#[test]
fn git_merges_name_their_branches_and_settle_on_asking() {
    let plan = good(
        "[node.a]\nprompt = 'x'\nisolation = 'worktree'\neach = { range = 3 }\n[node.b]\nkind = 'command'\nrun = ['x']\nisolation = 'worktree'\n[node.m]\nkind = 'merge'\nstrategy = 'git'\nneeds = ['a', 'b']\nfrom = ['b', 'a']\napply = 'squash'\nverify = ['cargo', 'check', '{{ run.id }}']\n",
    );
    assert!(plan.warnings.is_empty(), "isolated steps write in folders of their own");
    let Work::Merge(MergeWork { strategy: MergeStrategy::Git(git), .. }) = &at(&plan, "m").work else {
        panic!()
    };
    assert_eq!(git.nodes, [NodeIx(1), NodeIx(0)]);
    assert_eq!((git.apply, git.on_conflict), (Apply::Squash, OnConflict::Keep));
    assert_eq!(git.verify.as_ref().unwrap().len(), 3);
}

#[test]
fn a_price_that_is_not_known_may_count_tokens() {
    let with = |budget: &str| {
        let text = format!(
            "{HEAD}{budget}[node.g]\nkind = 'group'\nbudget = {{ usd = 1, unknown_price = 'tokens_only', tokens = 10 }}\n[node.g.body.a]\nprompt = 'x'\nmodel = 'unpriced'\n"
        );
        plan_of(&text, &InputArgs::default()).err().map(|problems| problems[0].code.as_str())
    };
    assert_eq!(with(""), None);
    assert_eq!(with("[budget]\nusd = 1\n"), Some("E131"));
    assert_eq!(with("[budget]\nusd = 1\ntokens = 10\nunknown_price = 'tokens_only'\n"), None);
}

#[test]
fn writers_in_bodies_are_neighbours_of_the_nodes_beside_their_group() {
    let warned = |keys: &str| {
        let plan = good(&format!(
            "[node.g]\nkind = 'group'\n{keys}[node.g.body.a]\nprompt = 'x'\n[node.w]\nprompt = 'x'\n"
        ));
        plan.warnings.iter().map(|warning| warning.message.clone()).collect::<Vec<_>>()
    };
    assert_eq!(warned(""), ["these may write in one folder at the same time: g, w"]);
    assert!(warned("isolation = 'worktree'\n").is_empty());
    assert!(warned("after = ['w']\n").is_empty());
}
