//! `claw sandbox -- CMD…`: a command held as those of agents are.

use super::runtime::block_on;
use crate::args::{NetworkFlag, SandboxFlags};
use crate::error::{ExpectedError, exit};
use crate::services::Setup;
use crate::signals::Signals;
use crate::terminal::say;
use claw_agents::permission::Reach;
use claw_kernel::cancel::CancelToken;
use claw_kernel::visible::visible_line;
use claw_tools::process::{End, Job, run as run_job};
use claw_tools::sandbox::{Network, SandboxPolicy};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

/// Runs the command; its exit code is claw's.
///
/// # Errors
/// The settings, the folder, no sandbox, or the command cannot be started.
pub fn run(flags: SandboxFlags) -> Result<u8, ExpectedError> {
    let SandboxFlags { network, read_only, copy, cwd, settings, command } = flags;
    let setup = Setup::read_with(cwd.as_deref(), &settings)?;
    let mut sandboxes = setup.sandboxes()?;
    match network {
        Some(NetworkFlag::On) => sandboxes.outfit.network = Network::On,
        Some(NetworkFlag::Off) => sandboxes.outfit.network = Network::Off,
        None => {}
    }
    let reach = if read_only || copy { Reach::ReadOnly } else { Reach::WorkspaceWrite };
    let policy =
        if copy { sandboxes.copying(&setup.cwd, &[]) } else { sandboxes.policy(reach, &setup.cwd, &[]) };
    held(&policy)?;
    let code = block_on(ran(setup.cwd, command, Arc::clone(&policy)));
    sandboxes.close();
    code
}

fn held(policy: &SandboxPolicy) -> Result<(), ExpectedError> {
    let status = policy.status();
    if status.is_walled() {
        return Ok(());
    }
    Err(ExpectedError::Usage {
        message: format!(
            "there is no sandbox: {}",
            status.reason.as_deref().map_or_else(|| "no reason is known".into(), visible_line)
        ),
        hint: Some("`claw doctor` says more".to_owned()),
    })
}

async fn ran(
    folder: PathBuf,
    command: Vec<OsString>,
    policy: Arc<SandboxPolicy>,
) -> Result<u8, ExpectedError> {
    let mut signals = Signals::listen()?;
    let mut words = command.into_iter();
    let program = words.next().ok_or(ExpectedError::EmptyCommand)?;
    let mut job = Job::argv(program, words, folder, policy);
    job.attached = true;
    let cancel = CancelToken::new();
    let done = run_job(job, &cancel);
    tokio::pin!(done);
    let (done, ending) = tokio::select! {
        done = &mut done => (done, None),
        ending = signals.next() => {
            cancel.cancel();
            (done.await, Some(ending))
        }
    };
    if let Some(ending) = ending {
        return Ok(ending.exit_code());
    }
    let done = done.map_err(|error| ExpectedError::Usage { message: error.to_string(), hint: None })?;
    if !done.put_aside.is_empty() {
        let paths: Vec<String> =
            done.put_aside.iter().map(|path| visible_line(&path.to_string_lossy()).into()).collect();
        say(&format!("not allowed and taken out of the workspace again: {}\n", paths.join(", ")));
    }
    Ok(match done.end {
        End::Exited(code) if done.put_aside.is_empty() => u8::try_from(code).unwrap_or(exit::FAILED),
        End::Exited(0) => exit::FAILED,
        End::Exited(code) => u8::try_from(code).unwrap_or(exit::FAILED),
        End::Signalled(signal) => u8::try_from(128 + signal).unwrap_or(exit::FAILED),
        End::TimedOut | End::Cancelled => exit::FAILED,
    })
}
