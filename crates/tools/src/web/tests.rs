//! Fetching against servers on this machine: what is refused never reaches one, what is allowed comes.

use super::*;
use claw_kernel::cancel::CancelToken;
use claw_kernel::tasks;
use futures_util::future::BoxFuture;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use url::Url;

const HOME: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const AWAY: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// Answers with what `say` makes of the path; counts connections.
struct Server {
    port: u16,
    hits: Arc<AtomicUsize>,
}

async fn server(say: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Server {
    let listener = TcpListener::bind((HOME, 0)).await.unwrap();
    let (port, hits) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let (counted, say) = (Arc::clone(&hits), Arc::new(say));
    tasks::spawn("server", async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            let say = Arc::clone(&say);
            tasks::spawn("connection", async move {
                let mut request = vec![0; 8_192];
                let read = socket.read(&mut request).await.unwrap_or(0);
                let text = String::from_utf8_lossy(&request[..read]).into_owned();
                let path = text.split_whitespace().nth(1).unwrap_or("/").to_owned();
                let _ = socket.write_all(&say(&path)).await;
            });
        }
    });
    Server { port, hits }
}

fn reply(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn html(body: &str) -> Vec<u8> {
    reply("200 OK", "content-type: text/html\r\n", body.as_bytes())
}

fn to(target: &str) -> Vec<u8> {
    reply("302 Found", &format!("location: {target}\r\n"), b"")
}

/// Gives the first list of addresses once, then the second for ever.
struct Names(Mutex<Vec<Vec<IpAddr>>>);

impl Names {
    fn of(answers: &[&[IpAddr]]) -> Arc<Self> {
        Arc::new(Self(Mutex::new(answers.iter().rev().map(|list| list.to_vec()).collect())))
    }
}

impl Lookup for Names {
    fn addresses<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let mut answers = self.0.lock().unwrap();
        let next = if answers.len() > 1 { answers.pop() } else { answers.last().cloned() };
        Box::pin(std::future::ready(Ok(next.unwrap_or_default())))
    }
}

async fn fetch(web: &Web, address: &str) -> Result<Fetched, WebError> {
    web.fetch(&Url::parse(address).unwrap(), &CancelToken::new()).await
}

fn text(fetched: Result<Fetched, WebError>) -> String {
    match fetched.unwrap() {
        Fetched::Page { page, .. } => page.text.clone(),
        Fetched::Elsewhere { url } => format!("elsewhere: {url}"),
    }
}

#[tokio::test]
async fn a_name_that_stands_for_this_machine_is_not_connected_to() {
    let trap = server(|_| html("secret")).await;
    for answer in [&[HOME][..], &[IpAddr::V4(Ipv4Addr::new(93, 184, 215, 14)), HOME][..], &[][..]] {
        let web = Web::with_lookup(WebConfig::default(), Names::of(&[answer]));
        let error = fetch(&web, &format!("http://rebind.example.org:{}/", trap.port)).await.unwrap_err();
        assert!(matches!(error, WebError::NotPublic { .. } | WebError::NoHost { .. }), "{error:?}");
    }
    for literal in
        ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "0x7f.1", "0", "localhost", "localhost."]
    {
        let web = Web::default();
        let error = fetch(&web, &format!("http://{literal}:{}/", trap.port)).await.unwrap_err();
        assert!(matches!(error, WebError::NotPublic { .. }), "{literal}: {error:?}");
    }
    assert_eq!(trap.hits.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_second_answer_of_the_resolver_is_judged_as_well() {
    let trap = server(|_| html("secret")).await;
    // The first one cannot be reached; whatever is asked again gets this machine.
    let web = Web::with_lookup(WebConfig::default(), Names::of(&[&[AWAY], &[HOME]]));
    let address = format!("http://rebind.example.org:{}/", trap.port);
    for _ in 0..3 {
        assert!(fetch(&web, &address).await.is_err());
    }
    assert_eq!(trap.hits.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn redirects_are_followed_within_the_site_at_most_five_times() {
    let site = server(|path| match path.trim_start_matches('/').parse::<u32>() {
        Ok(0) => html("<p>there"),
        Ok(n) => to(&format!("/{}", n - 1)),
        Err(_) => to("http://other.example.org/page"),
    })
    .await;
    let web = Web::open(Names::of(&[&[HOME]]));
    let at = |path: &str| format!("http://site.example.org:{}/{path}", site.port);
    assert_eq!(text(fetch(&web, &at("5")).await), "there");
    let before = site.hits.load(Ordering::SeqCst);
    assert!(matches!(fetch(&web, &at("50")).await, Err(WebError::TooManyHops(5, _))));
    assert_eq!(site.hits.load(Ordering::SeqCst) - before, 6);
    assert_eq!(text(fetch(&web, &at("x")).await), "elsewhere: http://other.example.org/page");
}

#[tokio::test]
async fn a_redirect_to_what_is_not_public_ends_there() {
    let trap = server(|_| html("secret")).await;
    let port = trap.port;
    for target in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://[::ffff:7f00:1]:{port}/"),
        "file:///etc/passwd".to_owned(),
        "gopher://x/".to_owned(),
        format!("http://a@localhost:{port}/"),
    ] {
        let next = Url::parse(&target).unwrap();
        // What the door says to the target of a hop.
        assert!(judge(next.as_str()).is_err(), "{target}");
        let web = Web::default();
        assert!(fetch(&web, &target).await.is_err(), "{target}");
    }
    assert_eq!(trap.hits.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_page_is_kept_for_a_quarter_of_an_hour() {
    let site = server(|_| html("<h1>Hi</h1><p>a <b>b</b></p>")).await;
    let web = Web::open(Names::of(&[&[HOME]]));
    let address = format!("http://site.example.org:{}/", site.port);
    assert_eq!(text(fetch(&web, &address).await), "# Hi\n\na **b**");
    let Fetched::Page { was_kept, .. } = fetch(&web, &format!("{address}#part")).await.unwrap() else {
        panic!("no page")
    };
    assert!(was_kept);
    assert_eq!(site.hits.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_bomb_is_cut_at_ten_megabytes_after_decompression() {
    let bomb = gzip_bomb();
    let site = server(move |path| {
        if path == "/br" {
            return reply("200 OK", "content-type: text/plain\r\ncontent-encoding: br\r\n", b"\x0b\x02\x80");
        }
        reply("200 OK", "content-type: text/plain; charset=utf-8\r\ncontent-encoding: gzip\r\n", &bomb)
    })
    .await;
    let web = Web::open(Names::of(&[&[HOME]]));
    let began = std::time::Instant::now();
    let fetched = fetch(&web, &format!("http://site.example.org:{}/", site.port)).await;
    let Fetched::Page { page, .. } = fetched.unwrap() else { panic!("no page") };
    assert!(page.bytes == 10 << 20 && page.note.contains("longer"), "{} {}", page.bytes, page.note);
    assert!(began.elapsed().as_secs() < 5);
    let error = fetch(&web, &format!("http://site.example.org:{}/br", site.port)).await.unwrap_err();
    assert!(matches!(error, WebError::Encoding { .. }), "{error:?}");
}

/// A gzip member of half a megabyte that holds 64 MB of one letter: made by hand from fixed Huffman codes.
fn gzip_bomb() -> Vec<u8> {
    let mut bits = Bits::default();
    bits.put(1, 1);
    bits.put(1, 2);
    // The letter, then copies of 258 at distance 1.
    bits.code(0x30 + u32::from(b'a'), 8);
    for _ in 0..(64 << 20) / 258 {
        bits.code(0b1100_0000 + 285 - 280, 8);
        bits.code(0, 5);
    }
    bits.code(0, 7);
    // Nobody comes as far as the sums at the end.
    [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255][..], &bits.finish(), &[0; 8]].concat()
}

#[derive(Default)]
struct Bits {
    out: Vec<u8>,
    now: u32,
    count: u32,
}

impl Bits {
    fn put(&mut self, value: u32, bits: u32) {
        for n in 0..bits {
            self.now |= (value >> n & 1) << self.count;
            self.count += 1;
            if self.count == 8 {
                self.out.push(u8::try_from(self.now).unwrap());
                (self.now, self.count) = (0, 0);
            }
        }
    }
    fn code(&mut self, value: u32, bits: u32) {
        for n in (0..bits).rev() {
            self.put(value >> n & 1, 1);
        }
    }
    fn finish(mut self) -> Vec<u8> {
        while self.count != 0 {
            self.put(0, 1);
        }
        self.out
    }
}

#[tokio::test]
async fn an_error_of_the_server_is_told_with_its_words() {
    let site = server(|_| reply("404 Not Found", "content-type: text/plain\r\n", b"no such page")).await;
    let web = Web::open(Names::of(&[&[HOME]]));
    let error =
        fetch(&web, &format!("http://site.example.org:{}/x", site.port)).await.unwrap_err().to_string();
    assert!(error.contains("404 Not Found") && error.contains("no such page"), "{error}");
}

#[tokio::test]
async fn the_users_proxy_is_never_fetched_from_and_carries_no_plain_http() {
    let proxy = server(|_| html("proxy")).await;
    let config = WebConfig { https_proxy: Some(format!("http://127.0.0.1:{}", proxy.port)), no_proxy: None };
    let web = Web::with_lookup(config, Names::of(&[&[HOME]]));
    assert!(fetch(&web, "http://inner.example.org/").await.is_err());
    assert!(fetch(&web, "https://inner.example.org/").await.is_err(), "the name is one of this machine");
    assert_eq!(proxy.hits.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_search_keeps_to_the_domains_that_were_asked_for() {
    let answer = r#"{"results":[{"title":"A","url":"https://docs.example.org/a"},{"title":"B","url":"https://evilexample.org/"},{"title":"A","url":"https://docs.example.org/a"}]}"#;
    let service = server(move |path| {
        assert!(path.contains("q=two+words"), "{path}");
        reply("200 OK", "content-type: application/json\r\n", answer.as_bytes())
    })
    .await;
    let service = SearchService::at(&format!("http://127.0.0.1:{}/find?x=1", service.port)).unwrap();
    let only = ["example.org".to_owned()];
    let cancel = CancelToken::new();
    let hits = service.search("two words", (&only, &[]), &cancel).await.unwrap();
    assert_eq!(hits.iter().map(|hit| hit.title.as_str()).collect::<Vec<_>>(), ["A"]);
    let hits = service.search("two words", (&[], &only), &cancel).await.unwrap();
    assert_eq!(hits.iter().map(|hit| hit.title.as_str()).collect::<Vec<_>>(), ["B"]);
}
