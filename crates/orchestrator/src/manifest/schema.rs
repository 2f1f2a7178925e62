//! The shape of `manifest.json`, and nothing else. Every change that an old reader would not understand is a new schema.

use crate::addr::StepAddr;
use claw_agents::outcome::FailureClass;
use claw_kernel::clock::Timestamp;
use claw_kernel::digest::Digest;
use claw_kernel::ids::{AgentId, RunId};
use claw_providers::usage::Usage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The schema that this program writes.
pub const SCHEMA: u32 = 1;

/// One attempt of an agent, a command or a merge.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Of this file.
    pub schema: u32,
    /// Where it is an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Which run.
    pub run_id: RunId,
    /// Which step.
    pub step: StepAddr,
    /// From 1.
    pub attempt: u32,
    /// Short, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// One line, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The agent's definition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent_type: Option<String>,
    /// As it resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// As it resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// As they resolved.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// How it stands.
    pub status: ManifestStatus,
    /// When the attempt was admitted.
    pub created_at: Timestamp,
    /// When its work began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it became final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// What it gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_file: Option<PathBuf>,
    /// Its session log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript_file: Option<PathBuf>,
    /// This file.
    pub manifest_file: PathBuf,
    /// What it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<ManifestUsage>,
    /// Turns of the conversation, over resumed attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u32>,
    /// Calls by tool.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tool_calls: BTreeMap<String, u32>,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Class of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_class: Option<FailureClass>,
    /// While it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_for: Option<String>,
    /// Files that it left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<ManifestArtifact>,
    /// What its work tree started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_commit: Option<String>,
    /// Where it worked, if apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree: Option<PathBuf>,
    /// Holds its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The agent that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_agent_id: Option<AgentId>,
    /// The process that ran it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Its boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
}

/// How an attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ManifestStatus {
    /// Pending, ready or admitted.
    Queued,
    /// It works.
    Running,
    /// It waits.
    Waiting,
    /// It succeeded.
    Completed,
    /// It failed.
    Failed,
    /// It was stopped from outside.
    Cancelled,
    /// claw stopped it, or its process is gone.
    Interrupted,
}

impl ManifestStatus {
    /// Whether nothing more comes.
    pub fn is_final(self) -> bool {
        match self {
            Self::Queued | Self::Running | Self::Waiting => false,
            Self::Completed | Self::Failed | Self::Cancelled | Self::Interrupted => true,
        }
    }

    /// As it stands in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
        }
    }
}

/// What an attempt cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ManifestUsage {
    /// In its own requests.
    #[serde(rename = "self")]
    pub own: ManifestTokens,
    /// With all that it started.
    pub subtree: ManifestTokens,
}

/// Tokens and money.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestTokens {
    /// Input tokens outside any cache.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Input tokens read from a cache.
    pub cache_read: u64,
    /// Input tokens written to a cache.
    pub cache_write: u64,
    /// US dollars; left out where a price is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd: Option<f64>,
}

impl From<Usage> for ManifestTokens {
    fn from(usage: Usage) -> Self {
        let Usage { input, output, cache_read, cache_write, usd, unknown: _ } = usage;
        Self { input, output, cache_read, cache_write, usd }
    }
}

/// A file that an attempt left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestArtifact {
    /// Relative to the workspace.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// Of its bytes.
    pub sha256: Digest,
}
