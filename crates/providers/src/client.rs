//! The handle that everybody else sees.
//!
//! Owns nothing but the way in; the work is done in `engine`.

use crate::config::ProvidersConfig;
use crate::engine::class_of;
use crate::engine::{Engine, Headers};
use crate::error::ProviderError;
use crate::event::{Answer, RequestEvent};
use crate::http::Http;
use crate::limiter::Limiters;
use crate::models::Price;
use crate::request::Request;
use crate::usage::Usage;
use claw_kernel::cancel::CancelToken;
use claw_kernel::redact::Redactor;
use std::sync::Arc;
use tokio::sync::mpsc;

/// All services of the user. Cheap to clone; every clone shares connections and limits.
#[derive(Clone, Debug)]
pub struct Providers {
    engine: Arc<Engine>,
}

/// Where a model's name leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedModel {
    /// The provider's name.
    pub provider: String,
    /// The model as the service knows it.
    pub model: String,
}

/// What is known of a model before it is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelTraits {
    /// Context window in tokens; `None` where unknown.
    pub window: Option<u32>,
    /// The most output tokens; `None` where unknown.
    pub max_output: Option<u32>,
    /// The model writes its calls as JSON blocks in the text.
    pub text_tool_calls: bool,
    /// The service holds an answer to a JSON schema.
    pub answer_schema: bool,
    /// What it costs; `None` where that cannot be told.
    pub price: Option<Price>,
}

impl Providers {
    /// Makes the handle. No network, no files; clients and limiters start with the first request.
    ///
    /// # Errors
    /// None today; a configuration that cannot work is refused here.
    #[expect(clippy::result_large_err, reason = "built once for each failed request, never in a loop")]
    pub fn start(config: ProvidersConfig) -> Result<Self, ProviderError> {
        let redactor = Redactor::new(config.secrets());
        Self::start_with(config, redactor)
    }

    /// As [`Self::start`]; errors hold no secret that `redactor` knows.
    ///
    /// # Errors
    /// As [`Self::start`].
    #[expect(clippy::result_large_err, reason = "built once for each failed request, never in a loop")]
    pub fn start_with(config: ProvidersConfig, redactor: Redactor) -> Result<Self, ProviderError> {
        let http = Http::new(&config.limits, config.proxies.clone(), config.ca_file.clone());
        let (limiters, headers) = (Limiters::default(), Headers::default());
        Ok(Self { engine: Arc::new(Engine { config, http, limiters, headers, redactor }) })
    }

    /// Asks for one answer. Live news go to `events`; a slow reader slows the socket. Needs a tokio runtime.
    ///
    /// # Errors
    /// The request failed for good: its class says whether the caller may try again, `partial` what had come.
    pub async fn ask(
        &self,
        request: Request,
        events: &mpsc::Sender<RequestEvent>,
        cancel: &CancelToken,
    ) -> Result<Answer, ProviderError> {
        self.engine.ask(&request, events, cancel).await
    }

    /// Where a model's name leads, without a request.
    ///
    /// # Errors
    /// An unknown provider, or missing credentials.
    #[expect(clippy::result_large_err, reason = "built once for each failed request, never in a loop")]
    pub fn check_model(&self, name: &str) -> Result<ResolvedModel, ProviderError> {
        match self.engine.config.route(name) {
            Ok(route) => Ok(ResolvedModel { provider: route.profile.name.clone(), model: route.model }),
            Err(kind) => Err(ProviderError {
                class: class_of(&kind),
                kind,
                retry_at: None,
                usage: Usage::NOTHING,
                partial: Vec::new(),
            }),
        }
    }

    /// The model that is used where none is named.
    pub fn default_model(&self) -> String {
        self.engine.config.default_model()
    }

    /// What is known of a model; of one that leads nowhere, nothing.
    pub fn traits_of(&self, model: &str) -> ModelTraits {
        let Ok(route) = self.engine.config.route(model) else {
            return ModelTraits {
                window: None,
                max_output: None,
                text_tool_calls: false,
                answer_schema: false,
                price: None,
            };
        };
        let info = route.profile.info(&route.model);
        ModelTraits {
            window: info.window,
            max_output: info.max_output,
            text_tool_calls: route.profile.writes_calls_as_text(&route.model),
            answer_schema: route.profile.answer_schema,
            price: info.price,
        }
    }

    /// All secrets, for redaction.
    pub fn secrets(&self) -> Vec<String> {
        self.engine.config.secrets()
    }

    /// Ends the limiters; requests under way that wait for a place end with an error.
    pub fn stop(&self) {
        self.engine.limiters.stop();
    }
}
