//! What commands may touch, and what of that the system holds.
//!
//! A policy is data (`policy.rs`); what holds it is made from it once (`platform`) and lent to each child. The best that
//! the system has is taken, and the status says which:
//!
//! **Full**: a *house* for each policy (`home.rs`, `layout.rs`; namespaces with all mounts that its commands share, made
//! for the first command) and a *room* in it for each command:
//! - everything read-only but the workspace, the extra folders and a private temporary folder, which is `/tmp` there;
//!   devices that do nothing, terminals and shared memory of its own;
//! - no network but a loopback that the commands of a policy share; where some hosts are allowed, a proxy of claw's that
//!   knows names is on it (`proxy.rs`, `hosts.rs`);
//! - processes of its own: it sees no others, nothing outlives the command, nor claw, not even after a kill;
//! - key material of the user, services' sockets, `.env*` of the workspace and whatever else is covered (`covered.rs`)
//!   cannot be seen; what covers a folder is empty, what covers a file cannot be opened, by root neither;
//! - cache folders of build tools, and the workspace of whoever only checks it, are layers that are thrown away;
//! - Landlock and the filter of system calls of the write wall hold beside it.
//!
//! **Write wall**, where namespaces are refused: Landlock and the filter.
//! - writes, truncation, creation, removal and renames only below the workspace, the extra folders and a private
//!   temporary folder; in a read-only policy only below the latter; `/dev/null` and its like stay usable;
//! - where mounts are allowed: modes, owners and times of all else, and governing files that exist;
//! - where the network is off: TCP connect and bind (Landlock 4); streams that Landlock does not know, raw and packet
//!   sockets, data sent before a connection, rings, programs of another word size;
//! - signals and abstract sockets to processes outside (Landlock 6).
//!
//! It does not hold: path-bound unix sockets; a process that leaves its session and wipes its environment; what a command
//! started when claw is killed; reads; UDP. `SandboxStatus::governors_held` and `reason` say what is missing.
//!
//! In both: no new privileges; root's children keep only the rights over files, ids and signals; governing files that
//! exist (`.claw`, `.claude`, `.mcp.json`, in `.git`: `config`, `config.worktree`, `commondir`, `hooks`; a `.git` that is
//! a file) are read-only mounts, the folders above them cannot be renamed, a governing file that is a symlink keeps its
//! target read-only. One that does not exist yet can be made while a command runs, for neither a mount nor Landlock knows
//! names that are not there: it is moved out of the workspace when the command ends, and the result is an error that says
//! so; a `.git` that appeared goes as a whole. What governs in folders below the workspace, in git's own `modules` and
//! `worktrees`, is held by the gate of the tools only.

mod covered;
mod governed;
mod home;
mod hosts;
mod layout;
mod policy;
mod proxy;
mod status;
mod support;

pub use covered::{BadCover, Cover};
pub(crate) use governed::Governed;
pub use hosts::{HostRule, Hosts, InvalidHost, is_public};
pub use policy::{Most, Network, Reach, SandboxPolicy};
pub use status::{FilesystemState, NetworkState, SandboxStatus, WallKind};
pub use support::in_container;
