//! What a call changed in a file, as lines for people. Pure.

use serde_json::Value;

/// Lines that are told.
const MOST: usize = 400;

/// The lines of the hunks in the data of a result, each through `shown`; a head before each hunk.
pub(super) fn changed_lines(data: &Value, shown: impl Fn(&str) -> String) -> Vec<String> {
    let Some(hunks) = data["structuredPatch"].as_array() else { return Vec::new() };
    let mut lines = Vec::new();
    for hunk in hunks {
        let number = |key: &str| hunk[key].as_u64().unwrap_or(0);
        lines.push(format!(
            "@@ -{},{} +{},{} @@",
            number("oldStart"),
            number("oldLines"),
            number("newStart"),
            number("newLines")
        ));
        let all = hunk["lines"].as_array().into_iter().flatten();
        lines.extend(all.filter_map(Value::as_str).map(&shown));
        if lines.len() >= MOST {
            lines.truncate(MOST);
            lines.push("… more lines changed".to_owned());
            return lines;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hunks_become_lines_with_a_head() {
        let hunk =
            json!({ "oldStart": 3, "oldLines": 1, "newStart": 3, "newLines": 1, "lines": ["-key", "+b"] });
        let data = json!({ "structuredPatch": [hunk] });
        let lines = changed_lines(&data, |line| line.replace("key", "[secret]"));
        assert_eq!(lines, ["@@ -3,1 +3,1 @@", "-[secret]", "+b"]);
        assert!(changed_lines(&json!({}), str::to_owned).is_empty());
        let many = json!({ "structuredPatch": [{ "lines": vec!["+x"; 5_000] }] });
        assert_eq!(changed_lines(&many, str::to_owned).len(), MOST + 1);
    }
}
