//! Reads playlist files: `{"routes":[…]}` with the keys `path`, `contains`, `lacks`, `last_contains`,
//! `times`, `status`, `headers`, `delay_ms`, `body_file`, `body`, `reply`, `split_at`, `chunk_ms`,
//! `heartbeat`, `after`, `end`, `label`. A bare `.sse` file is played once, then comes a plain `DONE`.

use super::reply::{End, Reply};
use super::route::Route;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// The routes of a playlist file.
pub(crate) fn load(path: &Path) -> Vec<Route> {
    if path.extension().is_some_and(|e| e == "sse") {
        let bytes = Route::reply(literal(Reply::file(path))).label("bytes").times(1);
        return vec![bytes, Route::reply(literal(Reply::text("DONE"))).label("end")];
    }
    let text = std::fs::read(path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display()));
    let list: Value =
        serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{} is no JSON: {e}", path.display()));
    let folder = path.parent().unwrap_or(Path::new("."));
    list["routes"].as_array().expect("a playlist has routes").iter().map(|r| route(r, folder)).collect()
}

fn literal(mut reply: Reply) -> Reply {
    reply.literal = true;
    if reply.end == End::Fin {
        reply.end = End::Close;
    }
    reply
}

fn route(value: &Value, folder: &Path) -> Route {
    let mut route = Route::reply(literal(reply(value, folder)));
    if let Some(label) = value["label"].as_str() {
        route = route.label(label);
    }
    if let Some(part) = value["path"].as_str() {
        route = route.path(part);
    }
    for text in texts(&value["contains"]) {
        route = route.contains(text);
    }
    for text in texts(&value["lacks"]) {
        route = route.lacks(text);
    }
    for text in texts(&value["last_contains"]) {
        route = route.last_contains(text);
    }
    match number(&value["times"]) {
        Some(times) => route.times(usize::try_from(times).expect("a small number")),
        None => route,
    }
}

fn reply(value: &Value, folder: &Path) -> Reply {
    let mut reply = if value["reply"].is_object() {
        script(&value["reply"])
    } else if let Some(file) = value["body_file"].as_str() {
        Reply::file(folder.join(file))
    } else {
        Reply::raw(value["body"].as_str().unwrap_or_default())
    };
    if let Some(status) = number(&value["status"]) {
        reply = reply.status(u16::try_from(status).expect("an HTTP status"));
    }
    for (name, header) in value["headers"].as_object().into_iter().flatten() {
        reply = reply.header(&name.to_lowercase(), header.as_str().unwrap_or_default());
    }
    if let Some(offsets) = value["split_at"].as_array() {
        let offsets = offsets.iter().filter_map(number).filter_map(|n| usize::try_from(n).ok());
        reply = reply.split_at(offsets.collect::<Vec<_>>());
    }
    let beat = &value["heartbeat"];
    if beat.is_object() {
        let bytes = beat["bytes"].as_str().unwrap_or_default();
        reply = reply.heartbeat(bytes, millis(&beat["every_ms"]), number(&beat["count"]).unwrap_or(0));
    }
    let end = match value["end"].as_str() {
        None | Some("fin") => End::Fin,
        Some("rst") => End::Rst,
        Some("stall") => End::Stall,
        Some(other) => panic!("unknown end in a playlist: {other}"),
    };
    reply
        .delay(millis(&value["delay_ms"]))
        .chunk_pause(millis(&value["chunk_ms"]))
        .after(value["after"].as_str().unwrap_or_default())
        .end(end)
}

fn script(value: &Value) -> Reply {
    let mut reply = Reply::empty();
    if let Some(text) = value["text"].as_str() {
        reply = reply.with_text(text);
    }
    if let Some(thinking) = value["thinking"].as_str() {
        reply = reply.with_thinking(thinking, value["signature"].as_str().unwrap_or("c2ln"));
    }
    for tool in value["tools"].as_array().into_iter().flatten() {
        let word = |key: &str| tool[key].as_str().unwrap_or_default();
        reply = reply.with_tool(word("id"), word("name"), tool["input"].clone());
    }
    if let Some(stop) = value["stop"].as_str() {
        reply = reply.stop(stop);
    }
    if let super::reply::Body::Script(script) = &mut reply.body {
        script.usage = value.get("usage").cloned();
        script.out = number(&value["out"]);
    }
    reply
}

fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn number(value: &Value) -> Option<u64> {
    value.as_u64()
}

fn millis(value: &Value) -> Duration {
    Duration::from_millis(number(value).unwrap_or(0))
}
