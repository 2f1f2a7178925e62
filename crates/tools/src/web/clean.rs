//! Makes any text that calls itself HTML well nested and flat enough: readers of HTML call themselves for each level, and
//! mend what is badly nested at a price that a hostile page can drive up without end. Linear, bounded, pure.

/// Levels that are kept; elements below are dropped, their text stays.
const MOST_DEEP: usize = 60;
/// Elements that hold nothing.
const EMPTY: [&str; 4] = ["br", "hr", "img", "wbr"];
/// Elements whose content is not for readers.
const HIDDEN: [&str; 9] =
    ["script", "style", "noscript", "template", "title", "textarea", "iframe", "object", "head"];
/// Elements that say something in Markdown, and those that part blocks.
const KEPT: [&str; 53] = [
    "a",
    "article",
    "aside",
    "b",
    "blockquote",
    "br",
    "caption",
    "cite",
    "code",
    "dd",
    "del",
    "details",
    "div",
    "dl",
    "dt",
    "em",
    "figcaption",
    "figure",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "i",
    "img",
    "ins",
    "kbd",
    "li",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "s",
    "samp",
    "section",
    "strong",
    "summary",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "tr",
    "tt",
    "u",
    "ul",
    "var",
];
/// Elements that end an open one of the same kind, and what that one does not reach through.
const ENDS_LAST: [(&[&str], &[&str]); 5] = [
    (
        &["p", "h1", "h2", "h3", "h4", "h5", "h6"],
        &["div", "td", "li", "blockquote", "section", "article", "dd"],
    ),
    (&["li"], &["ul", "ol", "table"]),
    (&["dt", "dd"], &["dl", "table"]),
    (&["td", "th"], &["tr", "table"]),
    (&["tr"], &["table", "tbody", "thead", "tfoot"]),
];
/// Attributes that Markdown shows.
const ATTRIBUTES: [&str; 6] = ["href", "src", "alt", "title", "class", "start"];

/// The same page, well nested.
pub(super) fn clean(html: &str) -> String {
    let mut cleaner = Cleaner { out: String::with_capacity(html.len()), open: Vec::new() };
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        cleaner.out.push_str(&rest[..at]);
        rest = cleaner.tag(&rest[at + 1..]);
    }
    cleaner.out.push_str(rest);
    cleaner.close_to(0);
    cleaner.out
}

struct Cleaner {
    out: String,
    open: Vec<&'static str>,
}

impl Cleaner {
    /// After a `<`; gives what follows the tag.
    fn tag<'t>(&mut self, rest: &'t str) -> &'t str {
        if let Some(comment) = rest.strip_prefix("!--") {
            return comment.find("-->").map_or("", |end| &comment[end + 3..]);
        }
        if rest.starts_with(['!', '?']) {
            return rest.find('>').map_or("", |end| &rest[end + 1..]);
        }
        let (is_end, body) = match rest.strip_prefix('/') {
            Some(body) => (true, body),
            None => (false, rest),
        };
        if !body.starts_with(|c: char| c.is_ascii_alphabetic()) {
            self.out.push_str("&lt;");
            return rest;
        }
        let end = body.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(body.len());
        let name = body[..end.min(40)].to_ascii_lowercase();
        let (attributes, after) = attributes(&body[end..]);
        let kept = KEPT.iter().find(|kept| **kept == name).copied();
        match (kept, is_end) {
            (None, false) if HIDDEN.contains(&name.as_str()) => return after_hidden(after, &name),
            // Words on both sides are two words.
            (None, _) => self.out.push(' '),
            (Some(name), false) => self.begin(name, &attributes),
            (Some(name), true) => {
                if let Some(at) = self.open.iter().rposition(|open| *open == name) {
                    self.close_to(at);
                }
            }
        }
        after
    }

    fn begin(&mut self, name: &'static str, attributes: &[(&'static str, &str)]) {
        let rule = ENDS_LAST.iter().find(|(names, _)| names.contains(&name));
        if let Some((names, walls)) = rule {
            let last = self.open.iter().rposition(|open| names.contains(open) || walls.contains(open));
            if let Some(at) = last.filter(|at| names.contains(&self.open[*at])) {
                self.close_to(at);
            }
        }
        let is_empty = EMPTY.contains(&name);
        if !is_empty && self.open.len() >= MOST_DEEP {
            self.out.push('\n');
            return;
        }
        self.out.push('<');
        self.out.push_str(name);
        for (attribute, value) in attributes {
            let value = value.replace('"', "&quot;").replace('<', "&lt;");
            self.out.push_str(&format!(" {attribute}=\"{value}\""));
        }
        self.out.push('>');
        if !is_empty {
            self.open.push(name);
        }
    }

    fn close_to(&mut self, depth: usize) {
        for name in self.open.drain(depth..).rev() {
            self.out.push_str("</");
            self.out.push_str(name);
            self.out.push('>');
        }
    }
}

type Attributes<'t> = Vec<(&'static str, &'t str)>;

/// The attributes of a tag that count, and what follows the tag.
fn attributes(mut rest: &str) -> (Attributes<'_>, &str) {
    let mut found = Vec::new();
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        let Some(first) = rest.chars().next() else { return (found, "") };
        if first == '>' {
            return (found, &rest[1..]);
        }
        let end = rest.find(|c: char| c.is_ascii_whitespace() || matches!(c, '=' | '>' | '/'));
        let end = end.unwrap_or(rest.len()).max(first.len_utf8());
        let name = &rest[..end];
        rest = rest[end..].trim_start();
        let Some(value) = rest.strip_prefix('=') else { continue };
        let value = value.trim_start();
        let (value, after) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => value[1..].split_once(quote).unwrap_or((&value[1..], "")),
            Some(_) | None => {
                let end = value.find(|c: char| c.is_ascii_whitespace() || c == '>').unwrap_or(value.len());
                value.split_at(end)
            }
        };
        rest = after;
        let known = ATTRIBUTES.iter().find(|known| known.eq_ignore_ascii_case(name));
        if let Some(known) = known.filter(|known| found.iter().all(|(name, _)| name != *known)) {
            found.push((*known, value));
        }
    }
}

/// After the end of an element that is not shown; the head of a page may lack its end.
fn after_hidden<'t>(rest: &'t str, name: &str) -> &'t str {
    if name == "head" {
        return rest;
    }
    let mut from = rest;
    while let Some(at) = from.find("</") {
        let end = &from[at + 2..];
        if end.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name)) {
            return end.find('>').map_or("", |at| &end[at + 1..]);
        }
        from = end;
    }
    ""
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_comes_out_is_well_nested() {
        assert_eq!(clean("<p>a<p>b<b>c</p>d"), "<p>a</p><p>b<b>c</b></p>d");
        assert_eq!(
            clean("<ul><li>a<li>b<ul><li>c</ul></ul>"),
            "<ul><li>a</li><li>b<ul><li>c</li></ul></li></ul>"
        );
        assert_eq!(clean("<a href='x\"y' onclick=z()>t</a>"), "<a href=\"x&quot;y\">t</a>");
        assert_eq!(clean("1 < 2 <script>if (a<b) {}</script><!-- <p> -->x"), "1 &lt; 2 x");
        assert_eq!(clean("<div><table><tr><td></div>x"), "<div><table><tr><td></td></tr></table></div>x");
    }

    proptest! {
        #[test]
        fn any_text_becomes_flat(html in "(<[/!]?(div|p|b|li|td|script|a|svg)( a=['\"]?)?>?|x|<|>|-->){0,300}") {
            let out = clean(&html);
            let (mut depth, mut deepest) = (0i64, 0i64);
            for at in out.match_indices('<').map(|(at, _)| at) {
                depth += if out[at..].starts_with("</") { -1 } else { 1 };
                deepest = deepest.max(depth);
                prop_assert!(depth >= 0, "{}", out);
            }
            prop_assert_eq!(depth, 0, "{}", out);
            prop_assert!(deepest <= MOST_DEEP as i64);
        }
    }
}
