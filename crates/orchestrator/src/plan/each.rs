//! `each`: lists that are known when the plan is made become items with keys, the others stay sources.

use super::build::{Build, Spot, Visible};
use super::model::{Each, EachFail, EachSource, Work};
use crate::addr::ItemKey;
use crate::expr::{
    Binding, Data, EvalError, Expr, InputView, Reference, Render, Root, Scope, ScopeData, Template,
};
use crate::workflow::file::{NodeFile, Section, Val, ValKind};
use crate::workflow::problem::Code;
use serde_json::Value as Json;
use std::collections::HashMap;
use std::sync::Arc;

/// Digits of the digest that names an item without a key of its own.
const DIGEST_DIGITS: usize = 16;

/// A shared beginning of a prompt above this is worth a warm cache.
const WARM_TOKENS: usize = 16_000;
/// English text and code have about so many bytes for each token.
const BYTES_OF_A_TOKEN: usize = 4;

impl Each {
    /// The name of an item. The scope must bind it (`Each::bind`) and `index`.
    ///
    /// # Errors
    /// Where the key's template fails.
    pub fn key_of(&self, scope: &Scope, item: &Data) -> Result<String, EvalError> {
        key_of(self.key.as_ref(), scope, item)
    }

    /// Whether items come from an agent, a command or a file.
    pub fn is_dynamic(&self) -> bool {
        !matches!(self.source, EachSource::Static(_) | EachSource::Listed(_))
    }
}

fn key_of(key: Option<&Template>, scope: &Scope, item: &Data) -> Result<String, EvalError> {
    match key {
        Some(template) => template.render(scope, Render::Plain),
        None => Ok(item.digest().hex().chars().take(DIGEST_DIGITS).collect()),
    }
}

/// A list of numbers as Jinja's `range` gives it.
fn range(numbers: &[i64]) -> Option<Vec<Json>> {
    let (from, to, step) = match numbers {
        [to] => (0, *to, 1),
        [from, to] => (*from, *to, 1),
        [from, to, step] => (*from, *to, *step),
        _ => return None,
    };
    if step == 0 || to.abs_diff(from) / step.unsigned_abs() > 1_000_000 {
        return None;
    }
    let mut out = Vec::new();
    let mut at = from;
    while (step > 0 && at < to) || (step < 0 && at > to) {
        out.push(Json::from(at));
        at += step;
    }
    Some(out)
}

/// Where items come from, before the keys are made.
enum Written {
    List(Vec<Json>),
    Source(EachSource),
}

impl<'a> Build<'a> {
    /// Reads `each`. The name of the item is visible to the node's other texts.
    pub(super) fn each(&mut self, node: &'a NodeFile, visible: &Visible<'_>) -> Option<Each> {
        let entry = node.keys.entry("each")?;
        let each = entry.value.section()?;
        let bind = each.text("as").unwrap_or("item");
        let span = each.get("as").map_or(entry.key_span.clone(), |value| value.span.clone());
        let named = Spot { source: self.source, span, node: Some(node), key: "each.as", exact: false };
        self.bind_hides(&named, bind, visible);
        let (written, source_value) = self.written(node, each, visible)?;
        // Keys of a list in the file are made now, when no node has run.
        let known = matches!(written, Written::List(_));
        let with_item = Visible { item: Some(bind), no_nodes: known, ..*visible };
        let key = each.get("key").map(|value| (self.spot(node, "each.key", value), value));
        let key = match key {
            Some((spot, value)) => {
                Some(self.template(&spot, value.text().unwrap_or_default(), &with_item)?)
            }
            None => None,
        };
        let spot = self.spot(node, "each", source_value);
        let max = each.count("max");
        let source = match written {
            Written::List(items) => {
                self.at_most(&spot, items.len(), max);
                match key.as_ref().filter(|key| self.waits_for_inputs(key)) {
                    Some(_) => EachSource::Listed(items),
                    None => EachSource::Static(self.items(&spot, bind, key.as_ref(), items)?),
                }
            }
            Written::Source(source) => {
                if max.is_none() && !self.is_unknown_list(&source) {
                    let problem = spot.problem(
                        Code::E172,
                        "the number of items is not known before the run, so `each.max` is required",
                    );
                    self.problems.push(problem.with_help("write `max = N` in `each`"));
                }
                source
            }
        };
        let min_success = each.count("min_success");
        self.at_least(&spot, &source, min_success);
        Some(Each {
            source,
            bind: bind.to_owned(),
            key,
            max,
            concurrency: each.count("concurrency"),
            min_success,
            fail: if each.text("fail") == Some("fast") { EachFail::Fast } else { EachFail::Collect },
            warm: each.flag("warm"),
        })
    }

    /// Where the file does not say: warming pays where the beginning that all items share is long and cheaper to read
    /// from the service's cache.
    pub(super) fn warmed(&self, each: Each, work: &Work) -> Each {
        let pays = match work {
            Work::Agent(agent) => {
                let shared = agent.prompt.head().len() / BYTES_OF_A_TOKEN;
                shared > WARM_TOKENS && self.surroundings.cache_pays(agent.models.first().map(String::as_str))
            }
            Work::Command(_) | Work::Set { .. } | Work::Merge(_) | Work::Group(_) | Work::Gate(_) => false,
        };
        Each { warm: each.warm.or(Some(pays)), ..each }
    }

    fn written<'k>(
        &mut self,
        node: &'a NodeFile,
        each: &'k Section,
        visible: &Visible<'_>,
    ) -> Option<(Written, &'k Val)> {
        if let Some(value) = each.get("items") {
            let written = match &value.kind {
                ValKind::List(list) => Written::List(list.iter().filter_map(item_json).collect()),
                _ => self.items_expr(node, value, visible)?,
            };
            return Some((written, value));
        }
        if let Some(value) = each.get("range") {
            let numbers: Vec<i64> = each.list("range").iter().filter_map(Val::int).collect();
            let Some(list) = range(&numbers) else {
                let problem = self
                    .spot(node, "each.range", value)
                    .problem(Code::E103, "the range has no step or too many numbers");
                self.problems.push(problem);
                return None;
            };
            return Some((Written::List(list), value));
        }
        if let Some(value) = each.get("glob") {
            let include = self.templates(node, each, "glob", visible);
            let exclude = self.templates(node, each, "exclude", visible);
            return Some((Written::Source(EachSource::Glob { include, exclude }), value));
        }
        for (name, make) in
            [("lines", EachSource::Lines as fn(Template) -> EachSource), ("jsonl", EachSource::Jsonl)]
        {
            if let Some(value) = each.get(name) {
                let spot = self.spot(node, "each", value);
                let template = self.template(&spot, value.text().unwrap_or_default(), visible)?;
                return Some((Written::Source(make(template)), value));
            }
        }
        None
    }

    fn templates(
        &mut self,
        node: &'a NodeFile,
        keys: &Section,
        key: &'static str,
        visible: &Visible<'_>,
    ) -> Vec<Template> {
        let mut out = Vec::new();
        for value in keys.list(key) {
            let spot = self.spot(node, key, value);
            out.extend(self.template(&spot, value.text().unwrap_or_default(), visible));
        }
        out
    }

    /// An expression over inputs alone is known now.
    fn items_expr(&mut self, node: &'a NodeFile, value: &Val, visible: &Visible<'_>) -> Option<Written> {
        let spot = self.spot(node, "each.items", value);
        let expr: Expr = self.expr(&spot, value.text().unwrap_or_default(), visible)?;
        let known = |name: &Reference| name.root() == Root::Inputs && !self.is_unknown(name);
        if !expr.references().iter().all(known) {
            return Some(Written::Source(EachSource::Items(expr)));
        }
        match expr.eval(&self.scope(Vec::new(), None)) {
            Ok(Json::Array(items)) => Some(Written::List(items)),
            Ok(_) => {
                self.problems.push(spot.problem(Code::E103, "`items` must give a list"));
                None
            }
            Err(error) => {
                self.problems.push(spot.problem(error.code(), error.to_string()));
                None
            }
        }
    }

    /// What is visible before anything runs.
    fn scope(&self, bindings: Vec<Binding>, index: Option<usize>) -> Scope {
        let view = |input: &super::model::InputValue| InputView {
            value: Data::new(input.value.clone()),
            fenced: input.fenced,
            keyed: None,
        };
        let inputs = self.inputs[0].iter().map(|(id, input)| (id.clone(), view(input))).collect();
        Scope::new(ScopeData { inputs: Arc::new(inputs), bindings, index, ..ScopeData::default() })
    }

    /// An input whose value is not known when the plan is made: a nested file gets it when it is called.
    fn is_unknown(&self, name: &Reference) -> bool {
        name.root() == Root::Inputs
            && (self.file > 0 || name.path.get(1).is_some_and(|id| self.open_inputs.contains(id)))
    }

    fn waits_for_inputs(&self, key: &Template) -> bool {
        key.references().any(|(name, _)| self.is_unknown(name))
    }

    /// A list that would be known if all inputs of the user's file were.
    fn is_unknown_list(&self, source: &EachSource) -> bool {
        match source {
            EachSource::Items(expr) => {
                self.file == 0 && expr.references().iter().all(|name| name.root() == Root::Inputs)
            }
            EachSource::Static(_)
            | EachSource::Listed(_)
            | EachSource::Glob { .. }
            | EachSource::Lines(_)
            | EachSource::Jsonl(_) => false,
        }
    }

    fn at_least(&mut self, spot: &Spot<'_>, source: &EachSource, min_success: Option<usize>) {
        let count = match source {
            EachSource::Static(items) => items.len(),
            EachSource::Listed(items) => items.len(),
            EachSource::Items(_) | EachSource::Glob { .. } | EachSource::Lines(_) | EachSource::Jsonl(_) => {
                return;
            }
        };
        if let Some(least) = min_success.filter(|least| *least > count) {
            let message = format!("`min_success` is {least}, there are {count} items");
            self.problems.push(spot.problem(Code::E174, message));
        }
    }

    fn at_most(&mut self, spot: &Spot<'_>, count: usize, max: Option<usize>) {
        if let Some(max) = max.filter(|max| count > *max) {
            let message = format!("there are {count} items, `max` allows {max}");
            self.problems.push(spot.problem(Code::E173, message));
        }
    }

    fn items(
        &mut self,
        spot: &Spot<'_>,
        bind: &str,
        key: Option<&Template>,
        items: Vec<Json>,
    ) -> Option<Vec<(ItemKey, Json)>> {
        let base = self.scope(Vec::new(), None).data().clone();
        let data_key = key.is_none();
        let mut seen: HashMap<ItemKey, usize> = HashMap::new();
        let mut out = Vec::with_capacity(items.len());
        for (at, item) in items.into_iter().enumerate() {
            let data = Data::new(item.clone());
            let binding = Binding { name: bind.into(), value: data.clone(), dynamic: false, file: None };
            let scope =
                Scope::new(ScopeData { bindings: vec![binding], index: Some(at + 1), ..base.clone() });
            let name = match key_of(key, &scope, &data) {
                Ok(name) => name,
                Err(error) => {
                    self.problems
                        .push(spot.problem(error.code(), format!("the key of item {}: {error}", at + 1)));
                    return None;
                }
            };
            let key = ItemKey::of(&name);
            if let Some(first) = seen.insert(key.clone(), at) {
                let message = match data_key {
                    true => format!("items {} and {} are equal", first + 1, at + 1),
                    false => format!("items {} and {} have the same key `{name}`", first + 1, at + 1),
                };
                self.problems.push(
                    spot.problem(Code::E171, message)
                        .with_help("give `each.key` a text that differs, or take one out"),
                );
                return None;
            }
            out.push((key, item));
        }
        Some(out)
    }
}

fn item_json(value: &Val) -> Option<Json> {
    match &value.kind {
        ValKind::Json(json) => Some(json.clone()),
        _ => None,
    }
}
