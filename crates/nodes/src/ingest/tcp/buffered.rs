//! What the connections of a core hold of messages that are not complete.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::{Notify, Semaphore, SemaphorePermit};

/// The sum over all connections, and who may read on when it is over the limit.
pub(crate) struct Buffered {
    limit: usize,
    sum: Cell<usize>,
    /// Wakes those who wait: the sum is under the limit again.
    under: Notify,
    /// Over the limit one connection at a time reads on, so that some message gets complete.
    turn: Semaphore,
}

impl Buffered {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, sum: Cell::new(0), under: Notify::new(), turn: Semaphore::new(1) }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.sum.get() > self.limit
    }

    /// Bytes held now.
    pub(crate) fn bytes(&self) -> usize {
        self.sum.get()
    }

    /// Waits until a connection that is in the middle of a message may read on. A turn is to be given back as soon as
    /// the message is complete, or no more of it comes.
    pub(crate) async fn let_on(&self) -> Option<SemaphorePermit<'_>> {
        while self.is_over() {
            let under = self.under.notified();
            tokio::select! {
                biased;
                () = under => {}
                turn = self.turn.acquire() => return turn.ok(),
            }
        }
        None
    }

    fn change(&self, from: usize, to: usize) {
        let was_over = self.is_over();
        self.sum.set(self.sum.get() - from + to);
        if was_over && !self.is_over() {
            self.under.notify_waiters();
        }
    }
}

/// What one connection holds.
pub(crate) struct Held {
    all: Rc<Buffered>,
    bytes: usize,
}

impl Held {
    pub(crate) fn new(all: Rc<Buffered>) -> Self {
        Self { all, bytes: 0 }
    }

    pub(crate) fn set(&mut self, bytes: usize) {
        self.all.change(self.bytes, bytes);
        self.bytes = bytes;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Under the limit all read; over it one at a time, in the order they came; under it again all do.
    #[test]
    fn over_the_limit_one_reads_on() {
        let all = Rc::new(Buffered::new(10));
        let (mut first, mut second) = (Held::new(Rc::clone(&all)), Held::new(Rc::clone(&all)));
        first.set(6);
        assert!(matches!(poll(pin!(all.let_on())), Poll::Ready(None)));
        second.set(6);
        let Poll::Ready(Some(turn)) = poll(pin!(all.let_on())) else { panic!("a turn") };
        let mut waits = pin!(all.let_on());
        assert!(poll(waits.as_mut()).is_pending());
        drop(turn);
        let Poll::Ready(Some(turn)) = poll(waits.as_mut()) else { panic!("the next turn") };
        let mut waits = pin!(all.let_on());
        assert!(poll(waits.as_mut()).is_pending());
        drop(first);
        assert!(matches!(poll(waits.as_mut()), Poll::Ready(None)));
        drop((second, turn));
        assert_eq!(all.bytes(), 0);
    }
}
