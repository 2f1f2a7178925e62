//! A provider to measure against: answers every request after a time, first with one bash call where the prompt asks
//! for it (`CALL`), then with a short text. Prints its address, runs until its standard input ends, then prints how many
//! requests came, how many were in flight at once, and the time from the first to the last of them.
//!
//!     cargo run --release -p claw-kit --example provider -- 200

use claw_kit::{Reply, Route, ScriptedProvider};
use serde_json::json;
use std::io::Read;
use std::time::Duration;

fn main() {
    let millis = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    let wait = Duration::from_millis(millis);
    let call = Route::answer(move |_| Reply::tool("", "bash", json!({ "command": "true" })).delay(wait))
        .contains("CALL")
        .lacks("tool_result");
    let provider = ScriptedProvider::new([call, Route::reply(Reply::text("done").delay(wait))]).lenient();
    say(&provider.anthropic_url());
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
    let (requests, most) = (provider.count(), provider.max_in_flight());
    say(&format!("{requests} requests, {most} at once, window {} ms", provider.window().as_millis()));
    std::mem::forget(provider);
}

#[expect(clippy::print_stdout, reason = "its output is read by a script")]
fn say(line: &str) {
    println!("{line}");
}
