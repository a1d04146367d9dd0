//! Decode jobs from admitted bytes to finished OTAP batches: flow records of 11 and 30 fields, and lines of syslog.
//!
//! `cargo bench -p catchment-columns`. A throughput of "elements" is records a second on one core.
#![allow(clippy::unwrap_used, reason = "a bench may stop")]

use std::hint::black_box;
use std::sync::Arc;

use catchment_columns::flow::encoded::{decode, encode};
use catchment_columns::flow::{FlowBatch, FlowJob, FlowMapping, FlowReceipt};
use catchment_columns::syslog::{Receipt, RowOptions, Source, SyslogBatch, SyslogJob, Transport as From, Zone};
use catchment_columns::{Job, MAX_BATCH_RECORDS};
use catchment_ipfix::{Admitted, Limits, Session, Transport, VARIABLE_LENGTH};
use criterion::{BatchSize, Criterion, Throughput};

/// 2026-11-30T12:00:00Z.
const NOON_SECONDS: u32 = 1_796_040_000;
const RECORDS_A_DATAGRAM: usize = 24;
const ADDRESSES: u32 = 1_000;

/// Element and length of each field: the content of a NetFlow v5 record.
const FIELDS_11: &[(u16, u16)] =
    &[(8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (6, 1), (10, 4), (1, 8), (2, 8), (152, 8), (153, 8)];
/// The same with a text of variable length, which keeps records from having one length.
const FIELDS_12: &[(u16, u16)] = &[
    (8, 4),
    (12, 4),
    (7, 2),
    (11, 2),
    (4, 1),
    (6, 1),
    (10, 4),
    (1, 8),
    (2, 8),
    (152, 8),
    (153, 8),
    (82, VARIABLE_LENGTH),
];
/// What a router sends when everything is asked for.
const FIELDS_30: &[(u16, u16)] = &[
    (8, 4),
    (12, 4),
    (7, 2),
    (11, 2),
    (4, 1),
    (6, 1),
    (10, 4),
    (14, 4),
    (1, 8),
    (2, 8),
    (152, 8),
    (153, 8),
    (15, 4),
    (16, 4),
    (17, 4),
    (9, 1),
    (13, 1),
    (5, 1),
    (192, 1),
    (58, 2),
    (59, 2),
    (56, 6),
    (80, 6),
    (61, 1),
    (136, 1),
    (18, 4),
    (48, 1),
    (148, 8),
    (234, 4),
    (89, 1),
];

/// Pseudorandom numbers (xorshift), the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// A value of plausible cardinality for an element.
fn value(element: u16, random: &mut Random) -> u64 {
    match element {
        8 | 12 => 0x0a00_0000 + random.below(u64::from(ADDRESSES)),
        15 | 18 => 0xc000_0200 + random.below(16),
        7 => 1_024 + random.below(64_000),
        11 => [443, 53, 80, 22, 8_080, 123][random.below(6) as usize],
        4 => [6, 17, 6, 6, 1][random.below(5) as usize],
        6 => [0x1b, 0x12, 0x02, 0][random.below(4) as usize],
        10 | 14 => random.below(48),
        1 => 40 + random.below(1_000_000),
        2 => 1 + random.below(1_000),
        152 => u64::from(NOON_SECONDS) * 1_000 - 5_000 - random.below(60_000),
        153 => u64::from(NOON_SECONDS) * 1_000 - random.below(5_000),
        16 | 17 => 64_512 + random.below(200),
        9 | 13 => 16 + random.below(9),
        5 | 48 | 61 | 234 => random.below(2),
        192 => 32 + random.below(64),
        58 | 59 => 100 + random.below(20),
        56 | 80 => 0x5e00_5300_0000 + random.below(64),
        136 => 1 + random.below(3),
        89 => 64,
        _ => random.next() >> 1,
    }
}

fn datagram(fields: &[(u16, u16)], with_template: bool, sequence: usize, random: &mut Random) -> Vec<u8> {
    let mut out = vec![0, 10, 0, 0];
    out.extend((NOON_SECONDS + u32::try_from(sequence / 1_000).unwrap()).to_be_bytes());
    out.extend(u32::try_from(sequence).unwrap().to_be_bytes());
    out.extend(7u32.to_be_bytes());
    if with_template {
        let count = u16::try_from(fields.len()).unwrap();
        out.extend([2, 8 + 4 * count, 256, count].into_iter().flat_map(u16::to_be_bytes));
        out.extend(fields.iter().flat_map(|(element, length)| [*element, *length]).flat_map(u16::to_be_bytes));
    }
    let set = out.len();
    out.extend([1, 0, 0, 0]);
    for _ in 0..RECORDS_A_DATAGRAM {
        for (element, length) in fields {
            if *length == VARIABLE_LENGTH {
                let text = format!("eth{}", random.below(48));
                out.push(u8::try_from(text.len()).unwrap());
                out.extend(text.as_bytes());
                continue;
            }
            out.extend(&value(*element, random).to_be_bytes()[8 - usize::from(*length)..]);
        }
    }
    let length = u16::try_from(out.len() - set).unwrap();
    out[set + 2..set + 4].copy_from_slice(&length.to_be_bytes());
    let length = u16::try_from(out.len()).unwrap();
    out[2..4].copy_from_slice(&length.to_be_bytes());
    out
}

fn flows(fields: &[(u16, u16)]) -> FlowBatch {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut session = Session::new(Transport::Udp, Limits::default());
    let (mut batch, mut admitted) = (FlowBatch::default(), Admitted::default());
    let exporter = Some("192.0.2.1:4739".parse().unwrap());
    let mut sequence = 0;
    while batch.len() + RECORDS_A_DATAGRAM <= MAX_BATCH_RECORDS {
        let datagram = datagram(fields, sequence == 0, sequence, &mut random);
        admitted.clear();
        session.admit(&datagram, &mut admitted);
        let time_unix_nano = i64::from(NOON_SECONDS) * 1_000_000_000 + i64::try_from(sequence).unwrap() * 10_000;
        sequence += batch.push(&datagram, &mut admitted, FlowReceipt { time_unix_nano, exporter });
    }
    batch
}

fn lines() -> SyslogBatch {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let peer = Some("192.0.2.7:40000".parse().unwrap());
    let source = Arc::new(Source::new(peer, From::Udp, Arc::new(Zone::Utc)));
    let mut batch = SyslogBatch::new();
    for number in 0..MAX_BATCH_RECORDS {
        let line = format!(
            "<134>1 2026-11-30T12:00:{:02}.{:03}Z edge-{} loadgen {} EV{} [ctx@32473 req=\"{:08x}\" zone=\"z{}\"] lease of \
             host-{} renewed, expires in {} s",
            number / 1_000,
            number % 1_000,
            random.below(6),
            random.below(32_768),
            random.below(9),
            random.next() as u32,
            random.below(9),
            random.below(500),
            random.below(5_000),
        );
        let receipt = Receipt { time_unix_nano: i64::from(NOON_SECONDS) * 1_000_000_000, truncated: false };
        batch.push(line.as_bytes(), &source, receipt);
    }
    batch
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("job");
    for (name, fields) in [("flow_11", FIELDS_11), ("flow_30", FIELDS_30), ("flow_12_variable", FIELDS_12)] {
        let records = flows(fields).len();
        group.throughput(Throughput::Elements(records as u64));
        group.bench_function(name, |bencher| {
            bencher.iter_batched(
                || flows(fields),
                |batch| black_box(FlowJob::new(batch).run().unwrap()),
                BatchSize::PerIteration,
            );
        });
    }
    let batch = flows(FIELDS_11);
    let payload = encode(&batch, &FlowMapping::default());
    group.throughput(Throughput::Elements(batch.len() as u64));
    group.bench_function("flow_11_encode", |bencher| bencher.iter(|| encode(&batch, &FlowMapping::default())));
    group.bench_function("flow_11_decode", |bencher| bencher.iter(|| decode(&payload).unwrap()));
    group.throughput(Throughput::Elements(MAX_BATCH_RECORDS as u64));
    group.bench_function("syslog", |bencher| {
        bencher.iter_batched(
            lines,
            |batch| black_box(SyslogJob::new(batch, RowOptions::default()).run().unwrap()),
            BatchSize::PerIteration,
        );
    });
    group.finish();
    criterion.final_summary();
}
