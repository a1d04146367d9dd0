//! What waits for its batch: flow records or SONiC's, and the jobs that decode them.

use std::sync::Arc;

use catchment_columns::flow::{FlowBatch, FlowCounts, FlowJob, FlowMapping};
use catchment_columns::metrics::{FlowMetricsJob, MetricRules};
use catchment_columns::sonic::{SonicBatch, SonicJob, SonicMapping};
use catchment_columns::{Budget, ColumnsError, Job, Step, flow, sonic};
use otel_arrow_dfe_config::SignalType;

use super::config::Emit;
use crate::codecs::ipfix_batch::IPFIX_BATCH;
use crate::ingest::{Payload, Pending, Sampling};

/// Records of one kind, and what they will become.
pub(super) enum Collected {
    /// Flow records that become log records.
    Logs { batch: FlowBatch, mapping: FlowMapping, emit: Emit },
    /// Flow records that become metrics.
    Metrics { batch: FlowBatch, rules: Arc<MetricRules> },
    /// SONiC's records.
    Sonic { batch: SonicBatch, mapping: Arc<SonicMapping>, emit: Emit },
}

/// Sums over all jobs that have come to their end.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Decoded {
    pub(super) flows: FlowCounts,
    /// Values above what OTLP's integers hold, of metrics.
    pub(super) overflowed_points: u64,
}

/// Records that wait, and what was seen in those that do not any more.
pub(super) struct IpfixPending {
    pub(super) collected: Collected,
    /// Decides on flow records.
    pub(super) sampling: Option<Sampling>,
    pub(super) decoded: Decoded,
}

impl IpfixPending {
    pub(super) fn new(collected: Collected, sampling: Option<Sampling>) -> Self {
        Self { collected, sampling, decoded: Decoded::default() }
    }

    /// The flow records and what decides on further ones, unless the receiver takes SONiC's.
    pub(super) fn flows(&mut self) -> Option<(&mut FlowBatch, Option<&mut Sampling>)> {
        match &mut self.collected {
            Collected::Logs { batch, .. } | Collected::Metrics { batch, .. } => Some((batch, self.sampling.as_mut())),
            Collected::Sonic { .. } => None,
        }
    }

    /// SONiC's records, if the receiver takes those.
    pub(super) fn sonic(&mut self) -> Option<&mut SonicBatch> {
        match &mut self.collected {
            Collected::Sonic { batch, .. } => Some(batch),
            Collected::Logs { .. } | Collected::Metrics { .. } => None,
        }
    }
}

impl Pending for IpfixPending {
    type Job = IpfixJob;

    fn items(&self) -> usize {
        match &self.collected {
            Collected::Logs { batch, .. } | Collected::Metrics { batch, .. } => batch.len(),
            Collected::Sonic { batch, .. } => batch.points(),
        }
    }

    fn bytes(&self) -> usize {
        match &self.collected {
            Collected::Logs { batch, .. } | Collected::Metrics { batch, .. } => batch.bytes(),
            Collected::Sonic { batch, .. } => batch.bytes(),
        }
    }

    fn take_payload(&mut self) -> Payload<IpfixJob> {
        match &mut self.collected {
            Collected::Logs { batch, mapping, emit } => {
                let batch = batch.take();
                match emit {
                    Emit::Records => Payload::Job(IpfixJob::Logs(FlowJob::with_mapping(batch, mapping).into())),
                    Emit::Encoded => {
                        let part = |part: FlowBatch| (part.len() as u64, flow::encoded::encode(&part, mapping));
                        let parts = batch.split(mapping).into_iter().map(part);
                        Payload::Encoded(IPFIX_BATCH, SignalType::Logs, parts.collect())
                    }
                }
            }
            Collected::Metrics { batch, rules } => {
                Payload::Job(IpfixJob::Metrics(FlowMetricsJob::new(batch.take(), Arc::clone(rules)).into()))
            }
            Collected::Sonic { batch, mapping, emit } => {
                let batch = batch.take();
                match emit {
                    Emit::Records => Payload::Job(IpfixJob::Sonic(SonicJob::new(batch, Arc::clone(mapping)).into())),
                    Emit::Encoded => {
                        let part = |part: SonicBatch| (part.points() as u64, sonic::encoded::encode(&part, mapping));
                        let parts = batch.split(mapping).into_iter().map(part);
                        Payload::Encoded(IPFIX_BATCH, SignalType::Metrics, parts.collect())
                    }
                }
            }
        }
    }

    fn done(&mut self, job: &IpfixJob) {
        match job {
            IpfixJob::Logs(job) => add(&mut self.decoded.flows, &job.counts()),
            IpfixJob::Metrics(job) => self.decoded.overflowed_points += job.counts().overflowed,
            IpfixJob::Sonic(job) => self.decoded.overflowed_points += job.counts().overflowed,
        }
    }
}

/// A job of whichever kind.
pub(super) enum IpfixJob {
    Logs(Box<FlowJob>),
    Metrics(Box<FlowMetricsJob>),
    Sonic(Box<SonicJob>),
}

impl IpfixJob {
    fn inner(&self) -> &dyn Job {
        match self {
            Self::Logs(job) => job.as_ref(),
            Self::Metrics(job) => job.as_ref(),
            Self::Sonic(job) => job.as_ref(),
        }
    }

    fn inner_mut(&mut self) -> &mut dyn Job {
        match self {
            Self::Logs(job) => job.as_mut(),
            Self::Metrics(job) => job.as_mut(),
            Self::Sonic(job) => job.as_mut(),
        }
    }
}

impl Job for IpfixJob {
    fn step(&mut self, budget: Budget) -> Result<Step, ColumnsError> {
        self.inner_mut().step(budget)
    }

    fn budget(&self) -> Budget {
        self.inner().budget()
    }

    fn items_in_batch(&self) -> Option<u64> {
        self.inner().items_in_batch()
    }

    fn unused_items(&self) -> u64 {
        self.inner().unused_items()
    }
}

fn add(sum: &mut FlowCounts, more: &FlowCounts) {
    let FlowCounts { records, options_left_out, opaque_values, unknown_values, unknown_list_parts, overflowed_values } =
        more;
    sum.records += records;
    sum.options_left_out += options_left_out;
    sum.opaque_values += opaque_values;
    sum.unknown_values += unknown_values;
    sum.unknown_list_parts += unknown_list_parts;
    sum.overflowed_values += overflowed_values;
}

#[cfg(test)]
mod tests;
