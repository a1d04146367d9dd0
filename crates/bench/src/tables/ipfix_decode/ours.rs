//! Our side: messages admitted, collected in batches as a receiver does, and decoded to complete OTAP batches.

use std::sync::Arc;

use arrow::array::AsArray as _;
use arrow::datatypes::Int64Type;
use catchment_columns::flow::{FlowBatch, FlowJob, FlowReceipt};
use catchment_columns::sonic::{AttributesAt, SonicBatch, SonicJob, SonicMapping};
use catchment_columns::{ColumnsError, Job, MAX_BATCH_RECORDS, OtapArrowRecords, Step, json};
use catchment_ipfix::sonic::{SessionRow, SonicLimits, SonicRejection, SonicSessionError, SonicSessions};
use catchment_ipfix::{Admitted, Limits, Session, Transport};
use catchment_loadgen::traffic::{DEFAULT_START_UNIX_NANO, SonicSession};
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;

use super::corpus::{Attributes, Content, Corpus};
use super::run::Tally;

/// What keeps messages from being decoded.
#[derive(Debug, thiserror::Error)]
pub(super) enum DecodeError {
    #[error(transparent)]
    Columns(#[from] ColumnsError),
    #[error(transparent)]
    Session(#[from] SonicSessionError),
    #[error(transparent)]
    Rejected(#[from] SonicRejection),
}

/// Decodes the messages of a corpus, with what it has learned in earlier passes.
pub(super) trait Decoder {
    /// Decodes all messages once and hands on the batches.
    fn pass(&mut self, batch: &mut dyn FnMut(OtapArrowRecords)) -> Result<(), DecodeError>;
}

/// The decoder of a corpus.
pub(super) fn decoder<'a>(corpus: &'a Corpus) -> Result<Box<dyn Decoder + 'a>, DecodeError> {
    match &corpus.content {
        Content::Flows => Ok(Box::new(Flows::new(corpus))),
        Content::Sonic(session, attributes) => Ok(Box::new(Sonic::new(corpus, session, *attributes)?)),
    }
}

/// Counts what a batch has: records with their octets and packets, or points with their values.
pub(super) fn tally(records: &OtapArrowRecords, tally: &mut Tally) -> Result<(), DecodeError> {
    if let Some(points) = records.get(ArrowPayloadType::NumberDataPoints) {
        let values = points.column_by_name("int_value").and_then(|values| values.as_primitive_opt::<Int64Type>());
        // Counters of 64 bits come as integers with a sign.
        let values = values.into_iter().flatten().flatten().map(i64::cast_unsigned);
        tally.items += points.num_rows() as u64;
        tally.sum = values.fold(tally.sum, u64::wrapping_add);
        return Ok(());
    }
    json::objects(records, |object| {
        let value = |key: &str| object["attributes"][key].as_u64().unwrap_or(0);
        tally.items += 1;
        tally.sum = tally.sum.wrapping_add(value("flow.io.bytes")).wrapping_add(value("flow.io.packets"));
    })?;
    Ok(())
}

/// Works a job off in the steps that it has on a shared thread.
fn run(mut job: impl Job, batch: &mut dyn FnMut(OtapArrowRecords)) -> Result<(), DecodeError> {
    let budget = job.budget();
    loop {
        match job.step(budget)? {
            Step::More => {}
            Step::Batch(records) => batch(records),
            Step::End => return Ok(()),
        }
    }
}

/// Flow records -> logs.
struct Flows<'a> {
    corpus: &'a Corpus,
    session: Session,
    admitted: Admitted,
    waiting: FlowBatch,
}

impl<'a> Flows<'a> {
    fn new(corpus: &'a Corpus) -> Self {
        let session = Session::new(Transport::Udp, Limits::default());
        Self { corpus, session, admitted: Admitted::default(), waiting: FlowBatch::default() }
    }

    fn decode(&mut self, batch: &mut dyn FnMut(OtapArrowRecords)) -> Result<(), DecodeError> {
        run(FlowJob::new(self.waiting.take()), batch)
    }
}

impl Decoder for Flows<'_> {
    fn pass(&mut self, batch: &mut dyn FnMut(OtapArrowRecords)) -> Result<(), DecodeError> {
        let exporter = Some(std::net::SocketAddr::from(([127, 0, 0, 1], 40_000)));
        let time_unix_nano = i64::try_from(DEFAULT_START_UNIX_NANO).unwrap_or(0);
        let corpus = self.corpus;
        for (message, _) in corpus.messages.iter() {
            self.admitted.clear();
            self.session.admit(message, &mut self.admitted);
            let _ = self.waiting.push(message, &mut self.admitted, FlowReceipt { time_unix_nano, exporter });
            if self.waiting.len() >= MAX_BATCH_RECORDS {
                self.decode(batch)?;
            }
        }
        self.decode(batch)
    }
}

/// Telemetry -> metrics.
struct Sonic<'a> {
    corpus: &'a Corpus,
    sessions: SonicSessions,
    waiting: SonicBatch,
    mapping: Arc<SonicMapping>,
}

impl<'a> Sonic<'a> {
    fn new(corpus: &'a Corpus, session: &SonicSession, attributes: Attributes) -> Result<Self, DecodeError> {
        let fields = session.fields.clone();
        let row = SessionRow {
            stream_status: fields.stream_status,
            session_type: fields.session_type,
            object_names: fields.object_names,
            object_ids: fields.object_ids,
            session_config: fields.session_config,
        };
        let mut sessions = SonicSessions::new(SonicLimits::default());
        let _ = sessions.apply(&session.key, &row)?;
        let attributes_at = match attributes {
            Attributes::Point => AttributesAt::Point,
            Attributes::Resource => AttributesAt::Resource,
        };
        let mapping = Arc::new(SonicMapping { attributes_at, ..SonicMapping::default() });
        Ok(Self { corpus, sessions, waiting: SonicBatch::default(), mapping })
    }
}

impl Decoder for Sonic<'_> {
    fn pass(&mut self, batch: &mut dyn FnMut(OtapArrowRecords)) -> Result<(), DecodeError> {
        let time_unix_nano = i64::try_from(DEFAULT_START_UNIX_NANO).unwrap_or(0);
        let corpus = self.corpus;
        for (message, _) in corpus.messages.iter() {
            let waiting = &mut self.waiting;
            self.sessions.admit(1, message, time_unix_nano, |records| waiting.push(1, records))?;
            if self.waiting.points() >= self.mapping.max_points {
                run(SonicJob::new(self.waiting.take(), Arc::clone(&self.mapping)), batch)?;
            }
        }
        run(SonicJob::new(self.waiting.take(), Arc::clone(&self.mapping)), batch)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::Setup;
    use super::*;

    /// All records of a corpus come out, in the first pass and in the next, and their counts are not nothing.
    #[test]
    fn everything() {
        let mut corpus = Corpus::named("flow-18", &Setup::default()).unwrap().unwrap();
        corpus.messages = super::super::super::messages::Messages::record(corpus.messages.source(), 10_000);
        let mut decoder = decoder(&corpus).unwrap();
        for _ in 0..2 {
            let mut found = Tally::default();
            decoder.pass(&mut |records| tally(&records, &mut found).unwrap()).unwrap();
            assert_eq!(found.items, corpus.messages.records());
            assert!(found.sum > found.items);
        }
    }
}
