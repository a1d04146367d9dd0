//! Head sampling of data sets: which records are copied into the batch at all.

use std::net::IpAddr;
use std::ops::AddAssign;
use std::sync::Arc;

use catchment_ipfix::{Admitted, DataSet, Kind, MessageInfo, Record, Records, Template};
use catchment_sampling::{Decision, Facts as SampledFacts, Flow, FlowRecord, Run, Sampler, Threshold};

use super::batch::{FlowBatch, FlowReceipt, Set};
use super::facts::Facts;

/// How many records were kept and dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sampled {
    /// Records that are in the batch.
    pub kept: usize,
    /// Records that the sampler has dropped.
    pub dropped: usize,
}

impl AddAssign for Sampled {
    fn add_assign(&mut self, more: Self) {
        self.kept += more.kept;
        self.dropped += more.dropped;
    }
}

impl FlowBatch {
    /// As [`FlowBatch::push`], but of the flow records only those that `sampler` keeps. Options data is not sampled: later
    /// records need it. `now` is the time of receipt as [`Sampler::decide`] takes it.
    ///
    /// Dropped records of fixed length are skipped by counting, those with values of variable length by walking over them.
    pub fn push_sampled(
        &mut self,
        datagram: &[u8],
        admitted: &mut Admitted,
        receipt: FlowReceipt,
        sampler: &mut Sampler,
        now: u64,
    ) -> Sampled {
        let mut sum = Sampled::default();
        let messages = &admitted.messages;
        for data in admitted.sets.drain(..) {
            if let Some(message) = messages.get(data.message) {
                sum += self.add_sampled(datagram, message, receipt, data, sampler, now);
            }
        }
        sum
    }

    /// As [`FlowBatch::push_released`], but of the flow records only those that `sampler` keeps.
    pub fn push_released_sampled(
        &mut self,
        content: &[u8],
        message: &MessageInfo,
        receipt: FlowReceipt,
        set: DataSet,
        sampler: &mut Sampler,
        now: u64,
    ) -> Sampled {
        self.add_sampled(content, message, receipt, set, sampler, now)
    }

    fn add_sampled(
        &mut self,
        content: &[u8],
        message: &MessageInfo,
        receipt: FlowReceipt,
        data: DataSet,
        sampler: &mut Sampler,
        now: u64,
    ) -> Sampled {
        if data.kind() == Kind::Options {
            let kept = self.add(content, message, receipt, data, Threshold::KEEP_ALL);
            return Sampled { kept, dropped: 0 };
        }
        let bytes = content.get(data.range.clone()).filter(|_| data.records > 0);
        let Some(bytes) = bytes else { return Sampled::default() };
        let exporter = receipt.exporter.map(|exporter| exporter.ip().to_canonical());
        let facts = FlowRecord { exporter, domain: message.domain, flow: Flow::default() };
        if sampler.varies_by_record() {
            let mut kept = Kept { batch: self, data: &data, message, receipt, open: None };
            let fields = data.template.attached(FlowFields::KEY, FlowFields::new);
            return kept.each(Records::new(&data.template, bytes), &fields, facts, sampler, now);
        }
        let first = sampler.run(&facts, data.records as u64, now);
        if first.records >= data.records as u64 {
            // All records have one fate, as they often do.
            return match first.decision {
                Decision::Drop { .. } => Sampled { kept: 0, dropped: data.records },
                Decision::Keep { weight } => {
                    let threshold = sampler.weight(weight).threshold();
                    Sampled { kept: self.add(content, message, receipt, data, threshold), dropped: 0 }
                }
            };
        }
        let mut kept = Kept { batch: self, data: &data, message, receipt, open: None };
        match data.template.fixed_record_length() {
            Some(length) => kept.runs(first, bytes, |run, at| at + run * length, facts, sampler, now),
            None => {
                let mut records = Records::new(&data.template, bytes);
                let skip = |run, _| {
                    records.by_ref().take(run).for_each(drop);
                    records.position()
                };
                kept.runs(first, bytes, skip, facts, sampler, now)
            }
        }
    }
}

/// The kept records of one data set on their way into the batch.
struct Kept<'k> {
    batch: &'k mut FlowBatch,
    data: &'k DataSet,
    message: &'k MessageInfo,
    receipt: FlowReceipt,
    /// Where the set is that the last kept records went into.
    open: Option<usize>,
}

impl Kept<'_> {
    /// Records that share all that is asked for, in runs of one fate, of which the first is decided. `end` gives where so many
    /// records end that begin at a position.
    #[inline]
    fn runs(
        &mut self,
        first: Run,
        bytes: &[u8],
        mut end: impl FnMut(usize, usize) -> usize,
        facts: FlowRecord<'_>,
        sampler: &mut Sampler,
        now: u64,
    ) -> Sampled {
        let mut sum = Sampled::default();
        let (mut left, mut at) = (self.data.records, 0);
        let mut run = first;
        loop {
            let records = usize::try_from(run.records).map_or(left, |records| records.clamp(1, left));
            let next = end(records, at);
            match run.decision {
                Decision::Drop { .. } => sum.dropped += records,
                Decision::Keep { weight } => {
                    let threshold = sampler.weight(weight).threshold();
                    self.keep(bytes.get(at..next).unwrap_or_default(), records, threshold);
                    sum.kept += records;
                }
            }
            left -= records;
            if left == 0 {
                return sum;
            }
            at = next;
            run = sampler.run(&facts, left as u64, now);
        }
    }

    /// Records that differ in what is asked for, each by itself.
    fn each(
        &mut self,
        records: Records<'_, '_>,
        fields: &FlowFields,
        of_set: FlowRecord<'_>,
        sampler: &mut Sampler,
        now: u64,
    ) -> Sampled {
        let mut sum = Sampled::default();
        for record in records.take(self.data.records) {
            match sampler.decide(&OfRecord { of_set, fields, record }, now) {
                Decision::Drop { .. } => sum.dropped += 1,
                Decision::Keep { weight } => {
                    let threshold = sampler.weight(weight).threshold();
                    self.keep(record.bytes(), 1, threshold);
                    sum.kept += 1;
                }
            }
        }
        sum
    }

    /// Adds kept records to the set of those before, or to a new one if they stand for another number.
    fn keep(&mut self, bytes: &[u8], records: usize, threshold: Threshold) {
        let batch = &mut *self.batch;
        let start = batch.arena.len();
        batch.arena.extend_from_slice(bytes);
        let end = batch.arena.len();
        batch.records += records;
        if let Some(set) = self.open.and_then(|open| batch.sets.get_mut(open))
            && set.threshold == threshold
        {
            set.records += records;
            set.bytes.end = end;
            return;
        }
        self.open = Some(batch.sets.len());
        batch.sets.push(Set {
            template: Arc::clone(&self.data.template),
            sub_templates: self.data.sub_templates.clone(),
            facts: Facts::new(self.data.knowledge.clone()),
            records,
            bytes: start..end,
            message: *self.message,
            receipt: self.receipt,
            threshold,
        });
    }
}

/// Facts of one record, of which the flow is looked up when it is asked for.
struct OfRecord<'r> {
    of_set: FlowRecord<'r>,
    fields: &'r FlowFields,
    record: Record<'r, 'r>,
}

impl SampledFacts for OfRecord<'_> {
    fn source(&self) -> Option<IpAddr> {
        self.of_set.exporter
    }

    fn domain(&self) -> Option<u32> {
        Some(self.of_set.domain)
    }

    fn flow(&self) -> Option<Flow<'_>> {
        Some(self.fields.flow(&self.record))
    }
}

/// Which fields of a template name a flow. Of several that do, best first.
#[derive(Debug)]
struct FlowFields {
    source_addresses: Vec<usize>,
    destination_addresses: Vec<usize>,
    source_ports: Vec<usize>,
    destination_ports: Vec<usize>,
    protocols: Vec<usize>,
}

impl FlowFields {
    /// Among what is kept with a template, by type and key.
    const KEY: u64 = 0;

    fn new(template: &Template) -> Self {
        let find = |wanted: &[(u16, u16)]| {
            let of_element = |(id, longest): &(u16, u16)| {
                let is_it = |field: &catchment_ipfix::FieldSpec| {
                    field.is_iana(*id) && !field.scope && !field.reverse && field.length <= *longest
                };
                template.fields().iter().position(is_it)
            };
            wanted.iter().filter_map(of_element).collect()
        };
        Self {
            source_addresses: find(&[(8, 4), (27, 16)]),
            destination_addresses: find(&[(12, 4), (28, 16)]),
            source_ports: find(&[(7, 2), (182, 2), (180, 2)]),
            destination_ports: find(&[(11, 2), (183, 2), (181, 2)]),
            protocols: find(&[(4, 1)]),
        }
    }

    /// The flow of a record. Exporters fill what does not apply with zeros, so the first that is not zero counts, if one is.
    fn flow<'a>(&self, record: &Record<'_, 'a>) -> Flow<'a> {
        let value = |fields: &[usize]| {
            let mut values = fields.iter().filter_map(|field| record.field(*field));
            let first = values.next().unwrap_or_default();
            let is_told = |value: &&[u8]| value.iter().any(|byte| *byte != 0);
            Some(first).filter(is_told).or_else(|| values.find(is_told)).unwrap_or(first)
        };
        Flow {
            source_address: value(&self.source_addresses),
            destination_address: value(&self.destination_addresses),
            source_port: value(&self.source_ports),
            destination_port: value(&self.destination_ports),
            protocol: value(&self.protocols),
        }
    }
}
