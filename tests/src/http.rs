//! The little HTTP that the admin server and receivers of OTLP ask for.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(20);

/// Status and body of an answer.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// GET over a connection of its own.
pub(crate) fn get(address: SocketAddr, path: &str) -> io::Result<Response> {
    exchange(address, &format!("GET {path}"), "", &[])
}

/// POST over a connection of its own; every header ends with CRLF.
pub(crate) fn post(address: SocketAddr, path: &str, headers: &str, body: &[u8]) -> io::Result<Response> {
    exchange(address, &format!("POST {path}"), &format!("{headers}Content-Length: {}\r\n", body.len()), body)
}

fn exchange(address: SocketAddr, line: &str, headers: &str, body: &[u8]) -> io::Result<Response> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write!(stream, "{line} HTTP/1.0\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n")?;
    stream.write_all(body)?;
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "no HTTP answer");
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(bad)?;
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(bad)?;
    Ok(Response { status, body: body.to_owned() })
}
