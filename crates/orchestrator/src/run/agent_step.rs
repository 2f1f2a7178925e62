//! One attempt of an agent: started, listened to, bounded in time, its end reported, its picture on disk.

use super::children::{Children, Kin};
use super::hands::Hands;
use super::picture::Picture;
use super::place::Place;
use super::stub::{StubAnswer, Stubs};
use crate::addr::StepAddr;
use crate::journal::record::Entry;
use crate::plan::model::{AgentWork, Node, OutputSpec};
use crate::report::event::{RunEventKind, StepState, ToolPhase, WaitingFor};
use crate::scheduler::{
    Event, Failure, Launch, Outcome, OutcomeEnd, Prepared, PreparedAgent, RunMsg, RunRef, Settlement, StepIx,
};
use claw_agents::children::{self, Spawner};
use claw_agents::effects::{CallNo, EffectLog, EffectLogFailed};
use claw_agents::event::{AgentEvent, EventSink};
use claw_agents::hooks::{HookNews, HookState};
use claw_agents::outcome::{AgentEnd, AgentOutcome, FailureClass};
use claw_agents::request::AgentRequest;
use claw_kernel::cancel::CancelToken;
use claw_kernel::clock;
use claw_kernel::digest::Digest;
use claw_kernel::durable::{self, Mode, Sync};
use claw_kernel::tasks;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;

/// Bytes of one attached file.
const MOST_ATTACHED: usize = 256 * 1024;

/// What an attempt is made with.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub hands: &'a Arc<Hands>,
    pub launch: &'a Launch,
    /// Hears of its children.
    pub run: &'a RunRef,
}

/// Where an attempt reports its outcome, once.
pub(super) type Report = oneshot::Sender<(Outcome, oneshot::Sender<Settlement>)>;

/// An attempt whose task died without a word.
pub(super) fn died() -> Outcome {
    let failure = Failure::new(FailureClass::Panic, "the step's task died");
    Outcome { end: OutcomeEnd::Failed(failure), usage: None, denials: Vec::new() }
}

/// Runs it to its end and reports.
pub(super) async fn run(attempt: Attempt<'_>, prepared: &PreparedAgent, token: CancelToken, report: Report) {
    let Attempt { hands, launch, .. } = attempt;
    let node = &hands.plan.nodes[launch.node.at()];
    let Some(work) = node.agent() else { return };
    let mut picture = Picture::new(hands, launch, node);
    let place = Place::of(hands, launch, &mut picture).await;
    let outcome = match &place {
        Ok(place) => match begin(attempt, prepared, work, &place.root).await {
            Ok(request) => {
                picture.agent(&request);
                picture.started(Some(&request.prompt));
                converse(attempt, node, request, token).await
            }
            Err(error) => Err(Failure::new(FailureClass::Tool, error.to_string())),
        },
        Err(failure) => Err(failure.clone()),
    };
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(failure) => AgentEnded { agent: None, end: OutcomeEnd::Failed(failure) },
    };
    let end = match place {
        Ok(place) => {
            let end = super::value_step::write(hands, launch, &place.root, outcome.end);
            let end = super::artifacts::check(launch, &place.root, end, &mut picture).await;
            place.leave(hands, launch, end).await
        }
        Err(_) => outcome.end,
    };
    picture.ended(outcome.agent.as_ref(), &end);
    let (usage, denials) =
        outcome.agent.map_or((None, Vec::new()), |agent| (Some(agent.usage), agent.denials));
    let (settle, settled) = oneshot::channel();
    // The receiver lives as long as the run.
    let _ = report.send((Outcome { end, usage, denials }, settle));
    if let Ok(settlement) = settled.await {
        picture.settled(&settlement);
    }
}

/// The folder, the transcript that it goes on from, the request.
async fn begin(
    attempt: Attempt<'_>,
    prepared: &PreparedAgent,
    work: &AgentWork,
    root: &Path,
) -> io::Result<AgentRequest> {
    let Attempt { hands, launch, .. } = attempt;
    let node = &hands.plan.nodes[launch.node.at()];
    let folder = hands.run.node(&launch.addr, launch.attempt);
    let transcript = hands.run.transcript(&launch.addr, launch.attempt);
    if let Some(earlier) = prepared.goes_on_from {
        go_on_from(&hands.run.transcript(&launch.addr, earlier), &transcript)?;
    }
    let options = &hands.options;
    let permission = [work.definition.permission, work.permission]
        .into_iter()
        .flatten()
        .fold(options.permission, claw_agents::permission::Permission::intersect);
    let kin = Kin::of(hands, work, prepared.child.as_ref(), permission);
    let mut readable = prepared.readable.clone();
    let spawner = kin.has_children.then(|| {
        // Outputs of its children are longer than what it is told of them.
        readable.push(hands.run.node_of_children(&launch.addr));
        Arc::new(Children::new(attempt, work)) as Arc<dyn Spawner>
    });
    let mut prompt = prepared.prompt.clone();
    for path in &prepared.attach {
        attach(&mut prompt, root, path)?;
    }
    add_said(&mut prompt, &launch.said);
    Ok(AgentRequest {
        id: prepared.id.clone(),
        fault: prepared.fault.clone(),
        label: launch.label.clone(),
        definition: Arc::clone(kin.definition),
        prompt,
        system_append: prepared.system_append.clone(),
        models: kin.models,
        effort: work.effort,
        tools: kin.tools,
        deny_tools: work.deny_tools.clone(),
        permission: kin.permission,
        max_turns: Some(kin.max_turns),
        output_schema: match output_of(node, prepared) {
            OutputSpec::Schema(schema) => Some(Arc::clone(schema)),
            OutputSpec::Text | OutputSpec::Json => None,
        },
        workspace: root.to_owned(),
        readable,
        transcript,
        spill: folder.join("spill"),
        idle_timeout: node.idle_timeout,
        effects: Arc::new(Effects {
            hands: Arc::clone(hands),
            addr: launch.addr.clone(),
            attempt: launch.attempt,
        }),
        purse: hands.ledger.purse(launch.node),
        spawner,
    })
}

/// Its parent is there: one call of the system where the folder is new, as it nearly always is.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    match std::fs::DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(_) => durable::private_dir(folder),
    }
}

/// The new attempt has a transcript of its own that begins with the whole turns of the earlier one.
fn go_on_from(earlier: &Path, transcript: &Path) -> io::Result<()> {
    match std::fs::read(earlier) {
        Ok(bytes) => durable::replace(transcript, &bytes, Mode::Private, Sync::No),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn attach(prompt: &mut String, workspace: &Path, path: &str) -> io::Result<()> {
    let full = workspace.join(path).canonicalize().map_err(|error| named(path, error))?;
    if !full.starts_with(workspace.canonicalize()?) || !full.is_file() {
        return Err(named(path, io::Error::other("not a file below the workspace")));
    }
    let text = std::fs::read_to_string(&full).map_err(|error| named(path, error))?;
    let cut = text.floor_char_boundary(MOST_ATTACHED.min(text.len()));
    prompt.push_str(&format!("\n\nFile {path}:\n{}", &text[..cut]));
    if cut < text.len() {
        prompt.push_str(&format!("\n[… {} bytes left out; read {path} for the rest …]", text.len() - cut));
    }
    Ok(())
}

/// What persons said to earlier attempts, for one that starts anew.
fn add_said(prompt: &mut String, said: &[String]) {
    if said.is_empty() {
        return;
    }
    prompt.push_str("\n\nWhile this task was worked on before, the user said:");
    for text in said {
        prompt.push_str(&format!("\n\n{text}"));
    }
}

fn named(path: &str, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("attach {path}: {error}"))
}

struct AgentEnded {
    agent: Option<AgentOutcome>,
    end: OutcomeEnd,
}

async fn converse(
    attempt: Attempt<'_>,
    node: &Node,
    request: AgentRequest,
    token: CancelToken,
) -> Result<AgentEnded, Failure> {
    let Attempt { hands, launch, run } = attempt;
    let (waits, waiting) = watch::channel(false);
    let sink = Arc::new(Sink {
        hands: Arc::clone(hands),
        addr: launch.addr.clone(),
        attempt: launch.attempt,
        waits,
        calls: Mutex::default(),
        step: launch.step,
        run: run.clone(),
        warms: AtomicBool::new(launch.warms),
    });
    let request = stubbed(hands, launch, request)?;
    let agent = claw_agents::start(Arc::clone(&hands.agents), request, sink, token.clone());
    let orders = agent.orders();
    hands.mailboxes.attach(launch.step, orders.clone());
    let mut timed_out = false;
    let outcome = agent.outcome();
    tokio::pin!(outcome);
    let outcome = tokio::select! {
        outcome = &mut outcome => outcome,
        () = worked(node.timeout, waiting) => {
            timed_out = true;
            orders.cancel_because(format!("the step's time limit of {} s was reached", node.timeout.as_secs()));
            outcome.await
        }
    };
    let end = if timed_out && outcome.end == AgentEnd::Cancelled {
        let text = format!("timed out after {} s (the step's `timeout`)", node.timeout.as_secs());
        OutcomeEnd::Failed(Failure::new(FailureClass::Timeout, text))
    } else {
        end_of(&outcome, node, launch, hands)
    };
    Ok(AgentEnded { agent: Some(outcome), end })
}

/// With `--stub` the file answers: as a document, for which no tool is needed.
fn stubbed(hands: &Hands, launch: &Launch, mut request: AgentRequest) -> Result<AgentRequest, Failure> {
    let Some(stubs) = &hands.options.stubs else { return Ok(request) };
    match stubs.answer(&launch.addr, launch.attempt) {
        Some(StubAnswer::Says(_)) => {}
        Some(StubAnswer::Fails { class, message }) => return Err(Failure::new(class, message)),
        None => {
            let message = format!("the stub file has no answer for {}", launch.addr);
            return Err(Failure::new(FailureClass::Refused, message));
        }
    }
    request.models = vec![Stubs::model_of(&launch.addr, launch.attempt)];
    request.tools = Some(Vec::new());
    Ok(request)
}

/// Done after so much time of work: waiting for a provider or for a person does not count.
async fn worked(limit: Duration, mut waiting: watch::Receiver<bool>) {
    let mut left = limit;
    loop {
        if *waiting.borrow_and_update() {
            if waiting.changed().await.is_err() {
                // The conversation is over; its outcome is on its way.
                return std::future::pending().await;
            }
            continue;
        }
        let began = Instant::now();
        tokio::select! {
            () = tokio::time::sleep(left) => return,
            changed = waiting.changed() => {
                if changed.is_err() {
                    return std::future::pending().await;
                }
                left = left.saturating_sub(began.elapsed());
            }
        }
    }
}

fn end_of(outcome: &AgentOutcome, node: &Node, launch: &Launch, hands: &Hands) -> OutcomeEnd {
    match &outcome.end {
        AgentEnd::Cancelled => OutcomeEnd::Cancelled,
        AgentEnd::OutOfBudget { reason } => OutcomeEnd::Interrupted(reason.clone()),
        AgentEnd::Failed { class, message, retry_at, .. } => OutcomeEnd::Failed(Failure {
            class: *class,
            message: message.clone(),
            retry_after: retry_at.map(|at| at.since(clock::now())),
            retry_at: *retry_at,
            effect: None,
        }),
        AgentEnd::Completed { text, output } => {
            let value = match (output_of_launch(node, launch), output) {
                (OutputSpec::Schema(_), Some(value)) => value.clone(),
                (OutputSpec::Json, _) => match serde_json::from_str(unfenced(text)) {
                    Ok(value) => value,
                    Err(error) => {
                        let text = format!("the answer is not JSON: {error}");
                        return OutcomeEnd::Failed(Failure::new(FailureClass::Schema, text));
                    }
                },
                (OutputSpec::Text | OutputSpec::Schema(_), _) => Value::String(text.clone()),
            };
            let json = !value.is_string();
            let file = Some(hands.run.output(&launch.addr, launch.attempt, json));
            let value = Arc::new(value);
            let kept = hands.keep(&launch.addr, launch.attempt, &value);
            OutcomeEnd::Succeeded { value, kept, file, effect: None }
        }
    }
}

/// What an agent gives: a child gives text, whatever its parent's node gives.
fn output_of<'a>(node: &'a Node, agent: &PreparedAgent) -> &'a OutputSpec {
    if agent.child.is_some() { &OutputSpec::Text } else { &node.output }
}

fn output_of_launch<'a>(node: &'a Node, launch: &Launch) -> &'a OutputSpec {
    match &launch.work {
        Prepared::Agent(agent) => output_of(node, agent),
        Prepared::Command(_) | Prepared::Value(_) | Prepared::GitMerge(_) => &node.output,
    }
}

/// A document that a model put between code fences.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"))
        .and_then(|rest| rest.split_once('\n'))
        .map_or(text, |(_, body)| body)
}

/// Intents and their ends go to the run's journal.
struct Effects {
    hands: Arc<Hands>,
    addr: StepAddr,
    attempt: u32,
}

impl Effects {
    async fn write(&self, entry: Entry, wait: bool) -> Result<(), EffectLogFailed> {
        let failed = |error: crate::journal::error::JournalError| EffectLogFailed(error.to_string());
        let ticket =
            self.hands.journal.record(Some(&self.addr), Some(self.attempt), entry).await.map_err(failed)?;
        if wait {
            ticket.done().await.map_err(failed)?;
        }
        Ok(())
    }
}

impl EffectLog for Effects {
    fn intent(&self, call: CallNo, tool: &str) -> BoxFuture<'_, Result<(), EffectLogFailed>> {
        let entry = Entry::Intent { what: tool.to_owned(), call: Some(call.to_string()) };
        Box::pin(self.write(entry, true))
    }

    fn done(&self, call: CallNo, result: Digest) -> BoxFuture<'_, Result<(), EffectLogFailed>> {
        Box::pin(self.write(Entry::Done { digest: result, call: Some(call.to_string()) }, false))
    }
}

/// News of the conversation become news of the run.
struct Sink {
    hands: Arc<Hands>,
    addr: StepAddr,
    attempt: u32,
    /// Whether the step waits: its clock stands still.
    waits: watch::Sender<bool>,
    /// Calls that run.
    calls: Mutex<Calls>,
    step: StepIx,
    run: RunRef,
    /// The first byte is waited for.
    warms: AtomicBool,
}

/// Calls of one agent that run.
#[derive(Debug, Default)]
struct Calls {
    children: usize,
    others: usize,
}

impl Sink {
    fn set_waiting(&self, waits: bool) {
        self.waits.send_if_modified(|now| std::mem::replace(now, waits) != waits);
    }

    /// A call began or ended. While children alone run, the agent only waits.
    fn count(&self, tool: &str, begins: bool) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let is_child = tool == children::TOOL;
        let count = if is_child { &mut calls.children } else { &mut calls.others };
        *count = if begins { *count + 1 } else { count.saturating_sub(1) };
        let turned = !is_child && calls.others == usize::from(begins);
        let (others, waits) = (calls.others, calls.others == 0 && calls.children > 0);
        drop(calls);
        if turned {
            let event = Event::Busy { step: self.step, attempt: self.attempt, is_busy: others > 0 };
            self.run.tell(RunMsg::Fact(event));
        }
        self.set_waiting(waits);
    }

    fn tell(&self, kind: RunEventKind) {
        self.hands.bus.tell(Some(self.addr.clone()), Some(self.attempt), kind);
    }

    async fn hear(&self, event: AgentEvent) {
        self.follow(&event);
        self.pass_on(event).await;
    }

    /// Whether the agent works or waits.
    fn follow(&self, event: &AgentEvent) {
        match event {
            AgentEvent::Waiting { .. } | AgentEvent::Held { .. } | AgentEvent::Asking { .. } => {
                self.set_waiting(true);
            }
            AgentEvent::TurnStarted { .. }
            | AgentEvent::Alive
            | AgentEvent::Text(_)
            | AgentEvent::Thinking(_)
            | AgentEvent::Answered { .. } => {
                self.set_waiting(false);
                let began = !matches!(event, AgentEvent::TurnStarted { .. });
                if began && self.warms.swap(false, Ordering::Relaxed) {
                    self.run.tell(RunMsg::Fact(Event::Warmed { step: self.step }));
                }
            }
            AgentEvent::ToolStarted { tool, .. } => self.count(tool, true),
            AgentEvent::ToolEnded { tool, .. } => self.count(tool, false),
            AgentEvent::Withdrawn
            | AgentEvent::FellBack { .. }
            | AgentEvent::TurnKept { .. }
            | AgentEvent::Hook(_)
            | AgentEvent::Compacted { .. }
            | AgentEvent::Context { .. }
            | AgentEvent::Note(_) => {}
        }
    }

    /// To whoever watches the run, and to its journal.
    async fn pass_on(&self, event: AgentEvent) {
        match event {
            AgentEvent::TurnStarted { turn, model } => {
                self.tell(RunEventKind::StepState(StepState::Running));
                self.tell(RunEventKind::AgentTurn { turn, model });
            }
            AgentEvent::Alive | AgentEvent::Thinking(_) | AgentEvent::Withdrawn => {}
            AgentEvent::Hook(news) => {
                if let Some((name, subject, phase)) = hook_line(news) {
                    self.tell(RunEventKind::AgentTool { name, subject, phase });
                }
            }
            AgentEvent::Text(text) => self.tell(RunEventKind::AgentText(text.into())),
            AgentEvent::Waiting { delay, why, error: _ } => {
                self.tell(RunEventKind::StepState(StepState::Waiting(WaitingFor::Provider { delay, why })));
            }
            AgentEvent::Held { why } => {
                self.tell(RunEventKind::StepState(StepState::Waiting(WaitingFor::Breaker { why })));
            }
            AgentEvent::FellBack { to, error } => {
                self.tell(RunEventKind::Note(format!("goes on with model {to}: {error}")));
            }
            AgentEvent::Answered { usage, .. } => self.tell(RunEventKind::AgentUsage(usage)),
            AgentEvent::ToolStarted { tool, subject, .. } => {
                self.tell(RunEventKind::StepState(StepState::Running));
                self.tell(RunEventKind::AgentTool { name: tool, subject, phase: ToolPhase::Started });
            }
            AgentEvent::Asking { .. } => {
                self.tell(RunEventKind::StepState(StepState::Waiting(WaitingFor::Permission)));
            }
            AgentEvent::ToolEnded { tool, is_error, .. } => {
                let phase = if is_error { ToolPhase::Failed } else { ToolPhase::Succeeded };
                self.tell(RunEventKind::AgentTool { name: tool, subject: String::new(), phase });
            }
            AgentEvent::TurnKept { turn, bytes, usage } => {
                // A journal that fails ends the run at its next record that must be on disk.
                let entry = Entry::Turn { turn, bytes, usage: Some(usage) };
                let _ = self.hands.journal.record(Some(&self.addr), Some(self.attempt), entry).await;
            }
            AgentEvent::Compacted { removed, before, after, without_model: _ } => {
                self.tell(RunEventKind::Note(format!(
                    "compacted: {removed} messages gave way to a summary (about {before} tokens, now {after})"
                )));
            }
            AgentEvent::Context { .. } => {}
            AgentEvent::Note(text) => self.tell(RunEventKind::Note(text)),
        }
    }
}

/// A hook is shown as a tool is while it runs; one about a call lets that call stand again at its end.
fn hook_line(news: HookNews) -> Option<(String, String, ToolPhase)> {
    match news.state {
        HookState::Started => Some((format!("{} hook", news.event), news.command, ToolPhase::Started)),
        HookState::Finished { .. } | HookState::Cancelled => {
            news.tool.map(|tool| (tool, String::new(), ToolPhase::Started))
        }
    }
}

impl EventSink for Sink {
    fn send(&self, event: AgentEvent) -> BoxFuture<'_, ()> {
        Box::pin(self.hear(event))
    }
}

/// Reads and hashes a file off the runtime's threads.
pub(super) async fn digest_of_file(path: PathBuf) -> io::Result<(u64, Digest)> {
    tasks::blocking("artifact", move || {
        let bytes = std::fs::read(&path)?;
        Ok((bytes.len() as u64, Digest::of(&bytes)))
    })
    .await
    .map_err(io::Error::other)?
}
