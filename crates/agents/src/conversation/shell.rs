//! Carries out what the core decides: transcript, requests, calls, news. Free of the actor library.
//!
//! Owns what runs for a conversation and what it has spent. Must not decide what comes next.

use super::asking::{AskEnd, AskReport, Asking};
use super::calls::{CallDesk, CallReport, ReadyCall};
use super::compacting::{Compacting, Summarised};
use super::core::{AnswerRule, CallResult, Command, Conversation, Event, PlannedCall};
use super::history::History;
use super::offer::Offer;
use super::paying;
use crate::compaction::Fullness;
use crate::effects::CallNo;
use crate::event::AgentEvent;
use crate::outcome::{AgentEnd, AgentOutcome, Denial, FailureClass};
use crate::purse::{Purse, Refused};
use crate::transcript::{End, Record, Transcript};
use claw_kernel::cancel::CancelToken;
use claw_kernel::durable::LogFailed;
use claw_kernel::tasks::{self, panic_message};
use claw_providers::error::{ErrorClass, ProviderError};
use claw_providers::event::Answer;
use claw_providers::message::Block;
use claw_providers::request::{Effort, Request, ToolChoice};
use claw_providers::usage::Usage;
use futures_util::FutureExt;
use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;

/// How long what runs may take to end once it is stopped; then it is dropped.
const GRACE: Duration = Duration::from_millis(1_500);

/// Where tasks post their ends: the conversation's mailbox.
pub(crate) type Post = Arc<dyn Fn(Finished) + Send + Sync>;

/// A task ended. `epoch` tells whether anybody still waits for it.
pub(crate) enum Finished {
    Request {
        epoch: u64,
        report: AskReport,
    },
    Call {
        call: CallNo,
        report: Box<CallReport>,
    },
    /// Whether it may end.
    EndJudged {
        epoch: u64,
        refused: Option<String>,
    },
    /// The summary of a compaction is there.
    Summarised {
        epoch: u64,
        done: Box<Summarised>,
    },
    /// What was stopped had its time.
    Grace {
        epoch: u64,
    },
}

/// The fixed part of every request.
pub(crate) struct RequestShape {
    pub(crate) models: Arc<[String]>,
    pub(crate) system: Arc<str>,
    pub(crate) tools: Arc<[claw_providers::request::ToolSpec]>,
    pub(crate) effort: Option<Effort>,
    pub(crate) answer: AnswerRule,
    pub(crate) idle: Duration,
    /// What requests are paid from.
    pub(crate) purse: Option<Arc<dyn Purse>>,
}

/// One conversation with all that it holds.
pub(crate) struct Shell {
    pub(crate) core: Conversation,
    pub(crate) desk: Arc<CallDesk>,
    pub(crate) shape: RequestShape,
    pub(crate) offer: Offer,
    pub(crate) transcript: Transcript,
    pub(crate) cancel: CancelToken,
    pub(crate) running: Running,
    pub(crate) spent: Spent,
    pub(crate) compacting: Compacting,
    /// What a tool left running in the background outlives this conversation: it ends with its owner.
    pub(crate) leaves_work: bool,
}

/// What runs at the moment.
#[derive(Default)]
pub(crate) struct Running {
    epoch: u64,
    work: Option<CancelToken>,
    tasks: HashMap<Option<CallNo>, AbortHandle>,
    /// Records that are not written yet.
    unwritten: Vec<u8>,
    log_is_broken: bool,
}

/// What is left of a conversation that ended.
pub(crate) struct Remains {
    pub(crate) history: History,
    pub(crate) transcript: Transcript,
    pub(crate) fullness: Fullness,
}

/// What the outcome tells.
pub(crate) struct Spent {
    pub(crate) usage: Usage,
    pub(crate) tool_calls: BTreeMap<String, u32>,
    pub(crate) denials: Vec<Denial>,
    pub(crate) model: Option<String>,
}

impl Default for Spent {
    fn default() -> Self {
        Self { usage: Usage::NOTHING, tool_calls: BTreeMap::new(), denials: Vec::new(), model: None }
    }
}

impl Shell {
    /// Gives a fact to the core and carries out what it says. The outcome, once there is one.
    pub(crate) async fn on(&mut self, event: Event, post: &Post) -> Option<AgentOutcome> {
        let commands = self.core.on(event);
        self.carry_out_all(commands, post).await
    }

    async fn carry_out_all(&mut self, mut commands: Vec<Command>, post: &Post) -> Option<AgentOutcome> {
        loop {
            let mut failed = None;
            for command in commands {
                match self.carry_out(command, post).await {
                    Ok(None) => {}
                    Ok(Some(outcome)) => return Some(outcome),
                    Err(error) => {
                        failed = Some(error);
                        break;
                    }
                }
            }
            commands = match failed {
                None => return None,
                Some(error) => self.log_broke(&error.to_string()),
            };
        }
    }

    /// See `log_broke`.
    pub(super) async fn broken_log(&mut self, why: &str, post: &Post) -> Option<AgentOutcome> {
        let commands = self.log_broke(why);
        self.carry_out_all(commands, post).await
    }

    /// A log that cannot be written ends the conversation: what runs is stopped first.
    fn log_broke(&mut self, why: &str) -> Vec<Command> {
        self.running.log_is_broken = true;
        self.running.unwritten.clear();
        let end = failed(FailureClass::Tool, why.to_owned());
        if self.running.tasks.is_empty() {
            return vec![Command::End(end)];
        }
        self.core.on(Event::Stopped { end, say: "not run: the transcript could not be written".to_owned() })
    }

    /// A task's end, as a fact.
    pub(crate) async fn finished(&mut self, finished: Finished, post: &Post) -> Option<AgentOutcome> {
        match finished {
            Finished::Request { epoch, report } if epoch == self.running.epoch => {
                self.running.tasks.remove(&None);
                if self.makes_room(&report, post) {
                    return None;
                }
                let event = self.request_ended(report);
                self.on(event, post).await
            }
            Finished::Summarised { epoch, done } if epoch == self.running.epoch => {
                self.running.tasks.remove(&None);
                self.summarised(*done, post).await
            }
            Finished::Call { call, report } if self.core.awaits(call) => {
                self.running.tasks.remove(&Some(call));
                self.spent.denials.extend(report.denial);
                if let Some(decided) = &report.decided {
                    self.write(decided);
                }
                if let Some(failed) = report.log_failed {
                    // The result is not lost for that.
                    let end = self::failed(FailureClass::Tool, failed.to_string());
                    let say = "cancelled because the journal could not be written".to_owned();
                    let outcome = self.on(Event::Stopped { end, say }, post).await;
                    if outcome.is_some() {
                        return outcome;
                    }
                }
                self.on(Event::CallEnded { call, result: report.result }, post).await
            }
            Finished::EndJudged { epoch, refused } if epoch == self.running.epoch => {
                self.running.tasks.remove(&None);
                self.on(Event::EndJudged(refused), post).await
            }
            Finished::Grace { epoch } if epoch == self.running.epoch => self.give_up(post).await,
            // Stale: nobody waits for it any more.
            Finished::Request { .. }
            | Finished::Summarised { .. }
            | Finished::Call { .. }
            | Finished::EndJudged { .. }
            | Finished::Grace { .. } => None,
        }
    }

    /// Drops what did not end in time.
    async fn give_up(&mut self, post: &Post) -> Option<AgentOutcome> {
        let late: Vec<(Option<CallNo>, AbortHandle)> = self.running.tasks.drain().collect();
        for (call, task) in late {
            task.abort();
            let event = match call {
                Some(call) => Event::CallEnded { call, result: CallReport::cancelled().result },
                None => Event::RequestFailed(AgentEnd::Cancelled),
            };
            let outcome = self.on(event, post).await;
            if outcome.is_some() {
                return outcome;
            }
        }
        None
    }

    fn request_ended(&mut self, report: AskReport) -> Event {
        for blocks in report.abandoned {
            self.write(&Record::Abandoned { blocks });
        }
        match report.end {
            AskEnd::Answered(answer) => {
                self.spend(answer.usage, Some(answer.model.clone()));
                self.compacting.overflows = 0;
                if answer.attempts == 1 {
                    let covered = self.core.history().messages().len() + 1;
                    self.compacting.fullness.count(&answer.usage, covered);
                }
                let text_calls = self.writes_calls_as_text(&answer);
                Event::Answered { answer, text_calls }
            }
            AskEnd::Failed(error) => {
                self.spend(error.usage, None);
                let ProviderError { partial, .. } = &*error;
                if !partial.is_empty() {
                    self.write(&Record::Abandoned { blocks: partial.clone() });
                }
                Event::RequestFailed(self.provider_failed(&error))
            }
            AskEnd::Silent(idle, usage) => {
                if let Some(usage) = usage.filter(|usage| *usage != Usage::NOTHING) {
                    self.spend(usage, None);
                }
                let message = format!("no data from the model for {} s (idle_timeout)", idle.as_secs());
                Event::RequestFailed(failed(FailureClass::Timeout, message))
            }
            AskEnd::Unaffordable(Refused::Limit(message)) => {
                Event::RequestFailed(failed(FailureClass::Limit, message))
            }
            AskEnd::Unaffordable(Refused::Run(reason)) => {
                Event::RequestFailed(AgentEnd::OutOfBudget { reason })
            }
            AskEnd::Panicked(message) => {
                Event::RequestFailed(failed(FailureClass::Panic, format!("a request died: {message}")))
            }
        }
    }

    fn writes_calls_as_text(&self, answer: &Answer) -> bool {
        let model = format!("{}/{}", answer.provider, answer.model);
        self.desk.services.model.traits_of(&model).text_tool_calls
    }

    fn provider_failed(&self, error: &ProviderError) -> AgentEnd {
        let class = match error.class {
            ErrorClass::Transient => FailureClass::Transient,
            ErrorClass::RateLimit => FailureClass::RateLimit,
            ErrorClass::Overloaded => FailureClass::Overloaded,
            ErrorClass::Timeout => FailureClass::Timeout,
            ErrorClass::Quota => FailureClass::Quota,
            ErrorClass::Auth => FailureClass::Auth,
            ErrorClass::ContextOverflow | ErrorClass::Refused | ErrorClass::UnknownModel => {
                FailureClass::Refused
            }
            ErrorClass::Cancelled => return AgentEnd::Cancelled,
        };
        let partial: String = error.partial.iter().filter_map(Block::as_text).collect();
        AgentEnd::Failed {
            class,
            message: self.desk.services.redactor.apply(&error.to_string()).into_owned(),
            partial: (!partial.is_empty()).then_some(partial),
            retry_at: error.retry_at,
        }
    }

    pub(super) fn spend(&mut self, usage: Usage, model: Option<String>) {
        self.spent.usage = self.spent.usage.plus(&usage);
        self.write(&Record::Usage { usage, model: model.clone() });
        self.spent.model = model.or_else(|| self.spent.model.take());
    }

    pub(super) fn write(&mut self, record: &Record) {
        if !self.running.log_is_broken {
            self.running.unwritten.extend(record.line());
        }
    }

    pub(super) async fn flush(&mut self) -> Result<(), LogFailed> {
        let records = std::mem::take(&mut self.running.unwritten);
        if records.is_empty() { Ok(()) } else { self.transcript.append_lines(records).await }
    }

    async fn carry_out(&mut self, command: Command, post: &Post) -> Result<Option<AgentOutcome>, LogFailed> {
        match command {
            Command::Keep { turn, message, stop } => self.write(&Record::Message { turn, message, stop }),
            Command::KeepAbandoned(blocks) => {
                if !blocks.is_empty() {
                    self.write(&Record::Abandoned { blocks });
                }
            }
            Command::TurnKept(turn) => {
                self.flush().await?;
                let bytes = self.transcript.bytes();
                self.tell(AgentEvent::TurnKept { turn, bytes, usage: self.spent.usage }).await;
            }
            Command::Answered { turn, text } => {
                self.flush().await?;
                self.tell(AgentEvent::Answered { turn, text, usage: self.spent.usage }).await;
                let used = self.compacting.fullness.used(self.core.history().messages());
                self.tell(AgentEvent::Context { used, window: self.window() }).await;
            }
            Command::Refused { no, tool, result } => self.refused(no, tool, result).await,
            Command::Ask { turn, forced } => {
                self.flush().await?;
                self.ask_with_room(turn, forced, post).await;
            }
            Command::Run(calls) => {
                self.flush().await?;
                return Ok(self.run(calls, post).await);
            }
            Command::AskToEnd { last, again } => {
                self.flush().await?;
                self.ask_to_end(last, again, post);
            }
            Command::StopWork => self.stop_work(post),
            Command::End(end) => return self.end(end).await.map(Some),
        }
        Ok(None)
    }

    pub(super) async fn tell(&self, event: AgentEvent) {
        self.desk.events.send(event).await;
    }

    fn count_call(&mut self, tool: &str) {
        *self.spent.tool_calls.entry(tool.to_owned()).or_default() += 1;
    }

    async fn refused(&mut self, call: CallNo, tool: String, result: String) {
        // Only tools that exist are counted: a name that a model makes up is no key.
        if let Some(known) = self.desk.services.registry.current().canonical(&tool) {
            self.count_call(known);
        }
        self.tell(AgentEvent::ToolStarted { call, tool: tool.clone(), subject: String::new() }).await;
        self.tell(AgentEvent::ToolEnded { call, tool, is_error: true, result, patch: Vec::new() }).await;
    }

    pub(super) async fn ask(&mut self, turn: u32, forced: Option<&'static str>, post: &Post) {
        self.look_at_tools();
        let shape = &self.shape;
        let model = shape.models.first().cloned().unwrap_or_default();
        // A forced tool and thinking exclude each other with some services.
        let tool_choice = match forced {
            Some(tool) if shape.effort.is_none() => ToolChoice::Tool(tool.to_owned()),
            Some(_) | None => ToolChoice::Auto,
        };
        let answer_schema = match &shape.answer {
            AnswerRule::Document(schema) => Some(schema.schema().clone()),
            AnswerRule::Text | AnswerRule::Call(_) => None,
        };
        let request = Request {
            models: shape.models.clone(),
            system: shape.system.clone(),
            messages: self.core.history().messages().to_vec(),
            tools: shape.tools.clone(),
            tool_choice,
            max_output: None,
            effort: shape.effort,
            answer_schema,
        };
        let (idle, events) = (shape.idle, self.desk.events.clone());
        let cancel = self.begin_work();
        self.tell(AgentEvent::TurnStarted { turn, model }).await;
        tracing::debug!(agent = %self.desk.label, turn, messages = request.messages.len(), "asks");
        let asking = Asking { model: self.desk.services.model.clone(), request, idle, events, cancel };
        let (post, epoch, purse) = (post.clone(), self.running.epoch, self.shape.purse.clone());
        let task = tasks::spawn("request", async move {
            let paid = async {
                match &purse {
                    Some(purse) => paying::ask(asking, &**purse).await,
                    None => asking.run().await,
                }
            };
            let report = AssertUnwindSafe(paid).catch_unwind().await.unwrap_or_else(|panic| {
                AskReport::without_news(AskEnd::Panicked(panic_message(panic.as_ref())))
            });
            post(Finished::Request { epoch, report });
        });
        self.running.tasks.insert(None, task.abort_handle());
    }

    /// Tools that came, went or were asked for since the last request.
    fn look_at_tools(&mut self) {
        let (services, state) = (&self.desk.services, &self.desk.context.state);
        if let Some(toolbox) = self.offer.changed(self.core.toolbox(), services, state) {
            self.shape.tools = toolbox.specs().clone();
            self.core.set_toolbox(toolbox);
        }
    }

    pub(super) fn epoch(&self) -> u64 {
        self.running.epoch
    }

    /// What stands in the place of a request.
    pub(super) fn running_request(&mut self, task: AbortHandle) {
        self.running.tasks.insert(None, task);
    }

    pub(super) fn begin_work(&mut self) -> CancelToken {
        self.running.epoch += 1;
        let work = self.cancel.child_token();
        self.running.work = Some(work.clone());
        work
    }

    async fn run(&mut self, calls: Vec<PlannedCall>, post: &Post) -> Option<AgentOutcome> {
        let cancel = self.begin_work();
        for call in &calls {
            self.count_call(call.tool);
        }
        for call in self.desk.ready(calls, &cancel) {
            let no = call.no;
            let task = start_call(self.desk.clone(), call, cancel.clone(), post.clone());
            self.running.tasks.insert(Some(no), task);
        }
        None
    }

    fn ask_to_end(&mut self, last: String, again: bool, post: &Post) {
        let cancel = self.begin_work();
        let (post, epoch, desk) = (post.clone(), self.running.epoch, self.desk.clone());
        let task = tasks::spawn("end", async move {
            let judged = AssertUnwindSafe(desk.may_end(last, again, &cancel)).catch_unwind().await;
            // A hook that breaks does not keep a conversation alive.
            post(Finished::EndJudged { epoch, refused: judged.unwrap_or_default() });
        });
        self.running.tasks.insert(None, task.abort_handle());
    }

    fn stop_work(&mut self, post: &Post) {
        if let Some(work) = self.running.work.take() {
            work.cancel();
        }
        let (post, epoch) = (post.clone(), self.running.epoch);
        let grace = tasks::spawn("grace", async move {
            tokio::time::sleep(GRACE).await;
            post(Finished::Grace { epoch });
        });
        // It ends by itself; a stale one is dropped.
        drop(grace);
    }

    async fn end(&mut self, end: AgentEnd) -> Result<AgentOutcome, LogFailed> {
        // What a tool left running in the background ends with its conversation.
        if !self.leaves_work {
            self.cancel.cancel();
            self.desk.context.state.end().await;
        }
        let record = match &end {
            AgentEnd::Completed { text, output } => {
                End::Completed { text: text.clone(), output: output.clone() }
            }
            AgentEnd::Failed { message, .. } => End::Failed { message: message.clone() },
            AgentEnd::OutOfBudget { reason } => End::Failed { message: reason.clone() },
            AgentEnd::Cancelled => End::Cancelled,
        };
        self.write(&Record::End(record));
        self.flush().await?;
        Ok(self.outcome(end))
    }

    /// The conversation itself broke: what runs is dropped.
    pub(crate) fn died(&mut self, end: AgentEnd) -> AgentOutcome {
        self.cancel.cancel();
        self.desk.context.state.over().cancel();
        for task in self.running.tasks.drain().map(|(_, task)| task) {
            task.abort();
        }
        self.outcome(end)
    }

    /// What a later conversation goes on from.
    pub(crate) fn remains(self) -> Remains {
        Remains {
            history: self.core.into_history(),
            transcript: self.transcript,
            fullness: self.compacting.fullness,
        }
    }

    fn outcome(&mut self, end: AgentEnd) -> AgentOutcome {
        AgentOutcome {
            end,
            usage: self.spent.usage,
            turns: self.core.turn(),
            tool_calls: std::mem::take(&mut self.spent.tool_calls),
            denials: std::mem::take(&mut self.spent.denials),
            model: self.spent.model.take(),
        }
    }
}

fn start_call(desk: Arc<CallDesk>, call: ReadyCall, cancel: CancelToken, post: Post) -> AbortHandle {
    let no = call.no;
    let task = tasks::spawn("tool", async move {
        let run = AssertUnwindSafe(desk.run(call, cancel)).catch_unwind().await;
        let report = run.unwrap_or_else(|panic| {
            let words = panic_message(panic.as_ref());
            CallReport::of(CallResult::error(format!("the tool failed unexpectedly: {words}")))
        });
        post(Finished::Call { call: no, report: Box::new(report) });
    });
    task.abort_handle()
}

pub(crate) fn failed(class: FailureClass, message: String) -> AgentEnd {
    AgentEnd::Failed { class, message, partial: None, retry_at: None }
}
