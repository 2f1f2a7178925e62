//! Groups, loops, gates and nested files before they run: checked, planned, drawn; nothing is asked, nothing written.

use claw_kit::{Claw, Output, Reply, Sandbox, ScriptedProvider};
use serde_json::Value;
use std::time::Duration;

const CLAW: &str = env!("CARGO_BIN_EXE_claw");
const BOUND: Duration = Duration::from_secs(20);

fn claw(sandbox: &Sandbox, args: &[&str]) -> Output {
    Claw::new(CLAW, sandbox).args(args).run(BOUND)
}

fn head(rest: &str) -> String {
    format!("schema = 1\n[workflow]\nname = \"wf\"\n{rest}")
}

/// A file, the code and the place of what is wrong, and words that help.
const WRONG: &[(&str, &str, &str, &[&str])] = &[
    (
        "[node.g]\nkind = \"group\"\n[node.g.body.a]\nprompt = \"x\"\nneeds = [\"b\"]\n[node.g.body.b]\nprompt = \"x\"\nneeds = [\"a\"]\n",
        "E110",
        "wf.toml:8:9",
        &["a -> b"],
    ),
    (
        "[node.g]\nkind = \"group\"\n[node.g.body.a]\nprompt = \"{{ up }}\"\n[node.up]\nprompt = \"x\"\n",
        "E180",
        "wf.toml:7:14",
        &["node.g.body.a.prompt", "`needs` of `g`"],
    ),
    (
        "[node.up]\nprompt = \"x\"\n[node.g]\nkind = \"group\"\nneeds = [\"up\"]\n[node.g.body.up]\nprompt = \"x\"\n",
        "E106",
        "wf.toml:9:14",
        &["hides"],
    ),
    (
        "[node.a]\nprompt = \"{{ loop.nots }}\"\nloop = { max = 2, carry = { notes = \"a\" } }\n",
        "E180",
        "wf.toml:5:14",
        &["notes"],
    ),
    (
        "[node.g]\nkind = \"group\"\nretry = { attempts = 2 }\n[node.g.body.a]\nprompt = \"x\"\n",
        "E104",
        "wf.toml:6:1",
        &["nodes of the body"],
    ),
    (
        "[node.a]\nkind = \"gate\"\nmessage = \"ok?\"\ndefault = \"aprove\"\n",
        "E103",
        "wf.toml:7:1",
        &["approve"],
    ),
    (
        "[budget]\nusd = 1.0\nunknown_price = \"tokens_only\"\n[node.a]\nprompt = \"x\"\n",
        "E130",
        "wf.toml:6:17",
        &["tokens"],
    ),
    (
        "[node.a]\nkind = \"set\"\nvalue = \"1\"\nisolation = \"worktree\"\n",
        "E141",
        "wf.toml:7:1",
        &["folder"],
    ),
    (
        "[node.a]\nprompt = \"x\"\n[node.m]\nkind = \"merge\"\nstrategy = \"git\"\nneeds = [\"a\"]\nfrom = [\"a\"]\n",
        "E142",
        "wf.toml:10:9",
        &["isolation"],
    ),
    (
        "[node.n]\nkind = \"workflow\"\nfile = \"parts/none.toml\"\n",
        "E109",
        "wf.toml:6:8",
        &["parts/none.toml"],
    ),
    (
        "[node.n]\nkind = \"workflow\"\nfile = \"parts/round.toml\"\n",
        "E112",
        "parts/round.toml:6:8",
        &["parts/round.toml -> wf.toml"],
    ),
    ("[node.n]\nkind = \"workflow\"\nfile = \"parts/sub.toml\"\n", "E120", "wf.toml:4:7", &["count"]),
    (
        "[node.n]\nkind = \"workflow\"\nfile = \"parts/sub.toml\"\nwith = { count = \"'many'\", cuont = \"1\" }\n",
        "E121",
        "wf.toml:7:18",
        &["whole number", "E122", "did you mean `count`"],
    ),
    (
        "[node.n]\nkind = \"workflow\"\nfile = \"parts/wrong.toml\"\n",
        "E102",
        "parts/wrong.toml:5:1",
        &["prompt"],
    ),
    (
        "[node.a]\nprompt = \"x\"\nisolation = \"worktree\"\nbase = \"rev:HEAD\"\n",
        "E107",
        "wf.toml:7:8",
        &["not in this version"],
    ),
];

fn house(provider: &ScriptedProvider) -> Sandbox {
    let sandbox = Sandbox::anthropic(provider);
    let sub =
        "[inputs.count]\ntype = \"int\"\n[node.a]\nprompt = \"{{ inputs.count }} {{ inputs.count + 1 }}\"\n";
    sandbox.write("parts/sub.toml", head(sub));
    sandbox.write("parts/wrong.toml", head("[node.a]\nprmopt = \"x\"\n"));
    sandbox.write("parts/round.toml", head("[node.a]\nkind = \"workflow\"\nfile = \"../wf.toml\"\n"));
    sandbox
}

#[test]
fn what_is_wrong_in_bodies_and_nested_files_is_told_with_place_and_help() {
    let provider = ScriptedProvider::always(Reply::text("never"));
    let sandbox = house(&provider);
    let mut wrong = Vec::new();
    for (text, code, place, words) in WRONG {
        sandbox.write("wf.toml", head(text));
        for args in
            [&["run", "wf.toml"][..], &["workflow", "check", "wf.toml"], &["run", "wf.toml", "--plan"]]
        {
            let output = claw(&sandbox, args);
            let told = output.stderr.contains(&format!("{code} {place}"))
                && words.iter().all(|word| output.stderr.contains(word));
            if output.code != Some(2) || !told || !output.stdout.is_empty() {
                wrong.push(format!(
                    "{args:?}: wanted {code} at {place:?} with {words:?} for\n{text}\n{output}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n=====\n"));
    assert_eq!(provider.count(), 0);
    assert!(!sandbox.has(".claw"), "something stands on disk");
}

#[test]
fn problems_of_nested_files_are_json_with_their_own_places() {
    let provider = ScriptedProvider::always(Reply::text("never"));
    let sandbox = house(&provider);
    sandbox.write("wf.toml", head("[node.n]\nkind = \"workflow\"\nfile = \"parts/wrong.toml\"\n"));
    let output = claw(&sandbox, &["workflow", "check", "wf.toml", "--output-format", "json"]).expect_code(2);
    let told: Value = serde_json::from_str(&output.stdout).unwrap();
    let problem = &told["problems"][0];
    assert_eq!(problem["code"], "E102", "{told}");
    assert_eq!(problem["place"]["file"], "parts/wrong.toml", "{told}");
    assert_eq!((problem["place"]["line"].as_u64(), problem["place"]["column"].as_u64()), (Some(5), Some(1)));
    assert_eq!(problem["path"], "node.a.prmopt");
}

#[test]
fn a_nested_file_is_found_from_the_file_that_calls_it() {
    let provider = ScriptedProvider::always(Reply::text("never"));
    let sandbox = house(&provider);
    sandbox.write(
        "flows/wf.toml",
        head("[node.n]\nkind = \"workflow\"\nfile = \"../parts/sub.toml\"\nwith = { count = \"3\" }\n"),
    );
    let plan = claw(&sandbox, &["run", "flows/wf.toml", "--plan"]).expect_code(0).stdout;
    assert!(plan.contains(" 1.1    a  agent"), "{plan}");
    let plan = claw(&sandbox, &["run", "flows/wf.toml", "--plan", "--output-format", "json"]).expect_code(0);
    let plan: Value = serde_json::from_str(&plan.stdout).unwrap();
    assert_eq!(plan["nodes"][0]["body"][0]["id"], "a", "{plan}");
    assert_eq!(plan["nodes"][0]["file"], "parts/sub.toml", "{plan}");
    assert_eq!(provider.count(), 0);
}
