//! The HTTP clients, built when first needed: roots are read only for a host that is not this machine.
//!
//! Owns TLS, proxies and connection reuse. Redirects are never followed: a key goes to no host that nobody named.

use crate::config::{Limits, Proxies};
use crate::error::ProviderErrorKind;
use crate::profile::Profile;
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, NoProxy, Proxy};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long an unused connection is kept.
const KEEP: Duration = Duration::from_secs(90);

/// Two clients: one for servers on this machine, one for the world.
#[derive(Debug)]
pub(crate) struct Http {
    connect: Duration,
    proxies: Proxies,
    ca_file: Option<PathBuf>,
    near: Mutex<Option<Client>>,
    far: Mutex<Option<Client>>,
}

impl Http {
    pub(crate) fn new(limits: &Limits, proxies: Proxies, ca_file: Option<PathBuf>) -> Self {
        Self { connect: limits.connect, proxies, ca_file, near: Mutex::default(), far: Mutex::default() }
    }

    /// The client for a profile. Cloning one is cheap; they share their connections.
    pub(crate) fn client(&self, profile: &Profile) -> Result<Client, ProviderErrorKind> {
        let is_near = profile.is_local && profile.endpoint.scheme() == "http";
        let slot = if is_near { &self.near } else { &self.far };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = slot.as_ref() {
            return Ok(client.clone());
        }
        let client = if is_near { self.build_near() } else { self.build_far(profile.is_local) }?;
        *slot = Some(client.clone());
        Ok(client)
    }

    fn build_near(&self) -> Result<Client, ProviderErrorKind> {
        // Never used for TLS, so it needs no roots; without a configuration the library would load them.
        let tls = tls(RootCertStore::empty())?;
        finish(self.base(tls).no_proxy())
    }

    fn build_far(&self, is_local: bool) -> Result<Client, ProviderErrorKind> {
        let mut builder = self.base(self.trusting()?).no_proxy();
        if !is_local {
            for proxy in self.proxy_list()? {
                builder = builder.proxy(proxy);
            }
        }
        finish(builder)
    }

    fn base(&self, tls: ClientConfig) -> ClientBuilder {
        Client::builder()
            .tls_backend_preconfigured(tls)
            // One connection for each request in flight: no stream limit of a shared one slows a fan-out down.
            .http1_only()
            .redirect(Policy::none())
            .referer(false)
            .connect_timeout(self.connect)
            .pool_idle_timeout(KEEP)
            .tcp_nodelay(true)
            .user_agent(concat!("claw/", env!("CARGO_PKG_VERSION")))
    }

    fn proxy_list(&self) -> Result<Vec<Proxy>, ProviderErrorKind> {
        let except = self.proxies.no_proxy.as_deref().and_then(NoProxy::from_string);
        let mut all = Vec::new();
        if let Some(address) = &self.proxies.https {
            all.push(Proxy::https(address).map_err(|_| bad_proxy("HTTPS_PROXY"))?.no_proxy(except.clone()));
        }
        if let Some(address) = &self.proxies.http {
            all.push(Proxy::http(address).map_err(|_| bad_proxy("HTTP_PROXY"))?.no_proxy(except));
        }
        Ok(all)
    }

    fn trusting(&self) -> Result<ClientConfig, ProviderErrorKind> {
        if let Some(path) = &self.ca_file {
            return tls(roots_in(path)?);
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            rustls_platform_verifier::Verifier::new(Arc::clone(&provider)).map_err(|e| config(&e))?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|e| config(&e))?;
        let mut tls = builder
            .dangerous() // A verifier of one's own is called so; this one is the platform's.
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(tls)
    }
}

fn finish(builder: ClientBuilder) -> Result<Client, ProviderErrorKind> {
    builder.build().map_err(|error| config(&error))
}

fn tls(roots: RootCertStore) -> Result<ClientConfig, ProviderErrorKind> {
    let mut tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| config(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(tls)
}

fn roots_in(path: &Path) -> Result<RootCertStore, ProviderErrorKind> {
    let unreadable = |what: String| {
        ProviderErrorKind::Config(format!(
            "cannot read certificates of SSL_CERT_FILE `{}`: {what}",
            path.display()
        ))
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|e| unreadable(e.to_string()))? {
        roots
            .add(certificate.map_err(|e| unreadable(e.to_string()))?)
            .map_err(|e| unreadable(e.to_string()))?;
    }
    if roots.is_empty() { Err(unreadable("it holds none".to_owned())) } else { Ok(roots) }
}

fn bad_proxy(variable: &str) -> ProviderErrorKind {
    ProviderErrorKind::Config(format!(
        "{variable} is no address of a proxy; set it to one such as http://host:3128"
    ))
}

fn config(error: &dyn std::error::Error) -> ProviderErrorKind {
    ProviderErrorKind::Config(format!("cannot set up HTTPS: {error}"))
}
