//! Names to addresses. What comes out is what is connected to, so this is where names are judged: every answer, every
//! time.

use super::address::judge_ip;
use super::error::WebError;
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Addresses of one name that are looked at.
const MOST: usize = 64;

/// Asks for the addresses of a name.
pub trait Lookup: Send + Sync {
    /// All of them.
    fn addresses<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The system's own resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn addresses<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, 0)).await?;
            Ok(found.map(|address| address.ip()).take(MOST).collect())
        })
    }
}

/// Gives a client public addresses only.
#[derive(Clone)]
pub(super) struct Guard {
    lookup: Arc<dyn Lookup>,
    /// The user's own proxy, which may stand anywhere.
    proxy: Option<String>,
    /// For tests of what is fetched: their servers stand on this machine.
    is_open: bool,
}

impl Guard {
    pub(super) fn new(lookup: Arc<dyn Lookup>, proxy: Option<String>) -> Self {
        Self { lookup, proxy, is_open: false }
    }

    #[cfg(test)]
    pub(super) fn open(lookup: Arc<dyn Lookup>) -> Self {
        Self { lookup, proxy: None, is_open: true }
    }

    /// Whether addresses are judged.
    pub(super) fn judges(&self) -> bool {
        !self.is_open
    }

    /// Addresses of a name, all of them public. One that is not makes the whole answer untrustworthy.
    pub(super) async fn public(&self, host: &str) -> Result<Vec<IpAddr>, WebError> {
        let failed = |why: String| WebError::NoHost { host: host.to_owned(), why };
        let found = self.lookup.addresses(host).await.map_err(|error| failed(error.to_string()))?;
        if found.is_empty() {
            return Err(failed("the name is known but stands for nothing".to_owned()));
        }
        if self.judges() {
            for ip in &found {
                judge_ip(&format!("{host} ({ip})"), *ip)?;
            }
        }
        Ok(found)
    }

    /// Whether a name is that of the proxy.
    pub(super) fn is_proxy(&self, host: &str) -> bool {
        let bare = |name: &str| name.trim_end_matches('.').to_ascii_lowercase();
        self.proxy.as_deref().is_some_and(|proxy| bare(proxy) == bare(host))
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = self.clone();
        Box::pin(async move {
            let host = name.as_str();
            let found = if guard.is_proxy(host) {
                guard.lookup.addresses(host).await?
            } else {
                guard.public(host).await?
            };
            let addresses: Vec<SocketAddr> = found.into_iter().map(|ip| SocketAddr::new(ip, 0)).collect();
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}
