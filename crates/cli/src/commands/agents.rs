//! `claw agents`: who can be started here, what each may do, and what is wrong with their files.

use crate::args::{AgentsCommand, Format, ModelsFlags};
use crate::error::{ExpectedError, exit};
use crate::library;
use crate::services::Setup;
use crate::terminal::{say, write_stdout};
use claw_agents::definition::{AgentDefinition, ToolSet};
use claw_agents::library::Library;
use claw_agents::roles::UnknownAgent;
use claw_kernel::visible::{visible, visible_line};
use serde_json::{Value, json};
use std::fmt::Write;
use std::sync::Arc;

/// Carries it out.
///
/// # Errors
/// An unknown agent, standard output.
pub fn run(command: &AgentsCommand) -> Result<u8, ExpectedError> {
    let flags = command.rest();
    let setup = Setup::read(flags.cwd.as_deref())?;
    let library = setup.library();
    match command {
        AgentsCommand::List(flags) => list(flags, library),
        AgentsCommand::Show(wanted) => show(&wanted.name, flags, library),
        AgentsCommand::Validate(flags) => validate(flags, library),
    }
}

fn source(library: &Library, agent: &Arc<AgentDefinition>) -> String {
    library::file_of(library, agent).map_or_else(|| "built-in".to_owned(), |entry| entry.source.to_string())
}

fn list(flags: &ModelsFlags, library: &Library) -> Result<u8, ExpectedError> {
    let catalog = library::catalog(library);
    if flags.output_format != Format::Text {
        let all: Vec<Value> = catalog.iter().map(|agent| data(agent, library)).collect();
        write_stdout(format!("{}\n", Value::Array(all)))?;
        return Ok(exit::OK);
    }
    let width = catalog.iter().map(|agent| agent.name.chars().count()).max().unwrap_or_default();
    let mut out = String::new();
    for agent in catalog.iter() {
        let (name, source) = (visible_line(&agent.name), source(library, agent));
        let about = visible_line(agent.description.lines().next().unwrap_or_default());
        let about: String = about.chars().take(100).collect();
        let _ = writeln!(out, "{name:<width$}  {source:<9}  {about}");
    }
    write_stdout(out)?;
    tell_flaws(library);
    Ok(exit::OK)
}

fn tools(agent: &AgentDefinition) -> String {
    let own = match &agent.tools {
        ToolSet::All => "all".to_owned(),
        ToolSet::Only(names) => names.join(", "),
    };
    match agent.deny_tools.as_slice() {
        [] => own,
        denied => format!("{own}; without {}", denied.join(", ")),
    }
}

fn show(name: &str, flags: &ModelsFlags, library: &Library) -> Result<u8, ExpectedError> {
    let catalog = library::catalog(library);
    let unknown = |error: UnknownAgent| ExpectedError::Usage { message: error.to_string(), hint: None };
    let agent = catalog.get(name).map_err(unknown)?;
    if flags.output_format != Format::Text {
        write_stdout(format!("{}\n", data(&agent, library)))?;
        return Ok(exit::OK);
    }
    let mut out = String::new();
    let file = library::file_of(library, &agent);
    let _ = writeln!(out, "{} ({})", visible_line(&agent.name), source(library, &agent));
    if let Some(file) = file {
        let _ = writeln!(out, "file: {}", visible_line(&file.path.display().to_string()));
    }
    let _ = writeln!(out, "tools: {}", visible_line(&tools(&agent)));
    let mode = agent.permission.map_or_else(|| "as its parent".to_owned(), |mode| mode.to_string());
    let _ = writeln!(out, "mode: {mode}");
    if !agent.models.is_empty() {
        let _ = writeln!(out, "model: {}", visible_line(&agent.models.join(", ")));
    }
    if let Some(turns) = agent.max_turns {
        let _ = writeln!(out, "turns: at most {turns}");
    }
    let _ = writeln!(out, "\n{}\n\n{}", visible(&agent.description), visible(&agent.prompt));
    write_stdout(out)?;
    Ok(exit::OK)
}

fn data(agent: &Arc<AgentDefinition>, library: &Library) -> Value {
    let only = match &agent.tools {
        ToolSet::All => Value::Null,
        ToolSet::Only(names) => json!(names),
    };
    json!({
        "name": agent.name,
        "source": source(library, agent),
        "file": library::file_of(library, agent).map(|entry| &entry.path),
        "description": agent.description,
        "tools": only,
        "deny_tools": agent.deny_tools,
        "permission": agent.permission.map(|mode| mode.to_string()),
        "models": agent.models,
        "max_turns": agent.max_turns,
    })
}

fn validate(flags: &ModelsFlags, library: &Library) -> Result<u8, ExpectedError> {
    let code = if library.has_errors() { exit::FAILED } else { exit::OK };
    let counted = (library.agents().len(), library.skills().len(), library.commands().len());
    if flags.output_format != Format::Text {
        let flaws: Vec<Value> = library
            .flaws()
            .iter()
            .map(|(path, flaw)| {
                let severity = format!("{:?}", flaw.severity).to_lowercase();
                json!({ "file": path, "line": flaw.line, "severity": severity, "message": flaw.message })
            })
            .collect();
        let report =
            json!({ "agents": counted.0, "skills": counted.1, "commands": counted.2, "problems": flaws });
        write_stdout(format!("{report}\n"))?;
        return Ok(code);
    }
    let mut out = String::new();
    for (path, flaw) in library.flaws() {
        let _ = writeln!(
            out,
            "{}:{}",
            visible_line(&path.display().to_string()),
            visible_line(&flaw.to_string())
        );
    }
    for hidden in hidden(library) {
        out.push_str(&hidden);
    }
    let (agents, skills, commands) = counted;
    let _ = writeln!(out, "{agents} agents, {skills} skills, {commands} commands read");
    write_stdout(out)?;
    Ok(code)
}

fn hidden(library: &Library) -> Vec<String> {
    let agents = library.agents().iter().map(|entry| (&entry.path, &entry.hidden_by));
    let skills = library.skills().iter().map(|entry| (&entry.path, &entry.hidden_by));
    let commands = library.commands().iter().map(|entry| (&entry.path, &entry.hidden_by));
    let all = agents.chain(skills).chain(commands);
    all.filter_map(|(path, by)| {
        let by = by.as_ref()?;
        let (path, by) = (path.display().to_string(), by.display().to_string());
        Some(format!("{}: note: {} has the same name and counts\n", visible_line(&path), visible_line(&by)))
    })
    .collect()
}

/// One line where something is wrong.
fn tell_flaws(library: &Library) {
    let files: std::collections::BTreeSet<_> = library.flaws().iter().map(|(path, _)| path).collect();
    if !files.is_empty() {
        say(&format!("note: {} files have problems; see `claw agents validate`\n", files.len()));
    }
}
