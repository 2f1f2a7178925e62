//! Hooks and servers of the settings, made into what agents work with.
//!
//! Must not know what a hook or a server does.

use crate::services::config_home;
use crate::terminal::say;
use claw_agents::hooks::{HookSet, HookSource, Hooks};
use claw_agents::settings::{Origin, Scope};
use claw_kernel::redact::Redactor;
use claw_kernel::visible::visible_line;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a settings file.
const MOST: u64 = 4 << 20;

/// The user's own settings file: what a repository brings does not count here.
pub(crate) fn user_settings() -> Option<(Value, Origin)> {
    let file = config_home().join("settings.json");
    let is_small = std::fs::metadata(&file).is_ok_and(|meta| meta.is_file() && meta.len() <= MOST);
    let text = if is_small { std::fs::read_to_string(&file).ok()? } else { return None };
    let value = serde_json::from_str(text.trim_start_matches('\u{feff}')).ok()?;
    let origin = Origin { scope: Scope::User, file: Some(file), line: 1, column: 1, key: String::new() };
    Some((value, origin))
}

/// The hooks that count. What is wrong with one is said; the others run.
pub(crate) fn hooks(project: &Path, redactor: Arc<Redactor>) -> Hooks {
    let Some((settings, origin)) = user_settings() else { return Hooks::none() };
    let origin = Origin { key: "hooks".to_owned(), ..origin };
    let source = HookSource { origin, plugin: None };
    let (set, problems) = HookSet::parse(settings.get("hooks").unwrap_or(&Value::Null), &source);
    for problem in problems {
        say(&format!(
            "warning: {}: {}: {}\n",
            problem.origin,
            problem.origin.key,
            visible_line(&problem.message)
        ));
    }
    let fails_open = settings.get("hooksFailOpen") == Some(&Value::Bool(true));
    Hooks::new(set, project, fails_open, redactor)
}
