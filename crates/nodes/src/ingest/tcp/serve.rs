//! One connection: from bytes to messages.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant as Clock};

use bytes::{Buf, BytesMut};
use tokio::io::AsyncRead;
use tokio::sync::SemaphorePermit;
use tokio::time::{Instant, sleep, sleep_until};

use super::buffered::Held;
use super::refill::Refill;
use super::{End, Event, Messages, Next, Now, Service};
use crate::ingest::rates::Bucket;
use crate::time::now_unix_nano;

/// The most that one read takes.
pub(super) const READ_BYTES: usize = 64 * 1024;
/// How long a connection may work before others get their turn, if it has read so much. What a sampler drops takes far less than
/// that for one read, and to stand back after each would cost a good part of it.
const WORK: Duration = Duration::from_micros(200);
/// The buffer that the connections of a core read into: a read, behind what was left of the one before.
pub(super) const SHARED_BYTES: usize = 2 * READ_BYTES;
/// The most that one read takes while the connections hold more than they may.
const LITTLE_READ_BYTES: usize = 4 * 1024;
/// What a connection may still deliver once the drain has begun.
const DRAIN_BYTES: usize = 4 * 1024 * 1024;
/// How long a connection whose turn it is may keep others waiting without sending anything.
const STALL: Duration = Duration::from_millis(100);

/// How the taking of messages ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// All complete messages are taken.
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
/// is cut.
pub(crate) async fn serve<S: Service>(
    stream: impl AsyncRead + Unpin,
    peer: SocketAddr,
    messages: S::Messages,
    service: &S,
) {
    let mut refill = Refill::new(stream, now_unix_nano);
    let mut connection = Connection::new(peer, messages, service);
    let (connections, intake, stop) = (service.connections(), service.intake(), &service.intake().stop);
    let mut turn: Option<SemaphorePermit<'_>> = None;
    let mut idle_at: Option<Instant> = None;
    let (mut since_yield, mut drained) = (0, 0);
    let mut turn_began = Clock::now();
    let mut looked = false;
    loop {
        let draining = stop.is_cancelled();
        match connection.take_held(draining) {
            Progress::More if connection.end.is_some() => return,
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
            match refill.read_now(&connections.buffer, connection.ahead(), most).await {
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
            if connection.is_empty() || !connections.buffered.is_over() {
                turn = None;
            } else if turn.is_none() {
                tokio::select! {
                    biased;
                    () = stop.cancelled() => continue,
                    next = connections.buffered.let_on() => turn = next,
                }
            }
            let most = if connections.buffered.is_over() { LITTLE_READ_BYTES } else { READ_BYTES };
            let idle =
                connections.limits.idle_timeout.map(|idle| *idle_at.get_or_insert_with(|| Instant::now() + idle));
            tokio::select! {
                biased;
                () = stop.cancelled() => Read::Stopped,
                bytes = refill.read(&connections.buffer, connection.ahead(), most) => Read::Bytes(bytes),
                () = sleep(STALL), if turn.is_some() => Read::Stalled,
                () = sleep_until(idle.unwrap_or_else(Instant::now)), if idle.is_some() => Read::Idle,
            }
        };
        match read {
            Read::Bytes(Ok(0)) => connection.end = Some(End::Sender),
            Read::Bytes(Ok(bytes)) => {
                idle_at = None;
                if connection.take_refill(bytes, refill.time_unix_nano(), draining) == Progress::Failed {
                    return;
                }
                since_yield += bytes;
                if since_yield >= READ_BYTES {
                    since_yield = 0;
                    if turn_began.elapsed() >= WORK {
                        tokio::task::yield_now().await;
                        turn_began = Clock::now();
                    }
                }
            }
            Read::Bytes(Err(error)) => {
                connection.read_failed(&error);
                connection.end = Some(End::Cut);
            }
            Read::Stopped => {}
            Read::Stalled => turn = None,
            Read::Idle => {
                connections.counters.borrow_mut().idle_closed += u64::from(!draining);
                connection.end = Some(End::Cut);
            }
        }
    }
}

/// The stream of a connection.
struct Connection<'s, S: Service> {
    service: &'s S,
    messages: S::Messages,
    peer: SocketAddr,
    bucket: Option<Rc<Bucket>>,
    /// What was read and not taken: the beginning of a message, or more while the intake is full.
    rest: BytesMut,
    held: Held,
    /// When the last bytes were read.
    time_unix_nano: i64,
    end: Option<End>,
    /// Nothing has been taken yet.
    at_start: bool,
}

impl<'s, S: Service> Connection<'s, S> {
    fn new(peer: SocketAddr, messages: S::Messages, service: &'s S) -> Self {
        Self {
            service,
            messages,
            peer,
            bucket: service.rates().bucket(peer.ip()),
            rest: BytesMut::new(),
            held: Held::new(Rc::clone(&service.connections().buffered)),
            time_unix_nano: 0,
            end: None,
            at_start: true,
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

    /// Takes the messages out of the shared buffer, to which `bytes` were read just now, and keeps what is incomplete.
    fn take_refill(&mut self, bytes: usize, time_unix_nano: i64, draining: bool) -> Progress {
        self.time_unix_nano = time_unix_nano;
        let service = self.service;
        let mut shared = service.connections().buffer.borrow_mut();
        let mut progress = Progress::More;
        if self.is_long() {
            self.rest.extend_from_slice(shared.get(..bytes).unwrap_or_default());
        } else {
            let ahead = self.rest.len();
            if let Some(front) = shared.get_mut(..ahead) {
                front.copy_from_slice(&self.rest);
            }
            let all = shared.get(..ahead + bytes).unwrap_or_default();
            let (consumed, taken) = self.take(all, draining);
            progress = taken;
            // As large as it must be, and nothing at all when idle.
            self.rest = BytesMut::from(all.get(consumed..).unwrap_or_default());
        }
        self.held.set(self.rest.len());
        progress
    }

    /// Takes the messages out of what is held; at the end also what remains.
    fn take_held(&mut self, draining: bool) -> Progress {
        let mut rest = std::mem::take(&mut self.rest);
        let (consumed, progress) = self.take(&rest, draining);
        rest.advance(consumed);
        // Gives back the memory of what was taken.
        self.rest = if consumed > 0 && progress == Progress::More { BytesMut::from(&rest[..]) } else { rest };
        self.held.set(self.rest.len());
        progress
    }

    /// Takes messages as long as there is room for them. Returns how many bytes are done with.
    fn take(&mut self, bytes: &[u8], draining: bool) -> (usize, Progress) {
        let mut done = 0;
        if self.at_start && self.is_tls(bytes) {
            self.tls_on_plain_port();
            return (bytes.len(), Progress::Failed);
        }
        let (intake, rates) = (self.service.intake(), self.service.rates());
        let unlimited = rates.are_unlimited(self.bucket.as_deref());
        let now = Now { time_unix_nano: self.time_unix_nano, end: self.end, unlimited };
        loop {
            if !draining {
                let pause = rates.wait(self.bucket.as_deref());
                if intake.holds_back() {
                    return (done, Progress::Full);
                }
                if !pause.is_zero() {
                    return (done, Progress::TooFast(pause));
                }
            } else if intake.is_full() {
                return (done, Progress::Full);
            }
            match self.messages.next(bytes.get(done..).unwrap_or_default(), now) {
                Next::Message(consumed) => {
                    rates.charge(self.bucket.as_deref());
                    self.at_start = false;
                    done += consumed;
                }
                Next::Skip(consumed) => {
                    self.at_start = false;
                    done += consumed;
                }
                Next::NeedMore => return (done, Progress::More),
                Next::Failed(consumed) => return (done + consumed, Progress::Failed),
            }
        }
    }

    /// Whether a client begins TLS on a port without: a handshake record, which no message begins like.
    fn is_tls(&self, bytes: &[u8]) -> bool {
        self.service.connections().tls.is_none() && bytes.starts_with(&[0x16, 0x03])
    }

    fn tls_on_plain_port(&self) {
        let connections = self.service.connections();
        connections.counters.borrow_mut().handshake_errors += 1;
        if connections.handshake_told.now() {
            self.service.tell(Event::TlsUnexpected { peer: self.peer });
        }
    }

    fn read_failed(&self, error: &io::Error) {
        // A TLS client that goes without a word: common, and as good an end as any.
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return;
        }
        self.service.connections().counters.borrow_mut().read_errors += 1;
        self.service.tell(Event::ReadFailed { peer: self.peer, error });
    }
}
