//! Encoders of loads.

use super::{Content, Load};
use crate::encode::otap::{OtapSettings, OtapStream};
use crate::encode::otlp::OtlpEncoder;
use crate::payload::{Encode, EncodeError, EncodeStream, StreamTally};
use crate::signal::Signal;

/// Writes loads as OTLP requests.
#[derive(Debug, Default)]
pub struct OtlpWriter {
    /// One a signal: each keeps the attributes of its last batch.
    encoders: [OtlpEncoder; 3],
}

impl Encode<Load> for OtlpWriter {
    fn encode(&mut self, loads: &[Load], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        for load in loads {
            match &load.content {
                Content::Records(records) => {
                    self.encoders[load.signal.index()].encode_into(records, out)?;
                }
                Content::Otlp(request) => out.extend_from_slice(request),
            }
        }
        Ok(())
    }
}

/// Writes loads as messages of OTAP streams, one stream a signal.
#[derive(Debug)]
pub struct OtapWriter {
    streams: [OtapStream; 3],
}

impl OtapWriter {
    /// Streams that nothing has been sent on.
    ///
    /// # Errors
    ///
    /// If zstd does not have the level.
    pub fn new(settings: OtapSettings) -> Result<Self, EncodeError> {
        let stream = || OtapStream::new(settings);
        Ok(Self { streams: [stream()?, stream()?, stream()?] })
    }
}

impl EncodeStream<Load> for OtapWriter {
    fn reset(&mut self, signal: Signal) {
        self.streams[signal.index()].reset();
    }

    fn encode(&mut self, batch_id: i64, loads: &[Load], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let Some(signal) = loads.first().map(|load| load.signal) else { return Ok(()) };
        let records: Result<Vec<_>, _> = loads
            .iter()
            .map(|load| match &load.content {
                Content::Records(records) => Ok(records),
                Content::Otlp(_) => Err(EncodeError::new("an OTLP request on an OTAP stream, expected record batches")),
            })
            .collect();
        let message = self.streams[signal.index()].encode(batch_id, &records?)?;
        if message.is_empty() {
            return Err(EncodeError::new("points without a metric, expected a row for each metric"));
        }
        out.extend_from_slice(&message);
        Ok(())
    }

    fn tally(&mut self) -> StreamTally {
        let mut sum = StreamTally::default();
        for stream in &mut self.streams {
            sum.add(stream.tally());
        }
        sum
    }
}
