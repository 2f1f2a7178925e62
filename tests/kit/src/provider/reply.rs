//! An answer: what is said, and how the bytes travel. Rendering for a wire is `wire`'s work.

use super::gate::Gate;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// What stands in an answer: a script for either wire, or raw bytes.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    Script(Box<Script>),
    Bytes(Arc<Vec<u8>>),
}

/// A message without a wire.
#[derive(Clone, Debug, Default)]
pub(crate) struct Script {
    pub text: Option<String>,
    pub pieces: usize,
    pub thinking: Option<(String, String)>,
    pub tools: Vec<ToolCall>,
    pub stop: Option<String>,
    pub usage: Option<Value>,
    pub out: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct ToolCall {
    pub id: String,
    pub name: String,
    pub input: Value,
}

/// How an answer ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// Whole; the connection stays open for the next request.
    #[default]
    Fin,
    /// Whole, without a length: the end of the connection is the end of the body.
    Close,
    /// The connection ends in the middle of a body of chunks.
    Cut,
    /// The connection is reset.
    Rst,
    /// Nothing more comes, the connection stays.
    Stall,
}

/// Where a body is cut into pieces.
#[derive(Clone, Debug)]
pub(crate) enum Split {
    At(Vec<usize>),
    Every(usize),
}

/// Bytes sent again and again after the body.
#[derive(Clone, Debug)]
pub(crate) struct Heartbeat {
    pub bytes: Vec<u8>,
    pub every: Duration,
    pub count: u64,
}

/// One answer of the provider.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) body: Body,
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) split: Split,
    pub(crate) chunk_pause: Duration,
    pub(crate) delay: Duration,
    pub(crate) heartbeat: Option<Heartbeat>,
    pub(crate) after: Vec<u8>,
    pub(crate) end: End,
    pub(crate) gate: Option<Gate>,
    pub(crate) gate_at: Option<(usize, Gate)>,
    /// A stream even where the request asks for none, and no more than serve-style playlists say.
    pub(crate) literal: bool,
}

impl Reply {
    fn new(body: Body) -> Self {
        Self {
            body,
            status: 200,
            headers: Vec::new(),
            split: Split::At(Vec::new()),
            chunk_pause: Duration::ZERO,
            delay: Duration::ZERO,
            heartbeat: None,
            after: Vec::new(),
            end: End::Fin,
            gate: None,
            gate_at: None,
            literal: false,
        }
    }

    fn script(mut self, change: impl FnOnce(&mut Script)) -> Self {
        if let Body::Script(script) = &mut self.body {
            change(script);
            return self;
        }
        panic!("raw bytes have no script to change");
    }

    /// A message without content: add to it with `with_text`, `with_tool`, `with_thinking`.
    pub fn empty() -> Self {
        Self::new(Body::Script(Box::default()))
    }

    /// A text as answer.
    pub fn text(text: impl Into<String>) -> Self {
        Self::empty().with_text(text)
    }

    /// One tool call as answer.
    pub fn tool(id: &str, name: &str, input: Value) -> Self {
        Self::empty().with_tool(id, name, input)
    }

    /// Raw bytes as the body.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(Body::Bytes(Arc::new(bytes.into())))
    }

    /// The bytes of a file as the body.
    ///
    /// # Panics
    /// When the file cannot be read.
    pub fn file(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        Self::raw(std::fs::read(path).unwrap_or_else(|e| panic!("cannot read {}: {e}", path.display())))
    }

    /// An error answer with a JSON body.
    pub fn error(status: u16, body: &Value) -> Self {
        Self::raw(body.to_string()).status(status).header("content-type", "application/json")
    }

    /// Adds the text of the message.
    pub fn with_text(self, text: impl Into<String>) -> Self {
        self.script(|s| s.text = Some(text.into()))
    }

    /// Sends the text in about `count` deltas.
    pub fn in_pieces(self, count: usize) -> Self {
        self.script(|s| s.pieces = count)
    }

    /// Adds one tool call.
    pub fn with_tool(self, id: &str, name: &str, input: Value) -> Self {
        self.script(|s| s.tools.push(ToolCall { id: id.to_owned(), name: name.to_owned(), input }))
    }

    /// Puts a signed thinking block in front.
    pub fn with_thinking(self, thinking: &str, signature: &str) -> Self {
        self.script(|s| s.thinking = Some((thinking.to_owned(), signature.to_owned())))
    }

    /// The stop reason, in Anthropic's words (translated on the other wire) or as typed.
    pub fn stop(self, reason: &str) -> Self {
        self.script(|s| s.stop = Some(reason.to_owned()))
    }

    /// Token counts: input, cache read, output.
    pub fn tokens(self, input: u64, cache_read: u64, output: u64) -> Self {
        let usage = serde_json::json!({"input_tokens": input, "cache_read_input_tokens": cache_read});
        self.script(|s| {
            s.usage = Some(usage);
            s.out = Some(output);
        })
    }

    /// The HTTP status.
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Sets a header; the name in lower case.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(n, _)| n != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Cuts the body at these byte offsets; each piece is a network write of its own.
    pub fn split_at(mut self, offsets: impl Into<Vec<usize>>) -> Self {
        self.split = Split::At(offsets.into());
        self
    }

    /// Cuts the body into pieces of `size` bytes.
    pub fn in_chunks_of(mut self, size: usize) -> Self {
        self.split = Split::Every(size.max(1));
        self
    }

    /// A pause after each piece.
    pub fn chunk_pause(mut self, pause: Duration) -> Self {
        self.chunk_pause = pause;
        self
    }

    /// A pause before the first byte, headers included.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// After the body: `count` times a pause and these bytes.
    pub fn heartbeat(mut self, bytes: impl Into<Vec<u8>>, every: Duration, count: u64) -> Self {
        self.heartbeat = Some(Heartbeat { bytes: bytes.into(), every, count });
        self
    }

    /// Bytes after the heartbeat.
    pub fn after(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.after = bytes.into();
        self
    }

    /// How the answer ends.
    pub fn end(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    /// Holds the whole answer back until the gate lets it pass.
    pub fn gate(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Sends the first `offset` bytes of the body, then waits at the gate. An offset beyond the body: its end.
    pub fn gate_at(mut self, offset: usize, gate: &Gate) -> Self {
        self.gate_at = Some((offset, gate.clone()));
        self
    }
}
