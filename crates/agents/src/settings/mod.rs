//! Settings: what people wrote, where it stands, and what of it counts.
//!
//! Owns the files, their order and their diagnostics. Must not know what a rule, a hook or a server does.

mod diagnostic;
mod edit;
mod gate;
pub mod keys;
mod leaf;
mod load;
mod merged;
mod node;
mod origin;
mod permissions;
mod places;
mod reference;
mod sandbox;
#[cfg(test)]
mod tests;
mod text;
mod typed;
mod walk;

pub use diagnostic::{Diagnostic, Severity};
pub use edit::{EditError, RuleList, remember_rule, set, unset};
pub use leaf::Leaf;
pub use load::{Beside, Loaded, Reloaded};
pub use merged::{Entry, Merged};
pub use node::{Member, Node, Place, Source, Value};
pub use origin::{Origin, Scope, Sourced};
pub use permissions::PermissionSettings;
pub use places::{PlacedFile, Places};
pub use reference::reference;
pub use sandbox::{Filesystem, Network, SandboxSection};
pub use typed::{
    CompactionSection, LimitSettings, OauthSettings, PluginSettings, RawItem, Settings, StatusLine, Theme,
};
pub use walk::Kind;
