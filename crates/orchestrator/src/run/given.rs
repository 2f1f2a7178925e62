//! What a take was given: values as expressions see them and as they lie on disk, and what differs from the take before.

use super::error::RunError;
use super::start::RunOptions;
use crate::expr::{Data, InputView};
use crate::plan::model::Plan;
use crate::rundir::{self, InputOnDisk, RunDir, SecretKey};
use indexmap::IndexMap;

/// The inputs of a take.
pub(super) struct Given {
    /// As expressions see them.
    pub views: IndexMap<String, InputView>,
    /// As they are kept: secrets as digests.
    pub on_disk: IndexMap<String, InputOnDisk>,
}

impl Given {
    /// Of a plan whose values were checked. A secret's digest is keyed for this run alone.
    pub fn of(plan: &Plan, options: &RunOptions, run: &RunDir) -> Result<Self, RunError> {
        let key = match plan.inputs.values().any(|input| input.secret) {
            true => Some(key(options, run)?),
            false => None,
        };
        let mut given = Self { views: IndexMap::new(), on_disk: IndexMap::new() };
        for (id, input) in &plan.inputs {
            let kept = match (&key, input.secret) {
                (Some(key), true) => InputOnDisk::of(&input.value, true, key),
                (Some(_) | None, _) => InputOnDisk::Value(input.value.clone()),
            };
            let keyed = match &kept {
                InputOnDisk::Secret(digest) => Some(*digest),
                InputOnDisk::Value(_) => None,
            };
            let view = InputView { value: Data::new(input.value.clone()), fenced: input.fenced, keyed };
            given.views.insert(id.clone(), view);
            given.on_disk.insert(id.clone(), kept);
        }
        Ok(given)
    }

    /// A word on each secret that is not the one of the take before: nobody sees it elsewhere.
    pub fn differing_secrets(&self, run: &RunDir, before: u32) -> Vec<String> {
        let Ok(then) = rundir::inputs_of(run, before) else { return Vec::new() };
        let differs = |(id, now): (&String, &InputOnDisk)| match (then.get(id), now) {
            (Some(InputOnDisk::Secret(then)), InputOnDisk::Secret(now)) if then != now => Some(format!(
                "the secret input `{id}` is not the one of take {before}: what uses it runs again"
            )),
            (Some(InputOnDisk::Secret(_) | InputOnDisk::Value(_)) | None, _) => None,
        };
        self.on_disk.iter().filter_map(differs).collect()
    }
}

fn key(options: &RunOptions, run: &RunDir) -> Result<SecretKey, RunError> {
    let path = options.secret_key.clone();
    let own = SecretKey::load_or_make(&path).map_err(|source| RunError::Write { path, source })?;
    Ok(own.of_run(run.id()))
}
