//! `claw config set`: one key in one file.

use crate::args::{ConfigSetFlags, FileScope, SettingsFlags};
use crate::error::{ExpectedError, exit};
use crate::services::{SettingsOrigin, folder};
use crate::terminal::{say, write_stdout};
use claw_agents::settings::{self, Loaded, keys};
use claw_agents::trust::{Decision, TrustItem};
use claw_kernel::near::nearest;
use claw_kernel::visible::visible_line;
use serde_json::Value;
use std::path::Path;

/// Changes a file. What the user says himself in a file of the repository is trusted with it.
///
/// # Errors
/// An unknown key, a value of the wrong type, a file that cannot be used or written.
pub(super) fn run(flags: &ConfigSetFlags) -> Result<u8, ExpectedError> {
    let path: Vec<String> = flags.key.split('.').map(|part| keys::camel(part.trim())).collect();
    let key = keys::known(&path).ok_or_else(|| unknown(&flags.key))?;
    let origin = SettingsOrigin::read(&folder(flags.cwd.as_deref())?, &SettingsFlags::default())?;
    let places = &origin.loaded.places;
    let file = match flags.scope {
        FileScope::User => places.user_file(),
        FileScope::Local => places.local_file(),
        FileScope::Project => places.project_file(),
    };
    if flags.scope != FileScope::User && keys::is_private(&key) {
        return Err(ExpectedError::Usage {
            message: format!("`{}` counts in your own settings only", flags.key),
            hint: Some("leave --scope out".to_owned()),
        });
    }
    let value = value(&key.ty, &flags.value);
    settings::set(places, &file, &path, &value)?;
    if flags.scope != FileScope::User {
        trust(&origin, &file, &path)?;
    }
    let text = format!("{} = {value}  in {}\n", flags.key, file.display());
    write_stdout(visible_line(text.trim_end()).into_owned() + "\n")?;
    Ok(exit::OK)
}

/// A text stays one, also where it looks like a number.
fn value(ty: &keys::Ty, typed: &str) -> Value {
    let json = serde_json::from_str::<Value>(typed).ok();
    let of = if let keys::Ty::Map(of) = ty { of } else { ty };
    let is_text = matches!(of, keys::Ty::Text | keys::Ty::Word(_) | keys::Ty::Mode | keys::Ty::Path);
    match json {
        Some(Value::String(text)) => Value::String(text),
        Some(json) if !is_text || json.is_object() => json,
        Some(_) | None => Value::String(typed.to_owned()),
    }
}

/// What the user has just said is decided on.
pub(in crate::commands) fn trust(
    origin: &SettingsOrigin,
    file: &Path,
    path: &[String],
) -> Result<(), ExpectedError> {
    let loaded = Loaded::read(origin.loaded.places.clone(), settings::Beside::default());
    let key = path.join(".");
    let is_said = |item: &&TrustItem| {
        let below = item.key.strip_prefix(&key).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        item.origin.file.as_deref() == Some(file) && below
    };
    let said: Vec<&TrustItem> = loaded.items().into_iter().filter(is_said).collect();
    if !said.is_empty() {
        origin.trust_file.decide(&said, Decision::Trusted)?;
        say("trusted here, as you have said it yourself\n");
    }
    Ok(())
}

fn unknown(typed: &str) -> ExpectedError {
    let first = typed.split('.').next().unwrap_or(typed);
    let near =
        nearest(first, keys::TOP.iter().map(|key| key.name)).map(|near| format!("did you mean `{near}`? "));
    ExpectedError::Usage {
        message: format!("unknown key `{typed}`"),
        hint: Some(format!("{}`claw config reference` lists all keys", near.unwrap_or_default())),
    }
}
