//! Ports for processes under test.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU32, Ordering};

/// Ports from here on are tried. They lie below those that systems give to outgoing connections, so that no client takes
/// a port away between its choice and its use.
const FIRST: u32 = 16_000;
const COUNT: u32 = 14_000;
/// Ports between the first choices of two test processes.
const STRIDE: u32 = 211;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A port of the loopback interface that nobody uses, neither for TCP nor for UDP, and that this process has not given
/// out before. Another process may still take it before it is used.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn free_port() -> u16 {
    let start = std::process::id().wrapping_mul(STRIDE);
    for _ in 0..COUNT {
        let offset = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT;
        let port = u16::try_from(FIRST + offset).expect("the range ends below 65536");
        if TcpListener::bind(local(port)).is_ok() && UdpSocket::bind(local(port)).is_ok() {
            return port;
        }
    }
    panic!("no free port from {FIRST} to {}", FIRST + COUNT)
}

/// A port of 127.0.0.1.
#[must_use]
pub fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// What waits in the UDP sockets of a port, by the kernel's own count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UdpQueue {
    /// Bytes with all that they cost the kernel.
    pub waiting: u64,
    /// Datagrams for which there was no room.
    pub dropped: u64,
}

/// Looks into the IPv4 sockets of a port.
///
/// # Panics
/// Where there is no `/proc/net/udp`.
#[must_use]
pub fn udp_queue(port: u16) -> UdpQueue {
    let table = std::fs::read_to_string("/proc/net/udp").expect("Linux");
    let ending = format!(":{port:04X}");
    let mut queue = UdpQueue::default();
    for line in table.lines() {
        let columns: Vec<_> = line.split_whitespace().collect();
        if columns.get(1).is_some_and(|local| local.ends_with(&ending)) {
            let waiting = columns[4].split_once(':').expect("sent and received").1;
            queue.waiting += u64::from_str_radix(waiting, 16).expect("hexadecimal");
            queue.dropped += columns.last().and_then(|text| text.parse::<u64>().ok()).expect("a count");
        }
    }
    queue
}
