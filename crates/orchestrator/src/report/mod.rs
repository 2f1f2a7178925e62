//! What a run says: live events, the board that bars read, the report at the end. Drawn elsewhere.

pub mod board;
pub mod bus;
pub mod event;
pub mod json;
pub mod markdown;
pub mod plain;
pub mod reading;
pub mod run_report;
pub mod snapshot;
pub mod status;
mod words;

pub use run_report::{RunReport, StepReport};
