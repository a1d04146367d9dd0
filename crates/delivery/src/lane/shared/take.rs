//! From the queue to a request.

use tokio::time::Instant;

use super::{Flight, Inner, Part, Take};
use crate::lane::settings::{Batching, LaneSettings};
use crate::payload::Payload;

impl<P: Payload, T> Inner<P, T> {
    /// The next request's worth from the front of the queue, if there is enough or it has waited long enough.
    pub(in crate::lane) fn take(&mut self, settings: &LaneSettings, most: usize, now: Instant) -> Take<P> {
        let Some(front) = self.queue.front() else {
            return if self.closed { Take::End } else { Take::Wait(None) };
        };
        let batch = &settings.batch;
        let due = front.part.since + batch.max_delay;
        let enough = self.counters.queue_items >= batch.min_items as u64
            || self.queue_bytes() >= batch.max_bytes
            || self.changes > 0
            || self.queue.len() >= settings.max_queue_batches
            // Someone waits for room that only a request can make.
            || self.blocked_since.is_some()
            || self.closed;
        if !enough && now < due {
            return Take::Wait(Some(due));
        }
        let signal = front.signal;
        let mut flight = Flight { signal, payloads: Vec::new(), parts: Vec::new() };
        let (mut items, mut bytes) = (0, 0);
        while let Some(front) = self.queue.front().filter(|front| front.signal == signal) {
            let room = room(batch, most, items, bytes, front.part);
            if room < front.part.items {
                let may_split = flight.parts.is_empty() || items < batch.min_items;
                if (flight.parts.is_empty() || (may_split && room > 0))
                    && let Some((payload, part)) = self.split_front(room.max(1))
                {
                    self.add_in_flight(part);
                    flight.payloads.push(payload);
                    flight.parts.push(part);
                    break;
                }
                if !flight.parts.is_empty() {
                    break;
                }
                // Indivisible: the server has to say what it thinks of it.
            }
            let Some(waiting) = self.remove(0) else { break };
            items += waiting.part.items;
            bytes += waiting.part.bytes;
            self.add_in_flight(waiting.part);
            flight.payloads.push(waiting.payload);
            flight.parts.push(waiting.part);
        }
        Take::Flight(flight)
    }

    /// Cuts so many items off the front payload. Nothing is changed if it cannot be split.
    fn split_front(&mut self, at: usize) -> Option<(P, Part)> {
        let front = self.queue.front_mut()?;
        let (head, tail) = split_payload(&front.payload, front.part.items, at)?;
        let whole = front.part;
        let head_part = Part { items: at, bytes: head.bytes(), ..whole };
        let tail_part = Part { items: whole.items - at, bytes: tail.bytes(), ..whole };
        front.payload = tail;
        front.part = tail_part;
        front.remainder = true;
        self.queued(whole, false);
        self.queued(tail_part, true);
        self.split(whole.input);
        Some((head, head_part))
    }
}

/// Items of the next payload for which a request has room that holds `items` and `bytes` already.
fn room(batch: &Batching, most: usize, items: usize, bytes: usize, next: Part) -> usize {
    let by_items = batch.max_items.min(most).max(1).saturating_sub(items);
    let left = batch.max_bytes.saturating_sub(bytes);
    if next.bytes <= left {
        return by_items;
    }
    // Items of a payload are taken to be of one size; the wire checks the encoded size.
    let share = (next.items as u128 * left as u128) / (next.bytes.max(1) as u128);
    by_items.min(usize::try_from(share).unwrap_or(usize::MAX))
}

/// Splits, and holds the payload to what it says of its items.
pub(in crate::lane) fn split_payload<P: Payload>(payload: &P, items: usize, at: usize) -> Option<(P, P)> {
    if at == 0 || at >= items {
        return None;
    }
    payload.split(at).ok().filter(|(head, tail)| head.items() == at && tail.items() == items - at)
}
