//! Linux: Landlock, a filter of system calls, mount namespaces, pidfds, `/proc`.

mod calls;
mod child;
mod kin;
mod open;
mod rights;
mod wall;

pub(crate) use child::{ChildPlan, prepare, rehearse};
pub(crate) use kin::{Group, adopt_orphans};
pub(crate) use open::open_resolved;
pub(crate) use wall::Wall;
