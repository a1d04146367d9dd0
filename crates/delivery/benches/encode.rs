//! Requests from batches, beside upstream's encoders: nanoseconds of CPU and bytes an item.
//!
//! `cargo bench -p catchment-delivery --bench encode`. Subjects take turns batch by batch; the best of a batch's rounds
//! counts, and of those the mean. The first batches, with which a stream begins, are left out.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a bench prints, and may stop")]
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "numbers for people")]

use std::hint::black_box;
use std::time::Duration;

use catchment_columns::flow::FlowSchema;
use catchment_columns::{OtapArrowRecords, ParentIds};
use catchment_delivery::encode::otap::{OtapSettings, OtapStream};
use catchment_delivery::encode::otlp::OtlpEncoder;
use nix::time::ClockId;
use otel_arrow_dfe_pdata::Producer;
use otel_arrow_dfe_pdata::otlp::logs::LogsProtoBytesEncoder;
use otel_arrow_dfe_pdata::otlp::metrics::MetricsProtoBytesEncoder;
use otel_arrow_dfe_pdata::otlp::{ProtoBuffer, ProtoBytesEncoder as _};
use prost::Message as _;

mod fixtures;

use fixtures::Counters;

const ROUNDS: usize = 7;
/// Batches of a stream.
const BATCHES: usize = 16;
/// Batches with which a stream begins.
const WARM: usize = 3;

fn cpu(work: impl FnOnce() -> usize) -> (Duration, usize) {
    let now = || Duration::from(ClockId::CLOCK_THREAD_CPUTIME_ID.now().unwrap());
    let start = now();
    let bytes = work();
    (now() - start, bytes)
}

/// Encodes one batch after another and gives time and bytes of each.
type Subject = Box<dyn FnMut(&OtapArrowRecords) -> (Duration, usize)>;

fn our_otap(zstd_level: Option<i32>) -> Subject {
    let mut stream = OtapStream::new(OtapSettings { zstd_level }).unwrap();
    Box::new(move |records| cpu(|| black_box(stream.encode(1, &[records]).unwrap()).len()))
}

fn subjects() -> Vec<(&'static str, Subject)> {
    let mut otlp = OtlpEncoder::new();
    let (mut logs, mut metrics) = (LogsProtoBytesEncoder::new(), MetricsProtoBytesEncoder::new());
    let mut buffer = ProtoBuffer::default();
    let mut producer = Producer::new();
    vec![
        ("otlp", Box::new(move |records| cpu(|| black_box(otlp.encode(records).unwrap()).len()))),
        (
            "otlp upstream",
            Box::new(move |records| {
                let mut records = records.clone();
                buffer.clear();
                cpu(|| {
                    match &records {
                        OtapArrowRecords::Logs(_) => logs.encode(&mut records, &mut buffer).unwrap(),
                        _ => metrics.encode(&mut records, &mut buffer).unwrap(),
                    }
                    buffer.len()
                })
            }),
        ),
        ("otap zstd-1", our_otap(Some(1))),
        ("otap zstd-3", our_otap(Some(3))),
        ("otap none", our_otap(None)),
        (
            "otap upstream zstd",
            Box::new(move |records| {
                let mut records = records.clone();
                let mut message = None;
                let (time, _) = cpu(|| {
                    message = Some(producer.produce_bar(&mut records).unwrap());
                    0
                });
                (time, message.unwrap().encoded_len())
            }),
        ),
    ]
}

/// A name, and what makes the batches of a stream.
type Fixture = (&'static str, fn() -> Vec<OtapArrowRecords>);

fn measure(name: &str, batches: &[OtapArrowRecords]) {
    let items: usize = batches[WARM..].iter().map(OtapArrowRecords::num_items).sum();
    let names: Vec<_> = subjects().iter().map(|(name, _)| *name).collect();
    let mut best = vec![vec![Duration::MAX; batches.len()]; names.len()];
    let mut bytes = vec![vec![0; batches.len()]; names.len()];
    for _ in 0..ROUNDS {
        let mut subjects = subjects();
        for (number, records) in batches.iter().enumerate() {
            for (subject, (_, run)) in subjects.iter_mut().enumerate() {
                let (time, length) = run(records);
                best[subject][number] = best[subject][number].min(time);
                bytes[subject][number] = length;
            }
        }
    }
    let nanos = |subject: usize| best[subject][WARM..].iter().sum::<Duration>().as_nanos() as f64 / items as f64;
    for (subject, label) in names.iter().enumerate() {
        let upstream = nanos(if label.starts_with("otlp") { 1 } else { 5 });
        println!(
            "{name:<24} {label:<20} {:>8.1} ns {:>5.2}x {:>8.2} B  first {:>8.2} B",
            nanos(subject),
            nanos(subject) / upstream,
            bytes[subject][WARM..].iter().sum::<usize>() as f64 / items as f64,
            bytes[subject][0] as f64 / batches[0].num_items() as f64,
        );
    }
}

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let fixtures: [Fixture; 12] = [
        ("busy", || fixtures::counters(BATCHES, Counters::Busy, true)),
        ("idle", || fixtures::counters(BATCHES, Counters::Idle, true)),
        ("random", || fixtures::counters(BATCHES, Counters::Random, true)),
        ("busy, arrays made anew", || fixtures::counters(BATCHES, Counters::Busy, false)),
        ("busy, through otlp", || fixtures::through_otlp(&fixtures::counters(BATCHES, Counters::Busy, true))),
        ("sonic, plain", || fixtures::telemetry(BATCHES, ParentIds::Plain)),
        ("sonic, transport", || fixtures::telemetry(BATCHES, ParentIds::Transport)),
        ("flows, plain", || fixtures::flows(BATCHES, FlowSchema::Ipfix, ParentIds::Plain)),
        ("flows, transport", || fixtures::flows(BATCHES, FlowSchema::Ipfix, ParentIds::Transport)),
        ("flows of otel, plain", || fixtures::flows(BATCHES, FlowSchema::Otel, ParentIds::Plain)),
        ("syslog, plain", || fixtures::lines(BATCHES, ParentIds::Plain)),
        ("syslog, transport", || fixtures::lines(BATCHES, ParentIds::Transport)),
    ];
    for (name, make) in fixtures.iter().filter(|(name, _)| name.contains(&only)) {
        measure(name, &make());
    }
}
