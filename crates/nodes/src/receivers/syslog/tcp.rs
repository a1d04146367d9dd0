//! Messages from TCP connections.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use catchment_columns::syslog::{Receipt, Source, Transport};
use catchment_syslog::{Framer, FramerOptions, Step};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::shared::Shared;
use crate::time::now_unix_nano;

const READ_BYTES: usize = 64 * 1024;
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// What a connection may still deliver once the drain has begun.
const DRAIN_BYTES: usize = 4 * 1024 * 1024;

/// Accepts connections until the intake stops, then waits for them to finish.
pub(super) async fn accept(listener: TcpListener, options: FramerOptions, max_connections: usize, shared: Rc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            () = shared.intake.stop.cancelled() => break,
            ended = connections.join_next(), if !connections.is_empty() => {
                let failed = ended.is_some_and(|ended| ended.is_err());
                shared.counters.borrow_mut().receive_errors += u64::from(failed);
            }
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    if connections.len() >= max_connections {
                        shared.counters.borrow_mut().connections_refused += 1;
                        continue;
                    }
                    shared.counters.borrow_mut().connections_accepted += 1;
                    let framer = Framer::new(options);
                    let _ = connections.spawn_local(connection(stream, peer, framer, Rc::clone(&shared)));
                }
                // Out of descriptors, or the peer gave up: neither is a reason to end.
                Err(error) => {
                    shared.counters.borrow_mut().accept_errors += 1;
                    otel_warn!("syslog_receiver.tcp.accept_failed", error = %error);
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Counts an open connection for as long as it lives.
struct Open(Rc<Shared>);

impl Open {
    fn new(shared: Rc<Shared>) -> Self {
        shared.counters.borrow_mut().connections_open += 1;
        Self(shared)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.counters.borrow_mut().connections_open -= 1;
    }
}

async fn connection(mut stream: TcpStream, peer: SocketAddr, framer: Framer, shared: Rc<Shared>) {
    let open = Open::new(Rc::clone(&shared));
    let source = shared.source(Some(peer), Transport::Tcp);
    let mut frames =
        Frames { framer, buffer: BytesMut::new(), peer, source, shared: Rc::clone(&shared), warned: false, cut: false };
    loop {
        shared.intake.room().await;
        frames.buffer.reserve(READ_BYTES);
        let read = tokio::select! {
            biased;
            () = shared.intake.stop.cancelled() => break,
            read = stream.read_buf(&mut frames.buffer) => read,
        };
        match read {
            Ok(0) => {
                let _ = frames.take(true).await;
                return;
            }
            Ok(_) => {
                if !frames.take(false).await {
                    return;
                }
            }
            Err(_) => {
                shared.counters.borrow_mut().receive_errors += 1;
                let _ = frames.take(true).await;
                return;
            }
        }
    }
    // The drain: what the kernel has is ours already.
    let mut taken = 0;
    while taken < DRAIN_BYTES {
        frames.buffer.reserve(READ_BYTES);
        match stream.try_read_buf(&mut frames.buffer) {
            Ok(0) => break,
            Ok(bytes) => taken += bytes,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(_) => {
                shared.counters.borrow_mut().receive_errors += 1;
                break;
            }
        }
        if !frames.take(false).await {
            return;
        }
    }
    // The sender was in the middle of what is left.
    frames.cut = true;
    let _ = frames.take(true).await;
    drop(open);
}

/// The unread part of a connection's stream.
struct Frames {
    framer: Framer,
    buffer: BytesMut,
    peer: SocketAddr,
    source: Arc<Source>,
    shared: Rc<Shared>,
    warned: bool,
    /// The stream was left by us and not ended by the sender: what is incomplete is truncated.
    cut: bool,
}

impl Frames {
    /// Takes the frames that are complete, `end`: and what remains. False if the stream cannot be read on.
    async fn take(&mut self, end: bool) -> bool {
        // All of one read have one time of receipt.
        let time_unix_nano = now_unix_nano();
        loop {
            self.shared.intake.room().await;
            match self.framer.next(&self.buffer, end) {
                Step::Frame { message, consumed, truncated } => {
                    let receipt = Receipt { time_unix_nano, truncated: truncated || self.cut };
                    self.shared.take(message, &self.source, receipt);
                    self.buffer.advance(consumed);
                }
                Step::Skip { consumed, error } => {
                    if let Some(error) = error {
                        self.framing_error(&error);
                    }
                    self.buffer.advance(consumed);
                }
                Step::NeedMore => return true,
                Step::Error { error, consumed } => {
                    self.framing_error(&error);
                    self.buffer.advance(consumed);
                    return false;
                }
            }
        }
    }

    /// Counts an error; tells the first one of each connection.
    fn framing_error(&mut self, error: &catchment_syslog::FramingError) {
        self.shared.counters.borrow_mut().framing_errors += 1;
        if !std::mem::replace(&mut self.warned, true) {
            otel_warn!("syslog_receiver.tcp.framing_error", peer = %self.peer, error = %error);
        }
    }
}
