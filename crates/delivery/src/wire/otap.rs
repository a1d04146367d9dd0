//! OTAP: one stream a signal, batches up, a status for each down.
//!
//! A stream has state on both ends (schemas and dictionaries), so a batch that has to be sent again is encoded again, for
//! a new stream. The lane has one batch out at a time: what has no status when a stream ends is that one, and it is the
//! first on the next stream.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Uri};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use tower_service::Service;

use super::compress::{Compression, Compressor};
use super::connection::{Connect, Connection, RequestBody};
use super::message;
use super::otlp_grpc::request;
use super::unary::too_large;
use super::{Tally, Wire};
use crate::outcome::{Outcome, otap as classes};
use crate::payload::{EncodeStream, Payload};
use crate::signal::Signal;

mod stream;

use stream::{Down, Stream, Up, ended};

/// Settings of OTAP.
#[derive(Clone, Debug)]
pub struct OtapSettings {
    /// Scheme and authority of requests. A tonic channel puts its own in their place.
    pub origin: Uri,
    /// Further headers of every stream.
    pub headers: HeaderMap,
    /// How messages are compressed. Default: not, because Arrow IPC compresses inside; never both.
    pub compression: Compression,
    /// Largest message before and behind compression, in bytes. Default 4 MiB.
    pub max_request_bytes: usize,
    /// Longest time from a batch to its status. Default 30 s.
    pub status_timeout: Duration,
    /// Between batches, a stream that is older than between four fifths of this and all of it is closed in an orderly way
    /// and followed by a new one. Default 5 min.
    pub max_lifetime: Option<Duration>,
    /// So is one that has carried so many batches. Default: no limit.
    pub max_batches: Option<u64>,
    /// Longest time to wait for the server to end a stream that we have closed. Default 1 s.
    pub close_timeout: Duration,
}

impl Default for OtapSettings {
    fn default() -> Self {
        Self {
            origin: Uri::from_static("http://localhost:4317"),
            headers: HeaderMap::new(),
            compression: Compression::None,
            max_request_bytes: 4 << 20,
            status_timeout: Duration::from_secs(30),
            max_lifetime: Some(Duration::from_secs(300)),
            max_batches: None,
            close_timeout: Duration::from_secs(1),
        }
    }
}

/// The wire.
pub struct Otap<C: Connect, E> {
    connection: Connection<C>,
    encoder: E,
    compressor: Option<Compressor>,
    scratch: Vec<u8>,
    settings: OtapSettings,
    streams: [Option<Stream<C>>; 3],
    tally: Tally,
    /// A batch is out.
    sent: bool,
    random: fastrand::Rng,
}

impl<C: Connect, E> Otap<C, E> {
    /// A wire over connections of its own.
    ///
    /// # Errors
    ///
    /// If there is no such compression level.
    pub fn new(connection: Connection<C>, encoder: E, settings: OtapSettings) -> io::Result<Self> {
        Ok(Self {
            connection,
            encoder,
            compressor: Compressor::new(settings.compression)?,
            scratch: Vec::new(),
            settings,
            streams: [None, None, None],
            tally: Tally::default(),
            sent: false,
            random: fastrand::Rng::new(),
        })
    }

    /// Ends a stream: closes our side, and waits a while for the server to close its own.
    async fn finish(&mut self, index: usize) {
        let Some(Stream { up, mut down, .. }) = self.streams[index].take() else { return };
        drop(up);
        // Statuses of nothing that is out have nobody to go to.
        let end = async { while down.next().await.is_ok() {} };
        _ = timeout(self.settings.close_timeout, end).await;
    }

    async fn finish_all(&mut self) {
        for index in 0..self.streams.len() {
            self.finish(index).await;
        }
    }

    /// Leaves the connection, and with it all streams.
    fn reset(&mut self) {
        self.streams = [None, None, None];
        self.connection.leave();
    }

    /// Ends what is too old, notices what has ended meanwhile, and opens a stream if there is none.
    async fn open<P>(&mut self, signal: Signal) -> Result<(), Outcome>
    where
        E: EncodeStream<P>,
    {
        let index = signal.index();
        if self.connection.expired() {
            self.finish_all().await;
        }
        let now = Instant::now();
        let most = self.settings.max_batches;
        let over = |stream: &Stream<C>| {
            stream.end.is_some_and(|end| end <= now) || most.is_some_and(|most| stream.batches >= most)
        };
        if self.streams[index].as_ref().is_some_and(over) {
            self.finish(index).await;
        }
        if let Some(stream) = &mut self.streams[index]
            && stream.has_ended().await
        {
            self.streams[index] = None;
        }
        if self.streams[index].is_none() {
            let service = self.connection.ready().await?;
            let (up, body) = mpsc::channel(1);
            let settings = &self.settings;
            let body = RequestBody::new(Up(body));
            let request = request(&settings.origin, signal.otap_path(), &settings.headers, settings.compression, body);
            let share = 0.8 + 0.2 * self.random.f64();
            self.streams[index] = Some(Stream {
                up,
                down: Down::Opening(Box::pin(service.call(request))),
                next_id: 1,
                batches: 0,
                end: settings.max_lifetime.map(|life| now + life.mul_f64(share)),
                proven: false,
            });
            self.encoder.reset(signal);
        }
        Ok(())
    }

    /// A batch as a framed message.
    fn encode<P>(&mut self, id: i64, payloads: &[P]) -> Result<Bytes, Outcome>
    where
        E: EncodeStream<P>,
    {
        let limit = self.settings.max_request_bytes;
        let check = |size: usize| if size > limit { Err(too_large(size, limit)) } else { Ok(()) };
        let unencodable = |error: &dyn std::fmt::Display| Outcome::Unencodable { message: error.to_string() };
        let mut framed = std::mem::take(&mut self.scratch);
        framed.clear();
        framed.resize(message::HEADER, 0);
        self.encoder.encode(id, payloads, &mut framed).map_err(|error| unencodable(&error))?;
        let raw = framed.len() - message::HEADER;
        check(raw)?;
        self.tally.raw_bytes += raw as u64;
        let compressed = self.compressor.is_some();
        let mut framed = match &mut self.compressor {
            None => framed,
            Some(compressor) => {
                let bytes = compressor.compress(&framed[message::HEADER..], message::HEADER);
                self.scratch = framed;
                Vec::from(bytes.map_err(|error| unencodable(&error))?)
            }
        };
        let size = framed.len() - message::HEADER;
        check(size)?;
        let header = message::header(compressed, size).ok_or_else(|| too_large(size, u32::MAX as usize))?;
        if let Some(start) = framed.first_chunk_mut() {
            *start = header;
        }
        self.tally.wire_bytes += framed.len() as u64;
        Ok(framed.into())
    }
}

impl<P, C, E> Wire<P> for Otap<C, E>
where
    P: Payload,
    C: Connect,
    E: EncodeStream<P>,
{
    type Kept = ();

    async fn attempt(&mut self, payloads: &[P], _: &mut Option<()>, deadline: Instant) -> Outcome {
        let Some(signal) = payloads.first().map(Payload::signal) else { return Outcome::OK };
        if let Err(outcome) = self.open::<P>(signal).await {
            return outcome;
        }
        let index = signal.index();
        let Some(id) = self.streams[index].as_ref().map(|stream| stream.next_id) else {
            return Outcome::unsent("no stream");
        };
        let message = match self.encode(id, payloads) {
            Ok(message) => message,
            Err(outcome) => {
                // What the encoder believes that the server knows, it does not.
                self.finish(index).await;
                return outcome;
            }
        };
        let Some(stream) = &mut self.streams[index] else { return Outcome::unsent("no stream") };
        stream.next_id += 1;
        stream.batches += 1;
        self.sent = true;
        let limit = (Instant::now() + self.settings.status_timeout).min(deadline);
        let answer = timeout_at(limit, stream.exchange(id, message)).await;
        let proven = stream.proven;
        self.sent = false;
        match answer {
            Ok(Ok(status)) => {
                let classified = classes::classify(&status);
                if classified.reset {
                    self.finish(index).await;
                }
                classified.outcome
            }
            Ok(Err(end)) => {
                let outcome = ended(end, proven);
                self.tally.stream_resets += u64::from(!matches!(outcome, Outcome::Downgrade { .. }));
                self.streams[index] = None;
                if matches!(outcome, Outcome::Retry { .. }) {
                    self.reset();
                }
                outcome
            }
            Err(_) => {
                self.tally.stream_resets += 1;
                self.reset();
                Outcome::unanswered("no status within status_timeout")
            }
        }
    }

    fn abandon(&mut self) -> bool {
        self.reset();
        let sent = std::mem::take(&mut self.sent);
        self.tally.stream_resets += u64::from(sent);
        sent
    }

    fn tally(&mut self) -> Tally {
        self.tally.stream.add(self.encoder.tally());
        std::mem::take(&mut self.tally)
    }

    async fn close(&mut self) {
        self.finish_all().await;
        self.connection.leave();
    }
}
