//! The HTTP client of web tools, made when first needed: no cookies, no redirects of its own, no connection kept.

use super::error::WebError;
use super::lookup::Guard;
use reqwest::redirect::Policy;
use reqwest::{Client, NoProxy, Proxy};
use rustls::ClientConfig;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// To be connected.
const CONNECT: Duration = Duration::from_secs(10);

/// What the user's environment says about the way out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WebConfig {
    /// The proxy of https addresses. Those of http never go through one: it would ask for a name again, and could be led
    /// inside by another answer. With https that answer would have to show the name's certificate.
    pub https_proxy: Option<String>,
    /// Hosts that are reached without it.
    pub no_proxy: Option<String>,
}

impl WebConfig {
    /// The proxy's host, where it can be read.
    pub(super) fn proxy_host(&self) -> Option<String> {
        let typed = self.https_proxy.as_deref()?;
        let full = if typed.contains("://") { typed.to_owned() } else { format!("http://{typed}") };
        Url::parse(&full).ok()?.host_str().map(str::to_owned)
    }
}

/// With the system's roots.
pub(super) fn tls() -> Result<ClientConfig, WebError> {
    let setup = |error: &dyn std::error::Error| WebError::Setup(error.to_string());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = rustls_platform_verifier::Verifier::new(Arc::clone(&provider)).map_err(|e| setup(&e))?;
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| setup(&e))?
        .dangerous() // A verifier of one's own is called so; this one is the platform's.
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(tls)
}

pub(super) fn build(config: &WebConfig, guard: Guard) -> Result<Client, WebError> {
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls()?)
        .http1_only()
        .redirect(Policy::none())
        .referer(false)
        .connect_timeout(CONNECT)
        // Each request asks for the name and is judged anew.
        .pool_max_idle_per_host(0)
        .dns_resolver(Arc::new(guard))
        .no_proxy()
        .user_agent(concat!("claw/", env!("CARGO_PKG_VERSION")));
    if let Some(address) = &config.https_proxy {
        let except = config.no_proxy.as_deref().and_then(NoProxy::from_string);
        let proxy = Proxy::https(address).map_err(|_| {
            WebError::Setup(
                "HTTPS_PROXY is no address of a proxy; set it to one such as http://host:3128".to_owned(),
            )
        })?;
        builder = builder.proxy(proxy.no_proxy(except));
    }
    builder.build().map_err(|error| WebError::Setup(error.to_string()))
}
