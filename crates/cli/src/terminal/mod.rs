//! What a person sees while something runs: bars on a terminal, plain lines elsewhere, a table at the end.
//!
//! Lines are pure functions of a view; the screen only puts them on standard error. Knows nothing of how a run works.

mod bars;
mod board;
mod closed;
mod controls;
mod detect;
mod ended;
pub mod figures;
mod fit;
mod frame;
mod gate;
mod keys;
mod line;
pub mod markdown;
mod pager;
pub mod paint;
mod panel;
mod panics;
mod press;
mod presses;
mod question;
mod raw;
mod region;
mod screen;
mod secret;
mod stdio;
mod summary;
mod tail;
mod trusting;
mod view;

pub use board::BoardReader;
pub use closed::stdout_is_closed;
pub use controls::Wish;
pub use detect::{Surroundings as TerminalSurroundings, is_drawable, kind};
pub use ended::ended;
pub use gate::GateQuestion;
pub use keys::{Key, Keys};
pub use pager::Pager;
pub use panel::Panel;
pub use panics::{Faults, install as install_panic_hook};
pub use presses::Pressed;
pub use question::{Question, TerminalPresenter, Unwanted, ask_again, confirm};
pub use raw::{RawMode, size as terminal_size, write as write_terminal};
pub use region::{Picture, Region};
pub use screen::{Screen, Told as ScreenTold};
pub use secret::hidden_line;
pub use stdio::{
    Piped, Stdout, closed, leave_session, leave_terminal, piped_stdin, say, somebody_to_ask,
    stderr_is_terminal, stdin_is_terminal, stdin_lines, stdout_is_broken, stdout_is_terminal, width,
    write_answer, write_stdout,
};
pub use summary::summary;
pub use trusting::{TrustAnswer, trust_question};
