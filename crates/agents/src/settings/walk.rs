//! Holds a file against the table of keys: what it says, and what is wrong with it.

use super::diagnostic::{Diagnostic, Severity};
use super::keys::{FOREIGN, Joins, Key, TOP, Ty, Who};
use super::leaf::{Leaf, joined};
use super::node::{Member, Node, Place, Value};
use crate::permission::Permission;
use claw_kernel::near::nearest;
use std::str::FromStr;

/// Which keys of a file are claw's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A settings file: what nobody knows is warned about.
    Settings,
    /// A file that another program keeps its state in: only known keys are read.
    Shared,
    /// `.mcp.json`: servers alone.
    Servers,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Walked {
    /// What it says, in the order of the file.
    pub leaves: Vec<Leaf>,
    /// What is wrong with it.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads one file. Never fails: what is wrong is in the result.
pub fn walk(node: &Node, kind: Kind) -> Walked {
    let mut walk = Walk { out: Walked::default(), kind, path: Vec::new() };
    walk.table(node, TOP);
    walk.out
}

/// `defaultMode` of `default_mode`; other names as they are.
pub fn camel(name: &str) -> String {
    if name.starts_with(['_', '$']) || !name.contains('_') || name.contains(char::is_uppercase) {
        return name.to_owned();
    }
    let mut out = String::new();
    for (at, part) in name.split('_').enumerate() {
        let mut letters = part.chars();
        match letters.next() {
            Some(first) if at > 0 => out.extend(first.to_uppercase()),
            Some(first) => out.push(first),
            None => {}
        }
        out.push_str(letters.as_str());
    }
    out
}

struct Walk {
    out: Walked,
    kind: Kind,
    path: Vec<String>,
}

impl Walk {
    fn table(&mut self, node: &Node, keys: &'static [Key]) {
        let mut seen: Vec<&'static str> = Vec::new();
        for member in node.members() {
            let name = camel(&member.name);
            let Some(key) = keys.iter().find(|key| key.name == name) else {
                self.unknown(member, keys);
                continue;
            };
            if self.kind == Kind::Servers && self.path.is_empty() && key.name != "mcpServers" {
                continue;
            }
            self.path.push(name);
            if seen.contains(&key.name) {
                self.doubled(member);
            } else {
                seen.push(key.name);
                self.value(key, &key.ty, &member.place, &member.node);
            }
            self.path.pop();
        }
    }

    fn unknown(&mut self, member: &Member, keys: &'static [Key]) {
        if self.path.is_empty() && self.kind != Kind::Settings {
            return;
        }
        let foreign = FOREIGN.iter().find(|foreign| self.path.is_empty() && foreign.name == member.name);
        let mut path = self.path.clone();
        path.push(member.name.clone());
        let origin = member.place.origin(&joined(&path));
        if let Some(foreign) = foreign {
            self.out.diagnostics.push(Diagnostic::new(Severity::Note, origin, foreign.note));
            return;
        }
        let mut problem = Diagnostic::new(Severity::Warning, origin, "unknown key; it does nothing");
        let near = || nearest(&camel(&member.name), keys.iter().map(|key| key.name)).map(str::to_owned);
        if let Some(near) = self.elsewhere(&member.name).or_else(near) {
            problem = problem.with_help(format!("did you mean `{near}`?"));
        }
        self.out.diagnostics.push(problem);
    }

    /// A key that stands at the top and belongs below another one.
    fn elsewhere(&self, name: &str) -> Option<String> {
        let name = if name == "permissionMode" { "defaultMode".to_owned() } else { camel(name) };
        let below = |key: &Key| match key.ty {
            Ty::Table(keys) => {
                keys.iter().find(|inner| inner.name == name).map(|_| format!("{}.{name}", key.name))
            }
            Ty::Text
            | Ty::Bool
            | Ty::Int(..)
            | Ty::Float(..)
            | Ty::Scalar
            | Ty::Word(_)
            | Ty::Mode
            | Ty::Path
            | Ty::List(_)
            | Ty::Map(_)
            | Ty::Either(_)
            | Ty::Server
            | Ty::Any => None,
        };
        if self.path.is_empty() { TOP.iter().find_map(below) } else { None }
    }

    fn doubled(&mut self, member: &Member) {
        self.error(
            &member.place,
            "the key stands twice in its object".to_owned(),
            Some("remove one of them".to_owned()),
        );
    }

    fn error(&mut self, place: &Place, message: String, help: Option<String>) {
        let origin = place.origin(&joined(&self.path));
        self.out.diagnostics.push(Diagnostic { severity: Severity::Error, origin, message, help });
    }

    fn value(&mut self, key: &Key, ty: &Ty, place: &Place, node: &Node) {
        match ty {
            Ty::Table(keys) if matches!(node.value, Value::Object(_)) => self.table(node, keys),
            Ty::Map(of) if matches!(node.value, Value::Object(_)) => self.map(key, of, node),
            Ty::List(of) if key.joins == Joins::AddsUp && matches!(node.value, Value::List(_)) => {
                self.elements(key, of, node);
            }
            Ty::Either(forms) => match forms.iter().find(|form| is_of(form, node)) {
                Some(form) => self.value(key, form, place, node),
                None => self.wrong(ty, node),
            },
            Ty::Server => self.server(key, place, node),
            _ if self.fits(ty, node) => {
                let place = if matches!(node.value, Value::Object(_)) { place } else { &node.place };
                self.leaf(key, None, place, node);
            }
            _ => {}
        }
    }

    fn map(&mut self, key: &Key, of: &Ty, node: &Node) {
        let mut seen: Vec<&str> = Vec::new();
        for member in node.members() {
            self.path.push(member.name.clone());
            if seen.contains(&member.name.as_str()) {
                self.doubled(member);
            } else {
                seen.push(&member.name);
                self.value(key, of, &member.place, &member.node);
            }
            self.path.pop();
        }
    }

    fn elements(&mut self, key: &Key, of: &Ty, node: &Node) {
        for (index, element) in node.elements().iter().enumerate() {
            if self.fits(of, element) {
                self.leaf(key, Some(index), &element.place, element);
            }
        }
    }

    fn leaf(&mut self, key: &Key, index: Option<usize>, place: &Place, node: &Node) {
        self.no_doubles(node);
        self.out.leaves.push(Leaf {
            path: self.path.clone(),
            index,
            node: node.clone(),
            place: place.clone(),
            who: key.who,
            joins: key.joins,
        });
    }

    /// What another room reads has no doubled key either.
    fn no_doubles(&mut self, node: &Node) {
        let mut seen: Vec<&str> = Vec::new();
        for member in node.members() {
            self.path.push(member.name.clone());
            if seen.contains(&member.name.as_str()) {
                self.doubled(member);
            }
            seen.push(&member.name);
            self.no_doubles(&member.node);
            self.path.pop();
        }
        for element in node.elements() {
            self.no_doubles(element);
        }
    }

    fn wrong(&mut self, ty: &Ty, node: &Node) {
        let message = format!("this is {}, and should be {}", node.what(), ty.words());
        let help = match (ty, &node.value) {
            (Ty::List(_), Value::Text(text)) => Some(format!("write [{text:?}]")),
            _ => None,
        };
        self.error(&node.place, message, help);
    }

    /// Whether a value is of a type; says what is wrong with it.
    fn fits(&mut self, ty: &Ty, node: &Node) -> bool {
        if !is_of(ty, node) {
            self.wrong(ty, node);
            return false;
        }
        match ty {
            Ty::Word(words) => self.word(words, node),
            Ty::Mode => match Permission::from_str(node.text().unwrap_or_default()) {
                Ok(_) => true,
                Err(error) => {
                    self.error(&node.place, error.to_string(), None);
                    false
                }
            },
            Ty::List(of) => {
                let mut all = true;
                for element in node.elements() {
                    all &= self.fits(of, element);
                }
                all
            }
            Ty::Text
            | Ty::Bool
            | Ty::Int(..)
            | Ty::Float(..)
            | Ty::Scalar
            | Ty::Path
            | Ty::Map(_)
            | Ty::Table(_)
            | Ty::Either(_)
            | Ty::Server
            | Ty::Any => true,
        }
    }

    fn word(&mut self, words: &[&str], node: &Node) -> bool {
        let text = node.text().unwrap_or_default();
        if words.contains(&text) {
            return true;
        }
        let near = nearest(text, words.iter().copied()).map(|near| format!("did you mean `{near}`?"));
        let message = format!("unknown word `{text}`");
        self.error(
            &node.place,
            message,
            near.or_else(|| Some(format!("write one of {}", Ty::Word(&[]).words_of(words)))),
        );
        false
    }

    /// One bad server harms no other.
    fn server(&mut self, key: &Key, place: &Place, node: &Node) {
        let has = |name: &str| {
            node.get(name).is_some_and(|value| value.text().is_some_and(|text| !text.trim().is_empty()))
        };
        let is_elsewhere = matches!(node.get("type").and_then(Node::text), Some("sdk" | "claudeai-proxy"));
        let why = match &node.value {
            Value::Object(_) if has("command") || has("url") || is_elsewhere => None,
            Value::Object(_) => Some("a server has a `command` or a `url`; this one is left out".to_owned()),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::List(_) => {
                Some(format!("this is {}, and should be an object; it is left out", node.what()))
            }
        };
        match why {
            None => self.leaf(key, None, place, node),
            Some(message) => {
                let origin = place.origin(&joined(&self.path));
                let help =
                    "write { \"command\": \"…\", \"args\": [] } or { \"type\": \"http\", \"url\": \"…\" }";
                self.out
                    .diagnostics
                    .push(Diagnostic::new(Severity::Warning, origin, message).with_help(help));
            }
        }
    }
}

impl Ty {
    fn words_of(&self, words: &[&str]) -> String {
        let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
        quoted.join(", ")
    }
}

/// Whether the JSON type and the range are right; what stands inside is looked at later.
fn is_of(ty: &Ty, node: &Node) -> bool {
    match (ty, &node.value) {
        (Ty::Any, _)
        | (Ty::Text | Ty::Word(_) | Ty::Mode | Ty::Path | Ty::Scalar, Value::Text(_))
        | (Ty::Bool | Ty::Scalar, Value::Bool(_))
        | (Ty::Scalar, Value::Number(_))
        | (Ty::List(_), Value::List(_))
        | (Ty::Map(_) | Ty::Table(_) | Ty::Server, Value::Object(_)) => true,
        (Ty::Int(from, to), Value::Number(number)) => {
            number.as_i64().is_some_and(|n| (*from..=*to).contains(&n))
        }
        (Ty::Float(above, to), Value::Number(number)) => {
            number.as_f64().is_some_and(|n| n > *above && n <= *to)
        }
        (Ty::Either(forms), _) => forms.iter().any(|form| is_of(form, node)),
        _ => false,
    }
}

/// Keys that only say something to claw, for `claw config set`.
pub fn known(path: &[String]) -> Option<Key> {
    let mut keys = TOP;
    let mut found: Option<Key> = None;
    let mut rest = path.iter();
    while let Some(name) = rest.next() {
        let key = keys.iter().find(|key| key.name == camel(name))?;
        found = Some(*key);
        let mut ty = key.ty;
        loop {
            match ty {
                Ty::Table(inner) => {
                    keys = inner;
                    break;
                }
                Ty::Map(of) => {
                    if rest.next().is_none() {
                        return found;
                    }
                    ty = *of;
                }
                Ty::Either(forms) => match forms.iter().find(|form| matches!(form, Ty::Table(_))) {
                    Some(form) => ty = *form,
                    None => return rest.next().is_none().then_some(found).flatten(),
                },
                _ => return rest.next().is_none().then_some(found).flatten(),
            }
        }
    }
    found
}

/// Whether a key is one of a user alone, or of the administrator.
pub fn is_private(key: &Key) -> bool {
    match key.who {
        Who::User | Who::Managed => true,
        Who::Anyone | Who::Trusted(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Scope;
    use crate::settings::node::Source;
    use crate::settings::text::parse;
    use std::sync::Arc;

    fn walked(text: &str) -> Walked {
        let source = Source { scope: Scope::User, file: Some("/s.json".into()), says: String::new() };
        walk(&parse(text, &Arc::new(source)).unwrap(), Kind::Settings)
    }

    fn said(text: &str) -> String {
        walked(text).diagnostics.iter().map(|one| format!("{one}\n")).collect()
    }

    #[test]
    fn both_spellings_of_a_key_are_one_key() {
        let found = walked(
            r#"{"hooks_fail_open": true, "permissions": {"default_mode": "plan", "allow": ["Bash"]}}"#,
        );
        let keys: Vec<String> = found.leaves.iter().map(Leaf::key).collect();
        assert_eq!(keys, ["hooksFailOpen", "permissions.defaultMode", "permissions.allow[0]"]);
        assert!(
            said(r#"{"hooks_fail_open": true, "hooksFailOpen": false}"#)
                .contains("1:27: hooksFailOpen: the key stands twice")
        );
    }

    #[test]
    fn what_is_wrong_is_told_with_place_key_and_advice() {
        for (text, wanted) in [
            (
                r#"{"permissions": {"deny": "bash"}}"#,
                "/s.json:1:26: permissions.deny: this is a text, and should be a list of texts\n  help: write [\"bash\"]",
            ),
            (r#"{"permissions": {"deny": [7]}}"#, "permissions.deny: this is a number, and should be a text"),
            (
                r#"{"permisions": {}}"#,
                "/s.json:1:2: permisions: unknown key; it does nothing\n  help: did you mean `permissions`?",
            ),
            (r#"{"permissionMode": "plan"}"#, "did you mean `permissions.defaultMode`?"),
            (r#"{"deny": []}"#, "did you mean `permissions.deny`?"),
            (r#"{"permissions": {"defaultMode": "read-onyl"}}"#, "did you mean `read-only`?"),
            (r#"{"limits": {"concurrency": 0}}"#, "a whole number from 1 to 100000"),
            (r#"{"sandbox": {"network": "of"}}"#, "did you mean `off`?"),
            (r#"{"sandbox": {"network": 5}}"#, "this is a number"),
            (
                r#"{"permissions": {"deny": []}, "permissions": {}}"#,
                "1:31: permissions: the key stands twice",
            ),
            (
                r#"{"mcpServers": {"a": {"command": "x", "command": "y"}}}"#,
                "mcpServers.a.command: the key stands twice",
            ),
            (r#"{"hooks": {"PreToolUse": "x"}}"#, "hooks.PreToolUse: this is a text, and should be a list"),
        ] {
            assert!(said(text).contains(wanted), "{text}\n{}", said(text));
        }
    }

    #[test]
    fn keys_of_other_programs_are_a_note_and_one_bad_server_harms_no_other() {
        let found = walked(
            r#"{"$schema": "x", "outputStyle": "y", "mcpServers": {"good": {"command": "a"}, "bad": {"args": []}, "worse": 7}}"#,
        );
        assert_eq!(found.leaves.iter().map(Leaf::key).collect::<Vec<_>>(), ["mcpServers.good"]);
        let severities: Vec<Severity> = found.diagnostics.iter().map(|one| one.severity).collect();
        assert_eq!(severities, [Severity::Note, Severity::Note, Severity::Warning, Severity::Warning]);
    }

    #[test]
    fn the_way_to_a_key_is_known_or_not() {
        let known =
            |path: &str| known(&path.split('.').map(str::to_owned).collect::<Vec<_>>()).map(|key| key.name);
        assert_eq!(known("theme"), Some("theme"));
        assert_eq!(known("permissions.default_mode"), Some("defaultMode"));
        assert_eq!(known("aliases.fast"), Some("aliases"));
        assert_eq!(known("providers.local.baseUrl"), Some("baseUrl"));
        assert_eq!(known("sandbox.network.hosts"), Some("hosts"));
        assert_eq!(known("theme.x"), None);
        assert_eq!(known("thme"), None);
    }
}
