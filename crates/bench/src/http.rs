//! The little HTTP/1.1 that the engine's admin server and an OTLP/HTTP receiver ask of a client.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long the other side may take to read or write on.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest head of an answer.
const MAX_HEAD_BYTES: u64 = 64 * 1024;
/// The longest body of an answer.
const MAX_BODY_BYTES: u64 = 64 * 1024 * 1024;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
}

/// A connection for one request after the other.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
    host: SocketAddr,
}

impl Connection {
    pub(crate) fn open(host: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&host, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream), host })
    }

    pub(crate) fn get(&mut self, path: &str) -> io::Result<Response> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.host);
        self.exchange(request.as_bytes())
    }

    /// Sends a request that is complete with its head, such as one of [`post`].
    pub(crate) fn exchange(&mut self, request: &[u8]) -> io::Result<Response> {
        self.stream.get_mut().write_all(request)?;
        read_response(&mut self.stream)
    }
}

/// A POST request with head and body.
pub(crate) fn post(host: SocketAddr, path: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// Reads one answer, whose head must say how long its body is.
fn read_response(stream: &mut impl io::BufRead) -> io::Result<Response> {
    let bad = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mut head = stream.by_ref().take(MAX_HEAD_BYTES);
    let mut line = String::new();
    let mut next_line = |line: &mut String| {
        line.clear();
        match head.read_line(line)? {
            0 => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            _ => Ok(()),
        }
    };
    next_line(&mut line)?;
    let status = line.strip_prefix("HTTP/1.").and_then(|rest| rest.split(' ').nth(1)?.trim_end().parse().ok());
    let status: u16 = status.ok_or_else(|| bad("the answer does not begin as HTTP/1 does"))?;
    let mut length = None;
    loop {
        next_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse::<u64>().ok();
        }
    }
    let length = length.filter(|length| *length <= MAX_BODY_BYTES);
    let length = length.ok_or_else(|| bad("the answer does not say how long its body is, or it is too long"))?;
    let mut body = Vec::new();
    if stream.take(length).read_to_end(&mut body)? as u64 != length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
    }
    Ok(Response { status, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two answers on one connection are told apart by their lengths.
    #[test]
    fn one_after_the_other() {
        let mut stream: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nx: y\r\n\r\nabcHTTP/1.1 503 Not now\r\n\
            Content-Length:0\r\n\r\n";
        assert_eq!(read_response(&mut stream).unwrap(), Response { status: 200, body: b"abc".to_vec() });
        assert_eq!(read_response(&mut stream).unwrap(), Response { status: 503, body: Vec::new() });
        assert_eq!(read_response(&mut stream).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    /// Whatever is no answer, has no length or is cut short is an error.
    #[test]
    fn broken() {
        for (bytes, kind) in [
            (&b"SSH-2.0-x\r\n"[..], io::ErrorKind::InvalidData),
            (b"HTTP/1.1\r\n\r\n", io::ErrorKind::InvalidData),
            (b"HTTP/1.1 200 OK\r\n\r\n", io::ErrorKind::InvalidData),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n", io::ErrorKind::InvalidData),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc", io::ErrorKind::UnexpectedEof),
            (b"HTTP/1.1 200 OK\r\ncontent-", io::ErrorKind::InvalidData),
        ] {
            let error = read_response(&mut &*bytes).unwrap_err();
            assert_eq!(error.kind(), kind, "{}", bytes.escape_ascii());
        }
    }

    /// Head and body of a request.
    #[test]
    fn posts() {
        let host = SocketAddr::from(([127, 0, 0, 1], 4318));
        let expected = "POST /v1/logs HTTP/1.1\r\nHost: 127.0.0.1:4318\r\nContent-Type: application/x-protobuf\r\n\
            Content-Length: 2\r\n\r\n\x08\x01";
        assert_eq!(post(host, "/v1/logs", "application/x-protobuf", &[8, 1]), expected.as_bytes());
    }
}
