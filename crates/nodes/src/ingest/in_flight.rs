//! What has been handed on and is still in memory.
//!
//! The channel to the next node is bounded in batches and not in bytes, and an acknowledgement may come long after a
//! batch has been let go (a quantile node acknowledges when its window closes). So a batch counts until it is
//! acknowledged, or until its columns have been freed, whichever is first.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

/// Entries after which freed batches are looked for, at least.
const FIRST_SWEEP: usize = 64;

struct Sent {
    bytes: usize,
    is_alive: Box<dyn Fn() -> bool>,
}

/// Bytes of input in batches that were handed on.
pub(super) struct InFlight {
    limit: Option<usize>,
    sent: RefCell<HashMap<u64, Sent>>,
    bytes: Cell<usize>,
    next: Cell<u64>,
    sweep_at: Cell<usize>,
}

impl InFlight {
    /// `limit` in bytes; `None` keeps no track at all.
    pub(super) fn new(limit: Option<usize>) -> Self {
        Self {
            limit,
            sent: RefCell::default(),
            bytes: Cell::new(0),
            next: Cell::new(0),
            sweep_at: Cell::new(FIRST_SWEEP),
        }
    }

    /// A batch of `bytes` goes out. Returns the key to settle it with.
    pub(super) fn add(&self, bytes: usize, is_alive: Box<dyn Fn() -> bool>) -> u64 {
        let key = self.next.get();
        self.next.set(key.wrapping_add(1));
        if self.limit.is_some() {
            self.bytes.set(self.bytes.get() + bytes);
            let len = {
                let mut sent = self.sent.borrow_mut();
                let _ = sent.insert(key, Sent { bytes, is_alive });
                sent.len()
            };
            if len >= self.sweep_at.get() {
                self.sweep();
            }
        }
        key
    }

    /// The outcome of a batch is known.
    pub(super) fn settle(&self, key: u64) {
        if let Some(sent) = self.sent.borrow_mut().remove(&key) {
            self.bytes.set(self.bytes.get().saturating_sub(sent.bytes));
        }
    }

    /// Bytes as far as known; some of them may have been freed since.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.get()
    }

    /// Whether `more` bytes may follow. A batch always may if it is alone.
    pub(super) fn has_room(&self, more: usize) -> bool {
        let Some(limit) = self.limit else { return true };
        let fits = || self.bytes.get() == 0 || self.bytes.get().saturating_add(more) <= limit;
        fits() || {
            self.sweep();
            fits()
        }
    }

    fn sweep(&self) {
        let mut sent = self.sent.borrow_mut();
        sent.retain(|_, batch| (batch.is_alive)());
        self.bytes.set(sent.values().map(|batch| batch.bytes).sum());
        self.sweep_at.set(FIRST_SWEEP.max(2 * sent.len()));
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    /// A batch counts until it is settled or freed; one alone always has room.
    #[test]
    fn batches_count_until_settled_or_freed() {
        let in_flight = InFlight::new(Some(100));
        assert!(in_flight.has_room(1_000), "alone");
        let columns = Rc::new(());
        let weak = Rc::downgrade(&columns);
        let freed = in_flight.add(80, Box::new(move || weak.strong_count() > 0));
        let settled = in_flight.add(20, Box::new(|| true));
        assert!(!in_flight.has_room(1));
        drop(columns);
        assert!(in_flight.has_room(80) && !in_flight.has_room(81));
        in_flight.settle(settled);
        in_flight.settle(freed);
        in_flight.settle(freed);
        assert_eq!(in_flight.bytes(), 0);
    }

    /// Batches that are freed and never settled do not pile up.
    #[test]
    fn freed_batches_are_forgotten() {
        let in_flight = InFlight::new(Some(1_000_000));
        for _ in 0..1_000 {
            let _ = in_flight.add(1, Box::new(|| false));
        }
        assert!(in_flight.sent.borrow().len() < FIRST_SWEEP);
    }

    /// Without a limit nothing is kept.
    #[test]
    fn no_limit_keeps_no_track() {
        let in_flight = InFlight::new(None);
        let _ = in_flight.add(1 << 40, Box::new(|| true));
        assert!(in_flight.has_room(1 << 40) && in_flight.bytes() == 0);
    }
}
