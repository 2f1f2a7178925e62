//! Which keys belong to which kind of node.

use super::{Key, NodeKind, agent, command, common, gate, group, merge, set, workflow};

/// The keys that only nodes of this kind have.
pub fn own(kind: NodeKind) -> &'static [Key] {
    match kind {
        NodeKind::Agent => agent::KEYS,
        NodeKind::Command => command::KEYS,
        NodeKind::Group => group::KEYS,
        NodeKind::Gate => gate::KEYS,
        NodeKind::Merge => merge::KEYS,
        NodeKind::Set => set::KEYS,
        NodeKind::Workflow => workflow::KEYS,
    }
}

/// All keys of a node of this kind: its own, those of an agent for a merge by one, then the common ones.
pub fn of(kind: NodeKind) -> impl Iterator<Item = &'static Key> {
    let lent: &[Key] = if kind == NodeKind::Merge { agent::KEYS } else { &[] };
    own(kind).iter().chain(lent).chain(common().iter())
}

/// The kinds that have a key of this name.
pub fn kinds_with(name: &str) -> impl Iterator<Item = NodeKind> {
    NodeKind::ALL.into_iter().filter(move |kind| own(*kind).iter().any(|key| key.name == name))
}
