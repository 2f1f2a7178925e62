//! The tools by name. Names compare in lower case without `_` and `-`, aliases of other programs count.

use crate::builtin::{
    AskUserQuestion, Bash, BashOutput, Config, EditFile, EnterPlanMode, ExitPlanMode, GlobSearch, GrepSearch,
    KillShell, MultiEdit, NotebookEdit, PowerShell, ReadFile, Repl, SendUserMessage, Sleep, TaskCreate,
    TaskGet, TaskListTool, TaskUpdate, TodoWrite, ToolSearch, WebFetch, WebSearch, WriteFile,
};
use crate::ports::Ports;
use crate::tool::Tool;
use claw_kernel::near::nearest;
use indexmap::IndexMap;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tokio::sync::watch;

/// A tool as a model is told of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Canonical name.
    pub name: &'static str,
    /// What it is for.
    pub description: String,
    /// JSON Schema of its input.
    pub input_schema: Value,
}

/// A set of tools in a fixed order. Cheap to clone.
#[derive(Clone, Default)]
pub struct Registry {
    tools: IndexMap<&'static str, Arc<dyn Tool>>,
    keys: IndexMap<String, &'static str>,
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl Registry {
    /// No tools.
    pub fn empty() -> Self {
        Self::default()
    }

    /// The tools that need nothing but the machine: all but `structured_output`, which has a schema of its own each
    /// time, and those of [`Registry::with_ports`].
    pub fn builtin() -> Self {
        let tools: [Arc<dyn Tool>; 16] = [
            Arc::new(Bash),
            Arc::new(ReadFile),
            Arc::new(WriteFile),
            Arc::new(EditFile),
            Arc::new(GlobSearch),
            Arc::new(GrepSearch),
            Arc::new(WebFetch),
            Arc::new(TodoWrite),
            Arc::new(ToolSearch),
            Arc::new(MultiEdit),
            Arc::new(NotebookEdit),
            Arc::new(BashOutput),
            Arc::new(KillShell),
            Arc::new(Repl),
            Arc::new(Sleep),
            Arc::new(SendUserMessage),
        ];
        let all = tools.into_iter().fold(Self::empty(), Self::with);
        let powershell = PowerShell::here();
        if powershell.is_there() { all.with(Arc::new(powershell)) } else { all }
    }

    /// And those that need somebody who is there.
    pub fn with_ports(self, ports: &Ports) -> Self {
        let mut more: Vec<Arc<dyn Tool>> = Vec::new();
        if ports.search.is_some() {
            more.push(Arc::new(WebSearch));
        }
        if ports.person.is_some() {
            let asking: [Arc<dyn Tool>; 3] =
                [Arc::new(AskUserQuestion), Arc::new(EnterPlanMode), Arc::new(ExitPlanMode)];
            more.extend(asking);
        }
        if ports.settings.is_some() {
            more.push(Arc::new(Config));
        }
        if ports.tasks.is_some() {
            more.extend(task_tools());
        }
        more.into_iter().fold(self, Self::with)
    }

    /// Every tool that claw may have anywhere, for who reads names that others wrote.
    pub fn every() -> Self {
        let more: [Arc<dyn Tool>; 6] = [
            Arc::new(WebSearch),
            Arc::new(AskUserQuestion),
            Arc::new(EnterPlanMode),
            Arc::new(ExitPlanMode),
            Arc::new(Config),
            Arc::new(PowerShell::here()),
        ];
        more.into_iter().chain(task_tools()).fold(Self::builtin(), Self::with)
    }

    /// One more tool; it takes the place of one of the same name.
    pub fn with(mut self, tool: Arc<dyn Tool>) -> Self {
        let name = tool.name();
        for known in tool.aliases().iter().copied().chain([name]) {
            self.keys.insert(key(known), name);
        }
        self.tools.insert(name, tool);
        self
    }

    /// Without those that `drop` says yes to; their aliases are free again.
    pub fn without(&self, drop: impl Fn(&str) -> bool) -> Self {
        self.only(|name| !drop(name))
    }

    /// Only those that `keep` says yes to.
    pub fn only(&self, keep: impl Fn(&str) -> bool) -> Self {
        self.tools
            .values()
            .filter(|tool| keep(tool.name()))
            .fold(Self::empty(), |set, tool| set.with(Arc::clone(tool)))
    }

    /// A tool by its name or an alias.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(self.canonical(name)?)
    }

    /// The canonical name behind a name or an alias.
    pub fn canonical(&self, name: &str) -> Option<&'static str> {
        match self.tools.get(name) {
            Some(tool) => Some(tool.name()),
            None => self.keys.get(&key(name)).copied(),
        }
    }

    /// The canonical name that an unknown name was probably meant to be.
    pub fn near(&self, name: &str) -> Option<&'static str> {
        let found = nearest(&key(name), self.keys.keys().map(String::as_str))?;
        self.keys.get(found).copied()
    }

    /// Canonical names, in order.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.tools.keys().copied()
    }

    /// What a model is told of the whole set, in order.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.tools
            .values()
            .map(|tool| ToolSpec {
                name: tool.name(),
                description: tool.description(),
                input_schema: tool.input_schema(),
            })
            .collect()
    }
}

fn task_tools() -> [Arc<dyn Tool>; 4] {
    [Arc::new(TaskCreate), Arc::new(TaskGet), Arc::new(TaskListTool), Arc::new(TaskUpdate)]
}

/// The tools of a running process: some come late and go again. Cheap to clone, all clones see the same.
///
/// Whoever works with several names takes `current` once: that set never changes.
#[derive(Clone, Debug)]
pub struct RegistryCell {
    now: Arc<watch::Sender<Arc<Registry>>>,
}

impl From<Registry> for RegistryCell {
    fn from(registry: Registry) -> Self {
        Self { now: Arc::new(watch::Sender::new(Arc::new(registry))) }
    }
}

impl RegistryCell {
    /// The set as it is now.
    pub fn current(&self) -> Arc<Registry> {
        Arc::clone(&self.now.borrow())
    }

    /// Puts another set in its place, made from the one that is there. Conversations see it at their next request.
    pub fn update(&self, change: impl FnOnce(&Registry) -> Registry) {
        self.now.send_modify(|now| *now = Arc::new(change(now)));
    }

    /// Adds tools; each takes the place of one of the same name.
    pub fn add(&self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) {
        self.update(|now| tools.into_iter().fold(now.clone(), Registry::with));
    }

    /// Takes away those that `gone` says yes to.
    pub fn withdraw(&self, gone: impl Fn(&str) -> bool) {
        self.update(|now| now.without(gone));
    }

    /// Tells of each change.
    pub fn changes(&self) -> watch::Receiver<Arc<Registry>> {
        self.now.subscribe()
    }
}

/// What names are compared by.
pub fn key(name: &str) -> String {
    name.trim().chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_other_programs_are_understood() {
        let tools = Registry::every();
        let known = [
            ("Bash", "bash"),
            ("Read", "read_file"),
            ("READ-FILE", "read_file"),
            ("Edit", "edit_file"),
            ("Write", "write_file"),
            ("Glob", "glob_search"),
            ("LS", "glob_search"),
            ("Grep", "grep_search"),
            ("NotebookRead", "read_file"),
            ("MultiEdit", "multi_edit"),
            ("NotebookEdit", "notebook_edit"),
            ("TodoWrite", "todo_write"),
            ("WebFetch", "web_fetch"),
            ("WebSearch", "web_search"),
            ("BashOutput", "bash_output"),
            ("KillShell", "kill_shell"),
            ("ToolSearch", "tool_search"),
            ("Brief", "send_user_message"),
            ("AskUserQuestion", "ask_user_question"),
            ("EnterPlanMode", "enter_plan_mode"),
            ("ExitPlanMode", "exit_plan_mode"),
            ("TaskCreate", "task_create"),
            ("TaskList", "task_list"),
            ("REPL", "repl"),
            ("PowerShell", "powershell"),
            ("Config", "config"),
        ];
        for (theirs, ours) in known {
            assert_eq!(tools.canonical(theirs), Some(ours), "{theirs}");
        }
        assert_eq!(tools.get("banana").map(|tool| tool.name()), None);
        assert_eq!(tools.near("raed_file"), Some("read_file"));
    }

    #[test]
    fn tools_come_late_and_go_again() {
        let cell = RegistryCell::from(Registry::builtin());
        let (before, seen) = (cell.current(), cell.clone());
        cell.withdraw(|name| name == "bash");
        assert_eq!(seen.current().canonical("Bash"), None);
        assert_eq!(before.canonical("Bash"), Some("bash"));
        cell.add([Arc::new(Bash) as Arc<dyn Tool>]);
        assert_eq!(seen.current().canonical("Bash"), Some("bash"));
    }

    #[test]
    fn schemas_are_small_and_hold_no_reference() {
        let tools = Registry::every();
        let mut total = 0;
        for spec in tools.specs() {
            let schema = spec.input_schema.to_string();
            assert!(!schema.contains("$ref") && !schema.contains("$defs"), "{schema}");
            assert_eq!(spec.input_schema["type"], "object");
            total += schema.len() + spec.description.len();
        }
        assert!(total < 20_000, "{total}");
    }
}
