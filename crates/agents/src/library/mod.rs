//! Files in which people keep agents, skills and commands: found, read, told apart by where they come from.
//!
//! Owns their heads, bodies and diagnostics. Must not know who runs an agent or shows a command. A file that is broken is
//! reported and left out; it never takes another one down.

mod agent_file;
mod command_file;
mod find;
mod frontmatter;
mod skill_file;
mod skill_tool;
mod words;

pub use agent_file::{AgentExtras, AgentFile};
pub use command_file::{CommandFile, Piece};
pub use find::{Entry, Library, Root, Source};
pub use frontmatter::{Document, Flaw, Frontmatter, HeadValue, Severity};
pub use skill_file::SkillFile;
pub use skill_tool::SkillTool;
