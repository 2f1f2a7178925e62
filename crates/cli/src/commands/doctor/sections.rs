//! What is looked at: a function for each section.

use super::report::{Section, State};
use crate::commands::runtime::block_on;
use crate::error::{ExpectedError, exit};
use crate::services::{Setup, config_home, state_folder};
use claw_agents::permission::Reach;
use claw_kernel::cancel::CancelToken;
use claw_tools::process::{End, Job, run};
use claw_tools::sandbox::{SandboxPolicy, WallKind};
use rustix::fs::{Access, access};
use serde_json::{Map, Value, json};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// All sections; most of them also where the settings are wrong.
pub(super) fn all(setup: &Result<Setup, ExpectedError>) -> Vec<Section> {
    let mut all = vec![settings(setup)];
    if let Ok(setup) = setup {
        all.extend([sandbox(setup), credentials(setup)]);
    }
    all.extend([git(), terminal(), state(setup.as_ref().ok())]);
    all
}

fn settings(setup: &Result<Setup, ExpectedError>) -> Section {
    let mut section = Section::new("settings");
    match setup {
        Ok(setup) => {
            section.fact("folder", setup.cwd.display().to_string());
            section.line(format!("folder: {}", setup.cwd.display()));
            section.line("`claw config` shows each value with its file and line");
        }
        Err(error) => {
            section.fact("error", error.to_string()).line(error.to_string());
            section.trouble(State::Error, "nothing starts in this folder before that is repaired");
        }
    }
    section
}

fn sandbox(setup: &Setup) -> Section {
    let mut section = Section::new("sandbox");
    let sandboxes = match setup.sandboxes() {
        Ok(sandboxes) => sandboxes,
        Err(error) => {
            section.line(error.to_string()).trouble(State::Error, "repair the setting");
            return section;
        }
    };
    let status = sandboxes.policy(Reach::WorkspaceWrite, &setup.cwd, &[]).status();
    if let Ok(Value::Object(facts)) = serde_json::to_value(&status) {
        section.data = facts;
    }
    let word = |name: &str| section.data.get(name).and_then(Value::as_str).unwrap_or("?").to_owned();
    let (kind, network, files) = (word("kind"), word("network"), word("filesystem"));
    let how = match status.kind {
        WallKind::Full => format!("full, by namespaces of claw's own ({})", status.namespaces.join(", ")),
        WallKind::WriteWall => format!("write wall, by Landlock {}", status.abi),
        WallKind::None => kind,
    };
    section.line(format!("kind: {how}"));
    section.line(format!(
        "enabled: {}, supported: {}, active: {}",
        yes(status.enabled),
        yes(status.supported),
        yes(status.active)
    ));
    section.line(format!("network of commands: {network}; they write: {files}"));
    section.line(format!("in a container: {}", yes(status.in_container)));
    if let Some(reason) = &status.reason {
        section.line(format!("why not more: {reason}"));
    }
    match status.kind {
        WallKind::Full => {}
        WallKind::WriteWall => {
            section.trouble(
                State::Warning,
                "commands see other files and processes; they write only where they may",
            );
        }
        WallKind::None => {
            section.trouble(
                State::Warning,
                "each command of an agent is asked for, and denied where nobody is there",
            );
        }
    }
    section
}

fn yes(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

/// Names only.
fn credentials(setup: &Setup) -> Section {
    let mut section = Section::new("credentials");
    let mut some = false;
    let mut providers = Map::new();
    for profile in &setup.config.profiles {
        let usable = profile.is_usable();
        some |= usable;
        providers.insert(profile.name.clone(), json!({ "present": usable, "variables": profile.variables }));
        if usable {
            section.line(format!("{}: present", profile.name));
        }
    }
    section.fact("providers", providers);
    if !some {
        section.line("none");
        section.trouble(
            State::Warning,
            "export the API key of a provider (`claw models` lists them), or `claw login`",
        );
    }
    section
}

fn git() -> Section {
    let mut section = Section::new("git");
    match git_version() {
        Some(version) => {
            section.fact("version", version.clone()).line(version);
        }
        None => {
            section.fact("version", Value::Null).line("not found");
            section.trouble(State::Warning, "without git no step works in a folder of its own; install it");
        }
    }
    section
}

/// Asked in a folder that is no repository: nothing of one is read.
fn git_version() -> Option<String> {
    let mut said = None;
    let policy = Arc::new(SandboxPolicy::full("/"));
    let mut job = Job::argv("git", ["--version".into()], "/", policy);
    job.time = Some(Duration::from_secs(5));
    let asked = async {
        if let Ok(done) = run(job, &CancelToken::new()).await
            && done.end == End::Exited(0)
        {
            said = Some(done.out.text(200).trim().to_owned());
        }
        Ok(exit::OK)
    };
    block_on(asked).ok()?;
    said
}

fn terminal() -> Section {
    let mut section = Section::new("terminal");
    let ends = [
        ("stdin", std::io::stdin().is_terminal()),
        ("stdout", std::io::stdout().is_terminal()),
        ("stderr", std::io::stderr().is_terminal()),
    ];
    let term = std::env::var("TERM").unwrap_or_default();
    for (name, is) in ends {
        section.fact(name, is);
    }
    section.fact("term", term.clone());
    let named: Vec<&str> = ends.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
    let named = if named.is_empty() { "none".to_owned() } else { named.join(", ") };
    section.line(format!("terminals: {named}; TERM: {}", if term.is_empty() { "not set" } else { &term }));
    if matches!(term.as_str(), "" | "dumb") {
        section.line("no bars are drawn there");
    }
    section
}

fn state(setup: Option<&Setup>) -> Section {
    let mut section = Section::new("state");
    let project = setup.map(|setup| setup.cwd.join(".claw"));
    for (name, folder) in
        [("user", Some(config_home())), ("machine", Some(state_folder())), ("project", project)]
    {
        let Some(folder) = folder else { continue };
        let writable = can_be_written(&folder);
        section.fact(name, json!({ "path": folder, "writable": writable }));
        section.line(format!(
            "{name}: {} ({})",
            folder.display(),
            if writable { "writable" } else { "not writable" }
        ));
        if !writable {
            let hint = format!("give yourself the right to write {}", folder.display());
            section.trouble(if name == "project" { State::Warning } else { State::Error }, hint);
        }
    }
    section
}

/// The folder, or the nearest above it that is there and in which it would be made.
fn can_be_written(folder: &Path) -> bool {
    let there: Option<PathBuf> = folder.ancestors().find(|folder| folder.exists()).map(Path::to_owned);
    there.is_some_and(|folder| folder.is_dir() && access(&folder, Access::WRITE_OK | Access::EXEC_OK).is_ok())
}
