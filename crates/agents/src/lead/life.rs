//! The life of a lead: idle, turn, idle; orders in between. A supervised task that owns the session.
//!
//! Owns what waits and what is at rest between two turns. Must not know how a turn goes on: `turn.rs` runs one.

use super::command::LeadCommand;
use super::event::{LeadEvent, LeadView, Reckoning};
use super::orders::compacted;
use super::setup::LeadSetup;
use crate::compaction::Fullness;
use crate::conversation::{History, Refused, at_session_start, at_the_end, at_the_prompt};
use crate::event::{AgentEvent, EventSink};
use crate::hooks::Scene;
use crate::outcome::AgentOutcome;
use crate::session::{FileKeeper, OpenSession, SessionError};
use crate::transcript::{Record, first_line};
use claw_kernel::cancel::CancelToken;
use claw_kernel::clock;
use claw_kernel::ids::RunId;
use claw_providers::message::Block;
use claw_providers::usage::Usage;
use claw_tools::folder::WorkingFolder;
use claw_tools::read_state::ReadState;
use claw_tools::tool::ToolContext;
use futures_util::future::BoxFuture;
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Turns that may die in this time before the lead gives up.
const MOST_DEATHS: usize = 3;
const DEATHS_IN: Duration = Duration::from_secs(300);

/// Whether it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    On,
    Out,
}

/// What the next turn begins with.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Waiting {
    /// Words of the person.
    Said(Vec<Block>),
    /// The end of an agent in the background.
    Told { run: RunId, number: u32, text: String },
}

/// A lead at rest.
pub(super) struct Life {
    pub(super) setup: LeadSetup,
    /// `None` only while a turn has its transcript.
    pub(super) session: Option<OpenSession>,
    pub(super) history: History,
    pub(super) fullness: Fullness,
    /// Requests of the model so far.
    pub(super) turns: u32,
    pub(super) prompt: u32,
    pub(super) turn_usage: Usage,
    pub(super) session_usage: Usage,
    pub(super) title: Option<String>,
    pub(super) name: Option<String>,
    pub(super) keeper: FileKeeper,
    pub(super) context: ToolContext,
    pub(super) door: mpsc::Sender<LeadEvent>,
    pub(super) cancel: CancelToken,
    pub(super) cause: Arc<OnceLock<String>>,
    /// What was said and not heard.
    pub(super) waiting: VecDeque<Waiting>,
    pub(super) team: Option<RunId>,
    pub(super) told_ends: HashSet<(RunId, u32)>,
    /// Orders that a turn did not allow.
    pub(super) later: VecDeque<LeadCommand>,
    deaths: VecDeque<Instant>,
    /// Said by hooks at the beginning, for the next prompt.
    hooks_said: Vec<String>,
}

/// Wraps the news of a conversation.
pub(super) struct Wrapped(pub(super) mpsc::Sender<LeadEvent>);

impl EventSink for Wrapped {
    fn send(&self, event: AgentEvent) -> BoxFuture<'_, ()> {
        let event = match event {
            AgentEvent::Context { used, window } => LeadEvent::Context { used, window },
            compaction @ AgentEvent::Compacted { .. } => compacted(compaction),
            other => LeadEvent::Agent(other),
        };
        Box::pin(async move {
            let _ = self.0.send(event).await;
        })
    }
}

impl Life {
    pub(super) fn new(
        setup: LeadSetup,
        mut session: OpenSession,
        door: mpsc::Sender<LeadEvent>,
        (cancel, cause): (CancelToken, Arc<OnceLock<String>>),
    ) -> Self {
        let log = session.transcript.log();
        let facts = &mut session.loaded.facts;
        let keeper = FileKeeper::new(&session.path, log, std::mem::take(&mut facts.snapshots));
        let (prompt, title, name) = (facts.last_prompt, facts.title.clone(), facts.name.clone());
        let (team, told_ends) = (facts.team, std::mem::take(&mut facts.told_ends));
        let context = fresh_context(&setup, &session);
        Self {
            history: History::from_repaired(std::mem::take(&mut session.loaded.history)),
            fullness: Fullness::default(),
            turns: session.loaded.turns,
            turn_usage: Usage::NOTHING,
            session_usage: session.loaded.usage,
            session: Some(session),
            waiting: VecDeque::new(),
            team,
            told_ends,
            later: VecDeque::new(),
            deaths: VecDeque::new(),
            hooks_said: Vec::new(),
            setup,
            prompt,
            title,
            name,
            keeper,
            context,
            door,
            cancel,
            cause,
        }
    }

    /// Until it is told to end, or nobody can order any more.
    pub(super) async fn live(mut self, mut inbox: mpsc::Receiver<LeadCommand>) {
        self.tell(LeadEvent::Opened(Box::new(self.view()))).await;
        self.tell_size().await;
        let how = if self.prompt == 0 { "startup" } else { "resume" };
        let mut flow = self.session_starts(how).await;
        if flow == Flow::On {
            self.tell(LeadEvent::Idle).await;
        }
        while flow == Flow::On {
            flow = self.step(&mut inbox).await;
        }
        self.close().await;
    }

    fn scene(&self) -> Scene {
        let session = self.session.as_ref();
        let mut permission = self.setup.permission;
        if let Some(most) = self.setup.definition.permission {
            permission = permission.intersect(most);
        }
        Scene {
            session: session.map(|session| session.id.to_string()).unwrap_or_default(),
            transcript: session.map(|session| session.path.clone()).unwrap_or_default(),
            cwd: self.setup.workspace.clone(),
            permission_mode: permission.to_string(),
            agent_id: self.setup.id.to_string(),
            agent_type: self.setup.definition.name.clone(),
        }
    }

    /// What the user's hooks say goes with the next prompt. `Flow::Out`: one does not let it begin.
    pub(super) async fn session_starts(&mut self, how: &'static str) -> Flow {
        let (scene, events) = (self.scene(), Wrapped(self.door.clone()));
        let hooks = self.setup.services.hooks.clone();
        match at_session_start(&hooks, &scene, how, &events, &self.cancel).await {
            Ok(said) => {
                self.hooks_said = said;
                Flow::On
            }
            Err(Refused::Denied(words)) => {
                self.refuse("session", words).await;
                Flow::Out
            }
            Err(Refused::Cancelled) => Flow::Out,
        }
    }

    /// A prompt with what the hooks add to it. `None`: they stopped it, and that is said.
    pub(super) async fn through_hooks(&mut self, mut blocks: Vec<Block>) -> Option<Vec<Block>> {
        let text: Vec<&str> = blocks.iter().filter_map(Block::as_text).collect();
        let (scene, events) = (self.scene(), Wrapped(self.door.clone()));
        let hooks = self.setup.services.hooks.clone();
        match at_the_prompt(&hooks, &scene, &text.join("\n"), &events, &self.cancel).await {
            Ok(said) => {
                let said: Vec<String> =
                    std::mem::take(&mut self.hooks_said).into_iter().chain(said).collect();
                if !said.is_empty() {
                    let text = format!("Hook feedback:\n{}", said.join("\n"));
                    let text = self.setup.services.redactor.apply(&text).into_owned();
                    blocks.push(Block::Text { text });
                }
                Some(blocks)
            }
            Err(Refused::Denied(words)) => {
                self.refuse("say", words).await;
                None
            }
            Err(Refused::Cancelled) => None,
        }
    }

    async fn step(&mut self, inbox: &mut mpsc::Receiver<LeadCommand>) -> Flow {
        if self.cancel.is_cancelled() {
            return Flow::Out;
        }
        if let Some(order) = self.later.pop_front() {
            return self.carry_out(order, inbox).await;
        }
        if !self.waiting.is_empty() {
            let flow = self.next_turn(inbox).await;
            if flow == Flow::On && self.waiting.is_empty() && self.later.is_empty() {
                self.tell(LeadEvent::Idle).await;
            }
            return flow;
        }
        let order = tokio::select! {
            biased;
            () = self.cancel.cancelled() => None,
            order = inbox.recv() => order,
        };
        match order {
            None | Some(LeadCommand::Shutdown) => Flow::Out,
            Some(LeadCommand::Say { blocks }) => {
                self.hear(blocks).await;
                Flow::On
            }
            Some(order) => {
                let flow = self.carry_out(order, inbox).await;
                if flow == Flow::On && self.waiting.is_empty() {
                    self.tell(LeadEvent::Idle).await;
                }
                flow
            }
        }
    }

    async fn next_turn(&mut self, inbox: &mut mpsc::Receiver<LeadCommand>) -> Flow {
        let (mut said, mut told) = (Vec::new(), Vec::new());
        for one in self.waiting.drain(..) {
            match one {
                Waiting::Said(blocks) => said.extend(blocks),
                Waiting::Told { run, number, text } => told.push((run, number, text)),
            }
        }
        if !said.is_empty() {
            match self.through_hooks(said).await {
                Some(blocks) => said = blocks,
                None if told.is_empty() => return Flow::On,
                None => said = Vec::new(),
            }
        }
        // Servers that are still starting are waited for no longer than they may take.
        self.setup.services.mcp.settle().await;
        self.turn((told, said), inbox).await
    }

    /// Takes a message in, without secrets and without what no person says.
    pub(super) async fn hear(&mut self, blocks: Vec<Block>) {
        let blocks = self.said(blocks);
        if blocks.is_empty() {
            self.refuse("say", "the message is empty".to_owned()).await;
        } else {
            self.waiting.push_back(Waiting::Said(blocks));
        }
    }

    /// An end is told once, whoever told it before.
    pub(super) async fn hear_end(&mut self, run: RunId, number: u32, text: String) {
        if self.told_ends.contains(&(run, number)) {
            return self.tell(LeadEvent::Told { run, number }).await;
        }
        let waits = |one: &Waiting| matches!(one, Waiting::Told { run: r, number: n, .. } if (*r, *n) == (run, number));
        if !self.waiting.iter().any(waits) {
            let text = self.setup.services.redactor.apply(&text).into_owned();
            self.waiting.push_back(Waiting::Told { run, number, text });
        }
    }

    pub(super) fn said(&self, blocks: Vec<Block>) -> Vec<Block> {
        let redactor = &self.setup.services.redactor;
        blocks
            .into_iter()
            .filter_map(|block| match block {
                Block::Text { text } if text.trim().is_empty() => None,
                Block::Text { text } => Some(Block::Text { text: redactor.apply(&text).into_owned() }),
                Block::Image(image) => Some(Block::Image(image)),
                Block::Thinking { .. }
                | Block::RedactedThinking { .. }
                | Block::ToolUse { .. }
                | Block::ToolResult { .. } => None,
            })
            .collect()
    }

    pub(super) async fn tell(&self, event: LeadEvent) {
        // A screen that is gone misses nothing.
        let _ = self.door.send(event).await;
    }

    pub(super) async fn refuse(&self, what: &'static str, why: String) {
        self.tell(LeadEvent::Refused { what, why }).await;
    }

    pub(super) fn models(&self) -> Arc<[String]> {
        let own =
            if self.setup.models.is_empty() { &self.setup.definition.models } else { &self.setup.models };
        if own.is_empty() { [self.setup.services.model.default_model()].into() } else { own.clone().into() }
    }

    pub(super) fn window(&self) -> Option<u64> {
        self.setup.services.model.traits_of(self.models().first()?).window.map(u64::from)
    }

    pub(super) async fn tell_size(&self) {
        let reckoning = Reckoning { turn: self.turn_usage, session: self.session_usage };
        self.tell(LeadEvent::Reckoning(reckoning)).await;
        let used = self.fullness.used(self.history.messages());
        self.tell(LeadEvent::Context { used, window: self.window() }).await;
    }

    pub(super) fn view(&self) -> LeadView {
        let session = self.session.as_ref();
        let prompts = session.map(|session| session.loaded.facts.prompts.as_slice()).unwrap_or_default();
        LeadView {
            session: session.map_or_else(claw_kernel::ids::SessionId::fresh, |session| session.id),
            name: self.name.clone(),
            path: session.map(|session| session.path.clone()).unwrap_or_default(),
            model: self.models().first().cloned().unwrap_or_default(),
            permission: self.setup.permission,
            workspace: self.setup.workspace.clone(),
            team: self.team,
            messages: self.history.messages().len(),
            prompts: prompts
                .iter()
                .map(|mark| (mark.prompt, first_line(&mark.content).unwrap_or_default()))
                .collect(),
            spent: self.session_usage,
            repairs: session.map(|session| session.repairs.clone()).unwrap_or_default(),
        }
    }

    /// Appends records. `Flow::Out`: the session cannot be written any more, and that is said.
    pub(super) async fn record(&mut self, records: &[Record]) -> Flow {
        let written = match &mut self.session {
            Some(session) => session.append(records).await,
            None => Ok(()),
        };
        match written {
            Ok(()) => Flow::On,
            Err(error) => self.broken(&error).await,
        }
    }

    pub(super) async fn broken(&mut self, error: &SessionError) -> Flow {
        self.refuse("session", format!("{error}; the session ends here")).await;
        Flow::Out
    }

    /// A turn is over: what it cost.
    pub(super) fn spend(&mut self, outcome: &AgentOutcome) {
        self.turn_usage = outcome.usage;
        self.session_usage = self.session_usage.plus(&outcome.usage);
    }

    /// A turn died. `Flow::Out`: it is one too many.
    pub(super) async fn died(&mut self) -> Flow {
        let now = Instant::now();
        self.deaths.push_back(now);
        self.deaths.retain(|at| now.duration_since(*at) < DEATHS_IN);
        if self.deaths.len() > MOST_DEATHS {
            self.refuse(
                "session",
                format!("{} turns died in a row; the session ends here", self.deaths.len()),
            )
            .await;
            return Flow::Out;
        }
        Flow::On
    }

    /// The history as the session's file tells it.
    pub(super) async fn read_again(&mut self) -> Result<(), SessionError> {
        if let Some(session) = &mut self.session {
            session.read_again().await?;
            self.history = History::from_repaired(std::mem::take(&mut session.loaded.history));
            self.turns = session.loaded.turns;
            self.fullness.forget();
        }
        Ok(())
    }

    /// A record for lists; what runs in the background ends.
    pub(super) async fn leave(&mut self) {
        let (scene, events) = (self.scene(), Wrapped(self.door.clone()));
        let hooks = self.setup.services.hooks.clone();
        at_the_end(&hooks, &scene, &events, self.cancel.is_cancelled()).await;
        self.context.cancel.cancel();
        self.context.state.end().await;
        let closed = Record::Closed {
            at: clock::now(),
            name: self.name.clone(),
            title: self.title.clone().unwrap_or_default(),
            prompts: self.prompt,
            usage: self.session_usage,
        };
        if let Some(session) = &mut self.session {
            // A log that is broken has been told of.
            let _ = session.append(&[closed]).await;
        }
    }

    async fn close(mut self) {
        self.leave().await;
        // Released before the last word: whoever hears it may open the session.
        self.session = None;
        let _ = self.door.send(LeadEvent::Closed).await;
    }
}

/// Folder, files read, sandbox: they last for the whole session.
pub(super) fn fresh_context(setup: &LeadSetup, session: &OpenSession) -> ToolContext {
    let services = &setup.services;
    let policy = services.sandboxes.policy(setup.permission.reach, &setup.workspace, &services.protected);
    ToolContext {
        folder: Arc::new(WorkingFolder::at_resolved(policy.workspace().to_owned())),
        agent: "claw".into(),
        reads: Arc::new(ReadState::new()),
        cancel: CancelToken::new(),
        hidden: crate::start::hidden(services, policy.workspace()),
        sandbox: policy,
        spill: Arc::new(session.path.with_extension("outputs")),
        redactor: services.redactor.clone(),
        env: Arc::clone(services.shared.env()),
        state: Arc::default(),
        ports: services.ports.clone(),
        // Each turn has its own.
        messenger: None,
    }
}
