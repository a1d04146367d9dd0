//! Datagrams from a UDP socket.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::UdpSocket;

use super::intake::{Intake, Pending};

/// Larger than any UDP payload, so that no datagram is cut.
const BUFFER_BYTES: usize = 65_536;
/// Datagrams taken for one wake-up before others get their turn.
const PER_WAKE_UP: usize = 64;
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// What came of asking the socket.
#[derive(Debug)]
pub(crate) enum Datagram<'a> {
    /// A datagram and its sender.
    Received(&'a [u8], SocketAddr),
    /// The socket reported an error; it is asked again after a pause.
    Failed,
}

/// Receives until the intake stops; then takes what the kernel holds, at most `kernel_buffer` bytes, so that a
/// sender who does not stop cannot keep it going.
pub(crate) async fn receive_datagrams<P: Pending>(
    socket: UdpSocket,
    kernel_buffer: usize,
    intake: &Intake<P>,
    mut take: impl FnMut(Datagram<'_>),
) {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        tokio::select! {
            biased;
            () = intake.stop.cancelled() => break,
            ready = socket.readable() => if ready.is_err() {
                take(Datagram::Failed);
                tokio::time::sleep(ERROR_PAUSE).await;
            },
        }
        for _ in 0..PER_WAKE_UP {
            intake.room().await;
            match take_one(&socket, &mut buffer, &mut take) {
                Taken::Bytes(_) => {}
                Taken::Failed => tokio::time::sleep(ERROR_PAUSE).await,
                Taken::Nothing => break,
            }
        }
        tokio::task::consume_budget().await;
    }
    let mut left = kernel_buffer;
    while left > 0 {
        intake.room().await;
        match take_one(&socket, &mut buffer, &mut take) {
            Taken::Bytes(bytes) => left = left.saturating_sub(bytes.max(1)),
            Taken::Failed | Taken::Nothing => break,
        }
    }
}

enum Taken {
    Bytes(usize),
    Failed,
    Nothing,
}

fn take_one(socket: &UdpSocket, buffer: &mut [u8], take: &mut impl FnMut(Datagram<'_>)) -> Taken {
    match socket.try_recv_from(buffer) {
        Ok((length, peer)) => {
            take(Datagram::Received(buffer.get(..length).unwrap_or_default(), peer));
            Taken::Bytes(length)
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Taken::Nothing,
        Err(_) => {
            take(Datagram::Failed);
            Taken::Failed
        }
    }
}
