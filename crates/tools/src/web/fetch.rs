//! Fetches one page: hop by hop, each judged; bounded in time and in bytes after decompression.

use super::address::judge_url;
use super::cache::Cache;
use super::client::{WebConfig, build};
use super::error::WebError;
use super::lookup::{Guard, Lookup, SystemLookup};
use super::page::{Page, Raw};
use crate::cut;
use claw_kernel::cancel::CancelToken;
use claw_kernel::tasks;
use reqwest::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, LOCATION};
use reqwest::{Client, Response};
use std::error::Error;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use url::Url;

/// Redirects that are followed.
const MOST_HOPS: usize = 5;
/// Bytes of a page, after decompression.
const MOST_BYTES: usize = 10 << 20;
/// Bytes of an error's page.
const MOST_ERROR: usize = 64 << 10;
/// Characters of it that are shown.
const SHOWN_ERROR: usize = 500;
/// For all hops and the whole page.
const MOST_TIME: Duration = Duration::from_secs(30);
const WANTED: &str = "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5";

/// What came of a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetched {
    /// A page.
    Page {
        /// Where it was in the end.
        url: String,
        /// The page.
        page: Arc<Page>,
        /// It was here already.
        was_kept: bool,
    },
    /// It is at another host: whoever asks has to ask for that one, so that it is judged by name as well.
    Elsewhere {
        /// Where.
        url: Url,
    },
}

/// The web of a process. Made at no cost; the client is made at the first page.
pub struct Web {
    config: WebConfig,
    guard: Guard,
    client: OnceLock<Result<Client, WebError>>,
    cache: Cache,
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Web").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Default for Web {
    fn default() -> Self {
        Self::new(WebConfig::default())
    }
}

enum Hop {
    Done(Box<Response>),
    To(Url),
}

impl Web {
    /// With the system's resolver.
    pub fn new(config: WebConfig) -> Self {
        Self::with_lookup(config, Arc::new(SystemLookup))
    }

    /// With a resolver of one's own; what it says is judged all the same.
    pub fn with_lookup(config: WebConfig, lookup: Arc<dyn Lookup>) -> Self {
        let guard = Guard::new(lookup, config.proxy_host());
        Self { config, guard, client: OnceLock::new(), cache: Cache::default() }
    }

    #[cfg(test)]
    pub(super) fn open(lookup: Arc<dyn Lookup>) -> Self {
        let guard = Guard::open(lookup);
        Self { config: WebConfig::default(), guard, client: OnceLock::new(), cache: Cache::default() }
    }

    /// Fetches a page whose address `judge` let pass. It is kept for 15 minutes.
    pub async fn fetch(&self, url: &Url, cancel: &CancelToken) -> Result<Fetched, WebError> {
        let mut key = url.clone();
        key.set_fragment(None);
        if let Some(page) = self.cache.get(key.as_str()) {
            return Ok(Fetched::Page { url: url.to_string(), page, was_kept: true });
        }
        let limited = tokio::time::timeout(MOST_TIME, self.follow(&key));
        let done = tokio::select! {
            done = limited => done,
            () = cancel.cancelled() => return Err(WebError::Cancelled),
        };
        let fetched = done.map_err(|_| WebError::TimedOut { host: host_of(url), after: MOST_TIME })??;
        if let Fetched::Page { page, .. } = &fetched {
            self.cache.put(key.as_str(), page);
        }
        Ok(fetched)
    }

    async fn follow(&self, start: &Url) -> Result<Fetched, WebError> {
        let mut url = start.clone();
        for _ in 0..=MOST_HOPS {
            match self.hop(&url).await? {
                Hop::Done(response) => {
                    let page = read(&url, *response).await?;
                    return Ok(Fetched::Page { url: url.to_string(), page: Arc::new(page), was_kept: false });
                }
                Hop::To(next) => {
                    self.judge(&next)?;
                    if !is_same_site(&url, &next) {
                        return Ok(Fetched::Elsewhere { url: next });
                    }
                    url = next;
                }
            }
        }
        Err(WebError::TooManyHops(MOST_HOPS, cut::head(url.as_str(), SHOWN_ERROR)))
    }

    fn judge(&self, url: &Url) -> Result<(), WebError> {
        let host = host_of(url);
        if self.guard.is_proxy(&host) {
            return Err(WebError::NotPublic { host, why: "it is the proxy that claw itself uses" });
        }
        if self.guard.judges() { judge_url(url) } else { Ok(()) }
    }

    async fn hop(&self, url: &Url) -> Result<Hop, WebError> {
        self.judge(url)?;
        let host = host_of(url);
        if self.config.https_proxy.is_some() && url.scheme() == "https" {
            self.proxied(&host).await?;
        }
        let client = self.client.get_or_init(|| build(&self.config, self.guard.clone())).clone()?;
        let sent = client.get(url.clone()).header(ACCEPT, WANTED).send().await;
        let response = sent.map_err(|error| broken(&host, &error))?;
        if !response.status().is_redirection() {
            return Ok(Hop::Done(Box::new(response)));
        }
        let target = header(&response, LOCATION);
        if target.is_empty() {
            return Ok(Hop::Done(Box::new(response)));
        }
        let next = url.join(&target).map_err(|error| WebError::NoAddress {
            typed: cut::head(&target, SHOWN_ERROR),
            why: format!("{host} redirects there, and {error}"),
        })?;
        Ok(Hop::To(next))
    }

    /// A proxy asks for the name itself: where the name is known here, it must be a public one. Where it is not, its
    /// certificate has to vouch for it.
    async fn proxied(&self, host: &str) -> Result<(), WebError> {
        match self.guard.public(host).await {
            Ok(_) | Err(WebError::NoHost { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn host_of(url: &Url) -> String {
    url.host_str().unwrap_or_default().to_owned()
}

/// A `www.` more or less is the same site; another port is another one.
fn is_same_site(one: &Url, other: &Url) -> bool {
    let bare = |url: &Url| host_of(url).trim_end_matches('.').trim_start_matches("www.").to_owned();
    let standard = |url: &Url| matches!(url.port_or_known_default(), Some(80 | 443));
    bare(one) == bare(other)
        && (one.port_or_known_default() == other.port_or_known_default() || standard(one) && standard(other))
}

fn header(response: &Response, name: HeaderName) -> String {
    let value = response.headers().get(name);
    value.map_or_else(String::new, |value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned())
}

/// A refusal of ours lies somewhere below the library's own error.
fn broken(host: &str, error: &reqwest::Error) -> WebError {
    let mut last = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        if let Some(own) = inner.downcast_ref::<WebError>() {
            return own.clone();
        }
        last = inner.to_string();
        cause = inner.source();
    }
    WebError::Broken { host: host.to_owned(), why: cut::head(&last, SHOWN_ERROR) }
}

async fn read(url: &Url, response: Response) -> Result<Page, WebError> {
    let status = response.status();
    let content_type = header(&response, CONTENT_TYPE);
    let encoding = header(&response, CONTENT_ENCODING);
    if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
        return Err(WebError::Encoding { url: url.to_string(), encoding: cut::head(&encoding, 40) });
    }
    let most = if status.is_success() { MOST_BYTES } else { MOST_ERROR };
    let (bytes, is_cut) = body(url, response, most).await?;
    let address = url.to_string();
    // Up to 10 MB are parsed: not on a thread of the runtime.
    let work = tasks::blocking("web page", move || {
        Page::of(&Raw { url: &address, content_type: &content_type, bytes: &bytes, is_cut })
    });
    let page = work.await.map_err(|error| WebError::Setup(error.to_string()))?;
    if status.is_success() {
        return page;
    }
    let body = page.map(|page| cut::head(&page.text, SHOWN_ERROR)).unwrap_or_default();
    Err(WebError::Status { url: url.to_string(), status: status.to_string(), body })
}

async fn body(url: &Url, mut response: Response, most: usize) -> Result<(Vec<u8>, bool), WebError> {
    let mut bytes = Vec::new();
    loop {
        let chunk = response.chunk().await.map_err(|error| broken(&host_of(url), &error))?;
        let Some(chunk) = chunk else { return Ok((bytes, false)) };
        let room = most - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok((bytes, true));
        }
    }
}
