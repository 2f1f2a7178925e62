//! Which addresses are open to a model: those of the public internet. Pure.

use super::error::WebError;
use crate::cut;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::{Host, Url};

/// Characters of an address in an error.
const MOST_SHOWN: usize = 200;
/// Names of this machine and of its network, and of the services that give a machine its keys.
const CLOSED_NAMES: [&str; 6] = ["localhost", "local", "internal", "localdomain", "home.arpa", "lan"];

/// An address as typed, checked as far as that can be without asking anybody. A name without a scheme is understood as
/// https.
pub fn judge(typed: &str) -> Result<Url, WebError> {
    let typed = typed.trim();
    let is_bare = !typed.contains("://") && typed.contains('.') && !typed.contains([':', ' ', '@']);
    let full = if is_bare { format!("https://{typed}") } else { typed.to_owned() };
    let url = Url::parse(&full).map_err(|error| WebError::NoAddress {
        typed: cut::head(typed, MOST_SHOWN),
        why: error.to_string(),
    })?;
    judge_url(&url)?;
    Ok(url)
}

/// The same for an address that somebody else gave: the target of a redirect.
pub(super) fn judge_url(url: &Url) -> Result<(), WebError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(WebError::Scheme(cut::head(url.scheme(), 30)));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(WebError::Credentials);
    }
    match url.host() {
        None => {
            let typed = cut::head(url.as_str(), MOST_SHOWN);
            Err(WebError::NoAddress { typed, why: "it names no host".to_owned() })
        }
        Some(Host::Domain(name)) => judge_name(name),
        Some(Host::Ipv4(ip)) => judge_ip(&ip.to_string(), IpAddr::V4(ip)),
        Some(Host::Ipv6(ip)) => judge_ip(&ip.to_string(), IpAddr::V6(ip)),
    }
}

fn judge_name(name: &str) -> Result<(), WebError> {
    let bare = name.trim_end_matches('.').to_ascii_lowercase();
    let below = |closed: &&str| bare == **closed || bare.ends_with(&format!(".{closed}"));
    if CLOSED_NAMES.iter().any(below) {
        return Err(WebError::NotPublic {
            host: cut::head(name, MOST_SHOWN),
            why: "it is a name of this machine or of its own network",
        });
    }
    if bare.is_empty() {
        return Err(WebError::NoHost { host: name.to_owned(), why: "it is empty".to_owned() });
    }
    Ok(())
}

/// Refuses an address that is not public. `host`: how it is named in the error.
pub(super) fn judge_ip(host: &str, ip: IpAddr) -> Result<(), WebError> {
    match closed(ip) {
        None => Ok(()),
        Some(why) => Err(WebError::NotPublic { host: cut::head(host, MOST_SHOWN), why }),
    }
}

/// Whether an address belongs to the public internet.
pub fn is_public(ip: IpAddr) -> bool {
    closed(ip).is_none()
}

/// What an address is that is not public.
fn closed(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(ip) => closed_v4(ip),
        IpAddr::V6(ip) => closed_v6(ip),
    }
}

/// A host of one cloud that answers its machines from a public address.
const PLATFORM_HOST: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

fn closed_v4(ip: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = ip.octets();
    match (a, b, c) {
        (127, ..) => Some("it is a loopback address"),
        (0, ..) => Some("it is an address of this machine"),
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => Some("it is a private address"),
        (169, 254, _) => Some("it is a link-local address, where machines find their keys"),
        (100, 64..=127, _) => Some("it is a shared address of a provider's own network"),
        (192, 0, 0 | 2) | (198, 51, 100) | (203, 0, 113) | (198, 18..=19, _) | (192, 88, 99) => {
            Some("it is a reserved address")
        }
        (224.., ..) => Some("it is a multicast or reserved address"),
        _ if ip == PLATFORM_HOST => Some("it is the address of a cloud's own service"),
        _ => None,
    }
}

fn closed_v6(ip: Ipv6Addr) -> Option<&'static str> {
    let parts = ip.segments();
    let last_v4 = || {
        let [.., a, b, c, d] = ip.octets();
        Ipv4Addr::new(a, b, c, d)
    };
    match parts {
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("it is a loopback address"),
        [0, 0, 0, 0, 0, 0, ..] | [0, 0, 0, 0, 0, 0xffff, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => {
            Some("it is another address in disguise")
        }
        // Addresses of the fourth version behind a translator are what they are.
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => closed_v4(last_v4()),
        [0x2002, high, low, ..] => {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            closed_v4(Ipv4Addr::new(a, b, c, d))
        }
        [0xfc00..=0xfdff, ..] => Some("it is a private address (unique local)"),
        [0xfe80..=0xfebf, ..] => Some("it is a link-local address"),
        [0xfec0..=0xfeff, ..] => Some("it is a site-local address"),
        [0xff00..=0xffff, ..] => Some("it is a multicast address"),
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => {
            Some("it is a reserved address")
        }
        // What is public is handed out from here only.
        [0x2000..=0x3fff, ..] => None,
        _ => Some("it is a reserved address"),
    }
}

/// Whether a host is a domain or lies below it: `docs.example.org` in `example.org`, never `evilexample.org`.
pub(super) fn is_within(host: &str, domain: &str) -> bool {
    let clean = |name: &str| name.trim().trim_start_matches("*.").trim_matches('.').to_ascii_lowercase();
    let (host, domain) = (clean(host), clean(domain));
    !domain.is_empty()
        && host.strip_suffix(&domain).is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_not_the_public_internet_is_refused_in_every_spelling() {
        for bad in [
            "http://127.0.0.1:8080/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[::127.0.0.1]/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://0/",
            "http://[::]/",
            "http://169.254.169.254/latest/meta-data",
            "http://[fd00:ec2::254]/",
            "http://metadata.google.internal/",
            "http://localhost/",
            "http://localhost./",
            "http://LOCALHOST:80/",
            "http://a.localhost/",
            "http://docs.example@127.0.0.1/",
            "http://user:pass@example.org/",
            "http://１２７.0.0.1/",
            "http://10.0.0.1",
            "http://172.31.255.255",
            "http://192.168.0.1",
            "http://100.100.100.200/",
            "http://168.63.129.16/",
            "http://[64:ff9b::7f00:1]/",
            "http://[2002:7f00:1::]/",
            "http://[fe80::1]/",
            "http://[2001:db8::1]/",
            "http://printer.local/",
            "http://router.home.arpa/",
            "http://224.0.0.1/",
            "http://255.255.255.255/",
            "file:///etc/passwd",
            "gopher://example.org/",
            "ftp://example.org/",
            "data:text/plain,x",
            "javascript:alert(1)",
            "http:///",
            "",
            "no address",
        ] {
            let judged = judge(bad);
            assert!(judged.is_err(), "{bad} → {judged:?}");
        }
    }

    #[test]
    fn the_public_internet_is_open() {
        for good in
            ["https://example.org/a?b#c", "http://93.184.215.14/", "http://[2606:2800::1]/", "example.org/x"]
        {
            judge(good).unwrap();
        }
        assert_eq!(judge("example.org/x").unwrap().as_str(), "https://example.org/x");
    }

    #[test]
    fn a_domain_ends_at_a_dot() {
        assert!(is_within("docs.Example.org", "example.org") && is_within("example.org.", ".example.org"));
        assert!(is_within("a.example.org", "*.example.org"));
        assert!(
            !is_within("evilexample.org", "example.org") && !is_within("example.org.evil", "example.org")
        );
        assert!(!is_within("example.org", ""));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]
        #[test]
        fn any_text_is_judged_without_a_panic_and_no_inner_address_passes(text in "\\PC{0,40}") {
            if let Ok(url) = judge(&text) {
                prop_assert!(matches!(url.scheme(), "http" | "https"));
            }
        }

        #[test]
        fn an_address_of_the_fourth_version_is_judged_alike_in_any_number(ip in any::<u32>()) {
            let plain = is_public(IpAddr::V4(Ipv4Addr::from(ip)));
            for spelled in [format!("http://{ip}/"), format!("http://{ip:#x}/"), format!("http://0{ip:o}/")] {
                prop_assert_eq!(judge(&spelled).is_ok(), plain, "{}", spelled);
            }
            let mapped = Ipv4Addr::from(ip).to_ipv6_mapped();
            prop_assert!(!is_public(IpAddr::V6(mapped)));
        }
    }
}
