//! Runs on disk: where each file of a run lies, how a run is made, taken, found and looked at.
//!
//! Owns paths and the small files of a run. Knows nothing of scheduling; what the journal says is the journal's.

mod error;
mod lock;
mod paths;
mod process;
mod project;
mod runs;
mod secret;
mod summary;
mod take;

pub use error::RunDirError;
pub use lock::{Holder, holder, named_owner, take_from_the_dead, take_lock, until_free};
pub use paths::RunDir;
pub use process::{boot_id, is_gone};
pub use project::{project_top, workflow_name_in};
pub(crate) use runs::read_small;
pub use runs::{NewRun, RUN_SCHEMA, RunFile, Runs, remove};
pub use secret::SecretKey;
pub use summary::{AttemptView, RunDetail, RunSummary, StepDetail, StepStatus, StepSummary};
pub use take::{InputOnDisk, KeptPlan, TakeFiles, inputs_of};
