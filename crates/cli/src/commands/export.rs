//! `claw export [REF] [FILE]`: a session as a document.

use crate::args::{ExportFlags, ExportFormat};
use crate::error::{ExpectedError, exit};
use crate::services::folder;
use crate::sessions::store;
use crate::terminal::{say, write_stdout};
use claw_agents::session::{ExportForm, Found, Reference, SessionError, export};
use claw_kernel::durable;
use std::path::Path;

/// Writes it.
///
/// # Errors
/// The session cannot be found or read, the file cannot be written.
pub fn run(flags: &ExportFlags) -> Result<u8, ExpectedError> {
    let cwd = folder(flags.cwd.as_deref())?;
    let found = store(&cwd).find(&Reference::read(&flags.reference, &cwd))?;
    let path = match found {
        Found::Own { path, .. } => path,
        Found::Foreign { path } => {
            let why =
                "only claw's own sessions are exported; go on with it once: `claw --resume FILE -p \"…\"`";
            return Err(SessionError::NoSession { path, why: why.to_owned() }.into());
        }
    };
    let form = match (flags.format, &flags.file) {
        (Some(ExportFormat::Markdown), _) => ExportForm::Markdown,
        (Some(ExportFormat::Json), _) => ExportForm::Json,
        (None, file) => form_of(file.as_deref()),
    };
    match &flags.file {
        None => write_stdout(document(&path, form)?)?,
        Some(file) => {
            let to = cwd.join(file);
            write(&path, &to, form)?;
            say(&format!("written: {}\n", to.display()));
        }
    }
    Ok(exit::OK)
}

/// By the ending of a file.
pub(super) fn form_of(file: Option<&Path>) -> ExportForm {
    let is_json = file.and_then(Path::extension).is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    if is_json { ExportForm::Json } else { ExportForm::Markdown }
}

/// The document of a session's file.
pub(super) fn document(path: &Path, form: ExportForm) -> Result<String, ExpectedError> {
    let bytes = std::fs::read(path).map_err(|source| SessionError::Io { path: path.to_owned(), source })?;
    Ok(export(&bytes, form))
}

/// The same, into a file of the user's.
pub(super) fn write(path: &Path, to: &Path, form: ExportForm) -> Result<(), ExpectedError> {
    let text = document(path, form)?;
    durable::replace(to, text.as_bytes(), durable::Mode::Keep, durable::Sync::No)
        .map_err(|source| ExpectedError::CannotWrite { path: to.to_owned(), source })
}
