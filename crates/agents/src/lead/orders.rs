//! Orders that are carried out between two turns.

use super::command::{LeadCommand, Rewinding};
use super::event::LeadEvent;
use super::life::{Flow, Life, fresh_context};
use crate::compaction::{Plan, Squeeze};
use crate::conversation::{Summarised, Summarising, applied};
use crate::event::AgentEvent;
use crate::session::FileKeeper;
use crate::transcript::Record;
use claw_kernel::tasks;
use claw_providers::usage::Usage;
use claw_tools::read_state::ReadState;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;

impl Life {
    pub(super) async fn carry_out(
        &mut self,
        order: LeadCommand,
        inbox: &mut mpsc::Receiver<LeadCommand>,
    ) -> Flow {
        match order {
            LeadCommand::Say { blocks } => self.hear(blocks).await,
            LeadCommand::Interrupt => {}
            LeadCommand::Tell { run, number, text } => self.hear_end(run, number, text).await,
            LeadCommand::NameTeam { run } => {
                if self.team != Some(run) {
                    self.team = Some(run);
                    return self.record(&[Record::Team { run }]).await;
                }
            }
            LeadCommand::Shutdown => return Flow::Out,
            LeadCommand::Compact { keep } => return self.compact(keep, inbox).await,
            LeadCommand::SetModel { models } => {
                self.setup.models = models;
                self.fullness.forget();
                let model = self.models().first().cloned().unwrap_or_default();
                self.tell(LeadEvent::ModelSet { model }).await;
                self.tell_size().await;
            }
            LeadCommand::SetEffort { effort } => self.setup.effort = effort,
            LeadCommand::SetPermission { permission } => {
                self.setup.permission = permission;
                self.renew_policy();
                self.tell(LeadEvent::PermissionSet { permission }).await;
            }
            LeadCommand::AddDir { path } => self.add_dir(path).await,
            LeadCommand::Rewind { prompt, what } => return self.rewind(prompt, what).await,
            LeadCommand::Clear => return self.clear().await,
            LeadCommand::Rename { name } => {
                let name: String = name.trim().lines().next().unwrap_or_default().chars().take(80).collect();
                self.name = (!name.is_empty()).then(|| name.clone());
                let flow = self.record(&[Record::Named { name: name.clone() }]).await;
                self.tell(LeadEvent::Renamed { name }).await;
                return flow;
            }
        }
        Flow::On
    }

    fn renew_policy(&mut self) {
        let services = &self.setup.services;
        self.context.sandbox = services.sandboxes.policy(
            self.setup.permission.reach,
            &self.setup.workspace,
            &services.protected,
        );
    }

    async fn add_dir(&mut self, path: PathBuf) {
        let at = self.setup.workspace.join(&path);
        match tasks::blocking("add-dir", move || at.canonicalize().map(|at| (at.is_dir(), at))).await {
            Ok(Ok((true, path))) => {
                self.setup.services.sandboxes.add(path.clone());
                self.renew_policy();
                self.tell(LeadEvent::DirAdded { path }).await;
            }
            Ok(Ok((false, path))) => self.refuse("add-dir", format!("{} is no folder", path.display())).await,
            Ok(Err(error)) => self.refuse("add-dir", format!("{}: {error}", path.display())).await,
            Err(failed) => self.refuse("add-dir", failed.to_string()).await,
        }
    }

    /// While the summary is written, the lead still hears that it should stop.
    async fn compact(&mut self, keep: Option<String>, inbox: &mut mpsc::Receiver<LeadCommand>) -> Flow {
        let preserve = self.setup.services.compaction.preserve_recent_messages;
        let messages = self.history.messages();
        let Some(plan) = Plan::of(messages, preserve, self.window(), Squeeze::Usual) else {
            let why = format!(
                "there is nothing to compact yet: {} messages, of which the newest {preserve} stay",
                messages.len()
            );
            self.refuse("compact", why).await;
            return Flow::On;
        };
        let cancel = self.cancel.child_token();
        let summarising = Summarising {
            model: self.setup.services.model.clone(),
            models: self.models(),
            purse: self.setup.purse.clone(),
            idle: self.setup.idle_timeout,
            cancel: cancel.clone(),
            plan,
            keep,
        };
        let mut task = tasks::spawn("compaction", summarising.run());
        let (mut flow, mut open) = (Flow::On, true);
        let done = loop {
            tokio::select! {
                biased;
                done = &mut task => break done,
                order = inbox.recv(), if open => match order {
                    Some(LeadCommand::Interrupt) => cancel.cancel(),
                    None | Some(LeadCommand::Shutdown) => {
                        (flow, open) = (Flow::Out, false);
                        cancel.cancel();
                    }
                    Some(LeadCommand::Say { blocks }) => self.hear(blocks).await,
                    Some(LeadCommand::Tell { run, number, text }) => self.hear_end(run, number, text).await,
                    Some(order) => self.later.push_back(order),
                },
            }
        };
        let done = match done {
            Ok(done) => done,
            Err(failed) => {
                self.refuse("compact", failed.to_string()).await;
                return flow;
            }
        };
        let written = self.compacted_to(&done, cancel.is_cancelled()).await;
        if written == Flow::Out { written } else { flow }
    }

    /// What came of a compaction is on record, and holds where nobody stopped it.
    async fn compacted_to(&mut self, done: &Summarised, is_stopped: bool) -> Flow {
        let mut records = Vec::new();
        if done.usage != Usage::NOTHING {
            self.session_usage = self.session_usage.plus(&done.usage);
            records.push(Record::Usage { usage: done.usage, model: done.model.clone() });
        }
        if is_stopped {
            self.refuse("compact", "stopped; nothing was changed".to_owned()).await;
        } else {
            let (history, record, event) = applied(&self.history, done);
            self.history = history;
            self.fullness.forget();
            records.push(record);
            self.tell(compacted(event)).await;
        }
        let written = self.record(&records).await;
        self.tell_size().await;
        written
    }

    async fn rewind(&mut self, prompt: u32, what: Rewinding) -> Flow {
        if let Err(error) = self.read_again().await {
            return self.broken(&error).await;
        }
        let marks = self.session.as_ref().map(|session| session.loaded.facts.prompts.as_slice());
        let mark = marks.unwrap_or_default().iter().find(|mark| mark.prompt == prompt).cloned();
        let (messages, files) = match what {
            Rewinding::Both => (true, true),
            Rewinding::Messages => (true, false),
            Rewinding::Files => (false, true),
        };
        if prompt == 0 || prompt > self.prompt {
            self.refuse("rewind", format!("there is no prompt {prompt}; the last one is {}", self.prompt))
                .await;
            return Flow::On;
        }
        if messages && mark.is_none() {
            let why =
                format!("prompt {prompt} is no longer part of the history: it was compacted or taken back");
            self.refuse("rewind", why).await;
            return Flow::On;
        }
        if messages {
            if self.record(&[Record::Rewound { prompt }]).await == Flow::Out {
                return Flow::Out;
            }
            if let Err(error) = self.read_again().await {
                return self.broken(&error).await;
            }
        }
        let mut back = Vec::new();
        if files {
            let mut places = self.setup.services.sandboxes.all_writable();
            places.push(self.context.sandbox.workspace().to_owned());
            back = self.keeper.put_back(prompt, places).await;
            // What was read may be another text now.
            self.context.reads = Arc::new(ReadState::new());
        }
        let said = mark.map(|mark| mark.content).unwrap_or_default();
        self.tell(LeadEvent::Rewound { prompt, said, files: back }).await;
        self.tell_size().await;
        Flow::On
    }

    async fn clear(&mut self) -> Flow {
        let Some(old) = &self.session else { return Flow::On };
        let (store, writer) = (old.store.clone(), old.writer.clone());
        let model = self.models().first().cloned().unwrap_or_default();
        let session = match store.create(&writer, &model).await {
            Ok(session) => session,
            Err(error) => {
                self.refuse("clear", error.to_string()).await;
                return Flow::On;
            }
        };
        self.leave().await;
        self.keeper = FileKeeper::new(&session.path, session.transcript.log(), Vec::new());
        self.context = fresh_context(&self.setup, &session);
        self.history = crate::conversation::History::default();
        self.fullness.forget();
        (self.turns, self.prompt, self.title, self.name) = (0, 0, None, None);
        self.team = None;
        self.told_ends.clear();
        (self.turn_usage, self.session_usage) = (Usage::NOTHING, Usage::NOTHING);
        self.session = Some(session);
        self.tell(LeadEvent::Opened(Box::new(self.view()))).await;
        self.tell_size().await;
        self.session_starts("clear").await
    }
}

/// The lead's word for it.
pub(super) fn compacted(event: AgentEvent) -> LeadEvent {
    match event {
        AgentEvent::Compacted { removed, before, after, without_model } => {
            LeadEvent::Compacted { removed, before, after, without_model }
        }
        other => LeadEvent::Agent(other),
    }
}
