//! What a hook is told: JSON on its standard input, and variables. Pure.

use super::event::HookEvent;
use serde_json::{Map, Value, json};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Bytes of one variable; a little more, and the kernel refuses to start the hook.
const MOST_VARIABLE: usize = 64 * 1024;

/// Whose hook it is: what all events of one agent have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scene {
    /// The session or run.
    pub session: String,
    /// The agent's transcript.
    pub transcript: PathBuf,
    /// The agent's working folder.
    pub cwd: PathBuf,
    /// The mode in force.
    pub permission_mode: String,
    /// The agent's id.
    pub agent_id: String,
    /// The name of its definition.
    pub agent_type: String,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Happening {
    /// A call is about to be judged.
    BeforeCall {
        /// Canonical name.
        tool: String,
        /// Its other names.
        aliases: Vec<String>,
        /// Its input.
        input: Value,
        /// The model's id of the call, or claw's.
        call: String,
    },
    /// A person is about to be asked.
    AskingPermission {
        /// Canonical name.
        tool: String,
        /// Its other names.
        aliases: Vec<String>,
        /// Its input.
        input: Value,
        /// The call.
        call: String,
        /// Why it is asked.
        why: String,
    },
    /// A call ran.
    AfterCall {
        /// Canonical name.
        tool: String,
        /// Its other names.
        aliases: Vec<String>,
        /// Its input.
        input: Value,
        /// The call.
        call: String,
        /// Its result, or its error.
        output: String,
        /// Whether it failed.
        is_error: bool,
    },
    /// A person's prompt.
    Prompt(String),
    /// `startup`, `resume`, `clear`, `compact`.
    SessionStart(&'static str),
    /// Why the session ends.
    SessionEnd(&'static str),
    /// The lead is done. `again`: a hook sent it on already.
    Stop {
        /// A hook sent it on already.
        again: bool,
        /// Its last text.
        last: String,
    },
    /// An agent begins, with this task.
    SubagentStart(String),
    /// An agent is done.
    SubagentStop {
        /// A hook sent it on already.
        again: bool,
        /// Its last text.
        last: String,
    },
    /// `manual` with the person's words, or `auto`.
    PreCompact {
        /// Whether a person asked for it.
        manual: bool,
        /// What to keep.
        instructions: String,
    },
    /// Attention is wanted.
    Notification {
        /// `permission_prompt`, `idle_prompt`, …
        kind: &'static str,
        /// For people.
        message: String,
    },
}

impl Happening {
    /// Its event.
    pub fn event(&self) -> HookEvent {
        match self {
            Self::BeforeCall { .. } => HookEvent::PreToolUse,
            Self::AskingPermission { .. } => HookEvent::PermissionRequest,
            Self::AfterCall { is_error: false, .. } => HookEvent::PostToolUse,
            Self::AfterCall { is_error: true, .. } => HookEvent::PostToolUseFailure,
            Self::Prompt(_) => HookEvent::UserPromptSubmit,
            Self::SessionStart(_) => HookEvent::SessionStart,
            Self::SessionEnd(_) => HookEvent::SessionEnd,
            Self::Stop { .. } => HookEvent::Stop,
            Self::SubagentStart(_) => HookEvent::SubagentStart,
            Self::SubagentStop { .. } => HookEvent::SubagentStop,
            Self::PreCompact { .. } => HookEvent::PreCompact,
            Self::Notification { .. } => HookEvent::Notification,
        }
    }

    /// The tool, where it is about a call.
    pub fn tool(&self) -> Option<&str> {
        match self {
            Self::BeforeCall { tool, .. }
            | Self::AskingPermission { tool, .. }
            | Self::AfterCall { tool, .. } => Some(tool),
            Self::Prompt(_)
            | Self::SessionStart(_)
            | Self::SessionEnd(_)
            | Self::Stop { .. }
            | Self::SubagentStart(_)
            | Self::SubagentStop { .. }
            | Self::PreCompact { .. }
            | Self::Notification { .. } => None,
        }
    }

    /// What matchers look at.
    pub(super) fn names<'a>(&'a self, scene: &'a Scene) -> Vec<&'a str> {
        match self {
            Self::BeforeCall { tool, aliases, .. }
            | Self::AskingPermission { tool, aliases, .. }
            | Self::AfterCall { tool, aliases, .. } => {
                aliases.iter().map(String::as_str).chain([tool.as_str()]).collect()
            }
            Self::SessionStart(what) | Self::SessionEnd(what) => vec![what],
            Self::SubagentStart(_) | Self::SubagentStop { .. } => vec![&scene.agent_type],
            Self::PreCompact { manual, .. } => vec![if *manual { "manual" } else { "auto" }],
            Self::Notification { kind, .. } => vec![kind],
            Self::Prompt(_) | Self::Stop { .. } => Vec::new(),
        }
    }

    /// The input of a call.
    fn input(&self) -> Option<&Value> {
        match self {
            Self::BeforeCall { input, .. }
            | Self::AskingPermission { input, .. }
            | Self::AfterCall { input, .. } => Some(input),
            Self::Prompt(_)
            | Self::SessionStart(_)
            | Self::SessionEnd(_)
            | Self::Stop { .. }
            | Self::SubagentStart(_)
            | Self::SubagentStop { .. }
            | Self::PreCompact { .. }
            | Self::Notification { .. } => None,
        }
    }

    fn fields(&self, fields: &mut Map<String, Value>) {
        let mut put = |name: &str, value: Value| {
            fields.insert(name.to_owned(), value);
        };
        match self {
            Self::BeforeCall { tool, input, call, .. }
            | Self::AskingPermission { tool, input, call, .. }
            | Self::AfterCall { tool, input, call, .. } => {
                put("tool_name", json!(tool));
                put("tool_input", if input.is_object() { input.clone() } else { json!({"raw": input}) });
                put("tool_input_json", json!(input.to_string()));
                put("tool_use_id", json!(call));
            }
            Self::Prompt(prompt) | Self::SubagentStart(prompt) => put("prompt", json!(prompt)),
            Self::SessionStart(source) => put("source", json!(source)),
            Self::SessionEnd(reason) => put("reason", json!(reason)),
            Self::Stop { again, last } | Self::SubagentStop { again, last } => {
                put("stop_hook_active", json!(again));
                put("last_assistant_message", json!(last));
            }
            Self::PreCompact { manual, instructions } => {
                put("trigger", json!(if *manual { "manual" } else { "auto" }));
                put("custom_instructions", json!(instructions));
            }
            Self::Notification { kind, message } => {
                put("notification_type", json!(kind));
                put("message", json!(message));
            }
        }
        match self {
            Self::AskingPermission { why, .. } => put("reason", json!(why)),
            Self::AfterCall { output, is_error, .. } => {
                put(if *is_error { "tool_error" } else { "tool_output" }, json!(output));
                put("tool_result_is_error", json!(is_error));
            }
            Self::BeforeCall { .. } => put("tool_result_is_error", json!(false)),
            Self::Prompt(_)
            | Self::SessionStart(_)
            | Self::SessionEnd(_)
            | Self::Stop { .. }
            | Self::SubagentStart(_)
            | Self::SubagentStop { .. }
            | Self::PreCompact { .. }
            | Self::Notification { .. } => {}
        }
    }

    /// The text for standard input.
    pub(super) fn payload(&self, scene: &Scene) -> Vec<u8> {
        let common = json!({
            "session_id": scene.session,
            "transcript_path": scene.transcript,
            "cwd": scene.cwd,
            "permission_mode": scene.permission_mode,
            "hook_event_name": self.event().name(),
            "agent_id": scene.agent_id,
            "agent_type": scene.agent_type,
        });
        let Value::Object(mut fields) = common else { return Vec::new() };
        self.fields(&mut fields);
        let mut text = Value::Object(fields).to_string().into_bytes();
        text.push(b'\n');
        text
    }

    /// Variables beside those that every process has.
    pub(super) fn variables(&self, project: &Path, plugin: Option<&Path>) -> Vec<(OsString, OsString)> {
        let mut all = vec![("HOOK_EVENT".into(), self.event().name().into())];
        for name in ["CLAUDE_PROJECT_DIR", "CLAW_PROJECT_DIR"] {
            all.push((name.into(), project.into()));
        }
        if let Some(plugin) = plugin {
            all.push(("CLAUDE_PLUGIN_ROOT".into(), plugin.into()));
        }
        let Some(tool) = self.tool() else { return all };
        all.push(("HOOK_TOOL_NAME".into(), tool.into()));
        let mut bounded = |name: &str, value: &str| {
            if value.len() <= MOST_VARIABLE && !value.contains('\0') {
                all.push((name.into(), value.into()));
            } else {
                // Told, so that nobody takes a missing value for an empty one.
                all.push((format!("{name}_ON_STDIN").into(), value.len().to_string().into()));
            }
        };
        if let Some(input) = self.input() {
            bounded("HOOK_TOOL_INPUT", &input.to_string());
        }
        let mut is_failed = "0";
        if let Self::AfterCall { output, is_error, .. } = self {
            bounded("HOOK_TOOL_OUTPUT", output);
            is_failed = if *is_error { "1" } else { "0" };
        }
        all.push(("HOOK_TOOL_IS_ERROR".into(), is_failed.into()));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scene() -> Scene {
        Scene {
            session: "s".into(),
            transcript: "/t".into(),
            cwd: "/w".into(),
            permission_mode: "read-only".into(),
            agent_id: "a1".into(),
            agent_type: "Explore".into(),
        }
    }

    fn after(output: String, is_error: bool) -> Happening {
        Happening::AfterCall {
            tool: "bash".into(),
            aliases: vec!["Bash".into()],
            input: json!({"command": "ls"}),
            call: "1.1".into(),
            output,
            is_error,
        }
    }

    #[test]
    fn the_payload_tells_who_and_what() {
        let text: Value = serde_json::from_slice(&after("out".into(), false).payload(&scene())).unwrap();
        assert_eq!(text["hook_event_name"], "PostToolUse");
        assert_eq!((&text["agent_id"], &text["agent_type"]), (&json!("a1"), &json!("Explore")));
        assert_eq!(text["tool_input"]["command"], "ls");
        assert_eq!(text["tool_input_json"], r#"{"command":"ls"}"#);
        assert_eq!((&text["tool_output"], &text["tool_error"]), (&json!("out"), &Value::Null));
        let failed: Value = serde_json::from_slice(&after("bad".into(), true).payload(&scene())).unwrap();
        assert_eq!((&failed["tool_output"], &failed["tool_error"]), (&Value::Null, &json!("bad")));
    }

    #[test]
    fn a_long_value_or_one_with_a_nul_is_no_variable() {
        let names = |output: String| -> Vec<String> {
            let all = after(output, false).variables(Path::new("/p"), None);
            all.into_iter().map(|(name, _)| name.into_string().unwrap()).collect()
        };
        assert!(names("x".repeat(65_536)).contains(&"HOOK_TOOL_OUTPUT".to_owned()));
        for output in ["x".repeat(65_537), "a\0b".to_owned()] {
            let names = names(output);
            assert!(!names.contains(&"HOOK_TOOL_OUTPUT".to_owned()), "{names:?}");
            assert!(names.contains(&"HOOK_TOOL_OUTPUT_ON_STDIN".to_owned()), "{names:?}");
        }
    }
}
