//! Files that a step leaves: found, measured, hashed.

use super::agent_step::digest_of_file;
use super::picture::Picture;
use crate::scheduler::{Failure, Launch, OutcomeEnd};
use claw_agents::outcome::FailureClass;
use std::path::Path;

/// After a success: every artifact below `root`, the folder that the step works in, goes into the picture; a required one that is missing fails the step.
pub(super) async fn check(
    launch: &Launch,
    root: &Path,
    end: OutcomeEnd,
    picture: &mut Picture,
) -> OutcomeEnd {
    if !matches!(end, OutcomeEnd::Succeeded { .. }) {
        return end;
    }
    let fail = |text: String| OutcomeEnd::Failed(Failure::new(FailureClass::Artifact, text));
    for artifact in &launch.artifacts {
        let path = root.join(&artifact.path);
        let inside = path
            .canonicalize()
            .is_ok_and(|real| root.canonicalize().is_ok_and(|root| real.starts_with(root)));
        if !inside || !path.is_file() {
            if artifact.required {
                return fail(format!("artifact {} is missing", artifact.path));
            }
            continue;
        }
        let size = path.metadata().map_or(0, |meta| meta.len());
        if let Some(most) = artifact.max_size.filter(|most| size > *most) {
            return fail(format!("artifact {} has {size} bytes, more than {most}", artifact.path));
        }
        match digest_of_file(path).await {
            Ok((bytes, digest)) => picture.artifact(&artifact.path, bytes, digest),
            Err(error) => return fail(format!("artifact {}: {error}", artifact.path)),
        }
    }
    end
}
