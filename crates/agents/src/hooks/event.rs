//! When hooks run.

use claw_tools::registry::key;
use std::fmt;

/// A moment at which hooks run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HookEvent {
    /// Before a call, before the rules are read.
    PreToolUse,
    /// After a call that succeeded.
    PostToolUse,
    /// After a call that failed.
    PostToolUseFailure,
    /// Before a person is asked about a call.
    PermissionRequest,
    /// Before a prompt of a person goes to the model.
    UserPromptSubmit,
    /// A session begins, or goes on.
    SessionStart,
    /// A session ends.
    SessionEnd,
    /// The lead is done with a turn.
    Stop,
    /// An agent that is not the lead begins.
    SubagentStart,
    /// An agent that is not the lead is done.
    SubagentStop,
    /// Before a conversation is compacted.
    PreCompact,
    /// claw wants the user's attention.
    Notification,
}

impl HookEvent {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::PermissionRequest,
        Self::UserPromptSubmit,
        Self::SessionStart,
        Self::SessionEnd,
        Self::Stop,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::PreCompact,
        Self::Notification,
    ];

    /// As settings write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::PermissionRequest => "PermissionRequest",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::SessionStart => "SessionStart",
            Self::SessionEnd => "SessionEnd",
            Self::Stop => "Stop",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::PreCompact => "PreCompact",
            Self::Notification => "Notification",
        }
    }

    /// The event of a name: case, `_` and `-` do not count.
    pub fn named(name: &str) -> Option<Self> {
        let wanted = key(name);
        Self::ALL.into_iter().find(|event| key(event.name()) == wanted)
    }

    /// Whether it stands before an effect, so that a failure must not let that happen.
    pub fn is_guard(self) -> bool {
        matches!(self, Self::PreToolUse | Self::PermissionRequest)
    }

    /// Whether it is about one tool call.
    pub fn is_of_a_call(self) -> bool {
        matches!(
            self,
            Self::PreToolUse | Self::PostToolUse | Self::PostToolUseFailure | Self::PermissionRequest
        )
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_is_found_by_its_name_in_any_spelling() {
        for event in HookEvent::ALL {
            assert_eq!(HookEvent::named(event.name()), Some(event));
        }
        assert_eq!(HookEvent::named("pre_tool_use"), Some(HookEvent::PreToolUse));
        assert_eq!(HookEvent::named("Setup"), None);
    }
}
