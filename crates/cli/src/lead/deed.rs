//! What slash commands give back: things for the screen to show or to do. Pure data.

use crate::terminal::paint::{Line, ThemeName};
use claw_agents::lead::LeadCommand;

/// One of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Deed {
    /// Lines above the input.
    Show(Vec<Line>),
    /// An error above the input.
    Wrong(String),
    /// An order to the lead.
    Order(LeadCommand),
    /// A prompt for the model, and what is shown of it.
    Prompt {
        /// What the model is told.
        text: String,
        /// What stands on the screen.
        shown: String,
    },
    /// A list to choose from.
    Pick(Pick),
    /// Asks first; default no.
    Confirm {
        /// The question.
        question: String,
        /// What a yes does.
        deed: Box<Self>,
    },
    /// Another theme.
    Theme(ThemeName),
    /// Shows a text in the pager.
    Page {
        /// Of its last line.
        title: String,
        /// The text, as it is.
        text: String,
    },
    /// Another session takes the place of this one.
    Resume(String),
    /// A copy of this session takes its place.
    Fork,
    /// Empties the screen.
    Refresh,
    /// Ends the program.
    Quit,
}

/// A list to choose from.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pick {
    /// What is chosen.
    pub(super) title: String,
    /// What there is, and what choosing it does.
    pub(super) items: Vec<PickItem>,
}

/// One line of the list.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PickItem {
    /// Its words.
    pub(super) text: String,
    /// More about it.
    pub(super) about: String,
    /// What choosing it does.
    pub(super) deed: Deed,
}
