//! Interim.

use super::open::Beginning;
use super::start::project_folder;
use crate::services::Setup;
use claw_agents::effects::{CallNo, EffectLog, EffectLogFailed};
use claw_agents::event::AgentEvent;
use claw_agents::lead::{LeadCommand, LeadEvent, LeadView, Reckoning};
use claw_agents::request::AgentRequest;
use claw_agents::roles::lead;
use claw_agents::services::AgentServices;
use claw_kernel::cancel::CancelToken;
use claw_kernel::digest::Digest;
use claw_kernel::ids::{AgentId, SessionId};
use claw_kernel::tasks;
use claw_orchestrator::run::SessionTeam;
use claw_providers::usage::Usage;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

struct NoJournal;
impl EffectLog for NoJournal {
    fn intent(&self, _: CallNo, _: &str) -> BoxFuture<'_, Result<(), EffectLogFailed>> {
        Box::pin(std::future::ready(Ok(())))
    }
    fn done(&self, _: CallNo, _: Digest) -> BoxFuture<'_, Result<(), EffectLogFailed>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

pub(super) struct Interim;

impl Interim {
    pub(super) fn start(
        setup: &Arc<Setup>,
        beginning: &Beginning,
        session: SessionId,
        services: &Arc<AgentServices>,
        team: &SessionTeam,
        (mut taken, door): (mpsc::Receiver<LeadCommand>, mpsc::Sender<LeadEvent>),
    ) {
        let folder = project_folder(setup);
        let transcript = folder.join(format!("{session}.jsonl"));
        let mut request = AgentRequest {
            id: AgentId::fresh(),
            label: "claw".to_owned(),
            definition: Arc::new(lead()),
            prompt: String::new(),
            fault: None,
            system_append: None,
            models: vec![beginning.model.clone()],
            effort: None,
            tools: None,
            deny_tools: Vec::new(),
            permission: beginning.permission,
            max_turns: None,
            output_schema: None,
            workspace: setup.cwd.clone(),
            readable: Vec::new(),
            transcript: transcript.clone(),
            spill: folder.join(format!("{session}.outputs")),
            idle_timeout: Duration::from_secs(300),
            effects: Arc::new(NoJournal),
            purse: None,
            spawner: Some(Arc::new(team.clone())),
        };
        let view = LeadView {
            session,
            name: None,
            path: transcript,
            model: beginning.model.clone(),
            permission: beginning.permission,
            workspace: setup.cwd.clone(),
            messages: 0,
            prompts: Vec::new(),
            spent: Usage::NOTHING,
            repairs: Vec::new(),
            team: None,
        };
        let services = services.clone();
        tasks::spawn("interim", async move {
            let _ = door.send(LeadEvent::Opened(Box::new(view))).await;
            let mut prompt = 0;
            let mut spent = Usage::NOTHING;
            while let Some(command) = taken.recv().await {
                let text = match command {
                    LeadCommand::Say { blocks } => blocks.iter().filter_map(|b| b.as_text()).collect::<String>(),
                    LeadCommand::SetPermission { permission } => {
                        request.permission = permission;
                        let _ = door.send(LeadEvent::PermissionSet { permission }).await;
                        continue;
                    }
                    LeadCommand::Shutdown => break,
                    _ => continue,
                };
                prompt += 1;
                if prompt == 1 {
                    request.prompt = text;
                } else {
                    request.fault = Some(text);
                }
                let _ = door.send(LeadEvent::TurnStarted { prompt }).await;
                let (events, mut heard) = mpsc::channel::<AgentEvent>(64);
                let token = CancelToken::new();
                let agent = claw_agents::start(services.clone(), request.clone(), Arc::new(events), token.clone());
                let orders = agent.orders();
                let outcome = agent.outcome();
                tokio::pin!(outcome);
                let mut closing = false;
                let outcome = loop {
                    tokio::select! {
                        Some(event) = heard.recv() => { let _ = door.send(LeadEvent::Agent(event)).await; }
                        outcome = &mut outcome => break outcome,
                        Some(command) = taken.recv() => match command {
                            LeadCommand::Interrupt => orders.cancel_because("the user stopped it"),
                            LeadCommand::Shutdown => { closing = true; orders.cancel_because("the user stopped it"); }
                            LeadCommand::Say { blocks } => { let _ = orders.steer(blocks.iter().filter_map(|b| b.as_text()).collect::<String>()); }
                            _ => {}
                        }
                    }
                };
                while let Ok(event) = heard.try_recv() {
                    let _ = door.send(LeadEvent::Agent(event)).await;
                }
                spent = spent.plus(&outcome.usage);
                let _ = door.send(LeadEvent::Reckoning(Reckoning { turn: outcome.usage, session: spent })).await;
                let _ = door.send(LeadEvent::Context { used: outcome.usage.input, window: Some(200_000) }).await;
                let _ = door.send(LeadEvent::TurnEnded { prompt, outcome: Box::new(outcome) }).await;
                let _ = door.send(LeadEvent::Idle).await;
                if closing { break; }
            }
            let _ = door.send(LeadEvent::Closed).await;
        });
    }
}
