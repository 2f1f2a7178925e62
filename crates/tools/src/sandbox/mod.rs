//! What commands may touch, and what of that the system holds.
//!
//! A policy is data (`policy.rs`); the wall of the running system is made from it once and lent to each child
//! (`platform`). Today there are two kinds: the **write wall** and **none**; the full sandbox (namespaces, masked
//! reads, no network at all) becomes a third kind of `WallKind`, built by the same `SandboxPolicy::wall`.
//!
//! What the write wall holds, by the kernel:
//! - writes, truncation, creation, removal and renames only below the workspace, the extra folders and a private
//!   temporary folder; in a read-only policy only below the latter; `/dev/null` and its like stay usable;
//! - TCP connect and bind, where the network is off (Landlock 4);
//! - signals and abstract sockets to processes outside (Landlock 6); no new privileges;
//! - governing files that exist (`.claw`, `.claude`, `.mcp.json`, `.git/config`, `.git/hooks`): read-only mounts in a
//!   mount namespace of each command, `.git` itself cannot be renamed; a governing file that is a symlink keeps its
//!   target read-only.
//!
//! What it does not hold:
//! - a governing file that does not exist yet can be made while a command runs: Landlock cannot leave out a name below
//!   a folder, and a mount needs something to stand on. It is moved out of the workspace when the command ends, and the
//!   result says so. The same for a governing symlink that was replaced;
//! - reads (key material in the user's home), UDP, path-bound unix sockets, other processes' `/proc` of the same user
//!   beyond what Landlock's own ptrace rule keeps;
//! - where mounts are refused (no user namespaces), existing governing files: `SandboxStatus::governors_held` is false.

mod governed;
mod policy;
mod status;

pub(crate) use governed::Governed;
pub use policy::{Network, Reach, SandboxPolicy};
pub use status::{SandboxStatus, WallKind};
