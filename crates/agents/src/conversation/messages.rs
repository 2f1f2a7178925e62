//! What an agent says to the user besides its answer, as news of its conversation.

use crate::event::{AgentEvent, EventSink};
use claw_tools::ports::{MessageStatus, Messenger, UserMessage};
use futures_util::future::BoxFuture;
use std::sync::Arc;

/// Sends messages where the news of the conversation go.
pub(crate) struct ToUser(pub(crate) Arc<dyn EventSink>);

impl Messenger for ToUser {
    fn tell(&self, message: UserMessage) -> BoxFuture<'_, ()> {
        let UserMessage { agent, text, status, attachments } = message;
        let status = match status {
            MessageStatus::Working => "",
            MessageStatus::Blocked => " (blocked)",
            MessageStatus::Done => " (done)",
        };
        let files: String = attachments.iter().map(|path| format!("\n  {}", path.display())).collect();
        self.0.send(AgentEvent::Note(format!("{agent}{status}: {text}{files}")))
    }
}
