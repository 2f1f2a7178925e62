//! `list`, `concat`, `dedupe`.

use super::order::compare;
use crate::expr::{Binding, Data, EvalError, Render, Scope, ScopeData};
use crate::plan::model::{MergeStrategy, MergeWork};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::HashMap;

/// What goes into a merge: `from` evaluated, lists spread, null (of skipped and failed steps) left out.
///
/// # Errors
/// Where an expression fails.
pub fn inputs(merge: &MergeWork, scope: &Scope) -> Result<Vec<Value>, EvalError> {
    let mut out = Vec::new();
    for expr in &merge.from {
        match expr.eval(scope)? {
            Value::Null => {}
            Value::Array(list) => out.extend(list.into_iter().filter(|item| !item.is_null())),
            one => out.push(one),
        }
    }
    Ok(out)
}

/// A whole computed merge; of a merge by agents its inputs as a list.
///
/// # Errors
/// Where an expression or a key fails.
pub fn compute(merge: &MergeWork, scope: &Scope) -> Result<Value, EvalError> {
    let inputs = inputs(merge, scope)?;
    match &merge.strategy {
        MergeStrategy::List | MergeStrategy::Agent { .. } | MergeStrategy::Git(_) => Ok(Value::Array(inputs)),
        MergeStrategy::Concat => Ok(Value::from(concat(&inputs))),
        MergeStrategy::Dedupe { key, prefer } => {
            let mut keyed = Vec::with_capacity(inputs.len());
            for item in inputs {
                let scope = item_scope(scope, &item);
                let rank = match prefer {
                    Some(expr) => expr.eval(&scope)?,
                    None => Value::Null,
                };
                keyed.push((key.render(&scope, Render::Plain)?, rank, item));
            }
            Ok(Value::Array(dedupe(keyed)))
        }
    }
}

fn item_scope(scope: &Scope, item: &Value) -> Scope {
    let mut data: ScopeData = scope.data().clone();
    data.bindings.push(Binding {
        name: "item".into(),
        value: Data::new(item.clone()),
        dynamic: true,
        file: None,
    });
    Scope::new(data)
}

/// Texts joined by a blank line; other values as JSON.
pub fn concat(inputs: &[Value]) -> String {
    let texts: Vec<String> = inputs
        .iter()
        .map(|value| match value {
            Value::String(text) => text.trim_end().to_owned(),
            other => other.to_string(),
        })
        .collect();
    texts.join("\n\n")
}

/// Of items `(key, rank, item)` with one key the one of the largest rank stays, of equal ones the first; in the order
/// in which the keys first appear.
pub fn dedupe(items: Vec<(String, Value, Value)>) -> Vec<Value> {
    let mut place: HashMap<String, usize> = HashMap::new();
    let mut kept: Vec<(Value, Value)> = Vec::new();
    for (key, rank, item) in items {
        match place.get(&key) {
            Some(at) => {
                if compare(&rank, &kept[*at].0) == Ordering::Greater {
                    kept[*at] = (rank, item);
                }
            }
            None => {
                place.insert(key, kept.len());
                kept.push((rank, item));
            }
        }
    }
    kept.into_iter().map(|(_, item)| item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn the_largest_stays_and_of_equal_ones_the_first() {
        let item = |key: &str, rank: i64, name: &str| (key.to_owned(), json!(rank), json!(name));
        let items = vec![
            item("a", 1, "a1"),
            item("b", 5, "b1"),
            item("a", 3, "a2"),
            item("a", 3, "a3"),
            item("b", 4, "b2"),
        ];
        assert_eq!(dedupe(items), [json!("a2"), json!("b1")]);
    }

    #[test]
    fn texts_are_joined_by_a_blank_line_and_values_are_json() {
        assert_eq!(concat(&[json!("a\n"), json!({"x": 1}), json!("b")]), "a\n\n{\"x\":1}\n\nb");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn each_key_stays_once_and_the_order_is_that_of_the_input(keys in proptest::collection::vec(0_u8..6, 0..30)) {
            let items: Vec<_> = keys.iter().enumerate().map(|(at, key)| (key.to_string(), Value::Null, json!(at))).collect();
            let kept = dedupe(items);
            let mut seen = Vec::new();
            let first: Vec<Value> = keys.iter().enumerate().filter(|(_, key)| { let new = !seen.contains(*key); seen.push(**key); new }).map(|(at, _)| json!(at)).collect();
            prop_assert_eq!(kept, first);
        }
    }
}
