//! The door of commands to some hosts: a proxy that knows names, on a socket in the network of the commands.
//!
//! A name is compared with the list, the address it leads to is checked, and that very address is connected to: what a
//! name leads to at another moment counts for nothing. Private addresses are refused under any name.

use super::hosts::{Hosts, is_public};
use claw_kernel::cancel::CancelToken;
use claw_kernel::tasks;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Bytes of a request without its body.
const MOST_HEAD: usize = 16 * 1024;
/// Connections at once.
const MOST_CONNECTIONS: usize = 128;
/// For a request to come, for a name to be resolved, for a connection to stand.
const PATIENCE: Duration = Duration::from_secs(15);

/// A running proxy; it ends, connections too, when this is dropped.
#[derive(Debug)]
pub(super) struct Proxy(CancelToken);

impl Drop for Proxy {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Starts one on a listening socket, within a runtime.
pub(super) fn start(listener: OwnedFd, hosts: Hosts) -> io::Result<Proxy> {
    if tokio::runtime::Handle::try_current().is_err() {
        return Err(io::Error::other("a list of hosts needs a proxy, and there is no runtime for it here"));
    }
    let listener = std::net::TcpListener::from(listener);
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let cancel = CancelToken::new();
    let own = cancel.clone();
    tasks::spawn("proxy", async move {
        tokio::select! {
            () = own.cancelled() => {}
            () = serve(listener, hosts, own.clone()) => {}
        }
    });
    Ok(Proxy(cancel))
}

async fn serve(listener: TcpListener, hosts: Hosts, cancel: CancelToken) {
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    while let Ok(permit) = Arc::clone(&room).acquire_owned().await {
        let Ok((client, _)) = listener.accept().await else { return };
        let (hosts, cancel) = (hosts.clone(), cancel.clone());
        tasks::spawn("proxy connection", async move {
            let _permit = permit;
            tokio::select! {
                () = cancel.cancelled() => {}
                () = connection(client, &hosts) => {}
            }
        });
    }
}

/// Why a request goes nowhere: status and words for whoever asked.
#[derive(Debug, PartialEq, Eq)]
struct Refused(u16, String);

async fn connection(mut client: TcpStream, hosts: &Hosts) {
    let head = match timeout(PATIENCE, head(&mut client)).await {
        Ok(Ok(head)) => head,
        Ok(Err(_)) | Err(_) => return,
    };
    match timeout(PATIENCE, reach(&head, hosts)).await {
        Ok(Ok((mut server, first, answer))) => {
            // Either side may go at any time.
            if server.write_all(&first).await.is_ok() && client.write_all(answer).await.is_ok() {
                let _ = copy_bidirectional(&mut client, &mut server).await;
            }
        }
        Ok(Err(refused)) => refuse(&mut client, &refused).await,
        Err(_) => refuse(&mut client, &Refused(504, "the host did not answer in time".to_owned())).await,
    }
}

async fn refuse(client: &mut TcpStream, Refused(code, why): &Refused) {
    let text = format!(
        "HTTP/1.1 {code} refused by the sandbox\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{why}\n",
        why.len() + 1
    );
    let _ = client.write_all(text.as_bytes()).await;
    let _ = client.shutdown().await;
}

/// Up to the empty line, and what came after it.
async fn head(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        if bytes.windows(4).any(|four| four == b"\r\n\r\n") {
            return Ok(bytes);
        }
        if bytes.len() >= MOST_HEAD || client.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

/// A connection to the host, what is sent there first, and what the client is told first.
async fn reach(bytes: &[u8], hosts: &Hosts) -> Result<(TcpStream, Vec<u8>, &'static [u8]), Refused> {
    let request = Request::parse(bytes).ok_or_else(|| Refused(400, "not a request to a proxy".to_owned()))?;
    if !hosts.allow(&request.host) {
        let why = format!("{} is not in the list of hosts (setting sandbox.network)", request.host);
        return Err(Refused(403, why));
    }
    let unknown = |_| Refused(502, format!("{} cannot be resolved", request.host));
    let all: Vec<SocketAddr> =
        lookup_host((request.host.as_str(), request.port)).await.map_err(unknown)?.collect();
    let public: Vec<SocketAddr> = all.into_iter().filter(|address| is_public(address.ip())).collect();
    if public.is_empty() {
        return Err(Refused(403, format!("{} leads to no public address", request.host)));
    }
    match TcpStream::connect(public.as_slice()).await {
        Ok(server) if request.is_tunnel => {
            Ok((server, request.rest, b"HTTP/1.1 200 Connection established\r\n\r\n"))
        }
        Ok(server) => Ok((server, request.rest, b"")),
        Err(error) => Err(Refused(502, format!("{}: {error}", request.host))),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Request {
    host: String,
    port: u16,
    is_tunnel: bool,
    /// For the host.
    rest: Vec<u8>,
}

impl Request {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let (head, rest) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 4..]);
        let (line, fields) = head.split_once("\r\n").unwrap_or((head, ""));
        let mut words = line.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.starts_with("HTTP/1.") || head.contains('\0') {
            return None;
        }
        if method == "CONNECT" {
            let (host, port) = authority(target)?;
            return Some(Self { host, port: port?, is_tunnel: true, rest: rest.to_vec() });
        }
        let below = target.strip_prefix("http://")?;
        let at = below.find(['/', '?']).unwrap_or(below.len());
        let (named, path) = below.split_at(at);
        let (host, port) = authority(named)?;
        let slash = if path.starts_with('/') { "" } else { "/" };
        let mut first = format!("{method} {slash}{path} {version}\r\nHost: {named}\r\nConnection: close\r\n");
        for field in fields.split("\r\n").filter(|field| is_passed_on(field)) {
            first.push_str(field);
            first.push_str("\r\n");
        }
        first.push_str("\r\n");
        Some(Self {
            host,
            port: port.unwrap_or(80),
            is_tunnel: false,
            rest: [first.as_bytes(), rest].concat(),
        })
    }
}

fn is_passed_on(field: &str) -> bool {
    let name = field.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
    !field.is_empty()
        && !matches!(name.as_str(), "host" | "connection" | "keep-alive")
        && !name.starts_with("proxy-")
}

/// Host and port. A user in front of the host is no part of a request to a proxy.
fn authority(text: &str) -> Option<(String, Option<u16>)> {
    if text.is_empty() || text.contains(['@', '[', '\\', '%']) {
        return None;
    }
    match text.rsplit_once(':') {
        Some((host, port)) => Some((host.to_owned(), Some(port.parse().ok()?))),
        None => Some((text.to_owned(), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::HostRule;

    fn parse(text: &str) -> Option<Request> {
        Request::parse(text.as_bytes())
    }

    #[test]
    fn a_request_says_its_host_once_and_the_header_does_not_count() {
        let text = "GET http://a.org:81/x?y HTTP/1.1\r\nHost: evil.org\r\nProxy-Authorization: k\r\nAccept: *\r\n\r\nbody";
        let request = parse(text).unwrap();
        assert_eq!((request.host.as_str(), request.port, request.is_tunnel), ("a.org", 81, false));
        let wanted = "GET /x?y HTTP/1.1\r\nHost: a.org:81\r\nConnection: close\r\nAccept: *\r\n\r\nbody";
        assert_eq!(String::from_utf8(request.rest).unwrap(), wanted);
        let tunnel = parse("CONNECT a.org:443 HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!((tunnel.host.as_str(), tunnel.port, tunnel.is_tunnel), ("a.org", 443, true));
        for wrong in [
            "GET /x HTTP/1.1\r\n\r\n",
            "CONNECT a.org HTTP/1.1\r\n\r\n",
            "CONNECT u@a.org:443 HTTP/1.1\r\n\r\n",
            "CONNECT [::1]:443 HTTP/1.1\r\n\r\n",
            "GET http://a.org@b.org/ HTTP/1.1\r\n\r\n",
            "GET http://a.org/ x HTTP/1.1\r\n\r\n",
            "GET ftp://a.org/ HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }

    #[tokio::test]
    async fn a_name_that_leads_to_this_machine_is_refused_although_it_is_listed() {
        let hosts = Hosts::new(vec![HostRule::try_from("localhost".to_owned()).unwrap()]);
        let said = |text: &'static str| {
            let hosts = hosts.clone();
            async move { reach(text.as_bytes(), &hosts).await.unwrap_err() }
        };
        let Refused(code, why) = said("CONNECT localhost:1 HTTP/1.1\r\n\r\n").await;
        assert!(code == 403 && why.contains("no public address"), "{why}");
        let Refused(code, why) = said("CONNECT example.org:443 HTTP/1.1\r\n\r\n").await;
        assert!(code == 403 && why.contains("sandbox.network"), "{why}");
    }
}
