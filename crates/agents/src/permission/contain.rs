//! What a call would do, held against how far its mode reaches. Pure.
//!
//! Owns what is inside and what is outside. Must not know tools, rules or who answers a question.

use super::mode::{Permission, Reach};
use claw_tools::tool::Effect;
use std::path::{Component, Path, PathBuf};

/// What the sandbox of commands holds for this agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wall {
    /// Nothing: a command could do anything.
    Absent,
    /// A command writes only where its mode lets it, and has no network.
    Holds,
}

/// The places that decisions are about. All paths resolved and absolute.
#[derive(Clone, Debug)]
pub struct Places {
    /// Writes stay below.
    pub workspace: PathBuf,
    /// The workspace is a folder of claw's own state that it lent to the agent.
    pub is_lent: bool,
    /// Folders outside it that may be written.
    pub writable: Vec<PathBuf>,
    /// Files and folders outside it that may be read.
    pub readable: Vec<PathBuf>,
    /// Never written, wherever they are (claw's own state, the running workflow file).
    pub protected: Vec<PathBuf>,
    /// What holds commands.
    pub wall: Wall,
}

impl Places {
    fn holds(&self, path: &Path) -> bool {
        is_within(path, &self.workspace) || self.writable.iter().any(|place| is_within(path, place))
    }
}

/// How a call stands to its mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contained {
    /// The mode holds all of it.
    Inside,
    /// Some of it is outside: a person may let it pass.
    Outside {
        /// What, such as `writes /etc/x, outside the workspace`.
        what: String,
        /// What would let it pass without a question.
        opened_by: OpenedBy,
    },
    /// The mode does not reach so far, whoever says yes.
    Beyond {
        /// What.
        what: String,
        /// The mode that does.
        needed: Reach,
    },
}

/// What lets a call pass that is outside of its mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenedBy {
    /// Any allow rule for the tool, or a wider mode.
    Rule,
    /// An allow rule that names the very path, or a wider mode.
    PathRule,
    /// A person, each time.
    Person,
}

/// Decides about one call.
pub fn contain(mode: Permission, effect: &Effect, places: &Places) -> Contained {
    match mode.reach {
        Reach::ReadOnly => read_only(effect, places),
        Reach::WorkspaceWrite => workspace_write(effect, places),
        Reach::DangerFullAccess => protected(effect, places).unwrap_or(Contained::Inside),
    }
}

fn protected(effect: &Effect, places: &Places) -> Option<Contained> {
    let path = effect.writes.iter().find(|path| is_protected(path, places))?;
    Some(Contained::Outside {
        what: format!("writes {}, which governs claw itself", path.display()),
        opened_by: OpenedBy::Person,
    })
}

fn read_only(effect: &Effect, places: &Places) -> Contained {
    let what = if let Some(server) = &effect.server {
        format!("is carried out by the server {server}, which nothing holds")
    } else if let Some(path) = effect.writes.first() {
        format!("writes {}", path.display())
    } else if effect.executes.is_some() && places.wall == Wall::Absent {
        "runs a command, and no sandbox is there to keep it from writing".to_owned()
    } else if let Some(name) = &effect.changes {
        format!("changes the setting `{name}`")
    } else {
        return outside(effect, places);
    };
    Contained::Beyond { what, needed: Reach::WorkspaceWrite }
}

fn workspace_write(effect: &Effect, places: &Places) -> Contained {
    if let Some(protected) = protected(effect, places) {
        return protected;
    }
    if let Some(path) = effect.writes.iter().find(|path| !places.holds(path)) {
        let what = format!("writes {}, outside the workspace {}", path.display(), places.workspace.display());
        return Contained::Outside { what, opened_by: OpenedBy::PathRule };
    }
    if let Some(server) = &effect.server {
        let what = format!("is carried out by the server {server}, outside of the sandbox");
        return Contained::Outside { what, opened_by: OpenedBy::Rule };
    }
    if effect.executes.is_some() && places.wall == Wall::Absent {
        let what = "runs a command, and no sandbox is there to hold it".to_owned();
        return Contained::Outside { what, opened_by: OpenedBy::Rule };
    }
    outside(effect, places)
}

/// Reads and the network, alike in both modes that have a sandbox.
fn outside(effect: &Effect, places: &Places) -> Contained {
    let readable =
        |path: &Path| places.holds(path) || places.readable.iter().any(|place| is_within(path, place));
    if let Some(path) = effect.reads.iter().find(|path| !readable(path)) {
        let what = format!("reads {}, outside the workspace {}", path.display(), places.workspace.display());
        return Contained::Outside { what, opened_by: OpenedBy::PathRule };
    }
    if let Some(name) = &effect.changes {
        let what = format!("changes the setting `{name}`");
        return Contained::Outside { what, opened_by: OpenedBy::Rule };
    }
    // A command in the sandbox has no network there, whatever it asks for.
    if effect.network {
        return Contained::Outside { what: "uses the network".to_owned(), opened_by: OpenedBy::Rule };
    }
    Contained::Inside
}

/// By component: `/src/ab` is not within `/src/a`. A path with `..` is within nothing.
fn is_within(path: &Path, place: &Path) -> bool {
    path.starts_with(place) && !path.components().any(|part| part == Component::ParentDir)
}

/// Names that govern claw, below any folder, even when they do not exist yet.
fn is_protected(path: &Path, places: &Places) -> bool {
    // What is protected and lies above a lent folder does not protect what is in it.
    let lent = |place: &Path| {
        places.is_lent && places.workspace.starts_with(place) && is_within(path, &places.workspace)
    };
    places.protected.iter().any(|place| path.starts_with(place) && !lent(place))
        || governs(path, &places.workspace)
}

fn governs(path: &Path, workspace: &Path) -> bool {
    // The workspace itself may lie below such a folder (a worktree in claw's state): only what is below counts.
    let below = path.strip_prefix(workspace).unwrap_or(path);
    let names: Vec<&str> = below.components().filter_map(|part| part.as_os_str().to_str()).collect();
    names.iter().enumerate().any(|(at, name)| match *name {
        ".claw" | ".claude" | ".mcp.json" => true,
        // The folder itself too: replacing `.git` replaces what is in it.
        ".git" => matches!(
            names.get(at + 1).copied(),
            None | Some("config" | "config.worktree" | "commondir" | "hooks")
        ),
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(wall: Wall) -> Places {
        Places {
            workspace: "/src/a".into(),
            is_lent: false,
            writable: vec!["/cache".into()],
            readable: vec!["/state/out".into()],
            protected: vec!["/src/a/flow.toml".into()],
            wall,
        }
    }
    fn writes(path: &str) -> Effect {
        Effect { reads: vec![path.into()], writes: vec![path.into()], ..Effect::default() }
    }
    fn reads(path: &str) -> Effect {
        Effect { reads: vec![path.into()], ..Effect::default() }
    }
    fn runs() -> Effect {
        Effect { executes: Some("make".into()), ..Effect::default() }
    }
    fn is_ask(decision: &Contained) -> bool {
        matches!(decision, Contained::Outside { .. })
    }
    fn is_deny(decision: &Contained) -> bool {
        matches!(decision, Contained::Beyond { .. })
    }

    #[test]
    fn the_workspace_is_compared_by_component() {
        let held = places(Wall::Holds);
        let mode = Permission::WORKSPACE_WRITE;
        assert_eq!(contain(mode, &writes("/src/a/src/x.rs"), &held), Contained::Inside);
        assert_eq!(contain(mode, &writes("/cache/x"), &held), Contained::Inside);
        assert!(is_ask(&contain(mode, &writes("/src/ab/x.rs"), &held)));
        assert!(is_ask(&contain(mode, &writes("/src/a/../b/x.rs"), &held)));
        assert!(is_ask(&contain(mode, &reads("/etc/passwd"), &held)));
        assert_eq!(contain(mode, &reads("/state/out/one.txt"), &held), Contained::Inside);
    }

    #[test]
    fn what_governs_is_written_with_a_persons_word_alone() {
        let held = places(Wall::Holds);
        for mode in [Permission::READ_ONLY, Permission::WORKSPACE_WRITE, Permission::DANGER_FULL_ACCESS] {
            for path in [
                "/src/a/.claw/settings.json",
                "/src/a/sub/.claude/agents/x.md",
                "/src/a/.mcp.json",
                "/src/a/.git/config",
                "/src/a/.git/hooks/pre-commit",
                "/src/a/.git/commondir",
                "/src/a/sub/.git/config.worktree",
                "/src/a/.git",
                "/src/a/flow.toml",
            ] {
                let judged = contain(mode, &writes(path), &held);
                let is_right = match &judged {
                    Contained::Outside { opened_by, .. } => *opened_by == OpenedBy::Person,
                    Contained::Beyond { .. } => mode.reach == Reach::ReadOnly,
                    Contained::Inside => false,
                };
                assert!(is_right, "{mode} {path} {judged:?}");
            }
        }
        let mode = Permission::WORKSPACE_WRITE;
        assert_eq!(contain(mode, &writes("/src/a/.gitignore"), &held), Contained::Inside);
        assert_eq!(contain(mode, &writes("/src/a/.git/info/exclude"), &held), Contained::Inside);
    }

    #[test]
    fn a_lent_folder_is_written_and_the_state_around_it_is_not() {
        let mut lent = Places { protected: vec!["/src".into()], ..places(Wall::Holds) };
        let mode = Permission::WORKSPACE_WRITE;
        assert!(is_ask(&contain(mode, &writes("/src/a/x"), &lent)));
        lent.is_lent = true;
        assert_eq!(contain(mode, &writes("/src/a/x"), &lent), Contained::Inside);
        for path in ["/src/b/x", "/src/a/.claw/x", "/src/a/../key", "/src/a/.git"] {
            assert!(is_ask(&contain(mode, &writes(path), &lent)), "{path}");
        }
    }

    #[test]
    fn read_only_holds_what_only_reads() {
        let judged = contain(Permission::READ_ONLY, &writes("/src/a/x"), &places(Wall::Holds));
        assert!(matches!(judged, Contained::Beyond { needed: Reach::WorkspaceWrite, .. }));
        assert!(is_deny(&contain(Permission::READ_ONLY, &runs(), &places(Wall::Absent))));
        assert_eq!(contain(Permission::READ_ONLY, &runs(), &places(Wall::Holds)), Contained::Inside);
    }

    #[test]
    fn without_a_sandbox_commands_are_asked_and_reading_goes_on() {
        let bare = places(Wall::Absent);
        assert!(is_ask(&contain(Permission::WORKSPACE_WRITE, &runs(), &bare)));
        assert_eq!(contain(Permission::WORKSPACE_WRITE, &reads("/src/a/x"), &bare), Contained::Inside);
        assert_eq!(contain(Permission::DANGER_FULL_ACCESS, &runs(), &bare), Contained::Inside);
    }

    #[test]
    fn a_worktree_below_claws_own_state_is_still_a_workspace() {
        let mut held = places(Wall::Holds);
        held.workspace = "/src/.claw/trees/n1".into();
        assert_eq!(
            contain(Permission::WORKSPACE_WRITE, &writes("/src/.claw/trees/n1/x"), &held),
            Contained::Inside
        );
        assert!(is_ask(&contain(Permission::WORKSPACE_WRITE, &writes("/src/.claw/trees/n2/x"), &held)));
    }
}
