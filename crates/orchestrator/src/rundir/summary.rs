//! Runs and steps as `claw runs list | show` tell them: data, drawn elsewhere. Reads without taking the run.

use super::lock::{Holder, holder};
use super::{KeptPlan, RunDir, RunDirError, RunFile, Runs};
use crate::addr::{AddrPart, StepAddr};
use crate::control::open_questions;
use crate::journal::codec;
use crate::journal::history::{History, InDoubt, Pause, StepHistory};
use crate::journal::reader::{Journal, Torn};
use crate::journal::record::{EndState, Entry, OutputRef, Question, Record, RunStatus};
use crate::journal::store;
use crate::manifest::schema::Manifest;
use crate::manifest::store as manifests;
use crate::plan::drawing::Drawing;
use crate::plan::render::GraphStyle;
use claw_agents::outcome::{Denial, FailureClass};
use claw_kernel::clock::Timestamp;
use claw_kernel::durable::Owner;
use claw_kernel::ids::AgentId;
use claw_providers::usage::Usage;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

/// The end of a journal in which the last word of a run is looked for.
const TAIL_BYTES: u64 = 64 * 1024;

/// One line of the list of runs.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSummary {
    /// Its folder and id.
    pub run: RunDir,
    /// `run.json`.
    pub file: RunFile,
    /// Derived from the journal and the lock.
    pub status: RunStatus,
    /// Of the last take, where it ended.
    pub exit_code: Option<u8>,
    /// When the last take ended.
    pub ended: Option<Timestamp>,
    /// Over all takes; `None` where the last take has not said it.
    pub usage: Option<Usage>,
    /// Who works on it.
    pub owner: Option<Owner>,
}

/// A run and its steps.
#[derive(Clone, Debug)]
pub struct RunDetail {
    /// As in the list.
    pub summary: RunSummary,
    /// Takes so far.
    pub takes: u32,
    /// In the order of the plan; items, iterations and children in the order in which they were first heard of.
    pub steps: Vec<StepSummary>,
    /// Over all takes.
    pub usage: Usage,
    /// What it waits for.
    pub pause: Option<Pause>,
    /// All that it waited for was answered while no process had it: it can go on.
    pub is_answered: bool,
    /// Questions that nobody answered yet.
    pub questions: Vec<(StepAddr, Question)>,
    /// Effects that may or may not have happened.
    pub in_doubt: Vec<InDoubt>,
    /// A last line that never became whole.
    pub torn: Option<Torn>,
    /// The graph of the last take, where it can be read.
    pub drawing: Option<Drawing>,
}

/// How a step stands on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepStatus {
    /// Heard of, never admitted.
    Pending,
    /// Admitted by the process that has the run.
    Running,
    /// An attempt failed, the next one is to come.
    Retrying,
    /// Final, for this take.
    Ended(EndState),
}

impl StepStatus {
    /// A word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Retrying => "retrying",
            Self::Ended(state) => state.as_str(),
        }
    }
}

/// One line of the list of steps.
#[derive(Clone, Debug, PartialEq)]
pub struct StepSummary {
    /// Its address.
    pub step: StepAddr,
    /// How it stands.
    pub status: StepStatus,
    /// Over all takes.
    pub attempts: u32,
    /// Of the last attempt.
    pub agent: Option<AgentId>,
    /// Why it did not succeed.
    pub error: Option<String>,
    /// Class of a failure.
    pub class: Option<FailureClass>,
    /// Over all attempts.
    pub usage: Option<Usage>,
    /// From the admission of the last attempt to its end, in seconds.
    pub seconds: Option<f64>,
    /// Folder of the last attempt, where it has one.
    pub folder: Option<PathBuf>,
}

/// A step with all that is kept of it.
#[derive(Clone, Debug, PartialEq)]
pub struct StepDetail {
    /// As in the list.
    pub summary: StepSummary,
    /// Its attempts, oldest first.
    pub attempts: Vec<AttemptView>,
    /// What it gave, where it succeeded.
    pub output: Option<OutputRef>,
    /// What was denied.
    pub denials: Vec<Denial>,
    /// Effects that may or may not have happened.
    pub in_doubt: Vec<InDoubt>,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptView {
    /// From 1.
    pub number: u32,
    /// Its folder, where it has one.
    pub folder: Option<PathBuf>,
    /// Its manifest, where it can be read; of a process that is gone: interrupted.
    pub manifest: Option<Manifest>,
    /// How it ended, as the journal says.
    pub state: Option<EndState>,
    /// Why it did not succeed.
    pub error: Option<String>,
}

impl Runs {
    /// All runs, newest first. A folder whose `run.json` cannot be read is left out: no run was made there.
    pub fn list(&self) -> Result<Vec<RunSummary>, RunDirError> {
        let ids = self.ids()?.into_iter();
        Ok(ids.filter_map(|id| self.open(id).ok()).map(|(run, file)| RunSummary::of(run, file)).collect())
    }
}

impl RunSummary {
    /// From the end of the journal and the lock.
    pub fn of(run: RunDir, file: RunFile) -> Self {
        let holder = holder(&run);
        let last = last_word(&run).ok().flatten();
        let status = match last {
            Some((_, status, ..)) => status,
            None if holder.is_held() => RunStatus::Running,
            None => RunStatus::Interrupted,
        };
        let owner = match holder {
            Holder::Process(owner) => owner,
            Holder::Nobody => None,
        };
        let (ended, exit_code, usage) = match last {
            Some((at, _, exit_code, usage)) => (Some(at), Some(exit_code), Some(usage)),
            None => (None, None, None),
        };
        Self { run, file, status, exit_code, ended, usage, owner }
    }
}

impl RunDetail {
    /// Reads the whole journal of a run. A damaged one: E301.
    pub fn of(run: RunDir, file: RunFile) -> Result<Self, RunDirError> {
        let Journal { records, torn } = store::load(&run)?;
        let history = History::of(&records);
        let summary = RunSummary::of(run, file);
        let at_work = summary.status == RunStatus::Running;
        let drawing = drawn(&summary.run, history.takes());
        let mut steps: Vec<StepSummary> = history
            .steps()
            // A fan-out stands for its items.
            .filter(|(_, past)| past.expanded.is_none() || past.last_end.is_some())
            .map(|(step, past)| StepSummary::of(&summary.run, step, past, at_work))
            .collect();
        sum_up_groups(&mut steps, &history);
        in_order_of_plan(&mut steps, drawing.as_ref());
        Ok(Self {
            takes: history.takes(),
            steps,
            usage: history.usage(),
            pause: history.last_pause().filter(|_| !is_answered(&records)).cloned(),
            is_answered: is_answered(&records),
            questions: questions(&records),
            in_doubt: if at_work { Vec::new() } else { history.in_doubt() },
            torn,
            drawing,
            summary,
        })
    }
}

impl StepDetail {
    /// Reads one step of a run.
    pub fn of(run: &RunDir, step: &StepAddr) -> Result<Self, RunDirError> {
        let history = History::of(&store::load(run)?.records);
        let past = history.step(step).ok_or_else(|| RunDirError::NoSuchStep(step.to_string()))?;
        let at_work = holder(run).is_held() && history.end().is_none();
        let attempts = past.attempts.iter().map(|attempt| AttemptView {
            number: attempt.number,
            folder: folder(run, step, attempt.number),
            manifest: manifests::view(run, step, attempt.number).ok(),
            state: attempt.ended.as_ref().map(|(_, ended)| ended.state),
            error: attempt.ended.as_ref().and_then(|(_, ended)| ended.error.clone()),
        });
        Ok(Self {
            summary: StepSummary::of(run, step, past, at_work),
            attempts: attempts.collect(),
            output: past.success.as_ref().and_then(|success| success.output.clone()),
            denials: past.denials.clone(),
            in_doubt: if at_work { Vec::new() } else { history.in_doubt_of(step) },
        })
    }
}

impl StepSummary {
    fn of(run: &RunDir, step: &StepAddr, past: &StepHistory, at_work: bool) -> Self {
        let last = past.attempts.last();
        let end = past.last_end.as_ref();
        let open = last.is_some_and(|attempt| attempt.ended.is_none());
        let status = match end {
            _ if open && at_work => StepStatus::Running,
            _ if open => StepStatus::Ended(EndState::Interrupted),
            Some((_, ended)) if ended.retry && at_work => StepStatus::Retrying,
            Some((_, ended)) => StepStatus::Ended(ended.state),
            None => StepStatus::Pending,
        };
        let end = end.filter(|_| !open);
        let seconds = last.and_then(|attempt| {
            let (at, _) = attempt.ended.as_ref()?;
            Some(at.since(attempt.admitted).as_secs_f64())
        });
        Self {
            step: step.clone(),
            status,
            attempts: last.map_or(0, |attempt| attempt.number),
            agent: last.and_then(|attempt| attempt.agent.clone()),
            error: end.and_then(|(_, ended)| ended.error.clone()),
            class: end.and_then(|(_, ended)| ended.class),
            usage: past.usage,
            seconds,
            folder: last.and_then(|attempt| folder(run, step, attempt.number)),
        }
    }
}

impl RunDetail {
    /// How the steps of a node stand, by the node's path; the most frequent first. Steps that were never heard of are in
    /// none.
    pub fn standings(&self) -> HashMap<String, Vec<(&'static str, usize)>> {
        let mut all: HashMap<String, Vec<(&'static str, usize)>> = HashMap::new();
        for step in &self.steps {
            let Some(path) = path_of(&step.step) else { continue };
            let counts = all.entry(path).or_default();
            let word = step.status.as_str();
            match counts.iter_mut().find(|(state, _)| *state == word) {
                Some((_, count)) => *count += 1,
                None => counts.push((word, 1)),
            }
        }
        for counts in all.values_mut() {
            counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        }
        all
    }

    /// The graph with how each node stands; `None` where the plan of the run cannot be read.
    pub fn graph(&self, style: GraphStyle) -> Option<String> {
        let standings = self.standings();
        let shown = |path: &str| {
            Some(match standings.get(path).map(Vec::as_slice) {
                None | Some([]) => "not run".to_owned(),
                Some([(state, 1)]) => (*state).to_owned(),
                Some(counts) => {
                    let words: Vec<String> =
                        counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
                    words.join(", ")
                }
            })
        };
        Some(self.drawing.clone()?.with_states(shown).draw(style))
    }
}

/// What was spent in a group, and from the first beginning in it to the last end.
fn sum_up_groups(steps: &mut [StepSummary], history: &History) {
    let mut sums: HashMap<StepAddr, (Option<Usage>, Timestamp, Option<Timestamp>)> = HashMap::new();
    for (step, past) in history.steps() {
        let Some(first) = past.attempts.first().map(|attempt| attempt.admitted) else { continue };
        let last = past.attempts.last().and_then(|attempt| attempt.ended.as_ref()).map(|(at, _)| *at);
        for above in step.above() {
            let sum = sums.entry(above).or_insert((None, first, None));
            sum.0 = match (sum.0, past.usage) {
                (Some(sum), Some(usage)) => Some(sum.plus(&usage)),
                (sum, usage) => sum.or(usage),
            };
            sum.1 = sum.1.min(first);
            sum.2 = sum.2.max(last);
        }
    }
    for step in steps.iter_mut().filter(|step| step.attempts == 0) {
        if let Some((usage, first, last)) = sums.get(&step.step) {
            step.usage = step.usage.or(*usage);
            step.seconds = step.seconds.or(last.map(|last| last.since(*first).as_secs_f64()));
        }
    }
}

fn drawn(run: &RunDir, take: u32) -> Option<Drawing> {
    Drawing::of_kept(&KeptPlan::read(run, take).ok()?.plan)
}

/// `fix/edit`; `None` for what a model started.
fn path_of(step: &StepAddr) -> Option<String> {
    let mut names = Vec::new();
    for part in step.parts() {
        match part {
            AddrPart::Node { node, .. } => names.push(node.as_str()),
            AddrPart::Child(_) => return None,
        }
    }
    Some(names.join("/"))
}

/// Sorts by the node's place in the plan at each level, then as they came.
fn in_order_of_plan(steps: &mut [StepSummary], drawing: Option<&Drawing>) {
    let Some(drawing) = drawing else { return };
    let places: HashMap<&str, usize> = drawing.paths().enumerate().map(|(at, path)| (path, at)).collect();
    let mut heard: HashMap<Vec<AddrPart>, usize> = HashMap::new();
    for step in &*steps {
        let parts = step.step.parts();
        for end in 1..=parts.len() {
            let next = heard.len();
            heard.entry(parts[..end].to_vec()).or_insert(next);
        }
    }
    let key = |step: &StepAddr| -> Vec<(usize, usize)> {
        let mut path = String::new();
        let parts = step.parts();
        let mut key = Vec::with_capacity(parts.len());
        for (at, part) in parts.iter().enumerate() {
            let place = match part {
                AddrPart::Node { node, .. } => {
                    if !path.is_empty() {
                        path.push('/');
                    }
                    path.push_str(node.as_str());
                    places.get(path.as_str()).copied().unwrap_or(usize::MAX)
                }
                AddrPart::Child(_) => usize::MAX,
            };
            key.push((place, heard.get(&parts[..=at]).copied().unwrap_or(usize::MAX)));
        }
        key
    };
    steps.sort_by_cached_key(|step| key(&step.step));
}

/// Somebody answered after the last take ended, and nothing else is asked.
fn is_answered(records: &[Record]) -> bool {
    let end = records.iter().rposition(|record| matches!(record.entry, Entry::RunEnded { .. }));
    let since = end.map(|end| &records[end..]).unwrap_or_default();
    since.iter().any(|record| matches!(record.entry, Entry::Answered(_)))
        && !since.iter().any(|record| matches!(record.entry, Entry::Take(_)))
        && open_questions(records).is_empty()
}

fn questions(records: &[Record]) -> Vec<(StepAddr, Question)> {
    open_questions(records).into_iter().map(|(step, (_, question))| (step, question)).collect()
}

fn folder(run: &RunDir, step: &StepAddr, attempt: u32) -> Option<PathBuf> {
    Some(run.node(step, attempt)).filter(|folder| folder.is_dir())
}

/// How the last take ended, from the end of the journal; `None` where it did not, or its end stands further up.
fn last_word(run: &RunDir) -> io::Result<Option<(Timestamp, RunStatus, u8, Usage)>> {
    let mut file = File::open(run.journal())?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut tail = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut tail)?;
    for line in tail.rsplit(|byte| *byte == b'\n') {
        // The first line of the tail is half a line, the last one may be torn.
        let Ok(record) = codec::decode(line) else { continue };
        match record.entry {
            Entry::RunEnded { status, exit_code, usage } => {
                return Ok(Some((record.at, status, exit_code, usage)));
            }
            Entry::Take(_) => return Ok(None),
            Entry::Expanded { .. }
            | Entry::Admitted { .. }
            | Entry::Intent { .. }
            | Entry::Done { .. }
            | Entry::Turn { .. }
            | Entry::Ended(_)
            | Entry::Paused { .. }
            | Entry::Spawned { .. }
            | Entry::MergeEnqueued { .. }
            | Entry::MergeDelivered { .. }
            | Entry::Asked(_)
            | Entry::Answered(_)
            | Entry::Steered { .. }
            | Entry::Damaged { .. } => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::record::{Ended, Take};
    use crate::journal::store::JournalWriter;
    use crate::rundir::{NewRun, take_lock};
    use claw_kernel::digest::Digest;
    use claw_kernel::durable::LogWriter;

    async fn write(run: &RunDir, entries: Vec<(Option<&str>, Entry)>) {
        let logs = LogWriter::start().unwrap();
        let opened = JournalWriter::open(&logs, run).await.unwrap();
        for (step, entry) in entries {
            let step: Option<StepAddr> = step.map(|step| step.parse().unwrap());
            let attempt = step.as_ref().map(|_| 1);
            opened.writer.record(step.as_ref(), attempt, entry).await.unwrap().done().await.unwrap();
        }
    }

    fn take() -> Entry {
        let digest = Digest::of("x");
        let (boot_id, version) = (String::new(), String::new());
        Entry::Take(Take { take: 1, pid: 1, boot_id, version, file: digest, plan: digest, inputs: digest })
    }

    fn admitted() -> Entry {
        Entry::Admitted { key: Digest::of("k"), agent: None }
    }

    fn failed() -> Entry {
        Entry::Ended(Ended {
            state: EndState::Failed,
            key: None,
            output: None,
            error: Some("exit code 3".into()),
            class: Some(FailureClass::Exit),
            retry: false,
            usage: None,
            denials: Vec::new(),
        })
    }

    #[tokio::test]
    async fn a_run_is_shown_as_its_journal_and_lock_say() {
        let folder = tempfile::tempdir().unwrap();
        let runs = Runs::in_folder(folder.path().into());
        let run = runs.create(NewRun::default()).unwrap();
        assert_eq!(runs.list().unwrap()[0].status, RunStatus::Interrupted);
        write(&run, vec![(None, take()), (Some("a"), admitted()), (Some("a"), failed())]).await;
        write(&run, vec![(Some("b"), admitted())]).await;
        let lock = take_lock(&run, None).unwrap();
        let status = || runs.list().unwrap()[0].status;
        assert_eq!(status(), RunStatus::Running);
        drop(lock);
        assert_eq!(status(), RunStatus::Interrupted);
        let (dir, file) = runs.open(run.id()).unwrap();
        let detail = RunDetail::of(dir, file).unwrap();
        let steps: Vec<_> = detail.steps.iter().map(|s| (s.step.to_string(), s.status.as_str())).collect();
        assert_eq!(steps, [("a".into(), "failed"), ("b".into(), "interrupted")]);
        assert_eq!(detail.steps[0].error.as_deref(), Some("exit code 3"));
        let usage = Usage::NOTHING;
        write(&run, vec![(None, Entry::RunEnded { status: RunStatus::Failed, exit_code: 1, usage })]).await;
        assert_eq!((status(), runs.list().unwrap()[0].exit_code), (RunStatus::Failed, Some(1)));
    }

    #[tokio::test]
    async fn a_step_is_shown_with_its_attempts() {
        let folder = tempfile::tempdir().unwrap();
        let runs = Runs::in_folder(folder.path().into());
        let run = runs.create(NewRun::default()).unwrap();
        write(&run, vec![(None, take()), (Some("a"), admitted()), (Some("a"), failed())]).await;
        let detail = StepDetail::of(&run, &"a".parse().unwrap()).unwrap();
        assert_eq!(detail.attempts.len(), 1);
        assert_eq!(detail.attempts[0].state, Some(EndState::Failed));
        assert!(matches!(StepDetail::of(&run, &"zz".parse().unwrap()), Err(RunDirError::NoSuchStep(_))));
    }
}
