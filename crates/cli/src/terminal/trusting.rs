//! The question about what a repository brings: each exact command line, default no.

use super::question::ask_line;
use claw_agents::trust::TrustItem;
use claw_kernel::visible::visible_line;
use std::fmt::Write;
use std::sync::atomic::AtomicBool;

/// What the person said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustAnswer {
    /// All of it counts.
    All,
    /// One by one.
    Each,
    /// Nothing counts this time.
    NotNow,
    /// Nothing counts, and it is not asked again.
    Never,
}

/// Asks once. Nobody there, or anything that is not one of the words: not now.
pub fn trust_question(items: &[&TrustItem]) -> TrustAnswer {
    let line = ask_line(&text(items), &AtomicBool::new(false));
    line.map_or(TrustAnswer::NotNow, |line| read(&line))
}

fn read(line: &str) -> TrustAnswer {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => TrustAnswer::All,
        "e" | "each" => TrustAnswer::Each,
        "v" | "never" => TrustAnswer::Never,
        _ => TrustAnswer::NotNow,
    }
}

/// No line of it is cut: what is not seen is not decided on.
fn text(items: &[&TrustItem]) -> String {
    let mut out = "\nThis repository brings what runs commands or widens what agents may do:\n".to_owned();
    for item in items {
        let _ = writeln!(
            out,
            "  {} ({} {})",
            item.kind,
            visible_line(&item.origin.to_string()),
            visible_line(&item.key)
        );
        for line in item.lines.iter().flat_map(|line| line.lines()) {
            let _ = writeln!(out, "    {}", visible_line(line));
        }
    }
    out.push_str("Trust it? [y] yes, all of it  [e] each one  [n] not now  [v] never (default: not now) ");
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_agents::settings::Origin;
    use claw_agents::trust::ItemKind;
    use claw_kernel::digest::Digest;

    #[test]
    fn the_question_shows_every_line_without_controls_and_only_a_yes_is_a_yes() {
        let item = TrustItem {
            kind: ItemKind::Hook,
            key: "hooks.SessionStart".into(),
            lines: vec!["touch \u{1b}[2K$HOME/PWNED\rsafe\nsecond".into()],
            origin: Origin::flag("x"),
            digest: Digest::of("x"),
        };
        let shown = text(&[&item]);
        assert!(
            !shown.contains(['\u{1b}', '\r']) && shown.contains("PWNED") && shown.contains("    second"),
            "{shown}"
        );
        assert_eq!(read("Y\n"), TrustAnswer::All);
        for other in ["", "\n", "n", "yess", "all"] {
            assert_eq!(read(other), TrustAnswer::NotNow, "{other}");
        }
    }
}
