//! From a workflow file as named to its plan, or to all that is wrong with it.

use super::problems;
use crate::args::{Format, InputFlags};
use crate::error::ExpectedError;
use crate::services::{Setup, read_named};
use crate::terminal::{Piped, piped_stdin};
use claw_orchestrator::plan::InputArgs;
use claw_orchestrator::plan::model::Plan;
use claw_orchestrator::workflow::problem::Problem;
use std::path::Path;

/// Reads file and inputs and makes the plan. Problems are told here.
///
/// # Errors
/// A file that cannot be read, or problems.
pub(super) fn load(
    setup: &Setup,
    file: &Path,
    inputs: &InputFlags,
    format: Format,
) -> Result<Plan, ExpectedError> {
    let whole = |source: &str, args: &InputArgs| {
        Plan::from_source(file, source, args, setup).map(|plan| (plan, Vec::new()))
    };
    read(setup, file, inputs, format, &whole).map(|(plan, _)| plan)
}

/// The same for a file that is only checked: with the inputs that a run would still need.
///
/// # Errors
/// As for [`load`].
pub(super) fn check(
    setup: &Setup,
    file: &Path,
    inputs: &InputFlags,
    format: Format,
) -> Result<(Plan, Vec<String>), ExpectedError> {
    let checked = |source: &str, args: &InputArgs| Plan::checked(file, source, args, setup);
    read(setup, file, inputs, format, &checked)
}

/// Makes a plan of a file's text; with it the inputs that have no value.
type Make<'a> = &'a dyn Fn(&str, &InputArgs) -> Result<(Plan, Vec<String>), Vec<Problem>>;

fn read(
    setup: &Setup,
    file: &Path,
    inputs: &InputFlags,
    format: Format,
    make: Make<'_>,
) -> Result<(Plan, Vec<String>), ExpectedError> {
    let source = read_named(file, &setup.path(file))?;
    let args = input_args(setup, inputs)?;
    let text_of = |path: &Path| {
        if path == file { Some(source.clone()) } else { std::fs::read_to_string(setup.path(path)).ok() }
    };
    match make(&source, &args) {
        Ok((plan, open)) => {
            problems::warn(&text_of, &plan.warnings);
            Ok((plan, open))
        }
        Err(found) => Err(problems::tell(file, &text_of, &found, format)?),
    }
}

/// The file first, then the flags: what is nearer to the hand wins.
fn input_args(setup: &Setup, inputs: &InputFlags) -> Result<InputArgs, ExpectedError> {
    let mut args = InputArgs::default();
    if let Some(file) = &inputs.inputs {
        let text = if file == Path::new("-") {
            match piped_stdin(None)? {
                Piped::Text(text) => text,
                Piped::Nothing | Piped::Silent => String::new(),
            }
        } else {
            read_named(file, &setup.path(file))?
        };
        args.file(&text)
            .map_err(|error| ExpectedError::Inputs { path: file.clone(), message: error.to_string() })?;
    }
    for (id, text) in &inputs.input {
        args.text(id.clone(), text.clone());
    }
    Ok(args)
}
