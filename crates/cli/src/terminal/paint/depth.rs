//! How many colours a terminal has. Pure.

/// Depth of colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// No colours; bold and underlined stay.
    NoColor,
    /// The terminal's sixteen.
    Basic,
    /// 256.
    Indexed,
    /// All.
    True,
}

/// The variables that tell.
#[derive(Clone, Debug, Default)]
pub struct ColorVariables {
    /// `NO_COLOR` is set to something.
    pub no_color: bool,
    /// `COLORTERM`.
    pub colorterm: Option<String>,
    /// `TERM`.
    pub term: Option<String>,
}

impl ColorVariables {
    /// Of this process.
    pub fn of_process() -> Self {
        Self {
            no_color: std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
            colorterm: std::env::var("COLORTERM").ok(),
            term: std::env::var("TERM").ok(),
        }
    }

    /// What they say together.
    pub fn depth(&self) -> Depth {
        let term = self.term.as_deref().unwrap_or_default();
        if self.no_color || term.is_empty() || term == "dumb" || term.starts_with("vt1") {
            return Depth::NoColor;
        }
        let colorterm = self.colorterm.as_deref().unwrap_or_default();
        if colorterm.eq_ignore_ascii_case("truecolor") || colorterm.eq_ignore_ascii_case("24bit") {
            return Depth::True;
        }
        if term.ends_with("-direct") || term.contains("kitty") || term.contains("alacritty") {
            return Depth::True;
        }
        if term.contains("256color") { Depth::Indexed } else { Depth::Basic }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn depth(no_color: bool, colorterm: &str, term: &str) -> Depth {
        let set = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        ColorVariables { no_color, colorterm: set(colorterm), term: set(term) }.depth()
    }

    #[test]
    fn the_depth_is_what_the_variables_say() {
        assert_eq!(depth(false, "truecolor", "xterm-256color"), Depth::True);
        assert_eq!(depth(false, "24bit", "screen"), Depth::True);
        assert_eq!(depth(false, "", "xterm-kitty"), Depth::True);
        assert_eq!(depth(false, "", "tmux-256color"), Depth::Indexed);
        assert_eq!(depth(false, "", "linux"), Depth::Basic);
        assert_eq!(depth(false, "truecolor", "dumb"), Depth::NoColor);
        assert_eq!(depth(false, "", "vt100"), Depth::NoColor);
        assert_eq!(depth(true, "truecolor", "xterm-256color"), Depth::NoColor);
        assert_eq!(depth(false, "", ""), Depth::NoColor);
    }
}
