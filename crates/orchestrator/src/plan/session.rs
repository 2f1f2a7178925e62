//! The plan of a session's run: empty but for the conversation above all its agents.

use super::key::static_key;
use super::model::{
    AgentWork, Body, Isolation, Join, Limits, MergeReport, MergeShow, Node, NodeIx, OnCrash, OnError,
    OutputSpec, Plan, Work,
};
use super::node::{IDLE, TIMEOUT, retry};
use crate::addr::{AddrError, NodeId};
use crate::expr::Template;
use crate::workflow::keys::NodeKind;
use claw_agents::definition::AgentDefinition;
use indexmap::IndexMap;
use std::path::PathBuf;
use std::sync::Arc;

/// What the agents of a session are started from.
#[derive(Clone, Debug)]
pub struct SessionPlan {
    /// The conversation's own definition.
    pub lead: Arc<AgentDefinition>,
    /// What it may call; `None`: as its definition says. Its agents may call no more.
    pub tools: Option<Vec<String>>,
    /// Taken away from it and from its agents.
    pub deny_tools: Vec<String>,
    /// The agents that may be started.
    pub startable: Vec<Arc<AgentDefinition>>,
    /// Over the whole tree; `agents` counts from the user's last message.
    pub limits: Limits,
}

impl Plan {
    /// The plan of a session.
    ///
    /// # Errors
    /// None in practice: the node's name is a constant.
    pub fn of_session(session: SessionPlan) -> Result<Self, AddrError> {
        let id: NodeId = "session".parse()?;
        let work = Work::Agent(AgentWork {
            definition: session.lead,
            prompt: Template::literal(""),
            system_append: None,
            models: Vec::new(),
            effort: None,
            tools: session.tools,
            deny_tools: session.deny_tools,
            permission: None,
            max_turns: u32::MAX,
            attach: Vec::new(),
            spawn: true,
            startable: session.startable,
        });
        Ok(Self {
            name: "session".to_owned(),
            description: "agents of an interactive session".to_owned(),
            result: None,
            nodes: vec![host(id, work)],
            top: Body { first: 0, count: 1 },
            inputs: IndexMap::new(),
            host: Some(NodeIx(0)),
            limits: session.limits,
            budget: None,
            merge: MergeReport { max_tokens: 4_000, per_node_tokens: 1_000 },
            warnings: Vec::new(),
            file: PathBuf::new(),
            source: "".into(),
        })
    }
}

fn host(id: NodeId, work: Work) -> Node {
    let output = OutputSpec::Text;
    Node {
        id,
        parent: None,
        needs: Vec::new(),
        after: Vec::new(),
        dependents: Vec::new(),
        when: None,
        join: Join::AllSucceeded,
        each: None,
        repeat: None,
        // Of its agents.
        retry: retry(NodeKind::Agent, None),
        timeout: TIMEOUT,
        idle_timeout: IDLE,
        on_error: OnError::Fail,
        on_crash: OnCrash::Ask,
        optional: false,
        is_final: false,
        budget: None,
        locks: Vec::new(),
        isolation: Isolation::None,
        static_key: static_key(&work, &output, Isolation::None),
        output,
        artifacts: Vec::new(),
        priority: 0,
        critical_path: 1,
        phase: None,
        label: None,
        tags: Vec::new(),
        merge: MergeShow::None,
        work,
    }
}
