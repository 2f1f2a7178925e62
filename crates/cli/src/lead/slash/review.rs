//! `/review`: the model reviews what is changed.

use super::command::{Desk, Slash};
use super::registry::ready;
use crate::lead::deed::Deed;
use futures_util::future::BoxFuture;

pub(super) struct Review;

impl Slash for Review {
    fn name(&self) -> &'static str {
        "review"
    }

    fn args(&self) -> &'static str {
        "[WHAT]"
    }

    fn about(&self) -> &'static str {
        "asks for a review of the changes that are not committed, or of what you name"
    }

    fn run(&self, args: String, _: Desk) -> BoxFuture<'static, Vec<Deed>> {
        let what =
            if args.is_empty() { "the changes of the work tree that are not committed" } else { &args };
        let text = format!(
            "Review {what}. Read the difference and as much of the code around it as you need. Name faults first, each \
             with file and line, how it shows, and how it is put right; then risks and missing tests; then what reads \
             badly. Say so where you found nothing. Change nothing."
        );
        let shown = format!("/review {args}");
        ready([Deed::Prompt { text, shown: shown.trim_end().to_owned() }])
    }
}
