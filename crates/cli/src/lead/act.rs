//! What the screen wants done: the core decides, the loop acts.

use claw_agents::lead::LeadCommand;
use claw_agents::permission::Answer;

/// One wish.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    /// An order to the lead.
    Order(LeadCommand),
    /// A slash command, without its sign.
    Slash {
        /// Its name as typed.
        name: String,
        /// The rest of the line.
        args: String,
    },
    /// The answer to a question of an agent.
    Answer {
        /// Which question.
        ask: u64,
        /// What was said.
        answer: Answer,
    },
    /// What was chosen or confirmed: a deed that waited for it.
    Deed(Box<super::deed::Deed>),
    /// Keeps a text in the history of the project.
    Remember(String),
    /// Shows a text in the pager.
    Page {
        /// Of the pager's last line.
        title: String,
        /// The text, as it is.
        text: String,
    },
    /// Ctrl-Z.
    Suspend,
    /// Draws everything anew on an empty screen.
    Refresh,
    /// Ends the program.
    Quit,
}
