//! What a good file becomes.

use super::fixture::{Fake, HEAD, good, plan_of};
use crate::expr::{Data, NodeView, Render, Scope, ScopeData, Template};
use crate::plan::model::{EachSource, NodeIx, OutputSpec, Plan, Work};
use crate::plan::render::GraphStyle;
use crate::plan::{InputArgs, check_argv};
use serde_json::json;
use std::collections::HashMap;
use std::sync::Arc;

fn key(plan: &Plan, name: &str) -> String {
    plan.nodes[plan.find(name).unwrap().at()].static_key.hex()
}

#[test]
fn static_keys_do_not_depend_on_order_or_looks() {
    let one = good("[node.a]\nprompt = 'x'\n[node.b]\nprompt = 'y'\nneeds = ['a']\n");
    let two = good(
        "[node.c]\nprompt = 'new'\n[node.b]\nneeds = ['a']\nprompt = 'y'\nlabel = 'B'\nphase = 'p'\npriority = 4\ntimeout = '1s'\nretry = { attempts = 9 }\n[node.a]\nprompt = 'x'\n",
    );
    assert_eq!((key(&one, "a"), key(&one, "b")), (key(&two, "a"), key(&two, "b")));
    let three = good("[node.a]\nprompt = 'x!'\n[node.b]\nprompt = 'y'\nneeds = ['a']\n");
    assert_ne!(key(&one, "a"), key(&three, "a"));
    assert_eq!(key(&one, "b"), key(&three, "b"));
}

#[test]
fn lists_whose_order_means_nothing_may_be_sorted() {
    for (one, other) in [
        ("prompt = 'x'\ntools = ['bash', 'read_file']", "prompt = 'x'\ntools = ['read_file', 'bash']"),
        (
            "kind = 'command'\nrun = ['x']\nenv = { A = '1', B = '2' }",
            "kind = 'command'\nrun = ['x']\nenv = { B = '2', A = '1' }",
        ),
    ] {
        let of = |text: &str| key(&good(&format!("[node.a]\n{text}\n")), "a");
        assert_eq!(of(one), of(other), "{one}");
    }
    let argv = |run: &str| key(&good(&format!("[node.a]\nkind = 'command'\nrun = {run}\n")), "a");
    assert_ne!(argv("['a', 'b']"), argv("['b', 'a']"));
}

#[test]
fn static_keys_tell_kinds_models_tools_and_outputs_apart() {
    let texts = [
        "prompt = 'x'",
        "prompt = 'x'\nmodel = 'm'",
        "prompt = 'x'\nmodel = ['m', 'n']",
        "prompt = 'x'\ntools = ['bash']",
        "prompt = 'x'\ndeny_tools = ['bash']",
        "prompt = 'x'\npermission = 'read-only'",
        "prompt = 'x'\noutput = 'json'",
        "prompt = 'x'\nagent = 'Explore'",
        "prompt = 'x'\nsystem_append = 'x'",
        "kind = 'set'\nvalue = '1'",
        "kind = 'command'\nrun = 'x'",
        "kind = 'command'\nrun = ['x']",
        "kind = 'command'\nrun = ['x']\nenv = { A = 'b' }",
    ];
    let keys: std::collections::HashSet<String> =
        texts.iter().map(|text| key(&good(&format!("[node.a]\n{text}\n")), "a")).collect();
    assert_eq!(keys.len(), texts.len());
}

#[test]
fn a_static_each_is_expanded_with_its_keys() {
    let plan = good(
        "[node.a]\nprompt = '{{ item.name }} {{ index }}'\neach = { items = [{ name = 'x/y' }, { name = 'z' }], key = '{{ item.name }}' }\n",
    );
    let each = plan.nodes[0].each.as_ref().unwrap();
    let EachSource::Static(items) = &each.source else { panic!("{each:?}") };
    assert_eq!(items.iter().map(|(key, _)| key.as_str()).collect::<Vec<_>>(), ["x%2Fy", "z"]);
    let plan = good(
        "[inputs.xs]\ntype = 'json'\ndefault = [3, 1]\n[node.a]\nprompt = 'x'\neach = { items = 'inputs.xs | sort' }\n",
    );
    let EachSource::Static(items) = &plan.nodes[0].each.as_ref().unwrap().source else { panic!() };
    assert_eq!(items.iter().map(|(_, item)| item.clone()).collect::<Vec<_>>(), [json!(1), json!(3)]);
}

#[test]
fn defaults_fill_where_the_kind_has_the_key() {
    let plan = good(
        "[defaults]\nmodel = 'm'\ntimeout = '7s'\nretry = { attempts = 5, backoff = '9s' }\ntools = ['bash']\n[node.a]\nprompt = 'x'\nretry = { attempts = 2 }\ntools = ['Read']\n[node.b]\nkind = 'command'\nrun = ['ls']\n[node.c]\nkind = 'merge'\nstrategy = 'list'\nfrom = ['1']\n",
    );
    let a = &plan.nodes[0];
    let Work::Agent(agent) = &a.work else { panic!() };
    assert_eq!(
        (agent.models.as_slice(), agent.tools.as_deref()),
        (["m".to_owned()].as_slice(), Some(["read_file".to_owned()].as_slice()))
    );
    assert_eq!((a.retry.attempts, a.retry.backoff.as_secs(), a.timeout.as_secs()), (2, 9, 7));
    assert_eq!((plan.nodes[1].retry.attempts, plan.nodes[1].retry.on.len()), (5, 0));
}

#[test]
fn order_dependents_critical_path_and_reads_follow_the_edges() {
    let plan = good(
        "[node.z]\nprompt = '{{ y }} {{ nodes.x.status }} {{ x.a }}'\nneeds = ['y']\n[node.y]\nprompt = 'y'\nneeds = ['x']\n[node.x]\nprompt = 'x'\n[node.w]\nprompt = 'w'\nafter = ['x']\n",
    );
    assert_eq!(plan.order(), [2, 1, 0, 3].map(NodeIx));
    assert_eq!(plan.nodes[2].dependents, [1, 3].map(NodeIx));
    assert_eq!(plan.nodes.iter().map(|node| node.critical_path).collect::<Vec<_>>(), [1, 2, 3, 1]);
    assert_eq!(plan.reads(NodeIx(0)), [1, 2].map(NodeIx));
}

#[test]
fn upstream_text_never_becomes_an_option_of_a_command() {
    let templates =
        |texts: &[&str]| texts.iter().map(|text| Template::parse(text).unwrap()).collect::<Vec<_>>();
    let strings = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let argv = templates(&["git", "diff", "{{ inputs.base }}"]);
    let error = check_argv(&argv, &strings(&["git", "diff", "--output=/etc/passwd"])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "argument 3 of the command would be the option `--output=/etc/passwd`; put \"--\" in front of it if the program knows that"
    );
    assert!(check_argv(&argv, &strings(&["git", "diff", "HEAD~1"])).is_ok());
    let argv = templates(&["git", "diff", "--end-of-options", "{{ inputs.base }}"]);
    assert!(check_argv(&argv, &strings(&["git", "diff", "--end-of-options", "-x"])).is_ok());
    let argv = templates(&["cmd", "-n{{ inputs.base }}"]);
    assert!(check_argv(&argv, &strings(&["cmd", "-n-5"])).is_ok());
}

#[test]
fn content_keys_change_with_the_values_named_and_with_nothing_else() {
    let plan = good("[node.a]\nprompt = 'x'\n[node.b]\nprompt = 'see {{ a }}'\nneeds = ['a']\n");
    let digest = |output: &str, nonce: &str, status: &str| {
        let view = NodeView {
            output: Data::new(json!(output)),
            outputs: None,
            status: status.into(),
            error: None,
            usage: json!({}),
            iterations: 1,
            attempts: 1,
            file: Some(format!("/runs/{nonce}/output.md").into()),
            schema: None,
        };
        let nodes = Arc::new(HashMap::from([("a".to_owned(), Arc::new(view))]));
        let run = Arc::new(crate::expr::RunView { id: nonce.into(), ..Default::default() });
        plan.nodes[1].content_digest(&Scope::new(ScopeData { nodes, run, ..ScopeData::default() }))
    };
    assert_eq!(digest("one", "N1", "succeeded"), digest("one", "N2", "cached"));
    assert_ne!(digest("one", "N1", "succeeded"), digest("two", "N1", "succeeded"));
}

#[test]
fn schemas_come_inline_and_from_files() {
    let plan = good(
        "[node.a]\nprompt = 'x'\noutput = { file = 'schema.json' }\n[node.b]\nkind = 'command'\nrun = ['ls']\noutput = 'lines'\n",
    );
    assert!(
        matches!(&plan.nodes[0].output, OutputSpec::Schema(schema) if schema["properties"]["a"]["type"] == "string")
    );
    assert!(matches!(plan.nodes[1].output, OutputSpec::Json));
}

const TOUR: &str = "[inputs.base]\ntype = 'string'\ndefault = 'HEAD~1'\n[limits]\nconcurrency = 3\n[node.explore]\nagent = 'Explore'\nmodel = 'haiku'\nprompt = '{{ item }}'\neach = { items = ['a', 'b', 'c'], key = '{{ item }}' }\n[node.plan]\nagent = 'Plan'\nneeds = ['explore']\nprompt = '{{ explore.outputs | bullets }}'\n[node.test]\nkind = 'command'\nrun = ['cargo', 'test']\nafter = ['plan']\n[node.all]\nkind = 'merge'\nstrategy = 'concat'\nneeds = ['plan']\nfrom = ['explore.outputs', 'plan']\n";

#[test]
fn a_plan_is_shown_as_text_and_json() {
    let plan = good(TOUR);
    insta::assert_snapshot!("plan_text", plan.text());
    let json = serde_json::to_string_pretty(&plan.json()).unwrap();
    assert!(
        json.contains("\"keys\": [\n          \"a\",") && !json.contains("null,\n      \"prompt"),
        "{json}"
    );
}

#[test]
fn a_graph_is_drawn_in_three_ways() {
    let plan = good(TOUR);
    let all =
        [GraphStyle::Ascii, GraphStyle::Mermaid, GraphStyle::Dot].map(|style| plan.graph(style)).join("\n");
    insta::assert_snapshot!("graphs", all);
}

#[test]
fn inputs_are_converted_and_secrets_do_not_show() {
    let text = format!(
        "{HEAD}[inputs.n]\ntype = 'int'\n[inputs.s]\ntype = 'string'\nsecret = true\n[inputs.t]\ntype = 'text'\ndefault = 'x'\n[node.a]\nprompt = '{{{{ inputs.n }}}}'\n"
    );
    let mut args = InputArgs::default();
    args.file("{\"s\": \"hush\"}").unwrap().text("n", "7");
    let plan = plan_of(&text, &args).unwrap();
    assert_eq!(plan.inputs["n"].value, json!(7));
    assert!(plan.inputs["t"].fenced && plan.inputs["s"].secret);
    assert!(!plan.text().contains("hush") && !plan.json().to_string().contains("hush"));
}

#[test]
fn a_rendered_prompt_of_a_plan_fences_what_agents_wrote() {
    let plan = Plan::from_source(
        std::path::Path::new("dir/t.toml"),
        &format!("{HEAD}{TOUR}"),
        &InputArgs::default(),
        &Fake,
    )
    .unwrap();
    let Work::Agent(agent) = &plan.nodes[1].work else { panic!() };
    let view = NodeView {
        output: Data::new(json!([{"key": "a", "status": "succeeded", "output": "found", "error": null}])),
        outputs: Some(Data::new(json!(["found"]))),
        status: "succeeded".into(),
        error: None,
        usage: json!({}),
        iterations: 1,
        attempts: 1,
        file: None,
        schema: None,
    };
    let nodes = Arc::new(HashMap::from([("explore".to_owned(), Arc::new(view))]));
    let scope = Scope::new(ScopeData { nodes, ..ScopeData::default() });
    let text = agent.prompt.render(&scope, Render::Prompt { nonce: "N" }).unwrap();
    assert!(
        text.starts_with("<agent-data nonce=\"N\" from=\"explore\">\n") && text.contains("\n- found\n"),
        "{text}"
    );
}

#[test]
fn a_file_that_cannot_be_read_is_one_problem() {
    let problems =
        Plan::from_file(std::path::Path::new("dir/none.toml"), &InputArgs::default(), &Fake).unwrap_err();
    assert_eq!(
        problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["E109 dir/none.toml: the file cannot be read: entity not found"]
    );
}

#[test]
fn a_name_far_up_is_visible_and_one_beside_is_not() {
    let chain = "[node.a]\nprompt = 'x'\n[node.b]\nprompt = 'x'\nneeds = ['a']\n[node.c]\nprompt = 'x'\nafter = ['b']\n";
    good(&format!("{chain}[node.d]\nprompt = '{{{{ a }}}}'\nneeds = ['c']\n"));
    let text = format!("{HEAD}{chain}[node.d]\nprompt = '{{{{ b }}}}'\nneeds = ['a']\n");
    assert_eq!(plan_of(&text, &InputArgs::default()).unwrap_err()[0].code.as_str(), "E180");
}
