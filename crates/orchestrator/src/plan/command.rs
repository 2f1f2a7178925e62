//! Commands: what a shell would run is never a template (E160), and no expansion becomes an option (E161).

use super::agents::refused;
use super::build::{Build, Spot, Visible};
use super::model::{CommandLine, CommandOutput, CommandWork};
use crate::expr::Template;
use crate::workflow::file::{NodeFile, Section, Val, ValKind};
use crate::workflow::problem::Code;
use claw_agents::permission::shell::quoted;
use indexmap::IndexMap;

const INTERPRETERS: [&str; 9] = ["sh", "bash", "dash", "zsh", "fish", "python", "node", "perl", "ruby"];
const WRAPPERS: [&str; 5] = ["env", "timeout", "nice", "xargs", "sudo"];
const END_OF_OPTIONS: [&str; 2] = ["--", "--end-of-options"];

/// An argument that an expansion made an option (E161).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("argument {} of the command would be the option `{text}`; put \"--\" in front of it if the program knows that", index + 1)]
pub struct OptionLike {
    /// Place in `run`.
    pub index: usize,
    /// The expanded text, shortened.
    pub text: String,
}

/// Refuses an expanded argument that begins with `-` where the template does not, unless `--` or
/// `--end-of-options` stands before it.
///
/// # Errors
/// E161, for the first such argument.
pub fn check_argv(templates: &[Template], expanded: &[String]) -> Result<(), OptionLike> {
    for (index, (template, text)) in templates.iter().zip(expanded).enumerate() {
        if template.is_static() && END_OF_OPTIONS.contains(&text.as_str()) {
            return Ok(());
        }
        if !template.is_static() && text.starts_with('-') && !template.head().starts_with('-') {
            return Err(OptionLike { index, text: text[..text.floor_char_boundary(40)].to_owned() });
        }
    }
    Ok(())
}

impl CommandLine {
    /// As a shell would read it; what is not known before it runs is a variable there.
    fn line(&self) -> String {
        match self {
            Self::Shell(text) => text.clone(),
            Self::Argv(templates) => {
                let word = |template: &Template| match template.is_static() {
                    true => quoted(template.head()),
                    false => "\"$_\"".to_owned(),
                };
                templates.iter().map(word).collect::<Vec<_>>().join(" ")
            }
        }
    }
}

impl<'a> Build<'a> {
    pub(super) fn command(&mut self, node: &'a NodeFile, visible: &Visible<'_>) -> Option<CommandWork> {
        let keys = &node.keys;
        let run = keys.get("run")?;
        let spot = self.spot(node, "run", run);
        let run = match &run.kind {
            ValKind::List(list) => CommandLine::Argv(self.argv(&spot, list, visible)?),
            _ => {
                let text = run.text()?;
                if text.contains("{{") && keys.flag("literal") != Some(true) {
                    let problem =
                        spot.problem_at(Code::E160, "{{", 0, "a text for the shell is never expanded");
                    self.problems.push(problem.with_help(
                        "give the data by `env` or `stdin`, write `run` as a list, or `literal = true` if `{{` is meant as it is",
                    ));
                }
                CommandLine::Shell(text.to_owned())
            }
        };
        if let Some(why) = self.surroundings.refused_command(&run.line()) {
            self.late.push(refused(&spot, &format!("the command is refused: {why}")));
        }
        let mut env = IndexMap::new();
        let secrets = Visible { secrets: true, ..*visible };
        for (name, _, value) in keys.map("env") {
            let spot = self.spot(node, "env", value);
            if let Some(template) = self.template(&spot, value.text().unwrap_or_default(), &secrets) {
                env.insert(name.to_string(), template);
            }
        }
        let spot = self.spot(node, "permission", keys.get("run")?);
        Some(CommandWork {
            run,
            cwd: self.optional_template(node, keys, "cwd", visible),
            env,
            stdin: self.optional_template(node, keys, "stdin", visible),
            ok_exit: ok_exit(keys),
            parse: parse(keys),
            permission: self.permission(&spot, keys),
        })
    }

    /// A program with arguments, held against E160.
    pub(super) fn argv(
        &mut self,
        spot: &Spot<'_>,
        list: &[Val],
        visible: &Visible<'_>,
    ) -> Option<Vec<Template>> {
        let texts: Vec<&str> = list.iter().filter_map(Val::text).collect();
        if let Some(at) = script(&texts) {
            let spot = Spot { span: list[at].span.clone(), ..spot.clone() };
            let problem =
                spot.problem_at(Code::E160, "{{", 0, "a script for an interpreter is never expanded");
            self.problems
                .push(problem.with_help("give the data as a further argument, by `env` or by `stdin`"));
            return None;
        }
        let mut templates = Vec::with_capacity(list.len());
        for value in list {
            let spot = Spot { span: value.span.clone(), ..spot.clone() };
            templates.extend(self.template(&spot, value.text().unwrap_or_default(), visible));
        }
        (templates.len() == list.len()).then_some(templates)
    }
}

fn ok_exit(keys: &Section) -> Vec<i32> {
    let codes: Vec<i32> =
        keys.list("ok_exit").iter().filter_map(|code| i32::try_from(code.int()?).ok()).collect();
    if keys.get("ok_exit").is_some() { codes } else { vec![0] }
}

fn parse(keys: &Section) -> CommandOutput {
    match keys.get("output").map(|value| &value.kind) {
        Some(ValKind::Text(word)) => match word.as_ref() {
            "json" => CommandOutput::Json,
            "lines" => CommandOutput::Lines,
            "lines0" => CommandOutput::Lines0,
            "jsonl" => CommandOutput::Jsonl,
            _ => CommandOutput::Text,
        },
        Some(ValKind::Json(_)) => CommandOutput::Json,
        Some(_) | None => CommandOutput::Text,
    }
}

fn base_name(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// The element of a command that an interpreter would run as a script and that holds a template.
fn script(argv: &[&str]) -> Option<usize> {
    let first = base_name(argv.first()?);
    let interpreter = if INTERPRETERS.contains(&first) {
        0
    } else if WRAPPERS.contains(&first) {
        // What stands between a wrapper and its program differs: any later name of an interpreter counts.
        argv.iter().position(|element| INTERPRETERS.contains(&base_name(element)))?
    } else {
        return None;
    };
    let rest = argv.iter().enumerate().skip(interpreter + 1);
    let mut after_flag = false;
    for (at, element) in rest {
        if element.contains("{{") && (after_flag || attached(element)) {
            return Some(at);
        }
        after_flag = takes_script(element);
    }
    None
}

/// `-c`, `-e`, `-lc`, `--eval`, …
fn takes_script(element: &str) -> bool {
    let cluster = element.strip_prefix('-').is_some_and(|letters| {
        !letters.is_empty()
            && letters.len() <= 6
            && letters.bytes().all(|b| b.is_ascii_alphabetic())
            && letters.ends_with(['c', 'e', 'E'])
    });
    cluster || matches!(element, "--eval" | "--command" | "--print" | "-p")
}

/// `-e{{ … }}`, `--eval={{ … }}`.
fn attached(element: &str) -> bool {
    let flag = element.split("{{").next().unwrap_or_default().trim_end_matches('=');
    flag.starts_with('-')
        && (takes_script(flag)
            || flag.starts_with("-c")
            || flag.starts_with("-e")
            || flag.starts_with("--eval="))
}
