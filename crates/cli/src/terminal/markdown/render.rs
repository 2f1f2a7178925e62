//! Markdown to lines. Pure but for the grammars of code.

use super::code;
use super::inline::Inline;
use super::table::Table;
use crate::terminal::paint::{Line, Style, Theme};
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// Quotes and lists within each other that are indented; deeper ones stand at this depth.
const DEEPEST: usize = 6;
/// Blanks that code is indented by.
const CODE_INDENT: &str = "  ";

/// The lines of a text, none wider than `width`.
pub fn render(text: &str, theme: &Theme, width: usize) -> Vec<Line> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut page = Page::new(theme, width.max(8));
    for event in Parser::new_ext(text, options) {
        page.on(event);
    }
    page.lines
}

/// What a line stands in.
enum Within {
    Quote,
    /// The number of the next item, where the list counts.
    List(Option<u64>),
    /// Columns of the item's sign.
    Item(usize),
}

struct Page<'a> {
    theme: &'a Theme,
    width: usize,
    lines: Vec<Line>,
    within: Vec<Within>,
    inline: Inline,
    /// The sign of an item that has no line yet.
    sign: Option<Line>,
    code: Option<(String, String)>,
    table: Option<Table>,
    cell: Vec<Line>,
    image: Option<String>,
    /// A blank line is due before the next block.
    gap: bool,
}

impl<'a> Page<'a> {
    fn new(theme: &'a Theme, width: usize) -> Self {
        Self {
            theme,
            width,
            lines: Vec::new(),
            within: Vec::new(),
            inline: Inline::new(Style::PLAIN),
            sign: None,
            code: None,
            table: None,
            cell: Vec::new(),
            image: None,
            gap: false,
        }
    }

    fn on(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text),
            Event::Code(text) => self.inline.code(&text, self.theme),
            Event::InlineHtml(text) => self.inline.text(&text),
            Event::Html(text) => self.text(&text),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.inline.code(&text, self.theme),
            Event::FootnoteReference(name) => self.inline.text(&format!("[{name}]")),
            Event::SoftBreak => self.inline.text(" "),
            Event::HardBreak => self.inline.new_line(),
            Event::Rule => {
                self.begin_block();
                let rule = "─".repeat(self.room().min(40));
                self.put(Line::styled(rule, self.theme.quiet));
                self.gap = true;
            }
            Event::TaskListMarker(done) => {
                let (sign, style) = if done { ("☑ ", self.theme.good) } else { ("☐ ", self.theme.quiet) };
                self.inline.open(style);
                self.inline.text(sign);
                self.inline.close();
            }
        }
    }

    fn text(&mut self, text: &str) {
        if let Some((_, code)) = &mut self.code {
            code.push_str(text);
        } else if let Some(alt) = &mut self.image {
            alt.push_str(text);
        } else {
            self.inline.text(text);
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block(),
            Tag::Heading { level, .. } => self.start_heading(level),
            Tag::BlockQuote(_) => {
                self.begin_block();
                self.within.push(Within::Quote);
                self.inline.open(self.theme.quote);
            }
            Tag::CodeBlock(kind) => {
                self.begin_block();
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                // Within an item a list follows its text at once.
                self.flush();
                if !self.is_in_item() {
                    self.begin_block();
                }
                self.gap = false;
                self.within.push(Within::List(first));
            }
            Tag::Item => self.start_item(),
            Tag::Table(_) => {
                self.begin_block();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => self.cell.clear(),
            Tag::TableCell => {
                self.inline.take();
            }
            Tag::Emphasis => self.inline.open(self.theme.stressed),
            Tag::Strong => self.inline.open(self.theme.strong),
            Tag::Strikethrough => self.inline.open(self.theme.struck),
            Tag::Link { dest_url, .. } => self.inline.open_link(&dest_url, self.theme),
            Tag::Image { dest_url, .. } => {
                self.image = Some(String::new());
                self.inline.open_link(&dest_url, self.theme);
            }
            Tag::FootnoteDefinition(name) => {
                self.begin_block();
                self.inline.text(&format!("[{name}] "));
            }
            Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn start_heading(&mut self, level: HeadingLevel) {
        self.begin_block();
        let style = if level <= HeadingLevel::H2 {
            self.theme.heading
        } else {
            Style { bold: false, ..self.theme.heading }
        };
        self.inline.open(style);
        if self.theme.heading == Style::PLAIN {
            self.inline.text(&format!("{} ", "#".repeat(level as usize)));
        }
    }

    fn end_table(&mut self) {
        if let Some(table) = self.table.take() {
            for line in table.lines(self.room(), self.theme) {
                self.put(line);
            }
        }
        self.gap = true;
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::FootnoteDefinition => {
                self.flush();
                self.gap = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.inline.close();
                self.gap = true;
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.inline.close();
                self.within.pop();
                self.gap = true;
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.within.pop();
                self.gap = !self.is_in_item();
            }
            TagEnd::Item => {
                self.flush();
                if let Some(sign) = self.sign.take() {
                    self.put(sign);
                }
                self.within.pop();
            }
            TagEnd::Table => self.end_table(),
            TagEnd::TableHead | TagEnd::TableRow => {
                let row = std::mem::take(&mut self.cell);
                if let Some(table) = &mut self.table {
                    table.rows.push(row);
                }
            }
            TagEnd::TableCell => {
                let mut cell = Line::empty();
                for part in self.inline.take() {
                    cell.append(part);
                }
                self.cell.push(cell);
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.inline.close(),
            TagEnd::Link => self.inline.close_link(self.theme),
            TagEnd::Image => {
                let alt = self.image.take().unwrap_or_default();
                self.inline.text(&format!("[image{}{alt}]", if alt.is_empty() { "" } else { ": " }));
                self.inline.close_link(self.theme);
            }
            TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn start_item(&mut self) {
        self.flush();
        let number = match self.within.last_mut() {
            Some(Within::List(Some(next))) => {
                *next += 1;
                Some(*next - 1)
            }
            Some(Within::List(None) | Within::Item(_) | Within::Quote) | None => None,
        };
        let sign = number.map_or_else(|| "• ".to_owned(), |number| format!("{number}. "));
        // A list with blank lines between its items keeps them.
        if self.gap && !self.lines.is_empty() {
            self.blank();
        }
        self.gap = false;
        let sign = Line::styled(sign, self.theme.accent);
        self.within.push(Within::Item(sign.width()));
        self.sign = Some(sign);
    }

    fn end_code(&mut self) {
        let Some((language, code)) = self.code.take() else { return };
        for line in code::lines(&code, &language, self.theme) {
            for part in line.fold(self.room().saturating_sub(CODE_INDENT.len())) {
                let mut indented = Line::plain(CODE_INDENT);
                indented.append(part);
                self.put(indented);
            }
        }
        self.gap = true;
    }

    fn is_in_item(&self) -> bool {
        self.within.iter().any(|within| matches!(within, Within::Item(_)))
    }

    fn begin_block(&mut self) {
        self.flush();
        if self.gap && !self.lines.is_empty() && self.sign.is_none() {
            self.blank();
        }
        self.gap = false;
    }

    fn blank(&mut self) {
        let prefix = self.prefix();
        self.lines.push(if prefix.is_blank() { Line::empty() } else { prefix });
    }

    /// What stands before a line: bars of quotes, blanks of items.
    fn prefix(&self) -> Line {
        let mut prefix = Line::empty();
        for within in self.within.iter().take(DEEPEST) {
            match within {
                Within::Quote => prefix.push("│ ", self.theme.quiet),
                Within::Item(width) => prefix.push(" ".repeat(*width), Style::PLAIN),
                Within::List(_) => {}
            }
        }
        prefix
    }

    fn room(&self) -> usize {
        self.width.saturating_sub(self.prefix().width()).max(4)
    }

    /// Writes what was collected of a paragraph.
    fn flush(&mut self) {
        for line in self.inline.take() {
            let parts = line.wrap(self.room(), &Line::empty());
            for part in parts {
                self.put(part);
            }
        }
    }

    fn put(&mut self, line: Line) {
        let mut whole = self.prefix();
        if let Some(sign) = self.sign.take() {
            let blanks = sign.width();
            whole = without_last_blanks(whole, blanks);
            whole.append(sign);
        }
        whole.append(line);
        self.lines.push(whole);
    }
}

/// The sign of an item takes the place of its own indent.
fn without_last_blanks(prefix: Line, blanks: usize) -> Line {
    let keep = prefix.width().saturating_sub(blanks);
    let mut kept = Line::empty();
    let mut left = keep;
    for span in prefix.spans() {
        let piece: String = span.text().chars().take(left).collect();
        left -= piece.chars().count();
        kept.push(piece, span.style());
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::paint::ThemeName;

    const PAGE: &str = "# Title\n\nSome *stressed* and **strong** `code` with a [link](https://example.org) and \
        <https://example.org>.\n\n- first item that is long enough to be broken over two lines of the page\n- second\n  \
        - nested\n  1. counted\n\n> a quote\n> of two lines\n\n```rust\nfn main() {}\n```\n\n| name | what it does |\n\
        |---|---|\n| `grep` | finds things in files and tells where they stand |\n| edit | changes a file |\n\n\
        - [x] done\n- [ ] open\n\n---\n![a picture](x.png)\n";

    fn page(width: usize, name: ThemeName) -> String {
        let lines: Vec<String> = render(PAGE, &name.theme(), width).iter().map(Line::text).collect();
        lines.join("\n")
    }

    #[test]
    fn a_page_is_as_reviewed() {
        insta::assert_snapshot!("wide", page(76, ThemeName::Dark));
        insta::assert_snapshot!("narrow", page(32, ThemeName::None));
    }

    #[test]
    fn no_line_is_wider_than_the_page() {
        for width in [8, 12, 20, 33, 40, 80] {
            for line in render(PAGE, &ThemeName::Dark.theme(), width) {
                assert!(line.width() <= width.max(16), "{width}: {:?}", line.text());
            }
        }
    }

    #[test]
    fn lists_and_quotes_of_ten_thousand_levels_end() {
        let deep: String = (0..10_000).map(|_| "> ").collect::<String>() + "x";
        assert!(!render(&deep, &ThemeName::Dark.theme(), 80).is_empty());
        let deep: String = (0..2_000).map(|n| format!("{}- x\n", " ".repeat(n % 200))).collect();
        assert!(!render(&deep, &ThemeName::Dark.theme(), 80).is_empty());
    }

    #[test]
    fn a_model_cannot_steer_the_terminal() {
        for text in [
            "a\x1b[2Jb",
            "```\n\x1b]52;c;x\x07\n```",
            "[\x1b[31mx](\x1b[0m)",
            "`\x1b`",
            "|a\x1b|b|\n|-|-|\n|c|d|",
        ] {
            for line in render(text, &ThemeName::Dark.theme(), 80) {
                assert!(!line.text().contains(|c: char| c.is_control()), "{text:?}");
            }
        }
    }
}
