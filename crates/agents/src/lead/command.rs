//! What a person can do to the lead: one closed enum.

use crate::permission::Permission;
use claw_kernel::ids::RunId;
use claw_providers::message::Block;
use claw_providers::request::Effort;
use std::path::PathBuf;

/// An order to the lead. Orders are carried out one after another; those that a running turn does not allow wait until
/// it has ended, but for `Say`, `Interrupt` and `Shutdown`.
#[derive(Clone, Debug, PartialEq)]
pub enum LeadCommand {
    /// Text and images for the model. Idle: a turn begins. During a turn it is given to the model at the next step;
    /// where the turn ends before it was heard, the next turn begins with it.
    Say {
        /// `Block::Text` and `Block::Image` only; others are left out.
        blocks: Vec<Block>,
    },
    /// Ends the turn (Esc, Ctrl-C). What came is kept, calls without a result are told, messages that wait are given back
    /// with `LeadEvent::Unheard`. Idle: nothing happens.
    Interrupt,
    /// Puts a summary in the place of the older messages.
    Compact {
        /// What the summary should keep above all.
        keep: Option<String>,
    },
    /// The models of the next request, tried in order.
    SetModel {
        /// `provider/model`, a model's name or an alias. Empty: the default.
        models: Vec<String>,
    },
    /// How hard the model should think from the next turn on.
    SetEffort {
        /// `None`: the service's default.
        effort: Option<Effort>,
    },
    /// What may be done from the next turn on.
    SetPermission {
        /// The mode.
        permission: Permission,
    },
    /// One more folder in which files may be read and written.
    AddDir {
        /// Absolute.
        path: PathBuf,
    },
    /// Goes back to before a prompt.
    Rewind {
        /// The prompt, from 1 (see `LeadView::prompts`). It and all that followed goes.
        prompt: u32,
        /// What is taken back.
        what: Rewinding,
    },
    /// The end of an agent in the background. One message of the user's side between two turns, never inside a running
    /// one; idle: a turn begins with it. A message of this run and number that stands in the session's log already is
    /// not told again. When it is there: `LeadEvent::Told`.
    Tell {
        /// The run of the session's agents.
        run: RunId,
        /// From 1 within the run.
        number: u32,
        /// For the model.
        text: String,
    },
    /// The session's agents live in this run: it is named in the session's log, and in `LeadView::team` at the next
    /// opening.
    NameTeam {
        /// The run.
        run: RunId,
    },
    /// Begins a new session with an empty history; the old one stays on disk.
    Clear,
    /// Gives the session a name.
    Rename {
        /// One line; empty takes the name away.
        name: String,
    },
    /// Ends the turn and the lead; everything is on disk when `LeadEvent::Closed` comes.
    Shutdown,
}

/// What a rewind takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewinding {
    /// Messages and the files that claw's own tools have changed since.
    Both,
    /// Messages alone.
    Messages,
    /// Files alone.
    Files,
}
