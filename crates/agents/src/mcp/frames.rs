//! One JSON message a line, in both directions, bounded: what a server writes that is no message is kept from the library
//! and harms nobody.
//!
//! Owns the pipes. Must not know what messages mean, beyond request, answer and news.

use super::tail::Tail;
use claw_kernel::tasks;
use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RoleClient, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::time::Instant;

/// Bytes of a line. Longer ones are dropped as they come.
const MOST_LINE: usize = 4 << 20;
/// News of a server that count: so many at once, then so many a second.
const MOST_NEWS: f64 = 500.0;
const NEWS_A_SECOND: f64 = 200.0;
/// A server that says too much is read slower.
const BREATH: Duration = Duration::from_millis(5);

/// The pipes of a server as the library takes them.
pub(super) struct Frames<R, W> {
    server: String,
    read: BufReader<R>,
    line: Vec<u8>,
    is_skipping: bool,
    write: Arc<Mutex<Option<W>>>,
    tail: Arc<Tail>,
    pace: Pace,
}

impl<R: AsyncRead, W> Frames<R, W> {
    pub(super) fn new(server: &str, read: R, write: W, tail: Arc<Tail>) -> Self {
        Self {
            server: server.to_owned(),
            read: BufReader::with_capacity(16 * 1024, read),
            line: Vec::new(),
            is_skipping: false,
            write: Arc::new(Mutex::new(Some(write))),
            tail,
            pace: Pace::new(),
        }
    }
}

/// A bucket that fills with time.
struct Pace {
    left: f64,
    at: Instant,
}

impl Pace {
    fn new() -> Self {
        Self { left: MOST_NEWS, at: Instant::now() }
    }

    fn allows(&mut self) -> bool {
        let now = Instant::now();
        let more = now.duration_since(self.at).as_secs_f64() * NEWS_A_SECOND;
        (self.left, self.at) = ((self.left + more).min(MOST_NEWS), now);
        if self.left < 1.0 {
            return false;
        }
        self.left -= 1.0;
        true
    }
}

/// What a line is.
#[derive(Debug)]
enum Heard {
    Message(Box<ServerJsonRpcMessage>),
    News(Box<ServerJsonRpcMessage>),
    /// A request that nobody can understand: this goes back.
    Reply(Value),
    Noise,
    Nothing,
}

fn understand(line: &[u8]) -> Heard {
    let line = line.trim_ascii();
    if line.is_empty() {
        return Heard::Nothing;
    }
    if line.first() != Some(&b'{') {
        return Heard::Noise;
    }
    let Ok(value) = serde_json::from_slice::<Value>(line) else { return Heard::Noise };
    if value.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Heard::Noise;
    }
    let id = value.get("id").filter(|id| !id.is_null()).cloned();
    let method = value.get("method").and_then(Value::as_str).map(str::to_owned);
    let is_answer = value.get("result").is_some() || value.get("error").is_some();
    let typed = serde_json::from_value::<ServerJsonRpcMessage>(value);
    match (typed, id, method) {
        (Ok(message), None, Some(_)) => Heard::News(Box::new(message)),
        (Ok(message), _, _) => Heard::Message(Box::new(message)),
        (Err(error), Some(id), None) if is_answer => match serde_json::from_value::<RequestId>(id) {
            Ok(id) => {
                let words = format!("the server's answer has a wrong shape: {error}");
                let error = ErrorData::new(ErrorCode::INTERNAL_ERROR, words, None);
                Heard::Message(Box::new(ServerJsonRpcMessage::error(error, Some(id))))
            }
            Err(_) => Heard::Noise,
        },
        (Err(_), Some(id), Some(method)) => {
            let code = if method == "sampling/createMessage" { -32601 } else { -32602 };
            let error = json!({"code": code, "message": format!("{method}: not supported in this form")});
            Heard::Reply(json!({"jsonrpc": "2.0", "id": id, "error": error}))
        }
        (Err(_), _, _) => Heard::Noise,
    }
}

impl<R, W> Frames<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// The next whole line is in `line`. False: there is none any more. Can be dropped and called again.
    async fn next_line(&mut self) -> bool {
        loop {
            let Ok(available) = self.read.fill_buf().await else { return false };
            if available.is_empty() {
                // What has no line end is no message.
                return false;
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = &available[..end.unwrap_or(available.len())];
            let is_too_long = self.line.len() + part.len() > MOST_LINE;
            if !self.is_skipping && !is_too_long {
                self.line.extend_from_slice(part);
            }
            let used = end.map_or(available.len(), |end| end + 1);
            self.read.consume(used);
            if is_too_long && !self.is_skipping {
                self.is_skipping = true;
                self.line = Vec::new();
            }
            if end.is_some() {
                if !std::mem::take(&mut self.is_skipping) {
                    return true;
                }
                self.note(&format!("[a line of more than {MOST_LINE} bytes]"));
            }
        }
    }

    fn note(&self, line: &str) {
        if self.tail.noise(line) {
            let first = self.tail.first_noise().unwrap_or_default();
            tracing::warn!(server = %self.server, %first, "a server wrote something to standard output that is no message");
        }
    }

    fn reply(&self, reply: &Value) {
        let (write, bytes) = (self.write.clone(), format!("{reply}\n").into_bytes());
        // A server that does not read is ended by the limits of its calls.
        drop(tasks::spawn("mcp reply", async move { write_all(&write, &bytes).await }));
    }
}

async fn write_all<W: AsyncWrite + Unpin>(write: &Mutex<Option<W>>, bytes: &[u8]) -> io::Result<()> {
    let mut write = write.lock().await;
    let pipe = write.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
    pipe.write_all(bytes).await?;
    pipe.flush().await
}

impl<R, W> Transport<RoleClient> for Frames<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let write = self.write.clone();
        async move {
            let mut bytes = serde_json::to_vec(&item).map_err(io::Error::other)?;
            bytes.push(b'\n');
            write_all(&write, &bytes).await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if !self.next_line().await {
                return None;
            }
            let line = std::mem::take(&mut self.line);
            match understand(&line) {
                Heard::Message(message) => return Some(*message),
                Heard::News(message) if self.pace.allows() => return Some(*message),
                Heard::News(_) => tokio::time::sleep(BREATH).await,
                Heard::Reply(reply) => self.reply(&reply),
                Heard::Noise => self.note(&String::from_utf8_lossy(&line[..line.len().min(400)])),
                Heard::Nothing => {}
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        drop(self.write.lock().await.take());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &[u8]) -> &'static str {
        match understand(line) {
            Heard::Message(_) => "message",
            Heard::News(_) => "news",
            Heard::Reply(_) => "reply",
            Heard::Noise => "noise",
            Heard::Nothing => "nothing",
        }
    }

    #[test]
    fn only_messages_pass() {
        let deep = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}", "[".repeat(10_000));
        let lines: [(&[u8], &str); 14] = [
            (br#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#, "message"),
            (br#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x"}}"#, "message"),
            (br#"{"jsonrpc":"2.0","id":1,"error":"odd"}"#, "message"),
            (br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#, "message"),
            (br#"{"jsonrpc":"2.0","id":"a","method":"no/such","params":{}}"#, "message"),
            (br#"{"jsonrpc":"2.0","id":"a","method":"sampling/createMessage","params":{}}"#, "message"),
            (br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#, "news"),
            (b"  \r", "nothing"),
            ("Starting demo 🚀".as_bytes(), "noise"),
            (br#"{"level":"info"}"#, "noise"),
            (b"[1,2,3]", "noise"),
            (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}", "noise"),
            (deep.as_bytes(), "noise"),
            (b"{\"jsonrpc\":\"2.0\",\"id\":", "noise"),
        ];
        for (line, wanted) in lines {
            assert_eq!(kind(line), wanted, "{}", String::from_utf8_lossy(&line[..line.len().min(80)]));
        }
    }

    #[tokio::test]
    async fn a_line_without_end_is_dropped_in_bounded_memory_and_the_next_one_counts() {
        let mut bytes = vec![b'x'; 20 << 20];
        bytes.extend_from_slice(b"\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\nrest without end");
        let tail = Arc::new(Tail::default());
        let mut frames = Frames::new("s", bytes.as_slice(), tokio::io::sink(), tail.clone());
        assert!(frames.receive().await.is_some());
        assert!(frames.line.capacity() <= MOST_LINE);
        assert!(frames.receive().await.is_none());
        assert!(tail.words().contains("a line of more than"), "{}", tail.words());
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_news_is_thinned_out_and_answers_pass() {
        let news = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n".repeat(5_000);
        let all = news + "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
        let mut frames = Frames::new("s", all.as_bytes(), tokio::io::sink(), Arc::default());
        let mut count = 0;
        while frames.receive().await.is_some() {
            count += 1;
        }
        // 500 at once; every fifth of a second of the 4,500 breaths lets 200 more a second through.
        assert!((501..=5_000).contains(&count), "{count}");
    }
}
