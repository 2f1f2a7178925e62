//! How a server is, for lists and diagnosis.

use super::fault::{McpFault, Phase};
use crate::settings::Origin;

/// In one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// Starts at its first use.
    Idle,
    /// On its way.
    Starting,
    /// It serves.
    Connected,
    /// It serves, without the tools that changed since the user saw them.
    Changed,
    /// It fell and is started again soon.
    Waiting,
    /// It is not started again.
    Off,
    /// claw cannot speak to it.
    NotSupported,
}

impl ServerState {
    /// For people and for JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Connected => "connected",
            Self::Changed => "changed",
            Self::Waiting => "waiting",
            Self::Off => "failed",
            Self::NotSupported => "not supported",
        }
    }
}

/// One server. Texts may hold control characters of others: show them visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerReport {
    /// As configured.
    pub name: String,
    /// `stdio`, `http`, or as written.
    pub kind: String,
    /// Command line or address.
    pub shown: String,
    /// Where it is written.
    pub origin: Origin,
    /// In one word.
    pub state: ServerState,
    /// How far it came, where it failed.
    pub phase: Option<Phase>,
    /// Why it failed.
    pub reason: Option<String>,
    /// What it says it is.
    pub about: String,
    /// Names and descriptions of its tools.
    pub tools: Vec<(&'static str, String)>,
    /// What people should know of them.
    pub warnings: Vec<String>,
}

impl ServerReport {
    pub(super) fn failed(&mut self, state: ServerState, fault: &McpFault) {
        self.state = state;
        self.phase = fault.phase();
        self.reason = Some(fault.to_string());
    }
}
