//! Sets of tools that several roles share.

use crate::definition::ToolSet;

/// The tools that only read, among all that a build may offer: those that it lacks are left out.
const READING: [&str; 7] =
    ["read_file", "glob_search", "grep_search", "web_fetch", "web_search", "tool_search", "skill"];

/// Those that read, and `extra`.
pub(super) fn reading_and(extra: &[&str]) -> ToolSet {
    ToolSet::Only(READING.iter().chain(extra).map(|name| (*name).to_owned()).collect())
}
