//! `stream-json` of a run: an event a line, written by a task of its own, so that a slow reader holds up nothing else.

use crate::terminal::Stdout;
use claw_kernel::tasks::{self, TaskHandle};
use claw_orchestrator::report::event::{RunEvent, RunEventKind};
use claw_orchestrator::report::json;
use std::sync::Arc;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

/// Writes events until the run has ended.
pub(super) fn write(out: Arc<Stdout>, mut events: Receiver<RunEvent>, partial: bool) -> TaskHandle<()> {
    tasks::spawn("stream-json", async move {
        loop {
            let line = match events.recv().await {
                Ok(RunEvent { kind: RunEventKind::AgentText(_), .. }) if !partial => continue,
                Ok(event) => {
                    let ended = matches!(event.kind, RunEventKind::RunEnded { .. });
                    (json::line(&event).unwrap_or_default(), ended)
                }
                Err(RecvError::Lagged(missed)) => (missing(missed), false),
                Err(RecvError::Closed) => return,
            };
            let (text, ended) = line;
            if out.line(text).await.is_err() || ended {
                return;
            }
        }
    })
}

fn missing(events: u64) -> String {
    let text = format!("the reader was too slow: {events} events are missing here");
    serde_json::json!({ "v": json::VERSION, "type": "note", "text": text }).to_string()
}
