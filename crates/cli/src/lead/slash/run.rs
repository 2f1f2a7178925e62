//! `/run`: a workflow file, in the background.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::Deed;
use crate::terminal::paint::Line;
use claw_tools::process::{Detached, detached};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::ffi::OsString;

pub(super) struct Run;

async fn start(desk: Desk, typed: Vec<OsString>) -> Vec<Deed> {
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => return vec![Deed::Wrong(format!("the program itself is not found: {error}"))],
    };
    let mut args: Vec<OsString> = ["run", "--detached", "--yes", "--cwd"].map(OsString::from).into();
    args.push(desk.setup.cwd.clone().into());
    args.extend(typed);
    match detached(&program, &args, false).await {
        Ok(Detached::Began { line, .. }) => {
            let told: Value = serde_json::from_str(&line).unwrap_or_default();
            let run = told["run_id"].as_str().unwrap_or_default();
            let words = format!("run {run} goes on in the background; elsewhere: claw runs watch {run}");
            vec![Deed::Show(vec![Line::plain(words)])]
        }
        Ok(Detached::Ended { said, .. }) => vec![Deed::Wrong(said.trim_end().to_owned())],
        Err(error) => vec![Deed::Wrong(error.to_string())],
    }
}

impl Slash for Run {
    fn name(&self) -> &'static str {
        "run"
    }

    fn args(&self) -> &'static str {
        "FILE [--input NAME=VALUE]"
    }

    fn about(&self) -> &'static str {
        "runs a workflow file in the background; /runs shows how it stands"
    }

    fn run(&self, args: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        let words: Vec<OsString> = args.split_whitespace().map(OsString::from).collect();
        if words.is_empty() {
            return ready([Deed::Wrong("which workflow? write /run FILE".to_owned())]);
        }
        Box::pin(start(desk, words))
    }
}
