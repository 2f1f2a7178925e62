use super::*;
use crate::journal::record::VERSION;
use serde_json::json;
use std::sync::Arc;

#[derive(Default)]
struct Told(Vec<Record>);

impl Told {
    fn say(mut self, step: &str, attempt: u32, entry: Entry) -> Self {
        let seq = self.0.len() as u64 + 1;
        self.0.push(Record {
            v: VERSION,
            seq,
            at: Timestamp::from_millis(1000 * seq as i64),
            step: (!step.is_empty()).then(|| addr(step)),
            attempt: (attempt > 0).then_some(attempt),
            entry,
        });
        self
    }
    fn take(self, take: u32) -> Self {
        let digest = Digest::of("x");
        let (boot_id, version) = (String::new(), String::new());
        let take = Take { take, pid: 1, boot_id, version, file: digest, plan: digest, inputs: digest };
        self.say("", 0, Entry::Take(take))
    }
    fn admit(self, step: &str, attempt: u32, key: &str) -> Self {
        self.say(step, attempt, Entry::Admitted { key: Digest::of(key), agent: Some(AgentId::fresh()) })
    }
    fn end(self, step: &str, attempt: u32, state: EndState, key: &str) -> Self {
        self.say(step, attempt, Entry::Ended(end(state, key)))
    }
    fn intent(self, step: &str, call: Option<&str>) -> Self {
        self.say(step, 1, Entry::Intent { what: "bash".into(), call: call.map(str::to_owned) })
    }
    fn done(self, step: &str, call: Option<&str>) -> Self {
        self.say(step, 1, Entry::Done { digest: Digest::of("r"), call: call.map(str::to_owned) })
    }
    fn history(self) -> History {
        History::of(&self.0)
    }
}

fn end(state: EndState, key: &str) -> Ended {
    Ended {
        state,
        key: Some(Digest::of(key)),
        output: Some(OutputRef::Inline(Arc::new(json!(key)))),
        error: None,
        class: None,
        retry: false,
        usage: Some(Usage { input: 10, usd: Some(0.5), ..Usage::NOTHING }),
        denials: Vec::new(),
    }
}

fn addr(text: &str) -> StepAddr {
    text.parse().unwrap()
}

fn key(text: &str) -> Digest {
    Digest::of(text)
}

#[test]
fn a_success_serves_its_own_address_and_content_only() {
    let history = Told::default().take(1).admit("a", 1, "k").end("a", 1, EndState::Succeeded, "k").history();
    assert_eq!(history.success(&addr("a"), &key("k")).unwrap().attempt, Some(1));
    assert_eq!(history.success(&addr("a"), &key("l")), None);
    assert_eq!(history.success(&addr("b"), &key("k")), None);
    assert_eq!(history.why_missed(&addr("a"), &key("l")), Missed::Changed { key: key("k"), take: 1 });
    assert_eq!(history.why_missed(&addr("b"), &key("k")), Missed::New);
}

#[test]
fn a_success_under_another_name_is_found_and_serves_one_step() {
    let told = Told::default().take(1);
    let told = told.admit("old", 1, "k").end("old", 1, EndState::Succeeded, "k");
    let history = History::of(&told.0);
    let found: Vec<_> = history.success_by_key(&key("k")).map(|(step, _)| step.clone()).collect();
    assert_eq!(found, [addr("old")]);
    let history = told.take(2).end("new", 0, EndState::Cached, "k").history();
    let found: Vec<_> = history.success_by_key(&key("k")).map(|(step, _)| step.clone()).collect();
    assert_eq!(found, [addr("new")]);
    assert!(history.success(&addr("new"), &key("k")).is_some());
}

#[test]
fn attempts_count_on_over_takes_and_a_silent_one_is_interrupted() {
    let told = Told::default().take(1).admit("a", 1, "k").end("a", 1, EndState::Failed, "k");
    let history = told.admit("a", 2, "k").take(2).history();
    assert_eq!(history.attempts(&addr("a")), 2);
    assert_eq!(history.attempts(&addr("b")), 0);
    assert_eq!(history.interrupted().map(|(_, attempt)| attempt.number).collect::<Vec<_>>(), [2]);
    assert_eq!(history.why_missed(&addr("a"), &key("k")), Missed::NotSucceeded { state: None, class: None });
    assert_eq!(history.step(&addr("a")).unwrap().agents().len(), 2);
}

#[test]
fn an_intent_without_its_done_is_in_doubt() {
    let told = Told::default().take(1).admit("a", 1, "k");
    let told = told.intent("a", Some("1.1")).done("a", Some("1.1")).intent("a", Some("2.1"));
    let told = told.admit("c", 1, "k").intent("c", None);
    let history = told.history();
    let doubts = history.in_doubt();
    assert_eq!(doubts.len(), 2);
    assert_eq!((&doubts[0].step, doubts[0].call.as_deref()), (&addr("a"), Some("2.1")));
    assert_eq!((&doubts[1].step, doubts[1].call.as_deref()), (&addr("c"), None));
    assert_eq!(history.in_doubt_of(&addr("c")), doubts[1..]);
}

#[test]
fn an_end_and_a_later_attempt_settle_a_doubt() {
    let told = Told::default().take(1).admit("c", 1, "k").intent("c", None);
    assert_eq!(History::of(&told.0).in_doubt().len(), 1);
    let ended = Told(told.0.clone()).take(2).end("c", 0, EndState::Skipped, "k").history();
    assert_eq!(ended.in_doubt(), []);
    assert_eq!(told.take(2).admit("c", 2, "k").history().in_doubt(), []);
}

#[test]
fn an_effect_that_is_done_is_known_though_its_end_is_not_written() {
    let told = Told::default().take(1).admit("c", 1, "k").intent("c", None).done("c", None);
    let history = told.history();
    assert_eq!(history.done_without_end(&addr("c"), &key("k")), Some((1, Digest::of("r"))));
    assert_eq!(history.done_without_end(&addr("c"), &key("l")), None);
    assert_eq!(history.in_doubt(), []);
}

#[test]
fn an_agent_goes_on_from_its_transcript_for_the_same_content_only() {
    let told = Told::default().take(1).admit("a", 1, "k");
    // It may have been stopped within its first turn: its transcript tells.
    assert_eq!(History::of(&told.0).to_go_on(&addr("a"), &key("k")).next().unwrap().number, 1);
    let told = told.say("a", 1, Entry::Turn { turn: 3, bytes: 99, usage: None });
    let history = History::of(&told.0);
    assert_eq!(history.to_go_on(&addr("a"), &key("k")).next().unwrap().turn, Some((3, 99)));
    assert!(history.to_go_on(&addr("a"), &key("l")).next().is_none());
    let history = told.end("a", 1, EndState::Succeeded, "k").history();
    assert!(history.to_go_on(&addr("a"), &key("k")).next().is_none());
}

#[test]
fn usage_is_summed_over_takes_and_failures_and_not_over_cached_steps() {
    let told = Told::default().take(1).admit("a", 1, "k").end("a", 1, EndState::Failed, "k");
    let told = told.admit("a", 2, "k").end("a", 2, EndState::Succeeded, "k");
    let history = told.take(2).end("a", 0, EndState::Cached, "k").history();
    assert_eq!(history.usage().input, 20);
    assert_eq!(history.usage().usd, Some(1.0));
    assert_eq!(history.step(&addr("a")).unwrap().usage.unwrap().input, 20);
    assert_eq!(history.success(&addr("a"), &key("k")).unwrap().take, 1);
}

#[test]
fn the_status_is_that_of_the_last_take() {
    let told = Told::default().take(1);
    let told = told.say("", 0, Entry::Paused { reason: "a gate".into(), until: None });
    let usage = Usage::NOTHING;
    let told = told.say("", 0, Entry::RunEnded { status: RunStatus::Paused, exit_code: 4, usage });
    let history = History::of(&told.0);
    assert_eq!((history.status(false), history.takes()), (RunStatus::Paused, 1));
    assert_eq!(history.last_pause().unwrap().reason, "a gate");
    let history = told.take(2).history();
    assert_eq!((history.status(true), history.status(false)), (RunStatus::Running, RunStatus::Interrupted));
    assert_eq!((history.takes(), history.last_pause()), (2, None));
}

#[test]
fn a_step_whose_records_are_lost_is_in_doubt_until_it_is_heard_of_again() {
    let lost = Entry::Damaged { offset: 0, bytes: 9, through: 3, steps: vec![addr("a")] };
    let told = Told::default().take(1).say("", 0, lost);
    let doubts = History::of(&told.0).in_doubt();
    assert_eq!((doubts.len(), doubts[0].attempt), (1, None));
    assert_eq!(told.admit("a", 1, "k").history().in_doubt(), []);
}
