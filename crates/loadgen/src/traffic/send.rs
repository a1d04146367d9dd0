//! Sending messages over UDP and TCP from one blocking thread.

use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::num::NonZeroU64;

use serde::Deserialize;

use super::Source;
use super::pace::{Clock, Pace, SystemClock};

/// Bytes after which a burst of messages is written to a TCP connection even if it is not complete.
const TCP_BUFFER_BYTES: usize = 64 * 1024;

/// How much to send, and how fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SendOptions {
    /// Messages to send at most; fewer only if the source has no more.
    pub count: u64,
    /// Messages per second; `None` for as fast as the socket takes them. Whoever falls behind catches up.
    #[serde(default)]
    pub per_second: Option<NonZeroU64>,
}

/// What was sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sent {
    /// Messages: datagrams, or frames of a stream.
    pub messages: u64,
    /// Records in them, as the source counts them.
    pub records: u64,
    /// Bytes of the messages, without framing and headers.
    pub bytes: u64,
}

/// How messages are told apart in a TCP stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum Framing {
    /// LF after each message, which must hold none (RFC 6587 section 3.4.2).
    Newline,
    /// The length in decimal and a space before each message (RFC 6587 section 3.4.1).
    Octet,
    /// One after the other: IPFIX messages have their length in them.
    None,
}

/// Sending failed on the way.
#[derive(Debug, thiserror::Error)]
#[error("sending to {target} failed after {} messages: {source}", sent.messages)]
pub struct SendError {
    /// Where it went.
    pub target: SocketAddr,
    /// What was handed to the operating system before. Over TCP the peer may have got less, or part of the next
    /// messages too.
    pub sent: Sent,
    /// The operating system's reason.
    #[source]
    pub source: io::Error,
}

/// Sends each message as one datagram, from one socket. That nobody listens is no error: UDP does not tell.
///
/// # Errors
///
/// [`SendError`] if the socket cannot be made or a datagram cannot be sent, for example because it is too large.
pub fn send_udp(target: SocketAddr, source: &mut impl Source, options: &SendOptions) -> Result<Sent, SendError> {
    send_udp_in_turns(target, source, 1, options)
}

/// The same from several sockets, that is ports, which take turns: message *i* goes out from socket *i* modulo `sockets`,
/// which is at least 1.
///
/// # Errors
///
/// As those of [`send_udp`].
pub fn send_udp_in_turns(
    target: SocketAddr,
    source: &mut impl Source,
    sockets: u16,
    options: &SendOptions,
) -> Result<Sent, SendError> {
    let mut sent = Sent::default();
    let any = match target {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    // Not connected: a connected socket would report that nobody listens at some later datagram.
    let bound: io::Result<Vec<UdpSocket>> = (0..sockets.max(1)).map(|_| UdpSocket::bind(any)).collect();
    let result = bound.and_then(|sockets| {
        let mut turns = sockets.iter().cycle();
        let mut datagram = Vec::new();
        let mut clock = SystemClock::start();
        paced(options, &mut clock, &mut sent, |burst, sent| {
            for _ in 0..burst {
                datagram.clear();
                let Some(records) = source.append_next(&mut datagram) else {
                    return Ok(false);
                };
                if let Some(socket) = turns.next() {
                    socket.send_to(&datagram, target)?;
                }
                sent.add(1, records, datagram.len());
            }
            Ok(true)
        })
    });
    finish(target, sent, result)
}

/// Sends messages over one connection, which is closed in order at the end.
///
/// # Errors
///
/// [`SendError`] if the connection cannot be made or breaks.
pub fn send_tcp(
    target: SocketAddr,
    source: &mut impl Source,
    framing: Framing,
    options: &SendOptions,
) -> Result<Sent, SendError> {
    let mut sent = Sent::default();
    let result = TcpStream::connect(target).and_then(|mut stream| {
        stream.set_nodelay(true)?;
        let mut writer = FrameWriter::new(framing);
        let mut clock = SystemClock::start();
        paced(options, &mut clock, &mut sent, |burst, sent| {
            let more = (0..burst).try_for_each(|_| {
                if !writer.append(source) {
                    return Err(None);
                }
                if writer.buffer.len() >= TCP_BUFFER_BYTES {
                    writer.flush(&mut stream, sent).map_err(Some)?;
                }
                Ok(())
            });
            if let Err(Some(error)) = more {
                return Err(error);
            }
            writer.flush(&mut stream, sent)?;
            Ok(more.is_ok())
        })?;
        stream.shutdown(Shutdown::Write)
    });
    finish(target, sent, result)
}

fn finish(target: SocketAddr, sent: Sent, result: io::Result<()>) -> Result<Sent, SendError> {
    match result {
        Ok(()) => Ok(sent),
        Err(source) => Err(SendError { target, sent, source }),
    }
}

/// Calls `send` with the size of each burst, in the pace asked for, until the count is reached or `send` says that there
/// is no more.
fn paced(
    options: &SendOptions,
    clock: &mut impl Clock,
    sent: &mut Sent,
    mut send: impl FnMut(u64, &mut Sent) -> io::Result<bool>,
) -> io::Result<()> {
    let pace = Pace::new(options.per_second);
    while sent.messages < options.count {
        let wait = pace.wait(sent.messages, clock.elapsed());
        if !wait.is_zero() {
            clock.sleep(wait);
        }
        let burst = pace.burst().min(options.count - sent.messages);
        if !send(burst, sent)? {
            break;
        }
    }
    Ok(())
}

/// Collects framed messages, and counts them when they are written.
pub(super) struct FrameWriter {
    framing: Framing,
    message: Vec<u8>,
    buffer: Vec<u8>,
    pending: Sent,
}

impl FrameWriter {
    pub(super) fn new(framing: Framing) -> Self {
        Self { framing, message: Vec::new(), buffer: Vec::new(), pending: Sent::default() }
    }

    /// Appends the next message; `false` if there is none.
    pub(super) fn append(&mut self, source: &mut impl Source) -> bool {
        self.message.clear();
        let Some(records) = source.append_next(&mut self.message) else {
            return false;
        };
        if self.framing == Framing::Octet {
            self.buffer.extend_from_slice(format!("{} ", self.message.len()).as_bytes());
        }
        self.buffer.extend_from_slice(&self.message);
        if self.framing == Framing::Newline {
            self.buffer.push(b'\n');
        }
        self.pending.add(1, records, self.message.len());
        true
    }

    /// Writes what was appended, and counts it as sent.
    pub(super) fn flush(&mut self, stream: &mut impl Write, sent: &mut Sent) -> io::Result<()> {
        stream.write_all(&self.buffer)?;
        self.buffer.clear();
        let Sent { messages, records, bytes } = std::mem::take(&mut self.pending);
        sent.messages += messages;
        sent.records += records;
        sent.bytes += bytes;
        Ok(())
    }
}

impl Sent {
    /// Counts messages.
    pub(super) fn add(&mut self, messages: u64, records: u64, bytes: usize) {
        self.messages += messages;
        self.records += records;
        self.bytes += bytes as u64;
    }
}

#[cfg(test)]
mod tests;
