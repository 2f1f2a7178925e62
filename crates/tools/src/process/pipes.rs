//! The pipes of a running job.

use super::capture::{Capture, Stream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;

/// Bytes read at once. Small: many jobs run side by side.
const CHUNK: usize = 8 * 1024;

struct Input {
    pipe: ChildStdin,
    bytes: Vec<u8>,
    at: usize,
    /// What comes later.
    more: Option<mpsc::Receiver<Vec<u8>>>,
}

pub(super) struct Pipes {
    input: Option<Input>,
    out: Option<ChildStdout>,
    err: Option<ChildStderr>,
    out_chunk: Vec<u8>,
    err_chunk: Vec<u8>,
}

impl Pipes {
    pub(super) fn of(child: &mut Child, input: Option<Vec<u8>>) -> Self {
        let stdin = child.stdin.take().zip(input);
        let input = stdin.map(|(pipe, bytes)| Input { pipe, bytes, at: 0, more: None });
        let (out, err) = (child.stdout.take(), child.stderr.take());
        Self { input, out, err, out_chunk: Vec::new(), err_chunk: Vec::new() }
    }

    /// The input goes on with what comes here, and ends when all senders are gone.
    pub(super) fn feed_from(&mut self, more: mpsc::Receiver<Vec<u8>>) {
        if let Some(input) = &mut self.input {
            input.more = Some(more);
        }
    }

    /// The pipes themselves, for somebody who talks through them.
    pub(super) fn take(&mut self) -> Option<(ChildStdin, ChildStdout, ChildStderr)> {
        Some((self.input.take()?.pipe, self.out.take()?, self.err.take()?))
    }

    /// Until both outputs are closed. Can be dropped and called again: nothing is lost.
    pub(super) async fn drain(&mut self, capture: &mut Capture) {
        let Self { input, out, err, out_chunk, err_chunk } = self;
        while out.is_some() || err.is_some() {
            tokio::select! {
                () = chunk(out, out_chunk), if out.is_some() => {
                    capture.push(Stream::Out, out_chunk);
                    out_chunk.clear();
                }
                () = chunk(err, err_chunk), if err.is_some() => {
                    capture.push(Stream::Err, err_chunk);
                    err_chunk.clear();
                }
                () = feed(input), if input.is_some() => {}
            }
        }
    }
}

async fn chunk<R: AsyncRead + Unpin>(pipe: &mut Option<R>, into: &mut Vec<u8>) {
    let Some(reader) = pipe else { return };
    into.reserve(CHUNK);
    match reader.read_buf(into).await {
        Ok(0) | Err(_) => *pipe = None,
        Ok(_) => {}
    }
}

/// Writes a part; a child that does not read its input is no failure.
async fn feed(input: &mut Option<Input>) {
    let Some(Input { pipe, bytes, at, more }) = input else { return };
    if *at == bytes.len()
        && let Some(more) = more
        && let Some(next) = more.recv().await
    {
        (*bytes, *at) = (next, 0);
        return;
    }
    match pipe.write(&bytes[*at..]).await {
        Ok(written) if written > 0 && (*at + written < bytes.len() || more.is_some()) => *at += written,
        Ok(_) | Err(_) => *input = None,
    }
}
