//! One tool call as a task: gate, journal, call, redaction.
//!
//! Owns the order of these. Must not know turns or models.

use super::changed::changed_lines;
use super::core::{CallResult, PlannedCall};
use super::hooked::{Answered, Heard};
use super::withdrawn::Withdrawn;
use crate::children::{self, Background, BackgroundTool, SpawnRequest, Spawner};
use crate::effects::{CallNo, EffectLog, EffectLogFailed};
use crate::event::{AgentEvent, EventSink};
use crate::hooks::Scene;
use crate::outcome::Denial;
use crate::permission::{
    AskRequest, Call, Decision, HookVerdict, Permission, Places, Question, Reply, decide,
};
use crate::sandboxes::wall_of;
use crate::services::AgentServices;
use crate::transcript::{Record, Verdict};
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
    /// What was decided about it, where that is worth a line of the transcript.
    pub(crate) decided: Option<Record>,
    pub(crate) log_failed: Option<EffectLogFailed>,
    /// The tool was called.
    pub(crate) ran: bool,
}

impl CallReport {
    pub(crate) fn of(result: CallResult) -> Self {
        Self { result, denial: None, decided: None, log_failed: None, ran: false }
    }
    pub(crate) fn cancelled() -> Self {
        Self::of(CallResult { is_cancelled: true, ..CallResult::error("cancelled") })
    }
}

/// Why a call does not run.
enum Stop {
    Denied {
        denial: Denial,
        /// The rule, the hook or the person; `None`: the mode.
        by: Option<String>,
    },
    Cancelled,
}

/// Who let a call pass that the mode alone would not have; `None`: the mode did.
type Passed = Option<(Verdict, String)>;

impl CallDesk {
    /// Looks at what each call would do. Calls that write one file run in their order, all others at the same time.
    pub(crate) fn ready(&self, calls: Vec<PlannedCall>, cancel: &CancelToken) -> Vec<ReadyCall> {
        let (context, registry) = (self.lent(cancel), self.services.registry.current());
        let mut writers: HashMap<PathBuf, CancelToken> = HashMap::new();
        let mut before: Option<CancelToken> = None;
        let mut ready = Vec::with_capacity(calls.len());
        for PlannedCall { no, tool, input } in calls {
            let tool = registry.get(tool).cloned().unwrap_or_else(|| Arc::new(Withdrawn(tool)));
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
            patch: report.result.patch.clone(),
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
        let Heard { input, effect, hook, said } = heard;
        let told = self.told_after(&input);
        let report = match effect {
            Err(error) => CallReport::of(CallResult::error(self.redacted(&error.to_string()))),
            Ok(effect) => self.with_effect(no, tool, (input, turn), (effect, hook), cancel).await,
        };
        self.after(no, tool, (told, said), report, cancel).await
    }

    async fn with_effect(
        &self,
        no: CallNo,
        tool: &dyn Tool,
        (input, turn): (Value, Turn),
        (effect, hook): (Effect, HookVerdict),
        cancel: &CancelToken,
    ) -> CallReport {
        let record = |verdict, by: Option<String>| {
            let (call, tool) = (no.to_string(), tool.name().to_owned());
            Some(Record::Permission { call, tool, verdict, by })
        };
        let decided = match self.gate(no, tool, (&input, &effect), hook, cancel).await {
            Ok(passed) => passed.and_then(|(verdict, by)| record(verdict, Some(by))),
            Err(Stop::Cancelled) => return CallReport::cancelled(),
            Err(Stop::Denied { denial, by }) => {
                let result = CallResult::error(format!("denied: {}", denial.reason));
                let decided = record(Verdict::Denied, by);
                return CallReport { denial: Some(denial), decided, ..CallReport::of(result) };
            }
        };
        let report = self.with_leave(no, tool, (input, turn), effect, cancel).await;
        CallReport { decided, ..report }
    }

    /// It may run.
    async fn with_leave(
        &self,
        no: CallNo,
        tool: &dyn Tool,
        (input, turn): (Value, Turn),
        effect: Effect,
        cancel: &CancelToken,
    ) -> CallReport {
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

    /// What a call is lent. While a plan is to be accepted, commands write nothing.
    fn lent(&self, cancel: &CancelToken) -> ToolContext {
        let mut context = ToolContext { cancel: cancel.clone(), ..self.context.clone() };
        if context.state.is_planning() {
            let (services, workspace) = (&self.services, self.context.sandbox.workspace());
            let reach = self.permission_now().reach;
            context.sandbox = services.sandboxes.policy(reach, workspace, &services.protected);
        }
        context
    }

    /// While a plan is to be accepted, nothing but reading.
    fn permission_now(&self) -> Permission {
        if self.context.state.is_planning() {
            self.permission.intersect(Permission::READ_ONLY)
        } else {
            self.permission
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
        (input, effect): (&Value, &Effect),
        hook: HookVerdict,
        cancel: &CancelToken,
    ) -> Result<Passed, Stop> {
        let folder = self.context.folder.current();
        let call = Call {
            tool: tool.name(),
            aliases: tool.aliases(),
            input,
            effect,
            workspace: self.context.sandbox.workspace(),
            folder: &folder,
        };
        match decide(self.permission_now(), &call, self.places(), &self.services.rules, &hook) {
            Decision::Allow { by } => Ok(by.map(|by| (Verdict::Allowed, by))),
            Decision::Deny { reason, by } => Err(self.denied(tool, (input, effect), &reason, by)),
            Decision::Ask(question) => self.ask(no, tool, (input, effect), question, cancel).await,
        }
    }

    /// A person's word.
    async fn ask(
        &self,
        no: CallNo,
        tool: &dyn Tool,
        (input, effect): (&Value, &Effect),
        question: Question,
        cancel: &CancelToken,
    ) -> Result<Passed, Stop> {
        let why = self.redacted(&question.why);
        match self.before_question(no, tool, input, &why, cancel).await {
            Answered::Yes if question.is_of_mode => {
                return Ok(Some((Verdict::Allowed, "a PermissionRequest hook".to_owned())));
            }
            Answered::Yes | Answered::Not => {}
            Answered::No(reason) => {
                let by = Some("a PermissionRequest hook".to_owned());
                return Err(self.denied(tool, (input, effect), &reason, by));
            }
        }
        self.events.send(AgentEvent::Asking { call: no, tool: tool.name().to_owned() }).await;
        let remedy = question.remedy.clone();
        let request = self.request(tool, (input, effect), question);
        let reply = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Stop::Cancelled),
            reply = self.services.asker.ask(request) => reply,
            reply = self.calling_for_attention(tool.name(), cancel) => reply,
        };
        let denied = |reason: &str, by: Option<&str>| {
            Err(self.denied(tool, (input, effect), reason, by.map(str::to_owned)))
        };
        match reply {
            Reply::Allow => Ok(Some((Verdict::Answered, "the user".to_owned()))),
            Reply::Deny { message: None } => denied(&format!("the user said no ({why})"), Some("the user")),
            Reply::Deny { message: Some(words) } => {
                denied(&format!("the user said no: {words} ({why})"), Some("the user"))
            }
            Reply::Nobody => denied(&format!("{why}; nobody is there to ask; {remedy} would allow it"), None),
        }
    }

    fn request(&self, tool: &dyn Tool, (input, effect): (&Value, &Effect), question: Question) -> AskRequest {
        AskRequest {
            agent: self.id.clone(),
            label: self.label.clone(),
            tool: tool.name().to_owned(),
            subject: self.redacted(&what(input, effect)),
            parts: question.parts.iter().map(|part| self.redacted(part)).collect(),
            why: self.redacted(&question.why),
            // A rule that holds a secret is not written anywhere.
            rule: question.rule.filter(|rule| self.redacted(rule) == *rule),
        }
    }

    fn denied(
        &self,
        tool: &dyn Tool,
        (input, effect): (&Value, &Effect),
        reason: &str,
        by: Option<String>,
    ) -> Stop {
        let denial = Denial {
            tool: tool.name().to_owned(),
            subject: self.redacted(&what(input, effect)),
            reason: self.redacted(reason),
        };
        Stop::Denied { denial, by }
    }

    async fn call(&self, tool: &dyn Tool, judged: &Effect, input: Value, cancel: &CancelToken) -> CallResult {
        let context = self.lent(cancel);
        let called = AssertUnwindSafe(tool.call(&context, judged, input)).catch_unwind().await;
        let called = called.unwrap_or_else(|panic| Err(ToolError::Panicked(panic_message(panic.as_ref()))));
        let mut result = match called {
            Ok(ToolOutput { text, is_error, images, data, .. }) => CallResult {
                text: bounded(self.redacted(&text)),
                images: images.into_iter().map(|(media_type, data)| Image { media_type, data }).collect(),
                is_error,
                is_cancelled: false,
                patch: changed_lines(&data, |line| self.redacted(line)),
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

/// The command or the resolved paths of a call, else what its input says.
pub(super) fn what(input: &Value, effect: &Effect) -> String {
    if let Some(command) = &effect.executes {
        return command.clone();
    }
    if let Some(name) = &effect.changes {
        return name.clone();
    }
    if let (Some(url), true) = (&effect.url, effect.reads.is_empty()) {
        return url.to_string();
    }
    let paths = if effect.writes.is_empty() { &effect.reads } else { &effect.writes };
    let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
    if paths.is_empty() { word_of(input).unwrap_or_default() } else { paths.join(", ") }
}

/// The word of a call that says most.
fn named(input: &Value, effect: Option<&Effect>) -> String {
    word_of(input).or_else(|| effect.map(|effect| what(input, effect))).unwrap_or_default()
}

fn word_of(input: &Value) -> Option<String> {
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
    keys.iter().find_map(|key| input.get(*key).and_then(Value::as_str)).map(str::to_owned)
}

/// One line for people, of a text without secrets: half a secret would not be known as one.
fn subject(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() > MOST_SUBJECT {
        return line.chars().take(MOST_SUBJECT - 1).chain(['…']).collect();
    }
    line.to_owned()
}
