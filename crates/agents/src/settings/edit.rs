//! Edits of settings files: comments and order stay, the file is replaced as a whole, and one that does not parse is
//! never written to.

use super::diagnostic::{Diagnostic, Severity};
use super::keys::{Joins, Who};
use super::leaf::Leaf;
use super::node::{Node, Place, Source};
use super::origin::Scope;
use super::places::Places;
use super::text::{options, parse, without_mark};
use super::walk::{Kind, camel, walk};
use crate::trust::{Decision, ItemKind, TrustError, TrustFile, TrustItem};
use claw_kernel::clock;
use claw_kernel::durable::{self, FileLock, LockFailed, Mode, Owner, Sync};
use claw_tools::files::kind::open_regular;
use claw_tools::files::paths;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::Value;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a file that is edited.
const MOST: u64 = 1 << 20;

/// A list of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleList {
    /// `permissions.allow`.
    Allow,
    /// `permissions.deny`.
    Deny,
    /// `permissions.ask`.
    Ask,
}

impl RuleList {
    fn key(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Ask => "ask",
        }
    }
}

/// A file was not changed.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// It cannot be used as it is; nothing is written to it.
    #[error("{} is not changed: {problem}", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, or would be.
        problem: Box<Diagnostic>,
    },
    /// It cannot be read.
    #[error("cannot read {}: {message}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// It cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Another process edits settings.
    #[error(transparent)]
    Locked(#[from] LockFailed),
    /// The rule is written, and its trust is not.
    #[error(transparent)]
    Trust(#[from] TrustError),
}

/// Sets a key of a file; the file and its folder are made where they are missing.
///
/// `path`: names from the top, as the table has them.
///
/// # Errors
/// The file is broken, or would be: then it stays as it is.
pub fn set(places: &Places, file: &Path, path: &[String], value: &Value) -> Result<(), EditError> {
    edit(places, file, &|root| {
        let Some((name, above)) = path.split_last() else { return };
        let object = walk_down(root, above);
        put(&object, name, value);
    })
}

/// Takes a key out of a file. False: it is not there.
///
/// # Errors
/// The file is broken, or would be: then it stays as it is.
pub fn unset(places: &Places, file: &Path, path: &[String]) -> Result<bool, EditError> {
    let Some((name, above)) = path.split_last() else { return Ok(false) };
    if read(file, &paths::resolve(file))?.is_none() {
        return Ok(false);
    }
    let found = std::cell::Cell::new(false);
    edit(places, file, &|root| {
        let mut object = Some(root.clone());
        for name in above {
            object = object.and_then(|object| find(&object, name)?.object_value());
        }
        if let Some(prop) = object.and_then(|object| find(&object, name)) {
            prop.remove();
            found.set(true);
        }
    })?;
    Ok(found.get())
}

/// Writes a rule of the user into his local file of this project, once, and trusts it: he has just said it.
///
/// # Errors
/// As of [`set`], or the decision cannot be kept.
pub fn remember_rule(places: &Places, list: RuleList, rule: &str) -> Result<PathBuf, EditError> {
    let file = places.local_file();
    edit(places, &file, &|root| {
        let object = walk_down(root, &["permissions".to_owned()]);
        let rules = match find(&object, list.key()).and_then(|prop| prop.array_value()) {
            Some(rules) => rules,
            None => object.array_value_or_set(list.key()),
        };
        let is_there = rules.elements().iter().any(|element| {
            element.as_string_lit().is_some_and(|text| text.decoded_value().is_ok_and(|text| text == rule))
        });
        if !is_there {
            rules.append(CstInputValue::String(rule.to_owned()));
        }
    })?;
    if list == RuleList::Allow {
        let item = allow_item(&file, rule);
        TrustFile::new(&places.config_home, &places.project).decide(&[&item], Decision::Trusted)?;
    }
    Ok(file)
}

/// The item that the rule is when the file is read.
fn allow_item(file: &Path, rule: &str) -> TrustItem {
    let source = Arc::new(Source { scope: Scope::Local, file: Some(file.to_owned()), says: String::new() });
    let leaf = Leaf {
        path: vec!["permissions".to_owned(), "allow".to_owned()],
        index: None,
        node: Node::said(&source, &Value::from(rule)),
        place: Place::whole(&source),
        who: Who::Trusted(ItemKind::AllowRule),
        joins: Joins::AddsUp,
    };
    TrustItem::of(&leaf, ItemKind::AllowRule)
}

fn edit(places: &Places, file: &Path, change: &dyn Fn(&CstObject)) -> Result<(), EditError> {
    let write = |source| EditError::Write { path: file.to_owned(), source };
    durable::private_dir(&places.config_home).map_err(write)?;
    let owner = Owner { pid: std::process::id(), since: clock::now(), socket: None };
    let _held = FileLock::wait(&places.config_home.join("settings.lock"), &owner)?;
    let resolved = paths::resolve(file);
    let before = read(file, &resolved)?;
    let is_new = before.is_none();
    let before = before.unwrap_or_else(|| "{\n}\n".to_owned());
    must_be_good(file, &before)?;
    let text = without_mark(&before);
    let mark = &before[..before.len() - text.len()];
    let root = CstRootNode::parse(text, &options()).map_err(|error| {
        let message = error.to_string();
        EditError::Read { path: file.to_owned(), message }
    })?;
    change(&root.object_value_or_set());
    let after = format!("{mark}{root}");
    must_be_good(file, &after)?;
    if after == before && !is_new {
        return Ok(());
    }
    if let Some(folder) = resolved.parent() {
        durable::private_dir(folder).map_err(write)?;
    }
    let mode = if is_new { Mode::Private } else { Mode::Keep };
    durable::replace(&resolved, after.as_bytes(), mode, Sync::Yes).map_err(write)
}

fn read(file: &Path, resolved: &Path) -> Result<Option<String>, EditError> {
    let failed = |message: String| EditError::Read { path: file.to_owned(), message };
    match resolved.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Ok(_) | Err(_) => {}
    }
    let (opened, _) = open_regular(resolved).map_err(|error| failed(error.to_string()))?;
    let mut bytes = Vec::new();
    opened.take(MOST + 1).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    if bytes.len() as u64 > MOST {
        return Err(failed(format!("it is larger than {MOST} bytes")));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| failed("it is no UTF-8 text".to_owned()))
}

/// It parses, and every known key has a value of its type.
fn must_be_good(file: &Path, text: &str) -> Result<(), EditError> {
    let source = Source { scope: Scope::User, file: Some(file.to_owned()), says: String::new() };
    let broken = |problem| EditError::Broken { path: file.to_owned(), problem: Box::new(problem) };
    let node = parse(text, &Arc::new(source)).map_err(broken)?;
    let wrong =
        walk(&node, Kind::Settings).diagnostics.into_iter().find(|one| one.severity == Severity::Error);
    wrong.map_or(Ok(()), |problem| Err(broken(problem)))
}

/// A key in either spelling.
fn find(object: &CstObject, name: &str) -> Option<jsonc_parser::cst::CstObjectProp> {
    let is = |prop: &jsonc_parser::cst::CstObjectProp| {
        prop.decoded_name().is_some_and(|own| own == name || camel(&own) == name)
    };
    object.properties().into_iter().find(is)
}

fn walk_down(root: &CstObject, path: &[String]) -> CstObject {
    let mut object = root.clone();
    for name in path {
        object = match find(&object, name) {
            Some(prop) => prop.object_value_or_set(),
            None => object.object_value_or_set(name),
        };
    }
    object
}

fn put(object: &CstObject, name: &str, value: &Value) {
    match find(object, name) {
        Some(prop) => prop.set_value(input(value)),
        None => drop(object.append(name, input(value))),
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(all) => CstInputValue::Array(all.iter().map(input).collect()),
        Value::Object(map) => {
            CstInputValue::Object(map.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Beside, Loaded};
    use serde_json::json;
    use std::os::unix::fs::PermissionsExt;

    fn places(top: &Path) -> Places {
        let project = top.join("project");
        durable::private_dir(&project).unwrap();
        Places::new(&top.join("home"), &top.join("home/.claw"), &project)
    }

    fn write(path: &Path, text: &str) {
        durable::private_dir(path.parent().unwrap()).unwrap();
        durable::replace(path, text.as_bytes(), Mode::Private, Sync::No).unwrap();
    }

    #[test]
    fn comments_order_spelling_and_mode_bits_stay() {
        let top = tempfile::tempdir().unwrap();
        let places = places(top.path());
        let file = places.user_file();
        write(
            &file,
            "\u{feff}{\n  // why\n  \"theme\": \"dark\", // here\n  \"permissions\": {\"default_mode\": \"plan\"}\n}\n",
        );
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        set(&places, &file, &path("theme"), &json!("light")).unwrap();
        set(&places, &file, &path("permissions.defaultMode"), &json!("read-only")).unwrap();
        set(&places, &file, &path("limits.depth"), &json!(3)).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("\u{feff}{\n  // why\n  \"theme\": \"light\", // here\n"), "{text}");
        assert!(text.contains("\"default_mode\": \"read-only\"") && !text.contains("defaultMode"), "{text}");
        assert!(text.contains("\"depth\": 3"), "{text}");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_file_that_is_broken_or_would_be_is_never_written_to() {
        let top = tempfile::tempdir().unwrap();
        let places = places(top.path());
        let file = places.user_file();
        for (text, key, value) in [
            ("{\"theme\": ", "theme", json!("dark")),
            ("{}", "theme", json!(7)),
            ("{\"a\":1}", "limits", json!("x")),
        ] {
            write(&file, text);
            let error = set(&places, &file, &[key.to_owned()], &value).unwrap_err();
            assert!(matches!(error, EditError::Broken { .. }), "{error}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
        }
    }

    #[test]
    fn a_rule_that_the_user_said_is_there_once_and_trusted() {
        let top = tempfile::tempdir().unwrap();
        let places = places(top.path());
        write(&places.local_file(), "{\"permissions\": {\"allow\": [\"Bash(make:*)\"]}}");
        for _ in 0..2 {
            remember_rule(&places, RuleList::Allow, "Bash(git status:*)").unwrap();
            remember_rule(&places, RuleList::Deny, "Bash(rm:*)").unwrap();
        }
        let loaded = Loaded::read(places.clone(), Beside::default());
        assert_eq!(loaded.errors(), []);
        let decisions = TrustFile::new(&places.config_home, &places.project).read().unwrap();
        let settings = loaded.settle(&|item| decisions.trusts(item));
        let allow: Vec<&str> = settings.permissions.allow.iter().map(|rule| rule.value.as_str()).collect();
        assert_eq!(allow, ["Bash(git status:*)"], "the rule that was there has not been decided on");
        assert_eq!(settings.permissions.deny.len(), 1);
        assert_eq!(settings.waiting.len(), 1);
    }
}
