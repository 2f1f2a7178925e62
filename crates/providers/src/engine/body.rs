//! Turns the bytes of an answer into events: a stream, a whole JSON message, or no answer at all.
//!
//! Owns the guess what kind of body it is. Pure.

use crate::event::StreamEvent;
use crate::sse::{DEFAULT_LIMIT, Frame, SseParser, TooLong};
use crate::wire::{Decoder, NotUnderstood, Wire};

/// How much of a page that is no answer is kept.
const PAGE_LIMIT: usize = 4096;

/// The body cannot be read as an answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadBody {
    #[error(transparent)]
    NotUnderstood(#[from] NotUnderstood),
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// A web page in place of an answer.
    #[error("an HTML page came in place of an answer")]
    Page(Vec<u8>),
}

#[derive(Debug)]
enum Kind {
    /// Nothing but white space so far.
    Unknown,
    Stream,
    Json(Vec<u8>),
    Page(Vec<u8>),
}

/// Reads one body.
#[derive(Debug)]
pub(super) struct BodyReader {
    kind: Kind,
    parser: SseParser,
    decoder: Decoder,
}

impl BodyReader {
    pub(super) fn new(wire: Wire) -> Self {
        Self { kind: Kind::Unknown, parser: SseParser::default(), decoder: Decoder::new(wire) }
    }

    /// Whether bytes themselves are progress: a document has no events until its end.
    pub(super) fn is_document(&self) -> bool {
        matches!(self.kind, Kind::Json(_) | Kind::Page(_))
    }

    /// The next bytes.
    pub(super) fn push(&mut self, chunk: &[u8], out: &mut Vec<StreamEvent>) -> Result<(), BadBody> {
        if matches!(self.kind, Kind::Unknown) {
            self.kind = kind_of(chunk);
        }
        match &mut self.kind {
            Kind::Unknown | Kind::Stream => {
                let (parser, decoder) = (&mut self.parser, &mut self.decoder);
                let mut bad = None;
                let pushed = parser.push(chunk, &mut |frame| decode(decoder, frame, &mut bad, out));
                bad.map_or(Ok(()), Err)?;
                Ok(pushed?)
            }
            Kind::Json(document) => {
                if document.len() + chunk.len() > DEFAULT_LIMIT {
                    return Err(TooLong { limit: DEFAULT_LIMIT }.into());
                }
                document.extend_from_slice(chunk);
                Ok(())
            }
            Kind::Page(page) => {
                page.extend_from_slice(&chunk[..chunk.len().min(PAGE_LIMIT.saturating_sub(page.len()))]);
                if page.len() < PAGE_LIMIT { Ok(()) } else { Err(BadBody::Page(std::mem::take(page))) }
            }
        }
    }

    /// The end of the bytes.
    pub(super) fn finish(&mut self, out: &mut Vec<StreamEvent>) -> Result<(), BadBody> {
        match &mut self.kind {
            Kind::Unknown | Kind::Stream => {
                let (parser, decoder) = (&mut self.parser, &mut self.decoder);
                let mut bad = None;
                parser.finish(&mut |frame| decode(decoder, frame, &mut bad, out))?;
                bad.map_or(Ok(()), Err)?;
                decoder.end(out);
                Ok(())
            }
            Kind::Json(document) => {
                let document = std::mem::take(document);
                let text = document.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&document);
                Ok(self.decoder.whole(text, out)?)
            }
            Kind::Page(page) => Err(BadBody::Page(std::mem::take(page))),
        }
    }

    /// Nothing more comes, yet the connection stays open: what the wire allows to be left out is put in.
    pub(super) fn give_up(&mut self, out: &mut Vec<StreamEvent>) {
        self.decoder.end(out);
    }
}

fn decode(
    decoder: &mut Decoder,
    frame: Frame<'_>,
    bad: &mut Option<NotUnderstood>,
    out: &mut Vec<StreamEvent>,
) {
    match frame {
        Frame::Event { name, data } if bad.is_none() => *bad = decoder.event(name, data, out).err(),
        Frame::Event { .. } | Frame::KeepAlive => {}
    }
}

/// The first byte that says something decides; a BOM and white space do not.
fn kind_of(chunk: &[u8]) -> Kind {
    let says_something = |b: &&u8| !b.is_ascii_whitespace() && !matches!(b, 0xef | 0xbb | 0xbf);
    match chunk.iter().find(says_something) {
        None => Kind::Unknown,
        Some(b'{') => Kind::Json(Vec::new()),
        Some(b'<') => Kind::Page(Vec::new()),
        Some(_) => Kind::Stream,
    }
}
