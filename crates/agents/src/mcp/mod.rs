//! Servers of the Model Context Protocol: their tools, resources and prompts for every agent of this process.
//!
//! Owns configuration, processes and connections of servers, names and texts of what they offer. Must not know settings
//! files, turns or screens. The wire is spoken by the official library; what comes from a server is bounded before that.

mod approval;
mod client;
mod config;
mod connect;
mod expand;
mod fault;
mod frames;
mod life;
mod listing;
mod names;
mod offer;
mod ports;
mod prompts;
mod report;
mod resources;
mod results;
mod server;
mod servers;
mod supervisor;
mod tail;
#[cfg(test)]
mod tests;
mod tool;

pub use approval::Approvals;
pub use config::{ServerKind, ServerProblem, ServerSpec, ServerTimes, parse_server, without_doubles};
pub use fault::{McpFault, Phase};
pub use offer::{OfferedTool, Warning};
pub use ports::{FormReply, McpPerson, McpPorts, NoSample, SampleRequest, Sampler};
pub use prompts::{PromptInfo, PromptText};
pub use report::{ServerReport, ServerState};
pub use resources::{ListResources, ReadResource};
pub use servers::McpServers;
