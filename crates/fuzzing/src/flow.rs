//! Targets for data sets of many exporters on their way to logs and to metrics.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use catchment_columns::flow::{
    Biflow, Enumerations, ExporterAt, FlowBatch, FlowJob, FlowMapping, FlowReceipt, FlowSchema, OptionsData,
    SamplingUse, TimeForm, U64Overflow, encoded,
};
use catchment_columns::metrics::{ElementRef, FlowMetricsJob, MetricKind, MetricRule, MetricRules};
use catchment_columns::{Budget, Job, ParentIds, sonic};
use catchment_ipfix::{
    Admitted, Collector, CollectorLimits, Limits, PendingLimits, SessionKey, TemplateScope, TimeEncoding,
};

use crate::ipfix_collector::key;
use crate::jobs::{Output, run, steps};

/// Time of the first receipt: 2026-11-30T12:00:00Z.
const NOON: i64 = 1_796_040_000_000_000_000;

/// Rules of all kinds: counters by name, a metric with a name of its own, keys that most records do not have, reverse
/// elements, and elements that only their number tells.
static RULES: LazyLock<[Arc<MetricRules>; 4]> = LazyLock::new(|| {
    let named = |names: &[&str]| names.iter().map(|name| ElementRef::Name((*name).to_owned())).collect::<Vec<_>>();
    let numbered = |enterprise, ids: &[u16]| ids.iter().map(|&id| ElementRef::Number { enterprise, id }).collect();
    let rule =
        |elements, kind, name: Option<&str>, keys| MetricRule { elements, kind, name: name.map(str::to_owned), keys };
    let counters = rule(
        named(&["octetDeltaCount", "packetDeltaCount"]),
        MetricKind::Auto,
        None,
        named(&["sourceIPv4Address", "sourceIPv6Address", "protocolIdentifier", "applicationId"]),
    );
    let reverse = rule(named(&["reverseOctetDeltaCount"]), MetricKind::Delta, Some("back"), named(&["interfaceName"]));
    let all: Vec<u16> = (1..=64).chain(130..=140).chain(150..=162).collect();
    let of_all = rule(numbered(0, &all), MetricKind::Gauge, None, numbered(0, &[1, 8, 12, 82, 291]));
    let of_enterprise = rule(numbered(9, &[1, 5]), MetricKind::Cumulative, None, numbered(9, &[1]));
    let rules = |rules: &[MetricRule], overflow| Arc::new(MetricRules::new(rules, overflow).expect("sensible rules"));
    [
        rules(&[], sonic::U64Overflow::Saturate),
        rules(&[counters.clone(), reverse.clone()], sonic::U64Overflow::Saturate),
        rules(&[of_all], sonic::U64Overflow::Double),
        rules(&[of_enterprise, reverse, counters], sonic::U64Overflow::Double),
    ]
});

/// Decodes a batch in several ways. Three bytes choose the settings (see `mapping`), two the budget (records, and bytes
/// in units of 16); then come the datagrams, as for `ipfix_collector`.
///
/// Asserted: the batches stand for all records but those that nobody wants; steps of the budget give what one run gives,
/// and a bounded number of steps does; parent ids of both kinds read the same; a payload gives the same elsewhere; and
/// batches of one exporter each hold the same records.
pub fn flow_job(input: &[u8]) {
    let Some((&[one, two, three, records, bytes], rest)) = input.split_first_chunk() else {
        return;
    };
    let mapping = mapping([one, two, three]);
    let batch = || batch(three & 128 != 0, rest);
    let count = batch().len();
    let whole = logs(batch(), &mapping);
    let budget = Budget { records: usize::from(records), bytes: 16 * usize::from(bytes) };
    let mut job = FlowJob::with_mapping(batch(), &mapping);
    let stepped = steps(&mut job, budget, count);
    assert_eq!(stepped.items + job.unused_items(), count as u64, "{mapping:?} {budget:?}");
    assert_eq!(stepped.objects, whole, "{mapping:?} {budget:?}");
    assert!(job.counts().options_left_out == 0 || mapping.options == OptionsData::Use);

    let transport = FlowMapping { parent_ids: ParentIds::Transport, ..mapping };
    assert_eq!(logs(batch(), &transport), whole, "{mapping:?}");

    let payload = encoded::encode(&batch(), &mapping);
    assert_eq!(encoded::count(&payload), Some(count));
    let (decoded, read) = encoded::decode(&payload).expect("a payload that was just made");
    assert_eq!((decoded.len(), read), (count, mapping));
    assert_eq!(logs(decoded, &read), whole, "{mapping:?}");

    let other = FlowMapping { per_exporter: !mapping.per_exporter, ..mapping };
    let (mut whole, mut sorted) = (whole, logs(batch(), &other));
    whole.sort_unstable();
    sorted.sort_unstable();
    assert_eq!(sorted, whole, "{mapping:?}");
}

/// Reads `input` as a payload of `ipfix-batch-v1`.
///
/// Asserted: what is refused says why; what is taken has no more records and bytes than `input` has room for, and as many
/// records as were counted without decoding; and written again it is the same batch, to the byte from then on.
pub fn flow_encoded(input: &[u8]) {
    let count = encoded::count(input);
    let (batch, mapping) = match encoded::decode(input) {
        Ok(decoded) => decoded,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let records = batch.len();
    assert_eq!(count, Some(records));
    assert!(records <= batch.bytes() && batch.bytes() <= input.len());
    let again = encoded::encode(&batch, &mapping);
    let (batch_again, mapping_again) = encoded::decode(&again).expect("a payload that was just made");
    assert_eq!(mapping_again, mapping);
    assert_eq!(encoded::encode(&batch_again, &mapping_again), again);
    assert_eq!(logs(batch_again, &mapping), logs(batch, &mapping));
}

/// Makes metrics of a batch. The first byte chooses the rules, two more the budget; then come the datagrams, as for
/// `ipfix_collector`.
///
/// Asserted: every record is looked at once; those that gave points and those that did not are all; as many points come
/// out as were counted; and steps of the budget give what one run gives.
pub fn flow_metrics(input: &[u8]) {
    let Some((&[choice, records, bytes], rest)) = input.split_first_chunk() else {
        return;
    };
    let rules = &RULES[usize::from(choice & 3)];
    let batch = || batch(choice & 128 != 0, rest);
    let count = batch().len();
    let mut job = FlowMetricsJob::new(batch(), Arc::clone(rules));
    let whole = run(&mut job);
    let counts = job.counts();
    assert_eq!(counts.records, count as u64);
    assert_eq!(counts.unmatched, job.unused_items());
    assert_eq!(whole.items + counts.unmatched, count as u64);
    assert_eq!(whole.objects.len() as u64, counts.points);
    assert!(counts.overflowed <= counts.points);

    let budget = Budget { records: usize::from(records), bytes: 16 * usize::from(bytes) };
    let mut job = FlowMetricsJob::new(batch(), Arc::clone(rules));
    let stepped = steps(&mut job, budget, count);
    assert_eq!(job.counts(), counts);
    assert_eq!(stepped, whole, "{budget:?}");
}

/// Settings, a bit each where there are two and two bits where there are three.
fn mapping([one, two, three]: [u8; 3]) -> FlowMapping {
    FlowMapping {
        schema: if one & 1 == 0 { FlowSchema::Otel } else { FlowSchema::Ipfix },
        enumerations: if one & 2 == 0 { Enumerations::Names } else { Enumerations::Numbers },
        times: if one & 4 == 0 { TimeForm::UnixNano } else { TimeForm::Rfc3339 },
        sampling: if one & 8 == 0 { SamplingUse::Keep } else { SamplingUse::Apply },
        biflow: if one & 16 == 0 { Biflow::One } else { Biflow::Two },
        exporter_at: if one & 32 == 0 { ExporterAt::Record } else { ExporterAt::Resource },
        list_semantics: one & 64 != 0,
        per_exporter: one & 128 != 0,
        options: [OptionsData::Both, OptionsData::Emit, OptionsData::Use][usize::from(two) % 3],
        u64_overflow: [U64Overflow::Double, U64Overflow::String, U64Overflow::Saturate][usize::from(two / 3) % 3],
        time_encoding: [TimeEncoding::Auto, TimeEncoding::Ntp, TimeEncoding::UnixNano][usize::from(three & 127) % 3],
        parent_ids: ParentIds::Plain,
    }
}

/// The records of datagrams of several exporters, which come as for `ipfix_collector`: each behind its sender, the seconds
/// before it and its length in four bytes. Data waits for its template.
fn batch(shares_ports: bool, mut rest: &[u8]) -> FlowBatch {
    let mut collector = Collector::new(CollectorLimits {
        // Fields without bytes make records that are slow to print.
        session: Limits { max_empty_fields: 4, ..Limits::default() },
        template_scope: if shares_ports { TemplateScope::Address } else { TemplateScope::Session },
        pending: Some(PendingLimits::default()),
        ..CollectorLimits::default()
    });
    let (mut clock, mut admitted, mut batch) = (0_i64, Admitted::default(), FlowBatch::default());
    while let Some((&[who, seconds, high, low], following)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([high, low])).min(following.len());
        let (datagram, following) = following.split_at(length);
        rest = following;
        clock += i64::from(seconds);
        collector.set_clock(Duration::from_secs(clock.unsigned_abs()));
        let key = key(who);
        if who & 128 != 0 {
            let _ = collector.close(key);
        }
        let exporter = match key {
            SessionKey::Udp { peer, .. } => Some(peer),
            SessionKey::Stream { peer, .. } => peer,
        };
        let receipt = FlowReceipt { time_unix_nano: NOON + clock * 1_000_000_000, exporter };
        admitted.clear();
        let _ = collector.admit(key, receipt.time_unix_nano, datagram, &mut admitted);
        let before = batch.len();
        let mut added = 0;
        for released in admitted.released.drain(..) {
            let receipt = FlowReceipt { time_unix_nano: released.received_unix_nano, exporter };
            added += batch.push_released(&released.content, &released.message, receipt, released.set);
        }
        added += batch.push(datagram, &mut admitted, receipt);
        assert_eq!(batch.len() - before, added);
        assert_eq!(added as u64, admitted.counters.flow_records + admitted.counters.options_records);
    }
    batch
}

/// The records of `batch` as JSON.
fn logs(batch: FlowBatch, mapping: &FlowMapping) -> Vec<String> {
    let count = batch.len() as u64;
    let mut job = FlowJob::with_mapping(batch, mapping);
    let Output { objects, items, .. } = run(&mut job);
    assert_eq!(items + job.unused_items(), count, "{mapping:?}");
    objects
}
