//! The services: a table of three, and those of the settings. One code for all of them.
//!
//! Owns where a service is and what it can. Must not know requests.

use crate::config::{ModelEntry, ProfileSettings, ProfilesTable};
use crate::credentials::{Credentials, Secret};
use crate::error::ProviderErrorKind;
use crate::models::{ModelInfo, Price, known};
use crate::wire::Wire;
use reqwest::Url;
use std::net::IpAddr;
use std::time::Duration;

/// One service of one account.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its name, lower case: the part before the slash in `provider/model`.
    pub name: String,
    /// How it spells requests.
    pub wire: Wire,
    /// Where requests go.
    pub endpoint: Url,
    /// Whether the server is on this machine.
    pub is_local: bool,
    /// Whether the user named the base URL of a built-in provider.
    pub is_custom: bool,
    /// `None` where they are missing.
    pub credentials: Option<Credentials>,
    /// The variables that would hold them.
    pub variables: Vec<String>,
    /// Models of which the profile knows; the first is its default.
    pub models: Vec<ModelEntry>,
    /// More headers.
    pub headers: Vec<(String, String)>,
    /// Set by the settings; `None` = by what the server is.
    pub text_tool_calls: Option<bool>,
    /// Whether the service can hold an answer to a schema.
    pub answer_schema: bool,
    /// Price of all its models, where the settings name one.
    pub price: Option<Price>,
    /// Until the first byte, where it differs from the usual limit.
    pub first_byte: Option<Duration>,
    /// Requests in flight, where they differ from the usual limit.
    pub in_flight: Option<usize>,
}

/// How a key goes out.
type Shape = fn(Secret) -> Credentials;

/// A provider that needs no settings.
struct BuiltIn {
    name: &'static str,
    wire: Wire,
    base: &'static str,
    base_variable: &'static str,
    /// Variables of keys, in order.
    keys: &'static [(&'static str, Shape)],
    models: &'static [&'static str],
}

const BUILT_IN: [BuiltIn; 3] = [
    BuiltIn {
        name: "anthropic",
        wire: Wire::Anthropic,
        base: "https://api.anthropic.com",
        base_variable: "ANTHROPIC_BASE_URL",
        keys: &[("ANTHROPIC_API_KEY", Credentials::ApiKey), ("ANTHROPIC_AUTH_TOKEN", Credentials::Bearer)],
        models: &["claude-opus-4-6", "claude-sonnet-4-6", "claude-haiku-4-5"],
    },
    BuiltIn {
        name: "openai",
        wire: Wire::Chat,
        base: "https://api.openai.com/v1",
        base_variable: "OPENAI_BASE_URL",
        keys: &[("OPENAI_API_KEY", Credentials::Bearer)],
        models: &["gpt-5", "gpt-5-mini"],
    },
    BuiltIn {
        name: "xai",
        wire: Wire::Chat,
        base: "https://api.x.ai/v1",
        base_variable: "XAI_BASE_URL",
        keys: &[("XAI_API_KEY", Credentials::Bearer)],
        models: &["grok-3", "grok-3-mini", "grok-2"],
    },
];

/// A variable by its name; empty ones are unset.
type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// All profiles, in the order of routing.
pub(crate) fn profiles(get: Env<'_>, table: &ProfilesTable) -> Result<Vec<Profile>, ProviderErrorKind> {
    let none = ProfileSettings::default();
    let of = |name: &str| table.providers.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, s)| s);
    let mut all = Vec::new();
    for row in &BUILT_IN {
        all.push(built_in(row, of(row.name).unwrap_or(&none), get, table)?);
    }
    for (name, settings) in &table.providers {
        if !BUILT_IN.iter().any(|row| row.name.eq_ignore_ascii_case(name)) {
            all.push(configured(&name.to_lowercase(), settings, get, table)?);
        }
    }
    Ok(all)
}

fn built_in(
    row: &BuiltIn,
    settings: &ProfileSettings,
    get: Env<'_>,
    table: &ProfilesTable,
) -> Result<Profile, ProviderErrorKind> {
    let from_variable = get(row.base_variable);
    let is_custom = from_variable.is_some() || settings.base_url.is_some();
    let source = if from_variable.is_some() { row.base_variable } else { "base_url" };
    let base = from_variable.or_else(|| settings.base_url.clone()).unwrap_or_else(|| row.base.to_owned());
    let wire = settings.wire.unwrap_or(row.wire);
    let mut variables: Vec<String> = settings.api_key_env.iter().cloned().collect();
    variables.extend(row.keys.iter().map(|(name, _)| (*name).to_owned()));
    let named = settings.api_key_env.as_deref().and_then(get).and_then(|raw| Secret::new(&raw));
    let credentials = named
        .map(|secret| row.keys.first().map_or(Credentials::Bearer as Shape, |(_, shape)| *shape)(secret))
        .or_else(|| row.keys.iter().find_map(|(name, shape)| Some(shape(Secret::new(&get(name)?)?))))
        .or_else(|| {
            let shape = row.keys.first().map_or(Credentials::Bearer as Shape, |(_, shape)| *shape);
            saved_key(row.name, table).map(shape)
        })
        .or_else(|| saved_login(row, table));
    let mut profile = Profile::new(row.name, wire, endpoint(&base, wire, row.name, source)?, settings, table);
    profile.is_custom = is_custom;
    profile.variables = variables;
    profile.set_credentials(credentials);
    if profile.models.is_empty() && !profile.is_local {
        profile.models = row.models.iter().map(|name| ModelEntry::Name((*name).to_owned())).collect();
    }
    Ok(profile)
}

/// What `claw login` saved for a provider.
fn saved_key(name: &str, table: &ProfilesTable) -> Option<Secret> {
    let saved = table.saved_keys.iter().find(|(own, _)| own.eq_ignore_ascii_case(name));
    saved.and_then(|(_, key)| Secret::new(key))
}

fn saved_login(row: &BuiltIn, table: &ProfilesTable) -> Option<Credentials> {
    let token = table.saved_login.as_deref().filter(|_| row.wire == Wire::Anthropic)?;
    Some(Credentials::Login(Secret::new(token)?))
}

fn configured(
    name: &str,
    settings: &ProfileSettings,
    get: Env<'_>,
    table: &ProfilesTable,
) -> Result<Profile, ProviderErrorKind> {
    let base = settings.base_url.as_deref().ok_or_else(|| {
        ProviderErrorKind::Config(format!("provider `{name}` has no base_url; set providers.{name}.base_url"))
    })?;
    let wire = settings.wire.unwrap_or(Wire::Chat);
    let mut profile = Profile::new(name, wire, endpoint(base, wire, name, "base_url")?, settings, table);
    profile.is_custom = true;
    profile.variables = settings.api_key_env.iter().cloned().collect();
    let secret = settings.api_key_env.as_deref().and_then(get).and_then(|raw| Secret::new(&raw));
    let secret = secret.or_else(|| saved_key(name, table));
    profile.set_credentials(match (secret, wire) {
        (Some(key), Wire::Anthropic) => Some(Credentials::ApiKey(key)),
        (Some(key), Wire::Chat) => Some(Credentials::Bearer(key)),
        (None, _) => settings.api_key_env.is_none().then_some(Credentials::NotNeeded),
    });
    Ok(profile)
}

impl Profile {
    fn new(name: &str, wire: Wire, endpoint: Url, settings: &ProfileSettings, table: &ProfilesTable) -> Self {
        let is_local = is_loopback(&endpoint);
        let in_flight = table.in_flight.iter().find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, n)| *n);
        Self {
            name: name.to_owned(),
            wire,
            endpoint,
            is_local,
            is_custom: false,
            credentials: None,
            variables: Vec::new(),
            models: settings.models.clone(),
            headers: settings.headers.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            text_tool_calls: settings.text_tool_calls,
            // Local servers know a response format on the chat wire only.
            answer_schema: settings.answer_schema.unwrap_or(is_local && wire == Wire::Chat),
            price: settings.price,
            first_byte: settings.first_byte_secs.map(Duration::from_secs),
            in_flight,
        }
    }

    fn set_credentials(&mut self, found: Option<Credentials>) {
        self.credentials = found.or_else(|| self.is_local.then_some(Credentials::NotNeeded));
    }

    /// Whether requests can be sent.
    pub fn is_usable(&self) -> bool {
        self.credentials.is_some()
    }

    /// Values that must not be printed: its key, and headers that are named like one.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let is_key = |name: &str| {
            let name = name.to_ascii_lowercase();
            ["auth", "key", "token", "secret", "cookie"].iter().any(|word| name.contains(word))
        };
        let headers =
            self.headers.iter().filter(move |(name, _)| is_key(name)).map(|(_, value)| value.as_str());
        self.credentials.iter().filter_map(Credentials::secret).map(Secret::reveal).chain(headers)
    }

    /// Whether the profile lists this model.
    pub fn lists(&self, model: &str) -> bool {
        self.models.iter().any(|entry| entry.name().eq_ignore_ascii_case(model))
    }

    /// The model to use where none is named. A local server takes any name.
    pub fn first_model(&self) -> Option<String> {
        let listed = self.models.first().map(|entry| entry.name().to_owned());
        listed.or_else(|| self.is_local.then(|| "local".to_owned()))
    }

    /// What is known of a model here: the settings' word before the table's. A server on this machine that wants no
    /// key is free of charge; one with a key may be a gateway to a service that is not.
    pub fn info(&self, model: &str) -> ModelInfo {
        let mut info = known(model).unwrap_or(ModelInfo::UNKNOWN);
        let is_free = self.is_local && self.credentials == Some(Credentials::NotNeeded);
        info.price = self.price.or(if is_free { Some(Price::FREE) } else { info.price });
        let described = self.models.iter().find_map(|entry| match entry {
            ModelEntry::Described(known) if known.name.eq_ignore_ascii_case(model) => Some(known),
            ModelEntry::Described(_) | ModelEntry::Name(_) => None,
        });
        if let Some(known) = described {
            info.window = known.window.or(info.window);
            info.max_output = known.max_output.or(info.max_output);
            info.price = known.price.or(info.price);
        }
        info
    }

    /// Whether this model writes its calls into the text.
    pub fn writes_calls_as_text(&self, model: &str) -> bool {
        self.text_tool_calls.unwrap_or_else(|| self.is_local && model.eq_ignore_ascii_case("local"))
    }
}

/// Where requests go; a base that already ends in the endpoint's path is taken as it is.
fn endpoint(base: &str, wire: Wire, provider: &str, source: &str) -> Result<Url, ProviderErrorKind> {
    let base = base.trim().trim_end_matches('/');
    let address = match wire {
        Wire::Anthropic if base.ends_with("/v1/messages") => base.to_owned(),
        Wire::Anthropic if base.ends_with("/v1") => format!("{base}/messages"),
        Wire::Anthropic => format!("{base}/v1/messages"),
        Wire::Chat if base.ends_with("/chat/completions") => base.to_owned(),
        Wire::Chat => format!("{base}/chat/completions"),
    };
    let url =
        Url::parse(&address).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| {
        ProviderErrorKind::Config(format!(
            "{source} of provider `{provider}` is no http or https address; set it to one such as https://host/v1"
        ))
    })
}

fn is_loopback(url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(base: &str, wire: Wire) -> String {
        endpoint(base, wire, "p", "base_url").unwrap().to_string()
    }

    #[test]
    fn endpoints_are_completed_once() {
        assert_eq!(at("http://h/v1/", Wire::Chat), "http://h/v1/chat/completions");
        assert_eq!(at("http://h/v1/chat/completions", Wire::Chat), "http://h/v1/chat/completions");
        assert_eq!(at("https://h", Wire::Anthropic), "https://h/v1/messages");
        assert_eq!(at("https://h/v1", Wire::Anthropic), "https://h/v1/messages");
        assert!(endpoint("ftp://h", Wire::Chat, "p", "base_url").is_err());
        assert!(endpoint("nonsense", Wire::Chat, "p", "base_url").is_err());
    }

    #[test]
    fn loopback_is_told_from_the_rest() {
        for (url, local) in [
            ("http://127.0.0.1:80/", true),
            ("http://[::1]:1/", true),
            ("http://localhost/", true),
            ("http://10.0.0.1/", false),
            ("https://localhost.example.com/", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), local, "{url}");
        }
    }
}
