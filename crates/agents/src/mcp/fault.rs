//! Why a server does not serve, or a call of it failed.

use claw_tools::error::ToolError;
use std::time::Duration;

/// How far it had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The process or the address.
    Start,
    /// The first exchange.
    Handshake,
    /// Its lists.
    List,
    /// A call.
    Call,
}

impl Phase {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Handshake => "handshake",
            Self::List => "list",
            Self::Call => "call",
        }
    }
}

/// What went wrong with a server. The texts name no server: whoever shows them does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpFault {
    /// claw has no way to speak to it.
    #[error("{0}")]
    NotSupported(String),
    /// Its configuration cannot be used.
    #[error("{0}")]
    Config(String),
    /// Its process could not be started.
    #[error("{0}")]
    NotStarted(String),
    /// It wants to know who asks.
    #[error("it wants authorization: {0}; put a token into its `headers`")]
    Unauthorized(String),
    /// It said no, or something that is no answer.
    #[error("{said}")]
    Refused {
        /// Where.
        phase: Phase,
        /// What it said.
        said: String,
    },
    /// It said nothing in time.
    #[error("no answer within {} s ({})", after.as_secs_f64(), phase.name())]
    Silent {
        /// Where.
        phase: Phase,
        /// The limit.
        after: Duration,
    },
    /// It is gone.
    #[error("it ended{how}")]
    Gone {
        /// Where.
        phase: Phase,
        /// With a blank in front, or empty.
        how: String,
    },
    /// It fell so often that it is not started again.
    #[error("it is off after {restarts} restarts in a minute; the last time: {last}")]
    GaveUp {
        /// How often.
        restarts: usize,
        /// The last fault.
        last: String,
    },
    /// Its tools are not those that were approved.
    #[error(
        "its tools changed since they were approved ({0}); look at them with `claw mcp get`, approve them with `claw mcp approve`"
    )]
    Changed(String),
    /// It has no such thing.
    #[error("{0}")]
    Unknown(String),
    /// The process ends.
    #[error("it was stopped")]
    Stopped,
}

impl McpFault {
    /// How far it had come, where that is known.
    pub fn phase(&self) -> Option<Phase> {
        match self {
            Self::NotStarted(_) | Self::NotSupported(_) | Self::Config(_) => Some(Phase::Start),
            Self::Unauthorized(_) => Some(Phase::Handshake),
            Self::Changed(_) => Some(Phase::List),
            Self::Refused { phase, .. } | Self::Silent { phase, .. } | Self::Gone { phase, .. } => {
                Some(*phase)
            }
            Self::GaveUp { .. } | Self::Unknown(_) | Self::Stopped => None,
        }
    }

    /// Whether another try could end otherwise.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::NotStarted(_) | Self::Refused { .. } | Self::Silent { .. } | Self::Gone { .. } => true,
            Self::NotSupported(_)
            | Self::Config(_)
            | Self::Unauthorized(_)
            | Self::GaveUp { .. }
            | Self::Changed(_)
            | Self::Unknown(_)
            | Self::Stopped => false,
        }
    }
}

impl From<ToolError> for McpFault {
    fn from(error: ToolError) -> Self {
        Self::NotStarted(error.to_string())
    }
}
