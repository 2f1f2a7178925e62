//! All servers of a process: started together, asked by name, ended together.

use super::approval::Approvals;
use super::config::ServerSpec;
use super::connect::{Ground, with_words};
use super::fault::{McpFault, Phase};
use super::listing::{all_prompts, all_resources, fault};
use super::ports::McpPorts;
use super::prompts::{PromptInfo, PromptText};
use super::report::{ServerReport, ServerState};
use super::resources::{ListResources, ReadResource};
use super::results;
use super::server::{Desk, Now, ServerMsg, Serving};
use super::supervisor::{Root, ServersActor, Slot};
use super::tool::{ConnectTool, McpTool};
use claw_kernel::cancel::CancelToken;
use claw_kernel::redact::Redactor;
use claw_kernel::supervise::spawn_root;
use claw_kernel::tasks;
use claw_tools::output::ToolOutput;
use claw_tools::registry::RegistryCell;
use claw_tools::sandbox::SandboxPolicy;
use claw_tools::tool::Tool;
use futures_util::future::join_all;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest,
    GetPromptRequestParams, JsonObject, ReadResourceRequestParams, Resource, ServerResult,
};
use rmcp::service::PeerRequestOptions;
use serde_json::Value;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

/// A call whose progress never ends ends here.
const LONGEST_CALL: Duration = Duration::from_secs(3_600);
/// How long the first prompt waits for servers.
const PATIENCE: Duration = Duration::from_secs(2);
/// Tools of no server in particular.
const RESOURCE_TOOLS: [&str; 2] = ["list_mcp_resources", "read_mcp_resource"];
/// The end of all servers.
const ENDING: Duration = Duration::from_millis(1_900);

/// The servers of a process. Cheap to clone.
#[derive(Clone)]
pub struct McpServers {
    slots: Arc<Vec<Arc<Slot>>>,
    root: Arc<OnceLock<Root>>,
    began: Instant,
    over: CancelToken,
}

impl std::fmt::Debug for McpServers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl McpServers {
    /// No servers.
    pub fn none() -> Self {
        Self { slots: Arc::default(), root: Arc::default(), began: Instant::now(), over: CancelToken::new() }
    }

    /// Starts all that are not lazy, at the same time. Returns at once; within a runtime.
    pub fn start(
        specs: Vec<ServerSpec>,
        project: &Path,
        ports: McpPorts,
        approvals: Approvals,
        redactor: Arc<Redactor>,
    ) -> Self {
        let servers = Self::none();
        if specs.is_empty() {
            return servers;
        }
        let policy = Arc::new(SandboxPolicy::full(project));
        let ground = Ground { project: project.to_owned(), policy, ports, redactor };
        let desks = specs.into_iter().map(|spec| Desk {
            now: watch::Sender::new(if spec.lazy { Now::Idle } else { Now::Starting }),
            spec,
            ground: ground.clone(),
            approvals: approvals.clone(),
            offered: Mutex::default(),
        });
        let slots: Vec<Arc<Slot>> = desks.map(|desk| Arc::new(Slot::new(desk))).collect();
        let (own, root) = (slots.clone(), servers.root.clone());
        // It ends when all are started.
        drop(tasks::spawn("mcp servers", async move {
            match spawn_root("mcp servers", ServersActor, own.clone()).await {
                Ok((actor, _join)) => {
                    let _ = root.set(actor);
                    for slot in own.iter().filter(|slot| !slot.desk.spec.lazy || slot.is_wanted()) {
                        slot.say(ServerMsg::Want);
                    }
                }
                Err(error) => {
                    for slot in own {
                        let fault = McpFault::NotStarted(error.to_string());
                        slot.desk.put(Now::Off { fault });
                    }
                }
            }
        }));
        Self { slots: Arc::new(slots), ..servers }
    }

    /// Names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.slots.iter().map(|slot| slot.desk.spec.name.as_str())
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Waits until each that was started serves or failed for the first time, but no longer than this after the start.
    pub async fn settled(&self, most: Duration) {
        let most = most.saturating_sub(self.began.elapsed());
        if most.is_zero() {
            return;
        }
        let each = self.slots.iter().filter(|slot| !slot.desk.spec.lazy).map(|slot| async {
            let mut now = slot.desk.now.subscribe();
            let is_settled = |now: &Now| !matches!(now, Now::Idle | Now::Starting);
            // The sender lives as long as the slot.
            let _ = now.wait_for(is_settled).await;
        });
        let _ = timeout(most, join_all(each)).await;
    }

    /// Starts the lazy ones too.
    pub fn want_all(&self) {
        for slot in self.slots.iter() {
            slot.want();
        }
    }

    /// The 2 s rule: the first prompt waits so long for servers, and no longer.
    pub async fn settle(&self) {
        self.settled(PATIENCE).await;
    }

    /// The tools that can be called now, and those that read resources.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let mut tools: Vec<Arc<dyn Tool>> = Vec::new();
        for slot in self.slots.iter() {
            let server = &slot.desk.spec.name;
            let offered = slot.desk.offered.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if offered.is_empty()
                && matches!(&*slot.desk.now.borrow(), Now::Idle)
                && let Some(tool) = ConnectTool::new(self.clone(), server)
            {
                tools.push(Arc::new(tool));
            }
            for one in offered {
                tools.push(Arc::new(McpTool::new(self.clone(), server, one)));
            }
        }
        if !self.is_empty() {
            tools.push(Arc::new(ListResources::new(self.clone())));
            tools.push(Arc::new(ReadResource::new(self.clone())));
        }
        tools
    }

    /// Keeps the tools of all servers in a registry, as they come and go, until they are stopped.
    pub fn publish(&self, registry: &RegistryCell) {
        if self.is_empty() {
            return;
        }
        let (servers, registry) = (self.clone(), registry.clone());
        let mut news: Vec<watch::Receiver<Now>> =
            self.slots.iter().map(|slot| slot.desk.now.subscribe()).collect();
        servers.put_into(&registry);
        drop(tasks::spawn("mcp tools", async move {
            loop {
                let changes: Vec<_> = news.iter_mut().map(|now| Box::pin(now.changed())).collect();
                tokio::select! {
                    () = servers.over.cancelled() => return,
                    (changed, ..) = futures_util::future::select_all(changes) => {
                        if changed.is_err() {
                            return;
                        }
                    }
                }
                servers.put_into(&registry);
            }
        }));
    }

    fn put_into(&self, registry: &RegistryCell) {
        let tools = self.tools();
        registry.update(|now| {
            let is_ours = |name: &str| name.starts_with("mcp__") || RESOURCE_TOOLS.contains(&name);
            tools.into_iter().fold(now.without(is_ours), claw_tools::registry::Registry::with)
        });
    }

    /// Starts a server that was not started yet; names of its tools.
    ///
    /// # Errors
    /// It does not serve.
    pub(super) async fn connect(&self, server: &str) -> Result<Vec<&'static str>, McpFault> {
        let serving = self.serving(self.slot(server)?).await?;
        Ok(serving.tools.iter().map(|tool| tool.name).collect())
    }

    fn slot(&self, name: &str) -> Result<&Arc<Slot>, McpFault> {
        self.slots.iter().find(|slot| slot.desk.spec.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.names().collect();
            McpFault::Unknown(format!("there is no server `{name}`; there are: {}", names.join(", ")))
        })
    }

    /// A server that serves, started where it was not yet.
    async fn serving(&self, slot: &Slot) -> Result<Arc<Serving>, McpFault> {
        let mut now = slot.desk.now.subscribe();
        let is_idle = matches!(&*now.borrow(), Now::Idle);
        if is_idle {
            slot.want();
        }
        let most = slot.desk.spec.times.start + Duration::from_secs(8);
        let come = now.wait_for(|now| matches!(now, Now::Serving(_) | Now::Off { .. }));
        let fault = match timeout(most, come).await {
            Ok(Ok(now)) => match &*now {
                Now::Serving(serving) => return Ok(serving.clone()),
                Now::Off { fault } | Now::Waiting { fault } => fault.clone(),
                Now::Idle | Now::Starting => McpFault::Stopped,
            },
            Ok(Err(_)) => McpFault::Stopped,
            Err(_) => McpFault::Silent { phase: Phase::Start, after: most },
        };
        Err(fault)
    }

    /// Calls a tool by the server's own name for it.
    ///
    /// # Errors
    /// The server does not serve, fell, was silent or said no.
    pub async fn call(
        &self,
        server: &str,
        tool: &str,
        input: Value,
        cancel: &CancelToken,
    ) -> Result<ToolOutput, McpFault> {
        let slot = self.slot(server)?;
        let serving = self.serving(slot).await?;
        if serving.withheld.contains(tool) {
            return Err(McpFault::Changed(serving.changes.join(", ")));
        }
        let mut params = CallToolRequestParams::new(tool.to_owned());
        params.arguments = match input {
            Value::Object(fields) => Some(fields),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
        };
        let time = slot.desk.spec.times.call;
        let options = PeerRequestOptions::with_timeout(time)
            .reset_timeout_on_progress()
            .with_max_total_timeout(LONGEST_CALL);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let failed = |error| fault(&error, Phase::Call);
        let sending = serving.peer.send_request_with_option(request, options);
        let handle = timeout(time, sending)
            .await
            .map_err(|_| McpFault::Silent { phase: Phase::Call, after: time })?
            .map_err(failed)?;
        let id = handle.id.clone();
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => {
                let told = CancelledNotificationParam::new(Some(id), Some("cancelled by the user".to_owned()));
                // A server that does not listen is not waited for.
                let _ = timeout(Duration::from_millis(100), serving.peer.notify_cancelled(told)).await;
                return Err(McpFault::Stopped);
            }
            answer = handle.await_response() => answer,
        };
        match answer {
            Ok(ServerResult::CallToolResult(result)) => Ok(results::output(result)),
            Ok(_) => {
                Err(McpFault::Refused { phase: Phase::Call, said: "its answer has a wrong shape".to_owned() })
            }
            Err(error) => Err(self.how_it_fell(slot, failed(error)).await),
        }
    }

    /// A connection that fell: how, once its actor knows.
    async fn how_it_fell(&self, slot: &Slot, fault: McpFault) -> McpFault {
        if !matches!(fault, McpFault::Gone { .. }) {
            return fault;
        }
        let mut now = slot.desk.now.subscribe();
        let known = now.wait_for(|now| matches!(now, Now::Waiting { .. } | Now::Off { .. }));
        match timeout(Duration::from_millis(500), known).await {
            Ok(Ok(now)) => match &*now {
                Now::Waiting { fault } | Now::Off { fault } => fault.clone(),
                Now::Idle | Now::Starting | Now::Serving(_) => fault,
            },
            Ok(Err(_)) | Err(_) => fault,
        }
    }

    /// Resources of one server, or of all that have some.
    ///
    /// # Errors
    /// That server does not serve.
    pub async fn resources(&self, server: Option<&str>) -> Result<Vec<(String, Resource)>, McpFault> {
        let mut found = Vec::new();
        for slot in self.slots.iter() {
            let name = &slot.desk.spec.name;
            if server.is_some_and(|wanted| wanted != name) {
                continue;
            }
            let serving = match self.serving(slot).await {
                Ok(serving) => serving,
                Err(fault) if server.is_some() => return Err(fault),
                Err(_) => continue,
            };
            if serving.has_resources {
                let listed = all_resources(&serving.peer, slot.desk.spec.times.list).await;
                match listed {
                    Ok((list, _)) => found.extend(list.into_iter().map(|one| (name.clone(), one))),
                    Err(fault) if server.is_some() => return Err(fault),
                    Err(_) => {}
                }
            }
        }
        if let Some(server) = server {
            self.slot(server)?;
        }
        Ok(found)
    }

    /// Reads a resource.
    ///
    /// # Errors
    /// The server does not serve, or does not give it.
    pub async fn read(&self, server: &str, uri: &str) -> Result<ToolOutput, McpFault> {
        let slot = self.slot(server)?;
        let serving = self.serving(slot).await?;
        let time = slot.desk.spec.times.call;
        let reading = serving.peer.read_resource(ReadResourceRequestParams::new(uri));
        match timeout(time, reading).await {
            Ok(Ok(result)) => Ok(results::resource(result)),
            Ok(Err(error)) => Err(fault(&error, Phase::Call)),
            Err(_) => Err(McpFault::Silent { phase: Phase::Call, after: time }),
        }
    }

    /// Prompts of all servers that serve now, for slash commands.
    pub async fn prompts(&self) -> Vec<PromptInfo> {
        let mut found = Vec::new();
        for slot in self.slots.iter() {
            let serving = match &*slot.desk.now.borrow() {
                Now::Serving(serving) if serving.has_prompts => serving.clone(),
                Now::Serving(_) | Now::Idle | Now::Starting | Now::Waiting { .. } | Now::Off { .. } => {
                    continue;
                }
            };
            if let Ok((list, _)) = all_prompts(&serving.peer, slot.desk.spec.times.list).await {
                found.extend(list.into_iter().map(|prompt| PromptInfo::of(&slot.desk.spec.name, prompt)));
            }
        }
        found
    }

    /// The text of a prompt.
    ///
    /// # Errors
    /// The server does not serve, or does not give it.
    pub async fn prompt(
        &self,
        server: &str,
        prompt: &str,
        arguments: Vec<(String, String)>,
    ) -> Result<PromptText, McpFault> {
        let slot = self.slot(server)?;
        let serving = self.serving(slot).await?;
        let mut params = GetPromptRequestParams::new(prompt);
        let fields: JsonObject =
            arguments.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
        params.arguments = (!fields.is_empty()).then_some(fields);
        let time = slot.desk.spec.times.call;
        match timeout(time, serving.peer.get_prompt(params)).await {
            Ok(Ok(result)) => Ok(PromptText::of(result)),
            Ok(Err(error)) => Err(fault(&error, Phase::Call)),
            Err(_) => Err(McpFault::Silent { phase: Phase::Call, after: time }),
        }
    }

    /// The user says yes to the tools of a server as they are now. False: it does not serve.
    ///
    /// # Errors
    /// There is no such server.
    pub async fn approve(&self, server: &str) -> Result<bool, McpFault> {
        let slot = self.slot(server)?;
        self.serving(slot).await?;
        let (reply, word) = oneshot::channel();
        slot.say(ServerMsg::Approve { reply });
        Ok(word.await.unwrap_or(false))
    }

    /// How each is now.
    pub fn reports(&self) -> Vec<ServerReport> {
        self.slots.iter().map(|slot| report(slot)).collect()
    }

    /// Ends all of them; done when they are gone, or after 1.9 s.
    pub async fn stop(&self) {
        self.over.cancel();
        let each = self.slots.iter().map(|slot| async {
            let (reply, over) = oneshot::channel();
            if slot.say(ServerMsg::Stop { reply }) {
                let _ = over.await;
            }
        });
        let _ = timeout(ENDING, join_all(each)).await;
        if let Some(root) = self.root.get() {
            root.stop(None);
        }
    }
}

fn report(slot: &Slot) -> ServerReport {
    let Desk { spec, now, .. } = &*slot.desk;
    let mut report = ServerReport {
        name: spec.name.clone(),
        kind: spec.kind.name().to_owned(),
        shown: spec.kind.shown(),
        origin: spec.origin.clone(),
        state: ServerState::Idle,
        phase: None,
        reason: None,
        about: String::new(),
        tools: Vec::new(),
        warnings: Vec::new(),
    };
    match &*now.borrow() {
        Now::Idle => {}
        Now::Starting => report.state = ServerState::Starting,
        Now::Serving(serving) => {
            report.state = ServerState::Connected;
            if !serving.changes.is_empty() {
                report.state = ServerState::Changed;
                report.phase = Some(Phase::List);
                report.reason = Some(McpFault::Changed(serving.changes.join(", ")).to_string());
            }
            report.tools = serving.tools.iter().map(|tool| (tool.name, tool.description.clone())).collect();
            report.warnings = serving.warnings.iter().map(|warning| warning.0.clone()).collect();
            report.about.clone_from(&serving.about);
        }
        Now::Waiting { fault } => report.failed(ServerState::Waiting, fault),
        Now::Off { fault: fault @ McpFault::NotSupported(_) } => {
            report.failed(ServerState::NotSupported, fault)
        }
        Now::Off { fault } => report.failed(ServerState::Off, fault),
    }
    report
}

/// The words for a call that failed, with the server's name.
pub(super) fn named(server: &str, fault: McpFault) -> String {
    format!("MCP server `{server}`: {}", with_words(fault, &super::tail::Tail::default()))
}
