//! Searches the web through an endpoint that the user named: a query in, titles and addresses out.

use super::address::is_within;
use super::error::WebError;
use super::page::entities;
use crate::cut;
use claw_kernel::cancel::CancelToken;
use reqwest::Client;
use reqwest::header::ACCEPT;
use reqwest::redirect::Policy;
use serde_json::Value;
use std::time::Duration;
use url::Url;

/// Results that are shown.
const MOST: usize = 10;
/// Bytes of an answer.
const MOST_BYTES: usize = 2 << 20;
const MOST_TIME: Duration = Duration::from_secs(20);
/// Characters of a title, and of what is said about a result.
const MOST_TEXT: usize = 300;

/// A result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Title.
    pub title: String,
    /// Where.
    pub url: String,
    /// A few words of it; may be empty.
    pub snippet: String,
}

/// A search service of the user's choice: it is asked with `q=…` and answers with HTML or JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchService {
    endpoint: Url,
}

impl SearchService {
    /// At an address; the user's own word, so it may be on this machine. Errors: it is no address of http or https.
    pub fn at(endpoint: &str) -> Result<Self, WebError> {
        let no = |why: String| WebError::NoAddress { typed: cut::head(endpoint, MOST_TEXT), why };
        let endpoint = Url::parse(endpoint.trim()).map_err(|error| no(error.to_string()))?;
        if !matches!(endpoint.scheme(), "http" | "https") || endpoint.host_str().is_none() {
            return Err(no("a search service is at an address of http or https".to_owned()));
        }
        Ok(Self { endpoint })
    }

    /// Where it is.
    pub fn endpoint(&self) -> &Url {
        &self.endpoint
    }

    /// Results for a query, best first. `allowed`: only of these domains; `blocked`: of none of these.
    pub async fn search(
        &self,
        query: &str,
        (allowed, blocked): (&[String], &[String]),
        cancel: &CancelToken,
    ) -> Result<Vec<Hit>, WebError> {
        let asked = tokio::time::timeout(MOST_TIME, self.ask(query));
        let host = || self.endpoint.host_str().unwrap_or_default().to_owned();
        let answer = tokio::select! {
            answer = asked => answer.map_err(|_| WebError::TimedOut { host: host(), after: MOST_TIME })??,
            () = cancel.cancelled() => return Err(WebError::Cancelled),
        };
        let hits = serde_json::from_str(&answer)
            .map_or_else(|_| hits_in_html(&answer), |value| hits_in_json(&value));
        let fits = |hit: &Hit| {
            let host = Url::parse(&hit.url).ok().and_then(|url| url.host_str().map(str::to_owned));
            let within = |domains: &[String]| {
                domains.iter().any(|domain| host.as_deref().is_some_and(|host| is_within(host, domain)))
            };
            host.is_some() && (allowed.is_empty() || within(allowed)) && !within(blocked)
        };
        let mut found: Vec<Hit> = Vec::new();
        for hit in hits.into_iter().filter(fits) {
            if found.len() < MOST && found.iter().all(|known| known.url != hit.url) {
                found.push(hit);
            }
        }
        Ok(found)
    }

    async fn ask(&self, query: &str) -> Result<String, WebError> {
        let host = self.endpoint.host_str().unwrap_or_default().to_owned();
        let broken = |error: reqwest::Error| WebError::Broken {
            host: host.clone(),
            why: cut::head(&error.without_url().to_string(), MOST_TEXT),
        };
        let client = Client::builder()
            .redirect(Policy::limited(3))
            .http1_only()
            .user_agent(concat!("claw/", env!("CARGO_PKG_VERSION")))
            .tls_backend_preconfigured(super::client::tls()?)
            .build()
            .map_err(|error| WebError::Setup(error.to_string()))?;
        let mut url = self.endpoint.clone();
        url.query_pairs_mut().append_pair("q", query);
        let wanted = "application/json, text/html;q=0.9";
        let mut response = client.get(url).header(ACCEPT, wanted).send().await.map_err(broken)?;
        if !response.status().is_success() {
            let (url, status) = (self.endpoint.to_string(), response.status().to_string());
            return Err(WebError::Status { url, status, body: String::new() });
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            let room = MOST_BYTES - bytes.len();
            bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                break;
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// A list of objects with an address, bare or in a field that services use.
fn hits_in_json(value: &Value) -> Vec<Hit> {
    let lists = [
        value.pointer("/web/results"),
        value.get("results"),
        value.get("items"),
        value.get("hits"),
        Some(value),
    ];
    let list = lists.into_iter().flatten().find_map(Value::as_array);
    let word = |hit: &Value, keys: &[&str]| {
        let found = keys.iter().find_map(|key| hit.get(*key).and_then(Value::as_str));
        cut::head(found.unwrap_or_default().trim(), MOST_TEXT)
    };
    let hits = list.into_iter().flatten().map(|hit| Hit {
        title: word(hit, &["title", "name"]),
        url: hit
            .get("url")
            .or_else(|| hit.get("link"))
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned(),
        snippet: word(hit, &["content", "snippet", "description"]),
    });
    hits.filter(|hit| !hit.url.is_empty()).collect()
}

/// The links of a page of results, without those of the service itself.
fn hits_in_html(html: &str) -> Vec<Hit> {
    let mut hits = Vec::new();
    let mut rest = html;
    while let Some(at) = rest.find("<a ") {
        rest = &rest[at + 3..];
        let Some(end) = rest.find('>') else { break };
        let (tag, after) = rest.split_at(end);
        let text = after[1..].split("</a").next().unwrap_or_default();
        rest = after;
        let Some(url) = href(tag).and_then(target) else { continue };
        let title = bare(text);
        if !title.is_empty() {
            hits.push(Hit { title, url, snippet: String::new() });
        }
    }
    hits
}

fn href(tag: &str) -> Option<String> {
    let value = &tag[tag.find("href=")? + 5..];
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    Some(entities(value[1..].split(quote).next()?))
}

/// The page itself where a link leads through the service's own counter.
fn target(href: String) -> Option<String> {
    let full = if href.starts_with("//") { format!("https:{href}") } else { href };
    let url = Url::parse(&full).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let inner = url
        .query_pairs()
        .find(|(name, value)| matches!(name.as_ref(), "uddg" | "url" | "u") && value.starts_with("http"));
    Some(inner.map_or_else(|| url.to_string(), |(_, value)| value.into_owned()))
}

fn bare(html: &str) -> String {
    let mut text = String::new();
    for part in html.split('<') {
        text.push_str(if text.is_empty() && !html.starts_with('<') {
            part
        } else {
            part.split_once('>').map_or(part, |(_, rest)| rest)
        });
    }
    cut::head(&entities(&text).split_whitespace().collect::<Vec<_>>().join(" "), MOST_TEXT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn results_are_read_from_json_and_from_a_page() {
        let value = json!({"results": [{"title": "A", "url": "https://a.example/x", "content": "about a"}, {"title": "no address"}]});
        assert_eq!(hits_in_json(&value).len(), 1);
        let html = "<a class='r' href=\"//ddg.example/l/?uddg=https%3A%2F%2Fb.example%2F&amp;x=1\">The <b>B</b> &amp; page</a>\
                    <a href='/settings'>no</a><a href='https://c.example/'></a>";
        let hits = hits_in_html(html);
        assert_eq!(hits.len(), 1, "{hits:?}");
        assert_eq!((hits[0].title.as_str(), hits[0].url.as_str()), ("The B & page", "https://b.example/"));
    }

    #[test]
    fn an_endpoint_is_an_address() {
        assert!(SearchService::at("file:///x").is_err() && SearchService::at("nowhere").is_err());
        assert!(SearchService::at("http://127.0.0.1:8888/search?format=json").is_ok());
    }
}
