//! `list_mcp_resources` and `read_mcp_resource`: what servers have to read.

use super::servers::{McpServers, named};
use claw_kernel::visible::visible_line;
use claw_tools::error::ToolError;
use claw_tools::output::ToolOutput;
use claw_tools::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

/// Resources that are listed at once.
const MOST_LISTED: usize = 200;

/// Lists resources.
pub struct ListResources {
    servers: McpServers,
}

/// Reads one.
pub struct ReadResource {
    servers: McpServers,
}

impl ListResources {
    const NAME: &'static str = "list_mcp_resources";

    /// Of these servers.
    pub fn new(servers: McpServers) -> Self {
        Self { servers }
    }
}

impl ReadResource {
    const NAME: &'static str = "read_mcp_resource";

    /// Of these servers.
    pub fn new(servers: McpServers) -> Self {
        Self { servers }
    }
}

fn word(tool: &'static str, input: &Value, key: &str) -> Result<Option<String>, ToolError> {
    match input.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => {
            let message = "this is a text".to_owned();
            Err(ToolError::Input { tool, path: key.to_owned(), message })
        }
    }
}

fn needed(tool: &'static str, input: &Value, key: &str) -> Result<String, ToolError> {
    word(tool, input, key)?.ok_or_else(|| ToolError::Input {
        tool,
        path: key.to_owned(),
        message: "it is missing".to_owned(),
    })
}

impl Tool for ListResources {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["ListMcpResourcesTool", "ListMcpResources"]
    }

    fn description(&self) -> String {
        "Lists resources of MCP servers: address, name, type.".to_owned()
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {"server": {"type": "string", "description": "of this server only"}},
            "additionalProperties": false,
        })
    }

    fn effect(&self, _: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        word(Self::NAME, input, "server")?;
        Ok(Effect::default())
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        _: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let server = word(Self::NAME, &input, "server")?;
            let listed = tokio::select! {
                () = ctx.cancel.cancelled() => return Err(ToolError::Cancelled),
                listed = self.servers.resources(server.as_deref()) => listed,
            };
            let all = listed
                .map_err(|fault| ToolError::Refused(named(server.as_deref().unwrap_or_default(), fault)))?;
            if all.is_empty() {
                return Ok(ToolOutput::text("no resources"));
            }
            let lines = all.iter().take(MOST_LISTED).map(|(server, one)| {
                let kind = one.mime_type.as_deref().unwrap_or("?");
                visible_line(&format!("{server}  {}  {} ({kind})", one.uri, one.name)).into_owned()
            });
            let mut text = lines.collect::<Vec<_>>().join("\n");
            if all.len() > MOST_LISTED {
                text.push_str(&format!("\n[{} more]", all.len() - MOST_LISTED));
            }
            Ok(ToolOutput::text(text))
        })
    }
}

impl Tool for ReadResource {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["ReadMcpResourceTool", "ReadMcpResource"]
    }

    fn description(&self) -> String {
        "Reads a resource of an MCP server by its address.".to_owned()
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {"server": {"type": "string"}, "uri": {"type": "string"}},
            "required": ["server", "uri"],
            "additionalProperties": false,
        })
    }

    fn effect(&self, _: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        needed(Self::NAME, input, "server")?;
        needed(Self::NAME, input, "uri")?;
        Ok(Effect::default())
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        _: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let (server, uri) = (needed(Self::NAME, &input, "server")?, needed(Self::NAME, &input, "uri")?);
            let read = tokio::select! {
                () = ctx.cancel.cancelled() => return Err(ToolError::Cancelled),
                read = self.servers.read(&server, &uri) => read,
            };
            read.map_err(|fault| ToolError::Refused(named(&server, fault)))
        })
    }
}
