//! Starts the conversation, shows what it does, prints what it says.

use super::{question, shapes, tee::Tee};
use crate::args::{Format, PrintFlags, TalkFlags};
use crate::commands::runtime::block_on;
use crate::error::{ExpectedError, exit};
use crate::services::{Setup, ToolFlags, config_home};
use crate::signals::{Ending, Signals};
use crate::terminal::{Stdout, say, stderr_is_terminal, write_answer, write_stdout};
use claw_agents::effects::{CallNo, EffectLog, EffectLogFailed};
use claw_agents::event::AgentEvent;
use claw_agents::hooks::HookState;
use claw_agents::outcome::{AgentEnd, AgentOutcome, FailureClass};
use claw_agents::permission::{NobodyToAsk, Permission};
use claw_agents::request::AgentRequest;
use claw_agents::roles::lead;
use claw_agents::services::AgentServices;
use claw_agents::{Orders, RunningAgent, offered};
use claw_kernel::cancel::CancelToken;
use claw_kernel::digest::Digest;
use claw_kernel::durable;
use claw_kernel::ids::{AgentId, SessionId};
use claw_kernel::safe_name;
use claw_kernel::visible::visible_line;
use futures_util::future::BoxFuture;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::Instant as Timer;

/// No provider byte and no tool running for so long ends the conversation.
const IDLE: Duration = Duration::from_secs(300);
/// From the second signal to the end of the process: commands are killed at once, the transcript gets the rest.
const LAST_MOMENT: Duration = Duration::from_millis(180);
/// From the first signal to the same: what does not obey until then holds nobody up.
const PATIENCE: Duration = Duration::from_secs(2);
/// News that may wait for the screen.
const NEWS: usize = 64;

/// What is decided before anything starts.
struct Talk {
    setup: Setup,
    prompt: String,
    flags: TalkFlags,
    permission: Permission,
    model: String,
    tools: Option<Vec<String>>,
    deny: Vec<String>,
    session: SessionId,
}

/// One question, one answer.
///
/// # Errors
/// Arguments, credentials, streams; the conversation's own failure is an exit code.
pub fn run(flags: PrintFlags) -> Result<u8, ExpectedError> {
    let PrintFlags { text, talk: flags } = flags;
    let mut setup = Setup::read_with(flags.cwd.as_deref(), &flags.settings)?;
    setup.origin.tell(&setup.settings);
    let permission = setup.permission(flags.permission_mode, flags.allow_root)?;
    let ToolFlags { offered: tools, denied: deny } =
        setup.tool_flags(&flags.allowed_tools, &flags.disallowed_tools)?;
    let model = setup.model(flags.model.as_deref());
    setup.check_model(&model)?;
    let talk = Talk {
        prompt: question::whole(text)?,
        tools: (!tools.is_empty()).then_some(tools),
        session: SessionId::fresh(),
        setup,
        flags,
        permission,
        model,
        deny,
    };
    block_on(talk.go())
}

impl Talk {
    fn format(&self) -> Format {
        self.flags.output_format.unwrap_or_default()
    }

    async fn go(self) -> Result<u8, ExpectedError> {
        let started = Instant::now();
        let mut signals = Signals::listen()?;
        let out = (self.format() == Format::StreamJson).then(|| Arc::new(Stdout::start()));
        let cancel = CancelToken::new();
        let (door, news) = mpsc::channel(NEWS);
        let (agent, services) = self.start(out.as_ref(), door, &cancel).await?;
        let (outcome, ending) = self.watch(agent, news, &mut signals, out.as_deref()).await;
        services.mcp.stop().await;
        services.sandboxes.close();
        self.tell(outcome, ending, out, started.elapsed()).await
    }

    async fn start(
        &self,
        out: Option<&Arc<Stdout>>,
        door: mpsc::Sender<AgentEvent>,
        cancel: &CancelToken,
    ) -> Result<(RunningAgent, Arc<AgentServices>), ExpectedError> {
        let logs = self.setup.logs()?;
        let state = config_home();
        let mut services =
            self.setup.agent_services(Arc::new(NobodyToAsk), logs, vec![state.clone()], Vec::new())?;
        let request = self.request(&state)?;
        if let Some(out) = out {
            services.mcp.settle().await;
            let offered = offered(
                &services.registry.current(),
                &request.definition,
                request.tools.as_deref(),
                &request.deny_tools,
            );
            let cwd = self.setup.cwd.display().to_string();
            let init = shapes::init(self.session, &cwd, &self.model, &self.permission.to_string(), &offered);
            // That nobody reads is noticed while it runs.
            let _ = out.line(init.to_string()).await;
            let partial = self.flags.include_partial_messages;
            services.model =
                Arc::new(Tee { inner: services.model, out: out.clone(), session: self.session, partial });
        }
        let services = Arc::new(services);
        Ok((claw_agents::start(Arc::clone(&services), request, Arc::new(door), cancel.clone()), services))
    }

    fn request(&self, state: &std::path::Path) -> Result<AgentRequest, ExpectedError> {
        let project = state.join("projects").join(safe_name::encode(&self.setup.cwd.to_string_lossy()));
        durable::private_dir(&project)
            .map_err(|source| ExpectedError::CannotWrite { path: project.clone(), source })?;
        let spill: PathBuf = project.join(format!("{}.outputs", self.session));
        Ok(AgentRequest {
            id: AgentId::fresh(),
            label: "claw".to_owned(),
            definition: Arc::new(lead()),
            prompt: self.prompt.clone(),
            fault: None,
            system_append: self.flags.append_system_prompt.clone(),
            models: vec![self.model.clone()],
            effort: None,
            tools: self.tools.clone(),
            deny_tools: self.deny.clone(),
            permission: self.permission,
            max_turns: self.flags.max_turns,
            output_schema: None,
            workspace: self.setup.cwd.clone(),
            readable: Vec::new(),
            transcript: project.join(format!("{}.jsonl", self.session)),
            spill,
            idle_timeout: IDLE,
            effects: Arc::new(NoJournal),
            purse: None,
            spawner: None,
        })
    }

    /// Until the conversation is over; after a signal two seconds at most, after a second one at once.
    async fn watch(
        &self,
        agent: RunningAgent,
        mut news: mpsc::Receiver<AgentEvent>,
        signals: &mut Signals,
        out: Option<&Stdout>,
    ) -> (Option<AgentOutcome>, Option<Ending>) {
        let orders: Orders = agent.orders();
        let shows = stderr_is_terminal();
        let never = CancelToken::new();
        let gone = out.map_or(&never, Stdout::gone);
        let mut ending: Option<Ending> = None;
        let outcome = agent.outcome();
        tokio::pin!(outcome);
        let mut told: Option<Timer> = None;
        loop {
            tokio::select! {
                outcome = &mut outcome => {
                    while let Ok(event) = news.try_recv() {
                        show(&event, shows);
                    }
                    return (Some(outcome), ending);
                }
                Some(event) = news.recv() => show(&event, shows),
                signal = signals.next() => {
                    if ending.is_some() {
                        return (last_moment(outcome).await, ending);
                    }
                    ending = Some(signal);
                    told = Some(Timer::now());
                    orders.cancel_because("the user stopped it");
                }
                () = gone.cancelled(), if ending.is_none() => {
                    ending = Some(Ending::Pipe);
                    told = Some(Timer::now());
                    orders.cancel_because("nobody reads the answer");
                }
                () = patience(told) => return (last_moment(outcome).await, ending),
            }
        }
    }

    async fn tell(
        &self,
        outcome: Option<AgentOutcome>,
        ending: Option<Ending>,
        out: Option<Arc<Stdout>>,
        took: Duration,
    ) -> Result<u8, ExpectedError> {
        let Some(outcome) = outcome else {
            return Ok(ending.map_or(exit::FAULT, Ending::exit_code));
        };
        let result = shapes::result(self.session, &outcome, took);
        match (self.format(), out) {
            (Format::StreamJson, Some(out)) => {
                // The error that counts comes from the flush.
                let _ = out.line(result.to_string()).await;
                out.flush().await?;
            }
            (Format::Json | Format::StreamJson, _) => write_stdout(format!("{result}\n"))?,
            (Format::Text, _) => print_text(&outcome)?,
        }
        Ok(exit_code(&outcome.end, ending))
    }
}

/// How long a conversation that was told to end may take.
async fn patience(told: Option<Timer>) {
    match told {
        Some(told) => tokio::time::sleep_until(told + PATIENCE).await,
        None => std::future::pending().await,
    }
}

/// Kills what runs; the transcript gets what time is left.
async fn last_moment(outcome: impl Future<Output = AgentOutcome>) -> Option<AgentOutcome> {
    claw_tools::process::no_more_grace();
    tokio::time::timeout(LAST_MOMENT, outcome).await.ok()
}

fn print_text(outcome: &AgentOutcome) -> Result<(), ExpectedError> {
    for denial in &outcome.denials {
        say(&format!(
            "denied: {} {}: {}\n",
            denial.tool,
            visible_line(&denial.subject),
            visible_line(&denial.reason)
        ));
    }
    match &outcome.end {
        AgentEnd::Completed { text, output } => {
            let text = output.as_ref().map_or_else(|| text.clone(), ToString::to_string);
            write_answer(&format!("{}\n", text.trim_end_matches('\n')))
        }
        AgentEnd::Failed { message, partial, .. } => {
            if let Some(partial) = partial.as_ref().filter(|text| !text.trim().is_empty()) {
                say(&format!(
                    "note: the answer broke off; until then it said:\n{}\n",
                    claw_kernel::visible::visible(partial)
                ));
            }
            say(&format!("error: {}\n", claw_kernel::visible::visible(message)));
            Ok(())
        }
        AgentEnd::OutOfBudget { reason } => {
            say(&format!("error: {}\n", claw_kernel::visible::visible(reason)));
            Ok(())
        }
        AgentEnd::Cancelled => {
            say("cancelled\n");
            Ok(())
        }
    }
}

fn exit_code(end: &AgentEnd, ending: Option<Ending>) -> u8 {
    match (ending, end) {
        (Some(ending), _) => ending.exit_code(),
        (None, AgentEnd::Completed { .. }) => exit::OK,
        (None, AgentEnd::Failed { class: FailureClass::Limit, .. } | AgentEnd::OutOfBudget { .. }) => {
            exit::LIMIT
        }
        (None, AgentEnd::Failed { class: FailureClass::Quota | FailureClass::Auth, .. }) => exit::PAUSED,
        (None, AgentEnd::Failed { class: FailureClass::Panic, .. }) => exit::FAULT,
        (None, AgentEnd::Failed { .. } | AgentEnd::Cancelled) => exit::FAILED,
    }
}

/// Waits and fallbacks are told always, tools where somebody looks on.
fn show(event: &AgentEvent, looks_on: bool) {
    let line = match event {
        AgentEvent::Waiting { delay, why, error } => {
            format!("note: {why}; next try in {:.1} s: {}", delay.as_secs_f64(), visible_line(error))
        }
        AgentEvent::Held { why } => format!("note: waits for the service: {}", visible_line(why)),
        AgentEvent::FellBack { to, error } => {
            format!("note: goes on with {}: {}", visible_line(to), visible_line(error))
        }
        AgentEvent::Compacted { removed, .. } => {
            format!("note: {removed} older messages gave way to a summary")
        }
        AgentEvent::Note(text) => format!("note: {}", visible_line(text)),
        AgentEvent::ToolStarted { tool, subject, .. } if looks_on => {
            format!("· {tool} {}", visible_line(subject))
        }
        AgentEvent::Hook(news) if looks_on && news.state == HookState::Started => {
            format!("· {} hook {}", news.event, visible_line(&news.command))
        }
        AgentEvent::ToolEnded { tool, is_error: true, .. } if looks_on => format!("· {tool} failed"),
        AgentEvent::TurnStarted { .. }
        | AgentEvent::Alive
        | AgentEvent::Text(_)
        | AgentEvent::Thinking(_)
        | AgentEvent::Withdrawn
        | AgentEvent::Answered { .. }
        | AgentEvent::ToolStarted { .. }
        | AgentEvent::Asking { .. }
        | AgentEvent::ToolEnded { .. }
        | AgentEvent::Hook(_)
        | AgentEvent::Context { .. }
        | AgentEvent::TurnKept { .. } => return,
    };
    say(&format!("{line}\n"));
}

/// A conversation without a run: its transcript is its journal.
struct NoJournal;

impl EffectLog for NoJournal {
    fn intent(&self, _: CallNo, _: &str) -> BoxFuture<'_, Result<(), EffectLogFailed>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn done(&self, _: CallNo, _: Digest) -> BoxFuture<'_, Result<(), EffectLogFailed>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_does_not_obey_holds_the_end_up_for_two_seconds_and_a_moment() {
        let told = Timer::now();
        tokio::time::advance(Duration::from_secs(1)).await;
        patience(Some(told)).await;
        assert!(told.elapsed() < PATIENCE + Duration::from_millis(5), "counted from the signal");
        assert_eq!(last_moment(std::future::pending()).await.map(|_| ()), None);
        assert!(told.elapsed() < PATIENCE + LAST_MOMENT + Duration::from_millis(10));
        assert!(tokio::time::timeout(PATIENCE * 100, patience(None)).await.is_err());
    }
}
