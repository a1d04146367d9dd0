//! One connection: from bytes to messages.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use catchment_columns::syslog::{Receipt, Source};
use catchment_syslog::{Framer, FramingError, Step};
use tokio::io::AsyncRead;
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, sleep, sleep_until};

use super::buffered::Held;
use super::rates::Bucket;
use super::refill::Refill;
use super::shared::Shared;
use super::tcp::Tcp;
use crate::ingest::UnderPressure;
use crate::time::now_unix_nano;

/// The most that one read takes, and what a connection may read before others get their turn.
pub(super) const READ_BYTES: usize = 64 * 1024;
/// The buffer that the connections of a core read into: a read, behind what was left of the one before.
pub(super) const SHARED_BYTES: usize = 2 * READ_BYTES;
/// The most that one read takes while the connections hold more than they may.
const LITTLE_READ_BYTES: usize = 4 * 1024;
/// What a connection may still deliver once the drain has begun.
const DRAIN_BYTES: usize = 4 * 1024 * 1024;
/// How long a connection whose turn it is may keep others waiting without sending anything.
const STALL: Duration = Duration::from_millis(100);

/// How the taking of frames ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// All complete frames are taken.
    More,
    /// The intake takes no more for now.
    Full,
    /// The sender is over its rate for this long.
    TooFast(Duration),
    /// The stream cannot be read on.
    Failed,
}

/// What a read came to.
enum Read {
    Bytes(io::Result<usize>),
    Stopped,
    Idle,
    Stalled,
}

/// Serves a connection until its end, or until the intake stops: then what has arrived is taken, and what is incomplete
/// is a truncated message.
pub(super) async fn serve(stream: impl AsyncRead + Unpin, peer: SocketAddr, source: Arc<Source>, tcp: &Tcp) {
    let mut refill = Refill::new(stream, now_unix_nano);
    let mut frames = Frames::new(peer, source, tcp);
    let (intake, stop) = (&tcp.shared.intake, &tcp.shared.intake.stop);
    let mut turn: Option<SemaphorePermit<'_>> = None;
    let mut idle_at: Option<Instant> = None;
    let (mut since_yield, mut drained) = (0, 0);
    let (mut ended, mut looked) = (false, false);
    loop {
        let draining = stop.is_cancelled();
        match frames.take_held(ended, draining) {
            Progress::More if ended => return,
            Progress::More => {}
            Progress::Failed => return,
            Progress::Full if draining => {
                intake.room().await;
                continue;
            }
            Progress::Full => {
                tokio::select! { biased; () = stop.cancelled() => {}, () = intake.let_on() => {} }
                continue;
            }
            Progress::TooFast(pause) => {
                tokio::select! { biased; () = stop.cancelled() => {}, () = sleep(pause) => {} }
                continue;
            }
        }
        let read = if draining {
            intake.room().await;
            let most = READ_BYTES.min(DRAIN_BYTES - drained);
            match refill.read_now(&tcp.buffer, frames.ahead(), most).await {
                // The sender was in the middle of what is left.
                _ if most == 0 => Read::Idle,
                Some(read) => {
                    drained += *read.as_ref().unwrap_or(&0);
                    looked = false;
                    Read::Bytes(read)
                }
                // What the runtime knows of the socket may be old: it looks anew while we stand back.
                None if !std::mem::replace(&mut looked, true) => {
                    tokio::task::yield_now().await;
                    continue;
                }
                None => Read::Idle,
            }
        } else {
            tokio::select! {
                biased;
                () = stop.cancelled() => continue,
                () = intake.let_on() => {}
            }
            if frames.is_empty() || !tcp.buffered.is_over() {
                turn = None;
            } else if turn.is_none() {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => continue,
                    next = tcp.buffered.let_on() => turn = next,
                }
            }
            let most = if tcp.buffered.is_over() { LITTLE_READ_BYTES } else { READ_BYTES };
            let idle = tcp.limits.idle_timeout.map(|idle| *idle_at.get_or_insert_with(|| Instant::now() + idle));
            tokio::select! {
                biased;
                () = stop.cancelled() => Read::Stopped,
                bytes = refill.read(&tcp.buffer, frames.ahead(), most) => Read::Bytes(bytes),
                () = sleep(STALL), if turn.is_some() => Read::Stalled,
                () = sleep_until(idle.unwrap_or_else(Instant::now)), if idle.is_some() => Read::Idle,
            }
        };
        match read {
            Read::Bytes(Ok(0)) => ended = true,
            Read::Bytes(Ok(bytes)) => {
                idle_at = None;
                if frames.take_refill(bytes, refill.time_unix_nano(), draining) == Progress::Failed {
                    return;
                }
                since_yield += bytes;
                if since_yield >= READ_BYTES {
                    since_yield = 0;
                    tokio::task::yield_now().await;
                }
            }
            Read::Bytes(Err(error)) => {
                frames.read_failed(&error);
                ended = true;
            }
            Read::Stopped => {}
            Read::Stalled => turn = None,
            Read::Idle => {
                tcp.shared.counters.borrow_mut().connections_idle_closed += u64::from(!draining);
                frames.cut = true;
                ended = true;
            }
        }
    }
}

/// The messages in a connection's stream.
struct Frames<'t> {
    tcp: &'t Tcp,
    shared: &'t Shared,
    framer: Framer,
    peer: SocketAddr,
    source: Arc<Source>,
    bucket: Option<Rc<Bucket>>,
    /// What was read and not taken: the beginning of a message, or more while the intake is full.
    rest: BytesMut,
    held: Held,
    /// When the last bytes were read. All messages that got complete by them have it.
    time_unix_nano: i64,
    /// The stream was left by us and not ended by the sender: what is incomplete is truncated.
    cut: bool,
    /// Nothing has been taken yet.
    at_start: bool,
    /// A framing error has been told.
    warned: bool,
}

impl<'t> Frames<'t> {
    fn new(peer: SocketAddr, source: Arc<Source>, tcp: &'t Tcp) -> Self {
        Self {
            tcp,
            shared: &tcp.shared,
            framer: Framer::new(tcp.options),
            peer,
            source,
            bucket: tcp.shared.rates.bucket(peer.ip()),
            rest: BytesMut::new(),
            held: Held::new(Rc::clone(&tcp.buffered)),
            time_unix_nano: 0,
            cut: false,
            at_start: true,
            warned: false,
        }
    }

    fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Where in the shared buffer the next read goes: behind the rest of the last one if that is little. A long rest
    /// stays where it is, so that a long message is not copied at every read.
    fn ahead(&self) -> usize {
        if self.is_long() { 0 } else { self.rest.len() }
    }

    fn is_long(&self) -> bool {
        self.rest.len() > SHARED_BYTES - READ_BYTES
    }

    /// Takes the frames out of the shared buffer, to which `bytes` were read just now, and keeps what is incomplete.
    fn take_refill(&mut self, bytes: usize, time_unix_nano: i64, draining: bool) -> Progress {
        self.time_unix_nano = time_unix_nano;
        let tcp = self.tcp;
        let mut shared = tcp.buffer.borrow_mut();
        let mut progress = Progress::More;
        if self.is_long() {
            self.rest.extend_from_slice(shared.get(..bytes).unwrap_or_default());
        } else {
            let ahead = self.rest.len();
            if let Some(front) = shared.get_mut(..ahead) {
                front.copy_from_slice(&self.rest);
            }
            let all = shared.get(..ahead + bytes).unwrap_or_default();
            let (consumed, taken) = self.take(all, false, draining);
            progress = taken;
            // As large as it must be, and nothing at all when idle.
            self.rest = BytesMut::from(all.get(consumed..).unwrap_or_default());
        }
        self.held.set(self.rest.len());
        progress
    }

    /// Takes the frames out of what is held, `end`: and what remains.
    fn take_held(&mut self, end: bool, draining: bool) -> Progress {
        let mut rest = std::mem::take(&mut self.rest);
        let (consumed, progress) = self.take(&rest, end, draining);
        rest.advance(consumed);
        // Gives back the memory of what was taken.
        self.rest = if consumed > 0 && progress == Progress::More { BytesMut::from(&rest[..]) } else { rest };
        self.held.set(self.rest.len());
        progress
    }

    /// Takes frames as long as there is room for them. Returns how many bytes are done with.
    fn take(&mut self, bytes: &[u8], end: bool, draining: bool) -> (usize, Progress) {
        let mut done = 0;
        if self.at_start && self.is_tls(bytes) {
            self.tls_on_plain_port();
            return (bytes.len(), Progress::Failed);
        }
        loop {
            if !draining {
                let pause = self.shared.rates.wait(self.bucket.as_deref());
                if self.shared.intake.holds_back() {
                    return (done, Progress::Full);
                }
                if !pause.is_zero() {
                    return (done, Progress::TooFast(pause));
                }
            } else if self.shared.intake.is_full() {
                return (done, Progress::Full);
            }
            match self.framer.next(bytes.get(done..).unwrap_or_default(), end) {
                Step::Frame { message, consumed, truncated } => {
                    let receipt =
                        Receipt { time_unix_nano: self.time_unix_nano, truncated: truncated || (end && self.cut) };
                    self.shared.take(message, &self.source, receipt, UnderPressure::Keep);
                    self.shared.rates.charge(self.bucket.as_deref());
                    self.at_start = false;
                    done += consumed;
                }
                Step::Skip { consumed, error } => {
                    if let Some(error) = error {
                        self.framing_error(&error);
                    }
                    self.at_start = false;
                    done += consumed;
                }
                Step::NeedMore => return (done, Progress::More),
                Step::Error { error, consumed } => {
                    self.framing_error(&error);
                    return (done + consumed, Progress::Failed);
                }
            }
        }
    }

    /// Whether a client begins TLS on a port without: a handshake record, which no syslog message begins like.
    fn is_tls(&self, bytes: &[u8]) -> bool {
        self.tcp.tls.is_none() && bytes.starts_with(&[0x16, 0x03])
    }

    fn tls_on_plain_port(&self) {
        self.shared.counters.borrow_mut().handshake_errors += 1;
        if self.tcp.seldom_handshake.now() {
            otel_warn!(
                "syslog_receiver.tcp.tls_unexpected",
                peer = %self.peer,
                message = "a client speaks TLS to a port without; the connection is closed. Configure tcp.tls, or have the client send plain text"
            );
        }
    }

    /// The connection broke: what it had not finished is truncated.
    fn read_failed(&mut self, error: &io::Error) {
        self.cut = true;
        // A TLS client that goes without a word: common, and as good an end as any.
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return;
        }
        self.shared.counters.borrow_mut().receive_errors += 1;
        otel_debug!("syslog_receiver.tcp.read_failed", peer = %self.peer, error = %error);
    }

    /// Counts an error; tells the first one of each connection.
    fn framing_error(&mut self, error: &FramingError) {
        {
            let mut counters = self.shared.counters.borrow_mut();
            match error {
                FramingError::StrayDelimiter { .. } => counters.stray_delimiters += 1,
                FramingError::InvalidLength { .. } => counters.invalid_lengths += 1,
                FramingError::UnexpectedEnd { .. } => counters.unexpected_ends += 1,
            }
        }
        if !std::mem::replace(&mut self.warned, true) {
            otel_warn!("syslog_receiver.tcp.framing_error", peer = %self.peer, error = %error);
        }
    }
}

#[cfg(test)]
mod tests;
