//! One tool call as a task: gate, journal, call, redaction.
//!
//! Owns the order of these. Must not know turns or models.

use super::core::{CallResult, PlannedCall};
use super::hooked::{Heard, Word};
use crate::children::{self, Background, BackgroundTool, SpawnRequest, Spawner};
use crate::effects::{CallNo, EffectLog, EffectLogFailed};
use crate::event::{AgentEvent, EventSink};
use crate::hooks::Scene;
use crate::outcome::Denial;
use crate::permission::{AskRequest, Decision, Permission, Places, Reply, decide};
use crate::sandboxes::wall_of;
use crate::services::AgentServices;
use claw_kernel::cancel::{CancelToken, DropGuard};
use claw_kernel::digest::Digest;
use claw_kernel::ids::AgentId;
use claw_kernel::tasks::panic_message;
use claw_providers::message::Image;
use claw_tools::error::ToolError;
use claw_tools::files::paths;
use claw_tools::output::ToolOutput;
use claw_tools::tool::{Effect, Tool, ToolContext};
use futures_util::FutureExt;
use serde_json::Value;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

/// Tools bound their own output; this bounds a tool that does not.
const MOST_RESULT: usize = 200_000;
/// Characters of a subject as shown.
const MOST_SUBJECT: usize = 200;

/// What all calls of one conversation share.
pub(crate) struct CallDesk {
    pub(crate) services: Arc<AgentServices>,
    pub(crate) id: AgentId,
    pub(crate) label: String,
    pub(crate) permission: Permission,
    /// What hooks are told of it.
    pub(crate) scene: Scene,
    /// The workspace is a folder of claw's own, lent to it.
    pub(crate) is_lent: bool,
    /// Files and folders outside the workspace that may be read.
    pub(crate) readable: Vec<PathBuf>,
    /// What decisions are about; looked up at the first: many an agent calls no tool.
    pub(crate) places: OnceLock<Places>,
    pub(crate) context: ToolContext,
    pub(crate) effects: Arc<dyn EffectLog>,
    pub(crate) spawner: Option<Arc<dyn Spawner>>,
    pub(crate) events: Arc<dyn EventSink>,
}

/// A call with what it would do, ready to run.
pub(crate) struct ReadyCall {
    pub(crate) no: CallNo,
    tool: Arc<dyn Tool>,
    input: Value,
    effect: Result<Effect, ToolError>,
    /// Cancelled when the call is over.
    over: CancelToken,
    /// Earlier calls of the batch that write the same file.
    after: Vec<CancelToken>,
    turn: Turn,
}

/// A call's place among those of the batch that start children: these are asked for in the order of the calls.
#[derive(Default)]
struct Turn {
    /// Cancelled when the one before it was asked for.
    before: Option<CancelToken>,
    /// Cancels the one that the next waits for, at the latest when this is dropped.
    _own: Option<DropGuard>,
}

/// A call's end.
pub(crate) struct CallReport {
    pub(crate) result: CallResult,
    pub(crate) denial: Option<Denial>,
    pub(crate) log_failed: Option<EffectLogFailed>,
    /// The tool was called.
    pub(crate) ran: bool,
}

impl CallReport {
    pub(crate) fn of(result: CallResult) -> Self {
        Self { result, denial: None, log_failed: None, ran: false }
    }
    pub(crate) fn cancelled() -> Self {
        Self::of(CallResult { is_cancelled: true, ..CallResult::error("cancelled") })
    }
}

/// Why a call does not run.
enum Stop {
    Denied(Denial),
    Cancelled,
}

impl CallDesk {
    /// Looks at what each call would do. Calls that write one file run in their order, all others at the same time.
    pub(crate) fn ready(&self, calls: Vec<PlannedCall>, cancel: &CancelToken) -> Vec<ReadyCall> {
        let context = ToolContext { cancel: cancel.clone(), ..self.context.clone() };
        let mut writers: HashMap<PathBuf, CancelToken> = HashMap::new();
        let mut before: Option<CancelToken> = None;
        let mut ready = Vec::with_capacity(calls.len());
        for PlannedCall { no, tool, input } in calls {
            let Some(tool) = self.services.registry.get(tool).cloned() else { continue };
            let effect = catch_unwind(AssertUnwindSafe(|| tool.effect(&context, &input)))
                .unwrap_or_else(|panic| Err(ToolError::Panicked(panic_message(panic.as_ref()))));
            let over = CancelToken::new();
            let writes = effect.as_ref().map(|effect| effect.writes.as_slice()).unwrap_or_default();
            let after = writes.iter().filter_map(|path| writers.insert(path.clone(), over.clone())).collect();
            let mut turn = Turn::default();
            if tool.name() == children::TOOL {
                let own = CancelToken::new();
                turn = Turn { before: before.replace(own.clone()), _own: Some(own.drop_guard()) };
            }
            ready.push(ReadyCall { no, tool, input, effect, over, after, turn });
        }
        ready
    }

    /// Runs one call to its end. A panic of the tool is a result like any other error.
    pub(crate) async fn run(self: Arc<Self>, call: ReadyCall, cancel: CancelToken) -> CallReport {
        let ReadyCall { no, tool, input, effect, over, after, turn } = call;
        // Whatever happens here, those that wait for this call go on.
        let _over = over.drop_guard();
        for earlier in after {
            tokio::select! { () = earlier.cancelled() => {} () = cancel.cancelled() => {} }
        }
        let name = tool.name();
        let subject = subject(&self.redacted(&named(&input, effect.as_ref().ok())));
        self.events.send(AgentEvent::ToolStarted { call: no, tool: name.into(), subject }).await;
        let report = self.between_hooks(no, &*tool, (input, turn), effect, &cancel).await;
        tracing::debug!(agent = %self.label, call = %no, tool = name, is_error = report.result.is_error, "call ended");
        let event = AgentEvent::ToolEnded {
            call: no,
            tool: name.into(),
            is_error: report.result.is_error,
            result: report.result.text.clone(),
        };
        self.events.send(event).await;
        report
    }

    /// The hooks before the call, the call, the hooks after it.
    async fn between_hooks(
        &self,
        no: CallNo,
        tool: &dyn Tool,
        (input, turn): (Value, Turn),
        effect: Result<Effect, ToolError>,
        cancel: &CancelToken,
    ) -> CallReport {
        let heard = match self.before(no, tool, (input, effect), cancel).await {
            Ok(heard) => heard,
            Err(report) => return *report,
        };
        let Heard { input, effect, word, said } = heard;
        let told = self.told_after(&input);
        let report = match effect {
            Err(error) => CallReport::of(CallResult::error(self.redacted(&error.to_string()))),
            Ok(effect) => self.with_effect(no, tool, (input, turn), (effect, word), cancel).await,
        };
        self.after(no, tool, (told, said), report, cancel).await
    }

    async fn with_effect(
        &self,
        no: CallNo,
        tool: &dyn Tool,
        (input, turn): (Value, Turn),
        (effect, word): (Effect, Word),
        cancel: &CancelToken,
    ) -> CallReport {
        match self.gate(no, tool, (&input, word), &effect, cancel).await {
            Ok(()) => {}
            Err(Stop::Cancelled) => return CallReport::cancelled(),
            Err(Stop::Denied(denial)) => {
                let result = CallResult::error(format!("denied: {}", denial.reason));
                return CallReport { denial: Some(denial), ..CallReport::of(result) };
            }
        }
        if cancel.is_cancelled() {
            return CallReport::cancelled();
        }
        if tool.name() == children::TOOL
            && let Some(spawner) = &self.spawner
        {
            let result = self.child(&**spawner, no, (&input, turn), cancel).await;
            return CallReport { ran: true, ..CallReport::of(result) };
        }
        if let (Some(tool), Some(team)) = (
            BackgroundTool::named(tool.name()),
            self.spawner.as_ref().and_then(|spawner| spawner.background()),
        ) {
            let result = self.of_team(tool, team, &input, cancel).await;
            return CallReport { ran: true, ..CallReport::of(result) };
        }
        let is_journaled = !effect.is_read_only();
        if is_journaled && let Err(failed) = self.effects.intent(no, tool.name()).await {
            let result = CallResult::error("not run: the journal could not be written");
            return CallReport { log_failed: Some(failed), ..CallReport::of(result) };
        }
        if !effect.writes.is_empty()
            && let Err(failed) = self.effects.before_write(no, &effect.writes).await
        {
            let result = CallResult::error("not run: the session could not be written");
            return CallReport { log_failed: Some(failed), ..CallReport::of(result) };
        }
        let result = self.call(tool, &effect, input, cancel).await;
        let mut report = CallReport { ran: true, ..CallReport::of(result) };
        if is_journaled {
            report.log_failed = self.effects.done(no, Digest::of(&report.result.text)).await.err();
        }
        report
    }

    /// Another agent's work: whoever schedules it tells how it ended.
    async fn child(
        &self,
        spawner: &dyn Spawner,
        call: CallNo,
        (input, turn): (&Value, Turn),
        cancel: &CancelToken,
    ) -> CallResult {
        let task = match children::task(input) {
            Ok(task) => task,
            Err(error) => return CallResult::error(self.redacted(&error.to_string())),
        };
        if let Some(before) = &turn.before {
            tokio::select! { () = before.cancelled() => {} () = cancel.cancelled() => {} }
        }
        let said = spawner.spawn(SpawnRequest { call, task });
        drop(turn);
        tokio::select! {
            biased;
            said = said => CallResult {
                text: bounded(self.redacted(&said.text)),
                is_error: said.is_error,
                ..CallResult::default()
            },
            () = cancel.cancelled() => CallReport::cancelled().result,
        }
    }

    /// A word about agents in the background.
    async fn of_team(
        &self,
        tool: BackgroundTool,
        team: &dyn Background,
        input: &Value,
        cancel: &CancelToken,
    ) -> CallResult {
        tokio::select! {
            biased;
            () = cancel.cancelled() => CallReport::cancelled().result,
            said = tool.carry_out(team, input) => CallResult {
                text: bounded(self.redacted(&said.text)),
                is_error: said.is_error,
                ..CallResult::default()
            },
        }
    }

    fn places(&self) -> &Places {
        self.places.get_or_init(|| {
            let policy = &self.context.sandbox;
            let readable = self.readable.iter().map(PathBuf::as_path).chain([self.context.spill.as_path()]);
            Places {
                workspace: policy.workspace().to_owned(),
                is_lent: self.is_lent,
                writable: self
                    .services
                    .sandboxes
                    .all_writable()
                    .iter()
                    .map(|path| paths::resolve(path))
                    .collect(),
                readable: readable.map(paths::resolve).collect(),
                protected: self.services.protected.clone(),
                wall: wall_of(policy),
            }
        })
    }

    async fn gate(
        &self,
        no: CallNo,
        tool: &dyn Tool,
        (input, word): (&Value, Word),
        effect: &Effect,
        cancel: &CancelToken,
    ) -> Result<(), Stop> {
        let (asked, tool) = (tool, tool.name());
        let denied = |reason: String| {
            Stop::Denied(Denial { tool: tool.to_owned(), subject: self.redacted(&what(effect)), reason })
        };
        let decision = word.heeded(self.permission, effect, decide(self.permission, effect, self.places()));
        let (why, remedy) = match decision {
            Decision::Allow => return Ok(()),
            Decision::Deny { reason } => return Err(denied(self.redacted(&reason))),
            Decision::Ask { why, remedy } => (self.redacted(&why), remedy),
        };
        match self.before_question(no, asked, input, &why, cancel).await {
            Ok(true) => return Ok(()),
            Ok(false) => {}
            Err(reason) => return Err(denied(reason)),
        }
        self.events.send(AgentEvent::Asking { call: no, tool: tool.to_owned() }).await;
        let question = AskRequest {
            agent: self.id.clone(),
            label: self.label.clone(),
            tool: tool.to_owned(),
            subject: self.redacted(&what(effect)),
            why: why.clone(),
        };
        let reply = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Stop::Cancelled),
            reply = self.services.asker.ask(question) => reply,
            reply = self.calling_for_attention(tool, cancel) => reply,
        };
        match reply {
            Reply::Allow => Ok(()),
            Reply::Deny { message: None } => Err(denied("the user said no".to_owned())),
            Reply::Deny { message: Some(words) } => {
                Err(denied(format!("the user said no: {}", self.redacted(&words))))
            }
            Reply::Nobody => Err(denied(format!("{why}; nobody is there to ask; {remedy} would allow it"))),
        }
    }

    async fn call(&self, tool: &dyn Tool, judged: &Effect, input: Value, cancel: &CancelToken) -> CallResult {
        let context = ToolContext { cancel: cancel.clone(), ..self.context.clone() };
        let called = AssertUnwindSafe(tool.call(&context, judged, input)).catch_unwind().await;
        let called = called.unwrap_or_else(|panic| Err(ToolError::Panicked(panic_message(panic.as_ref()))));
        let mut result = match called {
            Ok(ToolOutput { text, is_error, images, .. }) => CallResult {
                text: bounded(self.redacted(&text)),
                images: images.into_iter().map(|(media_type, data)| Image { media_type, data }).collect(),
                is_error,
                is_cancelled: false,
            },
            Err(error) => CallResult::error(bounded(self.redacted(&error.to_string()))),
        };
        result.is_cancelled = result.is_error && cancel.is_cancelled();
        result
    }

    pub(super) fn redacted(&self, text: &str) -> String {
        self.services.redactor.apply(text).into_owned()
    }
}

fn bounded(mut text: String) -> String {
    if text.len() > MOST_RESULT {
        let cut = text.len() - text.floor_char_boundary(MOST_RESULT);
        text.truncate(text.len() - cut);
        text.push_str(&format!("\n[{cut} bytes cut]"));
    }
    text
}

/// The command or the paths of a call.
pub(super) fn what(effect: &Effect) -> String {
    if let Some(command) = &effect.executes {
        return command.clone();
    }
    let paths = if effect.writes.is_empty() { &effect.reads } else { &effect.writes };
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    paths.join(", ")
}

/// The word of a call that says most.
fn named(input: &Value, effect: Option<&Effect>) -> String {
    let keys = [
        "command",
        "pattern",
        "path",
        "file_path",
        "filePath",
        "notebook_path",
        "url",
        "query",
        "description",
    ];
    let named = keys.iter().find_map(|key| input.get(*key).and_then(Value::as_str)).map(str::to_owned);
    named.or_else(|| effect.map(what)).unwrap_or_default()
}

/// One line for people, of a text without secrets: half a secret would not be known as one.
fn subject(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() > MOST_SUBJECT {
        return line.chars().take(MOST_SUBJECT - 1).chain(['…']).collect();
    }
    line.to_owned()
}
