//! One turn of the lead: a conversation from a prompt to its end, and what is ordered meanwhile.

use super::command::LeadCommand;
use super::event::LeadEvent;
use super::life::{Flow, Life, Waiting, Wrapped};
use crate::conversation::{AnswerRule, Beginning, Ended, Heard, Orders, Remains, ToUser, run};
use crate::event::EventSink;
use crate::outcome::{AgentEnd, FailureClass};
use crate::session::Held;
use crate::start::{Past, assemble, scene};
use crate::transcript::{Record, Transcript, first_line};
use claw_kernel::clock;
use claw_kernel::ids::RunId;
use claw_kernel::tasks::{self, TaskHandle};
use claw_providers::message::{Block, Message, Role};
use std::sync::Arc;
use tokio::sync::mpsc;

/// The result of a call that a stop left without one.
const CANCELLED: &str = "cancelled by user";

/// What was ordered during a turn.
#[derive(Default)]
struct Meanwhile {
    said: Vec<(Vec<Block>, Heard)>,
    interrupted: bool,
    out: bool,
    /// Of agents in the background: for the time between two turns.
    told: Vec<LeadCommand>,
}

impl Life {
    /// `told`: ends of agents in the background, before what the person says; one of the two is not empty.
    pub(super) async fn turn(
        &mut self,
        (told, said): (Vec<(RunId, u32, String)>, Vec<Block>),
        inbox: &mut mpsc::Receiver<LeadCommand>,
    ) -> Flow {
        let mut records = Vec::new();
        for (run, number, text) in &told {
            records.push(Record::Told { run: *run, number: *number, text: text.clone() });
            self.history.push(Message::user(text.clone()));
            self.told_ends.insert((*run, *number));
        }
        if !said.is_empty() {
            self.prompt += 1;
            self.keeper.begin(self.prompt);
            self.title = self.title.take().or_else(|| first_line(&said));
            records.push(Record::Said { prompt: self.prompt, at: clock::now(), content: said.clone() });
            self.history.push(Message { role: Role::User, content: said });
        }
        if self.record(&records).await == Flow::Out {
            return Flow::Out;
        }
        for (run, number, _) in told {
            self.tell(LeadEvent::Told { run, number }).await;
        }
        self.tell(LeadEvent::TurnStarted { prompt: self.prompt }).await;
        let Some(session) = self.session.take() else { return Flow::Out };
        let (transcript, held) = session.split();
        let (orders, task) = self.begin(transcript, &held);
        let (ended, meanwhile) = self.watch(task, &orders, inbox).await;
        self.after(ended, held, meanwhile).await
    }

    fn begin(&mut self, transcript: Transcript, held: &Held) -> (Orders, TaskHandle<Ended>) {
        let past = Past {
            history: std::mem::take(&mut self.history),
            transcript,
            turns: self.turns,
            turns_before: self.turns,
            fullness: std::mem::take(&mut self.fullness),
            has_owner: true,
        };
        let events: Arc<dyn EventSink> = Arc::new(Wrapped(self.door.clone()));
        // The conversation ends what it runs; what it leaves behind belongs to the session.
        let mut context = self.context.clone();
        context.cancel = self.context.cancel.child_token();
        context.messenger = Some(Arc::new(ToUser(events.clone())));
        let (services, request) = (
            self.setup.services.clone(),
            self.setup.request(held.path.clone(), Arc::new(self.keeper.clone())),
        );
        let scene = scene(&request);
        let shell = assemble(services, (request, &scene), (events, context), AnswerRule::Text, past);
        let (orders, steering) = Orders::new(claw_kernel::cancel::CancelToken::new());
        let own = orders.clone();
        let task =
            tasks::spawn("turn", async move { run(shell, Beginning::default(), &own, steering).await });
        (orders, task)
    }

    async fn watch(
        &mut self,
        mut task: TaskHandle<Ended>,
        orders: &Orders,
        inbox: &mut mpsc::Receiver<LeadCommand>,
    ) -> (Option<Ended>, Meanwhile) {
        let mut meanwhile = Meanwhile::default();
        let cancel = self.cancel.clone();
        loop {
            tokio::select! {
                biased;
                ended = &mut task => return (ended.ok(), meanwhile),
                () = cancel.cancelled(), if !meanwhile.out => {
                    meanwhile.out = true;
                    let cause = self.cause.get().map_or("the session ends", String::as_str);
                    orders.cancel_because(cause);
                }
                order = inbox.recv(), if !meanwhile.out => {
                    self.ordered(order.unwrap_or(LeadCommand::Shutdown), orders, &mut meanwhile);
                }
            }
        }
    }

    fn ordered(&mut self, order: LeadCommand, orders: &Orders, meanwhile: &mut Meanwhile) {
        match order {
            LeadCommand::Say { blocks } => {
                let blocks = self.said(blocks);
                if blocks.is_empty() {
                    return;
                }
                match orders.say(blocks.clone()) {
                    Ok(heard) => meanwhile.said.push((blocks, heard)),
                    Err(_) => self.waiting.push_back(Waiting::Said(blocks)),
                }
            }
            LeadCommand::Tell { .. } | LeadCommand::NameTeam { .. } => meanwhile.told.push(order),
            LeadCommand::Interrupt => {
                meanwhile.interrupted = true;
                orders.stop();
            }
            LeadCommand::Shutdown => {
                meanwhile.out = true;
                orders.stop();
            }
            order @ (LeadCommand::Compact { .. }
            | LeadCommand::SetModel { .. }
            | LeadCommand::SetEffort { .. }
            | LeadCommand::SetPermission { .. }
            | LeadCommand::AddDir { .. }
            | LeadCommand::Rewind { .. }
            | LeadCommand::Clear
            | LeadCommand::Rename { .. }) => self.later.push_back(order),
        }
    }

    async fn after(&mut self, ended: Option<Ended>, held: Held, meanwhile: Meanwhile) -> Flow {
        let Meanwhile { said, interrupted, out, told } = meanwhile;
        let (mut outcome, remains) = match ended {
            Some(Ended { outcome, remains }) => (outcome, remains),
            None => {
                let message = "the turn died".to_owned();
                let end = crate::conversation::failed(FailureClass::Panic, message);
                (crate::conversation::without_work(end), None)
            }
        };
        let is_dead = matches!(&outcome.end, AgentEnd::Failed { class: FailureClass::Panic, .. });
        let before = self.turns;
        self.turns = self.turns.max(outcome.turns);
        outcome.turns = outcome.turns.saturating_sub(before);
        self.spend(&outcome);
        let mut flow = self.take_back(held, remains, is_dead).await;
        let prompt = self.prompt;
        self.tell(LeadEvent::TurnEnded { prompt, outcome: Box::new(outcome) }).await;
        self.tell_size().await;
        let unheard = said.into_iter().filter(|(_, heard)| !heard.is_heard()).map(|(blocks, _)| blocks);
        let mut messages: Vec<Vec<Block>> = unheard.collect();
        if interrupted || out {
            for one in std::mem::take(&mut self.waiting) {
                match one {
                    Waiting::Said(blocks) => messages.push(blocks),
                    told @ Waiting::Told { .. } => self.waiting.push_back(told),
                }
            }
            if !messages.is_empty() {
                self.tell(LeadEvent::Unheard { messages }).await;
            }
        } else {
            let behind = std::mem::take(&mut self.waiting);
            self.waiting = messages.into_iter().map(Waiting::Said).chain(behind).collect();
        }
        // Said at once, so that whoever waits for the word gets it.
        for order in told.into_iter().rev() {
            self.later.push_front(order);
        }
        if is_dead && flow == Flow::On {
            flow = self.died().await;
        }
        if out { Flow::Out } else { flow }
    }

    /// The session is at rest again, its history fit to be sent. A turn that died left nothing but the file.
    async fn take_back(&mut self, held: Held, remains: Option<Remains>, is_dead: bool) -> Flow {
        match remains {
            Some(Remains { history, transcript, fullness }) => {
                self.session = Some(held.with(transcript));
                self.history = history;
                self.fullness = fullness;
            }
            None => match Transcript::again(&held.path, &held.writer) {
                Ok(transcript) => self.session = Some(held.with(transcript)),
                Err(failed) => return self.broken(&failed.into()).await,
            },
        }
        if is_dead {
            return match self.read_again().await {
                Ok(()) => Flow::On,
                Err(error) => self.broken(&error).await,
            };
        }
        self.settle().await
    }

    /// Calls that a stop left open are told so.
    async fn settle(&mut self) -> Flow {
        let open: Vec<Block> = match self.history.last() {
            Some(last) if last.role == Role::Assistant => last.content.iter().filter_map(cancelled).collect(),
            Some(_) | None => Vec::new(),
        };
        if open.is_empty() {
            return Flow::On;
        }
        let message = Message { role: Role::User, content: open };
        self.history.push(message.clone());
        self.record(&[Record::Message { turn: self.turns, message, stop: None }]).await
    }
}

fn cancelled(block: &Block) -> Option<Block> {
    match block {
        Block::ToolUse { id, .. } => Some(Block::ToolResult {
            tool_use_id: id.clone(),
            content: CANCELLED.to_owned(),
            images: Vec::new(),
            is_error: true,
        }),
        Block::Text { .. }
        | Block::Thinking { .. }
        | Block::RedactedThinking { .. }
        | Block::ToolResult { .. }
        | Block::Image(_) => None,
    }
}
