//! What the names in an expression stand for, built by whoever evaluates it.
//!
//! Cheap to make and to clone: values are shared, and are turned into the engine's form once, at the first look.

use crate::expr::reference::{Reference, Root};
use claw_kernel::digest::Digest;
use indexmap::IndexMap;
use minijinja::value::{Enumerator, Object, ObjectRepr, Serde, Value};
use serde_json::Value as Json;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The name under which filters find the scope itself. No name in a file can be this.
pub(super) const SELF_NAME: &str = "__claw_scope";

#[derive(Debug)]
struct Cell {
    json: Arc<Json>,
    engine: OnceLock<Value>,
    digest: OnceLock<Digest>,
}

/// A shared JSON value, with its digest and its form for the engine made once.
#[derive(Clone, Debug)]
pub struct Data(Arc<Cell>);

impl Data {
    /// Takes a value.
    pub fn new(json: Json) -> Self {
        Self::shared(Arc::new(json))
    }

    /// Takes a value that others hold too.
    pub fn shared(json: Arc<Json>) -> Self {
        Self(Arc::new(Cell { json, engine: OnceLock::new(), digest: OnceLock::new() }))
    }

    /// The value.
    pub fn json(&self) -> &Arc<Json> {
        &self.0.json
    }

    /// Digest of its JSON text.
    pub fn digest(&self) -> Digest {
        *self.0.digest.get_or_init(|| digest_of(&self.0.json))
    }

    fn engine(&self) -> Value {
        self.0.engine.get_or_init(|| Value::from(Serde(self.0.json.as_ref()))).clone()
    }
}

impl From<Json> for Data {
    fn from(json: Json) -> Self {
        Self::new(json)
    }
}

/// Digest of the JSON text of a value.
pub(super) fn digest_of(json: &Json) -> Digest {
    Digest::of(json.to_string().as_bytes())
}

/// An input as expressions see it.
#[derive(Clone, Debug)]
pub struct InputView {
    /// Its value.
    pub value: Data,
    /// Type `text` or `json`: fenced in prompts.
    pub fenced: bool,
    /// A secret goes into content keys as this keyed digest, never as its own.
    pub keyed: Option<Digest>,
}

/// A node as expressions see it: built once when it is final.
#[derive(Debug)]
pub struct NodeView {
    /// Its output; of an `each` node the list of `{key, status, output, error}`.
    pub output: Data,
    /// Of an `each` node: the successful outputs in the order of the input.
    pub outputs: Option<Data>,
    /// `succeeded`, `failed`, …
    pub status: Arc<str>,
    /// One line.
    pub error: Option<String>,
    /// As in the report.
    pub usage: Json,
    /// Attempts made.
    pub attempts: u32,
    /// Iterations of its `loop`, else 1.
    pub iterations: u32,
    /// The file that holds the whole output.
    pub file: Option<PathBuf>,
    /// Schema of its output, of one item under `each`: values of an `enum` are not fenced.
    pub schema: Option<Arc<Json>>,
}

/// A name that is bound for one evaluation: the item, `item` and `items` of a merge, and `loop`, whose value is an
/// object of `index` and the carried values.
#[derive(Clone, Debug)]
pub struct Binding {
    /// As in expressions.
    pub name: Arc<str>,
    /// What it stands for.
    pub value: Data,
    /// Comes from an agent, a command or a file, so a prompt fences it.
    pub dynamic: bool,
    /// The file that holds the whole of it.
    pub file: Option<PathBuf>,
}

/// `run.…`.
#[derive(Clone, Debug, Default)]
pub struct RunView {
    /// `run.id`.
    pub id: String,
    /// `run.dir`.
    pub dir: PathBuf,
    /// `run.base_commit`; `None` outside a repository.
    pub base_commit: Option<String>,
}

/// The parts of a scope.
#[derive(Clone, Debug, Default)]
pub struct ScopeData {
    /// `inputs`.
    pub inputs: Arc<IndexMap<String, InputView>>,
    /// The nodes that the texts name (`Plan::reads`), by id.
    pub nodes: Arc<HashMap<String, Arc<NodeView>>>,
    /// Looked at before the nodes, the last one first.
    pub bindings: Vec<Binding>,
    /// `index`, from 1.
    pub index: Option<usize>,
    /// `run`.
    pub run: Arc<RunView>,
}

/// All that an evaluation sees. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Scope(Value, Arc<ScopeObject>);

impl Scope {
    /// Wraps the parts.
    pub fn new(data: ScopeData) -> Self {
        let object = Arc::new(ScopeObject(data));
        Self(Value::from_dyn_object(Arc::clone(&object)), object)
    }

    /// The parts.
    pub fn data(&self) -> &ScopeData {
        &self.1.0
    }

    pub(super) fn engine(&self) -> Value {
        self.0.clone()
    }
}

impl From<ScopeData> for Scope {
    fn from(data: ScopeData) -> Self {
        Self::new(data)
    }
}

fn descend<'a>(mut json: &'a Json, path: &[String]) -> &'a Json {
    for part in path {
        json = json.get(part.as_str()).unwrap_or(&Json::Null);
    }
    json
}

impl ScopeData {
    pub(super) fn binding(&self, name: &str) -> Option<&Binding> {
        self.bindings.iter().rev().find(|binding| binding.name.as_ref() == name)
    }

    pub(super) fn node(&self, name: &str) -> Option<&Arc<NodeView>> {
        self.nodes.get(name)
    }

    /// The file that holds the whole of what a dotted name stands for.
    pub(super) fn file_of(&self, dotted: &str) -> Option<&Path> {
        let name = dotted.strip_prefix("nodes.").unwrap_or(dotted);
        let name = name.split('.').next().unwrap_or(name);
        match self.binding(name) {
            Some(binding) => binding.file.as_deref(),
            None => self.node(name).and_then(|node| node.file.as_deref()),
        }
    }

    /// Whether a prompt has to fence what this name stands for.
    pub(super) fn fenced(&self, reference: &Reference) -> bool {
        match reference.root() {
            Root::Inputs => {
                reference.path.get(1).and_then(|id| self.inputs.get(id)).is_some_and(|input| input.fenced)
            }
            // Only what an agent or a command wrote: the rest are claw's own words and numbers.
            Root::Nodes => reference.path.get(2).is_none_or(|field| field == "error"),
            Root::Run => false,
            Root::Loop => reference.path.get(1).is_none_or(|field| field != "index"),
            Root::Other => match self.binding(reference.name()) {
                Some(binding) => binding.dynamic,
                None => self.node(reference.name()).is_some(),
            },
        }
    }

    /// Whether the schema of the producer says that the value is one of an `enum`.
    pub(super) fn is_enum(&self, reference: &Reference) -> bool {
        if self.binding(reference.name()).is_some() {
            return false;
        }
        let Some(node) = self.node(reference.name()) else { return false };
        let Some(schema) = node.schema.as_deref().filter(|_| node.outputs.is_none()) else { return false };
        let mut at = schema;
        for part in &reference.path[1..] {
            match at.get("properties").and_then(|properties| properties.get(part)) {
                Some(next) => at = next,
                None => return false,
            }
        }
        reference.path.len() > 1 && (at.get("enum").is_some() || at.get("const").is_some())
    }

    /// Digest of the value that a name stands for. No path, no run id.
    pub(super) fn digest(&self, reference: &Reference) -> Digest {
        let null = || digest_of(&Json::Null);
        match reference.root() {
            Root::Inputs => match reference.path.get(1).and_then(|id| self.inputs.get(id)) {
                Some(InputView { keyed: Some(keyed), .. }) => *keyed,
                Some(input) if reference.path.len() == 2 => input.value.digest(),
                Some(input) => digest_of(descend(input.value.json(), &reference.path[2..])),
                None => null(),
            },
            Root::Nodes => match reference.path.get(1).and_then(|id| self.node(id)) {
                Some(node) => digest_of(&node.field_json(reference.path.get(2).map(String::as_str))),
                None => null(),
            },
            Root::Run => match reference.path.get(1).map(String::as_str) {
                Some("base_commit") => digest_of(&Json::from(self.run.base_commit.clone())),
                Some(_) | None => null(),
            },
            Root::Loop | Root::Other => self.value_digest(reference),
        }
    }

    fn value_digest(&self, reference: &Reference) -> Digest {
        let rest = &reference.path[1..];
        let data = if let Some(binding) = self.binding(reference.name()) {
            &binding.value
        } else if reference.name() == "index" {
            return digest_of(&Json::from(self.index));
        } else if let Some(node) = self.node(reference.name()) {
            match (&node.outputs, rest.first().map(String::as_str)) {
                (Some(outputs), Some("outputs")) => outputs,
                _ => &node.output,
            }
        } else {
            return digest_of(&Json::Null);
        };
        let rest = if rest.first().is_some_and(|part| part == "outputs") && data.json().is_array() {
            &rest[1..]
        } else {
            rest
        };
        if rest.is_empty() { data.digest() } else { digest_of(descend(data.json(), rest)) }
    }
}

impl NodeView {
    fn field_json(&self, field: Option<&str>) -> Json {
        match field {
            Some("status") => Json::from(self.status.as_ref()),
            Some("error") => Json::from(self.error.clone()),
            Some("usage") => self.usage.clone(),
            Some("attempts") => Json::from(self.attempts),
            Some("iterations") => Json::from(self.iterations),
            Some(_) | None => Json::Null,
        }
    }

    fn engine(self: &Arc<Self>) -> Value {
        match &self.outputs {
            None => self.output.engine(),
            Some(_) => Value::from_object(EachOutput(Arc::clone(self))),
        }
    }
}

/// The root of all names.
#[derive(Debug)]
pub(super) struct ScopeObject(pub ScopeData);

impl Object for ScopeObject {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        if let Some(binding) = self.0.binding(key) {
            return Some(binding.value.engine());
        }
        match key {
            "inputs" => Some(Value::from_object(InputsObject(Arc::clone(&self.0.inputs)))),
            "nodes" => Some(Value::from_object(NodesObject(Arc::clone(&self.0.nodes)))),
            "run" => Some(Value::from_object(RunObject(Arc::clone(&self.0.run)))),
            "index" => self.0.index.map(Value::from),
            SELF_NAME => Some(Value::from_dyn_object(Arc::clone(self))),
            name => self.0.node(name).map(NodeView::engine),
        }
    }
}

#[derive(Debug)]
struct InputsObject(Arc<IndexMap<String, InputView>>);

impl Object for InputsObject {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get(key.as_str()?).map(|input| input.value.engine())
    }
}

#[derive(Debug)]
struct NodesObject(Arc<HashMap<String, Arc<NodeView>>>);

impl Object for NodesObject {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get(key.as_str()?).map(|node| Value::from_object(NodeObject(Arc::clone(node))))
    }
}

#[derive(Debug)]
struct NodeObject(Arc<NodeView>);

impl Object for NodeObject {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        Some(Value::from(Serde(self.0.field_json(key.as_str()))))
    }
}

#[derive(Debug)]
struct RunObject(Arc<RunView>);

impl Object for RunObject {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match key.as_str()? {
            "id" => Some(Value::from(self.0.id.as_str())),
            "dir" => Some(Value::from(self.0.dir.display().to_string())),
            "base_commit" => Some(Value::from(self.0.base_commit.clone())),
            _ => None,
        }
    }
}

/// The list of an `each` node, which also has `outputs`.
#[derive(Debug)]
struct EachOutput(Arc<NodeView>);

impl Object for EachOutput {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match key.as_str() {
            Some("outputs") => self.0.outputs.as_ref().map(Data::engine),
            Some(_) => None,
            None => self.0.output.engine().get_item(key).ok(),
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.0.output.json().as_array().map_or(0, Vec::len))
    }
}
