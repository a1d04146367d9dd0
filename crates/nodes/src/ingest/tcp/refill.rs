//! Reading from a connection, with the time of receipt.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

use super::super::now::now;

/// A stream whose bytes go to a buffer that all connections of the core share. It is borrowed only while the kernel
/// fills it, so a connection that waits holds none of it.
pub(super) struct Refill<S, C> {
    stream: S,
    clock: C,
    time_unix_nano: i64,
}

impl<S: AsyncRead + Unpin, C: Fn() -> i64> Refill<S, C> {
    pub(super) fn new(stream: S, clock: C) -> Self {
        Self { stream, clock, time_unix_nano: 0 }
    }

    /// Reads up to `most` bytes to `buffer` at `at`. Returns their number; 0 is the end of the stream. May be dropped at
    /// any time: what was not read stays where it is. The bytes are the caller's until it waits for anything.
    pub(super) async fn read(&mut self, buffer: &RefCell<Vec<u8>>, at: usize, most: usize) -> io::Result<usize> {
        poll_fn(|context| self.poll(context, buffer, at, most)).await
    }

    /// As [`Self::read`], but does not wait: `None` if there is nothing now.
    pub(super) async fn read_now(
        &mut self,
        buffer: &RefCell<Vec<u8>>,
        at: usize,
        most: usize,
    ) -> Option<io::Result<usize>> {
        now(self.read(buffer, at, most)).await
    }

    /// When the bytes read last were read. Reads that give no bytes do not change it.
    pub(super) fn time_unix_nano(&self) -> i64 {
        self.time_unix_nano
    }

    fn poll(
        &mut self,
        context: &mut Context<'_>,
        buffer: &RefCell<Vec<u8>>,
        at: usize,
        most: usize,
    ) -> Poll<io::Result<usize>> {
        let mut buffer = buffer.borrow_mut();
        let end = at.saturating_add(most).min(buffer.len());
        let mut window = ReadBuf::new(buffer.get_mut(at..end).unwrap_or_default());
        let read = Pin::new(&mut self.stream).poll_read(context, &mut window);
        let bytes = window.filled().len();
        if bytes > 0 {
            self.time_unix_nano = (self.clock)();
        }
        read.map_ok(|()| bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::pin;
    use std::task::Waker;

    use tokio::io::AsyncWriteExt;

    use super::*;

    fn pending<F: Future>(future: F) -> bool {
        pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    /// Only a read that brings bytes takes the time: not one that waits, not one that was given up, not the end.
    #[tokio::test]
    async fn the_time_is_taken_once_a_refill() {
        let (mut sender, stream) = tokio::io::duplex(1_024);
        let calls = Cell::new(0);
        let mut refill = Refill::new(stream, || {
            calls.set(calls.get() + 1);
            calls.get()
        });
        let buffer = RefCell::new(vec![0; 64]);
        assert!(pending(refill.read(&buffer, 0, 64)), "nothing has come");
        assert!(refill.read_now(&buffer, 0, 64).await.is_none());
        assert_eq!((calls.get(), refill.time_unix_nano()), (0, 0));
        sender.write_all(b"one\ntwo\n").await.expect("written");
        assert_eq!(refill.read(&buffer, 3, 64).await.expect("read"), 8);
        assert_eq!(&buffer.borrow()[3..11], b"one\ntwo\n");
        assert_eq!((calls.get(), refill.time_unix_nano()), (1, 1), "several messages, one time");
        assert!(pending(refill.read(&buffer, 0, 64)), "given up");
        assert_eq!(calls.get(), 1);
        sender.write_all(b"three").await.expect("written");
        assert_eq!(refill.read(&buffer, 0, 2).await.expect("read"), 2);
        assert_eq!(refill.read(&buffer, 0, 64).await.expect("read"), 3);
        assert_eq!(refill.time_unix_nano(), 3);
        drop(sender);
        assert_eq!(refill.read(&buffer, 0, 64).await.expect("read"), 0);
        assert!(matches!(refill.read_now(&buffer, 0, 64).await, Some(Ok(0))));
        assert_eq!((calls.get(), refill.time_unix_nano()), (3, 3), "the end has no time");
    }
}
