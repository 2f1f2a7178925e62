//! A page as text: its encoding, its kind, its Markdown. Bounded work, whatever the page is made of.

use super::clean::clean;
use super::error::WebError;
use crate::cut;
use encoding_rs::{Encoding, UTF_8};
use std::fmt::Write;

/// Bytes of HTML that are turned into Markdown; of a longer page, the start.
const MOST_HTML: usize = 3 << 20;
/// Bytes at the start in which a page may name its encoding.
const HEAD: usize = 1024;

/// A page, ready to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Markdown, or the text as it came.
    pub text: String,
    /// What was cut off, for the reader; empty where nothing was.
    pub note: String,
    /// The media type, as sent.
    pub kind: String,
    /// Bytes that came, decompressed.
    pub bytes: usize,
}

/// What came.
pub(super) struct Raw<'a> {
    pub(super) url: &'a str,
    /// The whole header.
    pub(super) content_type: &'a str,
    pub(super) bytes: &'a [u8],
    /// More would have come.
    pub(super) is_cut: bool,
}

impl Page {
    pub(super) fn of(raw: &Raw<'_>) -> Result<Self, WebError> {
        let kind = raw.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let is_html = match kind.as_str() {
            "text/html" | "application/xhtml+xml" => true,
            "" => raw.bytes.trim_ascii_start().starts_with(b"<"),
            _ => false,
        };
        if !is_html && !is_text(&kind) || is_binary(raw.bytes) {
            let kind = if kind.is_empty() { "of an unknown kind" } else { kind.as_str() };
            let what = format!("{kind}, {} bytes", raw.bytes.len());
            return Err(WebError::NotText { url: raw.url.to_owned(), what });
        }
        let decoded = decode(raw);
        let mut note = String::new();
        if raw.is_cut {
            let _ = write!(note, "[the page is longer; its first {} bytes are here]", raw.bytes.len());
        }
        let text = if is_html { markdown(&decoded, &mut note) } else { decoded };
        Ok(Self { text: text.trim().to_owned(), note, kind, bytes: raw.bytes.len() })
    }
}

fn is_text(kind: &str) -> bool {
    kind.is_empty()
        || kind.starts_with("text/")
        || kind.ends_with("+json")
        || kind.ends_with("+xml")
        || matches!(
            kind,
            "application/json"
                | "application/xml"
                | "application/javascript"
                | "application/x-ndjson"
                | "application/yaml"
                | "application/toml"
                | "application/x-sh"
        )
}

fn is_binary(bytes: &[u8]) -> bool {
    let marks = [b"%PDF-".as_slice(), b"PK\x03\x04", b"\x1f\x8b", b"\x7fELF"];
    let is_wide = bytes.starts_with(b"\xFF\xFE") || bytes.starts_with(b"\xFE\xFF");
    marks.iter().any(|mark| bytes.starts_with(mark))
        || !is_wide && bytes.iter().take(8_192).any(|byte| *byte == 0)
}

/// By its first bytes, its header, its own word; else UTF-8.
fn decode(raw: &Raw<'_>) -> String {
    let header = named(&raw.content_type.to_ascii_lowercase());
    let head = String::from_utf8_lossy(&raw.bytes[..raw.bytes.len().min(HEAD)]).to_ascii_lowercase();
    let own = || head.find("<meta").and_then(|at| named(&head[at..]));
    let encoding = header.or_else(own).unwrap_or(UTF_8);
    // A mark at the start wins.
    encoding.decode(raw.bytes).0.into_owned()
}

fn named(text: &str) -> Option<&'static Encoding> {
    let value = &text[text.find("charset=")? + "charset=".len()..];
    let value = value.trim_start_matches(['"', '\'']);
    let end = value.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.')));
    Encoding::for_label(&value.as_bytes()[..end.unwrap_or(value.len())])
}

fn markdown(html: &str, note: &mut String) -> String {
    let start = cut_at(html, MOST_HTML);
    if start.len() < html.len() {
        let _ = write!(note, "[the last {} bytes of the page are left out]", html.len() - start.len());
    }
    let title = title_of(start).map_or_else(String::new, |title| format!("# {title}\n\n"));
    let cleaned = clean(start);
    // It reads from memory: there is nothing that could fail.
    let text = htmd::HtmlToMarkdown::new().convert(&cleaned).unwrap_or_default();
    title + &squeezed(&text)
}

fn cut_at(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

fn title_of(html: &str) -> Option<String> {
    let head = cut_at(html, 64 * 1024);
    let lower = head.to_ascii_lowercase();
    let from = lower.find("<title")?;
    let from = from + lower[from..].find('>')? + 1;
    let to = from + lower[from..].find("</title")?;
    let title = entities(&head[from..to]).split_whitespace().collect::<Vec<_>>().join(" ");
    (!title.is_empty()).then(|| cut::head(&title, 200))
}

/// No more than one empty line in a row, no spaces at the ends of lines.
fn squeezed(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.lines() {
        let line = line.trim_end();
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty < 2 {
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

/// The entities that texts are full of; others stay.
pub(super) fn entities(text: &str) -> String {
    const NAMED: [(&str, &str); 8] = [
        ("lt", "<"),
        ("gt", ">"),
        ("quot", "\""),
        ("apos", "'"),
        ("nbsp", " "),
        ("mdash", "—"),
        ("ndash", "–"),
        ("amp", "&"),
    ];
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        let body = &rest[at + 1..];
        let end = body.bytes().take(10).position(|byte| byte == b';');
        let meant = end.and_then(|end| {
            let name = body.get(..end)?;
            let known = NAMED.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned());
            known.or_else(|| number(name.strip_prefix('#')?).map(String::from))
        });
        match (meant, end) {
            (Some(text), Some(end)) => {
                out.push_str(&text);
                rest = &body[end + 1..];
            }
            (_, _) => {
                out.push('&');
                rest = body;
            }
        }
    }
    out.push_str(rest);
    out
}

fn number(text: &str) -> Option<char> {
    let code = match text.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16).ok()?,
        None => text.parse().ok()?,
    };
    char::from_u32(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(content_type: &str, bytes: &[u8]) -> Result<Page, WebError> {
        Page::of(&Raw { url: "http://x/", content_type, bytes, is_cut: false })
    }

    #[test]
    fn a_page_becomes_markdown_with_its_title() {
        let html = "<html><head><title>A &amp; B</title><style>x{}</style></head><body><h2>Hi</h2><script>no()</script>\
                    <p>one <a href='/two'>two</a></p><ul><li>x<li>y</ul><pre><code>let a;</code></pre></body>";
        let text = page("text/html", html.as_bytes()).unwrap().text;
        for part in ["# A & B", "## Hi", "[two](/two)", "x", "let a;"] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains("no()") && !text.contains("x{}"), "{text}");
    }

    #[test]
    fn an_encoding_is_found_in_the_header_the_page_or_its_mark() {
        assert_eq!(page("text/plain; charset=ISO-8859-1", b"caf\xE9").unwrap().text, "café");
        assert!(page("text/html", b"<meta charset='windows-1251'><p>\xCF\xF0").unwrap().text.contains("Пр"));
        assert_eq!(page("text/plain", b"\xFF\xFEa\0b\0").unwrap().text, "ab");
        assert_eq!(page("text/plain", "日".as_bytes()).unwrap().text, "日");
    }

    #[test]
    fn what_is_no_text_is_named() {
        let error = page("application/pdf", b"%PDF-1.7").unwrap_err().to_string();
        assert!(error.contains("application/pdf"), "{error}");
        assert!(page("text/plain", b"a\0b").is_err() && page("image/png", b"x").is_err());
        assert_eq!(page("application/json", b"{}").unwrap().text, "{}");
    }

    #[test]
    fn a_page_of_a_million_levels_is_read_in_time() {
        let began = std::time::Instant::now();
        let hostile = [
            "<div>",
            "<ul><li>",
            "<blockquote>",
            "<b><i>",
            "<table><tr><td>",
            "<div><table><tr><td></div>",
            "<p><b a=1></p>",
            "<svg><title><g>",
            "<a b'c><div>",
            "<!--><div>",
        ];
        for tag in hostile {
            let html = format!("{}deep &lt;text&gt;", tag.repeat(60_000 / tag.len()));
            let page = page("text/html", html.as_bytes()).unwrap();
            assert!(page.text.contains("deep") || tag.contains('\'') || tag.contains("title"), "{tag}");
        }
        assert!(began.elapsed().as_secs() < 30, "{:?}", began.elapsed());
    }
}
