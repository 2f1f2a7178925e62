//! `claw workflow check | schema | graph | reference`.

use super::plan_file;
use crate::args::{CheckFlags, Format, GraphFlags, GraphForm, WorkflowCommand};
use crate::error::{ExpectedError, exit};
use crate::services::Setup;
use crate::terminal::write_stdout;
use claw_orchestrator::plan::render::GraphStyle;
use claw_orchestrator::workflow::reference::reference_markdown;
use claw_orchestrator::workflow::schema::schema_json;
use serde_json::json;

/// Runs one of them.
///
/// # Errors
/// A file with problems, or standard output.
pub fn run(command: &WorkflowCommand) -> Result<u8, ExpectedError> {
    match command {
        WorkflowCommand::Check(flags) => check(flags)?,
        WorkflowCommand::Schema => write_stdout(format!("{:#}\n", schema_json()))?,
        WorkflowCommand::Graph(flags) => graph(flags)?,
        WorkflowCommand::Reference => write_stdout(reference_markdown())?,
    }
    Ok(exit::OK)
}

fn check(flags: &CheckFlags) -> Result<(), ExpectedError> {
    let source = &flags.source;
    let setup = Setup::read(source.cwd.as_deref())?;
    let file = setup.named(&source.file);
    let (plan, open) = plan_file::check(&setup, &file, source.inputs(), flags.output_format)?;
    match flags.output_format {
        Format::Text => {
            let wanted: Vec<String> = open.iter().map(|id| format!("--input {id}=…")).collect();
            let wanted = match wanted.is_empty() {
                true => String::new(),
                false => format!("; a run needs {}", wanted.join(" ")),
            };
            let warnings = match plan.warnings.len() {
                0 => "no problems".to_owned(),
                1 => "one warning".to_owned(),
                n => format!("{n} warnings"),
            };
            let (file, nodes) = (source.file.display(), plan.nodes.len());
            write_stdout(format!("{file}: {nodes} nodes, {warnings}{wanted}\n"))
        }
        Format::Json | Format::StreamJson => write_stdout(format!(
            "{}\n",
            json!({ "workflow": plan.name, "nodes": plan.nodes.len(), "inputs_needed": open, "problems": [],
                    "warnings": plan.warnings })
        )),
    }
}

fn graph(flags: &GraphFlags) -> Result<(), ExpectedError> {
    let source = &flags.source;
    let setup = Setup::read(source.cwd.as_deref())?;
    let (plan, _) = plan_file::check(&setup, &setup.named(&source.file), source.inputs(), Format::Text)?;
    write_stdout(plan.graph(style(flags.format)))
}

/// The form as the plan draws it.
pub(super) fn style(form: GraphForm) -> GraphStyle {
    match form {
        GraphForm::Ascii => GraphStyle::Ascii,
        GraphForm::Mermaid => GraphStyle::Mermaid,
        GraphForm::Dot => GraphStyle::Dot,
    }
}
