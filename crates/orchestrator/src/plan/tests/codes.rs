//! Every code: its text, its place, its help.

use super::fixture::{HEAD, plan_of, said};
use crate::plan::InputArgs;
use crate::workflow::problem::{Code, Problem};
use std::collections::BTreeSet;

/// Texts behind the head; a text that begins with `!` is the whole file.
const KEYS: &[(&str, &str)] = &[
    ("not TOML", "!schema = 1\n[workflow\n"),
    ("a key twice", "[node.a]\nprompt = 'x'\nprompt = 'y'\n"),
    ("a later schema", "!schema = 2\n[workflow]\nname = 't'\n"),
    (
        "unknown keys",
        "[lmits]\n[node.a]\nprompt = 'x'\nneeeds = []\nfrobnicate = 1\n[node.a.retry]\natempts = 1\n",
    ),
    (
        "wrong types",
        "[node.a]\nprompt = 1\nneeds = 'b'\ntimeout = '5 minutes'\npriority = 1.5\nretry = { attempts = 0, on = ['quota'] }\neach = { items = 3 }\n",
    ),
    ("an unknown kind", "[node.a]\nkind = 'comand'\n"),
    (
        "a key of another kind",
        "[node.a]\nkind = 'command'\nrun = ['ls']\nprompt = 'x'\n[node.b]\nprompt = 'x'\nstrategy = 'list'\n[node.c]\nkind = 'merge'\nfrom = ['b']\nstrategy = 'list'\nkey = 'x'\n",
    ),
    (
        "reserved and bad names",
        "[node.loop]\nprompt = 'x'\n[node.my-node]\nprompt = 'x'\n[node.a]\nprompt = 'x'\neach = { items = [1], as = 'run' }\n",
    ),
    (
        "not yet",
        "[budget]\nusd = 1.0\n[node.g]\nkind = 'gate'\nmessage = 'ok?'\n[node.a]\nprompt = 'x'\nisolation = 'worktree'\nlock = ['x']\nspawn = true\njoin = 'any_succeeded'\nfinal = true\n[node.m]\nkind = 'merge'\nstrategy = 'vote'\nfrom = ['a']\n",
    ),
    (
        "missing keys",
        "[node.a]\n[node.b]\nkind = 'command'\n[node.c]\nkind = 'merge'\nstrategy = 'dedupe'\nfrom = []\n",
    ),
    ("no node", ""),
    ("two prompts", "[node.a]\nprompt = 'x'\nprompt_file = 'y'\n"),
    (
        "inputs that contradict themselves",
        "[inputs.a]\ntype = 'enum'\n[inputs.b]\ntype = 'int'\ndefault = 'x'\n[node.a]\nprompt = 'x'\n",
    ),
    (
        "each without and with two sources",
        "[node.a]\nprompt = 'x'\neach = { max = 3 }\n[node.b]\nprompt = 'x'\neach = { items = [1], range = 3 }\n",
    ),
];

/// Budgets, isolation, gates, groups.
const BODIES: &[(&str, &str)] = &[
    (
        "budgets that make no sense",
        "[budget]\nwarn = 1.5\n[node.a]\nprompt = 'x'\nbudget = { usd = 1.0, reserve = 1.0, wall = '0s', unknown_price = 'tokens_only' }\n[node.b]\nprompt = 'x'\nbudget = { tokens = 5, output_tokens = 6 }\n",
    ),
    (
        "isolation where there is no folder",
        "[node.a]\nprompt = 'x'\nbase = 'parent_dirty'\n[node.b]\nkind = 'set'\nvalue = '1'\nisolation = 'worktree'\n[node.c]\nkind = 'merge'\nstrategy = 'list'\nfrom = ['a']\nneeds = ['a']\nisolation = 'worktree'\n",
    ),
    (
        "a git merge of what has no branch",
        "[node.a]\nprompt = 'x'\n[node.b]\nprompt = 'x'\nisolation = 'worktree'\n[node.m]\nkind = 'merge'\nstrategy = 'git'\nneeds = ['a', 'b']\nfrom = ['a', 'b', 'b.outputs']\n",
    ),
    (
        "a price that is not known",
        "[budget]\nusd = 1.0\n[node.a]\nprompt = 'x'\nmodel = ['good', 'unpriced-1']\n",
    ),
];

/// Names in bodies and loops.
const SCOPES: &[(&str, &str)] = &[
    (
        "a cycle and an unknown node in a body",
        "[node.g]\nkind = 'group'\n[node.g.body.a]\nprompt = 'x'\nneeds = ['b']\n[node.g.body.b]\nprompt = 'x'\nneeds = ['a']\n[node.g.body.c]\nprompt = 'x'\nneeds = ['up']\n[node.up]\nprompt = 'x'\n",
    ),
    (
        "what a body sees",
        "[node.first]\nprompt = 'x'\n[node.up]\nprompt = 'x'\nafter = ['first']\n[node.side]\nprompt = 'x'\n[node.g]\nkind = 'group'\nneeds = ['up']\neach = { items = [1, 2], as = 'thing' }\nresult = '[a, thing, up, side, g]'\n[node.g.body.a]\nprompt = '{{ up }} {{ first }} {{ thing }} {{ index }} {{ side }} {{ b }} {{ g }}'\n[node.g.body.b]\nprompt = '{{ a }} {{ nodes.up.status }} {{ item }} {{ thng }} {{ loop.index }}'\nneeds = ['a']\n[node.last]\nprompt = '{{ a }} {{ g.outputs }}'\nneeds = ['g']\n",
    ),
    (
        "what a loop sees",
        "[node.g]\nkind = 'group'\n[node.g.loop]\nmax = 3\nuntil = 'check.ok and loop.index > 1 and loop.notes'\ncarry = { notes = 'check.note', other = 'work' }\n[node.g.body.work]\nprompt = '{{ loop.nots }} {{ loop }} {{ loop.other }}'\n[node.g.body.check]\nprompt = 'x'\nneeds = ['work']\noutput = { type = 'object', required = ['note'], properties = { note = {} } }\n[node.leaf]\nprompt = '{{ leaf }} {{ loop.last }}'\nloop = { max = 2, until = 'leaf.done', carry = { last = 'leaf' } }\nwhen = 'loop.index'\n",
    ),
    (
        "names that hide others",
        "[node.up]\nprompt = 'x'\n[node.far]\nprompt = 'x'\nneeds = ['up']\n[node.free]\nprompt = 'x'\n[node.g]\nkind = 'group'\nneeds = ['far']\neach = { items = [1], as = 'thing' }\nloop = { max = 2, carry = { far = '1', inner = '2', fine = '3' } }\n[node.g.body.up]\nprompt = 'x'\n[node.g.body.thing]\nprompt = 'x'\n[node.g.body.free]\nprompt = 'x'\n[node.g.body.inner]\nprompt = 'x'\neach = { items = [1], as = 'thing' }\n[node.g.body.leaf]\nprompt = 'x'\neach = { items = [1], as = 'far' }\nloop = { max = 2, carry = { leaf = '1', fine = '2' } }\n",
    ),
    (
        "fields of groups, gates and git merges",
        "[node.g]\nkind = 'group'\nisolation = 'worktree'\nresult = 'a'\n[node.g.body.a]\nprompt = 'x'\noutput = { type = 'object', properties = { verdict = {} } }\n[node.h]\nkind = 'group'\n[node.h.body.a]\nprompt = 'x'\npermission = 'read-only'\n[node.ok]\nkind = 'gate'\nmessage = 'go?'\n[node.land]\nkind = 'merge'\nstrategy = 'git'\nneeds = ['g']\nfrom = ['g']\n[node.end]\nkind = 'set'\nneeds = ['g', 'h', 'ok', 'land']\nvalue = '[g.verdct, g.verdict, h.b, h.a, ok.chioce, ok.choice, land.aplied, land.commit]'\n",
    ),
    (
        "writers in a body, forbidden",
        "[defaults]\nshared_writes = 'forbid'\n[node.g]\nkind = 'group'\nisolation = 'worktree'\n[node.g.body.a]\nprompt = 'x'\n[node.g.body.b]\nprompt = 'x'\n[node.g.body.c]\nprompt = 'x'\nisolation = 'worktree'\n[node.h]\nkind = 'group'\neach = { range = 2 }\n[node.h.body.a]\nprompt = 'x'\n",
    ),
    (
        "agents of bodies count",
        "[limits]\nagents = 5\n[node.g]\nkind = 'group'\neach = { range = 2 }\nloop = { max = 9 }\n[node.g.body.a]\nprompt = 'x'\npermission = 'read-only'\neach = { range = 3, as = 'inner' }\n",
    ),
    (
        "locks out of order",
        "[node.g]\nkind = 'group'\nlock = ['b']\n[node.g.body.a]\nkind = 'set'\nvalue = '1'\nlock = ['a']\n",
    ),
    (
        "items in items",
        "[node.g]\nkind = 'group'\neach = { range = 2 }\n[node.g.body.a]\nprompt = 'x'\neach = { range = 3 }\n",
    ),
    (
        "keys of groups, gates and loops",
        "[node.g]\nkind = 'group'\nretry = { attempts = 2 }\nprompt = 'x'\nloop = { max = 0, stall = 1, untill = 'x' }\n[node.g.body]\n[node.h]\nkind = 'group'\nloop = { max = 1, stall = 1 }\nretry = { attempts = 2 }\n[node.h.body.a]\nprompt = 'x'\nneds = []\n[node.h.body.b]\nkind = 'command'\n[node.h.body.loop]\nprompt = 'x'\n[node.i]\nkind = 'gate'\nmessage = 'x'\nretry = { attempts = 2 }\nchoices = ['yes', 'no', 'yes']\ndefault = 'ys'\non_timeout = 'maybe'\n[node.j]\nkind = 'gate'\nchoices = []\n[node.k]\nkind = 'group'\n[node.l]\nprompt = 'x'\nisolation = 'copy'\nbase = 'rev:HEAD'\nverify = ['x']\n[node.m]\nkind = 'merge'\nstrategy = 'git'\nfrom = []\nverify = []\n[node.n]\nkind = 'workflow'\nwith = { a = 3 }\nretry = { attempts = 1 }\n",
    ),
];

const DEEP: &str = "bodies in bodies";

/// Nested files.
const FILES: &[(&str, &str)] = &[
    (
        "inputs of a nested file",
        "[inputs.secret]\ntype = 'string'\nsecret = true\ndefault = ''\n[node.a]\nkind = 'workflow'\nfile = 'sub.toml'\n[node.b]\nkind = 'workflow'\nfile = 'sub.toml'\nwith = { n = \"'three'\", wrd = '1', word = 'inputs.secret', token = 'inputs.secret' }\n[node.c]\nkind = 'workflow'\nfile = 'sub.toml'\nwith = { n = '[1] | first', word = 'a', token = \"inputs.secret ~ 'x'\" }\n[node.d]\nkind = 'set'\nneeds = ['c']\nvalue = 'c.fund'\n",
    ),
    (
        "a nested file is checked in its own place",
        "[inputs.n]\ntype = 'int'\ndefault = 1\n[agents.own]\nprompt = 'x'\n[node.outer]\nprompt = 'x'\n[node.a]\nkind = 'workflow'\nfile = 'wrong.toml'\nneeds = ['outer']\n",
    ),
    (
        "keys of a nested file",
        "[node.a]\nkind = 'workflow'\nfile = 'keys.toml'\n[node.b]\nkind = 'workflow'\nfile = 'text.toml'\n",
    ),
    ("a nested file that is not there", "[node.a]\nkind = 'workflow'\nfile = 'none.toml'\n"),
    (
        "a file that calls itself",
        "[node.a]\nkind = 'workflow'\nfile = 'one.toml'\n[node.b]\nprompt = 'x'\nneeds = ['zzz']\n",
    ),
    ("limits of a nested file", "[node.a]\nkind = 'workflow'\nfile = 'many.toml'\n"),
    (DEEP, ""),
];

const TABLES: [&[(&str, &str)]; 7] = [KEYS, GRAPH, NAMES, LATE, BODIES, SCOPES, FILES];

/// A file of groups in groups.
fn deep() -> String {
    let mut at = "[node.g".to_owned();
    let mut text = String::new();
    for _ in 0..16 {
        text.push_str(&format!("{at}]\nkind = 'group'\n"));
        at.push_str(".body.g");
    }
    text + &format!("{at}]\nprompt = 'x'\n")
}

const GRAPH: &[(&str, &str)] = &[
    (
        "a cycle and a self loop",
        "[node.a]\nprompt = 'A'\nneeds = ['c']\n[node.b]\nprompt = 'B'\nneeds = ['a']\n[node.c]\nprompt = 'C'\nneeds = ['b']\n[node.me]\nprompt = 'S'\nneeds = ['me']\n[node.fine]\nprompt = 'F'\n",
    ),
    (
        "an unknown node",
        "[node.plan]\nprompt = 'x'\nneeds = ['verfy']\nafter = ['zzz']\n[node.verify]\nprompt = 'x'\n",
    ),
];

const NAMES: &[(&str, &str)] = &[
    (
        "inputs",
        "[inputs.base]\ntype = 'string'\n[inputs.n]\ntype = 'int'\n[inputs.e]\ntype = 'enum'\nvalues = ['x', 'y']\n[node.a]\nprompt = 'x'\n",
    ),
    (
        "a secret in a prompt",
        "[inputs.token]\ntype = 'string'\nsecret = true\ndefault = 'x'\n[node.a]\nprompt = 'use {{ inputs.token }}'\n[node.b]\nkind = 'command'\nrun = ['x']\nenv = { T = '{{ inputs.token }}' }\n",
    ),
    (
        "files that cannot be read",
        "[node.a]\nprompt_file = 'none.md'\n[node.b]\nprompt = 'x'\noutput = { file = 'none.json' }\n",
    ),
    ("names in a prompt file", "[node.a]\nprompt_file = 'good.md'\n"),
    (
        "schemas",
        "[node.a]\nprompt = 'x'\noutput = { type = 'string' }\n[node.b]\nprompt = 'x'\noutput = { type = 'object', properties = { v = { enum = [] } } }\n[node.c]\nprompt = 'x'\noutput = { type = 'object', properties = { v = { minimum = 3, maximum = 1 } } }\n[node.d]\nprompt = 'x'\noutput = { type = 'object', required = ['y'], properties = { v = {} }, additionalProperties = false }\n[node.e]\nprompt = 'x'\noutput = { type = 'object', properties = { v = { type = 'strin' } } }\n",
    ),
    (
        "templates for a shell",
        "[node.a]\nkind = 'command'\nrun = 'echo {{ inputs.x }}'\n[node.b]\nkind = 'command'\nrun = ['bash', '-c', 'echo {{ run.id }}']\n[node.c]\nkind = 'command'\nrun = ['env', 'X=1', '/usr/bin/python3.11', '-c', 'print({{ run.id }})']\n[node.d]\nkind = 'command'\nrun = ['node', '--eval={{ run.id }}']\n[node.e]\nkind = 'command'\nrun = ['bash', '-c', 'echo \"$1\"', 'x', '{{ run.id }}']\n[node.f]\nkind = 'command'\nrun = 'echo {{'\nliteral = true\n",
    ),
    ("statements", "[node.a]\nprompt = 'x {% if y %}'\n[node.b]\nprompt = '{# no #}'\n"),
    (
        "expressions that do not parse",
        "[node.a]\nprompt = 'x {{ a | uper }} y'\n[node.b]\nprompt = '{{ 1 + }}'\nwhen = '1 is evn'\n[node.c]\nprompt = 'open {{ run.id'\n[node.d]\nprompt = \"{{ ('a' ~ 'b') | path }}\"\n",
    ),
    (
        "each",
        "[node.a]\nprompt = 'x'\neach = { items = ['p', 'q', 'p'] }\n[node.b]\nprompt = 'x'\nneeds = ['a']\neach = { items = 'a.outputs' }\n[node.c]\nprompt = 'x'\neach = { range = 5, max = 3, min_success = 9 }\n[node.d]\nprompt = 'x'\neach = { items = [{ n = 1 }], key = '{{ item.m }}' }\n[node.e]\nprompt = 'x'\neach = { items = [1], as = 'a' }\n[node.f]\nprompt = 'x'\neach = { items = [1], key = \"{{ item | join('x') | int + [] }}\" }\n",
    ),
    (
        "hidden names",
        "[node.a]\nprompt = '{{ b }} {{ a }} {{ loop.index }} {{ item }} {{ run.pid }} {{ nodes.a }}'\n[node.b]\nprompt = 'x'\nneeds = ['c']\n[node.c]\nprompt = \"\"\"\n  first {{ inputs.bse }}\n  then {{ d.x }}\"\"\"\n[node.d]\nprompt = 'x'\n[node.e]\nprompt = '{{ c }} {{ nodes.b.status }}'\nneeds = ['b']\n",
    ),
    (
        "fields",
        "[node.plan]\nprompt = 'x'\n[node.plan.output]\ntype = 'object'\nrequired = ['steps', 'why']\nproperties = { steps = { type = 'object', properties = { first = {} } } }\n[node.b]\nneeds = ['plan', 'many']\nprompt = '{{ plan.stps }} {{ plan.why.x }} {{ plan.steps.second }} {{ many.output }} {{ many.outputs }}'\n[node.many]\nprompt = 'x'\neach = { range = 2 }\n",
    ),
];

const LATE: &[(&str, &str)] = &[
    (
        "what rules refuse",
        "[node.a]\nkind = 'command'\nrun = 'make && forbidden x'\n[node.b]\nkind = 'command'\nrun = ['forbidden', '{{ inputs.x }}']\n[node.c]\nprompt = 'x'\npermission = 'prompt'\ntools = ['Read', 'edit_file']\ndeny_tools = ['edit_file']\n[inputs.x]\ntype = 'string'\ndefault = 'x'\n",
    ),
    (
        "agents, tools, models",
        "[node.a]\nagent = 'Exploer'\nprompt = 'x'\ntools = ['bsh', 'Read']\nmodel = ['good', 'nomodel-1']\n[agents.mine]\nprompt = 'x'\ntools = ['red_file']\n",
    ),
    ("limits", "[limits]\nagents = 3\n[node.a]\nprompt = 'x'\neach = { range = 4 }\n"),
    (
        "writers side by side, forbidden",
        "[defaults]\nshared_writes = 'forbid'\n[node.a]\nprompt = 'x'\n[node.b]\nprompt = 'x'\n",
    ),
];

fn all(table: &[(&'static str, &str)]) -> (String, BTreeSet<Code>) {
    let mut out = String::new();
    let mut codes = BTreeSet::new();
    for (title, problems) in problems_of(table) {
        codes.extend(problems.iter().map(|problem| problem.code));
        out.push_str(&format!("# {title}\n{}\n", said(&problems)));
    }
    (out, codes)
}

fn problems_of(table: &[(&'static str, &str)]) -> Vec<(&'static str, Vec<Problem>)> {
    let mut out = Vec::new();
    for (title, text) in table {
        let text = match text.strip_prefix('!') {
            Some(whole) => whole.to_owned(),
            None if *title == DEEP => format!("{HEAD}{}", deep()),
            None => format!("{HEAD}{text}"),
        };
        let mut args = InputArgs::default();
        if *title == "inputs" {
            args.text("n", "many").text("e", "z").text("bse", "x");
        }
        out.push((*title, plan_of(&text, &args).err().unwrap_or_default()));
    }
    out
}

#[test]
fn problems_of_keys_are_said_with_their_places() {
    insta::assert_snapshot!(all(KEYS).0);
}

#[test]
fn problems_of_the_graph_are_said_with_their_places() {
    insta::assert_snapshot!(all(GRAPH).0);
}

#[test]
fn problems_of_names_and_templates_are_said_with_their_places() {
    insta::assert_snapshot!(all(NAMES).0);
}

#[test]
fn problems_of_agents_tools_and_limits_are_said_with_their_places() {
    insta::assert_snapshot!(all(LATE).0);
}

#[test]
fn problems_of_bodies_are_said_with_their_places() {
    insta::assert_snapshot!(all(BODIES).0);
}

#[test]
fn problems_of_names_in_bodies_are_said_with_their_places() {
    insta::assert_snapshot!(all(SCOPES).0);
}

#[test]
fn problems_of_nested_files_are_said_with_their_places() {
    insta::assert_snapshot!(all(FILES).0);
}

#[test]
fn every_code_has_a_text_that_shows_it() {
    let mut shown = BTreeSet::new();
    for table in TABLES {
        shown.extend(all(table).1);
    }
    // These come up when something is expanded, and W… do not stop a plan.
    let elsewhere = [Code::E161, Code::E183];
    let missing: Vec<&Code> = Code::ALL
        .iter()
        .filter(|code| !code.is_warning() && !elsewhere.contains(code) && !shown.contains(code))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_problem_says_the_same_as_text_and_as_json() {
    for (title, problems) in TABLES.into_iter().flat_map(problems_of) {
        assert!(!problems.is_empty(), "{title}");
        for problem in problems {
            let json = serde_json::to_value(&problem).unwrap();
            let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            let place = &json["place"];
            let mut text = format!("{} {}", word(&json["code"]), word(&place["file"]));
            if place["line"] != 0 {
                text.push_str(&format!(":{}:{}", place["line"], place["column"]));
            }
            if json["path"] != "" {
                text.push_str(&format!(" {}", word(&json["path"])));
            }
            text.push_str(&format!(": {}", word(&json["message"])));
            if let Some(help) = json.get("help") {
                text.push_str(&format!("\n  help: {}", word(help)));
            }
            assert_eq!(text, problem.to_string(), "{title}");
            assert!(place["span"]["start"].as_u64() <= place["span"]["end"].as_u64(), "{title}: {json}");
        }
    }
}

#[test]
fn a_problem_is_json_with_code_place_path_and_help() {
    let problems = plan_of(
        &format!("{HEAD}[node.plan]\nprompt = 'x'\nneeds = ['verfy']\n[node.verify]\nprompt = 'x'\n"),
        &InputArgs::default(),
    )
    .unwrap_err();
    insta::assert_snapshot!(serde_json::to_string_pretty(&problems).unwrap());
}

#[test]
fn warnings_do_not_stop_a_plan_and_are_said_once() {
    let text = format!(
        "{HEAD}[node.a]\nprompt = 'x'\npermission = 'bypassPermissions'\n[node.b]\nprompt = 'x'\n[agents.Explore]\nprompt = 'x'\ntools = ['bash', 'read_file']\n"
    );
    let plan = plan_of(&text, &InputArgs::default()).unwrap();
    insta::assert_snapshot!(said(&plan.warnings));
}

#[test]
fn a_lock_inside_a_group_comes_behind_those_that_the_group_holds() {
    let text = |inner: &str| {
        format!(
            "{HEAD}[node.g]\nkind = 'group'\nlock = ['b']\n[node.g.body.a]\nkind = 'set'\nvalue = '1'\nlock = [{inner}]\n"
        )
    };
    for inner in ["'b'", "'c'", "'b', 'c'"] {
        plan_of(&text(inner), &InputArgs::default()).unwrap();
    }
    assert!(plan_of(&text("'a'"), &InputArgs::default()).is_err());
}
