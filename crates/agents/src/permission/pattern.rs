//! What a rule's text means for a command, for a path, for a host. Pure.

use super::shell::{Analysis, SimpleCommand, Word, analyse, rough_words};
use globset::{GlobBuilder, GlobMatcher};
use std::path::{Component, Path, PathBuf};

/// How surely something is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Meant {
    No,
    /// Nobody can know before it runs.
    Perhaps,
    Yes,
}

/// A rule's text, for commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandPattern {
    /// The whole text.
    text: String,
    /// Its words, where it is one simple command.
    words: Vec<String>,
    is_prefix: bool,
}

impl CommandPattern {
    pub(super) fn new(text: &str, is_prefix: bool) -> Self {
        // `npm run *` is another spelling of `npm run:*`.
        let (text, is_prefix) = match text.strip_suffix(" *") {
            Some(prefix) if !is_prefix => (prefix.trim_end(), true),
            Some(_) | None => (text, is_prefix),
        };
        Self { text: text.to_owned(), words: words_of(text), is_prefix }
    }

    /// The whole line is the very text of the rule.
    pub(super) fn is_line(&self, line: &str) -> bool {
        !self.is_prefix && self.text == line.trim()
    }

    /// For rules that open: the command is certainly meant, and nothing about it is not covered.
    pub(super) fn covers(&self, command: &SimpleCommand) -> bool {
        if !command.assignments.is_empty() || !command.writes.is_empty() || self.words.is_empty() {
            return false;
        }
        if command.words.iter().any(|word| word.is_trick) || (command.is_open_ended && !self.is_prefix) {
            return false;
        }
        self.compare(&command.words, false) == Meant::Yes
    }

    /// For rules that close: the command is meant, or may be.
    pub(super) fn touches(&self, command: &SimpleCommand) -> Meant {
        if self.words.is_empty() {
            return Meant::No;
        }
        let mut meant = self.compare(&command.words, true);
        if meant == Meant::No && command.is_open_ended && !self.is_prefix {
            // The missing words may be added when it runs.
            let begins = Self { is_prefix: true, ..self.clone() };
            let shorter = command.words.len() < self.words.len()
                && self
                    .words
                    .iter()
                    .zip(&command.words)
                    .all(|(own, word)| word.known() == Some(own.as_str()));
            if shorter || begins.compare(&command.words, true) != Meant::No {
                meant = Meant::Perhaps;
            }
        }
        if meant == Meant::No && command.runs_later_words {
            let later = (1..command.words.len()).map(|at| self.compare(&command.words[at..], true));
            meant = later.max().unwrap_or(Meant::No).min(Meant::Perhaps);
        }
        meant
    }

    /// The command is the rule's own, or is spelt so that nobody can tell it from that.
    pub(super) fn is_about(&self, command: &SimpleCommand) -> bool {
        let has_tricks = command.words.iter().any(|word| word.is_trick);
        let is_named = command.name().is_some_and(|name| self.words.first().is_some_and(|own| own == name));
        self.touches(command) != Meant::No || (has_tricks && is_named)
    }

    /// For rules that close, where a line could not be read: its words follow each other somewhere in it.
    pub(super) fn stands_in(&self, line: &str) -> bool {
        let rough: Vec<String> = rough_words(line).collect();
        let wanted = self.words.as_slice();
        !wanted.is_empty()
            && rough.windows(wanted.len()).any(|words| {
                let base = words[0].rsplit('/').next().unwrap_or_default();
                (glob(&wanted[0], base) || glob(&wanted[0], &words[0]))
                    && wanted[1..].iter().zip(&words[1..]).all(|(own, word)| glob(own, word))
            })
    }

    /// `closes`: the name counts without its folder, and options before a subcommand hide nothing.
    fn compare(&self, words: &[Word], closes: bool) -> Meant {
        let mut meant = Meant::Yes;
        for (at, own) in self.words.iter().enumerate() {
            let Some(word) = words.get(at) else { return Meant::No };
            let Some(text) = word.known() else {
                meant = Meant::Perhaps;
                continue;
            };
            let base = text.rsplit('/').next().unwrap_or(text);
            let is_same = glob(own, text) || (closes && at == 0 && glob(own, base));
            if !is_same {
                let is_option = closes && at == 1 && text.starts_with('-');
                return if is_option { self.behind_options(words) } else { Meant::No };
            }
        }
        if !self.is_prefix && words.len() != self.words.len() {
            // An open word may become none or many.
            let is_open =
                closes && words.iter().any(|word| word.is_open) && words.len() <= self.words.len() + 1;
            return if is_open { Meant::Perhaps } else { Meant::No };
        }
        meant
    }

    /// `git -C folder push` may be what `git push` means.
    fn behind_options(&self, words: &[Word]) -> Meant {
        let mut wanted = self.words[1..].iter().peekable();
        for word in &words[1..] {
            if let Some(own) = wanted.peek()
                && word.known().is_none_or(|text| glob(own, text))
            {
                wanted.next();
            }
        }
        if wanted.peek().is_none() { Meant::Perhaps } else { Meant::No }
    }
}

fn words_of(text: &str) -> Vec<String> {
    let Analysis { commands, doubts, .. } = analyse(text);
    match commands.first() {
        Some(first) if doubts.is_empty() && commands.len() == 1 || is_only_wrapped(text) => {
            // A `*` stands for anything here.
            first.words.iter().map(|word| word.text.clone()).collect()
        }
        Some(_) | None => text.split_whitespace().map(str::to_owned).collect(),
    }
}

/// A rule may be about a wrapper itself: `sudo apt`, `timeout 5 npm`.
fn is_only_wrapped(text: &str) -> bool {
    !text.contains([';', '&', '|', '\n', '(', '`', '<', '>'])
}

/// `*` is any text, all else itself.
pub(super) fn glob(pattern: &str, text: &str) -> bool {
    if !pattern.contains('*') {
        return pattern == text;
    }
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Whether a host is this one or below it.
pub(super) fn is_host(wanted: &str, host: &str) -> bool {
    let host = host.trim_end_matches('.').to_lowercase();
    let wanted = wanted.strip_prefix("*.").unwrap_or(wanted);
    wanted == "*" || host == wanted || host.strip_suffix(wanted).is_some_and(|rest| rest.ends_with('.'))
}

/// A rule's text, for paths: not yet anchored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathPattern {
    text: String,
    is_prefix: bool,
}

impl PathPattern {
    pub(super) fn new(text: &str, is_prefix: bool) -> Self {
        Self { text: text.to_owned(), is_prefix }
    }

    /// All that it means below these folders. `closes`: it holds in any folder below where it names none, and from any
    /// root.
    pub(super) fn anchored(&self, folders: &[&Path], closes: bool) -> Vec<Anchored> {
        let text = self.text.as_str();
        let mut patterns = Vec::new();
        if let Some(below) = text.strip_prefix("~/") {
            if let Some(home) = std::env::home_dir() {
                patterns.push(home.join(below));
            }
        } else if text.starts_with('/') {
            patterns.push(Path::new("/").join(text.trim_start_matches('/')));
            if closes && !text.starts_with("//") {
                patterns.extend(folders.iter().map(|folder| folder.join(text.trim_start_matches('/'))));
            }
        } else {
            let below = text.strip_prefix("./").unwrap_or(text);
            patterns.extend(folders.iter().map(|folder| folder.join(below)));
            if closes && !text.contains('/') {
                patterns.extend(folders.iter().map(|folder| folder.join("**").join(below)));
            }
        }
        patterns.iter().filter_map(|pattern| Anchored::new(pattern, self.is_prefix)).collect()
    }
}

/// A path or a glob from the root on.
#[derive(Clone, Debug)]
pub struct Anchored {
    /// Its part without signs, resolved.
    pub root: PathBuf,
    /// The rest, with signs; empty: the path and all below it.
    pub rest: String,
    /// The same without its links resolved.
    plain: PathBuf,
    glob: Option<GlobMatcher>,
}

impl Anchored {
    fn new(pattern: &Path, is_prefix: bool) -> Option<Self> {
        let is_sign =
            |part: &Component<'_>| part.as_os_str().to_string_lossy().contains(['*', '?', '[', '{']);
        let mut root = PathBuf::new();
        let mut rest: Vec<String> = Vec::new();
        for part in pattern.components() {
            if rest.is_empty() && !is_sign(&part) {
                root.push(part);
            } else {
                rest.push(part.as_os_str().to_string_lossy().into_owned());
            }
        }
        let mut rest = rest.join("/");
        if is_prefix && !rest.is_empty() {
            rest.push_str("{,/**}");
        }
        let glob = if rest.is_empty() {
            None
        } else {
            // A glob that is none is compared as a text.
            let built = GlobBuilder::new(&rest).literal_separator(true).build();
            Some(built.or_else(|_| GlobBuilder::new(&globset::escape(&rest)).build()).ok()?.compile_matcher())
        };
        Some(Self { plain: normal(&root), root: claw_tools::files::paths::resolve(&root), rest, glob })
    }

    /// For rules that close: whether a path is meant, or a folder above it. By component.
    pub fn holds(&self, path: &Path) -> bool {
        [&self.root, &self.plain].into_iter().any(|root| {
            let Ok(below) = path.strip_prefix(root) else { return false };
            match &self.glob {
                None => true,
                Some(glob) => {
                    below.ancestors().any(|part| !part.as_os_str().is_empty() && glob.is_match(part))
                }
            }
        })
    }

    /// For rules that open: whether this very path is meant, resolved.
    pub(super) fn opens(&self, path: &Path) -> bool {
        let Ok(below) = path.strip_prefix(&self.root) else { return false };
        self.glob.as_ref().is_none_or(|glob| glob.is_match(below))
    }

    /// Whether this file is the one that is named, under another name: a hard link, another case.
    pub fn is_same_file(&self, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        let identity =
            |path: &Path| std::fs::metadata(path).map(|meta| (meta.dev(), meta.ino(), meta.is_file()));
        if self.glob.is_some() {
            return false;
        }
        match (identity(&self.root), identity(path)) {
            (Ok(own), Ok(other)) => own == other && own.2,
            (Err(_), _) | (_, Err(_)) => false,
        }
    }
}

/// `..` and `.` taken out, links left.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut done = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                done.pop();
            }
            Component::CurDir => {}
            Component::RootDir | Component::Normal(_) | Component::Prefix(_) => done.push(part),
        }
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(line: &str) -> SimpleCommand {
        analyse(line).commands.remove(0)
    }
    fn pattern(text: &str) -> CommandPattern {
        match text.strip_suffix(":*") {
            Some(prefix) => CommandPattern::new(prefix, true),
            None => CommandPattern::new(text, false),
        }
    }

    #[test]
    fn a_prefix_is_of_words_and_opens_only_what_is_certain() {
        for (rule, line, covers) in [
            ("git status:*", "git status", true),
            ("git status:*", "git status -s $X", true),
            ("git status:*", "git  'status'", true),
            ("git status *", "git status -s", true),
            ("git status:*", "git statusx", false),
            ("git status:*", "git $X", false),
            ("git status:*", "/tmp/git status", false),
            ("git status:*", "A=b git status", false),
            ("git status:*", "git status > x", false),
            ("git status:*", "git status {a,b}", false),
            ("git status:*", "git status\r", false),
            ("git status", "git status", true),
            ("git status", "git status -s", false),
            ("npm run test*", "npm run test:unit", true),
            ("rm *.txt", "rm -rf / x.txt", false),
        ] {
            assert_eq!(pattern(rule).covers(&first(line)), covers, "{rule} | {line}");
        }
    }

    #[test]
    fn a_rule_that_closes_sees_more() {
        for (rule, line, meant) in [
            ("touch:*", "touch x", Meant::Yes),
            ("touch:*", "/usr/bin/touch x", Meant::Yes),
            ("touch:*", "A=b touch x > y", Meant::Yes),
            ("touch:*", "$A x", Meant::Perhaps),
            ("git push:*", "git -C . push", Meant::Perhaps),
            ("git push:*", "git p{ush,x}", Meant::Perhaps),
            ("git push:*", "git commit -m push", Meant::No),
            ("git push:*", "git status", Meant::No),
            ("touch:*", "strace -f touch x", Meant::Perhaps),
            ("touch x", "touch $X", Meant::Perhaps),
            ("touch x", "touch y", Meant::No),
            ("touch:*", "echo touch", Meant::No),
        ] {
            assert_eq!(pattern(rule).touches(&first(line)), meant, "{rule} | {line}");
        }
    }

    #[test]
    fn hosts_are_compared_at_dots() {
        assert!(is_host("example.org", "example.org") && is_host("example.org", "DOCS.example.org."));
        assert!(is_host("*.example.org", "docs.example.org"));
        assert!(
            !is_host("example.org", "evilexample.org") && !is_host("example.org", "example.org.evil.com")
        );
    }

    #[test]
    fn paths_are_compared_by_component() {
        let holds = |text: &str, path: &str, closes: bool| {
            let anchored = PathPattern::new(text, false).anchored(&[Path::new("/w/proj")], closes);
            anchored
                .iter()
                .any(|it| if closes { it.holds(Path::new(path)) } else { it.opens(Path::new(path)) })
        };
        for (text, path, opens, closes) in [
            ("./src/**", "/w/proj/src/a/b.rs", true, true),
            ("./src/**", "/w/proj/srcs/a.rs", false, false),
            ("src", "/w/proj/src/a.rs", true, true),
            ("src", "/w/proj/src-evil/a.rs", false, false),
            (".env", "/w/proj/sub/.env", false, true),
            ("./.env", "/w/proj/sub/.env", false, false),
            ("*.pem", "/w/proj/a/b.pem", false, true),
            ("**/*.pem", "/w/proj/a/b.pem", true, true),
            ("//etc/passwd", "/etc/passwd", true, true),
            ("/etc/passwd", "/etc/passwd", true, true),
            ("/secrets", "/w/proj/secrets/a", false, true),
            ("../other/x", "/w/other/x", true, true),
            ("src/*", "/w/proj/src/deep/a.rs", false, true),
        ] {
            assert_eq!(holds(text, path, false), opens, "opens {text} {path}");
            assert_eq!(holds(text, path, true), closes, "closes {text} {path}");
        }
    }
}
