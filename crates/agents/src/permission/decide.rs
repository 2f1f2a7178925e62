//! The first gate: what a call would do, held against the mode. Pure.
//!
//! Owns the order of the checks. Must not know tools, rules files or who answers a question.

use super::mode::{Asking, Permission, Reach};
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

/// What happens with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It runs.
    Allow,
    /// A person is asked.
    Ask {
        /// Names the mode in force and what the call needs.
        why: String,
        /// The flag that would allow it, for when nobody is there.
        remedy: &'static str,
    },
    /// It does not run.
    Deny {
        /// Names the mode in force and what the call needs.
        reason: String,
    },
}

const WORKSPACE_WRITE: &str = "--permission-mode workspace-write";
const FULL_ACCESS: &str = "--permission-mode danger-full-access";
const DEFAULT_ASKING: &str =
    "a mode that does not ask for every effect, such as --permission-mode workspace-write";

/// Decides about one call.
pub fn decide(mode: Permission, effect: &Effect, places: &Places) -> Decision {
    if let Some(path) = effect.writes.iter().find(|path| is_protected(path, places)) {
        let reason = format!(
            "{} governs claw itself and is never written by a tool, in any mode (mode in force: {mode}); a person can change it",
            path.display()
        );
        return Decision::Deny { reason };
    }
    let decision = match mode.reach {
        Reach::ReadOnly => read_only(mode, effect, places),
        Reach::WorkspaceWrite => workspace_write(mode, effect, places),
        Reach::DangerFullAccess => Decision::Allow,
    };
    ask_strictly(mode, effect, decision)
}

fn read_only(mode: Permission, effect: &Effect, places: &Places) -> Decision {
    let needs_more = if let Some(server) = &effect.server {
        Some(format!("is carried out by the server {server}, which nothing holds"))
    } else if let Some(path) = effect.writes.first() {
        Some(format!("writes {}", path.display()))
    } else if effect.executes.is_some() && places.wall == Wall::Absent {
        Some("runs a command, and no sandbox is there to keep it from writing".to_owned())
    } else if let Some(name) = &effect.changes {
        Some(format!("changes the setting `{name}`"))
    } else {
        None
    };
    match needs_more {
        Some(what) => Decision::Deny {
            reason: format!(
                "the call {what}; mode in force: {mode}, needed: workspace-write ({WORKSPACE_WRITE})"
            ),
        },
        None => outside(mode, effect, places),
    }
}

fn workspace_write(mode: Permission, effect: &Effect, places: &Places) -> Decision {
    if let Some(path) = effect.writes.iter().find(|path| !places.holds(path)) {
        return ask(mode, &format!("writes {}, outside the workspace", path.display()));
    }
    if let Some(server) = &effect.server {
        return ask(mode, &format!("is carried out by the server {server}, outside of the sandbox"));
    }
    if effect.executes.is_some() && places.wall == Wall::Absent {
        return ask(mode, "runs a command, and no sandbox is there to hold it");
    }
    outside(mode, effect, places)
}

/// Reads and the network, alike in both modes that have a sandbox.
fn outside(mode: Permission, effect: &Effect, places: &Places) -> Decision {
    let readable =
        |path: &Path| places.holds(path) || places.readable.iter().any(|place| is_within(path, place));
    if let Some(path) = effect.reads.iter().find(|path| !readable(path)) {
        return ask(mode, &format!("reads {}, outside the workspace", path.display()));
    }
    if let Some(name) = &effect.changes {
        return ask(mode, &format!("changes the setting `{name}`"));
    }
    // A command in the sandbox has no network there, whatever it asks for.
    if effect.network {
        return ask(mode, "uses the network");
    }
    Decision::Allow
}

fn ask(mode: Permission, what: &str) -> Decision {
    Decision::Ask {
        why: format!("the call {what}; mode in force: {mode}, needed: danger-full-access"),
        remedy: FULL_ACCESS,
    }
}

/// `EveryEffect` turns an allowed effect into a question; `Never` turns a question into a denial.
fn ask_strictly(mode: Permission, effect: &Effect, decision: Decision) -> Decision {
    match (mode.asking, decision) {
        (Asking::EveryEffect, Decision::Allow) if !effect.is_read_only() => Decision::Ask {
            why: format!("mode in force: {mode}, which asks for every effect"),
            remedy: DEFAULT_ASKING,
        },
        (Asking::Never, Decision::Ask { why, remedy }) => {
            Decision::Deny { reason: format!("{why}; this mode never asks; {remedy} would allow it") }
        }
        (Asking::OutsideSandbox | Asking::EveryEffect | Asking::Never, decision) => decision,
    }
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
    fn is_ask(decision: &Decision) -> bool {
        matches!(decision, Decision::Ask { .. })
    }
    fn is_deny(decision: &Decision) -> bool {
        matches!(decision, Decision::Deny { .. })
    }

    #[test]
    fn the_workspace_is_compared_by_component() {
        let held = places(Wall::Holds);
        let mode = Permission::WORKSPACE_WRITE;
        assert_eq!(decide(mode, &writes("/src/a/src/x.rs"), &held), Decision::Allow);
        assert_eq!(decide(mode, &writes("/cache/x"), &held), Decision::Allow);
        assert!(is_ask(&decide(mode, &writes("/src/ab/x.rs"), &held)));
        assert!(is_ask(&decide(mode, &writes("/src/a/../b/x.rs"), &held)));
        assert!(is_ask(&decide(mode, &reads("/etc/passwd"), &held)));
        assert_eq!(decide(mode, &reads("/state/out/one.txt"), &held), Decision::Allow);
    }

    #[test]
    fn what_governs_is_never_written_in_any_mode() {
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
                assert!(is_deny(&decide(mode, &writes(path), &held)), "{mode} {path}");
            }
        }
        let mode = Permission::WORKSPACE_WRITE;
        assert_eq!(decide(mode, &writes("/src/a/.gitignore"), &held), Decision::Allow);
        assert_eq!(decide(mode, &writes("/src/a/.git/info/exclude"), &held), Decision::Allow);
    }

    #[test]
    fn a_lent_folder_is_written_and_the_state_around_it_is_not() {
        let mut lent = Places { protected: vec!["/src".into()], ..places(Wall::Holds) };
        let mode = Permission::WORKSPACE_WRITE;
        assert!(is_deny(&decide(mode, &writes("/src/a/x"), &lent)));
        lent.is_lent = true;
        assert_eq!(decide(mode, &writes("/src/a/x"), &lent), Decision::Allow);
        for path in ["/src/b/x", "/src/a/.claw/x", "/src/a/../key", "/src/a/.git"] {
            assert!(is_deny(&decide(mode, &writes(path), &lent)), "{path}");
        }
    }

    #[test]
    fn read_only_denies_without_a_question_and_names_both_modes() {
        let decision = decide(Permission::READ_ONLY, &writes("/src/a/x"), &places(Wall::Holds));
        let Decision::Deny { reason } = decision else { panic!("{decision:?}") };
        assert!(reason.contains("read-only") && reason.contains("workspace-write"), "{reason}");
        assert!(is_deny(&decide(Permission::READ_ONLY, &runs(), &places(Wall::Absent))));
        assert_eq!(decide(Permission::READ_ONLY, &runs(), &places(Wall::Holds)), Decision::Allow);
    }

    #[test]
    fn without_a_sandbox_commands_are_asked_and_reading_goes_on() {
        let bare = places(Wall::Absent);
        assert!(is_ask(&decide(Permission::WORKSPACE_WRITE, &runs(), &bare)));
        assert_eq!(decide(Permission::WORKSPACE_WRITE, &reads("/src/a/x"), &bare), Decision::Allow);
        assert_eq!(decide(Permission::DANGER_FULL_ACCESS, &runs(), &bare), Decision::Allow);
    }

    #[test]
    fn the_strictness_of_asking_is_applied_last() {
        let held = places(Wall::Holds);
        let prompt: Permission = "prompt".parse().unwrap();
        assert!(is_ask(&decide(prompt, &writes("/src/a/x"), &held)));
        assert_eq!(decide(prompt, &reads("/src/a/x"), &held), Decision::Allow);
        let silent: Permission = "dontAsk".parse().unwrap();
        assert_eq!(decide(silent, &writes("/src/a/x"), &held), Decision::Allow);
        let denied = decide(silent, &writes("/etc/x"), &held);
        let Decision::Deny { reason } = denied else { panic!("{denied:?}") };
        assert!(reason.contains("--permission-mode danger-full-access"), "{reason}");
    }

    #[test]
    fn a_worktree_below_claws_own_state_is_still_a_workspace() {
        let mut held = places(Wall::Holds);
        held.workspace = "/src/.claw/trees/n1".into();
        assert_eq!(
            decide(Permission::WORKSPACE_WRITE, &writes("/src/.claw/trees/n1/x"), &held),
            Decision::Allow
        );
        assert!(is_deny(&decide(Permission::WORKSPACE_WRITE, &writes("/src/.claw/trees/n2/x"), &held)));
    }
}
