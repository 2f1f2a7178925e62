//! Surroundings without a machine.

use crate::plan::InputArgs;
use crate::plan::model::Plan;
use crate::plan::surroundings::{ModelProblem, Surroundings};
use crate::workflow::problem::Problem;
use claw_agents::definition::{AgentDefinition, ToolSet};
use claw_agents::permission::Permission;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A few agents, tools, files.
pub struct Fake;

fn agent(name: &str, tools: ToolSet, permission: Option<Permission>) -> AgentDefinition {
    AgentDefinition {
        name: name.into(),
        description: String::new(),
        revision: 1,
        prompt: String::new(),
        tools,
        deny_tools: Vec::new(),
        models: Vec::new(),
        permission,
        max_turns: None,
    }
}

const TOOLS: [&str; 5] = ["bash", "read_file", "write_file", "edit_file", "grep_search"];

impl Surroundings for Fake {
    fn agent(&self, name: &str) -> Option<Arc<AgentDefinition>> {
        let reading = ToolSet::Only(vec!["read_file".into(), "grep_search".into()]);
        Some(Arc::new(match name.to_lowercase().as_str() {
            "explore" => agent("Explore", reading, Some(Permission::READ_ONLY)),
            "plan" => agent("Plan", reading, Some(Permission::READ_ONLY)),
            "verification" => agent("Verification", ToolSet::All, None),
            "general-purpose" => agent("general-purpose", ToolSet::All, None),
            _ => return None,
        }))
    }

    fn agent_names(&self) -> Vec<String> {
        ["Explore", "Plan", "Verification", "general-purpose"].map(str::to_owned).to_vec()
    }

    fn tool_names(&self) -> Vec<String> {
        TOOLS.map(str::to_owned).to_vec()
    }

    fn canonical_tool(&self, name: &str) -> Option<String> {
        let name = if name == "Read" { "read_file" } else { name };
        TOOLS.contains(&name).then(|| name.to_owned())
    }

    fn refused_command(&self, line: &str) -> Option<String> {
        line.contains("forbidden")
            .then(|| "the deny rule `Bash(forbidden:*)` (s.json:1:2) denies it".to_owned())
    }

    fn refused_mode(&self, mode: Permission) -> Option<String> {
        (mode.to_string() == "prompt")
            .then(|| "/etc/policy.json:1:2 lets no mode go past read-only".to_owned())
    }

    fn refused_tool(&self, name: &str) -> Option<String> {
        (name == "edit_file").then(|| "the deny rule `Edit` (s.json:1:2) denies it".to_owned())
    }

    fn read_text(&self, path: &Path) -> io::Result<String> {
        match path.to_str() {
            Some("dir/good.md") => Ok("Look at {{ inputs.base }}.\nThen at {{ nobody }}.\n".into()),
            Some("dir/prompt.md") => Ok("Look.".into()),
            Some("dir/schema.json") => Ok(r#"{"type":"object","properties":{"a":{"type":"string"}}}"#.into()),
            Some(path) => NESTED
                .iter()
                .find(|(name, _)| *name == path)
                .map(|(_, text)| (*text).to_owned())
                .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound)),
            None => Err(io::Error::from(io::ErrorKind::NotFound)),
        }
    }

    fn cache_pays(&self, model: Option<&str>) -> bool {
        model == Some("sonnet")
    }

    fn price_known(&self, model: Option<&str>) -> bool {
        !model.is_some_and(|model| model.contains("unpriced"))
    }

    fn default_commands(&self) -> usize {
        4
    }

    fn check_model(&self, model: &str) -> Result<(), ModelProblem> {
        if model.contains("nomodel") {
            let message = format!("there is no model `{model}`");
            return Err(ModelProblem { message, help: Some("see `claw models`".into()) });
        }
        Ok(())
    }
}

/// Files that others call.
const NESTED: &[(&str, &str)] = &[
    (
        "dir/sub.toml",
        "schema = 1\n[workflow]\nname = 'sub'\nresult = 'look'\n[inputs.n]\ntype = 'int'\n[inputs.word]\ntype = 'string'\ndefault = 'x'\n[inputs.token]\ntype = 'string'\nsecret = true\ndefault = ''\n[limits]\nagents = 5\n[agents.own]\nprompt = 'x'\n[defaults]\nphase = 'inner'\n[node.count]\nkind = 'set'\nvalue = 'inputs.n + 1'\n[node.look]\nagent = 'own'\nneeds = ['count']\nprompt = '{{ count }} {{ inputs.word }}'\noutput = { type = 'object', properties = { found = {} } }\n",
    ),
    (
        "dir/wrong.toml",
        "schema = 1\n[workflow]\nname = 'wrong'\n[node.a]\nprompt = '{{ outer }} {{ inputs.n }}'\nagent = 'own'\n",
    ),
    ("dir/keys.toml", "schema = 1\n[workflow]\nname = 'keys'\n[node.a]\npromt = 'x'\n"),
    ("dir/text.toml", "schema = 1\n[workflow\n"),
    (
        "dir/one.toml",
        "schema = 1\n[workflow]\nname = 'one'\n[node.a]\nkind = 'workflow'\nfile = 'deep/../two.toml'\n",
    ),
    (
        "dir/two.toml",
        "schema = 1\n[workflow]\nname = 'two'\n[node.g]\nkind = 'group'\n[node.g.body.b]\nkind = 'workflow'\nfile = './one.toml'\n",
    ),
    (
        "dir/many.toml",
        "schema = 1\n[workflow]\nname = 'many'\n[limits]\nagents = 2\n[node.a]\nprompt = 'x'\neach = { range = 3 }\n",
    ),
];

/// The head that every file needs.
pub const HEAD: &str = "schema = 1\n[workflow]\nname = \"t\"\n";

/// A plan of a whole text.
pub fn plan_of(text: &str, args: &InputArgs) -> Result<Plan, Vec<Problem>> {
    Plan::from_source(Path::new("dir/t.toml"), text, args, &Fake)
}

/// A plan of some nodes that must be good.
pub fn good(nodes: &str) -> Plan {
    match plan_of(&format!("{HEAD}{nodes}"), &InputArgs::default()) {
        Ok(plan) => plan,
        Err(problems) => panic!("{}", said(&problems)),
    }
}

/// Problems as a terminal shows them.
pub fn said(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}
