//! Cuts a byte stream into server-sent events: any chunking, LF, CRLF or lone CR, a BOM, comments, several data lines.
//!
//! Owns framing only. Must not know what the data says. Memory is that of one event, whatever the stream's length.

/// The default bound of one event in bytes, lines and data together.
pub const DEFAULT_LIMIT: usize = 8 * 1024 * 1024;

/// A buffer that grew beyond this is given back after its event.
const KEEP_CAPACITY: usize = 64 * 1024;

/// What the parser found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// An event with data.
    Event {
        /// The `event:` field; empty where there was none.
        name: &'a [u8],
        /// The data lines, joined by LF; never empty.
        data: &'a [u8],
    },
    /// A comment, or an event without data: the connection lives, the answer does not move.
    KeepAlive,
}

/// An event is larger than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is longer than {limit} bytes")]
pub struct TooLong {
    /// The limit in bytes.
    pub limit: usize,
}

/// The parser. Feed it with [`SseParser::push`], end it with [`SseParser::finish`].
#[derive(Debug)]
pub struct SseParser {
    limit: usize,
    /// The part of a line whose end has not come yet.
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// A CR ended the last line: an LF that follows belongs to it.
    after_cr: bool,
    first_line: bool,
}

impl Default for SseParser {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT)
    }
}

impl SseParser {
    /// A parser that refuses events of more than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            has_data: false,
            after_cr: false,
            first_line: true,
        }
    }

    /// Takes the next bytes and hands every frame that they complete to `sink`.
    ///
    /// # Errors
    /// [`TooLong`]: the stream cannot be read any further.
    pub fn push(&mut self, chunk: &[u8], sink: &mut impl FnMut(Frame<'_>)) -> Result<(), TooLong> {
        let mut rest = chunk;
        while let Some(&first) = rest.first() {
            if std::mem::take(&mut self.after_cr) && first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = rest.iter().position(|b| matches!(b, b'\n' | b'\r')) else {
                self.hold(rest)?;
                return Ok(());
            };
            self.after_cr = rest[end] == b'\r';
            if self.line.is_empty() {
                self.take_line(&rest[..end], sink)?;
            } else {
                self.hold(&rest[..end])?;
                self.take_held(sink)?;
            }
            rest = &rest[end + 1..];
        }
        Ok(())
    }

    /// The stream ended: a last event without its blank line counts.
    ///
    /// # Errors
    /// [`TooLong`], as in [`SseParser::push`].
    pub fn finish(&mut self, sink: &mut impl FnMut(Frame<'_>)) -> Result<(), TooLong> {
        if !self.line.is_empty() {
            self.take_held(sink)?;
        }
        if self.has_data {
            self.dispatch(sink);
        }
        Ok(())
    }

    fn hold(&mut self, piece: &[u8]) -> Result<(), TooLong> {
        self.fits(self.line.len() + self.data.len() + piece.len())?;
        self.line.extend_from_slice(piece);
        Ok(())
    }

    fn fits(&self, size: usize) -> Result<(), TooLong> {
        if size > self.limit { Err(TooLong { limit: self.limit }) } else { Ok(()) }
    }

    fn take_held(&mut self, sink: &mut impl FnMut(Frame<'_>)) -> Result<(), TooLong> {
        let mut line = std::mem::take(&mut self.line);
        let taken = self.take_line(&line, sink);
        reuse(&mut line);
        self.line = line;
        taken
    }

    fn take_line(&mut self, line: &[u8], sink: &mut impl FnMut(Frame<'_>)) -> Result<(), TooLong> {
        let line = if std::mem::take(&mut self.first_line) {
            line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line)
        } else {
            line
        };
        if line.is_empty() {
            self.dispatch(sink);
            return Ok(());
        }
        let (field, value) = match line.iter().position(|b| *b == b':') {
            Some(0) => {
                sink(Frame::KeepAlive);
                return Ok(());
            }
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &b""[..]),
        };
        match field {
            b"data" => self.take_data(value)?,
            b"event" => {
                self.fits(self.data.len() + value.len())?;
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            _ => {} // `id`, `retry` and what others may invent.
        }
        Ok(())
    }

    fn take_data(&mut self, value: &[u8]) -> Result<(), TooLong> {
        self.fits(self.data.len() + value.len() + 1)?;
        if std::mem::replace(&mut self.has_data, true) {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        Ok(())
    }

    fn dispatch(&mut self, sink: &mut impl FnMut(Frame<'_>)) {
        if self.data.is_empty() {
            if self.has_data {
                sink(Frame::KeepAlive);
            }
        } else {
            sink(Frame::Event { name: &self.name, data: &self.data });
        }
        self.has_data = false;
        self.name.clear();
        reuse(&mut self.data);
    }
}

fn reuse(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > KEEP_CAPACITY {
        buffer.shrink_to(KEEP_CAPACITY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn collect(parser: &mut SseParser, chunks: &[&[u8]]) -> Vec<String> {
        let mut seen = Vec::new();
        let mut sink = |frame: Frame<'_>| {
            seen.push(match frame {
                Frame::Event { name, data } => {
                    format!("{}|{}", String::from_utf8_lossy(name), String::from_utf8_lossy(data))
                }
                Frame::KeepAlive => ":".to_owned(),
            });
        };
        for chunk in chunks {
            parser.push(chunk, &mut sink).unwrap();
        }
        parser.finish(&mut sink).unwrap();
        seen
    }

    fn frames(text: &str) -> Vec<String> {
        collect(&mut SseParser::default(), &[text.as_bytes()])
    }

    #[test]
    fn every_line_end_gives_the_same_events() {
        for end in ["\n", "\r", "\r\n"] {
            let text = ["event: a", "data: 1", "", "data:2", "data: 3", "", "data: 4"].join(end);
            assert_eq!(frames(&text), ["a|1", "|2\n3", "|4"], "line end {end:?}");
        }
        assert_eq!(frames("data: 1\r\n\r\ndata: 2\n\ndata: 3\r\r"), ["|1", "|2", "|3"]);
    }

    #[test]
    fn a_crlf_that_is_cut_between_its_bytes_is_one_line_end() {
        let chunks: [&[u8]; 4] = [b"data: 1\r", b"\n\r", b"\ndata: 2\r\n\r", b"\n"];
        assert_eq!(collect(&mut SseParser::default(), &chunks), ["|1", "|2"]);
    }

    #[test]
    fn comments_empty_data_and_unknown_fields_are_no_events() {
        assert_eq!(
            frames(": hello\n\ndata:\n\ndata: \n\nid: 7\nretry: 1\nfoo\n\ndata: x\n\n"),
            [":", ":", ":", "|x"]
        );
    }

    #[test]
    fn a_bom_counts_only_at_the_start() {
        assert_eq!(frames("\u{feff}data: 1\n\n\u{feff}data: 2\n\n"), ["|1"]);
    }

    #[test]
    fn a_name_does_not_outlive_its_event() {
        assert_eq!(frames("event: a\n\ndata: 1\n\n"), ["|1"]);
    }

    #[test]
    fn a_line_beyond_the_limit_is_refused_before_it_is_held() {
        let mut parser = SseParser::new(1000);
        let piece = [b'x'; 300];
        let refused = (0..4).map(|_| parser.push(&piece, &mut |_| {})).find(Result::is_err);
        assert_eq!(refused, Some(Err(TooLong { limit: 1000 })));
        assert!(parser.line.len() <= 1000);
        let mut many = SseParser::new(1000);
        let line = [b"data: ".as_slice(), &piece, b"\n"].concat();
        assert!((0..4).any(|_| many.push(&line, &mut |_| {}).is_err()));
    }

    #[test]
    fn sixty_four_megabytes_in_one_line_are_refused_at_the_default() {
        let mut parser = SseParser::default();
        let piece = vec![b'x'; 1 << 20];
        let taken = (0..64).take_while(|_| parser.push(&piece, &mut |_| {}).is_ok()).count();
        assert_eq!(taken, 8);
    }

    #[test]
    fn buffers_do_not_grow_with_the_stream() {
        let mut parser = SseParser::default();
        for _ in 0..10_000 {
            parser.push(b"data: {\"a\":1}\n", &mut |_| {}).unwrap();
            parser.push(b"\nda", &mut |_| {}).unwrap();
            parser.push(b"ta: 2\n\n", &mut |_| {}).unwrap();
        }
        assert!(parser.line.capacity() + parser.data.capacity() + parser.name.capacity() < 256);
    }

    proptest! {
        #[test]
        fn chunking_never_changes_the_events(
            lines in proptest::collection::vec("(data: ?[a-zé漢🦀]{0,6}|: c|event: n|data|id: 1||)(\n|\r\n|\r)", 0..24),
            cuts in proptest::collection::vec(0usize..400, 0..12),
            bom in any::<bool>(),
        ) {
            let text = format!("{}{}", if bom { "\u{feff}" } else { "" }, lines.concat());
            let bytes = text.as_bytes();
            let whole = frames(&text);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&collect(&mut SseParser::default(), &single), &whole);
            let mut at: Vec<usize> = cuts.into_iter().map(|c| c.min(bytes.len())).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let pieces: Vec<&[u8]> = at.windows(2).map(|w| &bytes[w[0]..w[1]]).collect();
            prop_assert_eq!(&collect(&mut SseParser::default(), &pieces), &whole);
        }

        #[test]
        fn any_bytes_at_all_are_survived(chunks in proptest::collection::vec(any::<Vec<u8>>(), 0..8)) {
            let mut parser = SseParser::new(64);
            for chunk in &chunks {
                if parser.push(chunk, &mut |_| {}).is_err() {
                    return Ok(());
                }
            }
            let _ = parser.finish(&mut |_| {});
        }
    }
}
