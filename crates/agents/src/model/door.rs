//! The trait that a conversation asks through.

use claw_kernel::cancel::CancelToken;
use claw_providers::client::ModelTraits;
use claw_providers::error::ProviderError;
use claw_providers::event::{Answer, RequestEvent};
use claw_providers::request::Request;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

/// Whoever answers requests.
pub trait Model: Send + Sync {
    /// One request with all its tries. `events` is bounded: whoever reads slowly slows the stream.
    fn ask<'a>(
        &'a self,
        request: Request,
        events: &'a mpsc::Sender<RequestEvent>,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<Answer, ProviderError>>;

    /// Of a model as it would be requested (`provider/model`, a name, an alias).
    fn traits_of(&self, model: &str) -> ModelTraits;

    /// The model where nobody names one.
    fn default_model(&self) -> String;
}
