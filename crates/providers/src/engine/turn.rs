//! One request over all its tries and models.
//!
//! Owns the loop; what to do next is decided in `retry.rs`, who may send in `limiter`.

use crate::assemble::{Assembled, Assembler};
use crate::config::ProvidersConfig;
use crate::engine::attempt::{Attempt, TryFailed};
use crate::engine::target::{Headers, Target};
use crate::error::{ErrorClass, ProviderError, ProviderErrorKind};
use crate::event::{Answer, RequestEvent, WaitReason};
use crate::http::Http;
use crate::limiter::{Limiter, LimiterGone, Limiters, Permit, Shut, Stand};
use crate::message::Block;
use crate::models::settle;
use crate::request::Request;
use crate::retry::{Failure, Next};
use crate::route::Route;
use crate::usage::Usage;
use claw_kernel::cancel::CancelToken;
use claw_kernel::redact::Redactor;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

/// Tries of an overloaded model before the next one of the list is used.
const OVERLOADED_TRIES: u32 = 3;
/// Tries whose answer is not understood.
const GARBLED_TRIES: u32 = 2;
/// Shorter waits are not worth a word.
const WORTH_TELLING: Duration = Duration::from_millis(500);

/// Everything that requests share.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) config: ProvidersConfig,
    pub(crate) http: Http,
    pub(crate) limiters: Limiters,
    pub(crate) headers: Headers,
    /// Knows more than the keys of the services: whatever is never to be shown.
    pub(crate) redactor: Redactor,
}

/// One request under way.
struct Turn<'a> {
    engine: &'a Engine,
    request: &'a Request,
    events: &'a mpsc::Sender<RequestEvent>,
    cancel: &'a CancelToken,
    spent: Usage,
    attempts: u32,
    /// Answers of the present model that were not understood.
    garbled: u32,
    partial: Vec<Block>,
}

/// Why a model is given up.
struct GaveUp {
    kind: ProviderErrorKind,
    class: ErrorClass,
    wait: Option<Duration>,
    /// Whether another model may do better.
    may_fall_back: bool,
    /// No other model of this service can.
    is_out: bool,
}

impl GaveUp {
    fn for_good(kind: ProviderErrorKind, class: ErrorClass) -> Self {
        Self { kind, class, wait: None, may_fall_back: false, is_out: false }
    }

    fn cancelled() -> Self {
        Self::for_good(ProviderErrorKind::Cancelled, ErrorClass::Cancelled)
    }

    /// The account is closed; `last`: the error of this very request, where it has one.
    fn shut(target: &Target<'_>, shut: &Shut, last: Option<ProviderErrorKind>) -> Self {
        let closed =
            || ProviderErrorKind::Closed { provider: target.profile.name.clone(), why: shut.why.to_string() };
        Self {
            kind: last.unwrap_or_else(closed),
            class: shut.class,
            wait: shut.until.map(|until| until.saturating_duration_since(Instant::now().into_std())),
            may_fall_back: true,
            is_out: true,
        }
    }

    /// An error that no request has met: nothing was sent.
    fn config(kind: ProviderErrorKind) -> Self {
        Self::for_good(kind, ErrorClass::Refused)
    }
}

/// What a try that did not give an answer asks for.
enum After {
    /// Try again; with or without a stream.
    Again {
        stream: bool,
    },
    GiveUp(GaveUp),
}

impl Engine {
    /// Asks the models of the request one after the other until one answers.
    pub(crate) async fn ask(
        &self,
        request: &Request,
        events: &mpsc::Sender<RequestEvent>,
        cancel: &CancelToken,
    ) -> Result<Answer, ProviderError> {
        let turn = Turn {
            engine: self,
            request,
            events,
            cancel,
            spent: Usage::NOTHING,
            attempts: 0,
            garbled: 0,
            partial: Vec::new(),
        };
        turn.run().await
    }
}

/// The class of an error that no service has sent.
pub(crate) fn class_of(kind: &ProviderErrorKind) -> ErrorClass {
    match kind {
        ProviderErrorKind::MissingCredentials { .. } => ErrorClass::Auth,
        ProviderErrorKind::UnknownProvider { .. } => ErrorClass::UnknownModel,
        ProviderErrorKind::Cancelled => ErrorClass::Cancelled,
        ProviderErrorKind::Connect { .. } | ProviderErrorKind::Broken { .. } => ErrorClass::Transient,
        ProviderErrorKind::Stalled { .. } => ErrorClass::Timeout,
        ProviderErrorKind::WaitTooLong { .. } => ErrorClass::RateLimit,
        ProviderErrorKind::Exhausted { last, .. } => class_of(last),
        // Its class is that of the error that closed the account.
        ProviderErrorKind::Closed { .. } => ErrorClass::Overloaded,
        ProviderErrorKind::Status { .. }
        | ProviderErrorKind::TooLarge { .. }
        | ProviderErrorKind::Config(_) => ErrorClass::Refused,
    }
}

impl Turn<'_> {
    async fn run(mut self) -> Result<Answer, ProviderError> {
        let mut gave_up: Option<(String, GaveUp)> = None;
        let mut unreachable: Vec<&str> = Vec::new();
        let headers = &self.engine.headers;
        for name in self.request.models.iter() {
            let target = match self
                .engine
                .config
                .route(name)
                .and_then(|route| Target::new(route, self.request, headers))
            {
                Ok(target) => target,
                Err(_) if gave_up.is_some() => continue, // A fallback that cannot be used is none.
                Err(kind) => {
                    let class = class_of(&kind);
                    return Err(self.error(GaveUp::for_good(kind, class)));
                }
            };
            if unreachable.contains(&target.profile.name.as_str()) {
                continue; // Another model of a service that cannot be reached cannot be reached either.
            }
            if let Some((from, last)) = &gave_up {
                let (from, error) = (from.clone(), last.kind.to_string());
                self.tell(RequestEvent::FellBack { from, to: target.model.clone(), error }).await;
            }
            match self.ask_one(&target).await {
                Ok(assembled) => return Ok(self.answer(&target, assembled)),
                Err(failed) if failed.may_fall_back => {
                    if failed.is_out || is_unreachable(&failed.kind) {
                        unreachable.push(&target.profile.name);
                    }
                    gave_up = Some((target.model.clone(), failed));
                }
                Err(failed) => return Err(self.error(failed)),
            }
        }
        let nothing = || GaveUp::config(ProviderErrorKind::Config("the request names no model".to_owned()));
        Err(self.error(gave_up.map_or_else(nothing, |(_, failed)| failed)))
    }

    async fn ask_one(&mut self, target: &Target<'_>) -> Result<Assembled, GaveUp> {
        let mut started = Instant::now();
        let mut flowed = Duration::ZERO;
        let mut stream = true;
        let mut asked_whole = false;
        let mut tries = 0;
        self.garbled = 0;
        loop {
            tries += 1;
            let limiter = self.limiter(target).await?;
            let permit = self.admit(target, &limiter).await?;
            let (tried, flow) = self.try_once(target, &limiter, stream).await;
            flowed += flow;
            let is_empty = match &tried {
                Ok(assembled) => assembled.blocks.is_empty(),
                Err((failed, has_begun)) => !has_begun && failed.is_unended,
            };
            let after = match tried {
                _ if is_empty && !asked_whole => After::Again { stream: false },
                Ok(assembled) => {
                    permit.succeeded();
                    return Ok(assembled);
                }
                Err((failed, _)) => {
                    if let Some(after) = self.held_back(target, &limiter, &permit, &failed).await {
                        drop(permit);
                        tries -= 1;
                        started = Instant::now();
                        match after {
                            After::Again { stream: next } => stream = next,
                            After::GiveUp(gave_up) => return Err(gave_up),
                        }
                        continue;
                    }
                    drop(permit);
                    self.garbled += u32::from(failed.is_garbled);
                    // An answer that was arriving was no waiting.
                    let elapsed = started.elapsed().saturating_sub(flowed);
                    self.failed(failed, tries, elapsed, &limiter).await
                }
            };
            match after {
                After::Again { stream: next } => stream = next,
                After::GiveUp(failed) => return Err(failed),
            }
            asked_whole |= !stream;
        }
    }

    async fn limiter(&self, target: &Target<'_>) -> Result<Limiter, GaveUp> {
        let max = target.profile.in_flight.unwrap_or(self.engine.config.limits.in_flight);
        let policy = self.engine.config.limits.breaker;
        let limiter = self.engine.limiters.of(&target.profile.name, max, policy).await;
        limiter.map_err(|gone| GaveUp::config(ProviderErrorKind::Config(gone.to_string())))
    }

    /// Waits for a place; says so when everybody waits. Where a service is held back and another one may do, it is
    /// not waited for.
    async fn admit(&self, target: &Target<'_>, limiter: &Limiter) -> Result<Permit, GaveUp> {
        let mut gate = limiter.gate();
        let mut permit = limiter.want();
        let mut told = None;
        loop {
            let now = gate.borrow_and_update().clone();
            if let Some(gate) = now.filter(|gate| Some(gate) != told.as_ref()) {
                if let Some(why) = gate.held_back.as_ref().filter(|_| self.has_another_service(target)) {
                    let provider = target.profile.name.clone();
                    let kind = ProviderErrorKind::Closed { provider, why: why.to_string() };
                    let out = GaveUp::for_good(kind, ErrorClass::Overloaded);
                    return Err(GaveUp { may_fall_back: true, is_out: true, ..out });
                }
                let delay = gate.until.saturating_duration_since(Instant::now());
                let (why, error) = match &gate.held_back {
                    Some(why) => (WaitReason::Breaker, why.to_string()),
                    None => (WaitReason::RateLimit, "the account's rate limit is reached".to_owned()),
                };
                if gate.held_back.is_some() || delay >= WORTH_TELLING {
                    let attempt = self.attempts;
                    self.tell(RequestEvent::Waiting { delay, why, attempt, error }).await;
                }
                told = Some(gate);
            }
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => return Err(GaveUp::cancelled()),
                given = &mut permit => return match given {
                    Ok(Ok(permit)) => Ok(permit),
                    Ok(Err(shut)) => Err(GaveUp::shut(target, &shut, None)),
                    Err(_) => Err(GaveUp::config(ProviderErrorKind::Config(LimiterGone.to_string()))),
                },
                Ok(()) = gate.changed() => {}
            }
        }
    }

    /// Later models of the list.
    fn later<'t>(&'t self, target: &'t Target<'_>) -> impl Iterator<Item = Route<'t>> {
        let routes = self.request.models.iter().filter_map(|name| self.engine.config.route(name).ok());
        let is_this =
            |route: &Route<'_>| route.profile.name == target.profile.name && route.model == target.model;
        routes.skip_while(move |route| !is_this(route)).skip(1)
    }

    fn has_another_model(&self, target: &Target<'_>) -> bool {
        self.later(target).next().is_some()
    }

    /// Whether a later model of the list is served by somebody else.
    fn has_another_service(&self, target: &Target<'_>) -> bool {
        self.later(target).any(|route| route.profile.name != target.profile.name)
    }

    /// What a failure means for all requests of the account: `None` where it is this request's own.
    async fn held_back(
        &self,
        target: &Target<'_>,
        limiter: &Limiter,
        permit: &Permit,
        failed: &TryFailed,
    ) -> Option<After> {
        if !self.engine.config.limits.breaker.is_on {
            return None;
        }
        let why = failed.kind.to_string();
        let is_down = match failed.class {
            ErrorClass::Quota | ErrorClass::Auth => {
                let until = failed.retry_after.map(|wait| Instant::now() + wait);
                limiter.shut(failed.class, &why, until);
                return None;
            }
            ErrorClass::Overloaded | ErrorClass::RateLimit => true,
            ErrorClass::Transient => permit.is_probe() || is_unreachable(&failed.kind),
            ErrorClass::Timeout => permit.is_probe(),
            ErrorClass::ContextOverflow | ErrorClass::Refused | ErrorClass::UnknownModel => {
                permit.answered();
                return None;
            }
            ErrorClass::Cancelled => return None,
        };
        if !is_down || self.asks_for_too_long(failed) {
            return None;
        }
        // A service that cannot be reached is overloaded for all who wait: they come back later.
        let class = if failed.class == ErrorClass::RateLimit { failed.class } else { ErrorClass::Overloaded };
        match permit.failed(class, &why, failed.retry_after).await {
            Ok(Stand::Open) if self.has_another_service(target) => {
                let kind = ProviderErrorKind::Closed { provider: target.profile.name.clone(), why };
                let out = GaveUp::for_good(kind, class);
                Some(After::GiveUp(GaveUp { may_fall_back: true, is_out: true, ..out }))
            }
            // Another model of the same service may have room.
            Ok(Stand::Open) if failed.class == ErrorClass::Overloaded && self.has_another_model(target) => {
                let kind = ProviderErrorKind::Closed { provider: target.profile.name.clone(), why };
                Some(After::GiveUp(GaveUp { may_fall_back: true, ..GaveUp::for_good(kind, class) }))
            }
            Ok(Stand::Open) => Some(After::Again { stream: true }),
            Ok(Stand::Shut(shut)) => Some(After::GiveUp(GaveUp::shut(target, &shut, None))),
            Ok(Stand::Closed) | Err(LimiterGone) => None,
        }
    }

    fn asks_for_too_long(&self, failed: &TryFailed) -> bool {
        failed.retry_after.is_some_and(|wait| wait > self.engine.config.limits.retry.window)
    }

    /// One try; an error says whether a block had begun.
    async fn try_once(
        &mut self,
        target: &Target<'_>,
        limiter: &Limiter,
        stream: bool,
    ) -> (Result<Assembled, (TryFailed, bool)>, Duration) {
        let mut attempt = Attempt {
            target,
            limits: &self.engine.config.limits,
            events: self.events,
            redactor: &self.engine.redactor,
            stream,
            assembler: Assembler::default(),
            flowing_since: None,
            exhausted_for: None,
            was_document: false,
        };
        self.attempts += 1;
        let (provider, model) = (target.profile.name.clone(), target.model.clone());
        self.tell(RequestEvent::Sent { provider, model }).await;
        let ran = self.run_attempt(&mut attempt).await;
        if let Some(wait) = attempt.exhausted_for {
            limiter.pause(Instant::now() + wait);
        }
        let flow = attempt.flowing_since.map(|since| since.elapsed()).unwrap_or_default();
        let has_begun = attempt.assembler.has_begun();
        let told = attempt.assembler.reported();
        if has_begun || told != Default::default() {
            self.spent = self.spent.plus(&settle(&told, target.info.price.as_ref()));
        }
        let partial = if has_begun { attempt.assembler.partial(&target.model) } else { Vec::new() };
        let result = match ran {
            Ok(()) => attempt.assembled(),
            Err(failed) => Err(failed),
        };
        if result.is_err() {
            if has_begun {
                self.tell(RequestEvent::Withdrawn { partial: partial.clone() }).await;
            }
            self.partial = partial;
        }
        (result.map_err(|failed| (failed, has_begun)), flow)
    }

    async fn run_attempt(&self, attempt: &mut Attempt<'_>) -> Result<(), TryFailed> {
        let config = |kind: ProviderErrorKind| {
            let class = class_of(&kind);
            TryFailed::new(kind, class)
        };
        let target = attempt.target;
        let client = self.engine.http.client(target.profile).map_err(config)?;
        let body = target.body(self.request, attempt.stream).map_err(config)?;
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err(config(ProviderErrorKind::Cancelled)),
            ran = attempt.run(&client, body) => ran,
        }
    }

    /// Decides what follows a failed try, and waits if that is another one.
    async fn failed(&self, failed: TryFailed, tries: u32, elapsed: Duration, limiter: &Limiter) -> After {
        let TryFailed { kind, class, retry_after, is_unended: _, is_garbled } = failed;
        let kind = *kind;
        let failure = Failure { class, attempt: tries, elapsed, retry_after };
        let has_next = self.request.models.len() > 1;
        let mut next = self.engine.config.limits.retry.next(&failure, fastrand::f64());
        if class == ErrorClass::Overloaded && has_next && tries >= OVERLOADED_TRIES {
            next = Next::Exhausted;
        }
        if is_garbled && self.garbled >= GARBLED_TRIES {
            next = Next::Exhausted;
        }
        let exhausted = |kind| match tries {
            1 => kind,
            attempts => ProviderErrorKind::Exhausted { attempts, last: Box::new(kind) },
        };
        match next {
            Next::Retry(delay) => self.wait(kind, &failure, delay, limiter).await,
            Next::NotRetryable => {
                // An account that is closed for all: another service may do.
                let is_out = self.engine.config.limits.breaker.is_on
                    && matches!(class, ErrorClass::Quota | ErrorClass::Auth);
                After::GiveUp(GaveUp {
                    wait: retry_after,
                    may_fall_back: is_out || class == ErrorClass::UnknownModel,
                    is_out,
                    ..GaveUp::for_good(kind, class)
                })
            }
            Next::Exhausted => After::GiveUp(GaveUp {
                wait: retry_after,
                may_fall_back: true,
                ..GaveUp::for_good(exhausted(kind), class)
            }),
            Next::WaitTooLong(wait) => {
                let provider = provider_of(&kind);
                let kind = ProviderErrorKind::WaitTooLong { provider, wait, last: Box::new(kind) };
                After::GiveUp(GaveUp { wait: Some(wait), ..GaveUp::for_good(kind, class) })
            }
        }
    }

    async fn wait(
        &self,
        kind: ProviderErrorKind,
        failure: &Failure,
        delay: Duration,
        limiter: &Limiter,
    ) -> After {
        let delay = delay + limiter.spend_retry().await.unwrap_or_default();
        // A rate limit holds for the account: nobody else runs into it meanwhile.
        let pause = match (failure.class, failure.retry_after) {
            (ErrorClass::RateLimit | ErrorClass::Overloaded, Some(asked)) => Some(asked),
            (ErrorClass::RateLimit, None) => Some(delay),
            _ => None,
        };
        if let Some(pause) = pause {
            limiter.pause(Instant::now() + pause);
        }
        let why = match failure.class {
            ErrorClass::RateLimit => WaitReason::RateLimit,
            ErrorClass::Overloaded => WaitReason::Overloaded,
            _ => WaitReason::Transient,
        };
        let (attempt, error) = (self.attempts, kind.to_string());
        self.tell(RequestEvent::Waiting { delay, why, attempt, error }).await;
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => After::GiveUp(GaveUp::cancelled()),
            () = sleep(delay) => After::Again { stream: true },
        }
    }

    /// Says something, unless the listener is gone or we are being stopped.
    async fn tell(&self, event: RequestEvent) {
        tokio::select! {
            biased;
            _ = self.events.send(event) => {}
            () = self.cancel.cancelled() => {}
        }
    }

    fn answer(self, target: &Target<'_>, assembled: Assembled) -> Answer {
        Answer {
            blocks: assembled.blocks,
            stop: assembled.stop,
            cut_calls: assembled.cut_calls,
            usage: self.spent,
            provider: target.profile.name.clone(),
            model: target.model.clone(),
            attempts: self.attempts,
        }
    }

    fn error(self, failed: GaveUp) -> ProviderError {
        ProviderError {
            kind: failed.kind,
            class: failed.class,
            retry_at: failed.wait.map(|wait| claw_kernel::clock::now().plus(wait)),
            usage: self.spent,
            partial: self.partial,
        }
    }
}

fn is_unreachable(kind: &ProviderErrorKind) -> bool {
    match kind {
        ProviderErrorKind::Exhausted { last, .. } => is_unreachable(last),
        other => matches!(other, ProviderErrorKind::Connect { .. }),
    }
}

fn provider_of(kind: &ProviderErrorKind) -> String {
    match kind {
        ProviderErrorKind::Status { provider, .. }
        | ProviderErrorKind::MissingCredentials { provider, .. }
        | ProviderErrorKind::Connect { provider, .. }
        | ProviderErrorKind::Broken { provider, .. }
        | ProviderErrorKind::TooLarge { provider, .. }
        | ProviderErrorKind::Stalled { provider, .. }
        | ProviderErrorKind::WaitTooLong { provider, .. }
        | ProviderErrorKind::Closed { provider, .. } => provider.clone(),
        ProviderErrorKind::Exhausted { last, .. } => provider_of(last),
        ProviderErrorKind::UnknownProvider { name, .. } => name.clone(),
        ProviderErrorKind::Cancelled | ProviderErrorKind::Config(_) => String::new(),
    }
}
