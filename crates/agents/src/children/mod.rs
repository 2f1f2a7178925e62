//! Children: the tool by which a model starts another agent, and the door to whoever schedules it.
//!
//! Owns what a model may ask for and what it is told. Must not know who decides, or when a child runs.

mod background;
mod spawner;
mod tool;

pub use background::{Background, BackgroundTool};
pub use spawner::{ChildSaid, ChildTask, SpawnRequest, Spawner};
pub(crate) use tool::task;
pub use tool::{AgentTool, TOOL, may_have_children};
