//! `claw logout`: removes what `claw login` kept, and nothing else.

use super::login::named;
use crate::args::LoginFlags;
use crate::error::{ExpectedError, exit};
use crate::services::Setup;
use crate::terminal::say;
use claw_providers::saved::SavedFile;

/// Removes the key of a provider, or all of them.
///
/// # Errors
/// An unknown provider, or a file that cannot be written.
pub fn run(flags: &LoginFlags) -> Result<u8, ExpectedError> {
    let setup = Setup::read(flags.cwd.as_deref())?;
    let provider = flags.provider.as_ref().map(|_| named(&setup, flags)).transpose()?;
    let file = SavedFile::new(&setup.origin.loaded.places.config_home);
    let whose = provider.as_deref().map(|name| format!(" of {name}")).unwrap_or_default();
    let text = if file.forget(provider.as_deref())? {
        format!("removed the credentials{whose} from {}\n", file.path().display())
    } else {
        format!("no credentials{whose} were kept\n")
    };
    say(&text);
    Ok(exit::OK)
}
