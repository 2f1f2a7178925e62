//! The JSON Schema of a workflow file, so that editors complete and check it.

use super::keys::{self, Key, NodeKind, State, Ty};
use serde_json::{Map, Value, json};

/// The whole schema (draft 2020-12).
pub fn schema_json() -> Value {
    let mut schema = table(keys::TOP.iter());
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("claw workflow, schema 1");
    schema["$defs"] = json!({ "node": node(), "defaults": defaults() });
    schema
}

fn table<'k>(keys: impl Iterator<Item = &'k Key>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in keys.filter(|key| key.state == State::Now) {
        let mut value = of(&key.ty);
        if !key.help.is_empty() {
            value["description"] = json!(key.help);
        }
        if key.required() {
            required.push(key.name);
        } else if let Some(default) = literal(key.default) {
            value["default"] = default;
        }
        properties.insert(key.name.to_owned(), value);
    }
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// A default that is a value, not words about one.
fn literal(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

fn node() -> Value {
    let kinds: Vec<Value> = NodeKind::ALL
        .into_iter()
        .map(|kind| {
            let mut schema = table(keys::of(kind));
            schema["properties"]["kind"]["const"] = json!(kind.as_str());
            if kind != NodeKind::Agent
                && let Some(required) = schema["required"].as_array_mut()
            {
                required.push(json!("kind"));
            }
            schema
        })
        .collect();
    json!({ "oneOf": kinds })
}

fn defaults() -> Value {
    let mut all = table(NodeKind::ALL.iter().flat_map(|kind| keys::own(*kind)).chain(keys::common()));
    all["required"] = json!([]);
    all
}

fn of(ty: &Ty) -> Value {
    match ty {
        Ty::Str | Ty::Tmpl | Ty::Expr => json!({ "type": "string" }),
        Ty::Bool => json!({ "type": "boolean" }),
        Ty::Int(least, most) if *most == i64::MAX => json!({ "type": "integer", "minimum": least }),
        Ty::Int(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Ty::Float(least) => json!({ "type": "number", "minimum": least }),
        Ty::Dur => json!({ "type": "string", "pattern": "^([0-9]+(ms|s|m|h|d))+$" }),
        Ty::Size => json!({ "type": "string", "pattern": "^[0-9]+ ?(B|KB|MB|GB|KiB|MiB|GiB)?$" }),
        Ty::Slug => json!({ "type": "string", "pattern": "^[a-z][a-z0-9_-]{0,47}$" }),
        Ty::Ident | Ty::NodeName => json!({ "type": "string", "pattern": "^[a-z][a-z0-9_]{0,47}$" }),
        Ty::AgentName => json!({ "type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$" }),
        Ty::Enum(now, _) => json!({ "type": "string", "enum": now }),
        Ty::List(inner) => json!({ "type": "array", "items": of(inner) }),
        Ty::OneOrList(inner) => json!({ "anyOf": [of(inner), { "type": "array", "items": of(inner) }] }),
        Ty::Map(inner) => json!({ "type": "object", "additionalProperties": of(inner) }),
        Ty::Idents(inner) => named("^[a-z][a-z0-9_]{0,47}$", of(inner)),
        Ty::Agents(inner) => named("^[A-Za-z0-9_-]{1,64}$", of(inner)),
        Ty::Table(keys) => table(keys.iter()),
        Ty::Nodes => named("^[a-z][a-z0-9_]{0,47}$", json!({ "$ref": "#/$defs/node" })),
        Ty::Defaults => json!({ "$ref": "#/$defs/defaults" }),
        Ty::Json => json!({}),
        Ty::Output => json!({ "anyOf": [
            { "type": "string", "enum": ["text", "json", "lines", "lines0", "jsonl"] },
            { "type": "object" },
        ] }),
        Ty::Either(forms) => json!({ "anyOf": forms.iter().map(of).collect::<Vec<_>>() }),
    }
}

fn named(pattern: &str, value: Value) -> Value {
    json!({ "type": "object", "patternProperties": { pattern: value }, "additionalProperties": false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> bool {
        let file: Value = toml::from_str(text).unwrap();
        jsonschema::validator_for(&schema_json()).unwrap().is_valid(&file)
    }

    #[test]
    fn the_schema_takes_what_the_reader_takes() {
        assert!(check(
            "schema = 1\n[workflow]\nname = 'x'\n[node.a]\nprompt = 'hi'\neach = { items = [1, 2] }\n[node.b]\nkind = 'command'\nrun = ['ls']\nneeds = ['a']\n"
        ));
        assert!(!check("schema = 1\n[workflow]\nname = 'x'\n[node.a]\nprompt = 'hi'\nneds = ['b']\n"));
        assert!(!check(
            "schema = 1\n[workflow]\nname = 'x'\n[node.a]\nkind = 'command'\nprompt = 'hi'\nrun = ['ls']\n"
        ));
        assert!(check(include_str!("../plan/tests/review_and_fix.toml")));
        let group =
            |body: &str| format!("schema = 1\n[workflow]\nname = 'x'\n[node.g]\nkind = 'group'\n{body}");
        assert!(!check(&group("")), "a group without a body");
        assert!(!check(&group("[node.g.body.a]\nprmpt = 'x'\n")), "a wrong key in a body");
        assert!(!check(&group("isolation = 'copy'\n[node.g.body.a]\nprompt = 'x'\n")), "not yet");
        assert!(!check("[workflow]\nname = 'x'\n[node.a]\nprompt = 'hi'\n"));
    }
}
