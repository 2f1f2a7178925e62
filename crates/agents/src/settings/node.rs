//! What a settings file says, with the place of every key and value.

use super::origin::{Origin, Scope};
use serde_json::{Map, Number};
use std::path::PathBuf;
use std::sync::Arc;

/// Who says it: a file, a flag, a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Whose word it is.
    pub scope: Scope,
    /// The file, absolute.
    pub file: Option<PathBuf>,
    /// Flag or variable, where there is no file.
    pub says: String,
}

/// A place in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Where the line is.
    pub source: Arc<Source>,
    /// From 1; 0 where there is no file.
    pub line: u32,
    /// In characters, from 1; 0 where there is no file.
    pub column: u32,
}

impl Place {
    /// A source as a whole.
    pub fn whole(source: &Arc<Source>) -> Self {
        Self { source: Arc::clone(source), line: 0, column: 0 }
    }

    /// The origin of what stands here under a key.
    pub fn origin(&self, key: &str) -> Origin {
        let key = if self.source.file.is_none() { self.source.says.clone() } else { key.to_owned() };
        Origin {
            scope: self.source.scope,
            file: self.source.file.clone(),
            line: self.line,
            column: self.column,
            key,
        }
    }
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it begins.
    pub place: Place,
    /// What it is.
    pub value: Value,
}

/// A JSON value whose parts know their places.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`.
    Null,
    /// `true`, `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// An object, as written: a key can stand in it twice.
    Object(Vec<Member>),
}

/// A key of an object with its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// As written.
    pub name: String,
    /// Where the key begins.
    pub place: Place,
    /// Its value.
    pub node: Node,
}

impl Node {
    /// Without places. Of a doubled key the last one counts.
    pub fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Number(value) => value.clone().into(),
            Value::Text(value) => value.clone().into(),
            Value::List(nodes) => nodes.iter().map(Self::to_json).collect(),
            Value::Object(members) => {
                let pairs = members.iter().map(|member| (member.name.clone(), member.node.to_json()));
                pairs.collect::<Map<_, _>>().into()
            }
        }
    }

    /// The text, where it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Object(_) => None,
        }
    }

    /// The value of a key, where it is an object that has it.
    pub fn get(&self, name: &str) -> Option<&Self> {
        self.members().iter().find(|member| member.name == name).map(|member| &member.node)
    }

    /// The keys of an object; none where it is something else.
    pub fn members(&self) -> &[Member] {
        match &self.value {
            Value::Object(members) => members,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::List(_) => &[],
        }
    }

    /// The elements of a list; none where it is something else.
    pub fn elements(&self) -> &[Self] {
        match &self.value {
            Value::List(nodes) => nodes,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Object(_) => &[],
        }
    }

    /// What it is, for messages.
    pub fn what(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "a text",
            Value::List(_) => "a list",
            Value::Object(_) => "an object",
        }
    }

    /// A value that stands in no file.
    pub fn said(source: &Arc<Source>, json: &serde_json::Value) -> Self {
        let place = Place::whole(source);
        let value = match json {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(value) => Value::Bool(*value),
            serde_json::Value::Number(value) => Value::Number(value.clone()),
            serde_json::Value::String(value) => Value::Text(value.clone()),
            serde_json::Value::Array(all) => {
                Value::List(all.iter().map(|one| Self::said(source, one)).collect())
            }
            serde_json::Value::Object(map) => {
                let member = |(name, one): (&String, &serde_json::Value)| Member {
                    name: name.clone(),
                    place: place.clone(),
                    node: Self::said(source, one),
                };
                Value::Object(map.iter().map(member).collect())
            }
        };
        Self { place, value }
    }
}
