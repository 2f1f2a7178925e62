//! What a take was given: the file as it was, the plan, the inputs, the limits.

use super::{RunDir, RunDirError, SecretKey};
use claw_kernel::digest::Digest;
use claw_kernel::durable::{self, Mode, Sync};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An input as it lies on disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputOnDisk {
    /// As it was given.
    Value(Value),
    /// A secret: its keyed digest.
    Secret(Digest),
}

impl InputOnDisk {
    /// A value that may be seen, or the digest of one that may not.
    pub fn of(value: &Value, secret: bool, key: &SecretKey) -> Self {
        if secret { Self::Secret(key.digest(&value.to_string())) } else { Self::Value(value.clone()) }
    }

    /// Of all inputs, in their order: part of the take's record.
    pub fn digest(inputs: &IndexMap<String, Self>) -> serde_json::Result<Digest> {
        Ok(Digest::of(serde_json::to_vec(inputs)?))
    }
}

/// What is written for a take.
#[derive(Clone, Copy, Debug)]
pub struct TakeFiles<'a> {
    /// The workflow file's text.
    pub source: &'a str,
    /// The expanded plan.
    pub plan: &'a KeptPlan,
    /// By id.
    pub inputs: &'a IndexMap<String, InputOnDisk>,
    /// As they hold.
    pub limits: &'a Value,
}

/// `plan.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptPlan {
    /// The plan, for people and for comparing.
    pub plan: Value,
    /// The static part of each node's key, by the node's path.
    pub static_keys: IndexMap<String, Digest>,
}

impl TakeFiles<'_> {
    /// Writes the files of that take.
    pub fn write(&self, run: &RunDir, take: u32) -> Result<(), RunDirError> {
        let folder = run.take(take);
        durable::private_dir(&folder).map_err(RunDirError::io(&folder))?;
        let shape = |source| RunDirError::Shape { path: folder.clone(), source };
        let files = [
            ("workflow.toml", self.source.as_bytes().to_vec()),
            ("plan.json", serde_json::to_vec_pretty(self.plan).map_err(shape)?),
            ("inputs.json", serde_json::to_vec_pretty(self.inputs).map_err(shape)?),
            ("limits.json", serde_json::to_vec_pretty(self.limits).map_err(shape)?),
        ];
        for (name, bytes) in files {
            let path = folder.join(name);
            durable::replace(&path, &bytes, Mode::Private, Sync::No).map_err(RunDirError::io(&path))?;
        }
        Ok(())
    }
}

/// The inputs of an earlier take, as they were kept.
pub fn inputs_of(run: &RunDir, take: u32) -> Result<IndexMap<String, InputOnDisk>, RunDirError> {
    let path = run.take(take).join("inputs.json");
    let bytes = super::runs::read_small(&path)?;
    serde_json::from_slice(&bytes).map_err(|source| RunDirError::Shape { path, source })
}

impl KeptPlan {
    /// The plan of an earlier take: tells which part of a key changed.
    pub fn read(run: &RunDir, take: u32) -> Result<Self, RunDirError> {
        let path = run.take(take).join("plan.json");
        let bytes = super::runs::read_small(&path)?;
        serde_json::from_slice(&bytes).map_err(|source| RunDirError::Shape { path, source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use claw_kernel::ids::RunId;
    use serde_json::json;

    #[test]
    fn a_take_is_kept_and_no_secret_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunDir::at(folder.path(), RunId::fresh());
        let key = SecretKey::load_or_make(&folder.path().join("key")).unwrap();
        let inputs = IndexMap::from([
            ("base".to_owned(), InputOnDisk::of(&json!("HEAD~1"), false, &key)),
            ("token".to_owned(), InputOnDisk::of(&json!("very-secret"), true, &key)),
        ]);
        let static_keys = IndexMap::from([("a".to_owned(), Digest::of("a"))]);
        let plan = KeptPlan { plan: json!({"nodes": []}), static_keys };
        let files = TakeFiles { source: "schema = 1\n", plan: &plan, inputs: &inputs, limits: &json!({}) };
        files.write(&run, 2).unwrap();
        assert_eq!(std::fs::read_to_string(run.take(2).join("workflow.toml")).unwrap(), "schema = 1\n");
        let text = std::fs::read_to_string(run.take(2).join("inputs.json")).unwrap();
        assert!(text.contains("HEAD~1") && !text.contains("very-secret"), "{text}");
        assert_eq!(KeptPlan::read(&run, 2).unwrap(), plan);
    }
}
