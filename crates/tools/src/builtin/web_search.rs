//! `web_search`: titles and addresses for a query, from the search service that the user named.

use super::web_fetch::web_error;
use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::tool::{Effect, Tool, ToolContext};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const NAME: &str = "web_search";

/// Searches the web.
#[derive(Debug)]
pub struct WebSearch;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// What to look for.
    query: String,
    /// Only results of these domains and what is below them.
    #[serde(default, alias = "allowedDomains")]
    allowed_domains: Vec<String>,
    /// No results of these.
    #[serde(default, alias = "blockedDomains")]
    blocked_domains: Vec<String>,
}

fn parse(input: &Value) -> Result<Input, ToolError> {
    let input: Input = input::parse(NAME, input)?;
    if input.query.trim().is_empty() {
        let message = "must not be blank".to_owned();
        return Err(ToolError::Input { tool: NAME, path: "query".to_owned(), message });
    }
    Ok(input)
}

fn missing() -> ToolError {
    let text = "no search service is set up here: CLAWD_WEB_SEARCH_BASE_URL names one; web_fetch reads pages whose address is known";
    ToolError::Refused(text.to_owned())
}

impl Tool for WebSearch {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["search_web"]
    }

    fn description(&self) -> String {
        "Searches the web: titles and addresses, best first. Read a result with web_fetch.".to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    fn effect(&self, ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        parse(input)?;
        let service = ctx.ports.search.as_ref().ok_or_else(missing)?;
        Ok(Effect { network: true, url: Some(service.endpoint().clone()), ..Effect::default() })
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        _judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let input = parse(&input)?;
            let service = ctx.ports.search.as_ref().ok_or_else(missing)?;
            let domains = (input.allowed_domains.as_slice(), input.blocked_domains.as_slice());
            let hits = service.search(input.query.trim(), domains, &ctx.cancel).await.map_err(web_error)?;
            let lines = hits.iter().map(|hit| {
                let snippet =
                    if hit.snippet.is_empty() { String::new() } else { format!("\n  {}", hit.snippet) };
                format!("- {}\n  {}{snippet}", hit.title, hit.url)
            });
            let lines: Vec<String> = lines.collect();
            let text = if lines.is_empty() { "no results".to_owned() } else { lines.join("\n") };
            let found: Vec<Value> = hits
                .iter()
                .map(|hit| json!({"title": hit.title, "url": hit.url, "snippet": hit.snippet}))
                .collect();
            Ok(ToolOutput { data: json!({"query": input.query, "results": found}), ..ToolOutput::text(text) })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Work, refused};
    use super::*;

    #[tokio::test]
    async fn without_a_service_it_says_what_is_missing() {
        let ctx = Work::new().agent("A");
        let text = refused(&WebSearch, &ctx, json!({"query": "x"})).await;
        assert!(text.contains("CLAWD_WEB_SEARCH_BASE_URL"), "{text}");
        assert!(refused(&WebSearch, &ctx, json!({"query": " "})).await.contains("query"));
    }
}
