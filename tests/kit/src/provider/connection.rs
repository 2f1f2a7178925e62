//! One connection: read a request, find its answer, write it as the reply says. One thread each.

use super::http::{Framing, RawRequest, read_request, write_head, write_piece};
use super::reply::{Body, End, Reply, Split};
use super::request::{Ended, Request};
use super::server::Shared;
use super::wire::{Wire, message, stream};
use crate::machine::pause;
use std::io::{self, BufReader};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often a waiting answer looks whether its client is still there.
const LOOK: Duration = Duration::from_millis(100);

/// Serves the connection to its end.
pub(crate) fn serve(shared: &Arc<Shared>, stream: TcpStream) {
    let Ok(reading) = stream.try_clone() else { return };
    let mut reading = BufReader::new(reading);
    while let Ok(Some(raw)) = read_request(&mut reading) {
        if !answer(shared, &stream, raw) {
            return;
        }
    }
}

/// Answers one request; says whether the connection lives on.
fn answer(shared: &Arc<Shared>, stream: &TcpStream, raw: RawRequest) -> bool {
    let (request, reply) = shared.take(raw);
    let mut answering = Answering { shared, stream, request: &request, counted: true };
    let result = answering.send(&reply);
    answering.settle();
    let lives = result.is_ok() && reply.end == End::Fin && answering.framing(&reply) != Framing::UntilClose;
    shared.ended(request.number, if result.is_ok() { Ended::Sent } else { Ended::ClientGone });
    lives
}

struct Answering<'a> {
    shared: &'a Arc<Shared>,
    stream: &'a TcpStream,
    request: &'a Request,
    counted: bool,
}

impl Answering<'_> {
    /// The request is in flight no longer. Said before the last bytes leave, so that a client that goes on
    /// at once is never counted twice.
    fn settle(&mut self) {
        if std::mem::take(&mut self.counted) {
            self.shared.settled();
        }
    }

    fn framing(&self, reply: &Reply) -> Framing {
        let given = reply.headers.iter().any(|(n, _)| n == "content-length" || n == "transfer-encoding");
        match reply.end {
            _ if given => Framing::AsGiven,
            End::Close => Framing::UntilClose,
            End::Rst | End::Stall if reply.literal => Framing::UntilClose,
            End::Fin | End::Cut | End::Rst | End::Stall => Framing::Chunks,
        }
    }

    fn send(&mut self, reply: &Reply) -> io::Result<()> {
        self.wait(reply.delay)?;
        if let Some(gate) = &reply.gate {
            self.pass(gate)?;
        }
        let (data, kind) = self.render(reply);
        let data = self.shared.numbered(data);
        let mut headers = reply.headers.clone();
        if !headers.iter().any(|(name, _)| name == "content-type") {
            headers.push(("content-type".to_owned(), kind.to_owned()));
        }
        let framing = self.framing(reply);
        let mut to = self.stream;
        write_head(&mut to, reply.status, &headers, framing)?;
        self.body(reply, &data, framing)?;
        self.tail(reply, framing)
    }

    fn render(&self, reply: &Reply) -> (Vec<u8>, &'static str) {
        const EVENTS: &str = "text/event-stream";
        let script = match &reply.body {
            Body::Bytes(bytes) => return (bytes.as_ref().clone(), EVENTS),
            Body::Script(script) => script,
        };
        let wire = Wire::of(&self.request.path);
        let body = &self.request.body;
        if reply.literal {
            return (stream(wire, script, false), EVENTS);
        }
        if body["stream"] != true {
            return (message(wire, script), "application/json");
        }
        (stream(wire, script, body["stream_options"]["include_usage"] == true), EVENTS)
    }

    fn body(&mut self, reply: &Reply, data: &[u8], framing: Framing) -> io::Result<()> {
        let has_tail = reply.heartbeat.is_some() || !reply.after.is_empty() || reply.end == End::Stall;
        let gate_at = reply.gate_at.as_ref().map(|(offset, gate)| (offset.min(&data.len()).to_owned(), gate));
        let mut cuts: Vec<usize> = match &reply.split {
            Split::At(offsets) => offsets.iter().map(|o| *o.min(&data.len())).collect(),
            Split::Every(size) => (*size..data.len()).step_by(*size).collect(),
        };
        cuts.extend(gate_at.iter().map(|(offset, _)| *offset));
        cuts.push(0);
        cuts.sort_unstable();
        cuts.dedup();
        let mut to = self.stream;
        for (n, from) in cuts.iter().enumerate() {
            if let Some((_, gate)) = gate_at.as_ref().filter(|(offset, _)| offset == from) {
                self.pass(gate)?;
            }
            let end = cuts.get(n + 1).copied();
            if end.is_none() && !has_tail {
                self.settle();
            }
            write_piece(&mut to, &data[*from..end.unwrap_or(data.len())], framing)?;
            self.wait(reply.chunk_pause)?;
        }
        Ok(())
    }

    fn tail(&mut self, reply: &Reply, framing: Framing) -> io::Result<()> {
        let mut to = self.stream;
        if let Some(beat) = &reply.heartbeat {
            for _ in 0..beat.count {
                self.wait(beat.every)?;
                write_piece(&mut to, &beat.bytes, framing)?;
            }
        }
        if reply.end != End::Stall {
            self.settle();
        }
        write_piece(&mut to, &reply.after, framing)?;
        match reply.end {
            End::Fin if framing == Framing::Chunks => io::Write::write_all(&mut to, b"0\r\n\r\n"),
            End::Fin => Ok(()),
            End::Close | End::Cut => self.stream.shutdown(std::net::Shutdown::Write),
            End::Rst => {
                let socket = socket2::SockRef::from(self.stream);
                socket.set_linger(Some(Duration::ZERO))?;
                if let Ok(peer) = self.stream.peer_addr() {
                    self.shared.forget(peer);
                }
                Ok(())
            }
            End::Stall => loop {
                self.wait(Duration::from_secs(3600))?;
            },
        }
    }

    fn pass(&self, gate: &super::gate::Gate) -> io::Result<()> {
        if gate.pass(|| self.gone()) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }

    /// Lets time pass, and ends early with an error when nobody waits for the answer any more.
    fn wait(&self, time: Duration) -> io::Result<()> {
        let end = Instant::now() + time;
        loop {
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return Ok(());
            }
            pause(rest.min(LOOK));
            if rest > LOOK && self.gone() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
    }

    /// Whether the client closed the connection, or the provider ends.
    fn gone(&self) -> bool {
        if self.shared.is_closing() || self.stream.set_nonblocking(true).is_err() {
            return true;
        }
        let seen = self.stream.peek(&mut [0]);
        let reset = self.stream.set_nonblocking(false).is_err();
        match seen {
            Ok(bytes) => bytes == 0 || reset,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock || reset,
        }
    }
}
