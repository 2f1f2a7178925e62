//! A panic is never hidden: its message goes above the bars where there are some, else straight to standard error.

use std::sync::Mutex;
use tokio::sync::mpsc::UnboundedSender;

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
