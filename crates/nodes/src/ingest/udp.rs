//! Datagrams from a UDP socket, several for one call of the kernel.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsRawFd, RawFd};
use std::rc::Rc;
use std::time::Duration;

use nix::sys::socket::{ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::intake::{Intake, Pending};
use super::kernel::KernelDrops;
use crate::time::now_unix_nano;

/// Datagrams taken by one call.
const SLOTS: usize = 32;
/// Larger than any UDP payload. Small datagrams touch only the first page of their slot, so what is resident is a
/// fraction of it.
const SLOT_BYTES: usize = 65_536;
/// Calls for one wake-up before others get their turn.
const CALLS_PER_WAKE_UP: usize = 8;
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// What came of asking the socket.
#[derive(Debug)]
pub(crate) enum Datagram<'a> {
    /// A datagram.
    Received {
        /// Its payload.
        bytes: &'a [u8],
        /// Its sender.
        peer: SocketAddr,
        /// The payload was longer than what could be taken, by the kernel's word.
        truncated: bool,
        /// When it was read.
        time_unix_nano: i64,
    },
    /// The socket reported an error; it is asked again after a pause.
    Failed,
}

/// Receives until the intake stops; then takes what the kernel holds, at most `kernel_buffer` bytes, so that a
/// sender who does not stop cannot keep it going.
pub(crate) async fn receive_datagrams<P: Pending>(
    socket: UdpSocket,
    kernel_buffer: usize,
    drops: Rc<KernelDrops>,
    intake: &Intake<P>,
    mut take: impl FnMut(Datagram<'_>),
) {
    let mut slots = Slots::new(SLOTS, SLOT_BYTES);
    loop {
        tokio::select! {
            biased;
            () = intake.stop.cancelled() => break,
            ready = socket.readable() => if ready.is_err() {
                take(Datagram::Failed);
                tokio::time::sleep(ERROR_PAUSE).await;
            },
        }
        for _ in 0..CALLS_PER_WAKE_UP {
            intake.room().await;
            let read = socket.try_io(Interest::READABLE, || slots.receive(socket.as_raw_fd(), &drops));
            match read {
                Ok(()) => hand_over(&slots, intake, &mut take).await,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    take(Datagram::Failed);
                    tokio::time::sleep(ERROR_PAUSE).await;
                    break;
                }
            }
        }
        tokio::task::yield_now().await;
    }
    let mut left = kernel_buffer;
    // Straight from the kernel: what the runtime knows of the socket's readiness may be old.
    while left > 0 && slots.receive(socket.as_raw_fd(), &drops).is_ok() {
        hand_over(&slots, intake, &mut take).await;
        let taken: usize = slots.received.iter().map(|datagram| datagram.length.max(1)).sum();
        left = left.saturating_sub(taken.max(1));
    }
    drops.look();
}

/// Waits for room before each datagram, so that no batch gets larger than it may.
async fn hand_over<P: Pending>(slots: &Slots, intake: &Intake<P>, take: &mut impl FnMut(Datagram<'_>)) {
    let time_unix_nano = now_unix_nano();
    for (datagram, slot) in slots.received.iter().zip(slots.bytes.chunks_exact(slots.slot)) {
        intake.room().await;
        let bytes = slot.get(..datagram.length).unwrap_or(slot);
        match datagram.peer {
            Some(peer) => take(Datagram::Received { bytes, peer, truncated: datagram.truncated, time_unix_nano }),
            None => take(Datagram::Failed),
        }
    }
}

/// What the kernel said of a datagram.
struct Received {
    length: usize,
    peer: Option<SocketAddr>,
    truncated: bool,
}

/// Room for the datagrams of one call.
struct Slots {
    bytes: Vec<u8>,
    slot: usize,
    headers: MultiHeaders<SockaddrStorage>,
    received: Vec<Received>,
}

impl Slots {
    fn new(count: usize, slot: usize) -> Self {
        let count = count.min(SLOTS);
        Self { bytes: vec![0; count * slot], slot, headers: headers(), received: Vec::with_capacity(count) }
    }

    /// Takes what is there, up to the number of slots.
    fn receive(&mut self, socket: RawFd, drops: &KernelDrops) -> io::Result<()> {
        self.received.clear();
        let count = self.bytes.len() / self.slot;
        let mut slots = self.bytes.chunks_exact_mut(self.slot);
        let mut vectors: [_; SLOTS] = std::array::from_fn(|_| [IoSliceMut::new(slots.next().unwrap_or_default())]);
        let mut cut_off = false;
        let messages =
            recvmmsg(socket, &mut self.headers, vectors.iter_mut().take(count), MsgFlags::MSG_DONTWAIT, None)?;
        for message in messages {
            match message.cmsgs() {
                Ok(controls) => {
                    for control in controls {
                        if let ControlMessageOwned::RxqOvfl(count) = control {
                            drops.see(count);
                        }
                    }
                }
                Err(_) => cut_off = true,
            }
            self.received.push(Received {
                length: message.bytes,
                peer: message.address.as_ref().and_then(address),
                truncated: message.flags.contains(MsgFlags::MSG_TRUNC),
            });
        }
        // Room for control messages that went unused is gone from the headers. Nothing else is lost by that: the count
        // is a sum and comes with the next datagram again.
        if cut_off {
            self.headers = headers();
        }
        Ok(())
    }
}

fn headers() -> MultiHeaders<SockaddrStorage> {
    MultiHeaders::preallocate(SLOTS, Some(nix::cmsg_space!(u32)))
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = || storage.as_sockaddr_in().map(|address| SocketAddr::V4(SocketAddrV4::from(*address)));
    let v6 = || storage.as_sockaddr_in6().map(|address| SocketAddr::V6(SocketAddrV6::from(*address)));
    v4().or_else(v6)
}

#[cfg(test)]
mod tests;
