//! The last words of a server, in bounded memory.

use claw_kernel::visible::visible_line;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes kept of standard error.
const MOST: usize = 8 * 1024;
/// Lines and characters shown in an error.
const MOST_LINES: usize = 5;
const MOST_SHOWN: usize = 600;

/// What a server wrote that is no message.
#[derive(Debug, Default)]
pub(super) struct Tail {
    err: Mutex<VecDeque<u8>>,
    noise: Mutex<Noise>,
}

/// What came on standard output and is no message.
#[derive(Clone, Debug, Default)]
struct Noise {
    lines: u64,
    first: String,
}

impl Tail {
    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.err.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = &bytes[bytes.len().saturating_sub(MOST)..];
        let over = (kept.len() + bytes.len()).saturating_sub(MOST);
        kept.drain(..over);
        kept.extend(bytes);
    }

    /// Reads a stream to its end.
    pub(super) async fn read(&self, mut stream: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; 8 * 1024];
        while let Ok(read) = stream.read(&mut chunk).await {
            if read == 0 {
                break;
            }
            self.keep(&chunk[..read]);
        }
    }

    /// A line that is no message. True: it is the first.
    pub(super) fn noise(&self, line: &str) -> bool {
        let mut noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
        noise.lines += 1;
        if noise.lines == 1 {
            noise.first = visible_line(&line.chars().take(200).collect::<String>()).into_owned();
        }
        noise.lines == 1
    }

    /// The first such line, as shown.
    pub(super) fn first_noise(&self) -> Option<String> {
        let noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
        (noise.lines > 0).then(|| noise.first.clone())
    }

    /// The end of an error: what it wrote last. With a separator in front, or empty.
    pub(super) fn words(&self) -> String {
        let bytes: Vec<u8> =
            self.err.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        let last = lines[lines.len().saturating_sub(MOST_LINES)..].join("\n");
        let start = last.ceil_char_boundary(last.len().saturating_sub(MOST_SHOWN));
        let mut words = String::new();
        if !last.is_empty() {
            let lines: Vec<_> = last[start..].lines().map(visible_line).collect();
            words.push_str(&format!("; its standard error ends with: {}", lines.join(" | ")));
        }
        let noise = self.noise.lock().unwrap_or_else(PoisonError::into_inner);
        if noise.lines > 0 {
            words.push_str(&format!(
                "; it wrote {} {} to standard output that are no messages, the first: {}",
                noise.lines,
                if noise.lines == 1 { "line" } else { "lines" },
                noise.first
            ));
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flood_leaves_its_end_and_control_characters_are_shown() {
        let tail = Tail::default();
        let flood = [b"E".repeat(1 << 20), b"\nlast \x1b[31mwords\n".to_vec()].concat();
        tail.read(flood.as_slice()).await;
        assert!(tail.words().ends_with("last ␛[31mwords"), "{}", tail.words());
        assert!(tail.words().len() < 1_000);
        assert!(tail.noise("\u{1b}[2Jhello") && !tail.noise("again"));
        assert!(tail.words().contains("2 lines") && tail.words().contains("␛[2Jhello"), "{}", tail.words());
    }
}
