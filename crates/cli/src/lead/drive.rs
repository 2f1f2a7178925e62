//! The loop: keys, news, questions, signals in; the core decides; orders and the screen out.

use super::act::Act;
use super::asker::Asked;
use super::changes::branch;
use super::deed::Deed;
use super::editor::HistoryFile;
use super::open::Wanted;
use super::slash::{self, Desk};
use super::state::State;
use super::words::Words;
use crate::error::{ExpectedError, exit};
use crate::services::Setup;
use crate::signals::{Ending, Job, JobControl, Signals, stop_here};
use crate::terminal::paint::ColorVariables;
use crate::terminal::{
    BoardReader, Faults, Key, Keys, Pager, RawMode, Region, terminal_size, write_terminal,
};
use claw_agents::lead::{
    LeadCommand, LeadEvent, LeadOrders, LeadView, NotOrdered, Reckoning, Rewinding, with_images,
};
use claw_agents::permission::Answer;
use claw_agents::session::Reference;
use claw_kernel::tasks;
use claw_orchestrator::report::board::Board;
use claw_orchestrator::run::{SessionTeam, TeamEnd, TeamNews};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

/// The screen is drawn at most so often for what comes by itself.
const FRAME: Duration = Duration::from_millis(60);
/// And so often for what moves.
const TICK: Duration = Duration::from_millis(100);
/// From the wish to end to the end.
const PATIENCE: Duration = Duration::from_secs(2);
/// News that are taken before the screen is drawn.
const BATCH: usize = 512;
/// Answers of slash commands that may wait.
const DEEDS: usize = 64;

/// What the loop is tied to.
pub(super) struct Wires {
    pub(super) orders: LeadOrders,
    pub(super) news: mpsc::Receiver<LeadEvent>,
    pub(super) asks: mpsc::UnboundedReceiver<Asked>,
    /// The session's agents, and what is heard of them.
    pub(super) team: SessionTeam,
    pub(super) team_news: mpsc::Receiver<TeamNews>,
}

/// How it ended.
#[derive(Debug)]
pub(super) enum Ended {
    /// The program ends with this code.
    Exit(u8),
    /// Another session is wanted.
    Session {
        /// That one.
        wanted: Wanted,
        /// This one, should the other not be there.
        left: Wanted,
    },
}

/// The loop.
pub(super) struct Drive {
    state: State,
    region: Region,
    setup: Arc<Setup>,
    wires: Wires,
    history: HistoryFile,
    started: Instant,
    terminal: Option<(RawMode, Keys)>,
    pager: Option<Pager>,
    asked: HashMap<u64, oneshot::Sender<Answer>>,
    deeds: (mpsc::Sender<Vec<Deed>>, mpsc::Receiver<Vec<Deed>>),
    view: Option<Arc<LeadView>>,
    prompts: Vec<(u32, String)>,
    said: Vec<String>,
    reckoning: Option<Reckoning>,
    board: Option<(Arc<Board>, BoardReader)>,
    ending: Option<(Instant, Ended)>,
    drawn: Instant,
    dirty: bool,
    /// What the last rewind was to take back.
    rewinding: Option<Rewinding>,
}

enum Woken {
    Keys(Option<Vec<Key>>),
    News(Option<LeadEvent>),
    Asked(Asked),
    Team(TeamNews),
    Deeds(Vec<Deed>),
    Signal(Ending),
    Job(Job),
    Fault(String),
    Time,
}

impl Drive {
    pub(super) fn new(state: State, setup: Arc<Setup>, wires: Wires, history: HistoryFile) -> Self {
        let now = Instant::now();
        Self {
            state,
            region: Region::new(ColorVariables::of_process().depth()),
            setup,
            wires,
            history,
            started: now,
            terminal: None,
            pager: None,
            asked: HashMap::new(),
            deeds: mpsc::channel(DEEDS),
            view: None,
            prompts: Vec::new(),
            said: Vec::new(),
            reckoning: None,
            board: None,
            ending: None,
            drawn: now,
            dirty: true,
            rewinding: None,
        }
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Until the end. The terminal is as it was when it returns.
    pub(super) async fn run(mut self) -> Result<Ended, ExpectedError> {
        let mut signals = Signals::listen()?;
        let mut jobs = JobControl::listen()?;
        let mut faults = Faults::hold();
        self.take_terminal()?;
        let ended = loop {
            if self.draw_if_due().is_err() {
                break Ended::Exit(exit::HANGUP);
            }
            let woken = self.wake(&mut signals, &mut jobs, &mut faults).await;
            if let Some(ended) = self.on(woken)? {
                break ended;
            }
        };
        self.leave(&ended);
        Ok(ended)
    }

    fn take_terminal(&mut self) -> Result<(), ExpectedError> {
        let raw = RawMode::enter()
            .map_err(|error| ExpectedError::Fault(format!("cannot take the terminal: {error}")))?;
        self.terminal = Some((raw, Keys::default()));
        self.dirty = true;
        Ok(())
    }

    async fn wake(&mut self, signals: &mut Signals, jobs: &mut JobControl, faults: &mut Faults) -> Woken {
        let due = self.due();
        let keys = self.terminal.as_mut().map(|(_, keys)| keys);
        tokio::select! {
            biased;
            signal = signals.next() => Woken::Signal(signal),
            job = jobs.next() => Woken::Job(job),
            keys = next_keys(keys) => Woken::Keys(keys),
            Some(deeds) = self.deeds.1.recv() => Woken::Deeds(deeds),
            Some(asked) = self.wires.asks.recv() => Woken::Asked(asked),
            Some(news) = self.wires.team_news.recv() => Woken::Team(news),
            fault = faults.next() => Woken::Fault(fault),
            () = until(due) => Woken::Time,
            event = self.wires.news.recv(), if !self.state.is_full() => Woken::News(event),
        }
    }

    /// When the screen is to be drawn, or patience ends.
    fn due(&self) -> Option<Instant> {
        let frame = (self.dirty && self.terminal.is_some()).then(|| self.drawn + FRAME);
        let tick = (self.state.is_moving() && self.terminal.is_some()).then(|| self.drawn + TICK);
        let patience = self.ending.as_ref().map(|(at, _)| *at);
        [frame, tick, patience].into_iter().flatten().min()
    }

    fn on(&mut self, woken: Woken) -> Result<Option<Ended>, ExpectedError> {
        self.dirty = true;
        match woken {
            Woken::Keys(None) => return Ok(Some(Ended::Exit(exit::HANGUP))),
            Woken::Keys(Some(keys)) => self.on_keys(keys)?,
            Woken::News(Some(event)) => {
                if self.on_news(event) {
                    return Ok(Some(self.end_now()));
                }
                self.read_bars();
            }
            Woken::News(None) => return self.lead_is_gone().map(Some),
            Woken::Asked(asked) => self.on_asked(asked),
            Woken::Team(news) => self.on_team(news),
            Woken::Deeds(deeds) => {
                for deed in deeds {
                    if let Some(act) = self.state.on_deed(deed) {
                        self.act(act)?;
                    }
                }
            }
            Woken::Signal(ending) => {
                if self.ending.is_some() || ending == Ending::Hangup {
                    claw_tools::process::no_more_grace();
                    return Ok(Some(Ended::Exit(ending.exit_code())));
                }
                self.begin_end(Ended::Exit(ending.exit_code()));
            }
            Woken::Job(Job::Stop) => self.suspend(),
            Woken::Job(Job::GoOn) => {
                self.terminal = None;
                self.take_terminal()?;
                self.region.forget();
            }
            Woken::Fault(text) => self.state.wrong(&text),
            Woken::Time => {
                if self.ending.as_ref().is_some_and(|(at, _)| *at <= Instant::now()) {
                    return Ok(Some(self.end_now()));
                }
                self.read_bars();
            }
        }
        Ok(None)
    }

    fn end_now(&mut self) -> Ended {
        self.ending.take().map_or(Ended::Exit(exit::OK), |(_, ended)| ended)
    }

    fn lead_is_gone(&mut self) -> Result<Ended, ExpectedError> {
        match self.ending.take() {
            Some((_, ended)) => Ok(ended),
            None => {
                self.leave(&Ended::Exit(exit::FAULT));
                Err(ExpectedError::Fault("the conversation ended unexpectedly".to_owned()))
            }
        }
    }

    fn read_bars(&mut self) {
        let Some((board, reader)) = &mut self.board else { return };
        let (width, height) = terminal_size();
        let bars = reader.lines(board, width, height / 3);
        self.state.status.agents = board.head().running;
        self.state.bars = bars;
    }

    fn on_team(&mut self, news: TeamNews) {
        match news {
            TeamNews::Opened(run) => {
                self.board = Some((run.board, BoardReader::new(None)));
                self.order(LeadCommand::NameTeam { run: run.id });
            }
            TeamNews::Ended(TeamEnd { run, number, label, state, text, .. }) => {
                self.state.note(&format!("{label}: {}", state.as_str()));
                self.order(LeadCommand::Tell { run, number, text });
            }
            TeamNews::Note(text) => self.state.note(&text),
            TeamNews::Failed(error) => self.state.wrong(&format!("agents cannot be started: {error}")),
        }
    }

    fn on_keys(&mut self, keys: Vec<Key>) -> Result<(), ExpectedError> {
        for key in keys {
            if let Some(pager) = &mut self.pager {
                if !pager.on(&key, terminal_size().1) {
                    self.pager = None;
                }
                continue;
            }
            let desk = self.desk(false);
            let now = self.now();
            for act in self.state.on_key(key, &Words { desk: &desk }, now) {
                self.act(act)?;
            }
        }
        // What a person types is seen at once.
        self.drawn = self.drawn.checked_sub(FRAME).unwrap_or(self.drawn);
        Ok(())
    }

    /// `true`: the lead has ended.
    fn on_news(&mut self, event: LeadEvent) -> bool {
        let mut next = Some(event);
        let mut count = 0;
        while let Some(mut event) = next.take() {
            let now = self.now();
            match &mut event {
                LeadEvent::Closed => return true,
                LeadEvent::Opened(view) => {
                    self.prompts.clone_from(&view.prompts);
                    self.view = Some(Arc::new((**view).clone()));
                }
                LeadEvent::TurnStarted { prompt } => {
                    let text = self.said.join(" ");
                    self.said.clear();
                    self.prompts.push((*prompt, text.lines().next().unwrap_or_default().to_owned()));
                }
                LeadEvent::Told { number, .. } => self.wires.team.delivered(*number),
                // Files alone: the conversation stays where it is.
                LeadEvent::Rewound { said, .. } if self.rewinding == Some(Rewinding::Files) => said.clear(),
                LeadEvent::Rewound { prompt, .. } => self.prompts.retain(|(number, _)| number < prompt),
                LeadEvent::TurnEnded { .. } => self.state.status.branch = branch(&self.setup.cwd),
                LeadEvent::Reckoning(reckoning) => self.reckoning = Some(*reckoning),
                _ => {}
            }
            self.state.on_news(event, now);
            count += 1;
            if count < BATCH && !self.state.is_full() {
                next = self.wires.news.try_recv().ok();
            }
        }
        false
    }

    fn on_asked(&mut self, asked: Asked) {
        match asked {
            Asked::Question { id, request, reply } => {
                self.asked.insert(id, reply);
                let now = self.now();
                self.state.ask(id, *request, now);
                if self.pager.is_none() {
                    // A bell for whoever looks elsewhere; where the terminal is gone the next draw says so.
                    let _ = write_terminal("\x07");
                }
            }
            Asked::Withdrawn { id } => {
                self.asked.remove(&id);
                self.state.withdraw_ask(id);
            }
            Asked::Word(text) => self.state.note(&text),
        }
    }

    fn desk(&self, with_results: bool) -> Desk {
        Desk {
            setup: Arc::clone(&self.setup),
            status: self.state.status.clone(),
            view: self.view.clone(),
            prompts: self.prompts.clone(),
            reckoning: self.reckoning,
            is_idle: self.state.is_idle(),
            kept: if with_results { self.state.kept().cloned().collect() } else { Vec::new() },
            theme: self.state.theme.name,
            board: self.board.as_ref().map(|(board, _)| Arc::clone(board)),
            team: self.wires.team.clone(),
        }
    }

    fn act(&mut self, act: Act) -> Result<(), ExpectedError> {
        match act {
            Act::Order(order) => self.order(order),
            Act::Slash { name, args } => self.slash(&name, args),
            Act::Answer { ask, answer } => {
                if let Some(reply) = self.asked.remove(&ask) {
                    // The agent may have been stopped at this very moment.
                    let _ = reply.send(answer);
                }
            }
            Act::Deed(deed) => self.deed(*deed),
            Act::Remember(text) => self.remember(text),
            Act::Page { title, text } => {
                self.pager = Pager::open(&title, &text, self.state.theme).ok();
            }
            Act::Suspend => self.suspend(),
            Act::Refresh => self.refresh(),
            Act::Quit => self.begin_end(Ended::Exit(exit::OK)),
        }
        Ok(())
    }

    fn deed(&mut self, deed: Deed) {
        match deed {
            Deed::Order(order) => self.order(order),
            Deed::Prompt { text, shown } => {
                if self.state.is_idle() {
                    self.state.echo(&shown);
                } else {
                    self.state.on_steered(&shown);
                }
                self.said.push(shown);
                self.wires.team.user_spoke();
                let (blocks, notes) = with_images(&text, &self.setup.cwd);
                for note in notes {
                    self.state.note(&note);
                }
                self.order(LeadCommand::Say { blocks });
            }
            Deed::Resume(session) => self.change_session(&session),
            Deed::Fork => {
                if let Some(view) = &self.view {
                    let own = view.session.to_string();
                    let left = self.own();
                    self.begin_end(Ended::Session { wanted: Wanted::Copy(own), left });
                }
            }
            Deed::Refresh => self.refresh(),
            Deed::Quit => self.begin_end(Ended::Exit(exit::OK)),
            // The rest is for the state alone.
            other @ (Deed::Show(_)
            | Deed::Wrong(_)
            | Deed::Pick(_)
            | Deed::Confirm { .. }
            | Deed::Theme(_)
            | Deed::Page { .. }) => {
                if let Some(Act::Page { title, text }) = self.state.on_deed(other) {
                    self.pager = Pager::open(&title, &text, self.state.theme).ok();
                }
            }
        }
    }

    fn order(&mut self, order: LeadCommand) {
        if let LeadCommand::Rewind { what, .. } = &order {
            self.rewinding = Some(*what);
        }
        // A lead that has ended says so by its news.
        if let Err(full @ NotOrdered::Full) = self.wires.orders.order(order) {
            self.state.wrong(&full.to_string());
        }
    }

    /// This session, as it can be opened again.
    fn own(&self) -> Wanted {
        match &self.view {
            Some(view) if !self.prompts.is_empty() => Wanted::Known(view.session.to_string()),
            Some(_) | None => Wanted::New,
        }
    }

    /// What is not there is said before this session is left.
    fn change_session(&mut self, typed: &str) {
        match self.setup.sessions().find(&Reference::read(typed, &self.setup.cwd)) {
            Ok(_) => {
                let left = self.own();
                self.begin_end(Ended::Session { wanted: Wanted::Known(typed.to_owned()), left });
            }
            Err(error) => self.state.wrong(&error.to_string()),
        }
    }

    fn slash(&mut self, name: &str, args: String) {
        let Some(command) = slash::find(name) else {
            let near =
                slash::nearest(name).map(|near| format!("; did you mean /{near}?")).unwrap_or_default();
            self.state.wrong(&format!("there is no command /{name}{near} (/help lists them)"));
            return;
        };
        let work = command.run(args, self.desk(true));
        let door = self.deeds.0.clone();
        tasks::spawn("slash command", async move {
            // The screen may have ended meanwhile.
            let _ = door.send(work.await).await;
        });
    }

    fn remember(&mut self, text: String) {
        let file = self.history.clone();
        let redactor = self.setup.redactor(Vec::new());
        tasks::spawn("history", async move {
            // A history that cannot be kept disturbs nobody.
            let _ = tasks::blocking("history", move || file.add(&redactor.apply(&text))).await;
        });
    }

    fn refresh(&mut self) {
        self.region.forget();
        // Where the terminal is gone the next draw says so.
        let _ = write_terminal("\x1b[H\x1b[2J");
    }

    fn begin_end(&mut self, ended: Ended) {
        if self.ending.is_some() {
            return;
        }
        self.ending = Some((Instant::now() + PATIENCE, ended));
        // Whoever waits for an answer gets none.
        self.asked.clear();
        self.wires.orders.stop_because("the user left");
    }

    /// Gives the terminal back and stops.
    fn suspend(&mut self) {
        self.pager = None;
        // Where the terminal is gone the next draw says so.
        let _ = write_terminal(&self.region.clear());
        self.terminal = None;
        // It takes effect at some moment from here on; that it is over is a signal of its own.
        stop_here();
    }

    fn draw_if_due(&mut self) -> io::Result<()> {
        let early = self.drawn.elapsed() < FRAME && !self.state.is_full();
        if !self.dirty || early || self.terminal.is_none() {
            return Ok(());
        }
        self.dirty = false;
        self.drawn = Instant::now();
        let size = terminal_size();
        if let Some(pager) = &mut self.pager {
            return pager.draw(size, self.region.depth());
        }
        (self.state.width, self.state.height) = size;
        let above = self.state.take_above();
        let now = self.now();
        let picture = self.state.picture(now);
        let bytes = self.region.draw(&above, &picture, size.0);
        if bytes.is_empty() { Ok(()) } else { write_terminal(&bytes) }
    }

    /// The region goes, what was not drawn yet is drawn, the terminal is given back.
    fn leave(&mut self, ended: &Ended) {
        self.pager = None;
        let mut bytes = self.region.clear();
        for line in self.state.take_above() {
            bytes.push_str(&line.painted(self.region.depth()));
            bytes.push_str("\r\n");
        }
        if let (Ended::Exit(_), Some(view)) = (ended, &self.view)
            && !self.prompts.is_empty()
        {
            bytes.push_str(&format!("go on with `claw --resume {}`\r\n", view.session));
        }
        // Where the terminal is gone nobody reads it.
        let _ = write_terminal(&bytes);
        self.terminal = None;
    }
}

async fn next_keys(keys: Option<&mut Keys>) -> Option<Vec<Key>> {
    match keys {
        Some(keys) => keys.some().await,
        None => std::future::pending().await,
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}
