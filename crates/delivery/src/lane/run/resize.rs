//! Requests that have to become several.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use super::Lane;
use crate::lane::shared::{End, Flight, Part, split_payload};
use crate::lane::verdict::Refusal;
use crate::payload::Payload;
use crate::signal::Signal;

/// Most parts that a request is split into at once.
const MOST_PARTS: u64 = 1024;

impl<P> Flight<P> {
    const fn empty(signal: Signal) -> Self {
        Self { signal, payloads: Vec::new(), parts: Vec::new() }
    }
}

impl<P: Payload, T, W> Lane<P, T, W> {
    /// Sends each payload of a request that cannot be encoded alone, so that only the one at fault is lost.
    pub(super) fn isolate(&mut self, message: &Arc<str>) {
        if self.flight.as_ref().is_none_or(|flight| flight.parts.len() < 2) {
            self.refuse(Refusal::Unencodable, message);
            return;
        }
        let Some(Flight { signal, payloads, parts }) = self.flight.take() else { return };
        let alone = |(payload, part)| Flight { signal, payloads: vec![payload], parts: vec![part] };
        for flight in payloads.into_iter().zip(parts).rev().map(alone) {
            self.later.push_front(flight);
        }
    }

    /// Splits a request that is too large; a single item that is too large alone is rejected.
    pub(super) fn shrink(&mut self, sizes: Option<(u64, u64)>, message: &Arc<str>) {
        let Some(flight) = self.flight.take() else { return };
        let items = flight.items();
        if items <= 1 {
            let mut inner = self.shared.lock();
            for part in flight.parts {
                inner.land(part, &End::Delivered { rejected: part.items }, Some(message));
            }
            return;
        }
        self.shared.lock().counters.splits += 1;
        // An eighth more parts than the sizes ask for, because items differ.
        let wanted = sizes.map_or(2, |(found, limit)| (found.saturating_add(found / 8)).div_ceil(limit.max(1)));
        let parts = usize::try_from(wanted.clamp(2, MOST_PARTS)).unwrap_or(2).min(items);
        let chunk = items.div_ceil(parts);
        self.most = self.most.min(chunk);
        self.successes = 0;
        for flight in self.chunks(flight, chunk, message).into_iter().rev() {
            self.later.push_front(flight);
        }
    }

    /// A request as smaller ones of `chunk` items, in order. A payload that would have to be split and cannot be makes a
    /// request alone; if it was alone already, it is refused.
    fn chunks(&mut self, flight: Flight<P>, chunk: usize, message: &Arc<str>) -> Vec<Flight<P>> {
        let signal = flight.signal;
        let single = flight.parts.len() == 1;
        let mut done = Vec::new();
        let mut open = Flight::empty(signal);
        let mut items = 0;
        let mut left: VecDeque<(P, Part)> = flight.payloads.into_iter().zip(flight.parts).collect();
        while let Some((payload, part)) = left.pop_front() {
            let fits = chunk - items;
            if part.items <= fits {
                items += part.items;
                open.payloads.push(payload);
                open.parts.push(part);
            } else if let Some((head, tail)) = split_payload(&payload, part.items, fits) {
                let front = Part { items: fits, bytes: head.bytes(), ..part };
                let rest = Part { items: part.items - fits, bytes: tail.bytes(), ..part };
                self.shared.lock().split_in_flight(part, front, rest);
                open.parts.push(front);
                open.payloads.push(head);
                left.push_front((tail, rest));
                items = chunk;
            } else if single {
                let end = End::Refused { reason: Refusal::Unencodable, ambiguous: self.doubtful };
                self.shared.lock().land(part, &end, Some(message));
            } else {
                if !open.parts.is_empty() {
                    done.push(mem::replace(&mut open, Flight::empty(signal)));
                }
                done.push(Flight { signal, payloads: vec![payload], parts: vec![part] });
                items = 0;
            }
            if items == chunk {
                done.push(mem::replace(&mut open, Flight::empty(signal)));
                items = 0;
            }
        }
        if !open.parts.is_empty() {
            done.push(open);
        }
        done
    }
}
