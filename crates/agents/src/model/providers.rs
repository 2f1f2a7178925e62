//! The user's services as a model.

use super::door::Model;
use claw_kernel::cancel::CancelToken;
use claw_providers::client::{ModelTraits, Providers};
use claw_providers::error::ProviderError;
use claw_providers::event::{Answer, RequestEvent};
use claw_providers::request::Request;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

impl Model for Providers {
    fn ask<'a>(
        &'a self,
        request: Request,
        events: &'a mpsc::Sender<RequestEvent>,
        cancel: &'a CancelToken,
    ) -> BoxFuture<'a, Result<Answer, ProviderError>> {
        Box::pin(Self::ask(self, request, events, cancel))
    }

    fn traits_of(&self, model: &str) -> ModelTraits {
        Self::traits_of(self, model)
    }

    fn default_model(&self) -> String {
        Self::default_model(self)
    }
}
