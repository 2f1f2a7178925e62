//! One try: send, wait, read to the end. What it left behind stays readable when it is dropped half-way.
//!
//! Owns time limits within a try and the reading of headers. Must not know of retries.

use crate::assemble::{Assembled, Assembler, NotWhole};
use crate::config::Limits;
use crate::engine::body::{BadBody, BodyReader};
use crate::engine::target::Target;
use crate::error::{ErrorClass, ProviderErrorKind};
use crate::event::{RequestEvent, StreamEvent};
use crate::limiter::exhausted_for;
use crate::retry::retry_after;
use crate::wire::{Fault, classify_kind, name, read_fault, words};
use bytes::Bytes;
use claw_kernel::redact::Redactor;
use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Client, Response, Url};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

/// An error body is read up to here.
const ERROR_BODY_LIMIT: usize = 64 * 1024;
/// And for so long.
const ERROR_BODY_TIME: Duration = Duration::from_secs(10);
/// How long a whole message may keep its connection, so that it can be used again.
const DRAIN: Duration = Duration::from_millis(20);

/// A try that gave no answer.
#[derive(Debug)]
pub(super) struct TryFailed {
    pub(super) kind: Box<ProviderErrorKind>,
    pub(super) class: ErrorClass,
    pub(super) retry_after: Option<Duration>,
    /// The stream ended cleanly, yet without saying that the message is whole.
    pub(super) is_unended: bool,
    /// What came is no answer of this wire; the same comes again mostly.
    pub(super) is_garbled: bool,
}

impl TryFailed {
    pub(super) fn new(kind: ProviderErrorKind, class: ErrorClass) -> Self {
        Self { kind: Box::new(kind), class, retry_after: None, is_unended: false, is_garbled: false }
    }
}

/// One try under way.
pub(super) struct Attempt<'a> {
    pub(super) target: &'a Target<'a>,
    pub(super) limits: &'a Limits,
    pub(super) events: &'a mpsc::Sender<RequestEvent>,
    /// What a service says is shown and kept: without secrets.
    pub(super) redactor: &'a Redactor,
    pub(super) stream: bool,
    pub(super) assembler: Assembler,
    /// When the first block began.
    pub(super) flowing_since: Option<Instant>,
    /// The account's limits are used up for so long.
    pub(super) exhausted_for: Option<Duration>,
    /// The body was a document and no stream.
    pub(super) was_document: bool,
}

impl Attempt<'_> {
    /// Sends and reads. After an error, or when dropped, `assembler` holds what had come.
    pub(super) async fn run(&mut self, client: &Client, body: Bytes) -> Result<(), TryFailed> {
        let whole = self.limits.whole;
        match timeout(whole, self.run_unbounded(client, body)).await {
            Ok(done) => done,
            Err(_) => Err(self.stalled(whole)),
        }
    }

    async fn run_unbounded(&mut self, client: &Client, body: Bytes) -> Result<(), TryFailed> {
        let started = Instant::now();
        let first_byte = self.first_byte();
        let request =
            client.post(self.target.profile.endpoint.clone()).headers(self.target.headers()).body(body);
        let response = match timeout(first_byte, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.connect(error)),
            Err(_) => return Err(self.stalled(first_byte)),
        };
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        self.exhausted_for = exhausted_for(|name| text(response.headers(), name), claw_kernel::clock::now());
        self.read(response, started).await
    }

    /// A request that does not stream has its first byte when all tokens are made.
    fn first_byte(&self) -> Duration {
        let usual = self.target.profile.first_byte.unwrap_or(self.limits.first_byte);
        if self.stream { usual } else { usual.max(self.limits.first_token) }
    }

    async fn read(&mut self, mut response: Response, started: Instant) -> Result<(), TryFailed> {
        let mut reader = BodyReader::new(self.target.profile.wire);
        let mut out = Vec::new();
        let mut news = started;
        let mut has_bytes = false;
        let first_token = self.limits.first_token.max(self.target.profile.first_byte.unwrap_or_default());
        loop {
            let (from, limit) = match (self.flowing_since.is_some() || reader.is_document(), has_bytes) {
                (true, _) => (news, self.limits.idle),
                (false, true) => (started, first_token),
                (false, false) => (started, self.first_byte()),
            };
            let chunk = match timeout_at(from + limit, response.chunk()).await {
                Ok(Ok(chunk)) => chunk,
                Ok(Err(error)) => return self.give_up(reader, self.broken(&describe(error))).await,
                Err(_) => return self.give_up(reader, self.stalled(limit)).await,
            };
            let is_end = chunk.is_none();
            let fed = match &chunk {
                Some(bytes) => reader.push(bytes, &mut out),
                None => reader.finish(&mut out),
            };
            has_bytes = true;
            self.was_document = reader.is_document();
            let has_news = !out.is_empty() || self.was_document;
            self.pass_on(&mut out).await; // A slow reader slows the socket, and the clock stands meanwhile.
            if has_news {
                news = Instant::now();
            }
            if self.assembler.has_failed() || is_end {
                return fed.map_err(|bad| self.bad_body(bad));
            }
            if self.assembler.is_whole() {
                let _ = timeout(DRAIN, async { while let Ok(Some(_)) = response.chunk().await {} }).await;
                return Ok(());
            }
            fed.map_err(|bad| self.bad_body(bad))?;
        }
    }

    /// Nothing more comes. What the wire allows to be left out may make the message whole all the same.
    async fn give_up(&mut self, mut reader: BodyReader, failed: TryFailed) -> Result<(), TryFailed> {
        let mut out = Vec::new();
        reader.give_up(&mut out);
        self.pass_on(&mut out).await;
        if self.assembler.is_whole() { Ok(()) } else { Err(failed) }
    }

    async fn pass_on(&mut self, out: &mut Vec<StreamEvent>) {
        for event in out.drain(..) {
            self.assembler.take(&event);
            if self.flowing_since.is_none() && self.assembler.has_begun() {
                self.flowing_since = Some(Instant::now());
            }
            // Nobody may be listening; the answer is wanted all the same.
            let _ = self.events.send(RequestEvent::Stream(event)).await;
        }
    }

    /// The message, if it is whole.
    pub(super) fn assembled(&mut self) -> Result<Assembled, TryFailed> {
        let assembler = std::mem::take(&mut self.assembler);
        assembler.finish(&self.target.model).map_err(|not_whole| match not_whole {
            NotWhole::Error { kind, message } => {
                let class = classify_kind(&kind, &message);
                self.refusal(200, None, Fault::new(&kind, &message, class, self.redactor), None)
            }
            NotWhole::NoEnd if self.was_document => self.broken("a JSON document that is no message"),
            NotWhole::NoEnd => TryFailed { is_unended: true, ..self.broken(&not_whole.to_string()) },
            NotWhole::TooLong => self.too_large(&not_whole.to_string()),
        })
    }

    async fn refused(&self, response: Response) -> TryFailed {
        let status = response.status();
        let headers = response.headers().clone();
        let request_id = ["request-id", "x-request-id"].iter().find_map(|name| text(&headers, name));
        if status.is_redirection() {
            let fault = Fault::new("redirect", &self.redirect(&headers), ErrorClass::Refused, self.redactor);
            return self.refusal(status.as_u16(), request_id, fault, None);
        }
        let body = error_body(response).await;
        let fault =
            read_fault(status.as_u16(), status.canonical_reason().unwrap_or("unknown"), &body, self.redactor);
        let wait =
            retry_after(text(&headers, "retry-after-ms"), text(&headers, "retry-after"), SystemTime::now());
        self.refusal(status.as_u16(), request_id, fault, wait)
    }

    fn refusal(
        &self,
        status: u16,
        id: Option<&str>,
        fault: Fault,
        retry_after: Option<Duration>,
    ) -> TryFailed {
        let class = fault.class;
        TryFailed { retry_after, ..TryFailed::new(self.status(status, id, fault), class) }
    }

    fn redirect(&self, headers: &HeaderMap) -> String {
        let endpoint = &self.target.profile.endpoint;
        let place = text(headers, LOCATION.as_str()).and_then(|place| endpoint.join(place).ok());
        let host = place.as_ref().and_then(Url::host_str).unwrap_or("an unnamed host").to_owned();
        format!("redirects to {host}; nothing was sent there, set the base URL if that is the right host")
    }

    fn status(&self, status: u16, request_id: Option<&str>, fault: Fault) -> ProviderErrorKind {
        ProviderErrorKind::Status {
            provider: self.provider(),
            status,
            kind: fault.kind,
            message: fault.message,
            request_id: request_id.map(|id| name(id, self.redactor)),
        }
    }

    fn connect(&self, error: reqwest::Error) -> TryFailed {
        let endpoint = &self.target.profile.endpoint;
        // Host and port only: the rest of an address can hold secrets.
        let address = match (endpoint.host_str(), endpoint.port()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (Some(host), None) => host.to_owned(),
            (None, _) => "its address".to_owned(),
        };
        let kind =
            ProviderErrorKind::Connect { provider: self.provider(), address, message: describe(error) };
        TryFailed::new(kind, ErrorClass::Transient)
    }

    fn broken(&self, message: &str) -> TryFailed {
        let message = words(message, self.redactor);
        let kind = ProviderErrorKind::Broken { provider: self.provider(), message };
        TryFailed::new(kind, ErrorClass::Transient)
    }

    /// Asked again, it would be as large.
    fn too_large(&self, message: &str) -> TryFailed {
        let kind = ProviderErrorKind::TooLarge { provider: self.provider(), message: message.to_owned() };
        TryFailed::new(kind, ErrorClass::Refused)
    }

    fn stalled(&self, waited: Duration) -> TryFailed {
        let kind = ProviderErrorKind::Stalled { provider: self.provider(), waited };
        TryFailed::new(kind, ErrorClass::Timeout)
    }

    fn bad_body(&self, bad: BadBody) -> TryFailed {
        match bad {
            BadBody::Page(page) => {
                let fault = read_fault(200, "OK", &page, self.redactor);
                let message = format!("{} came in place of an answer; check the base URL", fault.message);
                let fault = Fault { kind: "html".to_owned(), message, class: ErrorClass::Refused };
                self.refusal(200, None, fault, None)
            }
            BadBody::NotUnderstood(_) => TryFailed { is_garbled: true, ..self.broken(&bad.to_string()) },
            BadBody::TooLong(_) => self.too_large(&bad.to_string()),
        }
    }

    fn provider(&self) -> String {
        self.target.profile.name.clone()
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

async fn error_body(mut response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk[..chunk.len().min(ERROR_BODY_LIMIT - body.len())]);
            if body.len() == ERROR_BODY_LIMIT {
                break;
            }
        }
    };
    let _ = timeout(ERROR_BODY_TIME, reading).await; // What came until then is described.
    body
}

/// The innermost cause, without the address and without a library's pointer to its manual.
fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let text = cause.to_string();
    text.split_once(": https://").map_or(text.as_str(), |(words, _)| words).to_owned()
}
