//! Which tools a conversation is offered: decided at its start, looked at again before each request, since tools come late,
//! go again, or are asked for.

use super::schema::{AnswerSchema, TOOL as ANSWER_TOOL};
use super::toolbox::{ToolNames, Toolbox, offered};
use crate::children::{self, BackgroundTool};
use crate::definition::AgentDefinition;
use crate::request::AgentRequest;
use crate::services::AgentServices;
use claw_tools::registry::Registry;
use claw_tools::state::ConversationState;
use std::sync::Arc;

/// What decides.
pub(crate) struct Offer {
    definition: Arc<AgentDefinition>,
    tools: Option<Vec<String>>,
    deny: Vec<String>,
    has_children: bool,
    has_background: bool,
    answer: Option<Arc<AnswerSchema>>,
    loaded: Vec<&'static str>,
}

impl Offer {
    /// `answer`: the schema of the tool that takes the answer, where there is one.
    pub(crate) fn of(request: &AgentRequest, answer: Option<Arc<AnswerSchema>>) -> Self {
        Self {
            definition: request.definition.clone(),
            tools: request.tools.clone(),
            deny: request.deny_tools.clone(),
            has_children: request.spawner.is_some(),
            has_background: request.spawner.as_ref().is_some_and(|door| door.background().is_some()),
            answer,
            loaded: Vec::new(),
        }
    }

    /// Canonical names of all tools that may be called. Whoever gives a conversation a door for children has decided on
    /// that tool; only the request's own `deny_tools` takes it away again.
    pub(crate) fn names(&self, registry: &Registry) -> Vec<&'static str> {
        let mut names = offered(registry, &self.definition, self.tools.as_deref(), &self.deny);
        // The conversation itself offers the answer's, where there is a schema.
        names.retain(|name| *name != ANSWER_TOOL && *name != children::TOOL);
        names.retain(|name| self.has_background || BackgroundTool::named(name).is_none());
        let is_denied = self.deny.iter().any(|name| registry.canonical(name) == Some(children::TOOL));
        if self.has_children && !is_denied && registry.get(children::TOOL).is_some() {
            names.push(children::TOOL);
        }
        names
    }

    /// The tools as they are offered now; the state learns what is held back.
    pub(crate) fn toolbox(&mut self, services: &AgentServices, state: &ConversationState) -> Arc<Toolbox> {
        let registry = services.registry.current();
        self.loaded = state.loaded();
        let names = ToolNames::of(&self.names(&registry), &self.loaded);
        let toolbox = services.shared.toolbox(&registry, names, self.answer.as_ref());
        state.hold_back(toolbox.held_back().clone());
        toolbox
    }

    /// Another set, where it changed since `before` was made.
    pub(crate) fn changed(
        &mut self,
        before: &Toolbox,
        services: &AgentServices,
        state: &ConversationState,
    ) -> Option<Arc<Toolbox>> {
        let is_same = Arc::ptr_eq(before.registry(), &services.registry.current());
        if is_same && self.loaded == state.loaded() {
            return None;
        }
        Some(self.toolbox(services, state)).filter(|now| !is_same || now.names() != before.names())
    }
}
