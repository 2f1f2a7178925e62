//! What is said on standard error meanwhile, and how the text of an answer is printed.

use crate::error::{ExpectedError, exit};
use crate::signals::Ending;
use crate::terminal::{say, write_answer};
use claw_agents::event::AgentEvent;
use claw_agents::hooks::HookState;
use claw_agents::outcome::{AgentEnd, AgentOutcome, FailureClass};
use claw_kernel::visible::{visible, visible_line};

/// The answer on standard output, everything else on standard error.
pub(super) fn print_text(outcome: &AgentOutcome) -> Result<(), ExpectedError> {
    for denial in &outcome.denials {
        say(&format!(
            "denied: {} {}: {}\n",
            denial.tool,
            visible_line(&denial.subject),
            visible_line(&denial.reason)
        ));
    }
    match &outcome.end {
        AgentEnd::Completed { text, output } => {
            let text = output.as_ref().map_or_else(|| text.clone(), ToString::to_string);
            write_answer(&format!("{}\n", text.trim_end_matches('\n')))
        }
        AgentEnd::Failed { message, partial, .. } => {
            if let Some(partial) = partial.as_ref().filter(|text| !text.trim().is_empty()) {
                say(&format!("note: the answer broke off; until then it said:\n{}\n", visible(partial)));
            }
            say(&format!("error: {}\n", visible(message)));
            Ok(())
        }
        AgentEnd::OutOfBudget { reason } => {
            say(&format!("error: {}\n", visible(reason)));
            Ok(())
        }
        AgentEnd::Cancelled => {
            say("cancelled\n");
            Ok(())
        }
    }
}

/// Of the process.
pub(super) fn exit_code(end: &AgentEnd, ending: Option<Ending>) -> u8 {
    match (ending, end) {
        (Some(ending), _) => ending.exit_code(),
        (None, AgentEnd::Completed { .. }) => exit::OK,
        (None, AgentEnd::Failed { class: FailureClass::Limit, .. } | AgentEnd::OutOfBudget { .. }) => {
            exit::LIMIT
        }
        (None, AgentEnd::Failed { class: FailureClass::Quota | FailureClass::Auth, .. }) => exit::PAUSED,
        (None, AgentEnd::Failed { class: FailureClass::Panic, .. }) => exit::FAULT,
        (None, AgentEnd::Failed { .. } | AgentEnd::Cancelled) => exit::FAILED,
    }
}

/// Waits and fallbacks are told always, tools where somebody looks on.
pub(super) fn show(event: &AgentEvent, looks_on: bool) {
    let line = match event {
        AgentEvent::Waiting { delay, why, error } => {
            format!("note: {why}; next try in {:.1} s: {}", delay.as_secs_f64(), visible_line(error))
        }
        AgentEvent::Held { why } => format!("note: waits for the service: {}", visible_line(why)),
        AgentEvent::FellBack { to, error } => {
            format!("note: goes on with {}: {}", visible_line(to), visible_line(error))
        }
        AgentEvent::Note(text) => format!("note: {}", visible_line(text)),
        AgentEvent::ToolStarted { tool, subject, .. } if looks_on => {
            format!("· {tool} {}", visible_line(subject))
        }
        AgentEvent::Hook(news) if looks_on && news.state == HookState::Started => {
            format!("· {} hook {}", news.event, visible_line(&news.command))
        }
        AgentEvent::ToolEnded { tool, is_error: true, .. } if looks_on => format!("· {tool} failed"),
        AgentEvent::TurnStarted { .. }
        | AgentEvent::Alive
        | AgentEvent::Text(_)
        | AgentEvent::Thinking(_)
        | AgentEvent::Withdrawn
        | AgentEvent::Answered { .. }
        | AgentEvent::ToolStarted { .. }
        | AgentEvent::Asking { .. }
        | AgentEvent::ToolEnded { .. }
        | AgentEvent::Hook(_)
        | AgentEvent::Compacted { .. }
        | AgentEvent::Context { .. }
        | AgentEvent::TurnKept { .. } => return,
    };
    say(&format!("{line}\n"));
}
