//! IPFIX messages, written by hand after RFC 7011.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use crate::{udp_queue, wait_until};

/// When the messages say that they were exported, in seconds since 1970.
pub const EXPORTED: u32 = 1_796_000_000;

/// Bytes, as the kernel counts them, that may wait in a socket before a sender pauses.
const QUEUE: u64 = 128 << 10;

/// A set: id and content.
pub type Set = (u16, Vec<u8>);

/// A message of `sets`, exported at [`EXPORTED`].
///
/// # Panics
/// If it has more than 65,535 bytes.
#[must_use]
pub fn message(sequence: u32, domain: u32, sets: &[Set]) -> Vec<u8> {
    message_at(EXPORTED, sequence, domain, sets)
}

/// A message of `sets`, exported at a time in seconds since 1970.
///
/// # Panics
/// If it has more than 65,535 bytes.
#[must_use]
pub fn message_at(exported: u32, sequence: u32, domain: u32, sets: &[Set]) -> Vec<u8> {
    let mut body = Vec::new();
    for (id, content) in sets {
        body.extend(id.to_be_bytes());
        body.extend(u16::try_from(4 + content.len()).expect("a set has 16 bits for its length").to_be_bytes());
        body.extend(content);
    }
    let mut out = vec![0, 10];
    out.extend(u16::try_from(16 + body.len()).expect("a message has 16 bits for its length").to_be_bytes());
    for word in [exported, sequence, domain] {
        out.extend(word.to_be_bytes());
    }
    out.extend(body);
    out
}

/// A set with one template of `fields` (element and length).
///
/// # Panics
/// If there are too many fields.
#[must_use]
pub fn template(id: u16, fields: &[(u16, u16)]) -> Set {
    let count = u16::try_from(fields.len()).expect("a template has 16 bits for its number of fields");
    (2, words([id, count].into_iter().chain(fields.iter().flat_map(|(element, length)| [*element, *length]))))
}

/// A set with one options template, whose first `scope` fields are the scope.
///
/// # Panics
/// If there are too many fields.
#[must_use]
pub fn options_template(id: u16, scope: u16, fields: &[(u16, u16)]) -> Set {
    let count = u16::try_from(fields.len()).expect("a template has 16 bits for its number of fields");
    (3, words([id, count, scope].into_iter().chain(fields.iter().flat_map(|(element, length)| [*element, *length]))))
}

fn words(words: impl Iterator<Item = u16>) -> Vec<u8> {
    words.flat_map(u16::to_be_bytes).collect()
}

/// Template 256: octetDeltaCount and packetDeltaCount, eight bytes each.
#[must_use]
pub fn counters_template() -> Set {
    template(256, &[(1, 8), (2, 8)])
}

/// A record of [`counters_template`].
#[must_use]
pub fn counters(bytes: u64, packets: u64) -> Set {
    (256, [bytes.to_be_bytes(), packets.to_be_bytes()].concat())
}

/// A socket on a free port of 127.0.0.`last`.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn socket_on(last: u8) -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::new(127, 0, 0, last), 0)).expect("a free port of loopback")
}

/// Sends a datagram to a port of this machine once most of what was sent there before has been read, so that the kernel
/// drops nothing.
///
/// # Panics
/// If nobody reads.
pub fn send(socket: &UdpSocket, to: SocketAddr, datagram: &[u8]) {
    wait_until("datagrams are read", || udp_queue(to.port()).waiting < QUEUE);
    let sent = socket.send_to(datagram, to).expect("loopback takes it");
    assert_eq!(sent, datagram.len());
}

/// The datagrams that are in a socket already.
///
/// # Panics
/// If it cannot be read.
#[must_use]
pub fn received(socket: &UdpSocket) -> Vec<Vec<u8>> {
    socket.set_nonblocking(true).expect("a mode of sockets");
    let mut datagrams = Vec::new();
    let mut buffer = vec![0; 65_535];
    loop {
        match socket.recv(&mut buffer) {
            Ok(length) => datagrams.push(buffer[..length].to_vec()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return datagrams,
            Err(error) => panic!("cannot receive: {error}"),
        }
    }
}
