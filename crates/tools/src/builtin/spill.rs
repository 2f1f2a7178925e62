//! Texts too long for the model go to a file in the conversation's own folder.

use crate::error::ToolError;
use crate::tool::ToolContext;
use claw_kernel::digest::Digest;
use claw_kernel::durable::{self, Mode, Sync};
use claw_kernel::tasks;
use std::path::PathBuf;
use std::sync::Arc;

/// Writes a text that holds no known secrets; gives its file. The same text is written once.
pub(super) async fn spill(
    ctx: &ToolContext,
    kind: &str,
    ending: &str,
    text: String,
) -> Result<PathBuf, ToolError> {
    let folder = Arc::clone(&ctx.spill);
    let digest: String = Digest::of(text.as_bytes())
        .to_string()
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(16)
        .collect();
    let path = folder.join(format!("{kind}-{digest}.{ending}"));
    let work = tasks::blocking("spill", move || {
        let written = durable::private_dir(&folder)
            .and_then(|()| durable::replace(&path, text.as_bytes(), Mode::Private, Sync::No));
        match written {
            Ok(()) => Ok(path),
            Err(source) => Err(ToolError::Io { path, source }),
        }
    });
    work.await.map_err(|error| ToolError::Panicked(error.to_string()))?
}
