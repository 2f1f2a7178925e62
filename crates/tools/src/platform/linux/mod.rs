//! Linux: Landlock, a filter of system calls, mount namespaces, pidfds, `/proc`.

mod beneath;
mod calls;
mod child;
mod house;
mod kin;
mod mounts;
mod open;
mod probe;
mod rights;
mod room;
mod wall;

pub(crate) use beneath::Beneath;
pub(crate) use calls::filter;
pub(crate) use child::{ChildPlan, FirstProcess, prepare, rehearse};
pub(crate) use house::{Fixture, House, HousePlan, PROXY_PORT, Stand, prepare_house};
pub(crate) use kin::{Group, adopt_orphans};
pub(crate) use open::open_resolved;
pub(crate) use probe::try_namespaces;
pub(crate) use rights::needs_user_namespace;
pub(crate) use wall::{Wall, version as landlock};
