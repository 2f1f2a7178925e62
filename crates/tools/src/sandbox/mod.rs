//! What commands may touch, and what of that the system holds.
//!
//! A policy is data (`policy.rs`); the wall of the running system is made from it once and lent to each child
//! (`platform`). Today there are two kinds: the **write wall** and **none**; the full sandbox (namespaces, masked
//! reads, no network at all) becomes a third kind of `WallKind`, built by the same `SandboxPolicy::wall`.
//!
//! What the write wall holds, by the kernel:
//! - writes, truncation, creation, removal and renames only below the workspace, the extra folders and a private
//!   temporary folder; in a read-only policy only below the latter; `/dev/null` and its like stay usable;
//! - modes, owners and times of all else: it is mounted read-only for the command;
//! - where the network is off: TCP connect and bind (Landlock 4); by a filter of system calls the streams that Landlock
//!   does not know (MPTCP, SCTP, SMC, machine sockets), raw and packet sockets, data sent before a connection, rings,
//!   and programs of another word size;
//! - signals and abstract sockets to processes outside (Landlock 6); no new privileges; root's children keep only the
//!   rights over files, ids and signals, so that `/proc` of claw, file handles and modules are closed to them;
//! - governing files that exist (`.claw`, `.claude`, `.mcp.json`, in `.git`: `config`, `config.worktree`, `commondir`,
//!   `hooks`; a `.git` that is a file): read-only mounts in a mount namespace of each command; the folders above them
//!   cannot be renamed; a governing file that is a symlink keeps its target read-only.
//!
//! What it does not hold:
//! - a governing file that does not exist yet can be made while a command runs: Landlock cannot leave out a name below
//!   a folder, and a mount needs something to stand on. It is moved out of the workspace when the command ends, and the
//!   result says so; a `.git` that appeared goes as a whole. The same for a symlink that was replaced. What governs in
//!   folders below the workspace, in git's own `modules` and `worktrees`, is held by the gate of the tools only;
//! - path-bound unix sockets: whoever listens there (a terminal multiplexer, a container service, a key agent) acts
//!   outside for whoever may open the socket;
//! - a process that leaves its session and wipes its environment is not found: it outlives its command, and can make
//!   then what would have been moved out;
//! - a kill of claw that cannot be caught ends the shell of a command, not what the shell started; its temporary folder
//!   stays;
//! - reads (key material in the user's home), UDP, name resolution, `listen` without an address of one's own;
//! - where mounts are refused (no user namespaces) or the workspace is `/`: governing files that exist, and modes, owners
//!   and times: `SandboxStatus::governors_held` is false and `reason` says it.

mod covered;
mod governed;
mod home;
mod hosts;
mod layout;
mod policy;
mod proxy;
mod settings;
mod status;
mod support;

pub use covered::{BadCover, Cover};
pub(crate) use governed::Governed;
pub use hosts::{HostRule, Hosts, InvalidHost, is_public};
pub use policy::{Most, Network, Reach, SandboxPolicy};
pub use settings::{CACHES, FilesystemSetting, KindSetting, NetworkSetting, SandboxSettings};
pub use status::{FilesystemState, NetworkState, SandboxStatus, WallKind};
pub use support::in_container;
