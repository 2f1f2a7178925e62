//! Servers of the settings, made into what agents work with.
//!
//! Must not know what a server does.

use crate::services::{Setup, state_folder};
use crate::terminal::say;
use claw_agents::mcp::{Approvals, McpPorts, McpServers, ServerSpec, parse_server, without_doubles};
use claw_kernel::redact::Redactor;
use claw_kernel::visible::visible_line;
use std::sync::Arc;

/// The servers that count. What is wrong with one is said; the others serve.
pub(crate) fn specs(setup: &Setup) -> Vec<ServerSpec> {
    let keys = setup.config.secrets();
    // No server is handed a key of a provider, however its configuration asks for it.
    let look_up =
        |name: &str| setup.variable(name).filter(|value| !keys.iter().any(|key| key == value.trim()));
    let mut specs = Vec::new();
    for item in &setup.settings.mcp_servers {
        let problems = match parse_server(&item.name, &item.node.to_json(), &item.origin, &look_up) {
            Ok((spec, problems)) => {
                specs.extend(spec);
                problems
            }
            Err(problem) => vec![problem],
        };
        for problem in problems {
            let words = format!("{}: MCP server `{}`: {}", problem.origin, problem.name, problem.message);
            say(&format!("warning: {}\n", visible_line(&words)));
        }
    }
    let (specs, doubles) = without_doubles(specs);
    for (name, known) in doubles {
        tracing::info!(%name, %known, "two entries are the same server: it counts once");
    }
    specs
}

/// What the user has seen of the tools of servers.
pub(crate) fn approvals() -> Approvals {
    Approvals::at(state_folder().join("mcp-tools.json"))
}

/// Starts them. Within a runtime.
pub(crate) fn start(setup: &Setup, redactor: Arc<Redactor>) -> McpServers {
    McpServers::start(specs(setup), &setup.cwd, McpPorts::default(), approvals(), redactor)
}
