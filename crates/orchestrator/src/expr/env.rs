//! The one engine: strict in what it offers, bounded by fuel, without files, time, random or I/O.

use super::filters;
use minijinja::{Environment, UndefinedBehavior};
use std::sync::LazyLock;

/// The function that `<name> | path` becomes.
pub(super) const PATH_FUNCTION: &str = "__claw_path";

/// Steps of one evaluation. One step also pays for 64 bytes that the engine makes: 64 MB in all.
const FUEL: u64 = 1_000_000;

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(build);

/// The shared engine.
pub(super) fn environment() -> &'static Environment<'static> {
    &ENVIRONMENT
}

/// Filters of the engine that stay.
const ENGINE_FILTERS: [&str; 44] = [
    "abs",
    "attr",
    "batch",
    "bool",
    "capitalize",
    "chain",
    "count",
    "dictsort",
    "first",
    "float",
    "format",
    "groupby",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "pprint",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "select",
    "selectattr",
    "slice",
    "sort",
    "split",
    "string",
    "sum",
    "title",
    "tojson",
    "trim",
    "unique",
    "upper",
    "zip",
    "d",
    "default",
];

const OWN_FILTERS: [&str; 9] =
    ["raw", "json", "bullets", "lines", "head", "tail", "table", "flatten", "path"];

const TESTS: [&str; 37] = [
    "undefined",
    "defined",
    "none",
    "boolean",
    "odd",
    "even",
    "divisibleby",
    "number",
    "integer",
    "int",
    "float",
    "string",
    "sequence",
    "iterable",
    "mapping",
    "startingwith",
    "endingwith",
    "lower",
    "upper",
    "sameas",
    "eq",
    "equalto",
    "ne",
    "lt",
    "lessthan",
    "le",
    "gt",
    "greaterthan",
    "ge",
    "in",
    "true",
    "false",
    "filter",
    "test",
    "safe",
    "escaped",
    "none",
];

/// Names after `|`.
pub(super) fn filter_names() -> impl Iterator<Item = &'static str> {
    OWN_FILTERS.into_iter().chain(ENGINE_FILTERS)
}

/// Names after `is`.
pub(super) fn test_names() -> impl Iterator<Item = &'static str> {
    TESTS.into_iter()
}

fn build() -> Environment<'static> {
    let mut env = Environment::new();
    env.set_undefined_behavior(UndefinedBehavior::Chainable);
    env.set_fuel(Some(FUEL));
    // Nothing that shows the inside of the engine, and no escaping for a markup language.
    for name in ["safe", "escape", "e"] {
        env.remove_filter(name);
    }
    for name in ["debug", "namespace"] {
        env.remove_global(name);
    }
    env.add_filter("default", filters::default);
    env.add_filter("d", filters::default);
    env.add_filter("raw", filters::raw);
    env.add_filter("json", filters::json);
    env.add_filter("bullets", filters::bullets);
    env.add_filter("lines", filters::lines);
    env.add_filter("head", filters::head);
    env.add_filter("tail", filters::tail);
    env.add_filter("table", filters::table);
    env.add_filter("flatten", filters::flatten);
    env.add_function(PATH_FUNCTION, filters::path);
    env
}
