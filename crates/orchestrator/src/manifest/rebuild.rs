//! Manifests that are missing or older than the journal are written again from it, when a run is opened.

use super::build;
use super::schema::{Manifest, ManifestStatus, ManifestUsage, SCHEMA};
use super::store::{self, ManifestError};
use crate::addr::{AddrPart, StepAddr};
use crate::journal::history::{Attempt, History};
use crate::rundir::RunDir;
use claw_kernel::ids::AgentId;
use std::collections::BTreeMap;

/// Brings the manifests of all attempts to what the journal says; attempts whose process is gone become `interrupted`.
/// To be called by the owner of the run before it starts anything. The value: how many were written.
pub fn rebuild(run: &RunDir, history: &History) -> Result<usize, ManifestError> {
    let mut written = 0;
    for (step, past) in history.steps() {
        for attempt in &past.attempts {
            if attempt.agent.is_none() && !run.node(step, attempt.number).is_dir() {
                // Computed steps have no folder.
                continue;
            }
            let there = store::load(run, step, attempt.number).ok();
            if let Some(mut manifest) = newer(run, step, attempt, there) {
                if manifest.parent_agent_id.is_none() {
                    manifest.parent_agent_id = parent(history, step, attempt);
                }
                store::make_folder(run, step, attempt.number)?;
                store::save(run, &manifest)?;
                written += 1;
            }
        }
    }
    Ok(written)
}

/// The agent that started it: the attempt of its parent that was at work then.
fn parent(history: &History, step: &StepAddr, attempt: &Attempt) -> Option<AgentId> {
    let Some(AddrPart::Child(_)) = step.parts().last() else { return None };
    let parent = history.step(step.above().last()?)?;
    let before = parent.attempts.iter().rev().find(|parent| parent.admitted <= attempt.admitted)?;
    before.agent.clone()
}

/// The manifest that should be there, where it is not that already.
fn newer(run: &RunDir, step: &StepAddr, attempt: &Attempt, there: Option<Manifest>) -> Option<Manifest> {
    let status = match &attempt.ended {
        Some((_, ended)) => build::status_of(ended.state)?,
        None => ManifestStatus::Interrupted,
    };
    let mine = |manifest: &Manifest| {
        manifest.run_id == run.id() && manifest.step == *step && manifest.attempt == attempt.number
    };
    let there = there.filter(mine);
    if there.as_ref().is_some_and(|manifest| manifest.status == status) {
        return None;
    }
    let mut manifest = there.unwrap_or_else(|| bare(run, step, attempt));
    manifest.status = status;
    manifest.waiting_for = None;
    if let Some((at, ended)) = &attempt.ended {
        manifest.completed_at = Some(*at);
        manifest.error.clone_from(&ended.error);
        manifest.error_class = ended.class;
        if manifest.usage.is_none() {
            manifest.usage =
                ended.usage.map(|usage| ManifestUsage { own: usage.into(), subtree: usage.into() });
        }
    }
    if let Some((turns, _)) = attempt.turn {
        manifest.turns = manifest.turns.or(Some(turns));
    }
    Some(manifest)
}

fn bare(run: &RunDir, step: &StepAddr, attempt: &Attempt) -> Manifest {
    let number = attempt.number;
    let output =
        [false, true].map(|json| run.output(step, number, json)).into_iter().find(|path| path.exists());
    Manifest {
        schema: SCHEMA,
        agent_id: attempt.agent.clone(),
        run_id: run.id(),
        step: step.clone(),
        attempt: number,
        name: step.to_string(),
        description: String::new(),
        subagent_type: None,
        model: None,
        permission_mode: None,
        tools: Vec::new(),
        status: ManifestStatus::Interrupted,
        created_at: attempt.admitted,
        started_at: None,
        completed_at: None,
        output_file: output,
        transcript_file: attempt.agent.is_some().then(|| run.transcript(step, number)),
        manifest_file: run.manifest(step, number),
        usage: None,
        turns: None,
        tool_calls: BTreeMap::new(),
        error: None,
        error_class: None,
        waiting_for: None,
        artifacts: Vec::new(),
        base_commit: None,
        worktree: None,
        branch: None,
        parent_agent_id: None,
        pid: None,
        boot_id: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::record::{EndState, Ended, Entry, Record, VERSION};
    use crate::manifest::build::tests::facts;
    use crate::manifest::build::{Standing, StepFacts};
    use claw_kernel::clock::Timestamp;
    use claw_kernel::digest::Digest;
    use claw_kernel::ids::RunId;

    fn record(seq: u64, step: &StepAddr, entry: Entry) -> Record {
        let at = Timestamp::from_millis(1000 * seq as i64);
        Record { v: VERSION, seq, at, step: Some(step.clone()), attempt: Some(1), entry }
    }

    fn history(end: bool) -> History {
        let StepFacts { step, agent, .. } = facts();
        let set: StepAddr = "set".parse().unwrap();
        let mut records = vec![
            record(1, &step, Entry::Admitted { key: Digest::of("k"), agent }),
            record(2, &set, Entry::Admitted { key: Digest::of("k"), agent: None }),
        ];
        if end {
            let ended = Ended {
                state: EndState::Failed,
                key: None,
                output: None,
                error: Some("no".into()),
                class: None,
                retry: false,
                usage: None,
                denials: Vec::new(),
            };
            records.push(record(3, &step, Entry::Ended(ended)));
        }
        History::of(&records)
    }

    #[test]
    fn a_missing_manifest_comes_back_and_a_second_look_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::at(folder.path(), RunId::fresh());
        assert_eq!(rebuild(&run, &history(true)).unwrap(), 1);
        let manifest = store::load(&run, &facts().step, 1).unwrap();
        assert_eq!((manifest.status, manifest.error.as_deref()), (ManifestStatus::Failed, Some("no")));
        assert_eq!(rebuild(&run, &history(true)).unwrap(), 0);
        assert!(!run.node(&"set".parse().unwrap(), 1).exists());
    }

    #[test]
    fn the_manifest_of_a_child_comes_back_with_its_parent() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::at(folder.path(), RunId::fresh());
        let (parent, child) = (AgentId::fresh(), AgentId::fresh());
        let (step, below): (StepAddr, StepAddr) = ("lead".parse().unwrap(), "lead/+1".parse().unwrap());
        let admitted = |agent: &AgentId| Entry::Admitted { key: Digest::of("k"), agent: Some(agent.clone()) };
        let history =
            History::of(&[record(1, &step, admitted(&parent)), record(2, &below, admitted(&child))]);
        assert_eq!(rebuild(&run, &history).unwrap(), 2);
        let parent_of = |step| store::load(&run, step, 1).unwrap().parent_agent_id;
        assert_eq!((parent_of(&below), parent_of(&step)), (Some(parent), None));
    }

    #[test]
    fn one_that_still_says_running_keeps_what_it_knew_and_becomes_interrupted() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::at(folder.path(), RunId::fresh());
        store::make_folder(&run, &facts().step, 1).unwrap();
        let started_at = Timestamp::from_millis(1);
        store::write(&run, &facts(), &Standing::Running { started_at }).unwrap();
        assert_eq!(rebuild(&run, &history(false)).unwrap(), 1);
        let manifest = store::load(&run, &facts().step, 1).unwrap();
        assert_eq!((manifest.status, manifest.name.as_str()), (ManifestStatus::Interrupted, "edit"));
    }
}
