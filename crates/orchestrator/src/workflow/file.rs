//! The file as written: every key known, every value of its type; nothing resolved.

use super::keys::{Key, NodeKind};
use crate::addr::NodeId;
use serde_json::Value as Json;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// A value with its place.
#[derive(Clone, Debug)]
pub struct Val {
    /// Bytes of the file.
    pub span: Range<usize>,
    /// What stands there.
    pub kind: ValKind,
}

/// What a value is.
#[derive(Clone, Debug)]
pub enum ValKind {
    /// Texts, templates, expressions, names, words of an enum.
    Text(Box<str>),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A duration.
    Dur(Duration),
    /// Bytes.
    Size(u64),
    /// A list.
    List(Vec<Val>),
    /// Names that the user chose, in the order of the file.
    Map(Vec<(Box<str>, Range<usize>, Val)>),
    /// A table with keys of its own.
    Section(Section),
    /// Any value.
    Json(Json),
}

/// One key of a table as it stands in the file.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its row in the table of keys.
    pub key: &'static Key,
    /// Bytes of the key.
    pub key_span: Range<usize>,
    /// Its value.
    pub value: Val,
}

/// A table of the file.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Bytes of its header.
    pub span: Range<usize>,
    /// In the order of the file.
    pub entries: Vec<Entry>,
}

/// A node of the file.
#[derive(Clone, Debug)]
pub struct NodeFile {
    /// Its name.
    pub id: NodeId,
    /// Bytes of its name.
    pub span: Range<usize>,
    /// Its kind.
    pub kind: NodeKind,
    /// Its keys: those of its own first, then what `defaults` lend.
    pub keys: Section,
    /// How many of `keys` are its own.
    pub own: usize,
    /// Path of the nodes round it: empty, or `fix.body.`.
    pub within: Arc<str>,
    /// Nodes of its body.
    pub body: Vec<NodeFile>,
}

impl NodeFile {
    /// The entry of a key that stands at the node itself.
    pub fn own_entry(&self, name: &str) -> Option<&Entry> {
        self.keys.entries[..self.own].iter().find(|entry| entry.key.name == name)
    }

    /// `fix.body.edit`.
    pub fn path(&self) -> String {
        format!("{}{}", self.within, self.id)
    }
}

/// The whole file.
#[derive(Clone, Debug, Default)]
pub struct WorkflowFile {
    /// All keys of the top level but `node`.
    pub top: Section,
    /// In the order of the file.
    pub nodes: Vec<NodeFile>,
}

impl Section {
    /// The entry of a key.
    pub fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key.name == name)
    }

    /// The value of a key.
    pub fn get(&self, name: &str) -> Option<&Val> {
        self.entry(name).map(|entry| &entry.value)
    }

    /// A table inside.
    pub fn section(&self, name: &str) -> Option<&Section> {
        match &self.get(name)?.kind {
            ValKind::Section(section) => Some(section),
            _ => None,
        }
    }

    /// A text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Val::text)
    }

    /// A number.
    pub fn int(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(Val::int)
    }

    /// A number as a count; the table's bounds make it fit.
    pub fn count(&self, name: &str) -> Option<usize> {
        self.int(name).and_then(|number| usize::try_from(number).ok())
    }

    /// A truth value.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.get(name)?.kind {
            ValKind::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// A duration.
    pub fn duration(&self, name: &str) -> Option<Duration> {
        match self.get(name)?.kind {
            ValKind::Dur(value) => Some(value),
            _ => None,
        }
    }

    /// Bytes.
    pub fn size(&self, name: &str) -> Option<u64> {
        match self.get(name)?.kind {
            ValKind::Size(value) => Some(value),
            _ => None,
        }
    }

    /// A list (or one value, where the table allows that); empty where the key is missing.
    pub fn list(&self, name: &str) -> &[Val] {
        match self.get(name) {
            Some(Val { kind: ValKind::List(list), .. }) => list,
            Some(one) => std::slice::from_ref(one),
            None => &[],
        }
    }

    /// Texts of a list.
    pub fn texts(&self, name: &str) -> Vec<String> {
        self.list(name).iter().filter_map(Val::text).map(str::to_owned).collect()
    }

    /// Names that the user chose; empty where the key is missing.
    pub fn map(&self, name: &str) -> &[(Box<str>, Range<usize>, Val)] {
        match self.get(name) {
            Some(Val { kind: ValKind::Map(map), .. }) => map,
            Some(_) | None => &[],
        }
    }

    /// Adds what this section does not have; tables merge, values and lists are kept.
    pub fn fill_from(&mut self, defaults: &Section, allowed: impl Fn(&Key) -> bool) {
        for entry in defaults.entries.iter().filter(|entry| allowed(entry.key)) {
            match self.entries.iter_mut().find(|own| own.key.name == entry.key.name) {
                None => self.entries.push(entry.clone()),
                Some(own) => fill_value(&mut own.value, &entry.value),
            }
        }
    }
}

fn fill_value(own: &mut Val, default: &Val) {
    match (&mut own.kind, &default.kind) {
        (ValKind::Section(own), ValKind::Section(default)) => own.fill_from(default, |_| true),
        (ValKind::Map(own), ValKind::Map(default)) => {
            for (name, span, value) in default {
                if !own.iter().any(|(known, _, _)| known == name) {
                    own.push((name.clone(), span.clone(), value.clone()));
                }
            }
        }
        _ => {}
    }
}

impl Val {
    /// A text.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            ValKind::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A whole number.
    pub fn int(&self) -> Option<i64> {
        match self.kind {
            ValKind::Int(number) => Some(number),
            _ => None,
        }
    }

    /// A number.
    pub fn float(&self) -> Option<f64> {
        match self.kind {
            ValKind::Float(number) => Some(number),
            _ => None,
        }
    }

    /// A table.
    pub fn section(&self) -> Option<&Section> {
        match &self.kind {
            ValKind::Section(section) => Some(section),
            _ => None,
        }
    }
}
