//! The provider: accepts connections, keeps the routes and the records, judges what it saw at the end.

use super::check::violations_in;
use super::connection::serve;
use super::http::RawRequest;
use super::playlist;
use super::reply::Reply;
use super::request::{Ended, Request};
use super::route::{Answer, Route};
use super::wire::Wire;
use crate::machine::thread;
use crate::sandbox::CANARY;
use serde_json::Value;
use std::collections::HashMap;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A provider on a loopback port. Dropping it ends all connections and panics when a request broke a law
/// of its wire (not while the test already panics).
#[derive(Debug)]
pub struct ScriptedProvider {
    shared: Arc<Shared>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
    lenient: bool,
}

/// What the connections of a provider share.
#[derive(Debug)]
pub(crate) struct Shared {
    started: Instant,
    state: Mutex<State>,
    moved: Condvar,
    closing: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    routes: Vec<(Route, usize)>,
    requests: Vec<Arc<Request>>,
    ends: HashMap<usize, Ended>,
    in_flight: usize,
    max_in_flight: usize,
    answers: u64,
    violations: Vec<String>,
    secrets: Vec<String>,
    streams: HashMap<SocketAddr, TcpStream>,
}

impl ScriptedProvider {
    /// Starts a provider with these routes.
    pub fn new(routes: impl IntoIterator<Item = Route>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        socket2::SockRef::from(&listener).listen(4096).expect("a long accept queue");
        let address = listener.local_addr().expect("an address");
        let state = State {
            routes: routes.into_iter().map(|route| (route, 0)).collect(),
            secrets: vec![CANARY.to_owned()],
            ..State::default()
        };
        let shared = Arc::new(Shared {
            started: Instant::now(),
            state: Mutex::new(state),
            moved: Condvar::new(),
            closing: AtomicBool::new(false),
        });
        let accepting = {
            let shared = Arc::clone(&shared);
            thread("provider", move || accept(&listener, &shared))
        };
        Self { shared, address, accepting: Some(accepting), lenient: false }
    }

    /// A provider that gives these answers, one to each request, in this order.
    pub fn queue(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::new(replies.into_iter().map(|reply| Route::reply(reply).times(1)))
    }

    /// A provider that gives every request the same answer.
    pub fn always(reply: Reply) -> Self {
        Self::new([Route::reply(reply)])
    }

    /// A provider that plays a playlist file or a bare `.sse` stream, byte for byte.
    ///
    /// # Panics
    /// When the file cannot be read or understood.
    pub fn playlist(path: impl AsRef<Path>) -> Self {
        Self::new(playlist::load(path.as_ref()))
    }

    /// Adds a route behind the others.
    pub fn add(&self, route: Route) -> &Self {
        self.shared.state.lock().unwrap().routes.push((route, 0));
        self
    }

    /// A text that must not stand in any body (the sandbox's key is known already).
    pub fn secret(&self, text: &str) -> &Self {
        self.shared.state.lock().unwrap().secrets.push(text.to_owned());
        self
    }

    /// Does not panic at the end for broken laws; the test reads `violations` itself.
    pub fn lenient(mut self) -> Self {
        self.lenient = true;
        self
    }

    /// What `ANTHROPIC_BASE_URL` should be.
    pub fn anthropic_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What `OPENAI_BASE_URL` should be.
    pub fn openai_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The loopback address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// All requests so far, in the order of arrival.
    pub fn requests(&self) -> Vec<Arc<Request>> {
        self.shared.state.lock().unwrap().requests.clone()
    }

    /// How many requests came so far.
    pub fn count(&self) -> usize {
        self.shared.state.lock().unwrap().requests.len()
    }

    /// The requests whose body contains this text.
    pub fn requests_with(&self, text: &str) -> Vec<Arc<Request>> {
        self.requests().into_iter().filter(|request| request.text.contains(text)).collect()
    }

    /// The requests that a route with this label answered.
    pub fn requests_of(&self, label: &str) -> Vec<Arc<Request>> {
        self.requests().into_iter().filter(|request| request.route.as_deref() == Some(label)).collect()
    }

    /// The last request.
    ///
    /// # Panics
    /// When none came.
    pub fn last_request(&self) -> Arc<Request> {
        self.requests().pop().expect("a request came")
    }

    /// How the answer to request `number` ended; none while it is in flight.
    pub fn ended(&self, number: usize) -> Option<Ended> {
        self.shared.state.lock().unwrap().ends.get(&number).copied()
    }

    /// Requests that came and are not answered.
    pub fn in_flight(&self) -> usize {
        self.shared.state.lock().unwrap().in_flight
    }

    /// The most requests that were ever in flight at once.
    pub fn max_in_flight(&self) -> usize {
        self.shared.state.lock().unwrap().max_in_flight
    }

    /// From the first to the last arrival.
    pub fn window(&self) -> Duration {
        let state = self.shared.state.lock().unwrap();
        match (state.requests.first(), state.requests.last()) {
            (Some(first), Some(last)) => last.at.saturating_sub(first.at),
            _ => Duration::ZERO,
        }
    }

    /// What was wrong with the requests so far.
    pub fn violations(&self) -> Vec<String> {
        self.shared.state.lock().unwrap().violations.clone()
    }

    /// Waits until at least `count` requests came.
    ///
    /// # Panics
    /// When they do not within `bound`.
    pub fn wait_for_requests(&self, count: usize, bound: Duration) {
        self.wait(&format!("{count} requests"), bound, |state| state.requests.len() >= count);
    }

    /// Waits until at least `count` requests are in flight at once.
    ///
    /// # Panics
    /// When they are not within `bound`.
    pub fn wait_for_in_flight(&self, count: usize, bound: Duration) {
        self.wait(&format!("{count} requests in flight"), bound, |state| state.in_flight >= count);
    }

    /// Waits until no request is in flight.
    ///
    /// # Panics
    /// When one still is after `bound`.
    pub fn wait_for_idle(&self, bound: Duration) {
        self.wait("no request in flight", bound, |state| state.in_flight == 0);
    }

    fn wait(&self, what: &str, bound: Duration, holds: impl Fn(&State) -> bool) {
        let end = Instant::now() + bound;
        let mut state = self.shared.state.lock().unwrap();
        while !holds(&state) {
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                let (came, open) = (state.requests.len(), state.in_flight);
                drop(state);
                panic!("waited {bound:?} in vain for {what}: {came} came, {open} in flight");
            }
            state = self.shared.moved.wait_timeout(state, rest).unwrap().0;
        }
    }
}

impl Drop for ScriptedProvider {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        let woken = TcpStream::connect(self.address).is_ok();
        if let Some(accepting) = self.accepting.take().filter(|_| woken) {
            let ended = accepting.join();
            assert!(ended.is_ok() || std::thread::panicking(), "the provider's accept thread panicked");
        }
        let violations = match self.shared.state.lock() {
            Ok(mut state) => {
                for (_, stream) in state.streams.drain() {
                    // A stream whose client is gone already cannot be shut down again.
                    let _gone = stream.shutdown(Shutdown::Both);
                }
                std::mem::take(&mut state.violations)
            }
            Err(_) => vec!["a thread of the provider panicked".to_owned()],
        };
        if !self.lenient && !std::thread::panicking() {
            assert!(violations.is_empty(), "illegal requests came:\n{}", violations.join("\n"));
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while let Ok((stream, peer)) = listener.accept() {
        if shared.is_closing() {
            return;
        }
        let (Ok(()), Ok(kept)) = (stream.set_nodelay(true), stream.try_clone()) else { continue };
        shared.state.lock().unwrap().streams.insert(peer, kept);
        let shared = Arc::clone(shared);
        thread("connection", move || {
            serve(&shared, stream);
            shared.state.lock().unwrap().streams.remove(&peer);
        });
    }
}

impl Shared {
    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }

    /// Records a request and finds its answer.
    pub(crate) fn take(&self, raw: RawRequest) -> (Arc<Request>, Reply) {
        let text = String::from_utf8_lossy(&raw.body).into_owned();
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        let secrets = self.state.lock().unwrap().secrets.clone();
        let broken = judge(&raw.method, &raw.path, &raw.headers, &text, &secrets);
        let mut state = self.state.lock().unwrap();
        let mut request = Request {
            number: state.requests.len(),
            at: self.started.elapsed(),
            method: raw.method,
            path: raw.path,
            headers: raw.headers,
            text,
            body,
            route: None,
            in_flight: state.in_flight + 1,
        };
        state.in_flight += 1;
        state.max_in_flight = state.max_in_flight.max(state.in_flight);
        let number = request.number;
        state.violations.extend(broken.into_iter().map(|what| format!("request {number}: {what}")));
        let route =
            state.routes.iter_mut().find(|(route, used)| *used < route.times && route.matches(&request));
        let answer = route.map(|(route, used)| {
            *used += 1;
            request.route.clone_from(&route.label);
            route.answer.clone()
        });
        let request = Arc::new(request);
        state.requests.push(Arc::clone(&request));
        drop(state);
        self.moved.notify_all();
        let reply = match answer {
            Some(Answer::Fixed(reply)) => *reply,
            Some(Answer::Made(make)) => make(&request),
            None => Reply::raw("no route").status(404).header("content-type", "text/plain"),
        };
        (request, reply)
    }

    /// One request less in flight.
    pub(crate) fn settled(&self) {
        self.state.lock().unwrap().in_flight -= 1;
        self.moved.notify_all();
    }

    pub(crate) fn ended(&self, number: usize, ended: Ended) {
        self.state.lock().unwrap().ends.insert(number, ended);
        self.moved.notify_all();
    }

    /// Lets go of the kept handle of a connection, so that the thread's own is the last one.
    pub(crate) fn forget(&self, peer: SocketAddr) {
        self.state.lock().unwrap().streams.remove(&peer);
    }

    /// Replaces `%N%` by the running number of the answer.
    pub(crate) fn numbered(&self, data: Vec<u8>) -> Vec<u8> {
        let number = {
            let mut state = self.state.lock().unwrap();
            state.answers += 1;
            state.answers.to_string()
        };
        const MARK: &[u8] = b"%N%";
        if !data.windows(MARK.len()).any(|window| window == MARK) {
            return data;
        }
        let mut out = Vec::with_capacity(data.len());
        let mut rest = data.as_slice();
        while let Some(at) = rest.windows(MARK.len()).position(|window| window == MARK) {
            out.extend_from_slice(&rest[..at]);
            out.extend_from_slice(number.as_bytes());
            rest = &rest[at + MARK.len()..];
        }
        out.extend_from_slice(rest);
        out
    }
}

/// What is wrong with a request that asks a model; other requests are not looked at.
fn judge(
    method: &str,
    path: &str,
    headers: &[(String, String)],
    text: &str,
    secrets: &[String],
) -> Vec<String> {
    let path = path.split('?').next().unwrap_or_default();
    let asks = path.ends_with("/messages") || path.ends_with("/chat/completions");
    if method != "POST" || !asks {
        return Vec::new();
    }
    violations_in(Wire::of(path), headers, text, secrets)
}
