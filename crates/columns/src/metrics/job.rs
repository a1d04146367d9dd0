//! The decode job: a [`FlowBatch`] in, metrics out.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use catchment_ipfix::{DecodeContext, FieldSpec, Record, Records, Value, decode, flow_times, protocol_name};
use rustc_hash::FxHashMap;

use super::plan::{Plan, Plans, RulePlan};
use super::rules::{MetricKind, MetricRules};
use super::table::{AttributeValue, Number, Point, PointTable, Unfinished};
use crate::flow::FlowBatch;
use crate::flow::sets::{SetView, mac_text};
use crate::sonic::U64Overflow;
use crate::{Budget, ColumnsError, Job, MAX_BATCH_RECORDS, SMALL_BYTES, SMALL_RECORDS, Step};

/// protocolIdentifier of the IANA registry, which is told by its name.
const PROTOCOL: u16 = 4;

const NANOS_PER_MILLI: i64 = 1_000_000;

/// What a job has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FlowMetricsCounts {
    /// Records looked at.
    pub records: u64,
    /// Those of them that no rule is about; dropped.
    pub unmatched: u64,
    /// Points made of the others.
    pub points: u64,
    /// Points whose value was above the range of OTLP's integers.
    pub overflowed: u64,
}

/// An exporter and one of its observation domains.
type LaneKey = (Option<IpAddr>, u32);

/// Turns the records of a batch into metrics, one exporter and observation domain after the other.
pub struct FlowMetricsJob {
    batch: FlowBatch,
    rules: Arc<MetricRules>,
    plans: Plans,
    /// Lanes with their data sets, in the order in which they came.
    lanes: Vec<(LaneKey, Vec<usize>)>,
    lane: usize,
    /// Position among the sets of the lane.
    set: usize,
    /// Position in the set, in bytes.
    position: usize,
    table: PointTable,
    /// The lane that the points in the table belong to.
    of_table: LaneKey,
    unfinished: Option<Unfinished>,
    counts: FlowMetricsCounts,
    /// Records that the batches given out so far stand for, and the last of them.
    given: (u64, u64),
}

impl FlowMetricsJob {
    /// A job that has not begun.
    #[must_use]
    pub fn new(batch: FlowBatch, rules: Arc<MetricRules>) -> Self {
        let mut lanes: Vec<(LaneKey, Vec<usize>)> = Vec::new();
        let mut index: FxHashMap<LaneKey, usize> = FxHashMap::default();
        for number in 0.. {
            let Some(set) = batch.set(number) else { break };
            let key = (set.receipt.exporter.map(|exporter| exporter.ip().to_canonical()), set.message.domain);
            let lane = *index.entry(key).or_insert_with(|| {
                lanes.push((key, Vec::new()));
                lanes.len() - 1
            });
            lanes[lane].1.push(number);
        }
        Self {
            batch,
            rules,
            plans: Plans::default(),
            lanes,
            lane: 0,
            set: 0,
            position: 0,
            table: PointTable::default(),
            of_table: (None, 0),
            unfinished: None,
            counts: FlowMetricsCounts::default(),
            given: (0, 0),
        }
    }

    /// What has been done so far.
    #[must_use]
    pub fn counts(&self) -> FlowMetricsCounts {
        self.counts
    }

    /// Turns records of the lane into points until the budget is used up, the batch is full or the lane is at its end. Gives
    /// whether there is a batch to finish, and `None` if there is more to do first.
    fn collect(&mut self, budget: Budget) -> Option<bool> {
        let (mut records, mut bytes) = (0, 0);
        while let Some((key, sets)) = self.lanes.get(self.lane) {
            self.of_table = *key;
            let Some(set) = sets.get(self.set).and_then(|number| self.batch.set(*number)) else {
                (self.lane, self.set) = (self.lane + 1, 0);
                match self.table.points.is_empty() {
                    true => continue,
                    false => return Some(true),
                }
            };
            let plan = self.plans.of(set.template, &self.rules);
            let mut writer = Writer { table: &mut self.table, counts: &mut self.counts, way: self.rules.u64_overflow };
            let context = set.context();
            let mut cursor = Records::resume(set.template, set.bytes, self.position);
            loop {
                if writer.table.points.len() >= MAX_BATCH_RECORDS {
                    return Some(true);
                }
                if records > 0 && (records >= budget.records || bytes >= budget.bytes) {
                    return None;
                }
                let Some(record) = cursor.next() else { break };
                writer.record(&record, &plan, &self.plans, &set, &context);
                records += 1;
                bytes += record.bytes().len();
                self.position = cursor.position();
            }
            (self.set, self.position) = (self.set + 1, 0);
        }
        Some(!self.table.points.is_empty())
    }
}

impl Job for FlowMetricsJob {
    fn budget(&self) -> Budget {
        let is_small = self.batch.len() <= SMALL_RECORDS && self.batch.bytes() <= SMALL_BYTES;
        if is_small { Budget::UNLIMITED } else { Budget::default() }
    }

    fn items_in_batch(&self) -> Option<u64> {
        Some(self.given.1)
    }

    fn unused_items(&self) -> u64 {
        self.counts.unmatched
    }

    fn step(&mut self, budget: Budget) -> Result<Step, ColumnsError> {
        loop {
            if let Some(unfinished) = &mut self.unfinished {
                match unfinished.step(&self.plans.metrics, &self.plans.names) {
                    Ok(Some(batch)) => {
                        self.unfinished = None;
                        let records = self.counts.records - self.counts.unmatched;
                        self.given = (records, records - self.given.0);
                        return Ok(Step::Batch(batch));
                    }
                    Ok(None) if budget == Budget::UNLIMITED => continue,
                    Ok(None) => return Ok(Step::More),
                    Err(error) => {
                        self.unfinished = None;
                        return Err(error);
                    }
                }
            }
            match self.collect(budget) {
                None => return Ok(Step::More),
                Some(false) => return Ok(Step::End),
                Some(true) => {
                    let (exporter, domain) = self.of_table;
                    let exporter = exporter.map(|address| address.to_string());
                    let table = std::mem::take(&mut self.table);
                    self.unfinished = Some(Unfinished::new(table, &self.plans.metrics, exporter, domain));
                    if budget != Budget::UNLIMITED {
                        return Ok(Step::More);
                    }
                }
            }
        }
    }
}

impl std::fmt::Debug for FlowMetricsJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FlowMetricsJob").field("lane", &self.lane).field("set", &self.set).finish_non_exhaustive()
    }
}

/// Writes points of records.
struct Writer<'a> {
    table: &'a mut PointTable,
    counts: &'a mut FlowMetricsCounts,
    way: U64Overflow,
}

impl Writer<'_> {
    fn record(
        &mut self,
        record: &Record<'_, '_>,
        plan: &Plan,
        plans: &Plans,
        set: &SetView<'_>,
        context: &DecodeContext,
    ) {
        self.counts.records += 1;
        let before = self.table.points.len();
        if !plan.rules.is_empty() {
            let times = flow_times(record, context);
            let exported = Some(set.message.export_time_unix_nano).filter(|time| *time != 0);
            let time = times.end_unix_nano.or(times.start_unix_nano).or(exported).unwrap_or(set.receipt.time_unix_nano);
            for rule in &plan.rules {
                let mut attributes = None;
                for (at, metric) in &rule.counters {
                    let Some(mut value) = self.value(record, *at, context) else { continue };
                    let attributes = attributes.get_or_insert_with(|| self.keys(record, rule, context)).clone();
                    let kind = plans.metrics.get(usize::from(*metric)).map(|metric| metric.kind);
                    // A delta stands for those of the records that a sampler has dropped too. Of what is absolute nothing is
                    // lost with a record but a look at it.
                    if kind == Some(MetricKind::Delta) {
                        value = value.times(set.threshold);
                    }
                    let start = match kind {
                        Some(MetricKind::Delta) => times.start_unix_nano,
                        Some(MetricKind::Cumulative) => system_init(record, plan, context),
                        _ => None,
                    };
                    // A sum that ends before it began would be refused.
                    let start_unix_nano = start.filter(|start| *start <= time);
                    let point = Point { metric: *metric, start_unix_nano, time_unix_nano: time, value, attributes };
                    self.table.points.push(point);
                }
            }
        }
        let points = self.table.points.len() - before;
        self.counts.points += points as u64;
        self.counts.unmatched += u64::from(points == 0);
    }

    /// The value of a counter; `None` if there is none or it is no number.
    fn value(&mut self, record: &Record<'_, '_>, at: usize, context: &DecodeContext) -> Option<Number> {
        let (field, bytes) = field_of(record, at)?;
        let number = match decode(field, bytes, context) {
            Value::Unsigned(number) => number,
            Value::Signed(number) => return Some(Number::Int(number)),
            Value::Float(number) => return Some(Number::Double(number)),
            // A rule vouches for elements that the tables do not know.
            Value::Bytes(bytes) if field.element.is_none() && (1..=8).contains(&bytes.len()) => {
                bytes.iter().fold(0, |number, byte| (number << 8) | u64::from(*byte))
            }
            _ => return None,
        };
        if let Ok(number) = i64::try_from(number) {
            return Some(Number::Int(number));
        }
        self.counts.overflowed += 1;
        #[allow(clippy::cast_precision_loss, reason = "the nearest is asked for")]
        Some(match self.way {
            U64Overflow::Saturate => Number::Int(i64::MAX),
            U64Overflow::Double => Number::Double(number as f64),
        })
    }

    /// The attributes that the keys of a rule give.
    fn keys(&mut self, record: &Record<'_, '_>, rule: &RulePlan, context: &DecodeContext) -> Range<usize> {
        let start = self.table.attributes.len();
        for (at, name) in &rule.keys {
            let Some((field, bytes)) = field_of(record, *at) else { continue };
            let value = match decode(field, bytes, context) {
                Value::Unsigned(number) if field.is_iana(PROTOCOL) => self.text(protocol(number).as_bytes()),
                Value::Unsigned(number) => match i64::try_from(number) {
                    Ok(number) => AttributeValue::Int(number),
                    // A label keeps all its digits.
                    Err(_) => self.text(number.to_string().as_bytes()),
                },
                Value::Signed(number) | Value::TimeUnixNano(number) => AttributeValue::Int(number),
                Value::Float(number) => AttributeValue::Double(number),
                Value::Boolean(truth) => AttributeValue::Bool(truth),
                Value::Mac(octets) => self.text(&mac_text(octets)),
                Value::Ipv4(address) => self.text(address.to_string().as_bytes()),
                Value::Ipv6(address) => self.text(address.to_string().as_bytes()),
                Value::Text(text) => self.text(&crate::text::utf8(text)),
                Value::Bytes(bytes) | Value::Opaque(bytes) => AttributeValue::Bytes(self.table.store(bytes)),
                Value::List(_) | Value::Absent => continue,
            };
            self.table.attributes.push((*name, value));
        }
        start..self.table.attributes.len()
    }

    fn text(&mut self, text: &[u8]) -> AttributeValue {
        AttributeValue::Text(self.table.store(text))
    }
}

fn field_of<'t, 'a>(record: &Record<'t, 'a>, at: usize) -> Option<(&'t FieldSpec, &'a [u8])> {
    Some((record.template().fields().get(at)?, record.field(at)?))
}

fn protocol(number: u64) -> String {
    let name = u8::try_from(number).ok().and_then(protocol_name);
    name.map_or_else(|| number.to_string(), str::to_owned)
}

/// When the exporter started: by the header of NetFlow, the record, or what options data has told.
fn system_init(record: &Record<'_, '_>, plan: &Plan, context: &DecodeContext) -> Option<i64> {
    if let Some(uptime) = context.uptime_ms {
        return context.export_time_unix_nano.checked_sub(i64::from(uptime).checked_mul(NANOS_PER_MILLI)?);
    }
    let field = plan.system_init.and_then(|at| field_of(record, at));
    match field.map(|(field, bytes)| decode(field, bytes, context)) {
        Some(Value::TimeUnixNano(time)) => Some(time),
        _ => context.system_init_unix_nano,
    }
}
