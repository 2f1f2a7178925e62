//! One door for both wires: encode a request, decode a stream.

use crate::event::StreamEvent;
use crate::models::Thinking;
use crate::request::Request;
use crate::wire::{anthropic, chat};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Which wire a service speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// `POST {base}/v1/messages`.
    Anthropic,
    /// `POST {base}/chat/completions`.
    #[serde(alias = "openai")]
    Chat,
}

/// What a body needs beside the request itself.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The model as the service knows it.
    pub model: &'a str,
    /// Output limit in tokens; `None` leaves it to the service (chat wire only).
    pub max_output: Option<u32>,
    /// How the model can be told to think.
    pub thinking: Thinking,
    /// Whether the service can hold an answer to a schema.
    pub answer_schema: bool,
    /// Whether to stream.
    pub stream: bool,
}

/// A request could not be written as JSON (a schema with a key that is no string, for example).
#[derive(Debug, thiserror::Error)]
#[error("the request cannot be written as JSON")]
pub struct EncodeError(#[from] serde_json::Error);

/// Writes the body of a request. The same input gives the same bytes.
///
/// # Errors
/// [`EncodeError`].
pub fn encode(wire: Wire, request: &Request, asked: &Asked<'_>) -> Result<Bytes, EncodeError> {
    Ok(match wire {
        Wire::Anthropic => anthropic::body(request, asked)?,
        Wire::Chat => chat::body(request, asked)?,
    }
    .into())
}

/// An event that is no JSON of this wire.
#[derive(Debug, thiserror::Error)]
#[error("an event of the stream is not understood: {source}")]
pub struct NotUnderstood {
    /// What the parser says.
    #[from]
    pub source: serde_json::Error,
}

/// Translates the events of one message.
#[derive(Debug)]
pub enum Decoder {
    /// Messages.
    Anthropic(anthropic::MessagesDecoder),
    /// Chat completions.
    Chat(chat::ChatDecoder),
}

impl Decoder {
    /// A decoder for one message.
    pub fn new(wire: Wire) -> Self {
        match wire {
            Wire::Anthropic => Self::Anthropic(anthropic::MessagesDecoder::default()),
            Wire::Chat => Self::Chat(chat::ChatDecoder::default()),
        }
    }

    /// One event of the stream. What comes after the message's end is ignored.
    ///
    /// # Errors
    /// [`NotUnderstood`]: the stream is broken.
    pub fn event(
        &mut self,
        name: &[u8],
        data: &[u8],
        out: &mut Vec<StreamEvent>,
    ) -> Result<(), NotUnderstood> {
        match self {
            Self::Anthropic(decoder) => decoder.event(name, data, out),
            Self::Chat(decoder) => decoder.event(data, out),
        }
    }

    /// The stream ended: says the message's end where the wire allows it to be left out.
    pub fn end(&mut self, out: &mut Vec<StreamEvent>) {
        match self {
            Self::Anthropic(_) => {} // Without `message_stop` the message is not whole.
            Self::Chat(decoder) => decoder.end(out),
        }
    }

    /// A whole message in one JSON document gives the same events as its stream.
    ///
    /// # Errors
    /// [`NotUnderstood`].
    pub fn whole(&mut self, json: &[u8], out: &mut Vec<StreamEvent>) -> Result<(), NotUnderstood> {
        self.event(b"", json, out)?;
        self.end(out);
        Ok(())
    }
}
