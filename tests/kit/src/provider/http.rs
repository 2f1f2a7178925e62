//! As much of HTTP/1.1 as a provider needs: read one request, write one head, write chunks.

use std::io::{self, BufRead, Write};

/// A request as bytes.
pub(crate) struct RawRequest {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// Reads one request; none when the client closed the connection before one began.
pub(crate) fn read_request(from: &mut impl BufRead) -> io::Result<Option<RawRequest>> {
    let mut first = String::new();
    if from.read_line(&mut first)? == 0 {
        return Ok(None);
    }
    let mut words = first.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            headers.push((name.trim().to_lowercase(), value.trim().to_owned()));
        }
    }
    let find = |name: &str| headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str());
    let body = if find("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked")) {
        read_chunks(from)?
    } else {
        let length = find("content-length").and_then(|v| v.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        from.read_exact(&mut body)?;
        body
    };
    Ok(Some(RawRequest { method, path, headers, body }))
}

fn read_chunks(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim().split(';').next().unwrap_or_default(), 16)
            .map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))?;
        let mut chunk = vec![0; size + 2];
        from.read_exact(&mut chunk)?;
        if size == 0 {
            return Ok(body);
        }
        body.extend_from_slice(&chunk[..size]);
    }
}

/// How the length of a body is told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Chunks; the connection lives on.
    Chunks,
    /// Until the connection closes.
    UntilClose,
    /// The headers of the reply say it themselves.
    AsGiven,
}

/// Writes status line and headers.
pub(crate) fn write_head(
    to: &mut impl Write,
    status: u16,
    headers: &[(String, String)],
    framing: Framing,
) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(match framing {
        Framing::Chunks => "transfer-encoding: chunked\r\n\r\n",
        Framing::UntilClose => "connection: close\r\n\r\n",
        Framing::AsGiven => "\r\n",
    });
    to.write_all(head.as_bytes())
}

/// Writes one piece of a body as one network write.
pub(crate) fn write_piece(to: &mut impl Write, piece: &[u8], framing: Framing) -> io::Result<()> {
    if piece.is_empty() {
        return Ok(());
    }
    if framing != Framing::Chunks {
        return to.write_all(piece);
    }
    let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
    chunk.extend_from_slice(piece);
    chunk.extend_from_slice(b"\r\n");
    to.write_all(&chunk)
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        529 => "Overloaded",
        _ => "Status",
    }
}
