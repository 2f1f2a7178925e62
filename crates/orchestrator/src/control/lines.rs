//! Lines of bounded length out of a stream.

use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// Reads lines. What was read of a line stays here when the reading is given up in the middle, and is gone on with.
#[derive(Debug)]
pub(super) struct Lines<R> {
    from: R,
    begun: Vec<u8>,
    most: usize,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// Lines of at most so many bytes.
    pub fn new(from: R, most: usize) -> Self {
        Self { from, begun: Vec::new(), most }
    }

    /// The stream, for what is no line any more.
    pub fn into_inner(self) -> R {
        self.from
    }

    /// The next line without its end; `None` at the end of the stream. Cancel-safe.
    ///
    /// # Errors
    /// The stream breaks, a line is too long or no text.
    pub async fn next(&mut self) -> io::Result<Option<String>> {
        loop {
            let room = (self.most + 1).saturating_sub(self.begun.len());
            let read = (&mut self.from).take(room as u64).read_until(b'\n', &mut self.begun).await?;
            if self.begun.last() == Some(&b'\n') {
                self.begun.pop();
                let line = std::mem::take(&mut self.begun);
                return String::from_utf8(line).map(Some).map_err(io::Error::other);
            }
            if self.begun.len() > self.most {
                return Err(io::Error::other(format!("a line is longer than {} bytes", self.most)));
            }
            if read == 0 {
                return Ok(None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_ends_the_reading() {
        let mut lines = Lines::new(&b"one\n\n12345678\n123456789\n"[..], 8);
        assert_eq!(lines.next().await.unwrap().as_deref(), Some("one"));
        assert_eq!(lines.next().await.unwrap().as_deref(), Some(""));
        assert_eq!(lines.next().await.unwrap().as_deref(), Some("12345678"));
        assert!(lines.next().await.is_err());
        let mut torn = Lines::new(&b"half"[..], 8);
        assert_eq!(torn.next().await.unwrap(), None);
    }
}
