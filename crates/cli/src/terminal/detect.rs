//! Which kind of screen a run gets. Pure.

/// What the process sees of its terminal.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Standard error is a terminal.
    pub stderr_terminal: bool,
    /// Columns and rows, where the terminal tells them.
    pub size: Option<(u16, u16)>,
    /// `TERM`.
    pub term: Option<String>,
    /// `CI` is set.
    pub ci: bool,
    /// `NO_COLOR` is set.
    pub no_color: bool,
    /// `--no-progress`.
    pub no_progress: bool,
}

/// The kind of screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Bars that are redrawn.
    Bars {
        /// With colours.
        color: bool,
    },
    /// Lines; nothing is redrawn.
    Plain,
}

/// Smallest terminal that bars are drawn on.
const LEAST: (u16, u16) = (20, 4);

/// Bars need a terminal that can move its cursor and has room.
pub fn kind(seen: &Surroundings) -> Kind {
    let dumb = seen.term.as_deref().is_none_or(|term| term.is_empty() || term == "dumb");
    let room = seen.size.is_some_and(|(columns, rows)| columns >= LEAST.0 && rows >= LEAST.1);
    if seen.stderr_terminal && room && !dumb && !seen.ci && !seen.no_progress {
        Kind::Bars { color: !seen.no_color }
    } else {
        Kind::Plain
    }
}

/// The lead can draw its region: standard output is a terminal with room that can move its cursor. `CI` and
/// `--no-progress` are about bars alone.
pub fn is_drawable(seen: &Surroundings) -> bool {
    let wanted = Surroundings { ci: false, no_progress: false, ..seen.clone() };
    super::stdio::stdout_is_terminal() && matches!(kind(&wanted), Kind::Bars { .. })
}

impl Surroundings {
    /// Of this process.
    pub fn of_process(no_progress: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        Self {
            stderr_terminal: super::stdio::stderr_is_terminal(),
            size: console::Term::stderr().size_checked().map(|(rows, columns)| (columns, rows)),
            term: std::env::var("TERM").ok(),
            ci: set("CI") && std::env::var("CI").is_ok_and(|ci| ci != "false" && ci != "0"),
            no_color: set("NO_COLOR"),
            no_progress,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_drawn_only_where_they_can_be() {
        let good = Surroundings {
            stderr_terminal: true,
            size: Some((80, 24)),
            term: Some("xterm".into()),
            ..Surroundings::default()
        };
        assert_eq!(kind(&good), Kind::Bars { color: true });
        assert_eq!(kind(&Surroundings { no_color: true, ..good.clone() }), Kind::Bars { color: false });
        for plain in [
            Surroundings { stderr_terminal: false, ..good.clone() },
            Surroundings { size: None, ..good.clone() },
            Surroundings { size: Some((0, 0)), ..good.clone() },
            Surroundings { size: Some((5, 2)), ..good.clone() },
            Surroundings { term: Some("dumb".into()), ..good.clone() },
            Surroundings { term: None, ..good.clone() },
            Surroundings { ci: true, ..good.clone() },
            Surroundings { no_progress: true, ..good.clone() },
        ] {
            assert_eq!(kind(&plain), Kind::Plain, "{plain:?}");
        }
    }
}
