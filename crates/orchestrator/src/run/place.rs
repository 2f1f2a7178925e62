//! Where an attempt works: the workspace, a folder of its own, or that of its group.

use super::hands::Hands;
use super::picture::Picture;
use crate::scheduler::{Failure, Folder, Launch, OutcomeEnd};
use crate::worktree::WorktreeError;
use claw_agents::outcome::FailureClass;
use std::path::PathBuf;

/// Where one attempt works.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The top of it.
    pub root: PathBuf,
    /// A folder that goes with the attempt.
    own: Option<Folder>,
}

impl Place {
    /// Finds it; a folder that is not there yet is made. Errors: it cannot be made.
    pub async fn of(hands: &Hands, launch: &Launch, picture: &mut Picture) -> Result<Self, Failure> {
        let Some(folder) = &launch.folder else {
            return Ok(Self { root: hands.options.workspace.clone(), own: None });
        };
        // That of a group outlives the step.
        let is_shared = folder.owner != launch.addr;
        let open = hands.folders.open(folder, is_shared).await.map_err(|error| failure(&error))?;
        picture.folder(&open);
        Ok(Self { root: open.path, own: (!is_shared).then(|| folder.clone()) })
    }

    /// The work is over: that of a folder of its own goes to its branch. What could not be kept there fails the step:
    /// whoever merges the branch would miss it.
    pub async fn leave(self, hands: &Hands, launch: &Launch, end: OutcomeEnd) -> OutcomeEnd {
        let Some(folder) = &self.own else { return end };
        match hands.folders.close(folder).await {
            Ok(closed) => {
                if let Some(why) = closed.and_then(|closed| closed.kept) {
                    let text = format!("its folder {} stays: {why}", self.root.display());
                    hands.bus.note(Some(&launch.addr), text);
                }
                end
            }
            Err(error) => {
                let text = format!("its work stays in {}: {error}", self.root.display());
                match end {
                    OutcomeEnd::Succeeded { effect, .. } => {
                        OutcomeEnd::Failed(Failure { effect, ..Failure::new(FailureClass::Tool, text) })
                    }
                    OutcomeEnd::Failed(_)
                    | OutcomeEnd::Cancelled
                    | OutcomeEnd::Asks(_)
                    | OutcomeEnd::Interrupted(_) => {
                        hands.bus.note(Some(&launch.addr), text);
                        end
                    }
                }
            }
        }
    }
}

/// How a step fails by it.
pub(super) fn failure(error: &WorktreeError) -> Failure {
    let class = match error {
        WorktreeError::Cancelled => FailureClass::Cancelled,
        error if error.is_conflict() => FailureClass::Conflict,
        _ => FailureClass::Tool,
    };
    Failure::new(class, error.to_string())
}
