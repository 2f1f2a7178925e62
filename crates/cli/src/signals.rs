//! Signals that end the program, as events.

use crate::error::{ExpectedError, exit};
use claw_orchestrator::report::status::EndSignal;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A wish to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// The terminal is gone.
    Hangup,
    /// Nobody reads standard output.
    Pipe,
}

impl Ending {
    /// As a run knows it.
    pub fn signal(self) -> EndSignal {
        match self {
            Self::Interrupt => EndSignal::Int,
            Self::Terminate => EndSignal::Term,
            Self::Hangup => EndSignal::Hup,
            Self::Pipe => EndSignal::Pipe,
        }
    }

    /// Of the process.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => exit::INTERRUPT,
            Self::Terminate => exit::TERMINATE,
            Self::Hangup => exit::HANGUP,
            Self::Pipe => exit::PIPE,
        }
    }
}

/// Listens from now on.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    /// Within a runtime.
    ///
    /// # Errors
    /// The system refuses.
    pub fn listen() -> Result<Self, ExpectedError> {
        let on = |kind| {
            signal(kind).map_err(|error| ExpectedError::Fault(format!("cannot listen to signals: {error}")))
        };
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hangup: on(SignalKind::hangup())?,
        })
    }

    /// The next one. Cancel-safe.
    pub async fn next(&mut self) -> Ending {
        tokio::select! {
            Some(()) = self.interrupt.recv() => Ending::Interrupt,
            Some(()) = self.terminate.recv() => Ending::Terminate,
            Some(()) = self.hangup.recv() => Ending::Hangup,
            else => std::future::pending().await,
        }
    }
}

/// The signals of the shell's job control, as events: whoever owns the terminal gives it back before the process stops.
#[derive(Debug)]
pub struct JobControl {
    stop: Signal,
    go_on: Signal,
}

/// What the shell wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Stop.
    Stop,
    /// It goes on: whatever the terminal's settings were, they may be others now.
    GoOn,
}

impl JobControl {
    /// Within a runtime. From here on SIGTSTP does not stop the process by itself.
    ///
    /// # Errors
    /// The system refuses.
    pub fn listen() -> Result<Self, ExpectedError> {
        let on = |number: rustix::process::Signal| {
            signal(SignalKind::from_raw(number.as_raw()))
                .map_err(|error| ExpectedError::Fault(format!("cannot listen to signals: {error}")))
        };
        Ok(Self { stop: on(rustix::process::Signal::TSTP)?, go_on: on(rustix::process::Signal::CONT)? })
    }

    /// The next one. Cancel-safe.
    pub async fn next(&mut self) -> Job {
        tokio::select! {
            Some(()) = self.stop.recv() => Job::Stop,
            Some(()) = self.go_on.recv() => Job::GoOn,
            else => std::future::pending().await,
        }
    }
}

/// Stops this process until the shell lets it go on.
pub fn stop_here() {
    // A process may always stop itself.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::STOP);
}
