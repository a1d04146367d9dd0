//! Streams of OTAP.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use otel_arrow_dfe_pdata::Consumer;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::{BatchArrowRecords, BatchStatus};
use prost::Message as _;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::exchange::{Link, Undecodable};
use super::grpc::{begin, exclude, framed, refuse, status, unpack, wait_for_reset};
use super::message::{Messages, ReadError};
use crate::sink::decode::otap_to_otlp;
use crate::sink::encoding::Encoding;
use crate::sink::ledger::{Entry, Outcome};
use crate::sink::script::{Answer, Code, Event, Lie, Moment, Protocol, Signal};

/// How long a status waits for that of the next batch, to come after it.
const OUT_OF_ORDER_WAIT: Duration = Duration::from_millis(500);
/// How far the id of a batch that was never sent is from one that was.
const UNKNOWN_BATCH: i64 = 1 << 40;

/// Serves a stream from its opening on.
pub(super) async fn serve(
    link: Link,
    signal: Signal,
    encoding: Encoding,
    messages: Messages,
    mut respond: SendResponse<Bytes>,
) {
    let entry = link.enter(Protocol::Otap, signal, Event::Open);
    let entry = link.before_body(entry).await;
    let left = tokio::select! {
        () = sleep(entry.step().delay) => false,
        () = wait_for_reset(&mut respond) => true,
    };
    if left {
        return;
    }
    match entry.step().answer.clone() {
        Answer::Never => return wait_for_reset(&mut respond).await,
        Answer::Grpc { code, message, retry_info, trailers_only } => {
            let sent = if trailers_only {
                refuse(&mut respond, code, &message, retry_info)
            } else {
                begin(&mut respond).and_then(|mut stream| stream.send_trailers(status(code, &message, retry_info)))
            };
            if sent.is_ok() {
                entry.finish(Outcome::Refused);
            }
            return;
        }
        Answer::ResetStream { code } => {
            respond.send_reset(Reason::from(code));
            return entry.finish(Outcome::Cut);
        }
        Answer::Goaway { exclude: true, code } => {
            return exclude(&link, entry, respond.stream_id().as_u32(), code).await;
        }
        Answer::Goaway { exclude: false, .. } => link.line.drain(),
        _ => {}
    }
    let Ok(statuses) = begin(&mut respond) else {
        return;
    };
    entry.finish(Outcome::Accepted);
    let stream = Stream {
        link,
        signal,
        encoding,
        messages,
        statuses,
        id: respond.stream_id().as_u32(),
        consumer: Consumer::default(),
        reading: true,
        waiting: JoinSet::new(),
        status_sent: Arc::new(Notify::new()),
        unanswered: Vec::new(),
    };
    stream.run().await;
}

/// An open stream.
struct Stream {
    link: Link,
    signal: Signal,
    encoding: Encoding,
    messages: Messages,
    statuses: SendStream<Bytes>,
    /// Its number on the connection.
    id: u32,
    consumer: Consumer,
    /// The client has not ended its side.
    reading: bool,
    /// Batches that are answered later.
    waiting: JoinSet<Waiting>,
    /// Tells those that want to be answered after another.
    status_sent: Arc<Notify>,
    /// Batches that are never answered, for the report.
    unanswered: Vec<Entry>,
}

/// A batch that is to be answered now.
struct Waiting {
    entry: Entry,
    batch_id: i64,
    answer: Answer,
}

/// The stream is over.
struct Over;

impl Stream {
    async fn run(mut self) {
        loop {
            let go_on = tokio::select! {
                begins = self.messages.begins(), if self.reading => match begins {
                    Ok(true) => self.batch().await,
                    Ok(false) => {
                        self.reading = false;
                        Ok(())
                    }
                    Err(ReadError::Message(reason)) => {
                        let _counted = self.link.undecodable(reason);
                        Err(Over)
                    }
                    Err(ReadError::Gone(_)) => Err(Over),
                },
                Some(waiting) = self.waiting.join_next() => match waiting {
                    Ok(waiting) => self.answer(waiting).await,
                    Err(_) => Err(Over),
                },
                // Both a reset and an error are the end.
                _ = poll_fn(|context| self.statuses.poll_reset(context)) => Err(Over),
            };
            if go_on.is_err() {
                return;
            }
            if !self.reading && self.waiting.is_empty() && self.unanswered.is_empty() {
                // Fails if the client is gone.
                let _ = self.statuses.send_trailers(status(Code::OK, "", None));
                return;
            }
        }
    }

    /// Takes the batch that has begun to arrive.
    async fn batch(&mut self) -> Result<(), Over> {
        let entry = self.link.enter(Protocol::Otap, self.signal, Event::Request);
        let mut entry = self.link.before_body(entry).await;
        match entry.step().answer {
            Answer::Close { at: Moment::DuringBody, reset } => {
                // Whatever comes, or that nothing does.
                let _ = self.messages.part().await;
                match self.link.cut(entry, reset).await {}
            }
            Answer::Goaway { exclude: true, code } => {
                exclude(&self.link, entry, self.id, code).await;
                return Err(Over);
            }
            _ => {}
        }
        let message = match self.messages.read().await {
            Ok(Some(message)) => unpack(&self.link, &mut entry, self.encoding, message),
            Ok(None) | Err(ReadError::Gone(_)) => return Err(Over),
            Err(ReadError::Message(reason)) => Err(self.link.undecodable(reason)),
        };
        let (batch_id, settled) = match message {
            Ok(message) => self.decode(&mut entry, message),
            Err(reason) => (0, Err(reason)),
        };
        let answer = match settled {
            Ok(answer) => answer,
            Err(reason) => {
                if self.send(batch_id, Code::INVALID_ARGUMENT, &reason.to_string()).is_ok() {
                    entry.finish(Outcome::Refused);
                }
                // The state of the stream is lost: the client has to open another.
                let _ = self.statuses.send_trailers(status(Code::OK, "", None));
                return Err(Over);
            }
        };
        let delay = entry.step().delay;
        let waiting = Waiting { entry, batch_id, answer };
        if waiting.answer == Answer::Lie(Lie::OutOfOrder) {
            let next = Arc::clone(&self.status_sent).notified_owned();
            drop(self.waiting.spawn(async {
                // Without another batch there is no other order.
                let _ = timeout(OUT_OF_ORDER_WAIT, next).await;
                waiting
            }));
            return Ok(());
        }
        if delay.is_zero() {
            return self.answer(waiting).await;
        }
        drop(self.waiting.spawn(async move {
            sleep(delay).await;
            waiting
        }));
        Ok(())
    }

    fn decode(&mut self, entry: &mut Entry, message: Bytes) -> (i64, Result<Answer, Undecodable>) {
        let batch = match BatchArrowRecords::decode(message) {
            Ok(batch) => batch,
            Err(error) => return (0, Err(self.link.undecodable(error.to_string()))),
        };
        let batch_id = batch.batch_id;
        // Whatever becomes of the data, the next batch relies on what this one says.
        let settled = match otap_to_otlp(&mut self.consumer, self.signal, batch) {
            Ok(request) => self.link.settle(entry, self.signal, Bytes::copy_from_slice(request.as_bytes())),
            Err(error) => Err(self.link.undecodable(error.to_string())),
        };
        (batch_id, settled)
    }

    async fn answer(&mut self, waiting: Waiting) -> Result<(), Over> {
        let Waiting { entry, batch_id, answer } = waiting;
        let (sent, outcome) = match answer {
            Answer::Never => {
                self.unanswered.push(entry);
                return Ok(());
            }
            Answer::Close { reset, .. } => match self.link.cut(entry, reset).await {},
            Answer::Grpc { code, message, retry_info, .. } => {
                if self.statuses.send_trailers(status(code, &message, retry_info)).is_ok() {
                    entry.finish(Outcome::Refused);
                }
                return Err(Over);
            }
            Answer::EndStream => {
                if self.statuses.send_data(Bytes::new(), true).is_ok() {
                    entry.finish(Outcome::Cut);
                }
                return Err(Over);
            }
            Answer::ResetStream { code } => {
                // Statuses that have not left yet are lost.
                self.statuses.send_reset(Reason::from(code));
                self.link.shared.ledger.cut(self.link.id);
                entry.finish(Outcome::Cut);
                return Err(Over);
            }
            Answer::BatchStatus { code, message } => {
                let outcome = if code == Code::OK { Outcome::Accepted } else { Outcome::Refused };
                (self.send(batch_id, code, &message), outcome)
            }
            answer => {
                match answer {
                    Answer::Goaway { .. } => self.link.line.drain(),
                    Answer::Lie(Lie::UnknownBatch) => {
                        self.send(batch_id.wrapping_add(UNKNOWN_BATCH), Code::OK, "")?;
                    }
                    Answer::Lie(Lie::DuplicateStatus) => self.send(batch_id, Code::OK, "")?,
                    _ => {}
                }
                (self.send(batch_id, Code::OK, ""), Outcome::Accepted)
            }
        };
        sent?;
        entry.finish(outcome);
        self.status_sent.notify_waiters();
        Ok(())
    }

    fn send(&mut self, batch_id: i64, code: Code, message: &str) -> Result<(), Over> {
        let status = BatchStatus { batch_id, status_code: code.0, status_message: message.to_owned() };
        self.statuses.send_data(framed(&status.encode_to_vec()), false).map_err(|_| Over)
    }
}
