//! What only one operating system has: the write wall, mounts in a child, finding what a job left behind.
//!
//! Linux holds all of it; elsewhere the same names exist and say what is missing. Knows nothing of tools.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
pub(crate) use linux::{
    Beneath, ChildPlan, FirstProcess, Fixture, Group, House, HousePlan, PROXY_PORT, Stand, Wall,
    adopt_orphans, filter, landlock, needs_user_namespace, open_resolved, prepare, prepare_house, rehearse,
    try_namespaces,
};
#[cfg(not(target_os = "linux"))]
pub(crate) use other::{
    Beneath, ChildPlan, FirstProcess, Fixture, Group, House, HousePlan, PROXY_PORT, Stand, Wall,
    adopt_orphans, filter, landlock, needs_user_namespace, open_resolved, prepare, prepare_house, rehearse,
    try_namespaces,
};
