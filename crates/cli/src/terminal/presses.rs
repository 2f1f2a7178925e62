//! The keyboard while bars are drawn: single presses without echo. Output and the signals of Ctrl-C and Ctrl-Z stay as
//! they are. Whoever drops it, or takes a break from it, finds the terminal as it was.

use super::press::{Decoder, Press};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Signal as Sent, getpgrp, getpid, kill_process};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetpgrp, tcsetattr, ttyname,
};
use std::fs::File;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::net::unix::pipe::Receiver;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep_until};

/// An Escape behind which nothing comes for so long is one.
const LONE: Duration = Duration::from_millis(40);

/// What comes from the keyboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pressed {
    /// A key.
    Key(Press),
    /// Ctrl-Z: the process is to stop until it is told to go on.
    Halt,
    /// It goes on.
    GoesOn,
}

/// The keyboard of one terminal.
#[derive(Debug)]
pub(super) struct Presses {
    /// Of tokio's doors for descriptors, the one that takes any that is read.
    tty: Receiver,
    before: Termios,
    taken: bool,
    /// The terminal is gone.
    lost: bool,
    decoder: Decoder,
    settles: Option<Instant>,
    halt: Signal,
    goes_on: Signal,
}

impl Presses {
    /// Takes the keyboard at standard input; `None` where there is none to take.
    pub(super) fn take() -> Option<Self> {
        let stdin = std::io::stdin();
        let name = ttyname(&stdin, Vec::new()).ok()?;
        // A description of its own: whoever shares ours must not find it in a mode it does not know.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let tty = rustix::fs::open(name, flags, Mode::empty()).ok()?;
        let before = tcgetattr(&tty).ok()?;
        let stopped = SignalKind::from_raw(Sent::TSTP.as_raw());
        let goes_on = SignalKind::from_raw(Sent::CONT.as_raw());
        let mut presses = Self {
            tty: Receiver::from_file_unchecked(File::from(tty)).ok()?,
            before,
            taken: false,
            lost: false,
            decoder: Decoder::default(),
            settles: None,
            halt: signal(stopped).ok()?,
            goes_on: signal(goes_on).ok()?,
        };
        presses.on();
        Some(presses)
    }

    /// Presses are read.
    pub(super) fn is_on(&self) -> bool {
        self.taken && !self.lost
    }

    /// Reads presses from here on. In the background the terminal belongs to somebody else: nothing changes.
    pub(super) fn on(&mut self) {
        if self.taken || self.lost || !self.in_front() {
            return;
        }
        let mut modes = self.before.clone();
        modes.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        self.decoder.clear();
        self.taken = tcsetattr(&self.tty, OptionalActions::Now, &modes).is_ok();
    }

    /// The same where the terminal may have been changed by others.
    pub(super) fn again(&mut self) {
        self.taken = false;
        self.on();
    }

    /// The terminal as it was.
    pub(super) fn off(&mut self) {
        if std::mem::take(&mut self.taken) && self.in_front() {
            // Where the terminal is gone there is nothing to restore.
            let _ = tcsetattr(&self.tty, OptionalActions::Now, &self.before);
        }
    }

    /// The terminal listens to this group of processes: another one would be stopped for touching it.
    fn in_front(&self) -> bool {
        tcgetpgrp(&self.tty).is_ok_and(|front| front == getpgrp())
    }

    /// The next press. Cancel-safe.
    pub(super) async fn next(&mut self) -> Pressed {
        loop {
            if let Some(press) = self.decoder.next() {
                return Pressed::Key(press);
            }
            let reads = self.is_on();
            let settles = self.settles;
            tokio::select! {
                biased;
                Some(()) = self.halt.recv() => return Pressed::Halt,
                Some(()) = self.goes_on.recv() => return Pressed::GoesOn,
                ready = self.tty.readable(), if reads => {
                    match ready {
                        Ok(()) => self.read(),
                        Err(_) => self.lost = true,
                    }
                    self.settles = self.decoder.is_open().then(|| Instant::now() + LONE);
                }
                () = until(settles) => {
                    self.settles = None;
                    self.decoder.settle();
                }
            }
        }
    }

    fn read(&mut self) {
        // Somebody may have put the process into the background without a word: it must not touch the terminal.
        if !self.in_front() {
            self.taken = false;
            return;
        }
        let mut bytes = [0; 1024];
        match self.tty.try_read(&mut bytes) {
            Ok(0) => self.lost = true,
            Ok(read) => self.decoder.feed(&bytes[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.lost = true,
        }
    }

    /// Stops this process, as Ctrl-Z would have done. A thread may get some way before it stops: `Pressed::GoesOn` is
    /// what tells that it went on.
    pub(super) fn halt() {
        // It cannot fail for this process.
        let _ = kill_process(getpid(), Sent::STOP);
    }
}

impl Drop for Presses {
    fn drop(&mut self) {
        self.off();
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
