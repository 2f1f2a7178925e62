//! Which service answers for a model's name.
//!
//! Owns aliases and the order of routing. Pure; no network.

use crate::config::ProvidersConfig;
use crate::error::ProviderErrorKind;
use crate::profile::Profile;

/// A name that can be sent somewhere.
#[derive(Clone, Debug)]
pub struct Route<'a> {
    /// The service.
    pub profile: &'a Profile,
    /// The model as the service knows it.
    pub model: String,
}

impl ProvidersConfig {
    /// Finds the service of a model: `provider/model` first, then the model's name, then which credentials exist,
    /// else Anthropic.
    ///
    /// # Errors
    /// An unknown provider before the slash, or missing credentials.
    pub fn route(&self, name: &str) -> Result<Route<'_>, ProviderErrorKind> {
        let typed = name.trim();
        let model = self.resolve_alias(typed);
        let (profile, model) = self.find(model, typed)?;
        if profile.is_usable() { Ok(Route { profile, model }) } else { Err(profile.missing()) }
    }

    /// The model that is used where none is named: what the user chose, else `opus`, and without Anthropic
    /// credentials the first model of a provider that has some.
    pub fn default_model(&self) -> String {
        if let Some(chosen) = &self.chosen_model {
            return chosen.clone();
        }
        let usable = self.profiles.iter().find(|profile| profile.is_usable());
        match usable {
            Some(profile) if profile.name != "anthropic" => profile
                .first_model()
                .map_or_else(|| "opus".to_owned(), |model| format!("{}/{model}", profile.name)),
            Some(_) | None => "opus".to_owned(),
        }
    }

    fn resolve_alias<'a>(&'a self, typed: &'a str) -> &'a str {
        self.aliases.get(&typed.to_lowercase()).map_or(typed, String::as_str)
    }

    fn find(&self, model: &str, typed: &str) -> Result<(&Profile, String), ProviderErrorKind> {
        if let Some((head, tail)) = model.split_once('/') {
            if let Some(profile) = self.named(head) {
                return Ok((profile, self.resolve_alias(tail.trim()).to_owned()));
            }
            let takes_any = |p: &&Profile| p.name == "openai" && p.is_custom && p.is_usable();
            let owner = self.listing(model).or_else(|| self.profiles.iter().find(takes_any));
            return owner.map(|profile| (profile, model.to_owned())).ok_or_else(|| {
                ProviderErrorKind::UnknownProvider { name: head.to_owned(), model: typed.to_owned() }
            });
        }
        let by_name = self.listing(model).or_else(|| self.named(family(model)?));
        let profile = by_name
            .or_else(|| self.profiles.iter().find(|profile| profile.is_usable()))
            .or_else(|| self.profiles.first())
            .ok_or_else(|| ProviderErrorKind::Config("no provider is configured".to_owned()))?;
        Ok((profile, model.to_owned()))
    }

    fn named(&self, name: &str) -> Option<&Profile> {
        self.profiles.iter().find(|profile| profile.name.eq_ignore_ascii_case(name.trim()))
    }

    /// The profile that lists the model; one that can be used goes before one that cannot.
    fn listing(&self, model: &str) -> Option<&Profile> {
        let lists = |profile: &&Profile| profile.lists(model);
        self.profiles
            .iter()
            .filter(lists)
            .find(|profile| profile.is_usable())
            .or_else(|| self.profiles.iter().find(lists))
    }
}

/// The built-in provider whose models are named like this.
fn family(model: &str) -> Option<&'static str> {
    let model = model.to_lowercase();
    let is_o_series =
        model.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if model.starts_with("claude") {
        Some("anthropic")
    } else if model.starts_with("gpt") || model.starts_with("chatgpt") || is_o_series {
        Some("openai")
    } else if model.starts_with("grok") {
        Some("xai")
    } else {
        None
    }
}

impl Profile {
    fn missing(&self) -> ProviderErrorKind {
        ProviderErrorKind::MissingCredentials {
            provider: self.name.clone(),
            variables: self.variables.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ProfilesTable;

    fn config(pairs: &[(&str, &str)], settings: &str) -> ProvidersConfig {
        let env = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        let table =
            ProfilesTable { providers: serde_json::from_str(settings).unwrap(), ..ProfilesTable::default() };
        ProvidersConfig::from_env(&env, table).unwrap()
    }

    fn routed(config: &ProvidersConfig, name: &str) -> String {
        match config.route(name) {
            Ok(route) => format!("{} {}", route.profile.name, route.model),
            Err(error) => error.to_string(),
        }
    }

    const ALL: [(&str, &str); 3] =
        [("ANTHROPIC_API_KEY", "a"), ("OPENAI_API_KEY", "o"), ("XAI_API_KEY", "x")];

    #[test]
    fn names_lead_to_their_service() {
        let config =
            config(&ALL, r#"{"ollama":{"base_url":"http://localhost:1/v1","models":["qwen3","Org/m"]}}"#);
        for (name, expected) in [
            (" OPUS ", "anthropic claude-opus-4-6"),
            ("claude-3-5-haiku", "anthropic claude-3-5-haiku"),
            ("gpt-4o", "openai gpt-4o"),
            ("o3", "openai o3"),
            ("openai/opensource", "openai opensource"),
            ("anthropic/haiku", "anthropic claude-haiku-4-5"),
            ("grok", "xai grok-3"),
            ("grok-mini", "xai grok-3-mini"),
            ("qwen3", "ollama qwen3"),
            ("ollama/other", "ollama other"),
            ("Org/m", "ollama Org/m"),
            ("mystery", "anthropic mystery"),
            ("nobody/m", "unknown provider `nobody` in model `nobody/m`"),
        ] {
            assert_eq!(routed(&config, name), expected, "{name}");
        }
    }

    #[test]
    fn an_unknown_name_goes_where_credentials_are() {
        assert_eq!(routed(&config(&ALL[1..], "{}"), "mystery"), "openai mystery");
        assert_eq!(routed(&config(&ALL[2..], "{}"), "mystery"), "xai mystery");
        assert_eq!(
            routed(&config(&[("ANTHROPIC_API_KEY", "")], "{}"), "mystery"),
            "missing anthropic credentials; export ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"
        );
        assert_eq!(
            routed(&config(&ALL[..1], "{}"), "gpt-4o"),
            "missing openai credentials; export OPENAI_API_KEY"
        );
    }

    #[test]
    fn a_local_server_needs_no_key() {
        let local = config(&[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")], "{}");
        assert_eq!(routed(&local, "anything"), "openai anything");
        assert_eq!(routed(&local, "Org/anything"), "openai Org/anything");
        assert_eq!(local.default_model(), "openai/local");
        let profile = local.route("local").unwrap().profile;
        assert!(profile.writes_calls_as_text("local") && profile.answer_schema);
        assert_eq!(profile.info("gpt-4o").price, Some(crate::models::Price::FREE));
        let gateway = config(&[("OPENAI_BASE_URL", "http://127.0.0.1:9/v1"), ("OPENAI_API_KEY", "k")], "{}");
        let profile = gateway.route("gpt-4o").unwrap().profile;
        assert_eq!(profile.info("gpt-4o").price, crate::models::known("gpt-4o").unwrap().price);
        assert_eq!(profile.info("mystery").price, None);
    }

    #[test]
    fn the_default_model_follows_the_credentials() {
        assert_eq!(config(&ALL, "{}").default_model(), "opus");
        assert_eq!(config(&ALL[1..], "{}").default_model(), "openai/gpt-5");
        assert_eq!(config(&ALL[2..], "{}").default_model(), "xai/grok-3");
        assert_eq!(config(&[], "{}").default_model(), "opus");
        assert_eq!(config(&[("CLAW_MODEL", "x"), ("ANTHROPIC_MODEL", "y")], "{}").default_model(), "x");
    }

    #[test]
    fn the_token_stands_in_for_the_key() {
        let config = config(&[("ANTHROPIC_AUTH_TOKEN", "t")], "{}");
        let headers = config.route("opus").unwrap().profile.credentials.clone().unwrap().headers();
        assert_eq!(headers, [("authorization", "Bearer t".to_owned())]);
        assert_eq!(config.secrets(), ["t"]);
    }
}
