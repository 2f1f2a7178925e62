//! The screen of one run: puts lines and frames on standard error, and leaves the terminal as it was.

use super::bars::Bars;
use super::detect::Kind;
use super::frame::frame;
use super::panics::Held;
use super::presses::{Pressed, Presses};
use super::stdio::{say, somebody_to_ask};
use super::view::View;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Lines above the bars that wait for the next frame; with more a frame comes at once.
const PENDING: usize = 64;

/// What comes from the screen.
#[derive(Debug)]
pub enum Told {
    /// A fault of claw itself.
    Fault(String),
    /// The keyboard.
    Pressed(Pressed),
}

/// What a run is watched on.
#[derive(Debug)]
pub struct Screen {
    bars: Option<Bars>,
    color: bool,
    above: Vec<String>,
    started: Instant,
    faults: UnboundedReceiver<String>,
    presses: Option<Presses>,
    _held: Held,
    read: bool,
    suspended: bool,
    /// By Ctrl-Z.
    halted: bool,
}

impl Screen {
    /// A screen of this kind. Nothing is drawn yet.
    pub fn new(kind: Kind) -> Self {
        let (door, faults) = unbounded_channel();
        let (bars, color) = match kind {
            Kind::Bars { color } => (Some(Bars::new()), color),
            Kind::Plain => (None, false),
        };
        Self {
            bars,
            color,
            above: Vec::new(),
            started: Instant::now(),
            faults,
            presses: None,
            _held: Held::by(door),
            read: true,
            suspended: false,
            halted: false,
        }
    }

    /// The same with keys, where a person sits at bars. Within a runtime.
    pub fn with_keys(mut self) -> Self {
        if self.bars.is_some() && somebody_to_ask() {
            self.presses = Presses::take();
        }
        self
    }

    /// Keys are heard.
    pub fn has_keys(&self) -> bool {
        self.presses.as_ref().is_some_and(Presses::is_on)
    }

    /// Bars are drawn: frames are wanted.
    pub fn has_bars(&self) -> bool {
        self.bars.is_some()
    }

    /// Lines may be coloured.
    pub fn has_color(&self) -> bool {
        self.color
    }

    /// Nobody reads standard error any more.
    pub fn is_unread(&self) -> bool {
        !self.read
    }

    /// One finished line: above the bars at the next frame, or at once where there are none.
    pub fn line(&mut self, text: impl Into<String>) {
        self.above.push(text.into());
        if self.bars.is_none() || self.above.len() >= PENDING {
            self.flush();
        }
    }

    /// The next fault of claw itself, or the next key. Cancel-safe.
    pub async fn told(&mut self) -> Told {
        let presses = async {
            match &mut self.presses {
                Some(presses) => presses.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(fault) = self.faults.recv() => Told::Fault(fault),
            pressed = presses => Told::Pressed(pressed),
        }
    }

    /// Ctrl-Z: the terminal as it was, then this process stops. `go_on` brings all of it back.
    pub fn halt(&mut self) {
        if !self.suspended {
            self.suspend();
            self.halted = true;
        }
        Presses::halt();
    }

    /// The process goes on, perhaps in front again.
    pub fn go_on(&mut self) {
        if std::mem::take(&mut self.halted) {
            self.resume();
        } else if let Some(presses) = self.presses.as_mut().filter(|_| !self.suspended) {
            // Whoever stopped it without a word may have changed the terminal.
            presses.again();
        }
    }

    /// Columns and rows of the bars.
    pub(super) fn size(&self) -> (usize, usize) {
        self.bars.as_ref().map_or((80, 24), Bars::size)
    }

    /// Draws a frame.
    pub(super) fn draw(&mut self, view: &View) {
        self.flush();
        let (width, height) = self.size();
        let now: Duration = self.started.elapsed();
        if let Some(bars) = &mut self.bars {
            bars.draw(frame(view, width, height, now));
        }
    }

    fn flush(&mut self) {
        if self.above.is_empty() || self.suspended {
            return;
        }
        let text = self.above.join("\n");
        self.above.clear();
        match &self.bars {
            Some(bars) => bars.above(&text),
            None => self.read &= say(&format!("{}\n", text.trim_end_matches('\n'))),
        }
    }

    /// Takes the bars away and holds lines back, as long as somebody else writes.
    pub fn suspend(&mut self) {
        self.flush();
        self.suspended = true;
        if let Some(presses) = &mut self.presses {
            presses.off();
        }
        if let Some(bars) = &mut self.bars {
            bars.suspend();
        }
    }

    /// Brings bars and lines back.
    pub fn resume(&mut self) {
        self.suspended = false;
        if let Some(presses) = &mut self.presses {
            presses.on();
        }
        if let Some(bars) = &mut self.bars {
            bars.resume();
        }
        self.flush();
    }

    /// The same behind a question that nobody answered here: its line is left.
    pub fn resume_below(&mut self) {
        self.read &= say("\n");
        self.resume();
    }

    /// Takes the bars away for good and tells what is left to tell. `true`: somebody reads standard error.
    pub fn finish(mut self) -> bool {
        if self.suspended {
            self.resume();
        }
        self.presses = None;
        while let Ok(fault) = self.faults.try_recv() {
            self.line(fault);
        }
        self.flush();
        self.read
        // Dropping the bars clears them.
    }
}
