//! Admission: texts are expanded, the content key is taken, the attempt is recorded and ordered.

use super::core::Schedule;
use super::event::{
    Command, Folder, Launch, Prepared, PreparedAgent, PreparedArtifact, PreparedCommand, PreparedGitMerge,
    PreparedLine, StepIx,
};
use super::frame::Place;
use super::gate::Lane;
use super::state::{NodePhase, Step, StepPhase, StepRole};
use crate::addr::AddrPart;
use crate::expr::{Binding, Data, EvalError, ParseError, Render, Scope, Template};
use crate::journal::record::{EndState, Entry};
use crate::plan::model::{
    AgentWork, CommandLine, CommandWork, GitMerge, Isolation, MergeStrategy, Node, Work,
};
use crate::plan::{OptionLike, check_argv};
use crate::report::event::StepState;
use claw_agents::outcome::FailureClass;
use claw_kernel::digest::Digest;
use claw_kernel::ids::AgentId;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Changes when the meaning of a key does.
const KEY_VERSION: &str = "claw step key 1";

/// So long the other items wait at most for the first answer to begin.
const LONGEST_WARMING: Duration = Duration::from_secs(5);

/// What a merge by agents merges, in its prompt.
const ITEMS: &str = "items";
static SHOW_TEXT: LazyLock<Result<Template, ParseError>> =
    LazyLock::new(|| Template::parse("{{ item | head('256KiB') }}"));
static SHOW_JSON: LazyLock<Result<Template, ParseError>> =
    LazyLock::new(|| Template::parse("{{ item | json | head('256KiB') }}"));

/// A step whose texts cannot be expanded.
#[derive(Debug, thiserror::Error)]
enum NotReady {
    #[error("{} {source}", source.code())]
    Eval {
        #[from]
        source: EvalError,
    },
    #[error("E161 {0}")]
    Argv(#[from] OptionLike),
}

impl Schedule {
    /// A slot is taken: the step starts, or fails at once and gives the slot back.
    pub(super) fn admit(&mut self, ix: StepIx, lane: Lane) {
        let level = self.frame(self.steps[ix.at()].frame).level;
        if self.takes_its_slot_again(ix) {
            return;
        }
        if self.steps[ix.at()].phase != StepPhase::Queued {
            // It was called off while it waited.
            return self.gate.release(lane, level);
        }
        if lane == Lane::Agents && !self.gate.count_agent(level) {
            self.gate.release(lane, level);
            return match self.steps[ix.at()].child {
                Some(_) => self.too_many_agents(ix),
                None => self.limit_reached(ix),
            };
        }
        match self.launch(ix) {
            Ok(launch) => self.start(ix, launch),
            Err(error) => {
                self.gate.release(lane, level);
                self.fail_step(ix, FailureClass::Expr, error.to_string());
            }
        }
    }

    fn launch(&self, ix: StepIx) -> Result<Launch, NotReady> {
        let step = &self.steps[ix.at()];
        if let Some(child) = &step.child {
            return Ok(self.child_launch(ix, child));
        }
        let node = &self.plan.nodes[step.node.at()];
        let scope = self.step_scope(ix);
        let key = match step.key {
            Some(key) => key,
            None => content_key(self, ix)?,
        };
        let work = match &node.work {
            Work::Agent(agent) => Prepared::Agent(self.agent(agent, &scope, step)?),
            Work::Merge(merge) => match (&merge.strategy, &step.role) {
                (MergeStrategy::Agent { agent, .. }, _) => Prepared::Agent(self.agent(agent, &scope, step)?),
                (MergeStrategy::Git(git), _) => Prepared::GitMerge(self.git_merge(git, &scope, step)?),
                (_, StepRole::Value(value)) => Prepared::Value(Arc::clone(value.json())),
                // Computed merges without a file, and sets, never reach the gate.
                (MergeStrategy::List | MergeStrategy::Concat | MergeStrategy::Dedupe { .. }, _) => {
                    Prepared::Command(empty_command())
                }
            },
            Work::Command(command) => Prepared::Command(prepare_command(command, &scope)?),
            Work::Set { .. } | Work::Group(_) | Work::Gate(_) => Prepared::Command(empty_command()),
        };
        let label = label(node, step.addr.to_string(), &scope);
        let attempt = step.attempt + 1;
        let artifacts = node.artifacts.iter().map(|artifact| {
            Ok(PreparedArtifact {
                path: artifact.path.render(&scope, Render::Plain)?,
                required: artifact.required,
                max_size: artifact.max_size,
            })
        });
        let artifacts = artifacts.collect::<Result<_, EvalError>>()?;
        let write = match (&node.work, step.addr.parts().last()) {
            // Parts of a merge write nothing: the merge does.
            (_, Some(AddrPart::Child(_))) => None,
            (Work::Merge(merge), _) => {
                merge.write.as_ref().map(|path| path.render(&scope, Render::Plain)).transpose()?
            }
            (Work::Agent(_) | Work::Command(_) | Work::Set { .. } | Work::Group(_) | Work::Gate(_), _) => {
                None
            }
        };
        let folder = self.folder(ix, attempt);
        let said: Vec<String> =
            self.past.said(&step.addr).into_iter().chain(step.said.iter().cloned()).collect();
        let (node, addr) = (step.node, step.addr.clone());
        let warms = match &self.node(self.place_of(ix)).phase {
            NodePhase::Active(active) => active.cold,
            NodePhase::Waiting | NodePhase::Reading | NodePhase::Final(_) => false,
        };
        Ok(Launch { step: ix, node, addr, attempt, label, key, work, write, artifacts, warms, folder, said })
    }

    /// Where a step works: a folder of its own, that of the nearest group around it that has one, or the workspace.
    pub(super) fn folder(&self, ix: StepIx, attempt: u32) -> Option<Folder> {
        let step = &self.steps[ix.at()];
        let around = step.iteration_of.or(self.frame(step.frame).owner);
        if let (Isolation::Worktree(base), None) =
            (self.plan.nodes[step.node.at()].isolation, step.iteration_of)
        {
            let goes_on_from = step.goes_on_from;
            return Some(Folder { owner: step.addr.clone(), attempt, base, goes_on_from });
        }
        let mut at = around;
        while let Some(owner) = at {
            let group = &self.steps[owner.at()];
            if let Isolation::Worktree(base) = self.plan.nodes[group.node.at()].isolation {
                return Some(Folder { owner: group.addr.clone(), attempt: 1, base, goes_on_from: None });
            }
            at = group.iteration_of.or(self.frame(group.frame).owner);
        }
        None
    }

    fn git_merge(&self, git: &GitMerge, scope: &Scope, step: &Step) -> Result<PreparedGitMerge, NotReady> {
        let mut branches = Vec::new();
        for node in &git.nodes {
            let place = Place { frame: step.frame, node: *node };
            let Isolation::Worktree(base) = self.plan.nodes[node.at()].isolation else { continue };
            for made in self.branches.get(&place).into_iter().flatten() {
                let made = &self.steps[made.at()];
                let succeeded = matches!(made.phase.ended(), Some(EndState::Succeeded | EndState::Cached));
                let (owner, attempt) = match (&made.made, &made.owner) {
                    (Some((addr, attempt)), None) => (addr.clone(), *attempt),
                    (_, Some(_)) => (made.addr.clone(), 1),
                    (None, None) => continue,
                };
                if succeeded {
                    branches.push(Folder { owner, attempt, base, goes_on_from: None });
                }
            }
        }
        let verify = match &git.verify {
            Some(argv) => {
                let expanded = plain(argv, scope)?;
                check_argv(argv, &expanded)?;
                Some(expanded)
            }
            None => None,
        };
        let (apply, on_conflict, answer) = (git.apply, git.on_conflict, step.answer.clone());
        Ok(PreparedGitMerge { branches, apply, verify, on_conflict, answer })
    }

    fn start(&mut self, ix: StepIx, launch: Launch) {
        let agent = match &launch.work {
            Prepared::Agent(agent) => Some(agent.id.clone()),
            Prepared::Command(_) | Prepared::Value(_) | Prepared::GitMerge(_) => None,
        };
        let step = &mut self.steps[ix.at()];
        step.phase = StepPhase::Running;
        step.attempt = launch.attempt;
        step.tries += 1;
        step.key = Some(launch.key);
        step.agent.clone_from(&agent);
        step.error = None;
        step.class = None;
        let (addr, attempt) = (launch.addr.clone(), Some(launch.attempt));
        step.answer = None;
        let is_command = agent.is_none();
        self.record(Some(addr.clone()), attempt, Entry::Admitted { key: launch.key, agent });
        if is_command {
            self.record(Some(addr.clone()), attempt, Entry::Intent { what: launch.key.hex(), call: None });
        }
        if launch.warms {
            self.orders.push(Command::ExpireWarming { step: ix, delay: LONGEST_WARMING });
        }
        self.orders.push(Command::Start(Box::new(launch)));
        self.tell(addr, attempt, StepState::Running);
    }

    fn agent(&self, agent: &AgentWork, scope: &Scope, step: &Step) -> Result<PreparedAgent, EvalError> {
        let Step { goes_on_from, role, fault, .. } = step;
        let style = Render::Prompt { nonce: &self.context.nonce };
        let prompt = agent.prompt.render_whole(scope, style)?;
        let mut readable = prompt.readable;
        let mut text = prompt.text;
        let names_items = agent.prompt.references().any(|(name, _)| name.name() == ITEMS);
        if let StepRole::Window(items) = role
            && !names_items
        {
            self.show_inputs(step, items, &mut text)?;
        }
        let system_append = match &agent.system_append {
            Some(template) => {
                let rendered = template.render_whole(scope, style)?;
                readable.extend(rendered.readable);
                Some(rendered.text)
            }
            None => None,
        };
        Ok(PreparedAgent {
            id: AgentId::fresh(),
            prompt: text,
            system_append,
            readable,
            attach: plain(&agent.attach, scope)?,
            goes_on_from: *goes_on_from,
            fault: fault.clone(),
            child: None,
        })
    }

    /// What a merge by agents merges stands behind its prompt, each input between fences, unless the prompt itself says
    /// where `items` go. A window bounds it, so nothing is cut.
    fn show_inputs(&self, step: &Step, items: &Data, prompt: &mut String) -> Result<(), EvalError> {
        let list = items.json().as_array().map(Vec::as_slice).unwrap_or_default();
        for (at, item) in list.iter().enumerate() {
            let show = if item.is_string() { &*SHOW_TEXT } else { &*SHOW_JSON };
            let binding =
                Binding { name: "item".into(), value: Data::new(item.clone()), dynamic: true, file: None };
            let style = Render::Prompt { nonce: &self.context.nonce };
            let shown = show.as_ref().map_or_else(
                |_| Ok(item.to_string()),
                |show| show.render(&self.scope(step.frame, vec![binding], None), style),
            )?;
            prompt.push_str(&format!("\n\nInput {} of {}:\n{shown}", at + 1, list.len()));
        }
        Ok(())
    }

    /// What the texts of a step see: its item, and for a merge by agents what is merged as `items`.
    pub(super) fn step_scope(&self, ix: StepIx) -> Scope {
        let (mut bindings, index) = self.step_bindings(ix);
        let step = &self.steps[ix.at()];
        if let StepRole::Window(items) = &step.role {
            bindings.push(Binding { name: ITEMS.into(), value: items.clone(), dynamic: true, file: None });
        }
        self.scope(step.frame, bindings, index)
    }
}

fn label(node: &Node, addr: String, scope: &Scope) -> String {
    node.label.as_ref().and_then(|label| label.render(scope, Render::Plain).ok()).unwrap_or(addr)
}

fn empty_command() -> PreparedCommand {
    PreparedCommand { line: PreparedLine::Argv(Vec::new()), cwd: None, env: Vec::new(), stdin: None }
}

fn plain(templates: &[Template], scope: &Scope) -> Result<Vec<String>, EvalError> {
    templates.iter().map(|template| template.render(scope, Render::Plain)).collect()
}

fn prepare_command(command: &CommandWork, scope: &Scope) -> Result<PreparedCommand, NotReady> {
    let line = match &command.run {
        CommandLine::Argv(argv) => {
            let expanded = plain(argv, scope)?;
            check_argv(argv, &expanded)?;
            PreparedLine::Argv(expanded)
        }
        CommandLine::Shell(text) => PreparedLine::Shell(text.clone()),
    };
    let optional = |template: &Option<Template>| {
        template.as_ref().map(|template| template.render(scope, Render::Plain)).transpose()
    };
    let env = command
        .env
        .iter()
        .map(|(name, value)| Ok((name.clone(), value.render(scope, Render::Plain)?)))
        .collect::<Result<_, EvalError>>()?;
    Ok(PreparedCommand { line, cwd: optional(&command.cwd)?, env, stdin: optional(&command.stdin)? })
}

/// `digest(version, static part, texts with the digests of what they name, item, outputs of the needs)`.
pub(super) fn content_key(schedule: &Schedule, ix: StepIx) -> Result<Digest, EvalError> {
    let step = &schedule.steps[ix.at()];
    let node = &schedule.plan.nodes[step.node.at()];
    let scope = schedule.step_scope(ix);
    let mut parts: Vec<Vec<u8>> = vec![KEY_VERSION.into(), node.static_key.as_bytes().to_vec()];
    let mut push = |digest: Digest| parts.push(digest.as_bytes().to_vec());
    let mut texts: Vec<&Template> = Vec::new();
    match &node.work {
        Work::Agent(agent) => agent_texts(agent, &mut texts),
        Work::Merge(merge) => {
            merge.from.iter().for_each(|from| push(from.content_digest(&scope)));
            match &merge.strategy {
                MergeStrategy::Agent { agent, .. } => agent_texts(agent, &mut texts),
                MergeStrategy::Git(git) => texts.extend(git.verify.iter().flatten()),
                MergeStrategy::List | MergeStrategy::Concat | MergeStrategy::Dedupe { .. } => {}
            }
        }
        Work::Command(command) => {
            if let CommandLine::Argv(argv) = &command.run {
                texts.extend(argv);
            }
            let mut env: Vec<_> = command.env.iter().collect();
            env.sort_unstable_by_key(|(name, _)| name.as_str());
            texts.extend(env.into_iter().map(|(_, value)| value).chain(&command.cwd).chain(&command.stdin));
        }
        Work::Set { value } => push(value.content_digest(&scope)),
        Work::Gate(gate) => {
            texts.push(&gate.message);
            gate.show.iter().for_each(|show| push(show.content_digest(&scope)));
        }
        Work::Group(_) => {}
    }
    texts.iter().for_each(|text| push(text.content_digest(&scope)));
    if let Some(item) = &step.item {
        push(Digest::of(item.shown.as_bytes()));
    }
    if let StepRole::Window(items) = &step.role {
        push(items.digest());
    }
    let views = &schedule.frame(step.frame).views;
    let output = |need: &crate::plan::model::NodeIx| {
        let id = schedule.plan.nodes[need.at()].id.as_str();
        views.get(id).map_or_else(|| Digest::of("null"), |view| view.output.digest())
    };
    let mut needs: Vec<Digest> = node.needs.iter().map(output).collect();
    // By content: a need that is renamed is the same one.
    needs.sort_unstable_by_key(|need| *need.as_bytes());
    needs.into_iter().for_each(&mut push);
    step.context.into_iter().for_each(push);
    Ok(Digest::of_parts(parts))
}

fn agent_texts<'a>(agent: &'a AgentWork, texts: &mut Vec<&'a Template>) {
    texts.push(&agent.prompt);
    texts.extend(&agent.system_append);
    texts.extend(&agent.attach);
}
