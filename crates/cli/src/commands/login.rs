//! `claw login`: keeps the key of a provider in the user's folder, readable by nobody else.

use crate::args::LoginFlags;
use crate::error::{ExpectedError, exit};
use crate::services::Setup;
use crate::terminal::{hidden_line, say};
use claw_kernel::near::nearest;
use claw_providers::credentials::Secret;
use claw_providers::saved::SavedFile;

/// Reads a key and keeps it.
///
/// # Errors
/// An unknown provider, no key, or a file that cannot be written.
pub fn run(flags: &LoginFlags) -> Result<u8, ExpectedError> {
    let setup = Setup::read(flags.cwd.as_deref())?;
    let provider = named(&setup, flags)?;
    let question = format!("API key of {provider} (it is not shown): ");
    let key =
        hidden_line(&question).as_deref().and_then(Secret::new).ok_or_else(|| ExpectedError::Usage {
            message: "no key was given".to_owned(),
            hint: Some(format!("type it, or pipe it: `claw login {provider} < key.txt`")),
        })?;
    if key.reveal().chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(ExpectedError::Usage {
            message: "a key is one word without blanks".to_owned(),
            hint: Some("give the key alone, on the first line".to_owned()),
        });
    }
    let file = SavedFile::new(&setup.origin.loaded.places.config_home);
    file.save_key(&provider, &key)?;
    say(&format!(
        "kept in {}, for you alone; a variable goes before it (`claw logout {provider}` removes it)\n",
        file.path().display()
    ));
    Ok(exit::OK)
}

/// The provider as it is called; Anthropic where none is named.
pub(super) fn named(setup: &Setup, flags: &LoginFlags) -> Result<String, ExpectedError> {
    let typed = flags.provider.as_deref().unwrap_or("anthropic").trim();
    let names = || setup.config.profiles.iter().map(|profile| profile.name.as_str());
    names().find(|name| name.eq_ignore_ascii_case(typed)).map(str::to_owned).ok_or_else(|| {
        let near = nearest(typed, names()).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        let known: Vec<&str> = names().collect();
        ExpectedError::Usage {
            message: format!("unknown provider `{typed}`"),
            hint: Some(format!("{near}providers are {}", known.join(", "))),
        }
    })
}
