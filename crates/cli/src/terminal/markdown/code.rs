//! Code with its colours. Grammars are read when the first block of a known language comes, never at the start.

use crate::terminal::paint::{Line, Rgb, Style, Theme, ThemeName};
use std::sync::OnceLock;
use syntect::easy::HighlightLines;
use syntect::highlighting::{FontStyle, Theme as Colors, ThemeSet};
use syntect::parsing::{SyntaxReference, SyntaxSet};

/// Longer blocks stay plain: colours are not worth the time.
const MOST: usize = 24 * 1024;
/// A longer line makes a block plain.
const LONGEST_LINE: usize = 1_000;

struct Grammars {
    syntaxes: SyntaxSet,
    dark: Option<Colors>,
    light: Option<Colors>,
}

fn grammars() -> &'static Grammars {
    static GRAMMARS: OnceLock<Grammars> = OnceLock::new();
    GRAMMARS.get_or_init(|| {
        let mut themes = ThemeSet::load_defaults().themes;
        Grammars {
            syntaxes: SyntaxSet::load_defaults_newlines(),
            dark: themes.remove("base16-ocean.dark"),
            light: themes.remove("InspiredGitHub"),
        }
    })
}

/// The lines of a block, coloured where its language is known.
pub(super) fn lines(code: &str, language: &str, theme: &Theme) -> Vec<Line> {
    let code = code.strip_suffix('\n').unwrap_or(code);
    highlighted(code, language, theme)
        .unwrap_or_else(|| code.split('\n').map(|line| Line::styled(line, theme.code)).collect())
}

fn highlighted(code: &str, language: &str, theme: &Theme) -> Option<Vec<Line>> {
    let wanted = matches!(theme.name, ThemeName::Dark | ThemeName::Light);
    let token = language.split([' ', ',', '{']).next().unwrap_or_default();
    if !wanted || token.is_empty() || code.len() > MOST || code.lines().any(|line| line.len() > LONGEST_LINE)
    {
        return None;
    }
    let known = grammars();
    let syntax = syntax(&known.syntaxes, token)?;
    let colors = match theme.name {
        ThemeName::Light => known.light.as_ref(),
        ThemeName::Dark | ThemeName::None => known.dark.as_ref(),
    }?;
    let mut state = HighlightLines::new(syntax, colors);
    let lines = code.split('\n').map(|text| {
        let text = format!("{text}\n");
        let pieces = state.highlight_line(&text, &known.syntaxes).ok()?;
        let mut line = Line::empty();
        for (style, piece) in pieces {
            line.push(piece.trim_end_matches('\n'), of(style));
        }
        Some(line)
    });
    lines.collect()
}

fn syntax<'a>(set: &'a SyntaxSet, token: &str) -> Option<&'a SyntaxReference> {
    // Languages that the grammars do not hold, by the nearest that they do.
    let near = match token.to_lowercase().as_str() {
        "typescript" | "ts" | "tsx" | "jsx" | "mjs" => "js",
        "toml" | "ini" | "conf" => "properties",
        "jsonc" | "json5" | "jsonl" => "json",
        "zsh" | "console" | "shell" | "shellsession" => "sh",
        "kotlin" | "kt" | "swift" => "java",
        _ => token,
    };
    set.find_syntax_by_token(token).or_else(|| set.find_syntax_by_token(near))
}

fn of(style: syntect::highlighting::Style) -> Style {
    let color = style.foreground;
    Style {
        fg: Some(Rgb(color.r, color.g, color.b)),
        bold: style.font_style.contains(FontStyle::BOLD),
        italic: style.font_style.contains(FontStyle::ITALIC),
        underline: style.font_style.contains(FontStyle::UNDERLINE),
        ..Style::PLAIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_language_has_colours_and_its_text_stays() {
        let theme = ThemeName::Dark.theme();
        let code = "fn main() {\n    let x = \"a\";\n}\n";
        let shown = lines(code, "rust", &theme);
        assert_eq!(
            shown.iter().map(Line::text).collect::<Vec<_>>(),
            ["fn main() {", "    let x = \"a\";", "}"]
        );
        assert!(shown[1].spans().len() > 2, "{shown:?}");
        assert_eq!(lines("x\n", "no-such-language", &theme)[0].spans().len(), 1);
        assert_eq!(lines("let x\n", "rust", &ThemeName::None.theme())[0].spans()[0].style(), Style::PLAIN);
    }
}
