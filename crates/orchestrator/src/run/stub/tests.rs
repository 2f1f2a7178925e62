use super::*;
use crate::plan::tests::fixture::good;
use serde_json::json;

fn plan() -> Plan {
    good(
        "[node.look]\nagent = 'Explore'\nprompt = 'x {{ item }}'\neach = { items = ['a', 'b'], key = '{{ item }}' }\n\
         [node.plan]\nneeds = ['look']\nprompt = 'x'\noutput = { type = 'object', required = ['steps'], properties = { steps = { type = 'array', items = { type = 'string' } } } }\n\
         [node.sum]\nkind = 'merge'\nneeds = ['look']\nfrom = ['look.outputs']\nstrategy = 'agent'\nprompt = 'x'\n\
         [node.act]\nkind = 'command'\nrun = ['true']\n",
    )
}

fn stubs(text: &str) -> Stubs {
    Stubs::parse(text).unwrap()
}

fn addr(text: &str) -> StepAddr {
    text.parse().unwrap()
}

fn said<'a>(stubs: &'a Stubs, step: &str, attempt: u32) -> Option<&'a Value> {
    match stubs.answer(&addr(step), attempt)? {
        StubAnswer::Says(value) => Some(value),
        StubAnswer::Fails { .. } => None,
    }
}

#[test]
fn a_step_has_its_own_answer_before_that_of_its_node() {
    let stubs = stubs("look = 'all'\n\"look=a\" = 'one'\n\"fix/edit\" = 'path'\nedit = 'id'\n");
    assert_eq!(said(&stubs, "look=a", 1), Some(&json!("one")));
    assert_eq!(said(&stubs, "look=b", 1), Some(&json!("all")));
    assert_eq!(said(&stubs, "fix@2/edit", 1), Some(&json!("path")));
    assert_eq!(said(&stubs, "other/edit", 1), Some(&json!("id")));
    assert_eq!(said(&stubs, "nobody", 1), None);
}

#[test]
fn a_list_is_used_up_by_attempts_and_in_loops_by_iterations() {
    let stubs = stubs(r#"{"a": ["first", "later"], "fix": [["x", "y"], "z"]}"#);
    let a: Vec<_> = (1..4).filter_map(|attempt| said(&stubs, "a", attempt)).collect();
    assert_eq!(a, [&json!("first"), &json!("later"), &json!("later")]);
    assert_eq!(said(&stubs, "fix@1", 2), Some(&json!("y")));
    assert_eq!(said(&stubs, "fix@2", 5), Some(&json!("z")));
}

#[test]
fn a_stub_can_fail_with_a_class() {
    let stubs = stubs("a = [{ fail = 'overloaded', message = 'busy' }, 'fine']\n");
    let failure = StubAnswer::Fails { class: FailureClass::Overloaded, message: "busy".into() };
    assert_eq!(stubs.answer(&addr("a"), 1), Some(failure));
    assert_eq!(said(&stubs, "a", 2), Some(&json!("fine")));
}

#[test]
fn everything_that_does_not_fit_is_told_at_once() {
    let text = "lok = 'x'\nlook = { fail = 'badly' }\nplan = { steps = [1] }\nact = 'x'\n";
    let error = stubs(text).check(&plan()).unwrap_err().to_string();
    let wanted = [
        "`act` names no agent of the workflow",
        "`lok` names no agent of the workflow; did you mean `look`?",
        "the answer for `look` fails with `badly`, which is no class of failures",
        "the answer for `plan`: the output does not satisfy its schema: /steps/0: 1 is not of type \"string\"",
        "no answer for sum",
    ];
    assert_eq!(error, wanted.join("\n  "));
}

#[test]
fn agents_without_an_answer_are_named_item_by_item_where_they_are_known() {
    let error = stubs("plan = { steps = [] }\n\"look=a\" = 'x'\n").check(&plan()).unwrap_err().to_string();
    assert_eq!(error, "no answer for look=b, sum");
    let whole = "plan = [{ steps = [] }, { fail = 'exit' }]\nlook = 'x'\nsum = 'y'\n";
    assert!(stubs(whole).check(&plan()).is_ok());
}

#[test]
fn what_is_no_table_is_no_stub_file() {
    assert!(matches!(Stubs::parse("[1]"), Err(StubError::NotATable | StubError::Syntax(_))));
    assert!(matches!(Stubs::parse("= ="), Err(StubError::Syntax(_))));
}
