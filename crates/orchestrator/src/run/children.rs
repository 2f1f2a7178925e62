//! What a child is made from, and the door by which the model of a step asks for one.
//!
//! Authority only narrows: what a child may do is what its parent may do and its definition lets it.

use super::agent_step::Attempt;
use super::hands::Hands;
use crate::plan::model::AgentWork;
use crate::scheduler::{ChildEnd, ChildOrder, PreparedChild, RunMsg, RunRef, StepIx};
use claw_agents::children::{ChildSaid, ChildTask, SpawnRequest, Spawner, may_have_children};
use claw_agents::definition::AgentDefinition;
use claw_agents::permission::Permission;
use claw_kernel::near::nearest;
use claw_kernel::redact::Redactor;
use claw_providers::usage::Usage;
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The agent of a child whose call names none.
const DEFAULT: &str = "general-purpose";
/// Turns of a child whose definition says nothing.
const TURNS: u32 = 32;
/// Characters of a label.
const MOST_LABEL: usize = 80;
/// Bytes of a child's answer that its parent is told.
const MOST_SAID: usize = 30_000;

/// How an agent's rights and models come out of the node and of the agents above it.
pub(super) struct Kin<'a> {
    pub definition: &'a Arc<AgentDefinition>,
    pub models: Vec<String>,
    pub tools: Option<Vec<String>>,
    pub permission: Permission,
    pub max_turns: u32,
    pub has_children: bool,
}

impl<'a> Kin<'a> {
    /// `node`: what the node's own agent may do.
    pub fn of(
        hands: &Hands,
        work: &'a AgentWork,
        child: Option<&'a PreparedChild>,
        node: Permission,
    ) -> Self {
        // The flag is for agents to which neither the file nor their definition gives a model.
        let said = [&work.models, &work.definition.models].into_iter().find(|models| !models.is_empty());
        let models = said.cloned().unwrap_or_else(|| hands.options.model.iter().cloned().collect());
        let own = Self {
            definition: &work.definition,
            models,
            tools: work.tools.clone(),
            permission: node,
            max_turns: work.max_turns,
            has_children: work.spawn,
        };
        let Some(child) = child else { return own };
        let kin = child.line.iter().fold(own, |above, definition| above.below(hands, work, definition));
        match &child.model {
            Some(model) => Self { models: vec![model.clone()], ..kin },
            None => kin,
        }
    }

    /// An agent that this one starts.
    fn below(self, hands: &Hands, work: &AgentWork, definition: &'a Arc<AgentDefinition>) -> Self {
        let registry = &*hands.agents.registry.current();
        let offered =
            claw_agents::offered(registry, self.definition, self.tools.as_deref(), &work.deny_tools);
        Self {
            definition,
            models: if definition.models.is_empty() { self.models } else { definition.models.clone() },
            tools: Some(offered.into_iter().map(str::to_owned).collect()),
            permission: definition.permission.map_or(self.permission, |most| self.permission.intersect(most)),
            max_turns: definition.max_turns.unwrap_or(TURNS),
            has_children: self.has_children && may_have_children(registry, definition),
        }
    }
}

/// Starts the children of one attempt.
pub(super) struct Children {
    run: RunRef,
    step: StepIx,
    attempt: u32,
    startable: Vec<Arc<AgentDefinition>>,
    redactor: Arc<Redactor>,
}

impl Children {
    pub fn new(attempt: Attempt<'_>, work: &AgentWork) -> Self {
        Self {
            run: attempt.run.clone(),
            step: attempt.launch.step,
            attempt: attempt.launch.attempt,
            startable: work.startable.clone(),
            redactor: Arc::clone(&attempt.hands.agents.redactor),
        }
    }

    fn order(&self, task: ChildTask) -> Result<ChildOrder, ChildSaid> {
        if task.background || task.isolated {
            let why = "an agent of a workflow waits for those that it starts, and they work in its folder: leave \
                       run_in_background and isolation out";
            return Err(ChildSaid::error(why));
        }
        order_of(task, &self.startable, &self.redactor)
    }
}

/// A task with its agent found. Errors: there is none of that name.
pub(super) fn order_of(
    task: ChildTask,
    startable: &[Arc<AgentDefinition>],
    redactor: &Redactor,
) -> Result<ChildOrder, ChildSaid> {
    let wanted = task.subagent_type.as_deref().unwrap_or(DEFAULT).trim();
    let found = startable.iter().find(|agent| agent.name.eq_ignore_ascii_case(wanted));
    let Some(definition) = found else {
        let names = || startable.iter().map(|agent| agent.name.as_str());
        let near = nearest(wanted, names()).map(|near| format!("; did you mean `{near}`?"));
        let known = names().collect::<Vec<_>>().join(", ");
        let near = near.unwrap_or_default();
        return Err(ChildSaid::error(format!("there is no agent `{wanted}`{near} Agents are {known}")));
    };
    let label = task.name.unwrap_or(task.description);
    let label = redactor.apply(label.lines().next().unwrap_or_default());
    Ok(ChildOrder {
        id: None,
        definition: Arc::clone(definition),
        prompt: task.prompt,
        label: label.chars().take(MOST_LABEL).collect(),
        model: task.model,
        background: task.background,
        isolated: task.isolated,
    })
}

impl Spawner for Children {
    fn spawn(&self, request: SpawnRequest) -> BoxFuture<'_, ChildSaid> {
        let order = match self.order(request.task) {
            Ok(order) => order,
            Err(refused) => return Box::pin(std::future::ready(refused)),
        };
        let (reply, end) = oneshot::channel();
        let (parent, attempt, call) = (self.step, self.attempt, request.call);
        self.run.tell(RunMsg::Spawn { parent, attempt, call, order, reply });
        Box::pin(async move {
            match end.await {
                Ok(end) => told(end),
                Err(_) => ChildSaid::error("cancelled"),
            }
        })
    }
}

/// A child's answer, cut where it is long, with the file that has it all.
pub(super) fn said(value: &Value, file: Option<&Path>) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if text.len() <= MOST_SAID {
        return text;
    }
    let cut = text.floor_char_boundary(MOST_SAID);
    let whole = file.map(|file| format!("; the whole is in {}", file.display())).unwrap_or_default();
    format!("{}\n[{} bytes cut{whole}]", &text[..cut], text.len() - cut)
}

/// What the call of a parent is told.
pub(super) fn told(end: ChildEnd) -> ChildSaid {
    match end {
        ChildEnd::Done { step, value, file, usage } => {
            let text = said(&value, file.as_deref());
            ChildSaid { text: format!("{text}\n\n[agent {step}: {}]", spent(&usage)), is_error: false }
        }
        ChildEnd::Begun { step, waiting: 0 } => {
            ChildSaid { text: format!("agent {step} works in the background"), is_error: false }
        }
        ChildEnd::Begun { step, waiting } => {
            let text = format!("agent {step} waits for a slot: place {waiting} in the queue");
            ChildSaid { text, is_error: false }
        }
        ChildEnd::Failed(why) => ChildSaid::error(why),
    }
}

/// Tokens and money, for models and people.
pub(super) fn spent(usage: &Usage) -> String {
    let tokens = usage.input + usage.cache_read + usage.cache_write;
    let price = usage.usd.map(|usd| format!(", ${usd:.4}")).unwrap_or_default();
    format!("{tokens} tokens in, {} out{price}", usage.output)
}
