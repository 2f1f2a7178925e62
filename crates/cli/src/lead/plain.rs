//! The lead on a terminal that cannot move its cursor: lines in, lines out, nothing is redrawn.

use super::asker::Asked;
use super::deed::Deed;
use super::drive::{Ended, Wires};
use super::open::Wanted;
use super::slash::{self, Desk};
use super::state::State;
use super::tool_lines::changes;
use crate::error::{ExpectedError, exit};
use crate::services::Setup;
use crate::signals::{Ending, Signals};
use crate::terminal::paint::Line;
use crate::terminal::{Unwanted, ask_again, say, write_stdout};
use claw_agents::event::AgentEvent;
use claw_agents::lead::{LeadCommand, LeadEvent, LeadView, with_images};
use claw_agents::permission::Answer;
use claw_kernel::tasks;
use claw_kernel::visible::{visible, visible_line};
use claw_orchestrator::report::board::Board;
use claw_orchestrator::run::{TeamEnd, TeamNews};
use std::sync::Arc;
use std::time::Duration;

/// From the wish to end to the end.
const PATIENCE: Duration = Duration::from_secs(2);

/// The plain conversation.
pub(super) struct Plain {
    setup: Arc<Setup>,
    wires: Wires,
    /// Keeps what the status tells; nothing of it is drawn.
    state: State,
    view: Option<Arc<LeadView>>,
    board: Option<Arc<Board>>,
    prompts: Vec<(u32, String)>,
}

impl Plain {
    pub(super) fn new(state: State, setup: Arc<Setup>, wires: Wires) -> Self {
        Self { setup, wires, state, view: None, board: None, prompts: Vec::new() }
    }

    /// Until the end of the input.
    ///
    /// # Errors
    /// Streams, or the conversation is gone.
    pub(super) async fn run(mut self) -> Result<Ended, ExpectedError> {
        let mut signals = Signals::listen()?;
        loop {
            let stop = Unwanted::default();
            let flag = stop.flag();
            let line = tokio::select! {
                line = tasks::blocking("line", move || ask_again("> ", &flag)) => line.ok().flatten(),
                ending = signals.next() => return self.end(Ended::Exit(ending.exit_code())).await,
            };
            let Some(line) = line else { return self.end(Ended::Exit(exit::OK)).await };
            let text = line.trim_end_matches(['\n', '\r']).to_owned();
            if text.trim().is_empty() {
                continue;
            }
            let ended = match text.strip_prefix('/') {
                Some(command) => self.slash(command, &mut signals).await?,
                None => self.say(text, &mut signals).await?,
            };
            if let Some(ended) = ended {
                return self.end(ended).await;
            }
        }
    }

    async fn end(mut self, ended: Ended) -> Result<Ended, ExpectedError> {
        self.wires.orders.stop_because("the user left");
        let closed = async {
            while let Some(event) = self.wires.news.recv().await {
                if matches!(event, LeadEvent::Closed) {
                    return;
                }
            }
        };
        // Whatever does not obey holds nobody up.
        let _ = tokio::time::timeout(PATIENCE, closed).await;
        Ok(ended)
    }

    async fn slash(&mut self, line: &str, signals: &mut Signals) -> Result<Option<Ended>, ExpectedError> {
        let (name, args) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let Some(command) = slash::find(name) else {
            say(&format!("there is no command /{} (/help lists them)\n", visible_line(name)));
            return Ok(None);
        };
        let desk = Desk {
            setup: Arc::clone(&self.setup),
            status: self.state.status.clone(),
            view: self.view.clone(),
            prompts: self.prompts.clone(),
            reckoning: None,
            is_idle: true,
            kept: self.state.kept().cloned().collect(),
            theme: self.state.theme.name,
            board: self.board.clone(),
            team: self.wires.team.clone(),
        };
        for deed in command.run(args.trim().to_owned(), desk).await {
            if let Some(ended) = self.deed(deed, signals).await? {
                return Ok(Some(ended));
            }
        }
        Ok(None)
    }

    async fn deed(&mut self, deed: Deed, signals: &mut Signals) -> Result<Option<Ended>, ExpectedError> {
        match deed {
            Deed::Show(lines) => {
                let text: String = lines.iter().map(|line| line.text() + "\n").collect();
                write_stdout(text)?;
            }
            Deed::Page { text, .. } => {
                write_stdout(format!("{}\n", visible(text.trim_end())))?;
            }
            Deed::Wrong(text) => {
                say(&format!("{}\n", visible(&text)));
            }
            Deed::Order(order) => self.order(order, signals).await?,
            Deed::Prompt { text, .. } => return self.say(text, signals).await,
            Deed::Pick(pick) => {
                let lines: String = pick
                    .items
                    .iter()
                    .map(|item| visible_line(&format!("  {}  {}", item.text, item.about)).into_owned() + "\n")
                    .collect();
                say(&format!("{}\n{lines}write the command with one of them\n", visible_line(&pick.title)));
            }
            Deed::Confirm { question, deed } => {
                let text = format!("{} [y/N] ", visible_line(&question));
                let stop = Unwanted::default();
                let flag = stop.flag();
                let line = tasks::blocking("question", move || ask_again(&text, &flag)).await.ok().flatten();
                if line.is_some_and(|line| line.trim().eq_ignore_ascii_case("y")) {
                    return Box::pin(self.deed(*deed, signals)).await;
                }
            }
            Deed::Resume(session) => {
                return Ok(Some(Ended::Session { wanted: Wanted::Known(session), left: Wanted::New }));
            }
            Deed::Fork => {
                let own = self.view.as_ref().map(|view| view.session.to_string());
                return Ok(own.map(|own| Ended::Session { wanted: Wanted::Copy(own), left: Wanted::New }));
            }
            Deed::Quit => return Ok(Some(Ended::Exit(exit::OK))),
            Deed::Theme(_) | Deed::Refresh => {}
        }
        Ok(None)
    }

    /// An order that is no prompt: what it does is told by the next news.
    async fn order(&mut self, order: LeadCommand, signals: &mut Signals) -> Result<(), ExpectedError> {
        // A lead that has ended says so by its news.
        let _ = self.wires.orders.order(order);
        let _ = signals;
        while let Ok(event) = self.wires.news.try_recv() {
            self.tell(event)?;
        }
        Ok(())
    }

    async fn say(&mut self, text: String, signals: &mut Signals) -> Result<Option<Ended>, ExpectedError> {
        let first = text.lines().next().unwrap_or_default().to_owned();
        // A lead that has ended says so by its news.
        let (blocks, notes) = with_images(&text, &self.setup.cwd);
        for note in notes {
            say(&format!("· {}\n", visible_line(&note)));
        }
        let _ = self.wires.orders.order(LeadCommand::Say { blocks });
        let mut begun = false;
        let mut stopping = false;
        loop {
            tokio::select! {
                event = self.wires.news.recv() => match event {
                    None | Some(LeadEvent::Closed) => {
                        return Err(ExpectedError::Fault("the conversation ended unexpectedly".to_owned()));
                    }
                    Some(LeadEvent::Idle) if begun => return Ok(None),
                    Some(event) => {
                        if let LeadEvent::TurnStarted { prompt } = &event {
                            begun = true;
                            self.prompts.push((*prompt, first.clone()));
                        }
                        self.tell(event)?;
                    }
                },
                Some(asked) = self.wires.asks.recv() => question(asked).await,
                Some(news) = self.wires.team_news.recv() => self.on_team(news),
                ending = signals.next() => {
                    if stopping || ending != Ending::Interrupt {
                        claw_tools::process::no_more_grace();
                        return Ok(Some(Ended::Exit(ending.exit_code())));
                    }
                    stopping = true;
                    // A lead that has ended says so by its news.
                    let _ = self.wires.orders.order(LeadCommand::Interrupt);
                }
            }
        }
    }

    fn on_team(&mut self, news: TeamNews) {
        // A lead that has ended says so by its news.
        match news {
            TeamNews::Opened(run) => {
                self.board = Some(run.board);
                let _ = self.wires.orders.order(LeadCommand::NameTeam { run: run.id });
            }
            TeamNews::Ended(TeamEnd { run, number, label, state, text, .. }) => {
                say(&format!("· {}: {}\n", visible_line(&label), state.as_str()));
                let _ = self.wires.orders.order(LeadCommand::Tell { run, number, text });
            }
            TeamNews::Note(text) => {
                say(&format!("· {}\n", visible_line(&text)));
            }
            TeamNews::Failed(error) => {
                say(&format!("agents cannot be started: {}\n", visible_line(&error.to_string())));
            }
        }
    }

    /// News as lines; an answer as it comes.
    fn tell(&mut self, event: LeadEvent) -> Result<(), ExpectedError> {
        match &event {
            LeadEvent::Opened(view) => {
                self.prompts.clone_from(&view.prompts);
                self.view = Some(Arc::new((**view).clone()));
            }
            LeadEvent::Told { number, .. } => self.wires.team.delivered(*number),
            LeadEvent::Agent(AgentEvent::Text(piece)) => return write_stdout(visible(piece).as_bytes()),
            LeadEvent::Agent(AgentEvent::Answered { .. }) => return write_stdout("\n"),
            LeadEvent::Agent(AgentEvent::ToolStarted { tool, subject, .. }) => {
                say(&format!("· {tool} {}\n", visible_line(subject)));
            }
            _ => {}
        }
        let answers = matches!(event, LeadEvent::Agent(AgentEvent::Text(_)));
        self.state.on_news(event, Duration::ZERO);
        let lines: Vec<Line> = self.state.take_above();
        if !answers {
            let text: String =
                lines.iter().filter(|line| !line.is_blank()).map(|line| line.text() + "\n").collect();
            say(&text);
        }
        Ok(())
    }
}

/// One question, answered by a line.
async fn question(asked: Asked) {
    let (request, mut reply) = match asked {
        Asked::Question { request, reply, .. } => (request, reply),
        Asked::Word(text) => {
            say(&format!("{}\n", visible_line(&text)));
            return;
        }
        Asked::Withdrawn { .. } => return,
    };
    let text = format!(
        "\n{} wants to use {}:\n{}{}\nAllow it? [y] once, [s] for this session, [N] no, or write why not: ",
        visible_line(&request.label),
        visible_line(&request.tool),
        changes(
            &request.subject.lines().take(40).map(str::to_owned).collect::<Vec<_>>(),
            &crate::terminal::paint::ThemeName::None.theme()
        )
        .iter()
        .map(|line| format!("  {}\n", line.text()))
        .collect::<String>(),
        visible_line(&request.why),
    );
    let stop = Unwanted::default();
    let flag = stop.flag();
    let line = tokio::select! {
        line = tasks::blocking("question", move || ask_again(&text, &flag)) => line.ok().flatten(),
        () = reply.closed() => None,
    };
    let Some(line) = line else { return };
    let answer = match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Answer::Once,
        "s" | "session" if request.rule.is_some() => Answer::Session,
        "" | "n" | "no" => Answer::No(None),
        _ => Answer::No(Some(line.trim().to_owned())),
    };
    // The agent may have been stopped at this very moment.
    let _ = reply.send(answer);
}
