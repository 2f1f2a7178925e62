//! Themes: what each kind of text looks like. Pure.

use super::style::{Rgb, Style};
use std::str::FromStr;

/// A theme by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThemeName {
    /// For light text on a dark ground.
    #[default]
    Dark,
    /// For dark text on a light ground.
    Light,
    /// Nothing is coloured or bold.
    None,
}

impl ThemeName {
    /// All, as people write them.
    pub const NAMES: [&str; 3] = ["dark", "light", "none"];

    /// As people write it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Dark => "dark",
            Self::Light => "light",
            Self::None => "none",
        }
    }

    /// What it looks like.
    pub fn theme(self) -> Theme {
        match self {
            Self::Dark => DARK,
            Self::Light => LIGHT,
            Self::None => NONE,
        }
    }
}

/// A name that is no theme.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown theme `{0}`; themes are dark, light, none")]
pub struct UnknownTheme(String);

impl FromStr for ThemeName {
    type Err = UnknownTheme;

    fn from_str(name: &str) -> Result<Self, UnknownTheme> {
        match name.trim().to_lowercase().as_str() {
            "dark" => Ok(Self::Dark),
            "light" => Ok(Self::Light),
            "none" => Ok(Self::None),
            _ => Err(UnknownTheme(name.to_owned())),
        }
    }
}

/// The looks of one theme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Theme {
    /// Its name.
    pub name: ThemeName,
    /// Headings of answers.
    pub heading: Style,
    /// Strong words.
    pub strong: Style,
    /// Stressed words.
    pub stressed: Style,
    /// Struck words.
    pub struck: Style,
    /// Code within a sentence, and blocks whose language is unknown.
    pub code: Style,
    /// Quotes.
    pub quote: Style,
    /// Links.
    pub link: Style,
    /// What is beside the point: hints, times, folded parts.
    pub quiet: Style,
    /// What the person said.
    pub user: Style,
    /// Signs and marks of claw.
    pub accent: Style,
    /// It went well.
    pub good: Style,
    /// Worth a look.
    pub warning: Style,
    /// It failed.
    pub error: Style,
    /// Lines that came.
    pub added: Style,
    /// Lines that went.
    pub removed: Style,
    /// The chosen line of a list.
    pub chosen: Style,
}

const DARK: Theme = Theme {
    name: ThemeName::Dark,
    heading: Style::PLAIN.bold().fg(Rgb(130, 170, 255)),
    strong: Style::PLAIN.bold(),
    stressed: Style::PLAIN.italic(),
    struck: Style::PLAIN.struck(),
    code: Style::PLAIN.fg(Rgb(240, 198, 116)),
    quote: Style::PLAIN.italic().fg(Rgb(160, 168, 180)),
    link: Style::PLAIN.underline().fg(Rgb(110, 190, 230)),
    quiet: Style::PLAIN.fg(Rgb(135, 140, 150)),
    user: Style::PLAIN.bold().fg(Rgb(200, 210, 225)),
    accent: Style::PLAIN.fg(Rgb(215, 135, 95)),
    good: Style::PLAIN.fg(Rgb(135, 200, 120)),
    warning: Style::PLAIN.fg(Rgb(230, 190, 90)),
    error: Style::PLAIN.fg(Rgb(240, 110, 110)),
    added: Style::PLAIN.fg(Rgb(135, 200, 120)),
    removed: Style::PLAIN.fg(Rgb(240, 110, 110)),
    chosen: Style::PLAIN.bold().fg(Rgb(215, 135, 95)),
};

const LIGHT: Theme = Theme {
    name: ThemeName::Light,
    heading: Style::PLAIN.bold().fg(Rgb(30, 70, 160)),
    strong: Style::PLAIN.bold(),
    stressed: Style::PLAIN.italic(),
    struck: Style::PLAIN.struck(),
    code: Style::PLAIN.fg(Rgb(130, 80, 0)),
    quote: Style::PLAIN.italic().fg(Rgb(90, 95, 105)),
    link: Style::PLAIN.underline().fg(Rgb(0, 95, 150)),
    quiet: Style::PLAIN.fg(Rgb(110, 115, 125)),
    user: Style::PLAIN.bold().fg(Rgb(40, 45, 60)),
    accent: Style::PLAIN.fg(Rgb(170, 80, 30)),
    good: Style::PLAIN.fg(Rgb(20, 120, 40)),
    warning: Style::PLAIN.fg(Rgb(150, 100, 0)),
    error: Style::PLAIN.fg(Rgb(180, 20, 30)),
    added: Style::PLAIN.fg(Rgb(20, 120, 40)),
    removed: Style::PLAIN.fg(Rgb(180, 20, 30)),
    chosen: Style::PLAIN.bold().fg(Rgb(170, 80, 30)),
};

const NONE: Theme = Theme {
    name: ThemeName::None,
    heading: Style::PLAIN,
    strong: Style::PLAIN,
    stressed: Style::PLAIN,
    struck: Style::PLAIN,
    code: Style::PLAIN,
    quote: Style::PLAIN,
    link: Style::PLAIN,
    quiet: Style::PLAIN,
    user: Style::PLAIN,
    accent: Style::PLAIN,
    good: Style::PLAIN,
    warning: Style::PLAIN,
    error: Style::PLAIN,
    added: Style::PLAIN,
    removed: Style::PLAIN,
    chosen: Style::PLAIN,
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_theme_is_found_by_its_name() {
        for name in ThemeName::NAMES {
            assert_eq!(name.parse::<ThemeName>().unwrap().word(), name);
            assert_eq!(name.parse::<ThemeName>().unwrap().theme().name.word(), name);
        }
        assert!("drak".parse::<ThemeName>().is_err());
    }
}
