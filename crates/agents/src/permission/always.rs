//! An answer for always: a rule in the project's local settings. What stands there stays as it is.

use claw_kernel::durable::{self, Mode, Sync};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use std::io;
use std::path::{Path, PathBuf};

/// Bytes of a settings file.
const MOST: u64 = 4 * 1024 * 1024;

/// The rule was not written.
#[derive(Debug, thiserror::Error)]
#[error("the rule was not written to {}: {fault}", path.display())]
pub struct NotKept {
    /// The file.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub fault: Fault,
}

/// Why a rule was not written.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The system refuses.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It holds what is no settings file: it is left as it is.
    #[error("what stands there is no settings file ({0}); put it right first")]
    Broken(String),
    /// It is a link: it may lead anywhere.
    #[error("it is a symbolic link or no plain file")]
    Link,
}

/// Adds an allow rule to `.claw/settings.local.json` of a project: all of it or nothing; comments and order stay.
///
/// # Errors
/// The file cannot be read, is broken, or cannot be written; it is then as it was.
pub fn keep(project: &Path, rule: &str) -> Result<(), NotKept> {
    let path = project.join(".claw/settings.local.json");
    write(&path, rule).map_err(|fault| NotKept { path, fault })
}

fn write(path: &Path, rule: &str) -> Result<(), Fault> {
    let folder = path.parent().unwrap_or(path);
    for place in [folder, path] {
        match place.symlink_metadata() {
            Ok(found) if found.is_symlink() || (place == path && !found.is_file()) => {
                return Err(Fault::Link);
            }
            Ok(found) if place == path && found.len() > MOST => {
                return Err(Fault::Broken(format!("more than {MOST} bytes")));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    let Some(text) = with_rule(&text, rule)? else { return Ok(()) };
    std::fs::create_dir_all(folder)?;
    durable::replace(path, text.as_bytes(), Mode::Private, Sync::Yes)?;
    Ok(())
}

/// The file's text with the rule; `None`: it is there already.
fn with_rule(text: &str, rule: &str) -> Result<Option<String>, Fault> {
    let broken = |what: &str| Fault::Broken(what.to_owned());
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = if text.trim().is_empty() { "{}\n" } else { text };
    let root =
        CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| broken(&error.to_string()))?;
    let settings = root.object_value_or_create().ok_or_else(|| broken("it is no object"))?;
    let permissions =
        settings.object_value_or_create("permissions").ok_or_else(|| broken("`permissions` is no object"))?;
    let allow =
        permissions.array_value_or_create("allow").ok_or_else(|| broken("`permissions.allow` is no list"))?;
    let is_there = allow.elements().iter().any(|element| {
        element.as_string_lit().and_then(|text| text.decoded_value().ok()).is_some_and(|known| known == rule)
    });
    if is_there {
        return Ok(None);
    }
    allow.append(CstInputValue::String(rule.to_owned()));
    Ok(Some(root.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_added_and_what_stands_there_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".claw/settings.local.json");
        keep(folder.path(), "Bash(curl x)").unwrap();
        let first: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(first, serde_json::json!({"permissions": {"allow": ["Bash(curl x)"]}}));
        let written = with_rule(
            "{\n  // mine\n  \"model\": \"x\",\n  \"permissions\": {\"deny\": [\"Read(.env)\"]}\n}\n",
            "A(b\n\"c\")",
        );
        let written = written.unwrap().unwrap();
        assert!(
            written.contains("// mine")
                && written.contains("Read(.env)")
                && written.contains(r#"A(b\n\"c\")"#),
            "{written}"
        );
        keep(folder.path(), "Bash(curl x)").unwrap();
        let again = std::fs::read_to_string(&path).unwrap();
        assert_eq!(again.matches("curl x").count(), 1, "{again}");
    }

    #[test]
    fn a_broken_file_and_a_link_are_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let claw = folder.path().join(".claw");
        std::fs::create_dir(&claw).unwrap();
        let path = claw.join("settings.local.json");
        for text in ["{\"permissions\": ", "[]", "{\"permissions\": []}", "{\"permissions\": {\"allow\": 1}}"]
        {
            durable::replace(&path, text.as_bytes(), Mode::Private, Sync::Yes).unwrap();
            assert!(keep(folder.path(), "A").is_err(), "{text}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), &path).unwrap();
        assert!(matches!(keep(folder.path(), "A").unwrap_err().fault, Fault::Link));
        assert!(!folder.path().join("elsewhere").exists());
    }
}
