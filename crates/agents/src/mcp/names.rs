//! Names of a server's tools as models and rules know them: `mcp__SERVER__TOOL`. Pure.

use claw_kernel::digest::Digest;

/// What services take.
const MOST: usize = 64;
/// Hex digits that tell names apart that would be the same.
const MARK: usize = 8;

/// The name of a tool. The same for the same pair, always; two pairs never share one.
pub(super) fn tool_name(server: &str, tool: &str) -> String {
    let (clean_server, clean_tool) = (clean(server), clean(tool));
    let plain = format!("mcp__{clean_server}__{clean_tool}");
    // With two underscores inside, `a__b` and `c` would meet `a` and `b__c`.
    let is_clear = !clean_server.contains("__") && !clean_tool.contains("__") && !clean_server.ends_with('_');
    let is_itself = clean_server == server && clean_tool == tool;
    if is_itself && is_clear && plain.len() <= MOST && !clean_tool.starts_with('_') {
        return plain;
    }
    let mark = Digest::of_parts([server, tool]).hex();
    let room = MOST - MARK - 1;
    format!("{}_{}", &plain[..plain.len().min(room)], &mark[..MARK])
}

/// What rules and lists call a server.
pub(super) fn clean(name: &str) -> String {
    let clean: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' })
        .collect();
    if clean.is_empty() { "_".to_owned() } else { clean }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn names_are_legal_different_and_stable() {
        let (long, longer) = ("a".repeat(70), "a".repeat(70) + "b");
        let pairs = [
            ("docs", "find"),
            ("docs", long.as_str()),
            ("docs", longer.as_str()),
            ("docs", "has space"),
            ("docs", "has_space"),
            ("docs", "dots.and/slash"),
            ("docs", "漢字"),
            ("docs", "\u{1b}[2J"),
            ("docs", ""),
            ("a__b", "c"),
            ("a", "b__c"),
            ("a_", "_b"),
            ("a", "__b"),
            ("a__", "b"),
        ];
        let names: Vec<String> = pairs.iter().map(|(server, tool)| tool_name(server, tool)).collect();
        for name in &names {
            let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            assert!((1..=64).contains(&name.len()) && name.chars().all(is_legal), "{name}");
        }
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), pairs.len(), "{names:?}");
        assert_eq!(names[0], "mcp__docs__find");
        assert_eq!(names[1], tool_name("docs", &long));
    }
}
