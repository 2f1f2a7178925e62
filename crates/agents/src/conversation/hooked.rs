//! Where hooks stand in a conversation: around its calls, before its questions, at its beginning and its end.
//!
//! Owns what a verdict does to a call. Must not know how hooks run.

use super::calls::{CallDesk, CallReport};
use super::core::CallResult;
use crate::effects::CallNo;
use crate::event::EventSink;
use crate::hooks::{Happening, HookDecision, HookEvent, Hooks, Moment, Scene, Verdict};
use crate::outcome::Denial;
use crate::permission::{HookVerdict, Reply};
use crate::roles::LEAD;
use claw_kernel::cancel::CancelToken;
use claw_kernel::tasks::panic_message;
use claw_tools::error::ToolError;
use claw_tools::tool::{Effect, Tool, ToolContext};
use serde_json::Value;
use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// The most that a hook may take at the end of what was cancelled.
const LAST_WORD: Duration = Duration::from_millis(300);

/// Whether hooks answered a question.
pub(super) enum Answered {
    Yes,
    /// For this reason.
    No(String),
    Not,
}

/// A call as it goes on from the hooks before it.
pub(super) struct Heard {
    pub(super) input: Value,
    pub(super) effect: Result<Effect, ToolError>,
    pub(super) hook: HookVerdict,
    /// For the model, with the result.
    pub(super) said: Vec<String>,
}

impl CallDesk {
    fn hooks(&self) -> &Hooks {
        &self.services.hooks
    }

    async fn fire(&self, what: Happening, cancel: &CancelToken) -> Verdict {
        let moment = Moment { scene: &self.scene, what, events: &*self.events, cancel, most: None };
        self.hooks().fire(moment).await
    }

    /// The hooks before a call. Errors: it does not run.
    pub(super) async fn before(
        &self,
        no: CallNo,
        tool: &dyn Tool,
        (mut input, mut effect): (Value, Result<Effect, ToolError>),
        cancel: &CancelToken,
    ) -> Result<Heard, Box<CallReport>> {
        if !self.hooks().has(HookEvent::PreToolUse) {
            return Ok(Heard { input, effect, hook: HookVerdict::None, said: Vec::new() });
        }
        let what = Happening::BeforeCall {
            tool: tool.name().to_owned(),
            aliases: aliases(tool),
            input: input.clone(),
            call: no.to_string(),
        };
        let verdict = self.fire(what, cancel).await;
        if let Some(words) = verdict.cancelled {
            return Err(Box::new(CallReport::of(CallResult::error(words))));
        }
        let hook = match verdict.decision {
            Some((HookDecision::Deny, hook)) => {
                let said = verdict.messages.join("\n");
                let said = if said.is_empty() {
                    format!("PreToolUse hook denied tool {}", tool.name())
                } else {
                    said
                };
                let denial = Denial {
                    tool: tool.name().to_owned(),
                    subject: effect
                        .as_ref()
                        .map(|effect| super::calls::what(&input, effect))
                        .unwrap_or_default(),
                    reason: format!("PreToolUse hook `{hook}`: {said}"),
                };
                let denial = Some(Denial { subject: self.redacted(&denial.subject), ..denial });
                return Err(Box::new(CallReport { denial, ..CallReport::of(CallResult::error(said)) }));
            }
            Some((HookDecision::Ask, hook)) => HookVerdict::Ask {
                hook: format!("PreToolUse hook `{hook}`"),
                reason: verdict.messages.join("\n"),
            },
            Some((HookDecision::Allow, hook)) => {
                HookVerdict::Allow { hook: format!("PreToolUse hook `{hook}`") }
            }
            None => HookVerdict::None,
        };
        if let Some(rewritten) = verdict.input {
            let context = ToolContext { cancel: cancel.clone(), ..self.context.clone() };
            effect = catch_unwind(AssertUnwindSafe(|| tool.effect(&context, &rewritten)))
                .unwrap_or_else(|panic| Err(ToolError::Panicked(panic_message(panic.as_ref()))));
            input = rewritten;
        }
        Ok(Heard { input, effect, hook, said: verdict.messages })
    }

    /// The input, where a hook after the call will want it.
    pub(super) fn told_after(&self, input: &Value) -> Option<Value> {
        let wants = [HookEvent::PostToolUse, HookEvent::PostToolUseFailure];
        wants.into_iter().any(|event| self.hooks().has(event)).then(|| input.clone())
    }

    /// The hooks after a call, and what all of them said added to its result.
    pub(super) async fn after(
        &self,
        no: CallNo,
        tool: &dyn Tool,
        (input, mut said): (Option<Value>, Vec<String>),
        mut report: CallReport,
        cancel: &CancelToken,
    ) -> CallReport {
        let mut denied = Vec::new();
        if let Some(input) = input
            && report.ran
            && !report.result.is_cancelled
        {
            let what = Happening::AfterCall {
                tool: tool.name().to_owned(),
                aliases: aliases(tool),
                input,
                call: no.to_string(),
                output: report.result.text.clone(),
                is_error: report.result.is_error,
            };
            let verdict = self.fire(what, cancel).await;
            let is_denial = verdict.is_denial() || verdict.cancelled.is_some();
            report.result.is_error |= is_denial;
            let to = if is_denial { &mut denied } else { &mut said };
            to.extend(verdict.messages);
            to.extend(verdict.cancelled);
            if is_denial && denied.is_empty() {
                denied.push(format!("a hook denied the result of {}", tool.name()));
            }
        }
        for (heading, words) in [("Hook feedback:", said), ("Hook feedback (denied):", denied)] {
            if !words.is_empty() {
                let text = &mut report.result.text;
                let blank = if text.trim().is_empty() { "" } else { "\n\n" };
                *text = format!("{}{blank}{heading}\n{}", text.trim_end_matches('\n'), words.join("\n"));
            }
        }
        report
    }

    /// The hooks before a question.
    pub(super) async fn before_question(
        &self,
        no: CallNo,
        tool: &dyn Tool,
        input: &Value,
        why: &str,
        cancel: &CancelToken,
    ) -> Answered {
        if !self.hooks().has(HookEvent::PermissionRequest) {
            return Answered::Not;
        }
        let what = Happening::AskingPermission {
            tool: tool.name().to_owned(),
            aliases: aliases(tool),
            input: input.clone(),
            call: no.to_string(),
            why: why.to_owned(),
        };
        let verdict = self.fire(what, cancel).await;
        if let Some(words) = verdict.cancelled {
            return Answered::No(words);
        }
        match &verdict.decision {
            Some((HookDecision::Allow, _)) => Answered::Yes,
            Some((HookDecision::Deny, hook)) => {
                let said = verdict.text().unwrap_or_else(|| "no reason given".to_owned());
                Answered::No(format!("PermissionRequest hook `{hook}`: {said}"))
            }
            Some((HookDecision::Ask, _)) | None => Answered::Not,
        }
    }

    /// Runs beside a question, until that is answered.
    pub(super) async fn calling_for_attention(&self, tool: &str, cancel: &CancelToken) -> Reply {
        if self.hooks().has(HookEvent::Notification) {
            let message = format!("{} wants to use {tool} and asks for permission", self.label);
            let what = Happening::Notification { kind: "permission_prompt", message };
            self.fire(what, cancel).await;
        }
        pending().await
    }

    /// Whether it may end; else the words that send it on.
    pub(super) async fn may_end(&self, last: String, again: bool, cancel: &CancelToken) -> Option<String> {
        let what = if is_lead(&self.scene) {
            Happening::Stop { again, last }
        } else {
            Happening::SubagentStop { again, last }
        };
        let event = what.event();
        let verdict = self.fire(what, cancel).await;
        if verdict.stop.is_some() || verdict.cancelled.is_some() || !verdict.is_denial() {
            return None;
        }
        Some(
            verdict.text().unwrap_or_else(|| format!("a {event} hook says that the work is not done: go on")),
        )
    }
}

fn aliases(tool: &dyn Tool) -> Vec<String> {
    tool.aliases().iter().map(|alias| (*alias).to_owned()).collect()
}

fn is_lead(scene: &Scene) -> bool {
    scene.agent_type == LEAD
}

/// Whether the end of such an agent is judged by hooks.
pub(crate) fn heeds_stop(hooks: &Hooks, scene: &Scene) -> bool {
    hooks.has(if is_lead(scene) { HookEvent::Stop } else { HookEvent::SubagentStop })
}

/// Why an agent does not begin.
pub(crate) enum Refused {
    /// A hook says no, with these words.
    Denied(String),
    /// It was cancelled.
    Cancelled,
}

/// The hooks at the beginning. `prompt`: not said yet, where there is one. Gives what they have to say to the model.
pub(crate) async fn at_the_beginning(
    hooks: &Hooks,
    scene: &Scene,
    prompt: Option<&str>,
    events: &dyn EventSink,
    cancel: &CancelToken,
) -> Result<Vec<String>, Refused> {
    let mut happenings = Vec::new();
    if is_lead(scene) {
        happenings.push(Happening::SessionStart(if prompt.is_some() { "startup" } else { "resume" }));
        happenings.extend(prompt.map(|prompt| Happening::Prompt(prompt.to_owned())));
    } else {
        happenings.push(Happening::SubagentStart(prompt.unwrap_or_default().to_owned()));
    }
    said_by(hooks, scene, happenings, events, cancel).await
}

/// The hooks at the beginning of a session that lives over many prompts: `startup`, `resume`, `clear`.
pub(crate) async fn at_session_start(
    hooks: &Hooks,
    scene: &Scene,
    how: &'static str,
    events: &dyn EventSink,
    cancel: &CancelToken,
) -> Result<Vec<String>, Refused> {
    said_by(hooks, scene, vec![Happening::SessionStart(how)], events, cancel).await
}

/// The hooks at a further prompt of a session.
pub(crate) async fn at_the_prompt(
    hooks: &Hooks,
    scene: &Scene,
    prompt: &str,
    events: &dyn EventSink,
    cancel: &CancelToken,
) -> Result<Vec<String>, Refused> {
    said_by(hooks, scene, vec![Happening::Prompt(prompt.to_owned())], events, cancel).await
}

async fn said_by(
    hooks: &Hooks,
    scene: &Scene,
    happenings: Vec<Happening>,
    events: &dyn EventSink,
    cancel: &CancelToken,
) -> Result<Vec<String>, Refused> {
    let mut said = Vec::new();
    for what in happenings {
        let event = what.event();
        let verdict = hooks.fire(Moment { scene, what, events, cancel, most: None }).await;
        if verdict.cancelled.is_some() {
            return Err(Refused::Cancelled);
        }
        if let Some(words) = verdict.stop {
            return Err(Refused::Denied(words));
        }
        if verdict.is_denial() && event == HookEvent::UserPromptSubmit {
            let words = verdict.text().unwrap_or_else(|| "no reason given".to_owned());
            return Err(Refused::Denied(format!("a UserPromptSubmit hook stopped the prompt: {words}")));
        }
        said.extend(verdict.messages);
    }
    Ok(said)
}

/// The hooks at the end of a session.
pub(crate) async fn at_the_end(hooks: &Hooks, scene: &Scene, events: &dyn EventSink, is_cancelled: bool) {
    if !is_lead(scene) || !hooks.has(HookEvent::SessionEnd) {
        return;
    }
    let (what, most) = if is_cancelled {
        (Happening::SessionEnd("cancelled"), Some(LAST_WORD))
    } else {
        (Happening::SessionEnd("other"), None)
    };
    hooks.fire(Moment { scene, what, events, cancel: &CancelToken::new(), most }).await;
}
