//! `agents/*.md`: an agent as a file defines it.

use super::find::Source;
use super::frontmatter::{Document, Flaw, Frontmatter, HeadValue};
use crate::definition::{AgentDefinition, ToolSet};
use crate::permission::{Permission, UnknownMode};
use claw_tools::registry::key;
use serde_json::Value;
use std::path::Path;

/// Keys that mean something here.
const KEYS: [&str; 15] = [
    "name",
    "description",
    "tools",
    "disallowedtools",
    "model",
    "permissionmode",
    "maxturns",
    "skills",
    "mcpservers",
    "hooks",
    "isolation",
    "color",
    "effort",
    "initialprompt",
    "background",
];
/// Keys that are known, and say something to people only.
const SILENT: [&str; 6] = ["version", "author", "license", "tags", "category", "metadata"];
/// Longest description that a model is told.
const MOST_DESCRIPTION: usize = 2_000;
/// Tools of other programs that claw has no part of: named without a complaint about a misspelling.
const ELSEWHERE: [&str; 12] = [
    "TeamCreate",
    "TeamDelete",
    "CronCreate",
    "CronDelete",
    "CronList",
    "RemoteTrigger",
    "Workflow",
    "LSP",
    "computer-use",
    "chrome-mcp",
    "SlashCommand",
    "Monitor",
];

/// What a file says beside the definition: for the rooms that carry it out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentExtras {
    /// Skills that it begins with.
    pub skills: Vec<String>,
    /// Servers of its own, as in the settings.
    pub mcp_servers: Option<Value>,
    /// Hooks of its own, as in the settings.
    pub hooks: Option<Value>,
    /// It works in a work tree of its own.
    pub isolated: bool,
    /// Runs in the background unless the call says otherwise.
    pub background: bool,
    /// For the screen.
    pub color: Option<String>,
    /// `Bash(git log:*)`: rules that narrow a tool of its list.
    pub rules: Vec<String>,
    /// Names in its list that are tools of servers or plugins: `mcp__server__tool`.
    pub foreign_tools: Vec<String>,
}

/// An agent as a file defines it.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentFile {
    /// For whoever starts it.
    pub definition: AgentDefinition,
    /// The rest.
    pub extras: AgentExtras,
}

/// Knows tools by their names.
pub(super) type Canonical<'a> = &'a dyn Fn(&str) -> Option<&'static str>;

impl AgentFile {
    /// Reads one. `None`: it is left out, and the flaws say why. A mode that is misspelt is never taken for a looser one.
    pub(super) fn read(
        path: &Path,
        text: &str,
        source: &Source,
        tools: Canonical<'_>,
    ) -> (Option<Self>, Vec<Flaw>) {
        let Document { head, body, flaws, .. } = Document::parse(text);
        let mut flaws = flaws;
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        if head.iter().next().is_none() {
            flaws.push(Flaw::warning(1, "no head: this file defines no agent"));
            return (None, flaws);
        }
        let name = head.text("name").unwrap_or(stem);
        if !is_name(&name) {
            let line = head.get("name").map_or(1, |value| value.line);
            flaws.push(Flaw::error(
                line,
                format!("`{name}` is no name of an agent: letters, digits, `-`, `_`, at most 64"),
            ));
            return (None, flaws);
        }
        let description = head.text("description").unwrap_or_else(|| {
            flaws.push(Flaw::warning(1, "no `description`: models cannot tell what the agent is for"));
            String::new()
        });
        say_unknown(&head, &mut flaws);
        let mut extras = extras(&head);
        let permission = match mode(&head) {
            Ok(mode) => mode,
            Err(flaw) => {
                flaws.push(flaw);
                return (None, flaws);
            }
        };
        let tools_of = |key: &str, extras: &mut AgentExtras, flaws: &mut Vec<Flaw>| {
            head.get(key).map(|value| tool_names(value, tools, extras, flaws))
        };
        let own = tools_of("tools", &mut extras, &mut flaws);
        let deny = tools_of("disallowedTools", &mut AgentExtras::default(), &mut flaws);
        let model = head.text("model").filter(|model| !model.eq_ignore_ascii_case("inherit"));
        let definition = AgentDefinition {
            name: source.qualified(&name),
            description: description.chars().take(MOST_DESCRIPTION).collect(),
            revision: 0,
            prompt: body.trim().to_owned(),
            tools: match own {
                // `tools: *`, or an empty list as others write it for "all".
                Some(Names::All) | None => ToolSet::All,
                Some(Names::These(names)) => ToolSet::Only(names),
            },
            deny_tools: match deny {
                Some(Names::These(names)) => names,
                Some(Names::All) | None => Vec::new(),
            },
            models: model.into_iter().collect(),
            permission,
            max_turns: head.text("maxTurns").and_then(|turns| turns.parse().ok()),
        };
        (Some(Self { definition, extras }), flaws)
    }
}

fn say_unknown(head: &Frontmatter, flaws: &mut Vec<Flaw>) {
    let unknown = head.iter().filter(|(key, _)| !KEYS.contains(key) && !SILENT.contains(key));
    flaws.extend(
        unknown.map(|(key, value)| {
            Flaw::warning(value.line, format!("`{key}` means nothing to claw; it is kept"))
        }),
    );
}

fn extras(head: &Frontmatter) -> AgentExtras {
    AgentExtras {
        skills: head.items("skills").unwrap_or_default(),
        mcp_servers: head.get("mcpServers").map(|value| value.value.clone()),
        hooks: head.get("hooks").map(|value| value.value.clone()),
        isolated: head.text("isolation").is_some_and(|word| word == "worktree"),
        background: head.get("background").and_then(HeadValue::flag).unwrap_or(false),
        color: head.text("color"),
        ..AgentExtras::default()
    }
}

fn mode(head: &Frontmatter) -> Result<Option<Permission>, Flaw> {
    let Some(word) = head.text("permissionMode") else { return Ok(None) };
    let line = head.get("permissionMode").map_or(1, |value| value.line);
    word.parse().map(Some).map_err(|error: UnknownMode| Flaw::error(line, error.to_string()))
}

enum Names {
    All,
    These(Vec<String>),
}

/// Canonical names of a list of tools. What is not known is said; it gives no right.
fn tool_names(
    value: &HeadValue,
    tools: Canonical<'_>,
    extras: &mut AgentExtras,
    flaws: &mut Vec<Flaw>,
) -> Names {
    let items = value.items();
    if items.is_empty() || items.iter().any(|item| item == "*") {
        return Names::All;
    }
    let mut names: Vec<String> = Vec::new();
    for item in items {
        let (name, rule) = match item.split_once('(') {
            Some((name, _)) => (name.trim(), true),
            None => (item.as_str(), false),
        };
        match tools(name) {
            Some(known) => {
                if rule {
                    extras.rules.push(item.clone());
                }
                if !names.iter().any(|name| name == known) {
                    names.push(known.to_owned());
                }
            }
            None if name.starts_with("mcp__") || name.contains(':') => {
                extras.foreign_tools.push(item.clone())
            }
            None if ELSEWHERE.iter().any(|other| key(other) == key(name)) => {
                flaws.push(Flaw::warning(value.line, format!("`{name}` is a tool that claw does not have")));
            }
            None => {
                flaws.push(Flaw::warning(
                    value.line,
                    format!("`{name}` is no tool that claw knows; it gives nothing"),
                ));
                extras.foreign_tools.push(item.clone());
            }
        }
    }
    names.extend(extras.foreign_tools.iter().filter(|name| name.starts_with("mcp__")).cloned());
    Names::These(names)
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ' | '.');
    !name.is_empty() && name.chars().count() <= 64 && name.chars().all(plain) && !name.starts_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_tools::registry::Registry;

    fn read(text: &str) -> (Option<AgentFile>, Vec<Flaw>) {
        let registry = Registry::builtin();
        AgentFile::read(Path::new("agents/from-stem.md"), text, &Source::User, &|name| {
            registry.canonical(name)
        })
    }

    #[test]
    fn the_common_shape_becomes_a_definition() {
        let text = "---\nname: reviewer\ndescription: Reviews.\ntools: Read, Grep, Bash(git log:*), mcp__x__y, TeamCreate\nmodel: inherit\ncolor: blue\npermissionMode: plan\nmaxTurns: 7\n---\nYou review.\n";
        let (agent, flaws) = read(text);
        let agent = agent.unwrap();
        assert_eq!(agent.definition.name, "reviewer");
        assert_eq!(agent.definition.prompt, "You review.");
        let tools = ["read_file", "grep_search", "bash", "mcp__x__y"].map(str::to_owned);
        assert_eq!(agent.definition.tools, ToolSet::Only(tools.into()));
        assert_eq!(agent.extras.rules, ["Bash(git log:*)"]);
        assert!(agent.definition.models.is_empty());
        assert_eq!(agent.definition.permission, Some(Permission::READ_ONLY));
        assert_eq!(agent.definition.max_turns, Some(7));
        assert_eq!(flaws.len(), 1, "{flaws:?}");
        assert!(flaws[0].message.contains("`TeamCreate` is a tool that claw does not have"));
    }

    #[test]
    fn unknown_keys_are_said_and_nothing_is_lost() {
        let (agent, flaws) = read("---\ndescription: x\nfoo: 1\n---\nbody");
        assert_eq!(agent.unwrap().definition.name, "from-stem");
        assert_eq!((flaws[0].line, flaws[0].severity), (3, super::super::Severity::Warning));
    }

    #[test]
    fn a_misspelt_mode_leaves_the_agent_out() {
        let (agent, flaws) = read("---\nname: a\ndescription: x\npermissionMode: read-onyl\n---\n");
        assert!(agent.is_none());
        assert!(flaws.iter().any(|flaw| flaw.line == 4 && flaw.message.contains("did you mean `read-only`")));
    }

    #[test]
    fn a_name_cannot_leave_its_folder() {
        for name in ["../x", "a/b", "\"\\e[2J\"", ".hidden"] {
            let (agent, flaws) = read(&format!("---\nname: {name}\ndescription: x\n---\n"));
            assert!(agent.is_none() && !flaws.is_empty(), "{name}");
        }
    }
}
