//! What people configured: from the values of settings, plugins and definitions to hooks with their places.

use super::event::HookEvent;
use super::matcher::Matcher;
use crate::settings::Origin;
use claw_kernel::near::nearest;
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Where the time of a hook is not said.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The most that can be said.
const MOST_SECONDS: f64 = 86_400.0;
/// Hooks of one source.
const MOST_HOOKS: usize = 256;
/// Keys of a command that are understood, and those that other programs have and that change nothing here.
const KEYS: [&str; 6] = ["type", "command", "timeout", "matcher", "description", "statusMessage"];

/// Where a section of hooks comes from.
#[derive(Clone, Debug)]
pub struct HookSource {
    /// The place of the section.
    pub origin: Origin,
    /// The folder of the plugin that brings it.
    pub plugin: Option<PathBuf>,
}

/// One hook.
#[derive(Clone, Debug)]
pub struct HookSpec {
    /// When it runs.
    pub event: HookEvent,
    pub(super) matcher: Matcher,
    /// As written.
    pub command: String,
    /// Its time.
    pub timeout: Duration,
    /// Where it is written.
    pub origin: Origin,
    /// The folder of its plugin: relative paths count from here.
    pub plugin: Option<PathBuf>,
}

/// What is wrong with a configuration, for people. The rest of it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookProblem {
    /// Where.
    pub origin: Origin,
    /// What, and what to do.
    pub message: String,
}

/// Hooks in the order of the configuration. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct HookSet {
    specs: Vec<Arc<HookSpec>>,
}

impl HookSet {
    /// Reads the value of a `hooks` section: `{EVENT: [COMMAND | {command} | {matcher, hooks: [{command}]}]}`.
    pub fn parse(section: &Value, source: &HookSource) -> (Self, Vec<HookProblem>) {
        let mut reader = Reader { source, specs: Vec::new(), problems: Vec::new() };
        match section {
            Value::Object(events) => reader.events(events),
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                reader.problem("", "hooks are an object: the name of an event, and a list for it");
            }
        }
        (Self { specs: reader.specs }, reader.problems)
    }

    /// These after those; doubles count once.
    pub fn and(mut self, more: Self) -> Self {
        for spec in more.specs {
            let is_known = self.specs.iter().any(|known| {
                known.event == spec.event
                    && known.command == spec.command
                    && known.plugin == spec.plugin
                    && format!("{:?}", known.matcher) == format!("{:?}", spec.matcher)
            });
            if !is_known {
                self.specs.push(spec);
            }
        }
        self
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = &HookSpec> {
        self.specs.iter().map(|spec| &**spec)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.specs.is_empty()
    }

    /// Whether any hook waits for this event.
    pub fn has(&self, event: HookEvent) -> bool {
        self.specs.iter().any(|spec| spec.event == event)
    }

    /// The hooks for an event about something with these names.
    pub(super) fn of(&self, event: HookEvent, names: &[&str]) -> Vec<Arc<HookSpec>> {
        self.specs.iter().filter(|spec| spec.event == event && spec.matcher.is_for(names)).cloned().collect()
    }
}

struct Reader<'a> {
    source: &'a HookSource,
    specs: Vec<Arc<HookSpec>>,
    problems: Vec<HookProblem>,
}

impl Reader<'_> {
    fn origin(&self, path: &str) -> Origin {
        let key = format!("{}{path}", self.source.origin.key);
        Origin { key, ..self.source.origin.clone() }
    }

    fn problem(&mut self, path: &str, message: impl Into<String>) {
        let problem = HookProblem { origin: self.origin(path), message: message.into() };
        self.problems.push(problem);
    }

    fn events(&mut self, events: &Map<String, Value>) {
        for (name, entries) in events {
            let path = format!(".{name}");
            let Some(event) = HookEvent::named(name) else {
                let near = nearest(name, HookEvent::ALL.iter().map(|event| event.name()));
                let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
                self.problem(&path, format!("`{name}` is no event of claw: its hooks never run{hint}"));
                continue;
            };
            match entries {
                Value::Array(entries) => {
                    for (at, entry) in entries.iter().enumerate() {
                        self.entry(event, entry, &format!("{path}[{at}]"));
                    }
                }
                entry => self.entry(event, entry, &path),
            }
        }
    }

    fn entry(&mut self, event: HookEvent, entry: &Value, path: &str) {
        match entry {
            Value::String(command) => self.command(event, Matcher::All, command, TIMEOUT, path),
            Value::Object(group) => {
                let matcher = self.matcher(event, group.get("matcher"), path);
                match group.get("hooks") {
                    Some(Value::Array(hooks)) => {
                        for (at, hook) in hooks.iter().enumerate() {
                            self.hook(event, &matcher, hook, &format!("{path}.hooks[{at}]"));
                        }
                    }
                    Some(_) => self.problem(path, "`hooks` is a list of `{type, command}`"),
                    None => self.hook(event, &matcher, entry, path),
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
                self.problem(path, "a hook is a command, or `{matcher, hooks: [{type, command}]}`");
            }
        }
    }

    fn matcher(&mut self, event: HookEvent, value: Option<&Value>, path: &str) -> Matcher {
        let text = match value {
            None | Some(Value::Null) => return Matcher::All,
            Some(Value::String(text)) => text,
            Some(_) => {
                self.problem(path, "`matcher` is a text; the hook runs for everything");
                return Matcher::All;
            }
        };
        match Matcher::parse(text) {
            Ok(matcher) => matcher,
            Err(error) => {
                // A guard that runs too often is safe, one that never runs is not.
                let line = error.to_string().lines().last().unwrap_or_default().trim().to_owned();
                self.problem(
                    path,
                    format!(
                        "matcher `{text}` of {event} is no pattern ({line}); the hook runs for everything"
                    ),
                );
                Matcher::All
            }
        }
    }

    fn hook(&mut self, event: HookEvent, matcher: &Matcher, hook: &Value, path: &str) {
        let Value::Object(fields) = hook else {
            return match hook {
                Value::String(command) => self.command(event, matcher.clone(), command, TIMEOUT, path),
                _ => self.problem(path, "a hook is `{type: \"command\", command}`"),
            };
        };
        if let Some(kind) = fields.get("type")
            && kind != "command"
        {
            return self.problem(path, format!("hooks of type {kind} are not supported: it never runs"));
        }
        let Some(Value::String(command)) = fields.get("command") else {
            return self.problem(path, "`command` is missing: the hook never runs");
        };
        let ignored: Vec<&str> =
            fields.keys().map(String::as_str).filter(|key| !KEYS.contains(key)).collect();
        if !ignored.is_empty() {
            self.problem(path, format!("not understood and ignored: {}", ignored.join(", ")));
        }
        let timeout = match fields.get("timeout").map(Value::as_f64) {
            None => TIMEOUT,
            Some(Some(seconds)) if seconds > 0.0 && seconds <= MOST_SECONDS => {
                Duration::from_secs_f64(seconds)
            }
            Some(_) => {
                self.problem(path, "`timeout` is a number of seconds above 0; it stays at 60");
                TIMEOUT
            }
        };
        self.command(event, matcher.clone(), command, timeout, path);
    }

    fn command(&mut self, event: HookEvent, matcher: Matcher, command: &str, timeout: Duration, path: &str) {
        if command.trim().is_empty() || command.contains('\0') {
            return self.problem(path, "an empty command never runs");
        }
        if self.specs.len() >= MOST_HOOKS {
            return self.problem(path, format!("more than {MOST_HOOKS} hooks in one place: it never runs"));
        }
        let spec = HookSpec {
            event,
            matcher,
            command: command.trim().to_owned(),
            timeout,
            origin: self.origin(path),
            plugin: self.source.plugin.clone(),
        };
        self.specs.push(Arc::new(spec));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(section: &Value) -> (HookSet, Vec<HookProblem>) {
        HookSet::parse(section, &HookSource { origin: Origin::flag("hooks"), plugin: None })
    }

    #[test]
    fn both_shapes_are_read_in_their_order() {
        let section = json!({
            "PreToolUse": ["./a.sh", {"matcher": "Bash", "hooks": [
                {"type": "command", "command": "b", "timeout": 1.5}, {"command": "c"}]}],
            "Stop": [{"hooks": [{"type": "command", "command": "d"}]}, {"command": "e"}],
        });
        let (set, problems) = parse(&section);
        assert_eq!(problems, []);
        let seen: Vec<(&str, &str, u64)> = set
            .iter()
            .map(|spec| (spec.event.name(), spec.command.as_str(), spec.timeout.as_millis() as u64))
            .collect();
        assert_eq!(
            seen,
            [
                ("PreToolUse", "./a.sh", 60_000),
                ("PreToolUse", "b", 1_500),
                ("PreToolUse", "c", 60_000),
                ("Stop", "d", 60_000),
                ("Stop", "e", 60_000),
            ]
        );
        assert_eq!(set.of(HookEvent::PreToolUse, &["write_file"]).len(), 1);
        assert_eq!(set.of(HookEvent::PreToolUse, &["bash", "Bash"]).len(), 3);
        assert_eq!(set.clone().and(set.clone()).iter().count(), 5);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place_and_the_rest_counts() {
        let section = json!({
            "PreToolUs": ["a"],
            "PreToolUse": [7, {"matcher": "(", "hooks": [{"command": "b", "async": true}]}, {"type": "http", "url": "x"},
                {"hooks": [{"type": "command"}]}],
        });
        let (set, problems) = parse(&section);
        assert_eq!(set.of(HookEvent::PreToolUse, &["anything"]).len(), 1);
        let texts: Vec<String> =
            problems.iter().map(|problem| format!("{}: {}", problem.origin.key, problem.message)).collect();
        assert_eq!(texts.len(), 6, "{texts:#?}");
        assert!(texts[0].contains("did you mean `PreToolUse`"), "{texts:#?}");
        assert!(texts[1].starts_with("hooks.PreToolUse[0]:"), "{texts:#?}");
    }
}
