//! The question: what follows the flag, and what a pipe adds.

use crate::error::ExpectedError;
use crate::terminal::{Piped, piped_stdin, say};
use std::time::Duration;

/// A pipe that says nothing for so long is left alone.
const PATIENCE: Duration = Duration::from_secs(1);

/// The whole question.
///
/// # Errors
/// It is empty, or standard input cannot be read.
pub(super) fn whole(text: Option<String>) -> Result<String, ExpectedError> {
    let wait = text.is_some().then_some(PATIENCE);
    join(text, piped_stdin(wait)?)
}

fn join(text: Option<String>, piped: Piped) -> Result<String, ExpectedError> {
    match (text, piped) {
        (Some(text), Piped::Text(piped)) => Ok(format!("{text}\n\n{piped}")),
        (Some(text), Piped::Silent) => {
            say("note: standard input is open and silent; it is left alone (close it with `< /dev/null`)\n");
            Ok(text)
        }
        (Some(text), Piped::Nothing) | (None, Piped::Text(text)) => Ok(text),
        (None, Piped::Nothing | Piped::Silent) => Err(ExpectedError::EmptyPrompt),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_added_to_the_question_and_stands_for_a_missing_one() {
        let text = || Some("what is this?".to_owned());
        assert_eq!(join(text(), Piped::Text("fn main".into())).unwrap(), "what is this?\n\nfn main");
        assert_eq!(join(text(), Piped::Nothing).unwrap(), "what is this?");
        assert_eq!(join(None, Piped::Text("hi".into())).unwrap(), "hi");
        assert!(matches!(join(None, Piped::Nothing), Err(ExpectedError::EmptyPrompt)));
    }
}
