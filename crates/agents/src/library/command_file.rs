//! `commands/**/*.md`: prompts that people call as slash commands.

use super::find::Source;
use super::frontmatter::{Document, Flaw, HeadValue};
use super::skill_file::hint;
use super::words::arguments;
use std::path::Path;

const KEYS: [&str; 13] = [
    "name",
    "description",
    "argumenthint",
    "allowedtools",
    "tools",
    "model",
    "disablemodelinvocation",
    "version",
    "tags",
    "hidefromslashcommandtool",
    "toolaccess",
    "globs",
    "keywords",
];

/// A part of a command's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// As it is; arguments are put in already.
    Text(String),
    /// `` !`command` ``: its output stands here, once it was allowed to run.
    Command(String),
    /// `@path`: the file's text stands here.
    File(String),
}

/// A slash command as a file defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandFile {
    /// Without the slash; folders joined by `:`.
    pub name: String,
    /// For lists and completion.
    pub description: String,
    /// Shown behind its name.
    pub argument_hint: Option<String>,
    /// Rules that let its commands and tools run without a question, as written.
    pub allowed_tools: Vec<String>,
    /// A model for it.
    pub model: Option<String>,
    /// Models may call it through the skill tool.
    pub model_invocable: bool,
    /// The text as written.
    pub body: String,
}

impl CommandFile {
    /// Reads one; `below`: its path below the folder of commands.
    pub(super) fn read(below: &Path, text: &str, source: &Source) -> (Option<Self>, Vec<Flaw>) {
        let Document { head, body, mut flaws, .. } = Document::parse(text);
        for (key, value) in head.iter() {
            if !KEYS.contains(&key) {
                flaws.push(Flaw::warning(value.line, format!("`{key}` means nothing to claw; it is kept")));
            }
        }
        let path = below.with_extension("");
        let name: Vec<_> =
            path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect();
        let flag = |key: &str| head.get(key).and_then(HeadValue::flag);
        let command = Self {
            name: source.qualified(&name.join(":")),
            description: head.text("description").unwrap_or_else(|| first_line(&body)),
            argument_hint: hint(head.get("argumentHint")),
            allowed_tools: head.items("allowedTools").or_else(|| head.items("tools")).unwrap_or_default(),
            model: head.text("model").filter(|model| !model.eq_ignore_ascii_case("inherit")),
            model_invocable: !flag("disableModelInvocation").unwrap_or(false),
            body,
        };
        (Some(command), flaws)
    }

    /// The text with its arguments, taken apart: `$ARGUMENTS`, `$1` … `$9`. What an argument holds is text, whatever
    /// it looks like. A text that names no argument gets them at its end.
    pub fn expand(&self, typed: &str) -> Vec<Piece> {
        let words = arguments(typed);
        let mut pieces = Vec::new();
        for piece in pieces_of(&self.body) {
            pieces.push(match piece {
                Piece::Text(text) => Piece::Text(put_in(&text, typed, &words)),
                Piece::Command(line) => Piece::Command(put_in(&line, typed, &words)),
                Piece::File(path) => Piece::File(put_in(&path, typed, &words)),
            });
        }
        let names_one =
            self.body.contains("$ARGUMENTS") || (1..=9).any(|n| self.body.contains(&format!("${n}")));
        if !names_one && !typed.trim().is_empty() {
            pieces.push(Piece::Text(format!("\n\nARGUMENTS: {}", typed.trim())));
        }
        pieces
    }
}

fn put_in(text: &str, typed: &str, words: &[String]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        if let Some(after) = after.strip_prefix("ARGUMENTS") {
            out.push_str(typed.trim());
            rest = after;
        } else if let Some(n) = after.chars().next().and_then(|c| c.to_digit(10)).filter(|n| *n > 0) {
            out.push_str(words.get(n as usize - 1).map_or("", String::as_str));
            rest = &after[1..];
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

/// `` !`…` `` and `@path` at the beginning of a word, outside of code fences.
fn pieces_of(body: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut is_fenced = false;
    for line in body.split_inclusive('\n') {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        }
        if is_fenced {
            text.push_str(line);
        } else {
            take_line(line, &mut text, &mut pieces);
        }
    }
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    pieces
}

fn take_line(line: &str, text: &mut String, pieces: &mut Vec<Piece>) {
    let mut rest = line;
    while let Some(at) = rest.find(['!', '@']) {
        let (before, from) = rest.split_at(at);
        let starts_word = before.chars().next_back().or_else(|| text.chars().next_back());
        let starts_word = starts_word.is_none_or(|c| c.is_whitespace() || matches!(c, '(' | ':'));
        text.push_str(before);
        let found = if starts_word { special(from) } else { None };
        match found {
            Some((piece, length)) => {
                if !text.is_empty() {
                    pieces.push(Piece::Text(std::mem::take(text)));
                }
                pieces.push(piece);
                rest = &from[length..];
            }
            None => {
                text.push_str(&from[..1]);
                rest = &from[1..];
            }
        }
    }
    text.push_str(rest);
}

/// A command or a file at the beginning of a text, and its length.
fn special(from: &str) -> Option<(Piece, usize)> {
    if let Some(rest) = from.strip_prefix("!`") {
        let end = rest.find('`')?;
        return Some((Piece::Command(rest[..end].to_owned()), end + 3));
    }
    let rest = from.strip_prefix('@')?;
    let end =
        rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | ';' | ')' | '`')).unwrap_or(rest.len());
    let path = rest[..end].trim_end_matches(['.', ':', '?', '!']);
    // `@name` alone is a mention as often as a file: a path has a dot, a slash or an argument in it.
    let is_path = !path.is_empty() && path.contains(['.', '/', '$', '~']);
    is_path.then(|| (Piece::File(path.to_owned()), path.len() + 1))
}

fn first_line(body: &str) -> String {
    let line = body.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    line.trim_start_matches('#').trim().chars().take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> CommandFile {
        CommandFile::read(Path::new("git/commit.md"), text, &Source::User).0.unwrap()
    }

    #[test]
    fn arguments_files_and_commands_are_told_apart() {
        let text = "---\ndescription: Commit\nargument-hint: [message]\nallowed-tools: Bash(git add:*), Bash(git status:*)\n---\nState: !`git status $1`\nLook at @src/$2 and mail a@b.c.\nSay $ARGUMENTS; cost $5.\n```\n!`not run`\n```\n";
        let command = command(text);
        assert_eq!(command.name, "git:commit");
        assert_eq!(command.allowed_tools, ["Bash(git add:*)", "Bash(git status:*)"]);
        let pieces = command.expand("-s 'x y.rs'");
        assert_eq!(pieces[0], Piece::Text("State: ".into()));
        assert_eq!(pieces[1], Piece::Command("git status -s".into()));
        assert_eq!(pieces[3], Piece::File("src/x y.rs".into()));
        let Piece::Text(end) = &pieces[4] else { panic!("{pieces:?}") };
        assert!(
            end.contains("mail a@b.c.")
                && end.contains("Say -s 'x y.rs'; cost .")
                && end.contains("!`not run`"),
            "{end}"
        );
    }

    #[test]
    fn an_argument_is_never_taken_for_a_command_or_a_file() {
        let pieces = command("Do $ARGUMENTS").expand("!`touch PWNED` @/etc/passwd");
        assert_eq!(pieces, [Piece::Text("Do !`touch PWNED` @/etc/passwd".into())]);
    }

    #[test]
    fn a_text_without_arguments_gets_them_at_its_end() {
        let pieces = command("Fix it.").expand("now");
        assert_eq!(pieces.last(), Some(&Piece::Text("\n\nARGUMENTS: now".into())));
    }
}
