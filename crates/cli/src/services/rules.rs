//! Permission rules of a command: those of the settings, and those of its flags.

use super::Setup;
use crate::error::ExpectedError;
use claw_agents::permission::{Kind, Rule, RuleSet};
use claw_agents::settings::{Origin, Settings, Sourced};

const ALLOWED: &str = "--allowedTools";
const DISALLOWED: &str = "--disallowedTools";

/// What `--allowedTools` and `--disallowedTools` say.
#[derive(Clone, Debug, Default)]
pub struct ToolFlags {
    /// Canonical names of the tools that are offered; empty: all.
    pub offered: Vec<String>,
    /// Canonical names of those that are not.
    pub denied: Vec<String>,
}

/// The rules of the settings.
///
/// # Errors
/// A text that is no rule, with its place.
pub(super) fn of_settings(settings: &Settings) -> Result<RuleSet, ExpectedError> {
    let mut rules = RuleSet::new();
    let said = &settings.permissions;
    for (kind, texts) in [(Kind::Deny, &said.deny), (Kind::Ask, &said.ask), (Kind::Allow, &said.allow)] {
        for text in texts {
            rules.add(kind, text.clone())?;
        }
    }
    Ok(rules)
}

impl Setup {
    /// Takes names and rules of the flags in. A rule with an input offers its tool, for that input; what is denied for
    /// some inputs is still offered.
    ///
    /// # Errors
    /// A name that is no tool, a text that is no rule.
    pub fn tool_flags(&mut self, allowed: &[String], denied: &[String]) -> Result<ToolFlags, ExpectedError> {
        let mut flags = ToolFlags::default();
        for text in split(allowed) {
            let name = self.named_tool(Kind::Allow, &text, ALLOWED)?;
            if !flags.offered.contains(&name) {
                flags.offered.push(name);
            }
        }
        for text in split(denied) {
            let is_whole = parsed(Kind::Deny, &text, DISALLOWED)?.is_whole();
            let name = self.named_tool(Kind::Deny, &text, DISALLOWED)?;
            if is_whole {
                flags.denied.push(name);
            }
        }
        Ok(flags)
    }

    /// Adds the rule and gives the canonical name of its tool.
    fn named_tool(&mut self, kind: Kind, text: &str, flag: &str) -> Result<String, ExpectedError> {
        let rule = parsed(kind, text, flag)?;
        let name = text.split('(').next().unwrap_or_default().trim();
        // Tools of MCP servers are known when the servers are there.
        let canonical =
            if rule.tool().starts_with("mcp__") { name.to_owned() } else { self.canonical(name)? };
        self.rules.add(kind, Sourced { value: text.to_owned(), origin: Origin::flag(flag) })?;
        Ok(canonical)
    }
}

fn parsed(kind: Kind, text: &str, flag: &str) -> Result<Rule, ExpectedError> {
    Ok(Rule::parse(kind, Sourced { value: text.to_owned(), origin: Origin::flag(flag) })?)
}

/// By comma, but for those between brackets.
fn split(typed: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for text in typed {
        let mut one = String::new();
        let mut depth = 0usize;
        let mut is_escaped = false;
        for c in text.chars() {
            match c {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                ',' if depth == 0 => {
                    all.push(std::mem::take(&mut one));
                    continue;
                }
                _ => {}
            }
            one.push(c);
        }
        all.push(one);
    }
    all.iter().map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_between_brackets_belongs_to_the_rule() {
        let typed = ["Read, Bash(echo a,b),".to_owned(), r"Bash(echo \(,), Write".to_owned()];
        assert_eq!(split(&typed), ["Read", "Bash(echo a,b)", r"Bash(echo \(,)", "Write"]);
    }
}
