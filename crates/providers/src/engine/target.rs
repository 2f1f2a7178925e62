//! Where one request goes and how it is spelt there.
//!
//! Owns the body and headers of the tries of one request. Must not know how often it is tried.

use crate::credentials::Credentials;
use crate::error::ProviderErrorKind;
use crate::models::{ModelInfo, default_output};
use crate::profile::Profile;
use crate::request::Request;
use crate::route::Route;
use crate::wire::{Asked, Wire, encode};
use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

const API_VERSION: &str = "2023-06-01";

/// One service, one model, one request.
#[derive(Debug)]
pub(super) struct Target<'a> {
    pub(super) profile: &'a Profile,
    pub(super) model: String,
    pub(super) info: ModelInfo,
    headers: Arc<HeaderMap>,
    streamed: Bytes,
}

/// The headers of each service, by its name: made once.
#[derive(Debug, Default)]
pub(crate) struct Headers(Mutex<HashMap<String, Arc<HeaderMap>>>);

impl Headers {
    fn of(&self, profile: &Profile) -> Result<Arc<HeaderMap>, ProviderErrorKind> {
        let mut made = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(headers) = made.get(&profile.name) {
            return Ok(headers.clone());
        }
        let headers = Arc::new(headers(profile)?);
        made.insert(profile.name.clone(), headers.clone());
        Ok(headers)
    }
}

impl<'a> Target<'a> {
    pub(super) fn new(
        route: Route<'a>,
        request: &Request,
        headers: &Headers,
    ) -> Result<Self, ProviderErrorKind> {
        let info = route.profile.info(&route.model);
        let headers = headers.of(route.profile)?;
        let mut target =
            Self { profile: route.profile, model: route.model, info, headers, streamed: Bytes::new() };
        target.streamed = target.body(request, true)?;
        Ok(target)
    }

    /// The body: the streaming one is written once, every try sends the same bytes.
    pub(super) fn body(&self, request: &Request, stream: bool) -> Result<Bytes, ProviderErrorKind> {
        if stream && !self.streamed.is_empty() {
            return Ok(self.streamed.clone());
        }
        let asked = Asked {
            model: &self.model,
            max_output: self.max_output(request),
            thinking: self.info.thinking,
            answer_schema: self.profile.answer_schema,
            stream,
        };
        encode(self.profile.wire, request, &asked)
            .map_err(|error| ProviderErrorKind::Config(error.to_string()))
    }

    pub(super) fn headers(&self) -> HeaderMap {
        HeaderMap::clone(&self.headers)
    }

    /// An unknown model on a server of one's own may have a small window: there the server decides.
    fn max_output(&self, request: &Request) -> Option<u32> {
        let limit = self.info.max_output;
        if let Some(asked) = request.max_output {
            return Some(limit.map_or(asked, |limit| asked.min(limit)));
        }
        let is_open = self.profile.is_local && self.profile.wire == Wire::Chat && limit.is_none();
        (!is_open).then(|| default_output(&self.model, limit))
    }
}

fn headers(profile: &Profile) -> Result<HeaderMap, ProviderErrorKind> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    match profile.wire {
        Wire::Anthropic => {
            headers.insert("anthropic-version", HeaderValue::from_static(API_VERSION));
        }
        Wire::Chat => {}
    }
    for (name, value) in &profile.headers {
        headers.insert(header_name(name, profile)?, header_value(name, value, profile)?);
    }
    for (name, value) in profile.credentials.iter().flat_map(Credentials::headers) {
        let mut value = header_value(name, &value, profile)?;
        value.set_sensitive(true);
        headers.insert(header_name(name, profile)?, value);
    }
    Ok(headers)
}

fn header_name(name: &str, profile: &Profile) -> Result<HeaderName, ProviderErrorKind> {
    name.parse().map_err(|_| {
        ProviderErrorKind::Config(format!(
            "`{name}` in the headers of provider `{}` is no header name",
            profile.name
        ))
    })
}

fn header_value(name: &str, value: &str, profile: &Profile) -> Result<HeaderValue, ProviderErrorKind> {
    HeaderValue::from_str(value).map_err(|_| {
        ProviderErrorKind::Config(format!(
            "the value of header `{name}` of provider `{}` holds characters that no header may hold",
            profile.name
        ))
    })
}
