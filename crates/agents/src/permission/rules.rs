//! All rules of a process, and what they say of one call. Pure but for links that paths are resolved through.
//!
//! Owns which rule meets which call. Must not know modes, hooks or who answers.

use super::pattern::{Anchored, Meant, is_host, normal};
use super::rule::{Kind, Rule, RuleError, Subject, Text};
use super::shell::{Analysis, Doubt, SimpleCommand, analyse};
use crate::settings::{Scope, Sourced};
use claw_tools::files::paths;
use claw_tools::tool::Effect;
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Keys of tools that a rule for reading is about.
const READERS: &[&str] = &["readfile", "read", "view", "notebookread"];
/// Keys of tools that a rule for writing is about.
const WRITERS: &[&str] =
    &["editfile", "edit", "strreplace", "writefile", "write", "createfile", "multiedit", "notebookedit"];
/// Workspaces whose paths are kept.
const MOST_ANCHORED: usize = 64;

/// All rules, in the order in which they were added. Deny, ask and allow are looked at in this order whatever that is.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
    anchored: Mutex<HashMap<PathBuf, Arc<Vec<Vec<Anchored>>>>>,
}

impl Clone for RuleSet {
    fn clone(&self) -> Self {
        Self { rules: self.rules.clone(), anchored: Mutex::default() }
    }
}

/// One call, as rules see it.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The tool's name.
    pub tool: &'a str,
    /// Its other names.
    pub aliases: &'a [&'a str],
    /// As the model wrote it.
    pub input: &'a Value,
    /// What it would do.
    pub effect: &'a Effect,
    /// The agent's workspace, resolved.
    pub workspace: &'a Path,
    /// The folder that it is in.
    pub folder: &'a Path,
}

/// What the rules say of a call.
#[derive(Clone, Debug, Default)]
pub struct Said<'r> {
    /// The first rule that denies it.
    pub deny: Option<&'r Rule>,
    /// The first rule that would deny it, if what cannot be read means that.
    pub perhaps: Option<&'r Rule>,
    /// The first rule that asks for it.
    pub ask: Option<&'r Rule>,
    /// What allows it.
    pub allow: Allowed<'r>,
}

/// Whether rules allow a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Allowed<'r> {
    /// No rule speaks of it.
    #[default]
    No,
    /// A rule for the whole tool.
    Tool(&'r Rule),
    /// Rules that name what it does.
    Named(&'r Rule),
    /// Only a part of it is named, or its tool is allowed for named inputs alone.
    Partly {
        /// The rule that is about the rest, or about other inputs.
        rule: &'r Rule,
        /// What is not named: commands, or why the line is not certain.
        rest: Vec<String>,
    },
}

impl RuleSet {
    /// No rules.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one.
    ///
    /// # Errors
    /// It is no rule; the error says where it stands.
    pub fn add(&mut self, kind: Kind, rule: Sourced<String>) -> Result<(), RuleError> {
        let rule = Rule::parse(kind, rule)?;
        let is_known = self.rules.iter().any(|own| own.kind == kind && own.text == rule.text);
        if !is_known {
            self.rules.push(rule);
            self.anchored.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        Ok(())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rule that denies a tool whatever its input is.
    pub fn denies_tool(&self, name: &str, aliases: &[&str]) -> Option<&Rule> {
        self.of(Kind::Deny).map(|(_, rule)| rule).find(|rule| rule.is_whole() && rule.names(name, aliases))
    }

    /// What no tool may read, for an agent in this workspace: for tools that meet files on their way, and for the
    /// sandbox.
    pub fn denied_reads(&self, workspace: &Path) -> Vec<Anchored> {
        let anchored = self.anchors(workspace);
        let reads = self.of(Kind::Deny).filter(|(_, rule)| rule.is_of_family(READERS) && !rule.is_whole());
        reads.flat_map(|(at, _)| anchored.get(at).cloned().unwrap_or_default()).collect()
    }

    /// What they say of a call.
    pub fn about(&self, call: &Call<'_>) -> Said<'_> {
        let subject = Subject::of(call.input);
        if self.rules.is_empty() {
            return Said::default();
        }
        let line = match (&call.effect.executes, &subject) {
            (Some(line), _) | (None, Subject::Command(line)) => Some(line.clone()),
            (None, Subject::Path(_) | Subject::Url(_) | Subject::Text(_)) => None,
        };
        let anchored = self.anchors(call.workspace);
        let seen = Seen { call, subject, line: line.map(|text| (analyse(&text), text)), anchored: &anchored };
        let mut said = Said::default();
        for (at, rule) in self.of(Kind::Deny) {
            match seen.closes(at, rule) {
                Meant::Yes => {
                    said.deny = Some(rule);
                    break;
                }
                Meant::Perhaps => said.perhaps = said.perhaps.or(Some(rule)),
                Meant::No => {}
            }
        }
        let asks = self.of(Kind::Ask).find(|(at, rule)| seen.closes(*at, rule) != Meant::No);
        said.ask = asks.map(|(_, rule)| rule);
        let allows: Vec<(usize, &Rule)> = self
            .of(Kind::Allow)
            .filter(|(_, rule)| {
                let reads = call.effect.is_read_only() && !call.effect.reads.is_empty();
                rule.names(call.tool, call.aliases) || (reads && rule.is_of_family(READERS))
            })
            .collect();
        said.allow = seen.allowed(&allows);
        said
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = (usize, &Rule)> {
        self.rules.iter().enumerate().filter(move |(_, rule)| rule.kind == kind)
    }

    /// The paths of each rule, from the root on.
    fn anchors(&self, workspace: &Path) -> Arc<Vec<Vec<Anchored>>> {
        let mut known = self.anchored.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(anchored) = known.get(workspace) {
            return Arc::clone(anchored);
        }
        if known.len() >= MOST_ANCHORED {
            known.clear();
        }
        let anchored = Arc::new(self.rules.iter().map(|rule| anchor(rule, workspace)).collect::<Vec<_>>());
        known.insert(workspace.to_owned(), Arc::clone(&anchored));
        anchored
    }
}

/// Relative paths of a project's file count from that project and from the workspace; all others from the workspace.
fn anchor(rule: &Rule, workspace: &Path) -> Vec<Anchored> {
    let Text::Pattern(pattern) = &rule.of else { return Vec::new() };
    let mut folders = vec![workspace];
    let own = rule.origin.file.as_deref().filter(|_| rule.origin.scope.is_of_repository());
    let own =
        own.and_then(Path::parent).map(|folder| match folder.file_name().and_then(|name| name.to_str()) {
            Some(".claw" | ".claude") => folder.parent().unwrap_or(folder),
            Some(_) | None => folder,
        });
    folders.extend(own.filter(|own| *own != workspace));
    pattern.path.anchored(&folders, rule.kind != Kind::Allow)
}

struct Seen<'a> {
    call: &'a Call<'a>,
    subject: Subject,
    line: Option<(Analysis, String)>,
    anchored: &'a [Vec<Anchored>],
}

impl Seen<'_> {
    /// For rules that deny or ask.
    fn closes(&self, at: usize, rule: &Rule) -> Meant {
        let effect = self.call.effect;
        if !rule.names(self.call.tool, self.call.aliases) {
            return match rule.of {
                Text::Pattern(_) if rule.is_of_family(READERS) => self.touches_paths(at, &effect.reads, true),
                Text::Pattern(_) if rule.is_of_family(WRITERS) => {
                    self.touches_paths(at, &effect.writes, false)
                }
                Text::Pattern(_) | Text::Any | Text::Domain(_) => Meant::No,
            };
        }
        let pattern = match &rule.of {
            Text::Any => return Meant::Yes,
            Text::Domain(wanted) => return self.host(wanted),
            Text::Pattern(pattern) => pattern,
        };
        if let Some((analysis, line)) = &self.line {
            return closes_line(&pattern.command, analysis, line);
        }
        match &self.subject {
            Subject::Path(_) => {
                let all: Vec<PathBuf> = effect.reads.iter().chain(&effect.writes).cloned().collect();
                self.touches_paths(at, &all, false)
            }
            Subject::Command(text) | Subject::Url(text) | Subject::Text(text) => {
                let is_path = !effect.reads.is_empty() || !effect.writes.is_empty();
                let all: Vec<PathBuf> = effect.reads.iter().chain(&effect.writes).cloned().collect();
                let by_path = if is_path { self.touches_paths(at, &all, false) } else { Meant::No };
                by_path.max(text_is(pattern, text))
            }
        }
    }

    /// Whether one of these paths, or a path in the command line, is meant.
    fn touches_paths(&self, at: usize, touched: &[PathBuf], reads: bool) -> Meant {
        let Some(anchored) = self.anchored.get(at) else { return Meant::No };
        let typed = match &self.subject {
            Subject::Path(text) => Some(normal(&paths::absolute(text, self.call.folder))),
            Subject::Command(_) | Subject::Url(_) | Subject::Text(_) => None,
        };
        let is_meant = |path: &Path| anchored.iter().any(|own| own.holds(path));
        if touched.iter().any(|path| is_meant(path) || anchored.iter().any(|own| own.is_same_file(path)))
            || (!touched.is_empty() && typed.is_some_and(|typed| is_meant(&typed)))
        {
            return Meant::Yes;
        }
        let Some((analysis, _)) = &self.line else { return Meant::No };
        let words = analysis.commands.iter().flat_map(|command| {
            let named = if reads { &command.reads } else { &command.writes };
            // A command may read any of its words; written is what a redirection names.
            named.iter().chain(if reads { command.words.as_slice() } else { &[] })
        });
        let texts = words.filter_map(|word| word.known()).flat_map(|text| {
            let value = text.split_once('=').map(|(_, value)| value);
            [Some(text), value].into_iter().flatten()
        });
        let mut paths = texts.map(|text| paths::absolute(text, self.call.folder));
        if paths.any(|path| is_meant(&normal(&path)) || is_meant(&paths::resolve(&path))) {
            return Meant::Yes;
        }
        Meant::No
    }

    fn host(&self, wanted: &str) -> Meant {
        let Subject::Url(text) = &self.subject else { return Meant::No };
        match host_of(text) {
            Some(host) if is_host(wanted, &host) => Meant::Yes,
            Some(_) => Meant::No,
            None => Meant::Perhaps,
        }
    }

    fn allowed<'r>(&self, rules: &[(usize, &'r Rule)]) -> Allowed<'r> {
        if let Some((_, rule)) = rules.iter().find(|(_, rule)| rule.is_whole()) {
            return Allowed::Tool(rule);
        }
        let Some((analysis, line)) = &self.line else {
            let named = rules.iter().find(|(at, rule)| self.opens(*at, rule));
            return named.map_or_else(|| only_named(rules, Vec::new()), |(_, rule)| Allowed::Named(rule));
        };
        let patterns = || {
            rules.iter().filter_map(|(_, rule)| match &rule.of {
                Text::Pattern(pattern) => Some((*rule, &pattern.command)),
                Text::Any | Text::Domain(_) => None,
            })
        };
        if let Some((rule, _)) = patterns().find(|(_, pattern)| pattern.is_line(line)) {
            return Allowed::Named(rule);
        }
        let mut covering = None;
        let mut rest = Vec::new();
        for command in &analysis.commands {
            if command.is_transparent && command.assignments.is_empty() && command.writes.is_empty() {
                continue;
            }
            match patterns().find(|(_, pattern)| pattern.covers(command)) {
                Some((rule, _)) => covering = Some(rule),
                None => rest.push(command),
            }
        }
        rest_of(rules, covering, rest, analysis, &|command| {
            patterns().find(|(_, pattern)| pattern.is_about(command)).map(|(rule, _)| rule)
        })
    }

    fn opens(&self, at: usize, rule: &Rule) -> bool {
        let effect = self.call.effect;
        match &rule.of {
            Text::Any => true,
            Text::Domain(wanted) => self.host(wanted) == Meant::Yes,
            Text::Pattern(pattern) => {
                let touched: Vec<&PathBuf> = effect.reads.iter().chain(&effect.writes).collect();
                if touched.is_empty() {
                    let (Subject::Command(text)
                    | Subject::Path(text)
                    | Subject::Url(text)
                    | Subject::Text(text)) = &self.subject;
                    return text_is(pattern, text) == Meant::Yes;
                }
                let anchored = self.anchored.get(at).map(Vec::as_slice).unwrap_or_default();
                touched.iter().all(|path| anchored.iter().any(|own| own.opens(path)))
            }
        }
    }
}

/// What is left of a line behind the rules that allow some of it.
fn rest_of<'r>(
    rules: &[(usize, &'r Rule)],
    covering: Option<&'r Rule>,
    rest: Vec<&SimpleCommand>,
    analysis: &Analysis,
    touching: &dyn Fn(&SimpleCommand) -> Option<&'r Rule>,
) -> Allowed<'r> {
    if let (Some(rule), true, true) = (covering, rest.is_empty(), analysis.doubts.is_empty()) {
        return Allowed::Named(rule);
    }
    // `A=b git diff` is not what `git diff` allows, yet that rule is about it.
    let about = covering.or_else(|| rest.iter().find_map(|command| touching(command)));
    let mut told: Vec<String> = rest.iter().map(|command| command.shown()).collect();
    told.extend(analysis.doubts.iter().map(Doubt::to_string));
    match about {
        Some(rule) => Allowed::Partly { rule, rest: told },
        None => only_named(rules, told),
    }
}

/// Whoever lists inputs of a tool on the command line means those and no others.
fn only_named<'r>(rules: &[(usize, &'r Rule)], rest: Vec<String>) -> Allowed<'r> {
    let listed = rules.iter().find(|(_, rule)| rule.origin.scope == Scope::Flag);
    listed.map_or(Allowed::No, |(_, rule)| Allowed::Partly { rule, rest })
}

fn closes_line(pattern: &super::pattern::CommandPattern, analysis: &Analysis, line: &str) -> Meant {
    if pattern.is_line(line) {
        return Meant::Yes;
    }
    let mut meant =
        analysis.commands.iter().map(|command| pattern.touches(command)).max().unwrap_or(Meant::No);
    if analysis.doubts.is_empty() || meant == Meant::Yes {
        return meant;
    }
    meant = meant.max(Meant::Perhaps);
    let is_unread = analysis.is_cut || analysis.doubts.contains(&Doubt::Syntax);
    if is_unread && pattern.stands_in(line) { Meant::Yes } else { meant }
}

fn text_is(pattern: &super::rule::Pattern, text: &str) -> Meant {
    let is_meant = if pattern.is_prefix {
        text.starts_with(&pattern.text)
    } else {
        super::pattern::glob(&pattern.text, text)
    };
    if is_meant { Meant::Yes } else { Meant::No }
}

/// The host of an address, as it will be asked for.
pub(super) fn host_of(address: &str) -> Option<String> {
    let url = url::Url::parse(address.trim()).ok()?;
    url.host_str().map(str::to_lowercase)
}

#[cfg(test)]
mod tests;
