//! A connection that the sink can hold up, cut, or write a frame of its own into, beneath the HTTP server.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

/// How long a client may take to close its side after an orderly end.
const LINGER: Duration = Duration::from_millis(200);
/// Length of the head of a frame of HTTP/2 (RFC 9113, section 4.1).
const FRAME_HEAD_BYTES: usize = 9;

/// What the HTTP server reads and writes.
#[derive(Debug)]
pub(super) struct Wire(Arc<Line>);

/// The handle on a connection.
#[derive(Debug)]
pub(super) struct Line {
    state: Mutex<State>,
    cut: Notify,
    drained: Notify,
    /// The first stream of HTTP/2 that is not served; the highest number if all are.
    excluded: AtomicU32,
}

#[derive(Debug)]
struct State {
    /// None after the end.
    stream: Option<TcpStream>,
    /// Where the server is in its frames, on HTTP/2.
    frames: Option<Frames>,
    /// Frames of the sink itself, to be written between two of the server.
    inserted: BytesMut,
    /// Nothing is read before this.
    resume: Option<Pin<Box<Sleep>>>,
    /// Wakes the server.
    waker: Option<Waker>,
    /// How the connection is to end.
    reset: bool,
}

impl Line {
    pub(super) fn http1(stream: TcpStream) -> (Arc<Self>, Wire) {
        Self::new(stream, None)
    }

    pub(super) fn http2(stream: TcpStream) -> (Arc<Self>, Wire) {
        Self::new(stream, Some(Frames::default()))
    }

    fn new(stream: TcpStream, frames: Option<Frames>) -> (Arc<Self>, Wire) {
        let state =
            State { stream: Some(stream), frames, inserted: BytesMut::new(), resume: None, waker: None, reset: false };
        let line = Arc::new(Self {
            state: Mutex::new(state),
            cut: Notify::new(),
            drained: Notify::new(),
            excluded: AtomicU32::new(u32::MAX),
        });
        (Arc::clone(&line), Wire(line))
    }

    /// Asks for the end of the connection.
    pub(super) fn cut(&self, reset: bool) {
        self.lock().reset = reset;
        self.cut.notify_one();
    }

    /// Waits until the end is asked for.
    pub(super) async fn is_cut(&self) {
        self.cut.notified().await;
    }

    /// Asks for the orderly end of an HTTP/2 connection: what is under way is finished.
    pub(super) fn drain(&self) {
        self.drained.notify_one();
    }

    /// Waits until the orderly end is asked for.
    pub(super) async fn is_drained(&self) {
        self.drained.notified().await;
    }

    /// This stream and all younger ones are not served.
    pub(super) fn exclude_from(&self, stream: u32) {
        let _ = self.excluded.fetch_min(stream, Ordering::Relaxed);
    }

    pub(super) fn excludes(&self, stream: u32) -> bool {
        stream >= self.excluded.load(Ordering::Relaxed)
    }

    /// Reads nothing for a time.
    pub(super) fn pause(&self, time: Duration) {
        let mut state = self.lock();
        let resume = Instant::now() + time;
        if state.resume.as_ref().is_none_or(|sleep| sleep.deadline() < resume) {
            state.resume = Some(Box::pin(sleep_until(resume)));
        }
    }

    /// Writes a whole frame of HTTP/2 before the next one of the server.
    pub(super) fn insert(&self, frame: &[u8]) {
        let mut state = self.lock();
        state.inserted.extend_from_slice(frame);
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }

    /// Ends the connection, which the server has let go, as it was asked for.
    pub(super) async fn end(&self) {
        let (stream, reset) = {
            let mut state = self.lock();
            (state.stream.take(), state.reset)
        };
        let Some(mut stream) = stream else {
            return;
        };
        if reset {
            // Without time to linger, closing sends RST. If that fails, the connection is gone anyway.
            let _ = stream.set_zero_linger();
            return;
        }
        // What the client still sends has to be read, or the kernel makes an RST of the end. Failures: it is gone.
        let _ = stream.shutdown().await;
        let mut rest = vec![0; 16 * 1024];
        let _ = timeout(LINGER, async { while stream.read(&mut rest).await.is_ok_and(|length| length > 0) {} }).await;
    }

    /// The state is whole after each statement, so a panic elsewhere does not matter.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Writes inserted frames, if the server is between two of its own; pending if they do not go out at once.
    fn poll_inserted(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, frames, inserted, .. } = self;
        if !frames.as_ref().is_some_and(Frames::is_between) {
            return Poll::Ready(Ok(()));
        }
        while !inserted.is_empty() {
            let written = ready!(Pin::new(open(stream)?).poll_write(context, inserted))?;
            inserted.advance(written);
        }
        Poll::Ready(Ok(()))
    }
}

fn open(stream: &mut Option<TcpStream>) -> io::Result<&mut TcpStream> {
    stream.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.lock();
        state.waker = Some(context.waker().clone());
        if let Poll::Ready(Err(error)) = state.poll_inserted(context) {
            return Poll::Ready(Err(error));
        }
        if let Some(resume) = &mut state.resume {
            ready!(resume.as_mut().poll(context));
            state.resume = None;
        }
        Pin::new(open(&mut state.stream)?).poll_read(context, into)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.0.lock();
        ready!(state.poll_inserted(context))?;
        let written = ready!(Pin::new(open(&mut state.stream)?).poll_write(context, bytes))?;
        if let Some(frames) = &mut state.frames {
            frames.pass(bytes.get(..written).unwrap_or_default());
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.lock();
        ready!(state.poll_inserted(context))?;
        Pin::new(open(&mut state.stream)?).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.lock();
        ready!(state.poll_inserted(context))?;
        Pin::new(open(&mut state.stream)?).poll_shutdown(context)
    }
}

/// Follows frames as they pass, to know where they end.
#[derive(Debug, Default)]
struct Frames {
    head: [u8; FRAME_HEAD_BYTES],
    /// Bytes of the head that have passed.
    of_head: usize,
    /// Bytes of the payload that are to come.
    payload: usize,
}

impl Frames {
    fn pass(&mut self, mut bytes: &[u8]) {
        while let Some((first, rest)) = bytes.split_first() {
            if self.payload > 0 {
                let passed = self.payload.min(bytes.len());
                self.payload -= passed;
                bytes = bytes.get(passed..).unwrap_or_default();
                continue;
            }
            self.head[self.of_head] = *first;
            self.of_head += 1;
            bytes = rest;
            if self.of_head == FRAME_HEAD_BYTES {
                let [high, middle, low, ..] = self.head;
                self.payload = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
                self.of_head = 0;
            }
        }
    }

    fn is_between(&self) -> bool {
        self.of_head == 0 && self.payload == 0
    }
}

/// A GOAWAY frame (RFC 9113, section 6.8).
pub(super) fn goaway(last_stream: u32, code: u32) -> [u8; 17] {
    let mut frame = [0; 17];
    frame[2] = 8;
    frame[3] = 7;
    frame[9..13].copy_from_slice(&last_stream.to_be_bytes());
    frame[13..].copy_from_slice(&code.to_be_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames are followed whatever pieces they pass in.
    #[test]
    fn between_frames() {
        let frames = [&goaway(1, 0)[..], &[0, 0, 0, 4, 1, 0, 0, 0, 0], &goaway(3, 2)].concat();
        let ends = [17, 26, 43];
        for size in 1..=frames.len() {
            let mut follower = Frames::default();
            let mut passed = 0;
            for piece in frames.chunks(size) {
                follower.pass(piece);
                passed += piece.len();
                assert_eq!(follower.is_between(), ends.contains(&passed), "{size}: {passed}");
            }
        }
    }
}
