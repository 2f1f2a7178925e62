//! The order in which it is decided about a call: deny rules, a hook, ask rules, allow rules or the mode, a person.
//!
//! Owns that order and the words of a decision. Must not know how a question is shown or a hook is run.

use super::contain::{Contained, OpenedBy, Places, contain};
use super::mode::{Asking, Permission};
use super::rule::{Subject, exact};
use super::rules::{Allowed, Call, RuleSet, Said, host_of};
use super::shell::analyse;
use claw_tools::tool::Effect;
use std::path::Path;

/// What a hook says of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum HookVerdict {
    /// No hook speaks of it.
    #[default]
    None,
    /// It answers the question that the mode would ask, and no other.
    Allow {
        /// The hook, such as "PreToolUse hook `check.sh`".
        hook: String,
    },
    /// A person is asked.
    Ask {
        /// The hook, such as "PreToolUse hook `check.sh`".
        hook: String,
        /// Its words.
        reason: String,
    },
    /// It does not run.
    Deny {
        /// The hook, such as "PreToolUse hook `check.sh`".
        hook: String,
        /// Its words.
        reason: String,
    },
}

/// What happens with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It runs.
    Allow {
        /// The rule or the hook that let it pass; `None`: the mode.
        by: Option<String>,
    },
    /// A person is asked.
    Ask(Question),
    /// It does not run.
    Deny {
        /// Names the mode in force, the mode that is needed, and the rule or the hook.
        reason: String,
        /// The rule or the hook; `None`: the mode.
        by: Option<String>,
    },
}

/// What a person is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Names the mode in force, what the call needs, and the rule or the hook that asks.
    pub why: String,
    /// Each simple command of a line; what is outside about a path.
    pub parts: Vec<String>,
    /// What would let it pass where nobody is there.
    pub remedy: String,
    /// The mode asks, and nothing else: a hook may answer.
    pub is_of_mode: bool,
    /// The rule that an answer for always writes; `None`: it is asked each time.
    pub rule: Option<String>,
}

/// What a model may write to get out of its sandbox: never obeyed, always asked.
const SWITCHES: [&str; 3] = ["dangerouslyDisableSandbox", "dangerously_disable_sandbox", "disable_sandbox"];
/// Simple commands that a question shows.
const MOST_PARTS: usize = 40;

/// Decides about one call.
pub fn decide(
    mode: Permission,
    call: &Call<'_>,
    places: &Places,
    rules: &RuleSet,
    hook: &HookVerdict,
) -> Decision {
    let said = rules.about(call);
    let judge = Judge { mode, call, places, said: &said };
    match judge.decide(hook) {
        // A mode that never asks says no.
        Decision::Ask(question) if mode.asking == Asking::Never => Decision::Deny {
            reason: format!("{}; this mode never asks; {} would allow it", question.why, question.remedy),
            by: None,
        },
        decision => decision,
    }
}

/// What else than a person may answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lasting {
    /// Nothing.
    No,
    /// A rule.
    Rule,
    /// A rule or a hook: it is the mode's question.
    Mode,
}

struct Judge<'a> {
    mode: Permission,
    call: &'a Call<'a>,
    places: &'a Places,
    said: &'a Said<'a>,
}

impl Judge<'_> {
    fn decide(&self, hook: &HookVerdict) -> Decision {
        let mode = self.mode;
        if let Some(rule) = self.said.deny {
            let reason = format!("the {rule} denies it; mode in force: {mode}; no mode allows it");
            return Decision::Deny { reason, by: Some(rule.to_string()) };
        }
        if let HookVerdict::Deny { hook, reason } = hook {
            let reason = format!("the {hook} denies it: {reason}; mode in force: {mode}");
            return Decision::Deny { reason, by: Some(hook.clone()) };
        }
        let contained = contain(mode, self.call.effect, self.places);
        if let Contained::Beyond { what, needed } = &contained {
            let reason = format!(
                "the call {what}; mode in force: {mode}, needed: {needed} (--permission-mode {needed})"
            );
            return Decision::Deny { reason, by: None };
        }
        self.must_ask(hook).unwrap_or_else(|| self.by_rule_or_mode(hook, contained))
    }

    /// What no allow rule and no hook answers.
    fn must_ask(&self, hook: &HookVerdict) -> Option<Decision> {
        let remedy = "a person's word at a terminal".to_owned();
        if let HookVerdict::Ask { hook, reason } = hook {
            return Some(self.ask(
                format!(
                    "the {hook} wants it to be asked{}{reason}",
                    if reason.is_empty() { "" } else { ": " }
                ),
                remedy,
                Lasting::No,
            ));
        }
        if let Some(rule) = self.said.ask {
            return Some(self.ask(format!("the {rule} asks for it"), remedy, Lasting::No));
        }
        if let Some(rule) = self.said.perhaps {
            let why = format!("it cannot be known whether the {rule} is about it");
            let remedy = "a command that can be read before it runs".to_owned();
            return Some(self.ask(why, remedy, Lasting::No));
        }
        let switch = SWITCHES.iter().find(|switch| {
            self.call.input.get(**switch).is_some_and(|value| !matches!(value.as_bool(), Some(false)))
        })?;
        let why =
            format!("the call wants to leave the sandbox ({switch}); it stays inside whatever the answer is");
        Some(self.ask(why, "the same call without that field".to_owned(), Lasting::No))
    }

    fn by_rule_or_mode(&self, hook: &HookVerdict, contained: Contained) -> Decision {
        let by_hook = match hook {
            HookVerdict::Allow { hook } => Some(hook.clone()),
            HookVerdict::None | HookVerdict::Ask { .. } | HookVerdict::Deny { .. } => None,
        };
        let allowed = self.allowed(&contained);
        if let Some(by) = allowed {
            return Decision::Allow { by: Some(by) };
        }
        if let Allowed::Partly { rule, rest } = &self.said.allow {
            let rest =
                if rest.is_empty() { "this input".to_owned() } else { format!("`{}`", rest.join("`, `")) };
            let why = format!("the {rule} does not cover {rest}");
            return self.ask(why, self.rule_remedy(), Lasting::Rule);
        }
        let question = match contained {
            Contained::Outside { what, opened_by } => Some((what, opened_by)),
            Contained::Inside | Contained::Beyond { .. } => None,
        };
        match (question, by_hook) {
            (Some((what, OpenedBy::Person)), _) => {
                let remedy = "nothing but a person's word at a terminal".to_owned();
                self.ask(format!("the call {what}; needed: a person's word"), remedy, Lasting::No)
            }
            (Some(_), Some(by)) => Decision::Allow { by: Some(by) },
            (Some((what, OpenedBy::Rule | OpenedBy::PathRule)), None) => {
                let remedy = format!("{} or --permission-mode danger-full-access", self.rule_remedy());
                self.ask(format!("the call {what}; needed: danger-full-access"), remedy, Lasting::Mode)
            }
            (None, None) if self.asks_for_all() => {
                let remedy = format!(
                    "{} or a mode that does not ask for every effect, such as --permission-mode workspace-write",
                    self.rule_remedy()
                );
                self.ask("this mode asks for every effect".to_owned(), remedy, Lasting::Mode)
            }
            (None, by) => Decision::Allow { by },
        }
    }

    /// The rule that lets the call pass, inside the sandbox of its mode or by the very name of what is outside.
    fn allowed(&self, contained: &Contained) -> Option<String> {
        let opened_by = match contained {
            Contained::Inside => None,
            Contained::Outside { opened_by, .. } => Some(*opened_by),
            Contained::Beyond { .. } => return None,
        };
        match (&self.said.allow, opened_by) {
            (Allowed::Tool(rule), None | Some(OpenedBy::Rule))
            | (Allowed::Named(rule), None | Some(OpenedBy::Rule | OpenedBy::PathRule)) => {
                Some(rule.to_string())
            }
            (Allowed::Tool(_), Some(OpenedBy::PathRule))
            | (Allowed::Tool(_) | Allowed::Named(_), Some(OpenedBy::Person))
            | (Allowed::No | Allowed::Partly { .. }, _) => None,
        }
    }

    fn asks_for_all(&self) -> bool {
        self.mode.asking == Asking::EveryEffect && !self.call.effect.is_read_only()
    }

    fn ask(&self, what: String, remedy: String, lasting: Lasting) -> Decision {
        Decision::Ask(Question {
            why: format!("{what}; mode in force: {}", self.mode),
            parts: self.parts(),
            remedy,
            is_of_mode: lasting == Lasting::Mode,
            rule: (lasting != Lasting::No).then(|| self.rule()),
        })
    }

    /// The rule that would allow exactly this call.
    fn rule(&self) -> String {
        let effect = self.call.effect;
        let tool = self.call.tool;
        if let Some(line) = &effect.executes {
            return exact(tool, line.trim());
        }
        if let Some(path) = effect.writes.first().or(effect.reads.first()) {
            return exact(tool, &format!("/{}", path.display()));
        }
        match Subject::of(self.call.input) {
            Subject::Url(address) if host_of(&address).is_some() => {
                format!("{tool}(domain:{})", host_of(&address).unwrap_or_default())
            }
            Subject::Url(text) | Subject::Command(text) | Subject::Path(text) => exact(tool, text.trim()),
            Subject::Text(_) => tool.to_owned(),
        }
    }

    fn rule_remedy(&self) -> String {
        format!("the allow rule `{}`", self.rule())
    }

    /// Each simple command, so that none hides behind another.
    fn parts(&self) -> Vec<String> {
        let Some(line) = &self.call.effect.executes else { return Vec::new() };
        let analysis = analyse(line);
        let mut parts: Vec<String> =
            analysis.commands.iter().take(MOST_PARTS).map(|part| part.shown()).collect();
        if analysis.commands.len() > MOST_PARTS {
            parts.push(format!("and {} more", analysis.commands.len() - MOST_PARTS));
        }
        parts.extend(analysis.doubts.iter().map(|doubt| format!("not known: {doubt}")));
        // The line itself is shown: a list of one would say it twice.
        if parts.len() < 2 { Vec::new() } else { parts }
    }
}

/// Why a command of a workflow file never runs, as far as that is known before it is whole. `None`: it may.
pub fn refuses_command(line: &str, rules: &RuleSet, workspace: &Path) -> Option<String> {
    said_of_command(line, rules, workspace, |said| said.deny.map(|rule| format!("the {rule} denies it")))
}

/// Why a command of a workflow file does not run now. It asks nobody, so what would be asked is refused. `None`: it runs.
pub fn holds_back_command(line: &str, rules: &RuleSet, workspace: &Path) -> Option<String> {
    said_of_command(line, rules, workspace, |said| {
        let denied = said.deny.map(|rule| format!("the {rule} denies it"));
        let unclear = || {
            said.perhaps
                .map(|rule| format!("it cannot be known before it runs whether the {rule} is about it"))
        };
        let asked = || {
            said.ask.map(|rule| format!("the {rule} asks for it, and a command of a workflow asks nobody"))
        };
        denied.or_else(unclear).or_else(asked)
    })
}

fn said_of_command<T>(
    line: &str,
    rules: &RuleSet,
    workspace: &Path,
    of: impl Fn(&Said<'_>) -> Option<T>,
) -> Option<T> {
    let input = serde_json::json!({ "command": line });
    let effect = Effect { executes: Some(line.to_owned()), ..Effect::default() };
    let (tool, aliases) = ("bash", ["shell"].as_slice());
    of(&rules.about(&Call { tool, aliases, input: &input, effect: &effect, workspace, folder: workspace }))
}

#[cfg(test)]
mod tests;
