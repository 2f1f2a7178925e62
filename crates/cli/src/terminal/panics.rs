//! A panic is never hidden: its message goes above the bars where there are some, else straight to standard error.

use std::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The screen that is drawn at this moment.
static SCREEN: Mutex<Option<UnboundedSender<String>>> = Mutex::new(None);

/// From now on a panic is told in one line. Once for the process.
pub fn install() {
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(|at| format!(" ({}:{})", at.file(), at.line())).unwrap_or_default();
        let words = claw_kernel::tasks::panic_message(info.payload());
        tracing::error!(panic = %words, place = %place, "panic");
        let text = format!("error: claw has a fault: {}{place}", claw_kernel::visible::visible_line(&words));
        let screen = SCREEN.lock().map(|screen| screen.clone()).unwrap_or_default();
        // A panic tells a fault of ours: there are few, so the queue needs no bound.
        let left = match screen {
            Some(screen) => screen.send(text).err().map(|unsent| unsent.0),
            None => Some(text),
        };
        if let Some(text) = left {
            super::stdio::say(&format!("{text}\n"));
        }
    }));
}

/// Panics go to this screen until the value is dropped.
#[derive(Debug)]
pub(super) struct Held;

impl Held {
    pub(super) fn by(screen: UnboundedSender<String>) -> Self {
        if let Ok(mut held) = SCREEN.lock() {
            *held = Some(screen);
        }
        Self
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Ok(mut held) = SCREEN.lock() {
            *held = None;
        }
    }
}

/// Panics on their way to a screen that is drawn elsewhere; nothing is written beside it as long as this is held.
#[derive(Debug)]
pub struct Faults {
    texts: UnboundedReceiver<String>,
    _held: Held,
}

impl Faults {
    /// From now on.
    pub fn hold() -> Self {
        let (door, texts) = unbounded_channel();
        Self { texts, _held: Held::by(door) }
    }

    /// The next one. Cancel-safe.
    pub async fn next(&mut self) -> String {
        match self.texts.recv().await {
            Some(text) => text,
            None => std::future::pending().await,
        }
    }
}

impl Drop for Faults {
    /// What nobody took is told all the same, whatever stands on the screen.
    fn drop(&mut self) {
        while let Ok(text) = self.texts.try_recv() {
            super::stdio::say(&format!("\r\x1b[J{text}\r\n"));
        }
    }
}
