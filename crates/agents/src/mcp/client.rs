//! What claw is to a server: its roots, and answers to what the server asks.
#![expect(
    deprecated,
    reason = "roots, sampling and logging are what today's servers use; the library marks them for a later protocol"
)]

use super::ports::{FormReply, McpPorts, SampleRequest};
use claw_kernel::visible::visible_line;
use rmcp::ErrorData;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, CreateMessageRequestMethod, CreateMessageRequestParams,
    CreateMessageResult, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    FormElicitationCapability, Implementation, ListRootsResult, LoggingMessageNotificationParam,
    ProtocolVersion, Role, Root, RootsCapabilities, SamplingCapability, SamplingMessage,
    SamplingMessageContentBlock, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::Notify;

/// claw, seen by one server.
pub(super) struct Client {
    pub(super) server: String,
    pub(super) project: PathBuf,
    pub(super) ports: McpPorts,
    /// Its tools are others now.
    pub(super) changed: Arc<Notify>,
}

/// A path as an address.
fn file_address(path: &std::path::Path) -> String {
    let mut address = "file://".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => address.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => address.push(char::from(*byte)),
            byte => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address
}

impl ClientHandler for Client {
    async fn create_message(
        &self,
        params: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        let Some(sampler) = &self.ports.sampler else {
            return Err(ErrorData::method_not_found::<CreateMessageRequestMethod>());
        };
        let request = SampleRequest {
            server: self.server.clone(),
            system: params.system_prompt.clone(),
            messages: params.messages.iter().map(|message| (role(message), words(message))).collect(),
            max_tokens: params.max_tokens,
        };
        let (text, model) =
            sampler.sample(request).await.map_err(|why| ErrorData::internal_error(why.0, None))?;
        let message = SamplingMessage::assistant_text(text);
        Ok(CreateMessageResult::new(message, model)
            .with_stop_reason(CreateMessageResult::STOP_REASON_END_TURN))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new(file_address(&self.project))]))
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let Some(person) = &self.ports.person else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(&requested_schema).unwrap_or_default();
                Ok(match person.fill_form(&self.server, &message, schema).await {
                    FormReply::Accept(content) => {
                        ElicitResult::new(ElicitationAction::Accept).with_content(content)
                    }
                    FormReply::Decline => ElicitResult::new(ElicitationAction::Decline),
                    FormReply::Cancel => ElicitResult::new(ElicitationAction::Cancel),
                })
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                let agrees = person.open_address(&self.server, &message, &url).await;
                let action = if agrees { ElicitationAction::Accept } else { ElicitationAction::Decline };
                Ok(ElicitResult::new(action))
            }
            // Forms that a later protocol knows.
            _ => Ok(ElicitResult::new(ElicitationAction::Decline)),
        }
    }

    async fn on_logging_message(
        &self,
        params: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let text = params.data.as_str().map_or_else(|| params.data.to_string(), str::to_owned);
        let text: String = text.chars().take(2_000).collect();
        tracing::info!(server = %self.server, level = ?params.level, "{}", visible_line(&text));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    fn get_info(&self) -> ClientConfig {
        let mut can = ClientCapabilities::default();
        can.roots = Some(RootsCapabilities::default());
        if self.ports.sampler.is_some() {
            can.sampling = Some(SamplingCapability::default());
        }
        if self.ports.person.is_some() {
            let forms = ElicitationCapability::new().with_form(FormElicitationCapability::default());
            can.elicitation = Some(forms.with_url(UrlElicitationCapability::default()));
        }
        let us = Implementation::new("claw", env!("CARGO_PKG_VERSION"));
        // The newest protocol that begins with a handshake: that is what servers speak.
        ClientConfig::new(can, us).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

fn role(message: &SamplingMessage) -> String {
    match message.role {
        Role::User => "user".to_owned(),
        Role::Assistant => "assistant".to_owned(),
    }
}

fn words(message: &SamplingMessage) -> String {
    let texts = message.content.iter().filter_map(|block| match block {
        SamplingMessageContentBlock::Text(text) => Some(text.text.clone()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
