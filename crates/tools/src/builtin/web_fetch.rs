//! `web_fetch`: a page of the public internet as Markdown.

use super::spill::spill;
use crate::cut;
use crate::error::ToolError;
use crate::input;
use crate::output::ToolOutput;
use crate::tool::{Effect, Tool, ToolContext};
use crate::web::{Fetched, Page, WebError, judge};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const NAME: &str = "web_fetch";
/// Characters of a page that the model sees.
const MOST: usize = 60_000;
/// Characters of a page that a small model reads.
const MOST_READ: usize = 200_000;
/// Characters of its answer.
const MOST_ANSWER: usize = 20_000;

/// Fetches a page.
#[derive(Debug)]
pub struct WebFetch;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    /// The address, http or https.
    url: String,
    /// What you want to know of the page.
    #[serde(default)]
    prompt: Option<String>,
}

/// An error of the room of the web, as one of a tool.
pub(super) fn web_error(error: WebError) -> ToolError {
    match error {
        WebError::Cancelled => ToolError::Cancelled,
        other => ToolError::Refused(other.to_string()),
    }
}

impl Tool for WebFetch {
    fn name(&self) -> &'static str {
        NAME
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["fetch"]
    }

    fn description(&self) -> String {
        "Fetches a page of the public internet as Markdown. With a prompt, a long page may be answered for you instead of \
         shown. Addresses of this machine or its network are refused."
            .to_owned()
    }

    fn input_schema(&self) -> Value {
        input::schema::<Input>()
    }

    fn effect(&self, _ctx: &ToolContext, input: &Value) -> Result<Effect, ToolError> {
        let input: Input = input::parse(NAME, input)?;
        let url = judge(&input.url).map_err(web_error)?;
        Ok(Effect { network: true, url: Some(url), ..Effect::default() })
    }

    fn call<'a>(
        &'a self,
        ctx: &'a ToolContext,
        judged: &'a Effect,
        input: Value,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let input: Input = input::parse(NAME, &input)?;
            let url = judged.url.as_ref().ok_or_else(|| ToolError::Input {
                tool: NAME,
                path: "url".to_owned(),
                message: "no address was judged for this call".to_owned(),
            })?;
            match ctx.ports.web.fetch(url, &ctx.cancel).await.map_err(web_error)? {
                Fetched::Elsewhere { url: next } => {
                    let text = format!(
                        "{url} redirects to another host: {next}\nFetch that address if you want it."
                    );
                    Ok(ToolOutput {
                        data: json!({"url": url.as_str(), "redirect": next.as_str()}),
                        ..ToolOutput::text(text)
                    })
                }
                Fetched::Page { url, page, .. } => show(ctx, &url, &page, input.prompt.as_deref()).await,
            }
        })
    }
}

async fn show(
    ctx: &ToolContext,
    url: &str,
    page: &Page,
    prompt: Option<&str>,
) -> Result<ToolOutput, ToolError> {
    let data =
        |text: &str| json!({"url": url, "bytes": page.bytes, "contentType": page.kind, "result": text});
    let mut notes = vec![page.note.clone()];
    let asked = prompt.filter(|prompt| !prompt.trim().is_empty());
    if let (Some(prompt), Some(reader)) = (asked, &ctx.ports.reader) {
        match reader.read(cut::plain(&page.text, MOST_READ), prompt, &ctx.cancel).await {
            Ok(answer) => {
                let answer = cut::head(answer.trim(), MOST_ANSWER);
                return Ok(ToolOutput { data: data(&answer), ..ToolOutput::text(answer) });
            }
            Err(ToolError::Cancelled) => return Err(ToolError::Cancelled),
            Err(error) => {
                notes.push(format!("[no model answered about the page ({error}); this is its text]"))
            }
        }
    }
    let clean = ctx.redactor.apply(&page.text).into_owned();
    let shown = cut::plain(&clean, MOST);
    let mut spilled = None;
    if shown.len() < clean.len() {
        let path = spill(ctx, "page", "md", clean.clone()).await?;
        notes.push(format!(
            "[… {} bytes cut; the whole page: {}]",
            clean.len() - shown.len(),
            path.display()
        ));
        spilled = Some(path);
    }
    let shown = if shown.is_empty() { "[the page has no text]" } else { shown };
    let parts = std::iter::once(shown.to_owned()).chain(notes.into_iter().filter(|note| !note.is_empty()));
    let text = parts.collect::<Vec<_>>().join("\n");
    Ok(ToolOutput { data: data(shown), spilled, ..ToolOutput::text(text) })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Work, refused};
    use super::*;
    use crate::ports::{PageReader, Ports};
    use claw_kernel::cancel::CancelToken;
    use std::sync::Arc;

    struct Reader;

    impl PageReader for Reader {
        fn read<'a>(
            &'a self,
            page: &'a str,
            prompt: &'a str,
            _: &'a CancelToken,
        ) -> BoxFuture<'a, Result<String, ToolError>> {
            Box::pin(std::future::ready(Ok(format!("{prompt}: {} bytes", page.len()))))
        }
    }

    #[tokio::test]
    async fn what_is_inside_is_refused_before_anybody_is_asked() {
        let ctx = Work::new().agent("A");
        for url in
            ["http://127.0.0.1/", "file:///etc/passwd", "http://169.254.169.254/", "http://u:p@example.org/"]
        {
            assert!(WebFetch.effect(&ctx, &json!({"url": url})).is_err(), "{url}");
        }
        let effect = WebFetch.effect(&ctx, &json!({"url": "https://docs.example.org/x"})).unwrap();
        assert!(effect.network && !effect.is_read_only());
        assert_eq!(effect.url.unwrap().host_str(), Some("docs.example.org"));
        assert!(refused(&WebFetch, &ctx, json!({"url": "gopher://x/"})).await.contains("http"));
    }

    #[tokio::test]
    async fn a_page_is_shown_cut_or_answered_about() {
        let work = Work::new();
        let mut ctx = work.agent("A");
        let page =
            Page { text: "é".repeat(MOST + 10), note: "[note]".into(), kind: "text/plain".into(), bytes: 9 };
        let shown = show(&ctx, "http://x/", &page, Some("what?")).await.unwrap();
        assert!(shown.text.contains("20 bytes cut") && shown.text.contains("[note]"));
        assert_eq!(std::fs::read_to_string(shown.spilled.unwrap()).unwrap(), page.text);
        ctx.ports = Arc::new(Ports { reader: Some(Arc::new(Reader)), ..Ports::default() });
        let shown = show(&ctx, "http://x/", &page, Some("what?")).await.unwrap();
        assert_eq!(shown.text, "what?: 120020 bytes");
    }
}
