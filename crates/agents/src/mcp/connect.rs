//! From a specification to a connection: start, handshake, within the time that a start may take.

use super::client::Client;
use super::config::{ServerKind, ServerSpec};
use super::fault::{McpFault, Phase};
use super::frames::Frames;
use super::ports::McpPorts;
use super::tail::Tail;
use claw_kernel::redact::Redactor;
use claw_kernel::tasks;
use claw_tools::process::{End, Held, Job, Talk, hold};
use claw_tools::sandbox::SandboxPolicy;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RoleClient, RunningService,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

/// From SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_millis(400);
/// For what a server that ended had written before.
const DRAIN: Duration = Duration::from_millis(200);
/// Bytes of an answer over HTTP.
const MOST_BODY: usize = 4 << 20;

/// What all servers of a process share.
#[derive(Clone, Debug)]
pub(super) struct Ground {
    pub(super) project: PathBuf,
    /// The user's own programs: as free as the user.
    pub(super) policy: Arc<SandboxPolicy>,
    pub(super) ports: McpPorts,
    pub(super) redactor: Arc<Redactor>,
}

/// A connection that stands.
pub(super) struct Link {
    pub(super) service: RunningService<RoleClient, Client>,
    pub(super) held: Option<Held>,
    pub(super) changed: Arc<Notify>,
}

impl Ground {
    fn client(&self, spec: &ServerSpec, changed: &Arc<Notify>) -> Client {
        Client {
            server: spec.name.clone(),
            project: self.project.clone(),
            ports: self.ports.clone(),
            changed: changed.clone(),
        }
    }

    /// Connects. Dropping the future ends what was started.
    pub(super) async fn connect(&self, spec: &ServerSpec, tail: &Arc<Tail>) -> Result<Link, McpFault> {
        let limit = spec.times.start;
        let silent = McpFault::Silent { phase: Phase::Handshake, after: limit };
        match &spec.kind {
            ServerKind::NotSupported { why, .. } => Err(McpFault::NotSupported(why.clone())),
            ServerKind::Http { url, headers } => {
                timeout(limit, self.over_http(spec, url, headers)).await.unwrap_or(Err(silent))
            }
            ServerKind::Stdio { command, args, env, cwd } => {
                let folder = cwd.as_ref().map_or_else(|| self.project.clone(), |cwd| self.project.join(cwd));
                let arguments = args.iter().map(OsString::from);
                let mut job = Job::argv(command, arguments, folder, self.policy.clone());
                job.env = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
                job.grace = GRACE;
                self.over_pipes(spec, job, tail).await
            }
        }
    }

    async fn over_pipes(&self, spec: &ServerSpec, job: Job, tail: &Arc<Tail>) -> Result<Link, McpFault> {
        let (mut held, Talk { input, out, err }) = hold(job)?;
        let words = tail.clone();
        // It ends with the pipe.
        drop(tasks::spawn("mcp stderr", async move { words.read(err).await }));
        let frames = Frames::new(&spec.name, out, input, tail.clone());
        let changed = Arc::new(Notify::new());
        let client = self.client(spec, &changed);
        let serving = client.serve_with_lifecycle(frames, ClientLifecycleMode::Initialize);
        tokio::pin!(serving);
        let silent = McpFault::Silent { phase: Phase::Handshake, after: spec.times.start };
        let fault = tokio::select! {
            biased;
            served = &mut serving => match served {
                Ok(service) => return Ok(Link { service, held: Some(held), changed }),
                Err(error) => fault_of(&error),
            },
            end = held.ended() => McpFault::Gone { phase: Phase::Handshake, how: how(end) },
            () = tokio::time::sleep(spec.times.start) => silent,
        };
        let end = held.end().await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        Err(match fault {
            // The pipe is closed before the process is waited for.
            McpFault::Gone { phase, how: known } if known.is_empty() => {
                with_words(McpFault::Gone { phase, how: how(end) }, tail)
            }
            fault => with_words(fault, tail),
        })
    }

    async fn over_http(
        &self,
        spec: &ServerSpec,
        url: &str,
        headers: &[(String, String)],
    ) -> Result<Link, McpFault> {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            let bad = |what: &str| McpFault::Config(format!("the {what} of a header is not valid: {name}"));
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("name"))?;
            let mut value = HeaderValue::from_str(value).map_err(|_| bad("value"))?;
            value.set_sensitive(true);
            all.insert(name, value);
        }
        // No redirects: headers hold keys, and the address is what was trusted.
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .default_headers(all)
            .connect_timeout(spec.times.start)
            .build()
            .map_err(|error| McpFault::Config(error.to_string()))?;
        let config = StreamableHttpClientTransportConfig::with_uri(url)
            .max_json_response_size(MOST_BODY)
            .max_sse_event_size(MOST_BODY);
        let transport = StreamableHttpClientTransport::with_client(http, config);
        let changed = Arc::new(Notify::new());
        let client = self.client(spec, &changed);
        let served = client.serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await;
        let service = served.map_err(|error| self.without_secrets(http_fault(&error)))?;
        Ok(Link { service, held: None, changed })
    }

    fn without_secrets(&self, fault: McpFault) -> McpFault {
        match fault {
            McpFault::Refused { phase, said } => {
                McpFault::Refused { phase, said: self.redactor.apply(&said).into_owned() }
            }
            fault => fault,
        }
    }
}

/// How a process ended, with a blank in front.
pub(super) fn how(end: End) -> String {
    match end {
        End::Exited(code) => format!(" with status {code}"),
        End::Signalled(signal) => format!(" by signal {signal}"),
        End::TimedOut | End::Cancelled => String::new(),
    }
}

/// A fault with what the server wrote last.
pub(super) fn with_words(fault: McpFault, tail: &Tail) -> McpFault {
    let words = tail.words();
    match fault {
        McpFault::Refused { phase, said } => McpFault::Refused { phase, said: said + &words },
        McpFault::Gone { phase, how } => McpFault::Gone { phase, how: how + &words },
        McpFault::Silent { phase, after } if !words.is_empty() => McpFault::Refused {
            phase,
            said: format!("no answer within {} s ({}){words}", after.as_secs_f64(), phase.name()),
        },
        fault => fault,
    }
}

fn fault_of(error: &ClientInitializeError) -> McpFault {
    let phase = Phase::Handshake;
    match error {
        ClientInitializeError::ConnectionClosed(_) => McpFault::Gone { phase, how: String::new() },
        ClientInitializeError::TransportError { .. } => McpFault::Gone { phase, how: String::new() },
        ClientInitializeError::JsonRpcError(error) => {
            McpFault::Refused { phase, said: format!("it refused the handshake: {}", error.message) }
        }
        other => McpFault::Refused { phase, said: chain(other) },
    }
}

fn http_fault(error: &ClientInitializeError) -> McpFault {
    let phase = Phase::Handshake;
    if let Some(challenge) = error.auth_challenge() {
        return McpFault::Unauthorized(challenge.chars().take(300).collect());
    }
    let said = chain(error);
    if ["404", "405"].iter().any(|status| said.contains(status)) {
        let more = "it may speak the old SSE transport only, which claw does not";
        return McpFault::Refused { phase, said: format!("{said}; {more}") };
    }
    McpFault::Refused { phase, said }
}

/// An error and its causes in one line, each once.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let text = cause.to_string();
        if !words.contains(&text) {
            words = format!("{words}: {text}");
        }
        source = cause.source();
    }
    words.chars().take(1_000).collect()
}

impl Link {
    /// Keeps the connection until it falls or `cancel`; ends the process. Gives how it fell.
    pub(super) async fn tend(self, cancel: claw_kernel::cancel::CancelToken) -> String {
        let Self { service, held, .. } = self;
        let stop = service.cancellation_token();
        let waiting = service.waiting();
        tokio::pin!(waiting);
        let Some(mut held) = held else {
            tokio::select! {
                _ = &mut waiting => {}
                () = cancel.cancelled() => {
                    stop.cancel();
                    // The session at the other end is given up in time or not at all.
                    let _ = timeout(DRAIN, waiting).await;
                }
            }
            return String::new();
        };
        tokio::select! {
            _ = &mut waiting => {
                // The pipe closed: mostly because the process ends.
                let end = match timeout(DRAIN, held.ended()).await {
                    Ok(end) => how(end),
                    Err(_) => ", it closed its standard output".to_owned(),
                };
                held.end().await;
                return end;
            }
            end = held.ended() => {
                let _ = timeout(DRAIN, waiting).await;
                stop.cancel();
                held.end().await;
                return how(end);
            }
            () = cancel.cancelled() => {}
        }
        stop.cancel();
        let closed = timeout(DRAIN, waiting);
        let (_, end) = tokio::join!(closed, held.end());
        how(end)
    }
}
