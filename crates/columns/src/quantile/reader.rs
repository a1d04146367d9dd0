//! The reader: a query made ready, and what it learned from earlier batches.

use std::hash::BuildHasher;

use otel_arrow_dfe_pdata::OtapArrowRecords;
use rustc_hash::FxBuildHasher;

use super::intern::{Interner, Stamped};
use super::observations::Observations;
use super::otlp::{self, Memo, OtlpError, OtlpSignal};
use super::query::{AttributePath, Place, Query, ValueSource};
use super::records::{self, Scratch};
use super::series::SeriesKey;
use crate::ColumnsError;

/// Reads observations out of batches. It remembers values and series of earlier batches, so that a series that comes
/// again costs a look-up of small numbers and no comparison of texts.
#[derive(Debug)]
pub struct Reader {
    pub(super) query: Query,
    pub(super) bound: Bindings,
    pub(super) interner: Interner,
    pub(super) scratch: Scratch,
    pub(super) memo: Memo,
    /// Number in the batch of each known series.
    pub(super) group_of_series: Stamped,
}

/// Number of the place in tables by place.
pub(super) const RESOURCE: usize = 0;
pub(super) const SCOPE: usize = 1;
pub(super) const RECORD: usize = 2;

/// A path, by the number of its key among the wanted keys of its place.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub(super) place: usize,
    pub(super) key: usize,
    pub(super) steps: Vec<String>,
}

/// The attributes a query asks for.
#[derive(Debug)]
pub(super) struct Bindings {
    /// Keys by place, each once.
    pub(super) wanted: [Vec<String>; 3],
    /// Of log records.
    pub(super) value: Option<Bound>,
    pub(super) weight: Option<Bound>,
    pub(super) group_by: Vec<Bound>,
}

impl Bindings {
    fn new(query: &Query) -> Self {
        let mut wanted: [Vec<String>; 3] = Default::default();
        let mut bind = |path: &AttributePath| {
            let place = match path.place {
                Place::Resource => RESOURCE,
                Place::Scope => SCOPE,
                Place::Record => RECORD,
            };
            let keys = &mut wanted[place];
            let key = keys.iter().position(|key| *key == path.key).unwrap_or_else(|| {
                keys.push(path.key.clone());
                keys.len() - 1
            });
            Bound { place, key, steps: path.steps.clone() }
        };
        let value = match &query.source {
            ValueSource::LogAttribute { attribute, .. } => Some(bind(attribute)),
            ValueSource::Metric { .. } => None,
        };
        let weight = query.weight_from.as_ref().map(&mut bind);
        let group_by = query.group_by.iter().map(&mut bind).collect();
        Self { wanted, value, weight, group_by }
    }

    /// A hash of the grouping values of resource and scope, given by their numbers; 0 if there are none.
    pub(super) fn hash_owner(&self, numbers: &[u32]) -> u64 {
        let mut hash = 0;
        for (bound, number) in self.group_by.iter().zip(numbers).filter(|(bound, _)| bound.place != RECORD) {
            hash = FxBuildHasher.hash_one((hash, bound.place, number)) | 1;
        }
        hash
    }
}

impl Reader {
    /// A reader that remembers up to `capacity` values and as many series from batch to batch, 8 MiB of texts and 2 MiB of
    /// attributes in the form in which they came. In one batch there can be more: memory is bounded by the capacity and the
    /// largest batch.
    #[must_use]
    pub fn new(query: Query, capacity: usize) -> Self {
        Self {
            bound: Bindings::new(&query),
            interner: Interner::new(query.group_by.len(), capacity),
            scratch: Scratch::default(),
            memo: Memo::new(capacity),
            group_of_series: Stamped::default(),
            query,
        }
    }

    /// What it reads.
    #[must_use]
    pub const fn query(&self) -> &Query {
        &self.query
    }

    /// The series of a number in [`Observations::series`], until the next reading. It is made for this call.
    ///
    /// # Panics
    /// If there is no such number.
    #[must_use]
    pub fn series(&self, number: u32) -> SeriesKey {
        self.interner.series(number)
    }

    /// Numbers of series mean the same for as long as this is the same: what is kept by them need not be looked up again.
    /// It changes with a reading, when there were too many series.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.interner.generation()
    }

    /// Reads the observations of `records` into `out`, in place of what is there. Ids may be encoded as for transport or not,
    /// as the metadata of their columns says.
    ///
    /// `now_unix_nano` is the time of points where `TimeSource::Observed` asks for a time that they do not have, and of
    /// records without any time. Every log record or number point has a [`Fate`](super::Fate); other signals and other
    /// kinds of points are not looked at.
    ///
    /// # Errors
    /// [`ColumnsError::Otap`] if a table lacks a column or has one of a wrong type; nothing is observed then.
    pub fn read_records(
        &mut self,
        records: &OtapArrowRecords,
        now_unix_nano: i64,
        out: &mut Observations,
    ) -> Result<(), ColumnsError> {
        out.clear();
        self.interner.begin();
        records::read(self, records, now_unix_nano, out).inspect_err(|_| out.clear())
    }

    /// Reads the observations of an OTLP request (`ExportLogsServiceRequest` or `ExportMetricsServiceRequest`, protobuf)
    /// into `out`, in place of what is there: the same as [`Reader::read_records`] reads after the conversion to OTAP.
    ///
    /// # Errors
    /// [`OtlpError`] if what has to be looked at is not valid protobuf; nothing is observed then.
    pub fn read_otlp(
        &mut self,
        signal: OtlpSignal,
        request: &[u8],
        now_unix_nano: i64,
        out: &mut Observations,
    ) -> Result<(), OtlpError> {
        out.clear();
        self.interner.begin();
        otlp::read(self, signal, request, now_unix_nano, out).inspect_err(|_| out.clear())
    }
}

#[cfg(test)]
mod tests;
