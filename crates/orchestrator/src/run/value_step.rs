//! One attempt of a computed merge that also writes a file of the workspace: the writing is its effect.

use super::agent_step::Report;
use super::hands::Hands;
use super::picture::Picture;
use super::place::Place;
use crate::scheduler::{Failure, Launch, Outcome, OutcomeEnd};
use claw_agents::outcome::FailureClass;
use claw_kernel::digest::Digest;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Writes the file and reports.
pub(super) async fn run(hands: &Arc<Hands>, launch: &Launch, value: &Arc<Value>, report: Report) {
    let node = &hands.plan.nodes[launch.node.at()];
    let mut picture = Picture::new(hands, launch, node);
    let place = Place::of(hands, launch, &mut picture).await;
    picture.started(None);
    let effect = Some(Digest::of(value.to_string()));
    let end = OutcomeEnd::Succeeded {
        kept: hands.keep(&launch.addr, launch.attempt, value),
        value: Arc::clone(value),
        file: None,
        effect,
    };
    let end = match place {
        Ok(place) => {
            let end = write(hands, launch, &place.root, end);
            let end = super::artifacts::check(launch, &place.root, end, &mut picture).await;
            place.leave(hands, launch, end).await
        }
        Err(failure) => OutcomeEnd::Failed(failure),
    };
    picture.ended(None, &end);
    let (settle, settled) = oneshot::channel();
    // The receiver lives as long as the run.
    let _ = report.send((Outcome { end, usage: None, denials: Vec::new() }, settle));
    if let Ok(settlement) = settled.await {
        picture.settled(&settlement);
    }
}

/// After a success: the step's output goes to the file that the merge names; one that cannot be written fails the step.
pub(super) fn write(hands: &Hands, launch: &Launch, root: &Path, end: OutcomeEnd) -> OutcomeEnd {
    let (Some(path), OutcomeEnd::Succeeded { value, effect, .. }) = (&launch.write, &end) else { return end };
    match hands.write_file(root, path, value) {
        Ok(()) => end,
        Err(error) => OutcomeEnd::Failed(Failure {
            effect: *effect,
            ..Failure::new(FailureClass::Artifact, format!("write {path}: {error}"))
        }),
    }
}
