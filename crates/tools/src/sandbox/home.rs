//! The house of a policy, made for its first command and again when a folder that commands write is another one.

use super::governed::Governed;
use super::hosts::Hosts;
use super::layout::{Wants, search_path};
use super::policy::{Network, SandboxPolicy};
use super::proxy::{self, Proxy};
use super::status::{SandboxStatus, WallKind};
use crate::platform::{self, Beneath, ChildPlan, House, HousePlan, PROXY_PORT};
use crate::process::{Scratch, raise_house};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

/// A house that stands.
#[derive(Debug)]
pub(super) struct Home {
    house: Arc<House>,
    beneath: Option<Arc<Beneath>>,
    /// Where the temporary folder of the policy is seen inside.
    tmp: Option<PathBuf>,
    /// What lies below that and is not the temporary folder's.
    kept: Vec<PathBuf>,
    /// The folders that were put into it, as they were.
    made_of: Vec<Option<(u64, u64)>>,
    _proxy: Option<Proxy>,
}

/// What a full sandbox holds.
pub(super) fn status(network: &Network) -> SandboxStatus {
    let (own_network, network_held) = match network {
        Network::Off | Network::AllowList(_) => (true, true),
        Network::On => (false, false),
    };
    let mut namespaces = vec!["user", "mount", "pid", "ipc"];
    if own_network {
        namespaces.push("network");
    }
    if !platform::needs_user_namespace() {
        namespaces.remove(0);
    }
    SandboxStatus {
        kind: WallKind::Full,
        namespaces,
        abi: platform::landlock(),
        network_held,
        governors_held: true,
        reason: None,
        ..SandboxStatus::none("")
    }
}

impl SandboxPolicy {
    /// A room for a command that works in `folder`. Errors: the house cannot be made.
    pub(super) fn room(&self, folder: &Path, governed: &Governed) -> io::Result<ChildPlan> {
        let found = self.covers.found();
        let covered = found.iter().map(|(path, is_folder)| (path.as_path(), *is_folder));
        let filter = match self.network {
            Network::Off | Network::AllowList(_) => platform::filter(),
            Network::On => None,
        };
        let (house, beneath) = self.home()?;
        let plan = ChildPlan::new(&self.inside(folder));
        let held = self.above(&found);
        Ok(plan.with_room(house, governed.pins(), covered, held).with_rules(beneath, filter))
    }

    /// The folders between what commands write and what is covered in it, those above others first.
    fn above<'f>(&self, found: &'f [(PathBuf, bool)]) -> BTreeSet<&'f Path> {
        let written: Vec<&PathBuf> =
            std::iter::once(&self.workspace).chain(&self.extra).chain(&self.caches).collect();
        let is_in = |path: &Path| written.iter().any(|root| path.starts_with(root) && path != root.as_path());
        found.iter().flat_map(|(path, _)| path.ancestors().skip(1)).filter(|path| is_in(path)).collect()
    }

    fn home(&self) -> io::Result<(Arc<House>, Option<Arc<Beneath>>)> {
        let mut home = self.house.lock().unwrap_or_else(PoisonError::into_inner);
        let made_of = self.made_of();
        let fits = home.take().filter(|home| home.made_of == made_of);
        let home = home.insert(fits.map_or_else(|| self.raise(made_of), Ok)?);
        Ok((Arc::clone(&home.house), home.beneath.clone()))
    }

    fn made_of(&self) -> Vec<Option<(u64, u64)>> {
        let identity = |path: &PathBuf| path.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
        std::iter::once(&self.workspace).chain(&self.extra).map(identity).collect()
    }

    fn raise(&self, made_of: Vec<Option<(u64, u64)>>) -> io::Result<Home> {
        let make = || self.has_layers().then(|| Scratch::make().ok()).flatten();
        let layers = self.layers.get_or_init(make).as_ref();
        match self.raise_with(layers.map(Scratch::path), made_of.clone()) {
            Err(error) if layers.is_some() => {
                tracing::warn!(%error, "no layers: caches of build tools and private copies are read-only to commands");
                self.raise_with(None, made_of)
            }
            other => other,
        }
    }

    fn has_layers(&self) -> bool {
        self.is_copied || !self.caches.is_empty()
    }

    fn raise_with(&self, layers: Option<&Path>, made_of: Vec<Option<(u64, u64)>>) -> io::Result<Home> {
        // A policy that was closed has none any more.
        let scratch = self.scratch().map(Scratch::path).filter(|path| path.exists());
        let writable = self.writable().unwrap_or_default();
        let copied = self.copied(&writable);
        let home = std::env::home_dir().into_iter().filter(|home| home.parent().is_some());
        let wants = Wants {
            writable: &writable,
            copied: &copied,
            visible: self
                .visible
                .iter()
                .cloned()
                .chain(home)
                .chain(search_path())
                .chain([self.workspace.clone()])
                .map(|path| crate::files::paths::resolve(&path))
                .collect(),
            covered: self.covers.found().to_vec(),
            leaves: &|path| self.covers.leaves(path),
            scratch,
            layers,
            has_network: self.network == Network::On,
        };
        let layout = wants.layout()?;
        let (own_network, listens) = match &self.network {
            Network::Off => (true, false),
            Network::AllowList(_) => (true, true),
            Network::On => (false, false),
        };
        let (house, listener) = raise_house(HousePlan::new(layout.fixtures, own_network, listens))?;
        Ok(Home {
            house: Arc::new(house),
            beneath: Beneath::new(&layout.written).map(Arc::new),
            tmp: layout.tmp,
            kept: layout.kept,
            made_of,
            _proxy: self.proxy(listener)?,
        })
    }

    /// Folders over which commands get layers.
    fn copied(&self, writable: &[PathBuf]) -> Vec<PathBuf> {
        let workspace = self.is_copied.then(|| self.workspace.clone());
        let is_new = |cache: &&PathBuf| {
            cache.is_dir()
                && cache.parent().is_some()
                && !writable.iter().any(|path| cache.starts_with(path) || path.starts_with(cache))
        };
        let mut all: Vec<PathBuf> =
            workspace.into_iter().chain(self.caches.iter().filter(is_new).cloned()).collect();
        all.sort_unstable();
        // One in another has its layer already.
        all.dedup_by(|inner, outer| inner.starts_with(outer));
        all
    }

    fn proxy(&self, listener: Option<OwnedFd>) -> io::Result<Option<Proxy>> {
        match (&self.network, listener) {
            (Network::AllowList(hosts), Some(listener)) => {
                proxy::start(listener, Hosts::clone(hosts)).map(Some)
            }
            (Network::AllowList(_) | Network::Off | Network::On, _) => Ok(None),
        }
    }

    /// How a path in the temporary folder is called by commands.
    pub(crate) fn inside(&self, path: &Path) -> PathBuf {
        let home = self.house.lock().unwrap_or_else(PoisonError::into_inner);
        let tmp = home.as_ref().and_then(|home| home.tmp.as_ref());
        match (tmp, self.scratch().and_then(|scratch| path.strip_prefix(scratch.path()).ok())) {
            (Some(tmp), Some(below)) => tmp.join(below),
            (_, _) => path.to_owned(),
        }
    }

    /// How a path that a command named is called outside.
    pub(crate) fn outside(&self, path: &Path) -> PathBuf {
        let home = self.house.lock().unwrap_or_else(PoisonError::into_inner);
        let is_tmp = |home: &&Home| !home.kept.iter().any(|kept| path.starts_with(kept));
        let tmp = home.as_ref().filter(is_tmp).and_then(|home| home.tmp.as_ref());
        match (tmp.and_then(|tmp| path.strip_prefix(tmp).ok()), self.scratch()) {
            (Some(below), Some(scratch)) => scratch.path().join(below),
            (_, _) => path.to_owned(),
        }
    }

    /// Where programs find the proxy.
    pub(super) fn proxy_environment(&self) -> Vec<(OsString, OsString)> {
        const NAMES: [&str; 8] = [
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "ALL_PROXY",
            "http_proxy",
            "https_proxy",
            "all_proxy",
            "CARGO_HTTP_PROXY",
            "npm_config_proxy",
        ];
        let Network::AllowList(_) = self.network else { return Vec::new() };
        if !self.is_full() {
            return Vec::new();
        }
        let address = format!("http://127.0.0.1:{PROXY_PORT}");
        let proxies = NAMES.map(|name| (name.into(), address.clone().into()));
        let none = ["NO_PROXY", "no_proxy"].map(|name| (name.into(), "127.0.0.1,localhost,::1".into()));
        proxies.into_iter().chain(none).collect()
    }
}
