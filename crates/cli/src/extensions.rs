//! Hooks and servers of the settings, made into what agents work with.
//!
//! Must not know what a hook or a server does.

use crate::terminal::say;
use claw_agents::hooks::{HookProblem, HookSet, HookSource, Hooks};
use claw_agents::settings::{Origin, RawItem, Settings};
use claw_kernel::redact::Redactor;
use claw_kernel::visible::visible_line;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// The hooks that count, the user's first. What is wrong with one is said; the others run.
pub(crate) fn hooks(settings: &Settings, project: &Path, redactor: Arc<Redactor>) -> Hooks {
    let mut all = HookSet::default();
    for item in &settings.hooks {
        let (set, problems) = parsed(item);
        all = all.and(set);
        for problem in problems {
            say(&format!(
                "warning: {}: {}: {}\n",
                problem.origin,
                problem.origin.key,
                visible_line(&problem.message)
            ));
        }
    }
    Hooks::new(all, project, settings.hooks_fail_open, redactor)
}

/// One element of the list of an event, at its own place.
fn parsed(item: &RawItem) -> (HookSet, Vec<HookProblem>) {
    let mut section = serde_json::Map::new();
    section.insert(item.name.clone(), json!([item.node.to_json()]));
    let origin = Origin { key: "hooks".to_owned(), ..item.origin.clone() };
    HookSet::parse(&section.into(), &HookSource { origin, plugin: None })
}
