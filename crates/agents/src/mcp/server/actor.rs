//! The actor of one server: carries out what its life decides. Its parent (`supervisor.rs`) starts it anew when it dies; it
//! has no children but tasks, each of which posts its end here.

use crate::mcp::approval::Approvals;
use crate::mcp::config::ServerSpec;
use crate::mcp::connect::{Ground, Link, with_words};
use crate::mcp::fault::{McpFault, Phase};
use crate::mcp::life::{Fact, Life, Order, RESTARTS};
use crate::mcp::listing::all_tools;
use crate::mcp::offer::{OfferedTool, Warning, offers};
use crate::mcp::tail::Tail;
use claw_kernel::cancel::CancelToken;
use claw_kernel::tasks::{self, panic_message};
use futures_util::FutureExt;
use ractor::{Actor, ActorProcessingErr, ActorRef};
use rmcp::service::{Peer, RoleClient};
use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, oneshot, watch};

/// Changes of a list that come so close together are one.
const SETTLE: Duration = Duration::from_millis(200);

/// A server that serves.
#[derive(Clone)]
pub(in crate::mcp) struct Serving {
    pub(in crate::mcp) peer: Peer<RoleClient>,
    pub(in crate::mcp) tools: Vec<OfferedTool>,
    /// Raw names of tools that are others than those that were seen.
    pub(in crate::mcp) withheld: HashSet<String>,
    /// The words for them.
    pub(in crate::mcp) changes: Vec<String>,
    pub(in crate::mcp) warnings: Vec<Warning>,
    pub(in crate::mcp) has_resources: bool,
    pub(in crate::mcp) has_prompts: bool,
    /// What it says it is.
    pub(in crate::mcp) about: String,
}

/// How a server is now.
#[derive(Clone)]
pub(in crate::mcp) enum Now {
    Idle,
    Starting,
    Serving(Arc<Serving>),
    Waiting { fault: McpFault },
    Off { fault: McpFault },
}

/// What a server has for as long as the process lives, whatever becomes of its actor.
pub(in crate::mcp) struct Desk {
    pub(in crate::mcp) spec: ServerSpec,
    pub(in crate::mcp) ground: Ground,
    pub(in crate::mcp) approvals: Approvals,
    pub(in crate::mcp) now: watch::Sender<Now>,
    /// What agents are offered of it; stays while it is started again.
    pub(in crate::mcp) offered: Mutex<Vec<OfferedTool>>,
}

impl Desk {
    /// How it is from now on.
    pub(in crate::mcp) fn put(&self, now: Now) {
        let offered = match &now {
            Now::Serving(serving) => {
                let free = serving.tools.iter().filter(|tool| !serving.withheld.contains(&tool.raw));
                Some(free.cloned().collect())
            }
            Now::Off { .. } => Some(Vec::new()),
            Now::Idle | Now::Starting | Now::Waiting { .. } => None,
        };
        if let Some(offered) = offered {
            *self.offered.lock().unwrap_or_else(PoisonError::into_inner) = offered;
        }
        self.now.send_replace(now);
    }
}

pub(in crate::mcp) enum ServerMsg {
    /// Order: serve.
    Want,
    /// Fact: connected and listed, or not.
    Came { epoch: u64, link: Result<Box<Came>, McpFault> },
    /// Fact: the connection fell.
    Fell { epoch: u64, how: String },
    /// Fact: its list is another one.
    Changed { epoch: u64 },
    /// Fact: the list was read again.
    Listed { epoch: u64, serving: Result<Serving, McpFault> },
    /// Fact: it waited.
    Due { epoch: u64 },
    /// Order: the user says yes to its tools as they are.
    Approve { reply: oneshot::Sender<bool> },
    /// Order: end, and say when.
    Stop { reply: oneshot::Sender<()> },
}

/// A connection with its first list.
pub(in crate::mcp) struct Came {
    link: Link,
    serving: Serving,
}

pub(in crate::mcp) struct ServerActor;

pub(in crate::mcp) struct State {
    desk: Arc<Desk>,
    life: Life,
    epoch: u64,
    /// Ends the connection, or the try to have one.
    link: Option<CancelToken>,
    tail: Arc<Tail>,
    since: Option<Instant>,
    last: Option<McpFault>,
    stopping: Vec<oneshot::Sender<()>>,
}

impl Actor for ServerActor {
    type Msg = ServerMsg;
    type State = State;
    type Arguments = Arc<Desk>;

    async fn pre_start(&self, _: ActorRef<ServerMsg>, desk: Arc<Desk>) -> Result<State, ActorProcessingErr> {
        Ok(State {
            desk,
            life: Life::new(),
            epoch: 0,
            link: None,
            tail: Arc::default(),
            since: None,
            last: None,
            stopping: Vec::new(),
        })
    }

    async fn handle(
        &self,
        me: ActorRef<ServerMsg>,
        message: ServerMsg,
        state: &mut State,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ServerMsg::Want => state.on(Fact::Wanted, &me),
            ServerMsg::Came { epoch, link } if epoch == state.epoch => state.came(link, &me),
            ServerMsg::Fell { epoch, how } if epoch == state.epoch => state.fell(how, &me),
            ServerMsg::Due { epoch } if epoch == state.epoch => state.on(Fact::Due, &me),
            ServerMsg::Changed { epoch } if epoch == state.epoch => state.list_again(&me),
            ServerMsg::Listed { epoch, serving: Ok(serving) } if epoch == state.epoch => {
                state.listed(serving)
            }
            ServerMsg::Listed { serving: Err(fault), .. } => {
                tracing::warn!(server = %state.desk.spec.name, %fault, "the changed list of a server could not be read");
            }
            ServerMsg::Approve { reply } => state.approve(reply),
            ServerMsg::Stop { reply } => {
                state.stopping.push(reply);
                state.on(Fact::Stop, &me);
            }
            // Stale: nobody waits for it any more. What it brought goes with it.
            ServerMsg::Came { .. }
            | ServerMsg::Fell { .. }
            | ServerMsg::Due { .. }
            | ServerMsg::Changed { .. }
            | ServerMsg::Listed { .. } => {}
        }
        Ok(())
    }

    async fn post_stop(&self, _: ActorRef<ServerMsg>, state: &mut State) -> Result<(), ActorProcessingErr> {
        if let Some(link) = state.link.take() {
            link.cancel();
        }
        Ok(())
    }
}

impl Drop for State {
    /// An actor that died takes its server with it.
    fn drop(&mut self) {
        if let Some(link) = self.link.take() {
            link.cancel();
        }
    }
}

impl State {
    fn on(&mut self, fact: Fact, me: &ActorRef<ServerMsg>) {
        let Some(order) = self.life.on(fact, Instant::now()) else { return };
        match order {
            Order::Connect => self.connect(me),
            Order::WaitFor(time) => {
                let fault = self.last.clone().unwrap_or(McpFault::Stopped);
                tracing::warn!(server = %self.desk.spec.name, %fault, ?time, "a server is started again");
                self.desk.put(Now::Waiting { fault });
                self.epoch += 1;
                let (me, epoch) = (me.clone(), self.epoch);
                drop(tasks::spawn("mcp wait", async move {
                    tokio::time::sleep(time).await;
                    let _ = me.cast(ServerMsg::Due { epoch });
                }));
            }
            Order::GiveUp => {
                let last = self.last.clone().unwrap_or(McpFault::Stopped);
                let fault = if last.may_pass() {
                    McpFault::GaveUp { restarts: RESTARTS, last: last.to_string() }
                } else {
                    last
                };
                tracing::warn!(server = %self.desk.spec.name, %fault, "a server is off");
                self.desk.put(Now::Off { fault });
            }
            Order::Close => self.close(me),
        }
    }

    fn connect(&mut self, me: &ActorRef<ServerMsg>) {
        self.epoch += 1;
        self.tail = Arc::default();
        self.desk.put(Now::Starting);
        let cancel = CancelToken::new();
        self.link = Some(cancel.clone());
        let (me, epoch, desk, tail) = (me.clone(), self.epoch, self.desk.clone(), self.tail.clone());
        drop(tasks::spawn("mcp connect", async move {
            let coming = AssertUnwindSafe(come(&desk, &tail)).catch_unwind();
            let link = tokio::select! {
                () = cancel.cancelled() => Err(McpFault::Stopped),
                came = coming => came.unwrap_or_else(|panic| {
                    Err(McpFault::Refused { phase: Phase::Start, said: panic_message(panic.as_ref()) })
                }),
            };
            let _ = me.cast(ServerMsg::Came { epoch, link });
        }));
    }

    fn came(&mut self, link: Result<Box<Came>, McpFault>, me: &ActorRef<ServerMsg>) {
        let Came { link, serving } = match link {
            Ok(came) => *came,
            Err(fault) => {
                let may_pass = fault.may_pass();
                self.last = Some(fault);
                return self.on(Fact::Failed { may_pass }, me);
            }
        };
        let cancel = self.link.get_or_insert_with(CancelToken::new).clone();
        self.since = Some(Instant::now());
        self.watch(link.changed.clone(), cancel.clone(), me);
        let (own, epoch) = (me.clone(), self.epoch);
        drop(tasks::spawn("mcp link", async move {
            let how = link.tend(cancel).await;
            let _ = own.cast(ServerMsg::Fell { epoch, how });
        }));
        self.listed(serving);
        self.on(Fact::Connected, me);
    }

    /// Tells of each change of its list, until the connection falls.
    fn watch(&self, changed: Arc<Notify>, cancel: CancelToken, me: &ActorRef<ServerMsg>) {
        let (me, epoch) = (me.clone(), self.epoch);
        drop(tasks::spawn("mcp news", async move {
            loop {
                tokio::select! {
                    () = cancel.cancelled() => return,
                    () = changed.notified() => {}
                }
                tokio::time::sleep(SETTLE).await;
                if me.cast(ServerMsg::Changed { epoch }).is_err() {
                    return;
                }
            }
        }));
    }

    fn fell(&mut self, how: String, me: &ActorRef<ServerMsg>) {
        if let Some(link) = self.link.take() {
            link.cancel();
        }
        if let Some(since) = self.since.take() {
            self.life.served(since.elapsed());
        }
        self.last = Some(with_words(McpFault::Gone { phase: Phase::Call, how }, &self.tail));
        if self.stopping.is_empty() {
            return self.on(Fact::Fell, me);
        }
        self.stopped(me);
    }

    fn close(&mut self, me: &ActorRef<ServerMsg>) {
        let is_linked = self.since.is_some();
        if let Some(link) = self.link.take() {
            link.cancel();
        }
        // Its task tells when it is over; nothing else is waited for.
        if !is_linked {
            self.stopped(me);
        }
    }

    fn stopped(&mut self, me: &ActorRef<ServerMsg>) {
        self.desk.put(Now::Off { fault: McpFault::Stopped });
        for reply in self.stopping.drain(..) {
            let _ = reply.send(());
        }
        me.stop(None);
    }

    fn list_again(&self, me: &ActorRef<ServerMsg>) {
        let Now::Serving(serving) = &*self.desk.now.borrow() else { return };
        let (peer, desk) = (serving.peer.clone(), self.desk.clone());
        let (me, epoch) = (me.clone(), self.epoch);
        drop(tasks::spawn("mcp list", async move {
            let serving = serve(&desk, peer).await;
            let _ = me.cast(ServerMsg::Listed { epoch, serving });
        }));
    }

    fn listed(&self, serving: Serving) {
        for Warning(words) in &serving.warnings {
            tracing::warn!(server = %self.desk.spec.name, "{words}");
        }
        self.desk.put(Now::Serving(Arc::new(serving)));
    }

    fn approve(&self, reply: oneshot::Sender<bool>) {
        let serving = match &*self.desk.now.borrow() {
            Now::Serving(serving) => serving.clone(),
            Now::Idle | Now::Starting | Now::Waiting { .. } | Now::Off { .. } => {
                let _ = reply.send(false);
                return;
            }
        };
        let desk = self.desk.clone();
        drop(tasks::spawn("mcp approve", async move {
            desk.approvals.approve(desk.spec.identity(), &serving.tools).await;
            let clean = Serving { withheld: HashSet::new(), changes: Vec::new(), ..(*serving).clone() };
            // Only where nothing came between.
            let is_same = matches!(&*desk.now.borrow(), Now::Serving(known) if Arc::ptr_eq(known, &serving));
            if is_same {
                desk.put(Now::Serving(Arc::new(clean)));
            }
            let _ = reply.send(true);
        }));
    }
}

async fn come(desk: &Desk, tail: &Arc<Tail>) -> Result<Box<Came>, McpFault> {
    let link = desk.ground.connect(&desk.spec, tail).await?;
    match serve(desk, link.service.peer().clone()).await {
        Ok(serving) => Ok(Box::new(Came { link, serving })),
        Err(fault) => {
            let cancel = CancelToken::new();
            cancel.cancel();
            link.tend(cancel).await;
            Err(with_words(fault, tail))
        }
    }
}

/// Reads the list, and compares it with what the user has seen.
async fn serve(desk: &Desk, peer: Peer<RoleClient>) -> Result<Serving, McpFault> {
    let about = peer.peer_info();
    let can = about.as_ref().map(|about| about.capabilities.clone()).unwrap_or_default();
    let (tools, mut warnings) = match can.tools {
        Some(_) => all_tools(&peer, desk.spec.times.list).await?,
        None => (Vec::new(), Vec::new()),
    };
    let (tools, more) = offers(&desk.spec.name, tools);
    warnings.extend(more);
    let identity = desk.spec.identity();
    let mut changes = desk.approvals.changes(identity, &tools).await;
    if !changes.is_empty()
        && let Some(person) = &desk.ground.ports.person
        && person.approve_tools(&desk.spec.name, changes.clone()).await
    {
        desk.approvals.approve(identity, &tools).await;
        changes.clear();
    }
    let withheld = changes.iter().filter_map(|line| Some(line.split_once(": ")?.1.to_owned())).collect();
    let about = about.and_then(|about| about.server_info.clone());
    Ok(Serving {
        peer,
        withheld,
        changes,
        warnings,
        has_resources: can.resources.is_some(),
        has_prompts: can.prompts.is_some(),
        tools,
        about: about.map(|about| format!("{} {}", about.name, about.version)).unwrap_or_default(),
    })
}
