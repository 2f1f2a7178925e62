//! What the settings and the environment say about providers, parsed once.
//!
//! Owns names of variables and their meaning. Reads nothing itself: the environment is a function that the caller
//! gives.
//!
//! | variable | unit | default | meaning |
//! |---|---|---|---|
//! | `CLAW_REQUEST_TRIES` | count | 6 | tries of a request, the first included |
//! | `CLAW_RETRY_BASE_MS` | ms | 1000 | first ceiling of the backoff |
//! | `CLAW_RETRY_WINDOW_MS` | ms | 300000 | no try begins later |
//! | `CLAW_FIRST_BYTE_MS` | ms | 120000 | until the first byte of an answer |
//! | `CLAW_FIRST_TOKEN_MS` | ms | 300000 | until the first block of an answer, keep-alives or not |
//! | `CLAW_STREAM_IDLE_MS` | ms | 90000 | between events that are not keep-alives |
//! | `CLAW_MAX_IN_FLIGHT` | count | 256 | requests at once for each account |
//! | `CLAW_BREAKER_FAILURES` | count | 3 | failures of a service after which a run's requests wait behind one probe |
//! | `CLAW_BREAKER_WINDOW_MS` | ms | 60000 | within this time |
//! | `CLAW_BREAKER_WAIT_MS` | ms | 2000 | until the first probe; it doubles up to a minute |
//! | `CLAW_BREAKER_LONGEST_MS` | ms | 1800000 | held back for so long, a service is given up |

use crate::error::ProviderErrorKind;
use crate::limiter::BreakerPolicy;
use crate::models::Price;
use crate::profile::{Profile, profiles};
use crate::retry::RetryPolicy;
use crate::wire::Wire;
use indexmap::IndexMap;
use serde::Deserialize;
use std::path::PathBuf;
use std::time::Duration;

/// The part of the settings that speaks of providers.
#[derive(Clone, Debug, Default)]
pub struct ProfilesTable {
    /// `providers.<name>`.
    pub providers: IndexMap<String, ProfileSettings>,
    /// `aliases`: more names for models.
    pub aliases: IndexMap<String, String>,
    /// `model`.
    pub model: Option<String>,
    /// Requests in flight for each provider, by name.
    pub in_flight: IndexMap<String, usize>,
    /// The access token of `claw login`, still valid.
    pub saved_login: Option<String>,
    /// Keys that `claw login` saved, by provider: used where no variable holds one.
    pub saved_keys: IndexMap<String, String>,
}

/// One provider of the settings.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ProfileSettings {
    /// Where it answers; may be left out for a built-in provider.
    #[serde(default, alias = "baseUrl")]
    pub base_url: Option<String>,
    /// The variable that holds its key; none for a server that wants no key.
    #[serde(default, alias = "apiKeyEnv")]
    pub api_key_env: Option<String>,
    /// `chat` where left out.
    #[serde(default)]
    pub wire: Option<Wire>,
    /// Models it serves, the first is its default.
    #[serde(default)]
    pub models: Vec<ModelEntry>,
    /// More headers.
    #[serde(default)]
    pub headers: IndexMap<String, String>,
    /// The model writes its calls as JSON blocks in the text.
    #[serde(default, alias = "textToolCalls")]
    pub text_tool_calls: Option<bool>,
    /// The service can hold an answer to a JSON schema.
    #[serde(default, alias = "answerSchema")]
    pub answer_schema: Option<bool>,
    /// Price of all its models that name none.
    #[serde(default)]
    pub price: Option<Price>,
    /// Seconds until the first byte of an answer.
    #[serde(default, alias = "firstByteSecs")]
    pub first_byte_secs: Option<u64>,
}

/// One model of a profile: a name, or a name with its limits.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub enum ModelEntry {
    /// As the service names it.
    Name(String),
    /// With what is known of it.
    Described(ModelSettings),
}

/// What the settings know of a model.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ModelSettings {
    /// As the service names it.
    pub name: String,
    /// Context window in tokens.
    #[serde(default)]
    pub window: Option<u32>,
    /// The most output tokens.
    #[serde(default, alias = "maxOutput")]
    pub max_output: Option<u32>,
    /// Its price.
    #[serde(default)]
    pub price: Option<Price>,
}

impl ModelEntry {
    /// The name of the model.
    pub fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Described(model) => &model.name,
        }
    }
}

/// How long anything may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Retries.
    pub retry: RetryPolicy,
    /// Until a connection stands.
    pub connect: Duration,
    /// Until the first byte of an answer.
    pub first_byte: Duration,
    /// Until its first block.
    pub first_token: Duration,
    /// Between events that are not keep-alives.
    pub idle: Duration,
    /// One try as a whole.
    pub whole: Duration,
    /// Requests at once for each account.
    pub in_flight: usize,
    /// When an account is held back.
    pub breaker: BreakerPolicy,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            retry: RetryPolicy::default(),
            connect: Duration::from_secs(20),
            first_byte: Duration::from_secs(120),
            first_token: Duration::from_secs(300),
            idle: Duration::from_secs(90),
            whole: Duration::from_secs(3600),
            in_flight: 256,
            breaker: BreakerPolicy::default(),
        }
    }
}

/// The user's proxies, as the usual variables name them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// For `https://`.
    pub https: Option<String>,
    /// For `http://`.
    pub http: Option<String>,
    /// Hosts that are reached without.
    pub no_proxy: Option<String>,
}

/// Everything that providers need to know.
#[derive(Clone, Debug)]
pub struct ProvidersConfig {
    /// In the order of routing: Anthropic, OpenAI, xAI, then those of the settings.
    pub profiles: Vec<Profile>,
    /// Lower case name → model.
    pub aliases: IndexMap<String, String>,
    /// What the user chose as default, if anything.
    pub chosen_model: Option<String>,
    /// How long anything may take.
    pub limits: Limits,
    /// The user's proxies.
    pub proxies: Proxies,
    /// A file with the only roots to trust.
    pub ca_file: Option<PathBuf>,
}

const ALIASES: [(&str, &str); 6] = [
    ("opus", "claude-opus-4-6"),
    ("sonnet", "claude-sonnet-4-6"),
    ("haiku", "claude-haiku-4-5"),
    ("grok", "grok-3"),
    ("grok-mini", "grok-3-mini"),
    ("grok-2", "grok-2"),
];

impl ProvidersConfig {
    /// A service that is down or refuses all holds everybody back, instead of each by its own tries: for many agents
    /// that can wait.
    pub fn hold_back(&mut self) {
        self.limits.breaker.is_on = true;
    }

    /// At most so many requests in flight to a provider, by name; a smaller limit that is there stays.
    pub fn limit(&mut self, provider: &str, most: usize) {
        for profile in self.profiles.iter_mut().filter(|profile| profile.name.eq_ignore_ascii_case(provider))
        {
            profile.in_flight = Some(profile.in_flight.map_or(most, |now| now.min(most)));
        }
    }

    /// Reads the environment through `env` and joins it with the settings. An empty variable counts as unset.
    ///
    /// # Errors
    /// A base URL or a number that cannot be read; the text names the variable or setting.
    pub fn from_env(
        env: &dyn Fn(&str) -> Option<String>,
        settings: ProfilesTable,
    ) -> Result<Self, ProviderErrorKind> {
        let get = |name: &str| env(name).map(|v| v.trim().to_owned()).filter(|v| !v.is_empty());
        let either = |upper: &str| get(upper).or_else(|| get(&upper.to_lowercase()));
        let mut aliases: IndexMap<String, String> =
            ALIASES.iter().map(|(name, model)| ((*name).to_owned(), (*model).to_owned())).collect();
        aliases
            .extend(settings.aliases.iter().map(|(name, model)| (name.trim().to_lowercase(), model.clone())));
        Ok(Self {
            profiles: profiles(&get, &settings)?,
            aliases,
            chosen_model: get("CLAW_MODEL").or_else(|| get("ANTHROPIC_MODEL")).or(settings.model),
            limits: limits(&get)?,
            proxies: Proxies {
                https: either("HTTPS_PROXY").or_else(|| either("ALL_PROXY")),
                // The upper case form of this one can be set by whoever calls a CGI program.
                http: get("http_proxy").or_else(|| get("HTTP_PROXY")).or_else(|| either("ALL_PROXY")),
                no_proxy: either("NO_PROXY"),
            },
            ca_file: get("SSL_CERT_FILE").map(PathBuf::from),
        })
    }

    /// All secrets, for redaction.
    pub fn secrets(&self) -> Vec<String> {
        self.profiles.iter().flat_map(Profile::secrets).map(str::to_owned).collect()
    }
}

fn limits(get: &dyn Fn(&str) -> Option<String>) -> Result<Limits, ProviderErrorKind> {
    let number = |name: &str| -> Result<Option<u64>, ProviderErrorKind> {
        let Some(text) = get(name) else { return Ok(None) };
        let value: u64 = text.parse().ok().filter(|n| *n > 0).ok_or_else(|| {
            ProviderErrorKind::Config(format!("{name} is `{text}`; set it to a whole number above 0"))
        })?;
        Ok(Some(value))
    };
    let mut limits = Limits::default();
    let millis = |slot: &mut Duration, name: &str| -> Result<(), ProviderErrorKind> {
        if let Some(value) = number(name)? {
            *slot = Duration::from_millis(value);
        }
        Ok(())
    };
    millis(&mut limits.retry.base, "CLAW_RETRY_BASE_MS")?;
    millis(&mut limits.retry.window, "CLAW_RETRY_WINDOW_MS")?;
    millis(&mut limits.first_byte, "CLAW_FIRST_BYTE_MS")?;
    millis(&mut limits.first_token, "CLAW_FIRST_TOKEN_MS")?;
    millis(&mut limits.idle, "CLAW_STREAM_IDLE_MS")?;
    millis(&mut limits.breaker.window, "CLAW_BREAKER_WINDOW_MS")?;
    millis(&mut limits.breaker.wait, "CLAW_BREAKER_WAIT_MS")?;
    millis(&mut limits.breaker.longest, "CLAW_BREAKER_LONGEST_MS")?;
    if let Some(failures) = number("CLAW_BREAKER_FAILURES")? {
        limits.breaker.failures = u32::try_from(failures).unwrap_or(u32::MAX);
    }
    if let Some(tries) = number("CLAW_REQUEST_TRIES")? {
        limits.retry.tries = u32::try_from(tries).unwrap_or(u32::MAX);
    }
    if let Some(most) = number("CLAW_MAX_IN_FLIGHT")? {
        limits.in_flight = usize::try_from(most).unwrap_or(usize::MAX);
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(pairs: &[(&str, &str)]) -> Result<ProvidersConfig, ProviderErrorKind> {
        let env = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        ProvidersConfig::from_env(&env, ProfilesTable::default())
    }

    #[test]
    fn limits_can_be_set_and_a_bad_number_is_named() {
        let set = config(&[("CLAW_STREAM_IDLE_MS", "3000"), ("CLAW_REQUEST_TRIES", "2")]).unwrap();
        assert_eq!((set.limits.idle, set.limits.retry.tries), (Duration::from_secs(3), 2));
        let error = config(&[("CLAW_REQUEST_TRIES", "none")]).unwrap_err().to_string();
        assert_eq!(error, "CLAW_REQUEST_TRIES is `none`; set it to a whole number above 0");
    }

    #[test]
    fn empty_variables_are_unset() {
        let set = config(&[("CLAW_MODEL", ""), ("ANTHROPIC_MODEL", " haiku "), ("HTTPS_PROXY", "")]).unwrap();
        assert_eq!(set.chosen_model.as_deref(), Some("haiku"));
        assert_eq!(set.proxies, Proxies::default());
    }

    #[test]
    fn a_profile_reads_models_as_names_or_with_limits_and_refuses_unknown_keys() {
        let text =
            r#"{"base_url":"http://x/v1","models":["a",{"name":"b","window":8}],"answer_schema":true}"#;
        let profile: ProfileSettings = serde_json::from_str(text).unwrap();
        assert_eq!(profile.models.iter().map(ModelEntry::name).collect::<Vec<_>>(), ["a", "b"]);
        assert!(serde_json::from_str::<ProfileSettings>(r#"{"base":"x"}"#).is_err());
    }
}
