//! Graphs that run: the file's own, and the body of a group for one item and one iteration.

use super::core::{Schedule, step_ix};
use super::event::StepIx;
use super::gate::LevelIx;
use super::state::{NodePhase, NodeRun};
use crate::addr::{AddrPart, StepAddr};
use crate::expr::{Binding, Data, InputView, NodeView};
use crate::plan::model::{Body, NodeIx, Plan};
use claw_kernel::digest::Digest;
use indexmap::IndexMap;
use std::collections::HashMap;
use std::sync::Arc;

/// Place of a frame in the schedule. The run's own is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameIx(pub u32);

impl FrameIx {
    /// The frame of the file itself.
    pub(super) const ROOT: Self = Self(0);

    /// As an index.
    pub fn at(self) -> usize {
        self.0 as usize
    }
}

/// A node of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Which graph.
    pub frame: FrameIx,
    /// Which of its nodes.
    pub node: NodeIx,
}

/// What evaluations see: views by id.
pub(super) type Views = Arc<HashMap<String, Arc<NodeView>>>;

/// A graph that runs.
#[derive(Debug)]
pub(super) struct Frame {
    /// The group's step; `None`: the run's own.
    pub owner: Option<StepIx>,
    pub body: Body,
    /// Of the body, in its order.
    pub nodes: Vec<NodeRun>,
    /// Nodes that are not final.
    pub open: usize,
    /// What its texts may name: its own final nodes, and those outside that they do name.
    pub views: Views,
    /// Items and loops of the groups around it, the outermost first.
    pub bindings: Arc<[Binding]>,
    /// Of the nearest item around it.
    pub index: Option<usize>,
    pub inputs: Arc<IndexMap<String, InputView>>,
    /// In front of the addresses of its steps.
    pub prefix: Option<StepAddr>,
    /// What the content of its steps rests on beside their own texts.
    pub context: Option<Digest>,
    pub level: LevelIx,
    /// Nothing new starts in it.
    pub called_off: bool,
}

impl Frame {
    /// A frame of which nothing has begun.
    pub fn nodes_of(plan: &Plan, body: Body) -> Vec<NodeRun> {
        let fresh = |ix: NodeIx| {
            let node = &plan.nodes[ix.at()];
            NodeRun { phase: NodePhase::Waiting, open_needs: node.needs.len() + node.after.len() }
        };
        body.nodes().map(fresh).collect()
    }

    fn offset(&self, node: NodeIx) -> usize {
        node.at() - self.body.first as usize
    }

    pub fn node(&self, node: NodeIx) -> &NodeRun {
        &self.nodes[self.offset(node)]
    }

    pub fn node_mut(&mut self, node: NodeIx) -> &mut NodeRun {
        let at = self.offset(node);
        &mut self.nodes[at]
    }

    /// Its nodes that wait for nothing.
    pub fn roots(&self) -> impl Iterator<Item = NodeIx> {
        let free = self.body.nodes().zip(&self.nodes).filter(|(_, run)| run.open_needs == 0);
        free.map(|(ix, _)| ix)
    }
}

impl Schedule {
    pub(super) fn frame(&self, ix: FrameIx) -> &Frame {
        &self.frames[ix.at()]
    }

    pub(super) fn node(&self, place: Place) -> &NodeRun {
        self.frames[place.frame.at()].node(place.node)
    }

    pub(super) fn node_mut(&mut self, place: Place) -> &mut NodeRun {
        self.frames[place.frame.at()].node_mut(place.node)
    }

    /// Where a step's node stands.
    pub(super) fn place_of(&self, step: StepIx) -> Place {
        let step = &self.steps[step.at()];
        Place { frame: step.frame, node: step.node }
    }

    /// The address of a node without item and iteration.
    pub(super) fn addr_of(&self, place: Place) -> StepAddr {
        let id = self.plan.nodes[place.node.at()].id.clone();
        match &self.frame(place.frame).prefix {
            Some(prefix) => prefix.below(AddrPart::Node { node: id, item: None, iteration: None }),
            None => StepAddr::node(id),
        }
    }

    /// Adds a frame; its roots are due.
    pub(super) fn open_frame(&mut self, frame: Frame) -> FrameIx {
        let ix = FrameIx(step_ix(self.frames.len()).0);
        let roots: Vec<NodeIx> = frame.roots().collect();
        let empty = frame.open == 0;
        self.frames.push(frame);
        self.due.extend(roots.into_iter().map(|node| Place { frame: ix, node }));
        if empty {
            self.closed.push_back(ix);
        }
        ix
    }

    /// What the body of a group sees of the nodes around it: those that its texts name.
    pub(super) fn seen_from_inside(&self, place: Place) -> Views {
        let outer = &self.frame(place.frame).views;
        let mut seen = HashMap::new();
        for name in self.plan.names_inside(place.node) {
            if let Some(view) = outer.get(name) {
                seen.entry(name.to_owned()).or_insert_with(|| Arc::clone(view));
            }
        }
        Arc::new(seen)
    }

    /// Digest of what a node needs: the outputs, in the order of their names.
    pub(super) fn needs_digest(&self, place: Place) -> Digest {
        let plan = &self.plan;
        let mut needs: Vec<&str> =
            plan.nodes[place.node.at()].needs.iter().map(|need| plan.nodes[need.at()].id.as_str()).collect();
        needs.sort_unstable();
        let views = &self.frame(place.frame).views;
        let null = || Digest::of("null");
        Digest::of_parts(
            needs.iter().map(|id| *views.get(*id).map_or_else(null, |view| view.output.digest()).as_bytes()),
        )
    }

    /// Whether this step, or a group around it, is a final node.
    pub(super) fn is_final_work(&self, place: Place) -> bool {
        let mut at = place;
        loop {
            if self.plan.nodes[at.node.at()].is_final {
                return true;
            }
            match self.frame(at.frame).owner {
                Some(owner) => at = self.place_of(owner),
                None => return false,
            }
        }
    }
}

/// `loop`, as texts see it.
pub(super) fn loop_binding(iteration: u32, carried: &[(String, Data)]) -> Binding {
    let mut fields = serde_json::Map::new();
    fields.insert("index".to_owned(), iteration.into());
    fields.extend(carried.iter().map(|(name, value)| (name.clone(), value.json().as_ref().clone())));
    let value = Data::new(serde_json::Value::Object(fields));
    Binding { name: "loop".into(), value, dynamic: true, file: None }
}
