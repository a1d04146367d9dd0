//! What is the same for a request over any protocol: the step it takes, storing, and the report.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;

use bytes::Bytes;
use tokio::time::sleep;

use super::Shared;
use super::items::{self, Data};
use super::wire::Line;
use crate::sink::ledger::{Entry, Outcome};
use crate::sink::script::{Answer, Event, Moment, Protocol, Signal, Unread};

/// The data of a request cannot be understood.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct Undecodable(pub(super) String);

/// A connection, for its requests.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub(super) shared: Arc<Shared>,
    pub(super) line: Arc<Line>,
    pub(super) id: u64,
}

impl Link {
    pub(super) fn enter(&self, protocol: Protocol, signal: Signal, event: Event) -> Entry {
        self.shared.ledger.enter(protocol, signal, event, self.id)
    }

    /// Ends the connection, and with it whoever asks for that.
    pub(super) async fn cut(&self, entry: Entry, reset: bool) -> Infallible {
        entry.finish(Outcome::Cut);
        self.shared.ledger.cut(self.id);
        self.line.cut(reset);
        pending().await
    }

    /// What is done before the body is read. Does not return if the connection ends here.
    pub(super) async fn before_body(&self, entry: Entry) -> Entry {
        if let Answer::Close { at: Moment::BeforeBody, reset } = entry.step().answer {
            match self.cut(entry, reset).await {}
        }
        if let Some(unread) = entry.step().stop_reading.clone() {
            if unread.of == Unread::Connection {
                self.line.pause(unread.time);
            }
            sleep(unread.time).await;
        }
        entry
    }

    /// Decodes a message of OTLP, stores it if the step says so, and gives what the client is to get.
    pub(super) fn settle(&self, entry: &mut Entry, signal: Signal, message: Bytes) -> Result<Answer, Undecodable> {
        let data = Data::decode(signal, message);
        let data = data.map_err(|error| self.undecodable(error.to_string()))?;
        self.settle_data(entry, data)
    }

    fn settle_data(&self, entry: &mut Entry, mut data: Data) -> Result<Answer, Undecodable> {
        let mut items = data.items(self.shared.ledger.order());
        entry.decoded(items.len() as u64);
        let step = entry.step();
        let answer = self.sized(entry);
        let refuses = step.refuses_for_good.unwrap_or_else(|| {
            // A single item that is too large cannot be split.
            let too_large = matches!(step.answer, Answer::SizeLimit { .. }) && answer != Answer::Ok;
            if too_large { items.len() == 1 } else { answer.refuses_for_good(entry.protocol()) }
        });
        if step.store.unwrap_or_else(|| answer.is_success()) {
            let mut rejected = Vec::new();
            if let Answer::PartialSuccess { rejected: count, .. } = &answer {
                let count = usize::try_from(*count).unwrap_or(usize::MAX);
                rejected = items.split_off(items.len().saturating_sub(count));
                data.keep_first(items.len());
            }
            data.store(&self.shared.receiver).map_err(|status| self.undecodable(status.message().to_owned()))?;
            entry.stored(&items::of_request(items));
            if !rejected.is_empty() {
                entry.refused_for_good(&items::of_request(rejected));
            }
        } else if refuses {
            entry.refused_for_good(&items::of_request(items));
        }
        entry.acts(&answer);
        Ok(answer)
    }

    fn sized(&self, entry: &Entry) -> Answer {
        let (wire_bytes, decoded_bytes) = entry.sizes();
        entry.step().answer.clone().for_size(wire_bytes, decoded_bytes, entry.protocol())
    }

    /// Counts a message that is not understood.
    pub(super) fn undecodable(&self, reason: String) -> Undecodable {
        self.shared.store.add_decode_error();
        Undecodable(reason)
    }
}
