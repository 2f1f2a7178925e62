use super::*;
use crate::journal::record::{Ended, Entry, Record, VERSION};
use crate::plan::model::{Body, GroupWork};
use crate::plan::tests::fixture::good;
use claw_kernel::clock::Timestamp;
use claw_kernel::digest::Digest;

/// `look` (two items) → `plan` → `fix`, a group of `edit` → `check` → `land`; `aside` stands alone.
fn plan() -> Plan {
    let mut plan = good(
        "[node.look]\nagent = 'Explore'\nprompt = 'x {{ item }}'\neach = { items = ['a', 'b'], key = '{{ item }}' }\n\
         [node.plan]\nneeds = ['look']\nprompt = 'x'\n[node.fix]\nneeds = ['plan']\nprompt = 'x'\n\
         [node.land]\nafter = ['fix']\nprompt = 'x'\n[node.aside]\nprompt = 'x'\n",
    );
    let mut body = good("[node.edit]\nprompt = 'x'\n[node.check]\nneeds = ['edit']\nprompt = 'x'\n");
    for node in &mut body.nodes {
        node.parent = Some(NodeIx(2));
        node.needs.iter_mut().chain(&mut node.dependents).for_each(|ix| ix.0 += 5);
    }
    plan.nodes[2].work = Work::Group(Box::new(GroupWork {
        body: Body { first: 5, count: 2 },
        result: None,
        timeout: None,
        nested: None,
    }));
    plan.nodes.append(&mut body.nodes);
    plan
}

fn addr(text: &str) -> StepAddr {
    text.parse().unwrap()
}

fn history(ends: &[(&str, EndState)]) -> History {
    let mut history = History::default();
    for (at, (step, state)) in ends.iter().enumerate() {
        let entry = Entry::Ended(Ended {
            state: *state,
            key: Some(Digest::of(*step)),
            output: None,
            error: None,
            class: None,
            retry: false,
            usage: None,
            denials: Vec::new(),
        });
        let step = Some(addr(step));
        let at = Timestamp::from_millis(1 + at as i64);
        history.add(&Record { v: VERSION, seq: 1, at, step, attempt: None, entry });
    }
    history
}

const ALL: [&str; 9] =
    ["look=a", "look=b", "plan", "fix@1/edit", "fix@1/check", "fix@2/edit", "fix@2/check", "land", "aside"];

fn done() -> History {
    history(&ALL.map(|step| (step, EndState::Succeeded)))
}

fn again(again: &Again, history: &History) -> Vec<&'static str> {
    let selection = Selection::new(Some(again), &plan(), history).unwrap();
    ALL.into_iter().filter(|step| selection.runs_again(&addr(step))).collect()
}

fn from(step: &str) -> Vec<&'static str> {
    again(&Again::From(step.to_owned()), &done())
}

#[test]
fn from_a_step_on_all_that_depends_on_it_runs_again() {
    assert_eq!(from("aside"), ["aside"]);
    assert_eq!(from("land"), ["land"]);
    assert_eq!(from("plan"), &ALL[2..8]);
    assert_eq!(from("fix"), &ALL[3..8]);
    assert_eq!(from("look"), &ALL[..8]);
}

#[test]
fn from_an_item_on_its_siblings_are_kept() {
    let again = from("look=b");
    assert_eq!(again, &ALL[1..8]);
}

#[test]
fn from_a_step_of_an_iteration_on_the_later_ones_run_again() {
    assert_eq!(from("fix@2/edit"), ["fix@2/edit", "fix@2/check", "land"]);
    assert_eq!(from("fix@1/check"), ["fix@1/check", "fix@2/edit", "fix@2/check", "land"]);
    assert_eq!(from("fix/check"), ["fix@1/check", "fix@2/check", "land"]);
}

#[test]
fn a_group_round_a_named_step_is_not_taken_over_as_a_whole() {
    let selection = Selection::new(Some(&Again::Only("fix@2/edit".to_owned())), &plan(), &done()).unwrap();
    assert!(selection.runs_again(&addr("fix")) && selection.is_round(&addr("fix@1")));
    assert!(selection.runs_again(&addr("fix@2/edit")));
    assert!(!selection.runs_again(&addr("fix@2/check")) && !selection.runs_again(&addr("land")));
}

#[test]
fn only_a_step_says_what_is_stale_from_then_on() {
    let selection = Selection::new(Some(&Again::Only("plan".to_owned())), &plan(), &done()).unwrap();
    let notes = selection.notes().join("\n");
    assert!(notes.starts_with("only plan runs"), "{notes}");
    assert!(notes.contains("made from an earlier plan: fix@1/edit,") && notes.contains("land"), "{notes}");
    assert!(!notes.contains("aside") && !notes.contains("look"), "{notes}");
}

#[test]
fn what_failed_runs_again_with_all_that_depends_on_it() {
    let mut ends = ALL.map(|step| (step, EndState::Succeeded));
    ends[1].1 = EndState::Failed;
    let mut with_nodes = ends.to_vec();
    // The fan-out as a whole failed as well: its good item is kept all the same.
    with_nodes.push(("look", EndState::Failed));
    assert_eq!(again(&Again::Failed, &history(&with_nodes)), &ALL[1..8]);
    assert_eq!(again(&Again::Failed, &done()), [""; 0]);
    let mut in_group = ALL.map(|step| (step, EndState::Succeeded)).to_vec();
    in_group[6].1 = EndState::Cancelled;
    in_group.push(("fix", EndState::Failed));
    assert_eq!(again(&Again::Failed, &history(&in_group)), ["fix@2/check", "land"]);
}

#[test]
fn a_failed_step_goes_on_and_a_named_one_begins_anew() {
    let failed = history(&[("plan", EndState::Failed)]);
    let plan = plan();
    let again = |again: Again| Selection::new(Some(&again), &plan, &failed).unwrap();
    assert!(!again(Again::Failed).begins_anew(&addr("plan")));
    assert!(again(Again::From("plan".to_owned())).begins_anew(&addr("plan")));
}

#[test]
fn a_name_of_nothing_is_refused_with_the_nearest() {
    let plan = plan();
    let near = |typed: &str| {
        let again = Again::From(typed.to_owned());
        Selection::new(Some(&again), &plan, &done()).unwrap_err().near
    };
    assert_eq!(near("plam").as_deref(), Some("plan"));
    assert_eq!(near("look=c").as_deref(), Some("look=a"));
    assert_eq!(near("fix@3/edit").as_deref(), Some("fix@1/edit"));
    assert_eq!(near("edit").as_deref(), None);
    assert_eq!(near("../..").as_deref(), None);
    // An item that is in the file and never came to run is one.
    let again = Again::From("look=b".to_owned());
    assert!(Selection::new(Some(&again), &plan, &history(&[])).is_ok());
}
