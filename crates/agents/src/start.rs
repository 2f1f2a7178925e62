//! The one door through which an agent starts: from a request to a running conversation.

use crate::compaction::Fullness;
use crate::conversation::{
    AnswerRule, Beginning, CallDesk, Compacting, Conversation, History, Offer, Orders, Refused, RequestShape,
    Rules, Running, RunningAgent, Shell, Spent, ToUser, at_the_beginning, at_the_end, failed, heeds_stop,
    recall, run, without_work,
};
use crate::event::{AgentEvent, EventSink};
use crate::hooks::Scene;
use crate::outcome::{AgentEnd, AgentOutcome, Denial, FailureClass};
use crate::request::AgentRequest;
use crate::roles::LEAD;
use crate::services::{AgentServices, PromptKey};
use crate::system_prompt::{Parts, build};
use crate::transcript::{End, Loaded, Opened, Record, Transcript};
use claw_kernel::cancel::CancelToken;
use claw_kernel::{clock, tasks};
use claw_providers::message::Message;
use claw_providers::request::ToolSpec;
use claw_tools::builtin::BadSchema;
use claw_tools::folder::WorkingFolder;
use claw_tools::read_state::ReadState;
use claw_tools::registry::Registry;
use claw_tools::sandbox::SandboxPolicy;
use claw_tools::state::ConversationState;
use claw_tools::tool::{Hidden, ToolContext};
use serde_json::Value;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Bytes of a fault that the model is told.
const MOST_FAULT: usize = 8_000;

/// Starts an agent. It ends by itself, or within 2 s of `cancel`; what it ran ends with it.
pub fn start(
    services: Arc<AgentServices>,
    request: AgentRequest,
    events: Arc<dyn EventSink>,
    cancel: CancelToken,
) -> RunningAgent {
    let (orders, steering) = Orders::new(cancel.child_token());
    let own = orders.clone();
    let task = tasks::spawn("agent", async move {
        if own.cancel.is_cancelled() {
            return without_work(AgentEnd::Cancelled);
        }
        let scene = scene(&request);
        let (hooks, watching) = (services.hooks.clone(), events.clone());
        let outcome = match Box::pin(prepare(services, (request, &scene), events, &own.cancel)).await {
            Ok(ready) => run(ready.shell, ready.beginning, &own, steering).await.outcome,
            Err(outcome) => *outcome,
        };
        at_the_end(&hooks, &scene, &*watching, own.cancel.is_cancelled()).await;
        outcome
    });
    RunningAgent { task, orders }
}

struct Ready {
    shell: Box<Shell>,
    beginning: Beginning,
}

/// Everything before the first step. Errors: the outcome of an agent that never asked.
async fn prepare(
    services: Arc<AgentServices>,
    (mut request, scene): (AgentRequest, &Scene),
    events: Arc<dyn EventSink>,
    cancel: &CancelToken,
) -> Result<Ready, Box<AgentOutcome>> {
    let give_up = |class, message: String| Box::new(without_work(failed(class, message)));
    let growth = narrow(&mut request);
    services.mcp.settle().await;
    let answer = answer_rule(&services, &request)
        .map_err(|error| give_up(FailureClass::Schema, format!("the output schema is {error}")))?;
    let policy = services.sandboxes.policy_for(
        &request.definition,
        request.permission.reach,
        &request.workspace,
        &services.protected,
    );
    let context = context(&services, &request, policy, &events);
    let judge = ReadsOnly { services: services.clone(), context: context.clone() };
    let Opened { mut transcript, mut loaded } = open(&services, &request, judge, &*events).await?;
    hear_hooks(&services, (&mut request, scene), &loaded, &*events, cancel).await?;
    let history = begin(&services, &request, &mut loaded, &mut transcript)
        .await
        .map_err(|error| give_up(FailureClass::Tool, error.to_string()))?;
    let past = Past {
        history,
        transcript,
        turns: loaded.turns,
        turns_before: 0,
        fullness: Fullness::default(),
        has_owner: false,
    };
    let mut shell = assemble(services, (request, scene), (events, context), answer, past);
    shell.spent.denials.extend(growth);
    Ok(Ready { shell, beginning: Beginning { last_stop: loaded.last_stop, open: loaded.open } })
}

/// What a conversation goes on from.
pub(crate) struct Past {
    pub(crate) history: History,
    pub(crate) transcript: Transcript,
    pub(crate) turns: u32,
    /// Those that do not count against the limit.
    pub(crate) turns_before: u32,
    pub(crate) fullness: Fullness,
    /// Its owner lives on: what is not heard goes back to it, what runs in the background stays.
    pub(crate) has_owner: bool,
}

/// Puts a conversation together, ready to run.
pub(crate) fn assemble(
    services: Arc<AgentServices>,
    (request, scene): (AgentRequest, &Scene),
    (events, context): (Arc<dyn EventSink>, ToolContext),
    answer: AnswerRule,
    past: Past,
) -> Box<Shell> {
    let schema = match &answer {
        AnswerRule::Call(schema) => Some(schema.clone()),
        AnswerRule::Text | AnswerRule::Document(_) => None,
    };
    let mut offer = Offer::of(&request, schema);
    // As at the very first request, so that what a service keeps of it holds; what was loaded since comes at the next.
    let toolbox = offer.toolbox(&services, &context.state);
    recall(&context.state, &services.registry.current(), past.history.messages().iter().map(Arc::as_ref));
    let shape = RequestShape {
        models: models(&services, &request),
        system: system(&services, &request, toolbox.specs()),
        tools: toolbox.specs().clone(),
        effort: request.effort,
        answer: answer.clone(),
        idle: request.idle_timeout,
        purse: request.purse.clone(),
    };
    let mut fullness = past.fullness;
    // Tokens of what every request holds, estimated.
    fullness.fixed = (shape.system.len() + toolbox.bytes()) as u64 / 4;
    let heeds_stop = heeds_stop(&services.hooks, scene);
    let rules = Rules {
        max_turns: request.max_turns,
        toolbox,
        answer,
        heeds_stop,
        turns_before: past.turns_before,
        gives_back: past.has_owner,
    };
    let compacting = Compacting::new(services.compaction, fullness);
    let desk = Arc::new(CallDesk {
        is_lent: services.sandboxes.loan(&request.workspace).is_some(),
        readable: request.readable,
        places: OnceLock::new(),
        id: request.id,
        label: request.label,
        permission: request.permission,
        scene: scene.clone(),
        context,
        effects: request.effects,
        spawner: request.spawner,
        events,
        services,
    });
    Box::new(Shell {
        core: Conversation::new(rules, past.history, past.turns),
        cancel: desk.context.cancel.clone(),
        desk,
        shape,
        offer,
        transcript: past.transcript,
        running: Running::default(),
        spent: Spent::default(),
        compacting,
        leaves_work: past.has_owner,
    })
}

/// At most what its definition has. An agent that wants to reach further than whoever starts it does not, and that is
/// told.
fn narrow(request: &mut AgentRequest) -> Option<Denial> {
    let wanted = request.definition.permission?;
    let most = request.permission;
    request.permission = most.intersect(wanted);
    (wanted.reach > most.reach).then(|| Denial {
        tool: crate::children::TOOL.to_owned(),
        subject: format!("{} with the mode {wanted}", request.definition.name),
        reason: format!("an agent has at most what started it has; mode in force: {most}"),
    })
}

/// What hooks are told of an agent.
pub(crate) fn scene(request: &AgentRequest) -> Scene {
    let permission = match request.definition.permission {
        Some(most) => request.permission.intersect(most),
        None => request.permission,
    };
    Scene {
        session: session(request),
        transcript: request.transcript.clone(),
        cwd: request.workspace.clone(),
        permission_mode: permission.to_string(),
        agent_id: request.id.to_string(),
        agent_type: request.definition.name.clone(),
    }
}

/// A session's transcript has its name; an agent's is called `transcript`.
fn session(request: &AgentRequest) -> String {
    let name = request.transcript.file_stem().and_then(|name| name.to_str());
    name.filter(|name| *name != "transcript").map_or_else(|| request.id.to_string(), str::to_owned)
}

/// Hooks at the beginning see the prompt, may add to it, and may keep it from the model.
async fn hear_hooks(
    services: &AgentServices,
    (request, scene): (&mut AgentRequest, &Scene),
    loaded: &Loaded,
    events: &dyn EventSink,
    cancel: &CancelToken,
) -> Result<(), Box<AgentOutcome>> {
    let is_new = loaded.history.is_empty();
    let prompt = is_new.then_some(request.prompt.as_str());
    let said = at_the_beginning(&services.hooks, scene, prompt, events, cancel).await;
    let said = said.map_err(|refused| {
        Box::new(without_work(match refused {
            Refused::Denied(words) => failed(FailureClass::Denied, words),
            Refused::Cancelled => AgentEnd::Cancelled,
        }))
    })?;
    if said.is_empty() {
        return Ok(());
    }
    let said = format!("Hook feedback:\n{}", said.join("\n"));
    if is_new {
        request.prompt = format!("{}\n\n{said}", request.prompt);
    } else {
        // The prompt is in the transcript as it was.
        let more = request.system_append.take();
        request.system_append = Some(more.map_or_else(|| said.clone(), |more| format!("{more}\n\n{said}")));
    }
    Ok(())
}

/// What the transcript holds; every repair is said. An attempt that completed has its outcome there, unless that was
/// refused.
async fn open(
    services: &AgentServices,
    request: &AgentRequest,
    judge: ReadsOnly,
    events: &dyn EventSink,
) -> Result<Opened, Box<AgentOutcome>> {
    let opened =
        Transcript::open(&request.transcript, &services.logs, move |name, input| judge.of(name, input));
    let opened = opened
        .await
        .map_err(|error| Box::new(without_work(failed(FailureClass::Tool, error.to_string()))))?;
    for repair in &opened.loaded.repairs {
        events.send(AgentEvent::Note(format!("{}: {repair}", request.transcript.display()))).await;
    }
    match &opened.loaded.end {
        Some(End::Completed { text, output }) if request.fault.is_none() => {
            let end = AgentEnd::Completed { text: text.clone(), output: output.clone() };
            Err(Box::new(AgentOutcome { turns: opened.loaded.turns, ..without_work(end) }))
        }
        Some(End::Completed { .. } | End::Failed { .. } | End::Cancelled) | None => Ok(opened),
    }
}

fn models(services: &AgentServices, request: &AgentRequest) -> Arc<[String]> {
    let own = if request.models.is_empty() { &request.definition.models } else { &request.models };
    if own.is_empty() { [services.model.default_model()].into() } else { own.clone().into() }
}

/// How the answer is given: by a tool, or as a document where the service holds the model to it and no tool is needed.
fn answer_rule(services: &AgentServices, request: &AgentRequest) -> Result<AnswerRule, BadSchema> {
    let models = models(services, request);
    let Some(schema) = &request.output_schema else { return Ok(AnswerRule::Text) };
    let compiled = services.shared.schema(schema)?;
    let needs_tools = !tools_of(&services.registry.current(), request).is_empty();
    if !needs_tools && services.model.traits_of(&models[0]).answer_schema {
        return Ok(AnswerRule::Document(compiled));
    }
    Ok(AnswerRule::Call(compiled))
}

pub(crate) fn context(
    services: &AgentServices,
    request: &AgentRequest,
    sandbox: Arc<SandboxPolicy>,
    events: &Arc<dyn EventSink>,
) -> ToolContext {
    ToolContext {
        folder: Arc::new(WorkingFolder::at_resolved(sandbox.workspace().to_owned())),
        agent: request.label.as_str().into(),
        reads: Arc::new(ReadState::new()),
        // Its own: a cancel reaches the calls through the conversation, which tells them why.
        cancel: CancelToken::new(),
        hidden: hidden(services, sandbox.workspace()),
        sandbox,
        spill: Arc::new(request.spill.clone()),
        redactor: services.redactor.clone(),
        env: Arc::clone(services.shared.env()),
        state: Arc::default(),
        ports: services.ports.clone(),
        messenger: Some(Arc::new(ToUser(events.clone()))),
    }
}

/// What rules let no tool read.
pub(crate) fn hidden(services: &AgentServices, workspace: &Path) -> Hidden {
    let denied = services.rules.denied_reads(workspace);
    if denied.is_empty() {
        return Hidden::default();
    }
    Hidden::by(move |path| denied.iter().any(|own| own.holds(path) || own.is_same_file(path)))
}

/// Whether a call of an interrupted turn can be made again without harm.
struct ReadsOnly {
    services: Arc<AgentServices>,
    context: ToolContext,
}

impl ReadsOnly {
    fn of(&self, name: &str, input: &Value) -> bool {
        let registry = self.services.registry.current();
        let tool = registry.get(name);
        tool.and_then(|tool| tool.effect(&self.context, input).ok())
            .is_some_and(|effect| effect.is_read_only())
    }
}

/// Canonical names of the tools that a conversation may call; whoever gives it a door for children has decided on
/// that tool; only the request's own `deny_tools` takes it away again.
pub fn tools_of(registry: &Registry, request: &AgentRequest) -> Vec<&'static str> {
    Offer::of(request, None).names(registry)
}

async fn begin(
    services: &AgentServices,
    request: &AgentRequest,
    loaded: &mut Loaded,
    transcript: &mut Transcript,
) -> Result<History, claw_kernel::durable::LogFailed> {
    let mut lines = Vec::new();
    let mut messages = std::mem::take(&mut loaded.history);
    if messages.is_empty() {
        let text = services.redactor.apply(&request.prompt).into_owned();
        messages.push(Message::user(text.clone()));
        lines.extend(Record::Prompt { text }.line());
    }
    lines.extend(Record::Meta { agent: request.id.clone(), label: request.label.clone() }.line());
    let mut history = History::from_repaired(messages);
    if let (Some(End::Completed { .. }), Some(fault)) = (&loaded.end, &request.fault) {
        let message = Message::user(refused(&services.redactor.apply(fault)));
        lines.extend(Record::Message { turn: loaded.turns, message: message.clone(), stop: None }.line());
        history.push(message);
        loaded.last_stop = None;
    }
    transcript.append_lines(lines).await?;
    Ok(history)
}

/// What the model is told of an answer that nobody could take.
fn refused(fault: &str) -> String {
    let cut = fault.floor_char_boundary(MOST_FAULT.min(fault.len()));
    let more = if cut < fault.len() { " […]" } else { "" };
    format!("The answer was refused: {}{more}\nPut it right and give the whole answer again.", &fault[..cut])
}

/// The system prompt that a conversation would get.
pub(crate) fn prompt_of(services: &AgentServices, request: &AgentRequest, date: Option<&str>) -> Arc<str> {
    let toolbox = Offer::of(request, None).toolbox(services, &ConversationState::default());
    system_on(services, request, toolbox.specs(), date.unwrap_or(&today()))
}

fn today() -> String {
    let mut day = clock::now().to_string();
    day.truncate("2026-01-31".len());
    day
}

fn system(services: &AgentServices, request: &AgentRequest, tools: &Arc<[ToolSpec]>) -> Arc<str> {
    system_on(services, request, tools, &today())
}

fn system_on(
    services: &AgentServices,
    request: &AgentRequest,
    tools: &Arc<[ToolSpec]>,
    day: &str,
) -> Arc<str> {
    let day = day.to_owned();
    let key = PromptKey {
        definition: request.definition.clone(),
        tools: tools.clone(),
        folder: request.workspace.clone(),
        day,
        branch: if request.definition.name == LEAD { branch(&request.workspace) } else { None },
        permission: request.permission,
        append: request.system_append.clone(),
    };
    services.shared.prompt(key, |key| prompt(services, key))
}

fn prompt(services: &AgentServices, key: &PromptKey) -> String {
    let tools: Vec<&str> = key.tools.iter().map(|spec| spec.name.as_str()).collect();
    let text = build(&Parts {
        definition: &key.definition,
        folder: &key.folder,
        date: &key.day,
        branch: key.branch.as_deref(),
        permission: key.permission,
        tools: &tools,
        memory: &services.memory,
        append: key.append.as_deref(),
    });
    services.redactor.apply(&text).into_owned()
}

/// Read from one small file; no process is started for it.
fn branch(workspace: &Path) -> Option<String> {
    let head = std::fs::read_to_string(workspace.join(".git/HEAD")).ok()?;
    Some(head.trim().strip_prefix("ref: refs/heads/")?.to_owned())
}
