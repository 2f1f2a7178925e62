//! A scripted model, tools that tell what they did, and a desk that holds them together.

use crate::conversation::RunningAgent;
use crate::effects::{CallNo, EffectLog, EffectLogFailed};
use crate::event::{AgentEvent, EventSink};
use crate::model::{Model, ModelTraits};
use crate::outcome::AgentOutcome;
use crate::permission::{AskRequest, Asker, NobodyToAsk, Permission, Reply as Said2};
use crate::request::AgentRequest;
use crate::roles::lead;
use crate::sandboxes::Sandboxes;
use crate::services::AgentServices;
use claw_kernel::cancel::CancelToken;
use claw_kernel::digest::Digest;
use claw_kernel::durable::LogWriter;
use claw_kernel::ids::AgentId;
use claw_kernel::redact::Redactor;
use claw_providers::error::{ErrorClass, ProviderError, ProviderErrorKind};
use claw_providers::event::{Answer, RequestEvent, StopReason, StreamEvent, WaitReason};
use claw_providers::message::Block;
use claw_providers::request::Request;
use claw_providers::usage::Usage;
use claw_tools::error::ToolError;
use claw_tools::output::ToolOutput;
use claw_tools::registry::Registry;
use claw_tools::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;

/// What had come before a reply hangs.
#[derive(Clone)]
pub(crate) enum Said {
    Nothing,
    Text(String),
}

#[derive(Clone)]
pub(crate) enum Reply {
    Answer(Vec<Block>, StopReason),
    Stream(Vec<StreamEvent>, String),
    Hang(Said),
    WaitThen(Duration, String),
    WithdrawnThen(String, String),
    Fail(ErrorClass, String),
    Panic,
}

pub(crate) fn text(text: &str) -> Block {
    Block::Text { text: text.into() }
}

pub(crate) fn say(said: &str) -> Reply {
    Reply::Answer(vec![text(said)], StopReason::EndTurn)
}

pub(crate) fn call(id: &str, name: &str, input: Value) -> Block {
    Block::ToolUse { id: id.into(), name: name.into(), input }
}

pub(crate) fn calls<const N: usize>(calls: [(&str, Value); N]) -> Reply {
    let blocks = calls.into_iter().map(|(name, input)| call("", name, input)).collect();
    Reply::Answer(blocks, StopReason::ToolUse)
}

/// Answers from a script; an empty script is a panic, which the test sees as an outcome.
pub(crate) struct FakeModel {
    script: Mutex<VecDeque<Reply>>,
    always: Mutex<Option<(Reply, Reply)>>,
    requests: Mutex<Vec<Request>>,
    asked: watch::Sender<usize>,
    holds_to_schema: Mutex<bool>,
}

impl FakeModel {
    fn new(script: impl IntoIterator<Item = Reply>) -> Self {
        Self {
            script: Mutex::new(script.into_iter().collect()),
            always: Mutex::default(),
            requests: Mutex::default(),
            asked: watch::Sender::new(0),
            holds_to_schema: Mutex::default(),
        }
    }
    pub(crate) fn then(&self, more: impl IntoIterator<Item = Reply>) {
        self.script.lock().unwrap().extend(more);
    }
    /// The first answer of every conversation, and the second.
    pub(crate) fn always(&self, first: Reply, second: Reply) {
        *self.always.lock().unwrap() = Some((first, second));
    }
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
    pub(crate) fn hold_to_schema(&self) {
        *self.holds_to_schema.lock().unwrap() = true;
    }
    pub(crate) async fn asked(&self, times: usize) {
        self.asked.subscribe().wait_for(|asked| *asked >= times).await.unwrap();
    }
    fn next(&self, request: &Request) -> Reply {
        match &*self.always.lock().unwrap() {
            Some((first, _)) if request.messages.len() == 1 => first.clone(),
            Some((_, second)) => second.clone(),
            None => self.script.lock().unwrap().pop_front().expect("the script is at its end"),
        }
    }
}

fn answer(blocks: Vec<Block>, stop: StopReason) -> Answer {
    let usage = Usage { input: 1, ..Usage::NOTHING };
    Answer {
        blocks,
        stop,
        cut_calls: Vec::new(),
        usage,
        provider: "p".into(),
        model: "m".into(),
        attempts: 1,
    }
}

fn failed(class: ErrorClass, partial: &str) -> ProviderError {
    let kind = match class {
        ErrorClass::Cancelled => ProviderErrorKind::Cancelled,
        _ => ProviderErrorKind::Broken { provider: "p".into(), message: "cut".into() },
    };
    let partial = if partial.is_empty() { Vec::new() } else { vec![text(partial)] };
    ProviderError { kind, class, retry_at: None, usage: Usage::NOTHING, partial }
}

fn delta(text: &str) -> RequestEvent {
    RequestEvent::Stream(StreamEvent::TextDelta { index: 0, text: text.into() })
}

async fn reply(
    reply: Reply,
    events: &mpsc::Sender<RequestEvent>,
    cancel: &CancelToken,
) -> Result<Answer, ProviderError> {
    let done = |said: String| answer(vec![text(&said)], StopReason::EndTurn);
    match reply {
        Reply::Answer(blocks, stop) => Ok(answer(blocks, stop)),
        Reply::Stream(stream, said) => {
            for event in stream {
                events.send(RequestEvent::Stream(event)).await.unwrap();
            }
            Ok(done(said))
        }
        Reply::Hang(said) => {
            if let Said::Text(said) = said {
                events.send(delta(&said)).await.unwrap();
            }
            cancel.cancelled().await;
            Err(failed(ErrorClass::Cancelled, ""))
        }
        Reply::WaitThen(delay, said) => {
            let event =
                RequestEvent::Waiting { delay, why: WaitReason::RateLimit, attempt: 1, error: "429".into() };
            events.send(event).await.unwrap();
            sleep(delay).await;
            Ok(done(said))
        }
        Reply::WithdrawnThen(partial, said) => {
            events.send(delta(&partial)).await.unwrap();
            events.send(RequestEvent::Withdrawn { partial: vec![text(&partial)] }).await.unwrap();
            events.send(delta(&said)).await.unwrap();
            Ok(done(said))
        }
        Reply::Fail(class, partial) => Err(failed(class, &partial)),
        Reply::Panic => panic!("the model broke"),
    }
}

impl Model for FakeModel {
    fn ask<'a>(
        &'a self,
        request: Request,
        events: &'a mpsc::Sender<RequestEvent>,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<Answer, ProviderError>> {
        Box::pin(async move {
            let fault = crate::conversation::fault(&request.messages);
            assert_eq!(fault, None, "the request is not valid");
            let next = self.next(&request);
            self.requests.lock().unwrap().push(request);
            self.asked.send_modify(|asked| *asked += 1);
            events.send(RequestEvent::Sent { provider: "p".into(), model: "m".into() }).await.unwrap();
            reply(next, events, cancel).await
        })
    }
    fn traits_of(&self, _: &str) -> ModelTraits {
        ModelTraits {
            window: None,
            max_output: None,
            text_tool_calls: false,
            answer_schema: *self.holds_to_schema.lock().unwrap(),
            price: Some(claw_providers::models::Price::FREE),
        }
    }
    fn default_model(&self) -> String {
        "m".into()
    }
}

/// What a fake tool does.
#[derive(Clone, Copy)]
enum Deed {
    /// Gives its text back.
    Echo,
    /// Waits, in the tokio clock.
    Wait,
    /// Never ends, whatever is cancelled.
    Stubborn,
    Panic,
    /// Writes, inside the workspace or where the input says.
    Write,
}

struct FakeTool {
    name: &'static str,
    deed: Deed,
    ran: Arc<Mutex<Vec<String>>>,
}

impl Tool for FakeTool {
    fn name(&self) -> &'static str {
        self.name
    }
    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }
    fn description(&self) -> String {
        "a fake".into()
    }
    fn input_schema(&self) -> Value {
        json!({"type": "object"})
    }
    fn effect(&self, ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        let writes = match self.deed {
            Deed::Write => vec![ctx.folder.resolve(input["path"].as_str().unwrap())],
            Deed::Echo | Deed::Wait | Deed::Stubborn | Deed::Panic => Vec::new(),
        };
        Ok(Effect { writes, ..Effect::default() })
    }
    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        _judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let ms = input["ms"].as_u64().unwrap_or_default();
            match self.deed {
                Deed::Echo => Ok(ToolOutput::text(input["text"].as_str().unwrap())),
                Deed::Wait => tokio::select! {
                    () = ctx.cancel.cancelled() => Err(ToolError::Cancelled),
                    () = sleep(Duration::from_millis(ms)) => Ok(ToolOutput::text(format!("waited {ms}"))),
                },
                Deed::Stubborn => std::future::pending().await,
                Deed::Panic => panic!("boom"),
                Deed::Write => {
                    sleep(Duration::from_millis(ms)).await;
                    self.ran.lock().unwrap().push(input["tag"].as_str().unwrap_or("?").to_owned());
                    Ok(ToolOutput::text("written"))
                }
            }
        })
    }
}

fn tools(ran: &Arc<Mutex<Vec<String>>>) -> Registry {
    let all = [
        ("echo", Deed::Echo),
        ("wait", Deed::Wait),
        ("stubborn", Deed::Stubborn),
        ("panic", Deed::Panic),
        ("inside", Deed::Write),
        ("outside", Deed::Write),
    ];
    all.into_iter().fold(Registry::empty(), |set, (name, deed)| {
        set.with(Arc::new(FakeTool { name, deed, ran: ran.clone() }))
    })
}

#[derive(Default)]
pub(crate) struct FakeEffects {
    lines: Mutex<Vec<String>>,
    fails: Mutex<bool>,
}

impl FakeEffects {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }
    pub(crate) fn fail(&self) {
        *self.fails.lock().unwrap() = true;
    }
    fn note(&self, line: String) -> BoxFuture<'_, Result<(), EffectLogFailed>> {
        let result =
            if *self.fails.lock().unwrap() { Err(EffectLogFailed("disk full".into())) } else { Ok(()) };
        self.lines.lock().unwrap().push(line);
        Box::pin(std::future::ready(result))
    }
}

impl EffectLog for FakeEffects {
    fn intent(&self, call: CallNo, _: &str) -> BoxFuture<'_, Result<(), EffectLogFailed>> {
        self.note(format!("intent {call}"))
    }
    fn done(&self, call: CallNo, _: Digest) -> BoxFuture<'_, Result<(), EffectLogFailed>> {
        self.note(format!("done {call}"))
    }
}

struct AskForever;

impl Asker for AskForever {
    fn ask(&self, _: AskRequest) -> BoxFuture<'_, Said2> {
        Box::pin(std::future::pending())
    }
}

/// Keeps all news; a test can wait for one.
struct News(watch::Sender<Vec<AgentEvent>>);

impl EventSink for News {
    fn send(&self, event: AgentEvent) -> BoxFuture<'_, ()> {
        self.0.send_modify(|all| all.push(event));
        Box::pin(std::future::ready(()))
    }
}

/// Everything that an agent needs.
pub(crate) struct Desk {
    pub(crate) model: Arc<FakeModel>,
    pub(crate) effects: Arc<FakeEffects>,
    pub(crate) cancel: CancelToken,
    pub(crate) schema: Option<Arc<Value>>,
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) permission: Permission,
    pub(crate) fault: Option<String>,
    pub(crate) purse: Option<Arc<dyn crate::purse::Purse>>,
    services: Arc<AgentServices>,
    ran: Arc<Mutex<Vec<String>>>,
    news: Arc<News>,
    folder: tempfile::TempDir,
}

impl Desk {
    pub(crate) fn new(script: impl IntoIterator<Item = Reply>) -> Self {
        let ran = Arc::default();
        let registry = tools(&ran);
        Self { ran, ..Self::with_tools(script, registry) }
    }

    pub(crate) fn with_tools(script: impl IntoIterator<Item = Reply>, registry: Registry) -> Self {
        let model = Arc::new(FakeModel::new(script));
        let services = AgentServices {
            model: model.clone(),
            registry: registry.into(),
            ports: Arc::default(),
            redactor: Arc::new(Redactor::new(["hunter2hunter2".to_owned()])),
            logs: LogWriter::start().unwrap(),
            rules: Arc::default(),
            asker: Arc::new(NobodyToAsk),
            sandboxes: Sandboxes::default(),
            hooks: Arc::new(crate::hooks::Hooks::none()),
            mcp: crate::mcp::McpServers::none(),
            memory: "".into(),
            protected: Vec::new(),
            compaction: crate::compaction::CompactionSettings::default(),
            shared: crate::services::Shared::default(),
        };
        Self {
            model,
            effects: Arc::default(),
            cancel: CancelToken::new(),
            schema: None,
            tools: None,
            permission: Permission::WORKSPACE_WRITE,
            fault: None,
            purse: None,
            services: Arc::new(services),
            ran: Arc::default(),
            news: Arc::new(News(watch::Sender::new(Vec::new()))),
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn services(&self) -> Arc<AgentServices> {
        self.services.clone()
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(crate) fn ask_forever(&mut self) {
        Arc::get_mut(&mut self.services).unwrap().asker = Arc::new(AskForever);
    }

    fn request(&self, label: &str) -> AgentRequest {
        AgentRequest {
            id: AgentId::fresh(),
            label: label.into(),
            definition: Arc::new(lead()),
            prompt: "go".into(),
            fault: self.fault.clone(),
            system_append: None,
            models: Vec::new(),
            effort: None,
            tools: self.tools.clone(),
            deny_tools: Vec::new(),
            permission: self.permission,
            max_turns: None,
            output_schema: self.schema.clone(),
            workspace: self.folder.path().to_owned(),
            readable: Vec::new(),
            transcript: self.folder.path().join(format!("state/{label}.jsonl")),
            spill: self.folder.path().join("state/spill"),
            idle_timeout: Duration::from_secs(60),
            effects: self.effects.clone(),
            purse: self.purse.clone(),
            spawner: None,
        }
    }

    pub(crate) fn transcript(&self) -> PathBuf {
        self.folder.path().join("state/a.jsonl")
    }

    pub(crate) fn start(&self) -> RunningAgent {
        self.start_as("a")
    }

    pub(crate) fn start_as(&self, label: &str) -> RunningAgent {
        crate::start(self.services.clone(), self.request(label), self.news.clone(), self.cancel.clone())
    }

    pub(crate) async fn run(&self) -> AgentOutcome {
        self.start().outcome().await
    }

    /// Another attempt on the same transcript.
    pub(crate) async fn again(&self) -> AgentOutcome {
        crate::start(self.services.clone(), self.request("a"), self.news.clone(), CancelToken::new())
            .outcome()
            .await
    }

    pub(crate) async fn until(&self, wanted: impl Fn(&AgentEvent) -> bool) {
        self.news.0.subscribe().wait_for(|all| all.iter().any(&wanted)).await.unwrap();
    }

    pub(crate) fn news(&self) -> Vec<AgentEvent> {
        self.news.0.borrow().clone()
    }

    pub(crate) fn ran(&self) -> Vec<String> {
        self.ran.lock().unwrap().clone()
    }

    /// The results in the last message of the request with this index.
    pub(crate) fn results_of_request(&self, index: usize) -> Vec<String> {
        let requests = self.model.requests();
        let last = requests[index].messages.last().unwrap();
        let of = |block: &Block| match block {
            Block::ToolResult { content, .. } => Some(content.clone()),
            _ => None,
        };
        last.content.iter().filter_map(of).collect()
    }
}
