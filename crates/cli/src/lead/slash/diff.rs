//! `/diff`: what is changed in the work tree.

use super::command::{Desk, Slash};
use crate::lead::changes;
use crate::lead::deed::Deed;
use crate::lead::tool_lines::changes as coloured;
use crate::terminal::paint::Line;
use futures_util::future::BoxFuture;

pub(super) struct Diff;

/// Lines that are shown above the input; more go to the pager.
const MOST: usize = 60;

impl Slash for Diff {
    fn name(&self) -> &'static str {
        "diff"
    }

    fn args(&self) -> &'static str {
        "[PATH]"
    }

    fn about(&self) -> &'static str {
        "shows what is changed and not committed, in colours"
    }

    fn run(&self, args: String, desk: Desk) -> BoxFuture<'static, Vec<Deed>> {
        Box::pin(async move {
            let path = (!args.is_empty()).then_some(args);
            match changes::uncommitted(&desk.setup.cwd, path.as_deref()).await {
                Ok(text) if text.trim().is_empty() => {
                    vec![Deed::Show(vec![Line::styled("nothing is changed", desk.looks().quiet)])]
                }
                Ok(text) => {
                    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
                    if lines.len() > MOST {
                        return vec![Deed::Page { title: "changes".to_owned(), text }];
                    }
                    vec![Deed::Show(coloured(&lines, &desk.looks()))]
                }
                Err(error) => vec![Deed::Wrong(error.to_string())],
            }
        })
    }
}
