//! The write wall: one Landlock ruleset for each policy, made once, used by every child of that policy.

use super::calls;
use crate::sandbox::{Network, SandboxStatus, WallKind};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, Scope,
};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The newest rights that we know and tested; what an older kernel lacks falls away, and the status says so.
const KNOWN: ABI = ABI::V6;
/// Devices that take bytes and do nothing with them. `/dev/tty` is not among them.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// What a policy needs from Landlock.
#[derive(Debug)]
pub(crate) struct Wall {
    /// Given to each child.
    pub(crate) ruleset: Option<Arc<OwnedFd>>,
    /// The filter of system calls, where the network is off.
    pub(crate) filter: Option<&'static [libc::sock_filter]>,
    /// What holds.
    pub(crate) status: SandboxStatus,
}

impl Wall {
    /// Writes only below `writable` (and to harmless devices), no TCP where the network is off.
    pub(crate) fn build(writable: &[PathBuf], network: &Network) -> Self {
        let abi = abi();
        if abi < 1 {
            return Self::none("this kernel has no Landlock");
        }
        let filter = match network {
            Network::Off | Network::AllowList(_) => calls::filter(),
            Network::On => None,
        };
        match ruleset(writable, network) {
            Ok(created) => match Option::<OwnedFd>::from(created) {
                Some(fd) => Self {
                    ruleset: Some(Arc::new(fd)),
                    filter,
                    status: SandboxStatus {
                        kind: WallKind::WriteWall,
                        abi: version(),
                        network_held: filter.is_some() && abi >= 4,
                        governors_held: false,
                        reason: missing(abi).or_else(|| unfiltered(network, filter.is_some())),
                        ..SandboxStatus::none("")
                    },
                },
                None => Self::none("Landlock is switched off in this kernel"),
            },
            Err(error) => Self::none(&format!("Landlock refused the rules: {error}")),
        }
    }

    fn none(reason: &str) -> Self {
        Self { ruleset: None, filter: None, status: SandboxStatus::none(reason) }
    }
}

fn missing(abi: i64) -> Option<String> {
    match abi {
        1 => Some("old Landlock: files can be truncated and TCP used".to_owned()),
        2 => Some("old Landlock: files can be truncated and TCP used".to_owned()),
        3 => Some("old Landlock: TCP is not held".to_owned()),
        4 | 5 => Some("old Landlock: signals to other processes are not held".to_owned()),
        _ => None,
    }
}

fn unfiltered(network: &Network, is_filtered: bool) -> Option<String> {
    (*network != Network::On && !is_filtered)
        .then(|| "no filter of system calls: streams other than TCP are not held".to_owned())
}

/// The version of Landlock; 0 for none.
pub(crate) fn version() -> u32 {
    u32::try_from(abi()).unwrap_or(0)
}

/// The version of Landlock in the running kernel; 0 or less: none.
pub(super) fn abi() -> i64 {
    const VERSION: u32 = 1;
    // SAFETY: the documented way to ask for the version: no attributes, size 0.
    unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0usize, VERSION) }
}

fn ruleset(writable: &[PathBuf], network: &Network) -> Result<RulesetCreated, RulesetError> {
    let writes = AccessFs::from_write(KNOWN);
    // A device made by root would be a way round every rule.
    let given = writes & !(AccessFs::MakeBlock | AccessFs::MakeChar);
    let mut rules = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(writes)?;
    if *network != Network::On {
        rules = rules.handle_access(AccessNet::from_all(KNOWN))?;
    }
    let mut created =
        rules.scope(Scope::from_all(KNOWN))?.create()?.set_compatibility(CompatLevel::BestEffort);
    for path in writable {
        created = below(created, path, given)?;
    }
    let device = writes & AccessFs::from_file(KNOWN);
    for path in DEVICES {
        created = below(created, Path::new(path), device)?;
    }
    Ok(created)
}

/// A path that cannot be opened gets no right: the wall is then tighter, never looser.
fn below(
    created: RulesetCreated,
    path: &Path,
    rights: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(fd) = PathFd::new(path) else { return Ok(created) };
    let rights = if path.is_dir() { rights } else { rights & AccessFs::from_file(KNOWN) };
    created.add_rule(PathBeneath::new(fd, rights))
}
