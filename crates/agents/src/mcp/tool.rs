//! A tool of a server, as every other tool.

use super::names::tool_name;
use super::offer::OfferedTool;
use super::servers::{McpServers, named};
use claw_kernel::visible::visible_line;
use claw_tools::error::ToolError;
use claw_tools::names::interned;
use claw_tools::output::ToolOutput;
use claw_tools::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

/// One tool of one server.
pub(super) struct McpTool {
    servers: McpServers,
    server: String,
    offered: OfferedTool,
}

impl McpTool {
    pub(super) fn new(servers: McpServers, server: &str, offered: OfferedTool) -> Self {
        Self { servers, server: server.to_owned(), offered }
    }
}

impl Tool for McpTool {
    fn name(&self) -> &'static str {
        self.offered.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn description(&self) -> String {
        self.offered.description.clone()
    }

    fn input_schema(&self) -> Value {
        self.offered.schema.clone()
    }

    fn effect(&self, _: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        if !input.is_object() {
            let message = "the input is an object".to_owned();
            return Err(ToolError::Input { tool: self.name(), path: ".".to_owned(), message });
        }
        // What says nothing of itself may do anything.
        let server = (!self.offered.is_read_only).then(|| self.server.clone());
        Ok(Effect { server, ..Effect::default() })
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        _: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let called = self.servers.call(&self.server, &self.offered.raw, input, &ctx.cancel).await;
            called.map_err(|fault| {
                if ctx.cancel.is_cancelled() {
                    return ToolError::Cancelled;
                }
                ToolError::Refused(named(&self.server, fault))
            })
        })
    }
}

/// Starts a server that waits for its first use.
pub(super) struct ConnectTool {
    servers: McpServers,
    server: String,
    name: &'static str,
}

impl ConnectTool {
    /// `None`: there are too many names already.
    pub(super) fn new(servers: McpServers, server: &str) -> Option<Self> {
        let name = interned(&tool_name(server, "connect")).ok()?;
        Some(Self { servers, server: server.to_owned(), name })
    }
}

impl Tool for ConnectTool {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        &[]
    }

    fn description(&self) -> String {
        format!("Starts the MCP server {}; its tools are there after that.", visible_line(&self.server))
    }

    fn input_schema(&self) -> Value {
        json!({"type": "object", "properties": {}, "additionalProperties": false})
    }

    fn effect(&self, _: &ToolContext, _: &Value) -> Result<Effect, ToolError> {
        Ok(Effect::default())
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        _: &'a Effect,
        _: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let connected = tokio::select! {
                () = ctx.cancel.cancelled() => return Err(ToolError::Cancelled),
                connected = self.servers.connect(&self.server) => connected,
            };
            let tools = connected.map_err(|fault| ToolError::Refused(named(&self.server, fault)))?;
            Ok(ToolOutput::text(format!("connected; its tools: {}", tools.join(", "))))
        })
    }
}
