//! Hosts that commands may reach. Pure: names are compared here, addresses are checked where they are connected to.

use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// A host and all below it: `example.org` is `example.org` and `www.example.org`, not `badexample.org`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostRule(String);

/// A text that names no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{raw}` is no host; write a name such as example.org, without scheme, port or `*`")]
pub struct InvalidHost {
    raw: String,
}

impl TryFrom<String> for HostRule {
    type Error = InvalidHost;

    fn try_from(raw: String) -> Result<Self, InvalidHost> {
        let name = normal(raw.strip_prefix("*.").unwrap_or(&raw));
        let is_label = |label: &str| {
            !label.is_empty()
                && label.len() <= 63
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
        };
        if name.is_empty() || name.len() > 253 || !name.split('.').all(is_label) || looks_like_address(&name)
        {
            return Err(InvalidHost { raw });
        }
        Ok(Self(name))
    }
}

impl From<HostRule> for String {
    fn from(rule: HostRule) -> Self {
        rule.0
    }
}

/// Lower case, without the dot at the end.
fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// All digits in the last part: no name of the net ends so, and some resolvers read it as an address.
fn looks_like_address(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or_default();
    last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x")
}

/// A list of them, cheap to clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(Arc<[HostRule]>);

impl Hosts {
    /// A list.
    pub fn new(rules: Vec<HostRule>) -> Self {
        Self(rules.into())
    }

    /// Whether a name may be reached. Addresses never are: a list is of names.
    pub fn allow(&self, host: &str) -> bool {
        let host = normal(host);
        self.0.iter().any(|rule| {
            host.strip_suffix(&rule.0).is_some_and(|before| before.is_empty() || before.ends_with('.'))
        })
    }
}

/// Whether an address lies in the open net: no loopback, no private, local or reserved network, no address of a cloud's
/// metadata, in whatever way it is written.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    !(address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        // Shared between a provider and its customers; of the protocol itself; for tests of networks.
        || (a == 100 && b & 0xC0 == 64)
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && b & 0xFE == 18))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    // Addresses of the other kind inside: mapped, translated, tunnelled.
    if let Some(inside) = address.to_ipv4() {
        return is_public_v4(inside);
    }
    let low = |at: usize| Ipv4Addr::from((u32::from(parts[at]) << 16) | u32::from(parts[at + 1]));
    match parts[0] {
        0x64 => parts[1] == 0xFF9B && parts[2..6] == [0; 4] && is_public_v4(low(6)),
        0x2002 => is_public_v4(low(1)),
        0x2001 => parts[1] != 0 && parts[1] != 0xDB8,
        first => first & 0xE000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(names: &[&str]) -> Hosts {
        Hosts::new(names.iter().map(|name| HostRule::try_from((*name).to_owned()).unwrap()).collect())
    }

    #[test]
    fn a_host_is_compared_at_its_dots() {
        let hosts = hosts(&["Example.org", "*.crates.io."]);
        for name in ["example.org", "a.b.EXAMPLE.org.", "crates.io", "static.crates.io"] {
            assert!(hosts.allow(name), "{name}");
        }
        for name in
            ["badexample.org", "example.org.evil", "org", "", ".", "example.orgx", "93.184.216.34", "[::1]"]
        {
            assert!(!hosts.allow(name), "{name}");
        }
    }

    #[test]
    fn what_is_no_name_is_no_rule() {
        for text in [
            "",
            "*",
            "https://x.org",
            "x.org:80",
            "10.0.0.1",
            "2130706433",
            "0x7f.1",
            "1.0x7f",
            "a..b",
            "a/b",
            "[::1]",
        ] {
            let is_rule = HostRule::try_from(text.to_owned()).is_ok();
            assert!(!is_rule || text == "0x7f.1x", "{text}");
        }
    }

    #[test]
    fn private_addresses_are_not_public_in_any_dress() {
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "0.0.0.0",
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "198.18.0.1",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "64:ff9b:1::1",
        ] {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        for text in ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "64:ff9b::101:101", "2002:101:101::"] {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }
}
