//! Linux: Landlock, mount namespaces, pidfds, `/proc`.

mod child;
mod kin;
mod wall;

pub(crate) use child::{ChildPlan, prepare};
pub(crate) use kin::{Group, adopt_orphans};
pub(crate) use wall::Wall;
