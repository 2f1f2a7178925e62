//! `skills/<name>/SKILL.md`: knowledge that a model loads when it needs it.

use super::find::Source;
use super::frontmatter::{Document, Flaw, HeadValue};
use std::path::{Path, PathBuf};

/// Keys that mean something here, or are known from elsewhere.
const KEYS: [&str; 14] = [
    "name",
    "description",
    "allowedtools",
    "tools",
    "model",
    "version",
    "license",
    "metadata",
    "userinvocable",
    "disablemodelinvocation",
    "argumenthint",
    "whentouse",
    "author",
    "context",
];
/// Longest description that a model is told of each.
const MOST_DESCRIPTION: usize = 1_024;

/// A skill as a file defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillFile {
    /// What it is called by.
    pub name: String,
    /// When it is of use.
    pub description: String,
    /// Rules that let its tools run without a question, as written.
    pub allowed_tools: Vec<String>,
    /// A model for it.
    pub model: Option<String>,
    /// People may call it as a slash command.
    pub user_invocable: bool,
    /// Models may call it.
    pub model_invocable: bool,
    /// Shown behind its name.
    pub argument_hint: Option<String>,
    /// The folder with its other files.
    pub folder: PathBuf,
    /// The text.
    pub body: String,
}

impl SkillFile {
    /// Reads one; `path`: of its SKILL.md.
    pub(super) fn read(path: &Path, text: &str, source: &Source) -> (Option<Self>, Vec<Flaw>) {
        let Document { head, body, mut flaws, .. } = Document::parse(text);
        let folder = path.parent().unwrap_or(path).to_owned();
        let stem = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name = head.text("name").unwrap_or(stem);
        let description = head.text("description").unwrap_or_else(|| {
            flaws.push(Flaw::warning(1, "no `description`: models cannot tell when the skill is of use"));
            first_line(&body)
        });
        for (key, value) in head.iter() {
            if !KEYS.contains(&key) {
                flaws.push(Flaw::warning(value.line, format!("`{key}` means nothing to claw; it is kept")));
            }
        }
        let flag = |key: &str| head.get(key).and_then(HeadValue::flag);
        let skill = Self {
            name: source.qualified(&name),
            description: description.chars().take(MOST_DESCRIPTION).collect(),
            allowed_tools: head.items("allowedTools").or_else(|| head.items("tools")).unwrap_or_default(),
            model: head.text("model").filter(|model| !model.eq_ignore_ascii_case("inherit")),
            user_invocable: flag("userInvocable").unwrap_or(true),
            model_invocable: !flag("disableModelInvocation").unwrap_or(false),
            argument_hint: hint(head.get("argumentHint")),
            folder,
            body,
        };
        (Some(skill), flaws)
    }
}

/// `argument-hint: [path]` is a list to YAML and a text to people.
pub(super) fn hint(value: Option<&HeadValue>) -> Option<String> {
    let value = value?;
    match value.text() {
        Some(text) => Some(text),
        None => Some(value.items().iter().map(|item| format!("[{item}]")).collect::<Vec<_>>().join(" ")),
    }
    .filter(|hint| !hint.is_empty())
}

fn first_line(body: &str) -> String {
    let line = body.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.trim_start_matches('#').trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skill_knows_its_folder_and_who_may_call_it() {
        let text = "---\nname: pdf\ndescription: Reads PDF.\nlicense: MIT\nallowed-tools: Bash(pdftotext:*), Read\ndisable-model-invocation: true\nargument-hint: [file]\n---\nDo it.";
        let (skill, flaws) = SkillFile::read(Path::new("/s/pdf/SKILL.md"), text, &Source::User);
        let skill = skill.unwrap();
        assert_eq!(flaws, []);
        assert_eq!((skill.name.as_str(), skill.folder.as_path()), ("pdf", Path::new("/s/pdf")));
        assert_eq!(skill.allowed_tools, ["Bash(pdftotext:*)", "Read"]);
        assert!(skill.user_invocable && !skill.model_invocable);
        assert_eq!(skill.argument_hint.as_deref(), Some("[file]"));
    }
}
