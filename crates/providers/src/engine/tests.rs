use crate::client::Providers;
use crate::config::{ProfilesTable, ProvidersConfig};
use crate::error::{ErrorClass, ProviderError, ProviderErrorKind};
use crate::event::{Answer, RequestEvent, StreamEvent};
use crate::message::{Block, Message};
use crate::request::{Request, ToolChoice};
use claw_kernel::cancel::CancelToken;
use claw_kernel::tasks;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};

/// What the server does with one request.
#[derive(Clone)]
enum Reply {
    /// Status line, more headers and body; then the connection ends.
    Http(&'static str, String, Vec<u8>),
    /// A stream that goes on with this keep-alive until the client leaves.
    KeepAlive(Vec<u8>, &'static [u8]),
    /// So many keep-alives, then the stream.
    SlowStart(u32, Vec<u8>),
    /// Accepts and says nothing.
    Silence,
    /// Closes at once.
    Close,
}

#[derive(Clone, Debug)]
struct Seen {
    at: Instant,
    head: String,
    body: String,
}

/// A loopback service that answers from a list; the last reply is repeated.
struct Server {
    port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
    arrived: Arc<Notify>,
}

impl Server {
    async fn start(replies: Vec<Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let arrived: Arc<Notify> = Arc::default();
        let (log, bell) = (Arc::clone(&seen), Arc::clone(&arrived));
        tasks::spawn("server", async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (log, bell, replies) = (Arc::clone(&log), Arc::clone(&bell), replies.clone());
                tasks::spawn("connection", async move {
                    let _ = serve(socket, &log, &bell, &replies).await;
                });
            }
        });
        Self { port, seen, arrived }
    }

    fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn providers(&self, wire: &str, more: &[(&str, &str)]) -> Providers {
        let base = format!("http://127.0.0.1:{}", self.port);
        let mut env =
            vec![(format!("{wire}_BASE_URL"), base), (format!("{wire}_API_KEY"), "sk-secret".into())];
        let quick = [("CLAW_RETRY_BASE_MS", "4"), ("CLAW_STREAM_IDLE_MS", "80"), ("CLAW_REQUEST_TRIES", "4")];
        env.extend(more.iter().chain(&quick).map(|(k, v)| ((*k).to_owned(), (*v).to_owned())));
        let get = move |name: &str| env.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
        Providers::start(ProvidersConfig::from_env(&get, ProfilesTable::default()).unwrap()).unwrap()
    }
}

async fn serve(
    mut socket: TcpStream,
    log: &Mutex<Vec<Seen>>,
    bell: &Notify,
    replies: &[Reply],
) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        if socket.read_buf(&mut bytes).await? == 0 {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_lowercase();
        let length = head.split("content-length: ").nth(1).and_then(|r| r.lines().next()?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            break (head, body.to_owned());
        }
    };
    let number = {
        let mut seen = log.lock().unwrap();
        seen.push(Seen { at: Instant::now(), head, body });
        seen.len() - 1
    };
    bell.notify_one();
    const STREAM: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    match replies.get(number).or(replies.last()).cloned().unwrap() {
        Reply::Http(status, headers, body) => {
            let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n");
            socket.write_all(head.as_bytes()).await?;
            socket.write_all(&body).await?;
            socket.shutdown().await
        }
        Reply::KeepAlive(body, ping) => {
            socket.write_all(STREAM).await?;
            socket.write_all(&body).await?;
            let mut pace = tokio::time::interval(Duration::from_millis(10));
            loop {
                pace.tick().await;
                socket.write_all(ping).await?;
            }
        }
        Reply::SlowStart(count, body) => {
            socket.write_all(STREAM).await?;
            let mut pace = tokio::time::interval(Duration::from_millis(10));
            for _ in 0..count {
                socket.write_all(b": processing\n\n").await?;
                pace.tick().await;
            }
            socket.write_all(&body).await?;
            socket.shutdown().await
        }
        Reply::Silence => std::future::pending().await,
        Reply::Close => Ok(()),
    }
}

fn stream(body: impl Into<Vec<u8>>) -> Reply {
    Reply::Http("200 OK", "content-type: text/event-stream\r\n".into(), body.into())
}

fn status(line: &'static str, headers: &str, body: &str) -> Reply {
    Reply::Http(line, headers.to_owned(), body.as_bytes().to_vec())
}

fn head(text: &str) -> String {
    format!(
        "data: {}\n\ndata: {}\n\ndata: {}\n\n",
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
    )
}

fn full(text: &str) -> String {
    format!(
        "{}data: {}\n\ndata: {}\n\n",
        head(text),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    )
}

fn overloaded(text: &str) -> String {
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    format!("{}data: {error}\n\n", head(text))
}

fn request(models: &[&str]) -> Request {
    Request {
        models: models.iter().map(|m| (*m).to_owned()).collect(),
        system: "s".into(),
        messages: vec![Arc::new(Message::user("hello"))],
        tools: Arc::new([]),
        tool_choice: ToolChoice::Auto,
        max_output: None,
        effort: None,
        answer_schema: None,
    }
}

async fn ask(providers: &Providers, models: &[&str]) -> (Result<Answer, ProviderError>, Vec<RequestEvent>) {
    let (sender, mut receiver) = mpsc::channel(1024);
    let answer = providers.ask(request(models), &sender, &CancelToken::new()).await;
    let mut events = Vec::new();
    while let Ok(event) = receiver.try_recv() {
        events.push(event);
    }
    (answer, events)
}

fn text(answer: &Answer) -> &str {
    answer.blocks[0].as_text().unwrap()
}

fn withdrawn(events: &[RequestEvent]) -> Vec<Block> {
    let partial = |event: &RequestEvent| match event {
        RequestEvent::Withdrawn { partial } => Some(partial.clone()),
        _ => None,
    };
    events.iter().filter_map(partial).flatten().collect()
}

#[tokio::test]
async fn a_broken_stream_is_withdrawn_and_the_retry_stands_alone() {
    let bad = [
        overloaded("PARTIAL"),
        head("PARTIAL"),
        "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"
            .into(),
        format!("{}data: {{bad\n\n", head("PARTIAL")),
    ];
    for (n, bad) in bad.into_iter().enumerate() {
        let server = Server::start(vec![stream(bad), stream(full("SECOND"))]).await;
        let (answer, events) = ask(&server.providers("ANTHROPIC", &[]), &["opus"]).await;
        let answer = answer.unwrap();
        assert_eq!((text(&answer), answer.blocks.len(), answer.attempts), ("SECOND", 1, 2), "{n}");
        let seen = server.seen();
        assert_eq!((seen.len(), &seen[0].body), (2, &seen[1].body), "{n}");
        let expected: &[Block] = if n == 2 { &[] } else { &[Block::Text { text: "PARTIAL".into() }] };
        assert_eq!(withdrawn(&events), expected, "{n}");
        let output = if n == 2 { 5 } else { 6 };
        assert_eq!(answer.usage.output, output, "usage of the failed try counts: {n}");
    }
}

#[tokio::test]
async fn with_no_try_left_the_error_carries_what_had_come() {
    let server = Server::start(vec![stream(overloaded("PARTIAL"))]).await;
    let (answer, _) = ask(&server.providers("ANTHROPIC", &[("CLAW_REQUEST_TRIES", "2")]), &["opus"]).await;
    let error = answer.unwrap_err();
    assert_eq!(error.class, ErrorClass::Overloaded);
    assert_eq!(
        error.to_string(),
        "failed after 2 attempts: anthropic returned 200 (overloaded_error): Overloaded"
    );
    assert_eq!(error.partial, [Block::Text { text: "PARTIAL".into() }]);
    assert_eq!(error.usage.input, 20);
}

#[tokio::test]
async fn keep_alives_do_not_hide_a_dead_stream() {
    let ping = b"event: ping\ndata: {\"type\": \"ping\"}\n\n";
    let server =
        Server::start(vec![Reply::KeepAlive(head("BEFORE").into(), ping), stream(full("AFTER"))]).await;
    let started = Instant::now();
    let (answer, events) = ask(&server.providers("ANTHROPIC", &[]), &["opus"]).await;
    assert_eq!(text(&answer.unwrap()), "AFTER");
    assert!(started.elapsed() >= Duration::from_millis(80));
    assert_eq!(withdrawn(&events), [Block::Text { text: "BEFORE".into() }]);
    let waits = events.iter().any(
        |e| matches!(e, RequestEvent::Waiting { error, .. } if error.starts_with("no data from anthropic for")),
    );
    assert!(waits, "{events:?}");
}

#[tokio::test]
async fn a_slow_first_token_is_no_stall() {
    let server = Server::start(vec![Reply::SlowStart(20, full("SLOW").into()), stream(full("RETRY"))]).await;
    let (answer, _) = ask(&server.providers("ANTHROPIC", &[]), &["opus"]).await;
    assert_eq!(text(&answer.unwrap()), "SLOW");
    assert_eq!(server.seen().len(), 1);
    let never = Server::start(vec![Reply::KeepAlive(Vec::new(), b": x\n\n"), stream(full("RETRY"))]).await;
    let (answer, _) = ask(&never.providers("ANTHROPIC", &[("CLAW_FIRST_TOKEN_MS", "100")]), &["opus"]).await;
    assert_eq!(text(&answer.unwrap()), "RETRY");
}

#[tokio::test]
async fn silence_refusal_and_a_lost_connection_are_tried_again() {
    for bad in [Reply::Silence, Reply::Close, status("200 OK", "content-length: 9000\r\n", &head("x"))] {
        let server = Server::start(vec![bad, stream(full("OK"))]).await;
        let (answer, _) =
            ask(&server.providers("ANTHROPIC", &[("CLAW_FIRST_BYTE_MS", "60")]), &["opus"]).await;
        assert_eq!(text(&answer.unwrap()), "OK");
        assert_eq!(server.seen().len(), 2);
    }
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_said_without_the_key() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let server = Server { port, seen: Arc::default(), arrived: Arc::default() };
    let (answer, events) = ask(&server.providers("ANTHROPIC", &[]), &["opus", "haiku"]).await;
    let error = answer.unwrap_err();
    assert_eq!(error.class, ErrorClass::Transient);
    assert_eq!(events.iter().filter(|e| matches!(e, RequestEvent::Sent { .. })).count(), 4);
    let told = format!("failed after 4 attempts: cannot reach anthropic at 127.0.0.1:{port}: ");
    assert!(error.to_string().starts_with(&told), "{error}");
    assert!(!format!("{error:?}").contains("sk-secret"));
}

#[tokio::test]
async fn only_what_time_heals_is_tried_again() {
    let again = ["408 X", "409 X", "429 X", "500 X", "502 X", "503 X", "504 X", "529 X"];
    let never = ["400 X", "401 X", "403 X", "404 X", "413 X", "422 X"];
    for (line, requests) in again.iter().map(|l| (*l, 2)).chain(never.iter().map(|l| (*l, 1))) {
        let body = r#"{"type":"error","error":{"type":"some_error","message":"words"}}"#;
        let server =
            Server::start(vec![status(line, "request-id: req_7\r\n", body), stream(full("OK"))]).await;
        let (answer, _) = ask(&server.providers("ANTHROPIC", &[]), &["opus"]).await;
        assert_eq!(server.seen().len(), requests, "{line}");
        if requests == 1 {
            let code = &line[..3];
            let expected = format!("anthropic returned {code} (some_error): words [request req_7]");
            assert_eq!(answer.unwrap_err().to_string(), expected);
        }
    }
}

#[tokio::test]
async fn a_key_follows_no_redirect() {
    let other = Server::start(vec![stream(full("STOLEN"))]).await;
    let place = format!("location: http://localhost:{}/v1/messages\r\n", other.port);
    for line in ["301 Moved Permanently", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let server = Server::start(vec![status(line, &place, "")]).await;
        let (answer, _) = ask(&server.providers("ANTHROPIC", &[]), &["opus"]).await;
        let error = answer.unwrap_err();
        assert!(error.to_string().contains("redirects to localhost"), "{error}");
        assert_eq!((server.seen().len(), other.seen().len()), (1, 0));
    }
}

#[tokio::test]
async fn quota_is_asked_once_and_is_its_own_class() {
    let body = r#"{"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"You exceeded your current quota"}}"#;
    let server = Server::start(vec![status("429 X", "", body)]).await;
    let (answer, _) = ask(&server.providers("OPENAI", &[]), &["gpt-4o"]).await;
    assert_eq!((answer.unwrap_err().class, server.seen().len()), (ErrorClass::Quota, 1));
}

#[tokio::test]
async fn the_services_wait_is_honoured_shared_and_bounded() {
    let limited =
        |headers: &str| status("429 X", headers, r#"{"error":{"type":"rate_limit_error","message":"slow"}}"#);
    let server = Server::start(vec![
        limited("retry-after-ms: 300\r\n"),
        limited("retry-after: soon\r\n"),
        stream(full("OK")),
    ])
    .await;
    let (answer, events) = ask(&server.providers("ANTHROPIC", &[]), &["opus"]).await;
    assert_eq!(text(&answer.unwrap()), "OK");
    let seen = server.seen();
    assert!(seen[1].at - seen[0].at >= Duration::from_millis(300));
    assert_eq!(seen.len(), 3);
    assert!(
        events.iter().any(
            |e| matches!(e, RequestEvent::Waiting { delay, .. } if *delay >= Duration::from_millis(300))
        )
    );
    let huge = Server::start(vec![limited("retry-after: 10800\r\n")]).await;
    let (answer, _) = ask(&huge.providers("ANTHROPIC", &[]), &["opus", "haiku"]).await;
    let error = answer.unwrap_err();
    assert!(matches!(error.kind, ProviderErrorKind::WaitTooLong { wait, .. } if wait.as_secs() == 10_800));
    assert!(error.retry_at.is_some());
    assert_eq!(huge.seen().len(), 1);
}

#[tokio::test]
async fn an_answer_beyond_all_bounds_is_asked_for_once() {
    let mut body = b"{\"content\": \"".to_vec();
    body.resize(9 * 1024 * 1024, b'x');
    let server = Server::start(vec![Reply::Http("200 OK", String::new(), body)]).await;
    let (answer, _) = ask(&server.providers("ANTHROPIC", &[]), &["opus"]).await;
    let error = answer.unwrap_err();
    assert_eq!((error.class, server.seen().len()), (ErrorClass::Refused, 1), "{error}");
    assert!(error.to_string().contains("too large"), "{error}");
}

#[tokio::test]
async fn what_a_service_says_is_short_and_holds_no_key() {
    let body = format!("{}sk-secret {}", "A".repeat(595), "B".repeat(60_000));
    let id = format!("request-id: {}\r\n", "r".repeat(6_000));
    let server = Server::start(vec![Reply::Http("401 Unauthorized", id, body.into_bytes())]).await;
    let (answer, _) = ask(&server.providers("ANTHROPIC", &[]), &["opus"]).await;
    let text = answer.unwrap_err().to_string();
    assert!(!text.contains("sk-") && text.len() < 1_000, "{text}");
}

#[tokio::test]
async fn ten_requests_share_one_pause() {
    let body = r#"{"error":{"type":"rate_limit_error","message":"slow"}}"#;
    let limited = status("429 X", "retry-after-ms: 400\r\n", body);
    let server = Server::start(vec![limited.clone(), limited.clone(), limited, stream(full("OK"))]).await;
    let providers = server.providers("ANTHROPIC", &[]);
    let all = (0..10).map(|_| ask(&providers, &["opus"]));
    let answers = futures_util::future::join_all(all).await;
    assert!(answers.iter().all(|(answer, _)| answer.is_ok()));
    let seen = server.seen();
    assert_eq!(seen.len(), 13);
    let again: Vec<_> = seen.iter().filter(|s| s.at - seen[2].at >= Duration::from_millis(390)).collect();
    assert_eq!(again.len(), 3, "nobody went on during the pause");
}

#[tokio::test]
async fn the_next_model_is_used_and_said() {
    let body = r#"{"type":"error","error":{"type":"not_found_error","message":"model: claude-opus-4-6"}}"#;
    let server = Server::start(vec![status("404 X", "", body), stream(full("OK"))]).await;
    let (answer, events) = ask(&server.providers("ANTHROPIC", &[]), &["opus", "gpt-4o", "haiku"]).await;
    assert_eq!(answer.unwrap().model, "claude-haiku-4-5");
    let fell = events.iter().any(
        |e| matches!(e, RequestEvent::FellBack { from, to, .. } if from == "claude-opus-4-6" && to == "claude-haiku-4-5"),
    );
    assert!(fell, "{events:?}");
    let busy = status("529 X", "", "{}");
    let server = Server::start(vec![busy.clone(), busy.clone(), busy, stream(full("OK"))]).await;
    let (answer, _) = ask(&server.providers("ANTHROPIC", &[]), &["opus", "haiku"]).await;
    assert_eq!((answer.unwrap().attempts, server.seen().len()), (4, 4));
    assert!(server.seen()[3].body.contains("haiku"));
}

#[tokio::test]
async fn a_stream_without_a_block_is_asked_for_whole_once() {
    let whole = json!({"type": "message", "content": [{"type": "text", "text": "WHOLE"}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 2}});
    let json = Reply::Http("200 OK", "content-type: application/json\r\n".into(), whole.to_string().into());
    let empty = full("").replace("content_block_start", "ping").replace("content_block_delta", "ping");
    for bad in [String::new(), empty] {
        let server = Server::start(vec![stream(bad), json.clone()]).await;
        let (answer, _) = ask(&server.providers("ANTHROPIC", &[]), &["opus"]).await;
        assert_eq!(text(&answer.unwrap()), "WHOLE");
        let streams: Vec<_> = server.seen().iter().map(|s| s.body.contains("\"stream\":true")).collect();
        assert_eq!(streams, [true, false]);
    }
    let server = Server::start(vec![json]).await;
    let (answer, events) = ask(&server.providers("ANTHROPIC", &[]), &["opus"]).await;
    assert_eq!(text(&answer.unwrap()), "WHOLE");
    assert!(events.iter().any(|e| matches!(e, RequestEvent::Stream(StreamEvent::MessageStop))));
}

#[tokio::test]
async fn an_html_page_in_place_of_an_answer_is_named() {
    let page = "<!doctype html><html><head><title>Log in</title></head></html>";
    let server = Server::start(vec![status("200 OK", "content-type: text/html\r\n", page)]).await;
    let (answer, _) = ask(&server.providers("OPENAI", &[]), &["gpt-4o"]).await;
    assert_eq!(
        answer.unwrap_err().to_string(),
        "openai returned 200 (html): an HTML page, \"Log in\" came in place of an answer; check the base URL"
    );
}

#[tokio::test]
async fn a_gzip_body_is_read() {
    // The bytes of `data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}` and an empty line.
    let packed = include_bytes!("../../tests/fixtures/sse/hi.sse.gz").to_vec();
    let headers = "content-type: text/event-stream\r\ncontent-encoding: gzip\r\n".to_owned();
    let server = Server::start(vec![Reply::Http("200 OK", headers, packed)]).await;
    let (answer, _) = ask(&server.providers("OPENAI", &[]), &["gpt-4o"]).await;
    assert_eq!(text(&answer.unwrap()), "hi");
}

#[tokio::test]
async fn keys_go_out_as_each_wire_wants_them() {
    let server = Server::start(vec![stream(full("OK"))]).await;
    ask(&server.providers("ANTHROPIC", &[]), &["opus"]).await.0.unwrap();
    let head = server.seen()[0].head.clone();
    assert!(
        head.contains("x-api-key: sk-secret") && head.contains("anthropic-version: 2023-06-01"),
        "{head}"
    );
    assert!(head.starts_with("post /v1/messages "), "{head}");
    let done = "data: {\"choices\":[{\"delta\":{\"content\":\"OK\"},\"finish_reason\":\"stop\"}]}\n\n";
    let server = Server::start(vec![stream(done)]).await;
    ask(&server.providers("OPENAI", &[]), &["gpt-4o"]).await.0.unwrap();
    let head = server.seen()[0].head.clone();
    assert!(head.contains("authorization: bearer sk-secret"), "{head}");
    assert!(head.starts_with("post /chat/completions "), "{head}");
}

#[tokio::test]
async fn a_cancelled_request_ends_at_once_with_what_had_come() {
    let server = Server::start(vec![Reply::KeepAlive(head("HALF").into(), b": x\n\n")]).await;
    let providers = server.providers("ANTHROPIC", &[("CLAW_STREAM_IDLE_MS", "60000")]);
    let (sender, mut receiver) = mpsc::channel(1024);
    let cancel = CancelToken::new();
    let stop = cancel.clone();
    let listen = async {
        while let Some(event) = receiver.recv().await {
            if matches!(event, RequestEvent::Stream(StreamEvent::TextDelta { .. })) {
                stop.cancel();
            }
        }
    };
    let asking = async {
        let answer = providers.ask(request(&["opus"]), &sender, &cancel).await;
        drop(sender);
        answer
    };
    let (answer, ()) = tokio::join!(asking, listen);
    let error = answer.unwrap_err();
    assert_eq!(
        (error.class, error.partial),
        (ErrorClass::Cancelled, vec![Block::Text { text: "HALF".into() }])
    );
    let silent = Server::start(vec![Reply::Silence]).await;
    let providers = silent.providers("ANTHROPIC", &[]);
    let (sender, _receiver) = mpsc::channel(1);
    let cancel = CancelToken::new();
    let stop = async {
        silent.arrived.notified().await;
        cancel.cancel();
    };
    let (answer, ()) = tokio::join!(providers.ask(request(&["opus"]), &sender, &cancel), stop);
    assert_eq!(answer.unwrap_err().class, ErrorClass::Cancelled);
}

#[tokio::test]
async fn no_more_requests_are_in_flight_than_allowed() {
    let server = Server::start(vec![Reply::SlowStart(3, full("OK").into())]).await;
    let providers = server.providers("ANTHROPIC", &[("CLAW_MAX_IN_FLIGHT", "2")]);
    let all = (0..6).map(|_| ask(&providers, &["opus"]));
    let answers = futures_util::future::join_all(all).await;
    assert!(answers.iter().all(|(answer, _)| answer.is_ok()));
    let seen = server.seen();
    assert!(seen[2].at - seen[0].at >= Duration::from_millis(20), "the third waited for the first");
}

#[tokio::test]
async fn a_line_of_sixty_four_megabytes_is_refused_and_not_asked_for_again() {
    let mut body = b"data: ".to_vec();
    body.resize(64 << 20, b'x');
    let server = Server::start(vec![stream(body), stream(full("OK"))]).await;
    let (answer, _) = ask(&server.providers("ANTHROPIC", &[]), &["opus"]).await;
    let error = answer.unwrap_err();
    assert!(error.to_string().contains("longer than"), "{error}");
    assert_eq!((error.class, server.seen().len()), (ErrorClass::Refused, 1));
}

#[tokio::test]
async fn cut_at_any_byte_nothing_of_it_is_used() {
    let call = [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "bash", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"command\":\"é\"}"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ];
    let bytes = call.iter().map(|e| format!("data: {e}\n\n")).collect::<String>().into_bytes();
    let headers = format!("content-type: text/event-stream\r\ncontent-length: {}\r\n", bytes.len());
    for at in (0..bytes.len() - 3).step_by(11) {
        let cut = bytes[..at].to_vec();
        for bad in [stream(cut.clone()), Reply::Http("200 OK", headers.clone(), cut)] {
            let server = Server::start(vec![bad, stream(full("OK"))]).await;
            let (answer, _) =
                ask(&server.providers("ANTHROPIC", &[("CLAW_RETRY_BASE_MS", "1")]), &["opus"]).await;
            let answer = answer.unwrap();
            assert_eq!(
                (text(&answer), answer.blocks.len(), server.seen().len()),
                ("OK", 1, 2),
                "cut at {at}"
            );
        }
    }
}

#[tokio::test]
async fn a_document_that_is_no_message_is_a_failed_try() {
    let server = Server::start(vec![status("200 OK", "", "{\"routes\":[]}"), stream(full("OK"))]).await;
    let (answer, _) = ask(&server.providers("ANTHROPIC", &[]), &["opus"]).await;
    assert_eq!(text(&answer.unwrap()), "OK");
    let seen = server.seen();
    assert_eq!(seen[0].body, seen[1].body);
}

#[tokio::test]
async fn an_answer_that_is_not_understood_is_asked_for_once_more_and_not_six_times() {
    let server = Server::start(vec![stream("data: {\"type\": nonsense}\n\n")]).await;
    let (answer, _) = ask(&server.providers("ANTHROPIC", &[]), &["opus"]).await;
    let error = answer.unwrap_err();
    assert!(error.to_string().contains("not understood"), "{error}");
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn the_users_proxy_is_taken_except_for_this_machine_and_hosts_it_excludes() {
    let proxy = Server::start(vec![stream(full("PROXIED"))]).await;
    let direct = Server::start(vec![stream(full("DIRECT"))]).await;
    let address = format!("http://127.0.0.1:{}", proxy.port);
    let get = |base: &str, no_proxy: &str| {
        let env = [
            ("ANTHROPIC_BASE_URL", base),
            ("ANTHROPIC_API_KEY", "k"),
            ("HTTP_PROXY", &address),
            ("NO_PROXY", no_proxy),
            ("CLAW_REQUEST_TRIES", "1"),
        ]
        .map(|(k, v)| (k, v.to_owned()));
        let env = move |name: &str| env.iter().find(|(n, _)| *n == name).map(|(_, v)| v.clone());
        Providers::start(ProvidersConfig::from_env(&env, ProfilesTable::default()).unwrap()).unwrap()
    };
    let far = "http://service.invalid";
    assert_eq!(text(&ask(&get(far, ""), &["opus"]).await.0.unwrap()), "PROXIED");
    assert!(proxy.seen()[0].head.starts_with("post http://service.invalid/v1/messages"));
    assert!(matches!(
        ask(&get(far, "invalid"), &["opus"]).await.0.unwrap_err().kind,
        ProviderErrorKind::Connect { .. }
    ));
    let near = format!("http://127.0.0.1:{}", direct.port);
    assert_eq!(text(&ask(&get(&near, ""), &["opus"]).await.0.unwrap()), "DIRECT");
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepted = Arc::new(Mutex::new(0));
    let count = Arc::clone(&accepted);
    tasks::spawn("server", async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            *count.lock().unwrap() += 1;
            tasks::spawn("connection", async move {
                let mut bytes = Vec::new();
                while socket.read_buf(&mut bytes).await.is_ok_and(|n| n > 0) {
                    if !bytes.ends_with(b"}") {
                        continue;
                    }
                    bytes.clear();
                    let body = full("OK");
                    let chunked = format!(
                        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n",
                        body.len()
                    );
                    socket.write_all(chunked.as_bytes()).await.unwrap();
                    socket.write_all(b"0\r\n\r\n").await.unwrap();
                }
            });
        }
    });
    let server = Server { port, seen: Arc::default(), arrived: Arc::default() };
    let providers = server.providers("ANTHROPIC", &[]);
    for _ in 0..5 {
        ask(&providers, &["opus"]).await.0.unwrap();
    }
    assert!(*accepted.lock().unwrap() < 5, "no connection was used again");
}

#[tokio::test]
async fn bytes_that_never_become_an_event_are_no_progress() {
    let drip = format!("{}data: ", head("BEFORE")).into_bytes();
    let server = Server::start(vec![Reply::KeepAlive(drip, b"x"), stream(full("AFTER"))]).await;
    let (answer, _) = ask(&server.providers("ANTHROPIC", &[]), &["opus"]).await;
    assert_eq!(text(&answer.unwrap()), "AFTER");
}

#[tokio::test]
async fn a_chat_stream_is_whole_once_its_finish_reason_came_and_not_before() {
    let part = "data: {\"choices\":[{\"delta\":{\"content\":\"PART\"},\"finish_reason\":null}]}\n\n";
    let end = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let error = "data: {\"error\":{\"message\":\"Overloaded\",\"type\":\"overloaded_error\"}}\n\n";
    let done = format!("{}{end}data: [DONE]\n\n", part.replace("PART", "OK"));
    for bad in [part.to_owned(), format!("{part}{error}"), error.to_owned()] {
        let server = Server::start(vec![stream(bad), stream(done.clone())]).await;
        let (answer, _) = ask(&server.providers("OPENAI", &[]), &["gpt-4o"]).await;
        let answer = answer.unwrap();
        assert_eq!((text(&answer), answer.blocks.len(), server.seen().len()), ("OK", 1, 2));
        assert_eq!(server.seen()[0].body, server.seen()[1].body);
    }
    let cut = status("200 OK", "content-length: 9000\r\n", &format!("{part}{end}"));
    let open = Reply::KeepAlive(format!("{part}{end}").into(), b": x\n\n");
    for whole in [cut, open] {
        let server = Server::start(vec![whole]).await;
        let (answer, _) = ask(&server.providers("OPENAI", &[]), &["gpt-4o"]).await;
        assert_eq!((text(&answer.unwrap()), server.seen().len()), ("PART", 1));
    }
}
