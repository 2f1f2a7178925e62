//! What a journal tells about the past of a run: successes to take over, attempts, what is in doubt, what was spent.
//!
//! A pure fold over records. Knows nothing of the plan of today: the caller says which addresses are in it.

use super::record::{
    Answer, EndState, Ended, Entry, OutputRef, Question, Record, RunStatus, SpawnedOrder, Take,
};
use crate::addr::StepAddr;
use claw_agents::outcome::{Denial, FailureClass};
use claw_kernel::clock::Timestamp;
use claw_kernel::digest::Digest;
use claw_kernel::ids::AgentId;
use claw_providers::usage::Usage;
use indexmap::IndexMap;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// The past of one run.
#[derive(Clone, Debug)]
pub struct History {
    steps: IndexMap<StepAddr, StepHistory>,
    /// Addresses with a success of that content, oldest first.
    by_key: HashMap<Digest, Vec<StepAddr>>,
    takes: Vec<(Timestamp, Take)>,
    pause: Option<Pause>,
    end: Option<RunEnd>,
    usage: Usage,
    last: Option<Timestamp>,
    /// For each take, the last record before it.
    words: Vec<Timestamp>,
    team: Vec<Teammate>,
    delivered: BTreeSet<u32>,
}

/// An agent that a session's own conversation started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Teammate {
    /// Its address.
    pub child: StepAddr,
    /// The call that it answers.
    pub call: String,
    /// What it is for.
    pub order: SpawnedOrder,
}

/// Why the run waited when its last take ended or went silent.
#[derive(Clone, Debug, PartialEq)]
pub struct Pause {
    /// For people.
    pub reason: String,
    /// When it may go on.
    pub until: Option<Timestamp>,
}

/// How the last take ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunEnd {
    /// When.
    pub at: Timestamp,
    /// How.
    pub status: RunStatus,
    /// Of the process.
    pub exit_code: u8,
}

/// A success that may stand for a step of the same content.
#[derive(Clone, Debug, PartialEq)]
pub struct Success {
    /// The step's content.
    pub key: Digest,
    /// What it gave.
    pub output: Option<OutputRef>,
    /// What it cost, in the attempt that succeeded.
    pub usage: Option<Usage>,
    /// Which attempt gave it; `None` where an earlier success stood for it.
    pub attempt: Option<u32>,
    /// The take in which it was recorded, from 1.
    pub take: u32,
}

/// One attempt of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Attempt {
    /// From 1, over all takes.
    pub number: u32,
    /// When it was admitted.
    pub admitted: Timestamp,
    /// The content it was admitted for.
    pub key: Digest,
    /// Where it is an agent.
    pub agent: Option<AgentId>,
    /// The last turn that is whole in its transcript, and its length then.
    pub turn: Option<(u32, u64)>,
    /// Spent in it up to that turn.
    pub spent: Option<Usage>,
    /// Turns that were kept in it.
    pub turns: u32,
    /// Effects begun and not known to be done: the call within the agent (`None` for the step itself), what it was.
    pub open_intents: Vec<(Option<String>, String)>,
    /// The step's own effect is done; of its result.
    pub done: Option<Digest>,
    /// How it ended; `None` where nothing was heard of it any more.
    pub ended: Option<(Timestamp, Ended)>,
}

impl Attempt {
    /// What it cost: what its end says, else what its last whole turn told.
    pub fn cost(&self) -> Option<Usage> {
        self.ended.as_ref().and_then(|(_, ended)| ended.usage).or(self.spent)
    }
}

/// All that is known of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepHistory {
    /// In order.
    pub attempts: Vec<Attempt>,
    /// The last end of the step, with or without an attempt.
    pub last_end: Option<(Timestamp, Ended)>,
    /// The last success.
    pub success: Option<Success>,
    /// What was asked last, where no answer came yet.
    pub asked: Option<Question>,
    /// What was answered last, and to what; gone when an attempt or the step ended behind it.
    pub answer: Option<(Question, Answer)>,
    /// Children of its agents, each with the call that started it, in order.
    pub spawned: Vec<(String, StepAddr)>,
    /// What persons said to its agents, in order.
    pub said: Vec<String>,
    /// Item keys, where it is a fan-out.
    pub expanded: Option<Vec<String>>,
    /// Spent in all attempts.
    pub usage: Option<Usage>,
    /// Denied in all attempts.
    pub denials: Vec<Denial>,
    /// Lines that may have spoken of it are lost, and nothing was heard of it since.
    pub damaged: bool,
}

/// An effect that may or may not have happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InDoubt {
    /// The step.
    pub step: StepAddr,
    /// The attempt; `None` where the journal was damaged.
    pub attempt: Option<u32>,
    /// The call within an agent, `<turn>.<index>`; `None`: the step itself (a command, a merge).
    pub call: Option<String>,
    /// As the intent said.
    pub what: String,
}

/// Why no success of the past stands for a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missed {
    /// It never ran.
    New,
    /// It ran for other content.
    Changed {
        /// Its key then.
        key: Digest,
        /// The take whose plan tells what it was.
        take: u32,
    },
    /// Its last attempt did not succeed.
    NotSucceeded {
        /// How it ended; `None`: its process was gone.
        state: Option<EndState>,
        /// The class of its failure.
        class: Option<FailureClass>,
    },
}

/// What differs between a step of the past and that of today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// What stands in the file or in its agent's definition.
    Own,
    /// Only what comes out of its needs, its items or its surroundings.
    Upstream,
}

impl Difference {
    /// From the static part of the keys, then and now; `None` then: the plan of that take is not there.
    pub fn between(then: Option<&Digest>, now: &Digest) -> Self {
        if then.is_some_and(|then| then == now) { Self::Upstream } else { Self::Own }
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Own => "prompt changed",
            Self::Upstream => "upstream changed",
        })
    }
}

impl Default for History {
    fn default() -> Self {
        Self {
            steps: IndexMap::new(),
            by_key: HashMap::new(),
            takes: Vec::new(),
            pause: None,
            end: None,
            usage: Usage::NOTHING,
            last: None,
            words: Vec::new(),
            team: Vec::new(),
            delivered: BTreeSet::new(),
        }
    }
}

impl History {
    /// Folds records in their order.
    pub fn of(records: &[Record]) -> Self {
        let mut history = Self::default();
        for record in records {
            history.add(record);
        }
        history
    }

    /// The success of this step for this content.
    pub fn success(&self, step: &StepAddr, key: &Digest) -> Option<&Success> {
        self.steps.get(step)?.success.as_ref().filter(|success| success.key == *key)
    }

    /// Successes of this content at other addresses, oldest first: a renamed node. The caller takes the first whose
    /// address is in no plan any more, and each of them once.
    pub fn success_by_key(&self, key: &Digest) -> impl Iterator<Item = (&StepAddr, &Success)> {
        let addresses = self.by_key.get(key).map(Vec::as_slice).unwrap_or_default();
        addresses.iter().filter_map(move |step| self.success(step, key).map(|success| (step, success)))
    }

    /// The number of the last attempt; 0 where there was none. The next one is one above.
    pub fn attempts(&self, step: &StepAddr) -> u32 {
        self.last_attempt(step).map_or(0, |attempt| attempt.number)
    }

    /// The last attempt of a step.
    pub fn last_attempt(&self, step: &StepAddr) -> Option<&Attempt> {
        self.steps.get(step)?.attempts.last()
    }

    /// Attempts of an agent for this content, the newest first, where the step has not succeeded since: the next attempt
    /// goes on from the transcript of the first that has one.
    pub fn to_go_on<'a>(
        &'a self,
        step: &StepAddr,
        key: &Digest,
    ) -> impl Iterator<Item = &'a Attempt> + use<'a> {
        let succeeded = |attempt: &&Attempt| {
            attempt.ended.as_ref().is_some_and(|(_, ended)| ended.state == EndState::Succeeded)
        };
        let key = *key;
        let attempts = self.steps.get(step).map(|history| history.attempts.as_slice()).unwrap_or_default();
        attempts
            .iter()
            .rev()
            .take_while(move |attempt| !succeeded(attempt))
            .filter(move |attempt| attempt.key == key && attempt.agent.is_some())
    }

    /// A step whose effect is done but whose end was not written: it is never run again.
    pub fn done_without_end(&self, step: &StepAddr, key: &Digest) -> Option<(u32, Digest)> {
        let last =
            self.last_attempt(step).filter(|attempt| attempt.key == *key && attempt.ended.is_none())?;
        last.done.map(|digest| (last.number, digest))
    }

    /// Attempts that were admitted and of whose end nothing is written: interrupted.
    pub fn interrupted(&self) -> impl Iterator<Item = (&StepAddr, &Attempt)> {
        self.steps.iter().filter_map(|(step, history)| {
            let last = history.attempts.last().filter(|attempt| attempt.ended.is_none())?;
            Some((step, last))
        })
    }

    /// All effects that may or may not have happened, in the order of the steps.
    pub fn in_doubt(&self) -> Vec<InDoubt> {
        self.steps.iter().flat_map(|(step, history)| doubts(step, history)).collect()
    }

    /// Those of one step.
    pub fn in_doubt_of(&self, step: &StepAddr) -> Vec<InDoubt> {
        self.steps.get(step).map(|history| doubts(step, history)).unwrap_or_default()
    }

    /// Why `success` gave nothing.
    pub fn why_missed(&self, step: &StepAddr, key: &Digest) -> Missed {
        let Some(history) = self.steps.get(step) else { return Missed::New };
        if let Some(success) = history.success.as_ref().filter(|success| success.key != *key) {
            return Missed::Changed { key: success.key, take: success.take };
        }
        match (history.attempts.last(), &history.last_end) {
            (Some(last), _) => Missed::NotSucceeded {
                state: last.ended.as_ref().map(|(_, ended)| ended.state),
                class: last.ended.as_ref().and_then(|(_, ended)| ended.class),
            },
            (None, Some((_, ended))) => Missed::NotSucceeded { state: Some(ended.state), class: ended.class },
            (None, None) => Missed::New,
        }
    }

    /// Spent in all takes, failed attempts included.
    pub fn usage(&self) -> Usage {
        // Of an attempt without an end, what its last whole turn told.
        let killed = self.steps.values().flat_map(|step| &step.attempts);
        let silent =
            |attempt: &&Attempt| attempt.ended.as_ref().is_none_or(|(_, ended)| ended.usage.is_none());
        let killed = killed.filter(silent).filter_map(|attempt| attempt.spent);
        killed.fold(self.usage, |sum, spent| sum.plus(&spent))
    }

    /// Time in which at least one attempt of these steps ran, over all takes. One without an end ran as long as
    /// something was heard of its take.
    pub fn worked(&self, which: &dyn Fn(&StepAddr) -> bool) -> Duration {
        let attempts = self.steps.iter().filter(|(addr, _)| which(addr)).flat_map(|(_, step)| &step.attempts);
        let mut spans: Vec<(Timestamp, Timestamp)> = attempts
            .map(|attempt| {
                let end = attempt.ended.as_ref().map(|(at, _)| *at);
                (attempt.admitted, end.unwrap_or_else(|| self.last_word_of(attempt.admitted)))
            })
            .collect();
        spans.sort_unstable();
        let mut sum = Duration::ZERO;
        let mut until: Option<Timestamp> = None;
        for (from, to) in spans {
            let from = until.map_or(from, |until| from.max(until));
            sum += to.since(from);
            until = until.max(Some(to));
        }
        sum
    }

    /// The last record of the take in which this moment lies.
    fn last_word_of(&self, moment: Timestamp) -> Timestamp {
        let later = self.takes.iter().position(|(began, _)| *began > moment);
        let before = later.and_then(|take| self.words.get(take).copied());
        before.or(self.last).unwrap_or(moment)
    }

    /// Takes so far.
    pub fn takes(&self) -> u32 {
        self.takes.last().map_or(0, |(_, take)| take.take)
    }

    /// The last take and when it began.
    pub fn last_take(&self) -> Option<&(Timestamp, Take)> {
        self.takes.last()
    }

    /// How the last take ended; `None`: its process works or is gone.
    pub fn end(&self) -> Option<RunEnd> {
        self.end
    }

    /// What the last take waited for, where it said so.
    pub fn last_pause(&self) -> Option<&Pause> {
        self.pause.as_ref()
    }

    /// When the last record was written.
    pub fn last_word(&self) -> Option<Timestamp> {
        self.last
    }

    /// The run's status, given whether a process holds it.
    pub fn status(&self, held: bool) -> RunStatus {
        match self.end {
            Some(end) => end.status,
            None if held => RunStatus::Running,
            None => RunStatus::Interrupted,
        }
    }

    /// The agents that a session's own conversation started, in order.
    pub fn team(&self) -> &[Teammate] {
        &self.team
    }

    /// Whether that message is in the session's log, as far as the run was told.
    pub fn is_delivered(&self, number: u32) -> bool {
        self.delivered.contains(&number)
    }

    /// All steps in the order in which they were first heard of.
    pub fn steps(&self) -> impl Iterator<Item = (&StepAddr, &StepHistory)> {
        self.steps.iter()
    }

    /// One step.
    pub fn step(&self, step: &StepAddr) -> Option<&StepHistory> {
        self.steps.get(step)
    }

    /// Takes one more record in.
    pub fn add(&mut self, record: &Record) {
        let before = self.last.replace(record.at);
        match &record.entry {
            Entry::Take(take) => {
                self.takes.push((record.at, take.clone()));
                self.words.push(before.unwrap_or(record.at));
                self.end = None;
                self.pause = None;
            }
            Entry::Paused { reason, until } => {
                self.pause = Some(Pause { reason: reason.clone(), until: *until });
            }
            Entry::RunEnded { status, exit_code, .. } => {
                self.end = Some(RunEnd { at: record.at, status: *status, exit_code: *exit_code });
            }
            Entry::Damaged { steps, .. } => {
                for step in steps {
                    self.steps.entry(step.clone()).or_default().damaged = true;
                }
            }
            Entry::Ended(ended) => self.ended(record, ended),
            Entry::Spawned { child, call, order: Some(order) } => {
                let (child, call, order) = (child.clone(), call.clone(), (**order).clone());
                self.team.push(Teammate { child, call, order });
            }
            Entry::MergeEnqueued { .. } => {}
            Entry::MergeDelivered { number } => {
                self.delivered.insert(*number);
            }
            Entry::Admitted { .. }
            | Entry::Expanded { .. }
            | Entry::Spawned { order: None, .. }
            | Entry::Asked(_)
            | Entry::Answered(_)
            | Entry::Steered { .. }
            | Entry::Intent { .. }
            | Entry::Done { .. }
            | Entry::Turn { .. } => {
                if let Some(step) = &record.step {
                    self.steps.entry(step.clone()).or_default().add(record);
                }
            }
        }
    }

    fn ended(&mut self, record: &Record, ended: &Ended) {
        let Some(step) = &record.step else { return };
        let take = self.takes.last().map_or(1, |(_, take)| take.take);
        // What a cached step once cost is counted where it was spent.
        if ended.state != EndState::Cached
            && let Some(usage) = &ended.usage
        {
            self.usage = self.usage.plus(usage);
        }
        let history = self.steps.entry(step.clone()).or_default();
        history.end(record, ended, take);
        let success = matches!(ended.state, EndState::Succeeded | EndState::Cached);
        let (true, Some(key)) = (success, ended.key) else { return };
        let holders = self.by_key.entry(key).or_default();
        if !holders.contains(step) {
            if ended.state == EndState::Cached && !holders.is_empty() {
                // A renamed node took the oldest of them: one success serves one step.
                holders.remove(0);
            }
            holders.push(step.clone());
        }
    }
}

impl StepHistory {
    fn add(&mut self, record: &Record) {
        match &record.entry {
            Entry::Admitted { key, agent } => {
                self.damaged = false;
                self.attempts.push(Attempt {
                    number: record.attempt.unwrap_or(self.attempts.len() as u32 + 1),
                    admitted: record.at,
                    key: *key,
                    agent: agent.clone(),
                    turn: None,
                    spent: None,
                    turns: 0,
                    open_intents: Vec::new(),
                    done: None,
                    ended: None,
                });
            }
            Entry::Expanded { keys } => self.expanded = Some(keys.clone()),
            Entry::Intent { what, call } => {
                if let Some(attempt) = self.attempt(record) {
                    attempt.open_intents.push((call.clone(), what.clone()));
                }
            }
            Entry::Done { digest, call } => {
                if let Some(attempt) = self.attempt(record) {
                    attempt.open_intents.retain(|(open, _)| open != call);
                    if call.is_none() {
                        attempt.done = Some(*digest);
                    }
                }
            }
            Entry::Turn { turn, bytes, usage } => {
                if let Some(attempt) = self.attempt(record) {
                    attempt.turn = Some((*turn, *bytes));
                    attempt.spent = *usage;
                    attempt.turns += 1;
                }
            }
            Entry::Asked(question) => self.asked = Some(question.clone()),
            Entry::Answered(answer) => {
                if let Some(question) = self.asked.take() {
                    self.answer = Some((question, answer.clone()));
                }
            }
            Entry::Steered { text, .. } => self.said.push(text.clone()),
            Entry::Spawned { child, call, .. } => self.spawned.push((call.clone(), child.clone())),
            Entry::Take(_)
            | Entry::MergeEnqueued { .. }
            | Entry::MergeDelivered { .. }
            | Entry::Ended(_)
            | Entry::Paused { .. }
            | Entry::RunEnded { .. }
            | Entry::Damaged { .. } => {}
        }
    }

    fn end(&mut self, record: &Record, ended: &Ended, take: u32) {
        self.damaged = false;
        // What was skipped by an answer is skipped by the same one at the next resume.
        if !matches!(ended.state, EndState::Interrupted | EndState::Skipped) {
            (self.asked, self.answer) = (None, None);
        }
        if let Some(attempt) = self.attempt(record) {
            attempt.ended = Some((record.at, ended.clone()));
        }
        self.denials.extend(ended.denials.iter().cloned());
        match ended.state {
            EndState::Succeeded | EndState::Cached => {
                if let Some(key) = ended.key {
                    let (output, usage) = (ended.output.clone(), ended.usage);
                    let attempt = record.attempt.filter(|_| ended.state == EndState::Succeeded);
                    // The same success again keeps the place where it was made.
                    let cached = ended.state == EndState::Cached;
                    if !(cached && self.success.as_ref().is_some_and(|success| success.key == key)) {
                        self.success = Some(Success { key, output, usage, attempt, take });
                    }
                }
            }
            EndState::Failed | EndState::Skipped | EndState::Cancelled | EndState::Interrupted => {}
        }
        if ended.state != EndState::Cached
            && let Some(usage) = &ended.usage
        {
            self.usage = Some(self.usage.map_or(*usage, |sum| sum.plus(usage)));
        }
        self.last_end = Some((record.at, ended.clone()));
    }

    /// The attempt that a record speaks of: an end without a number settles the one that is open.
    fn attempt(&mut self, record: &Record) -> Option<&mut Attempt> {
        match record.attempt {
            Some(number) => self.attempts.iter_mut().rev().find(|attempt| attempt.number == number),
            None => self.attempts.last_mut().filter(|attempt| attempt.ended.is_none()),
        }
    }

    /// Agent ids by attempt.
    pub fn agents(&self) -> BTreeMap<u32, &AgentId> {
        self.attempts.iter().filter_map(|a| a.agent.as_ref().map(|agent| (a.number, agent))).collect()
    }
}

fn doubts(step: &StepAddr, history: &StepHistory) -> Vec<InDoubt> {
    if history.damaged {
        let what = "records of it are lost".to_owned();
        return vec![InDoubt { step: step.clone(), attempt: None, call: None, what }];
    }
    // A later attempt was admitted only after somebody had decided on the doubts of the earlier one.
    let Some(last) = history.attempts.last().filter(|attempt| attempt.ended.is_none()) else {
        return Vec::new();
    };
    let doubt = |(call, what): &(Option<String>, String)| InDoubt {
        step: step.clone(),
        attempt: Some(last.number),
        call: call.clone(),
        what: what.clone(),
    };
    last.open_intents.iter().map(doubt).collect()
}

#[cfg(test)]
mod tests;
