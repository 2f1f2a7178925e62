//! Finds commands by name, and completes them.

use super::super::deed::Deed;
use super::super::editor::{Choice, Menu};
use super::ALL;
use super::command::{Desk, Slash};
use futures_util::future::BoxFuture;

/// The command of a name or alias.
pub(in crate::lead) fn find(name: &str) -> Option<&'static dyn Slash> {
    let wanted = name.to_lowercase();
    let is_it =
        |command: &&dyn Slash| command.name() == wanted || command.aliases().contains(&wanted.as_str());
    ALL.iter().copied().find(is_it)
}

/// All of them.
pub(super) fn all() -> &'static [&'static dyn Slash] {
    ALL
}

/// The nearest name to one that is none.
pub(in crate::lead) fn nearest(name: &str) -> Option<&'static str> {
    let names = ALL
        .iter()
        .flat_map(|command| std::iter::once(command.name()).chain(command.aliases().iter().copied()));
    claw_kernel::near::nearest(name, names)
}

/// Completions of a line that begins with a slash.
pub(in crate::lead) fn choices(text: &str, cursor: usize, desk: &Desk) -> Option<Menu> {
    let head = text.get(..cursor)?.strip_prefix('/')?;
    if head.contains('\n') {
        return None;
    }
    match head.split_once(' ') {
        None => {
            let typed = head.to_lowercase();
            let fits = |command: &&&dyn Slash| {
                command.name().starts_with(&typed)
                    || command.aliases().iter().any(|alias| alias.starts_with(&typed))
            };
            let choice = |command: &&dyn Slash| Choice {
                insert: format!("/{}", command.name()),
                about: command.about().to_owned(),
            };
            Menu::new(0, ALL.iter().filter(fits).map(choice).collect(), true)
        }
        Some((name, typed)) => {
            let typed = typed.to_lowercase();
            let mut values = find(name)?.values(desk);
            values.retain(|value| value.insert.to_lowercase().starts_with(&typed));
            let is_whole = values.len() == 1 && values[0].insert.to_lowercase() == typed;
            let from = name.len() + 2;
            if is_whole { None } else { Menu::new(from, values, false) }
        }
    }
}

/// Deeds that need no wait.
pub(super) fn ready(deeds: impl IntoIterator<Item = Deed>) -> BoxFuture<'static, Vec<Deed>> {
    Box::pin(std::future::ready(deeds.into_iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_and_no_two_commands_share_one() {
        let mut names: Vec<&str> =
            ALL.iter().flat_map(|c| std::iter::once(c.name()).chain(c.aliases().iter().copied())).collect();
        assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase() || c == '-')));
        assert!(ALL.iter().all(|command| !command.about().is_empty()));
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert_eq!(nearest("hlep"), Some("help"));
        assert!(find("QUIT").is_some());
    }
}
