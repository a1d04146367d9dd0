//! Time a line: parsing with one walk over its parts, stamps by themselves, and framing.
//!
//! `cargo bench -p catchment-syslog`. A throughput of "elements" is lines a second.
#![allow(clippy::unwrap_used, reason = "a bench may stop")]

mod corpus;

use std::hint::black_box;

use catchment_syslog::{Framer, FramerOptions, Framing, Receipt, Record, Step, Zone, parse, parse_into};
use corpus::LINES;
use criterion::{Criterion, Throughput};

/// 2026-11-30T12:00:00Z.
const RECEIVED_UNIX_NANO: i64 = 1_796_040_000_000_000_000;
const BUFFER_BYTES: usize = 64 * 1024;

/// Touches every part of a record once, as a consumer does. Gives the bytes seen.
fn walk(record: &Record<'_>) -> usize {
    let fields =
        [record.prefix, record.hostname, record.app_name, record.tag, record.proc_id, record.msg_id, record.message];
    let mut bytes: usize = fields.iter().flatten().map(|field| field.len()).sum();
    if let Some(data) = &record.structured_data {
        for element in data.elements() {
            bytes += element.id().len();
            bytes += element.params().map(|(name, value)| name.len() + value.len()).sum::<usize>();
        }
    }
    if let Some(cef) = &record.cef {
        let header = [
            cef.device_vendor(),
            cef.device_product(),
            cef.device_version(),
            cef.device_event_class_id(),
            cef.name(),
            cef.severity(),
        ];
        bytes += header.iter().map(|field| field.len()).sum::<usize>();
        bytes += cef.extensions().map(|(key, value)| key.len() + value.len()).sum::<usize>();
    }
    bytes
}

fn parsing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse");
    group.throughput(Throughput::Elements(LINES as u64));
    let receipt = Receipt { time_unix_nano: RECEIVED_UNIX_NANO, zone: &Zone::Utc };
    for (name, lines) in corpus::shapes() {
        let mean = lines.iter().map(String::len).sum::<usize>() / LINES;
        group.bench_function(format!("{name}/{mean}"), |bencher| {
            bencher.iter(|| lines.iter().map(|line| walk(&parse(black_box(line.as_bytes()), &receipt))).sum::<usize>());
        });
        group.bench_function(format!("into/{name}/{mean}"), |bencher| {
            let mut record = Record::default();
            let mut read = |line| {
                parse_into(&mut record, black_box(line), &receipt);
                walk(&record)
            };
            bencher.iter(|| lines.iter().map(|line| read(line.as_bytes())).sum::<usize>());
        });
    }
    group.finish();
}

/// A line that is little more than its stamp, in several zones.
fn stamps(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("stamp");
    let stamps = [
        ("bsd", "<13>Nov 30 10:00:00"),
        ("iso_utc", "<13>2026-11-30T10:00:00.123456Z"),
        ("iso_offset", "<13>2026-11-30T10:00:00.123456+01:00"),
        ("iso_no_offset", "<13>2026-11-30T10:00:00"),
    ];
    for zone_name in ["UTC", "+01:00", "Europe/Berlin", "local"] {
        let zone: Zone = zone_name.parse().unwrap();
        let receipt = Receipt { time_unix_nano: RECEIVED_UNIX_NANO, zone: &zone };
        for (name, line) in stamps {
            group.bench_function(format!("{name}/{zone_name}"), |bencher| {
                bencher.iter(|| parse(black_box(line.as_bytes()), &receipt).time_unix_nano);
            });
        }
    }
    group.finish();
}

fn framing(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("framing");
    for (name, lines) in corpus::shapes().filter(|(name, _)| matches!(*name, "rfc3164" | "short_rfc3164")) {
        for (framing_name, framing, counted) in [
            ("newline", Framing::Newline, false),
            ("octet_counting", Framing::OctetCounting, true),
            ("auto_lines", Framing::Auto, false),
            ("auto_counted", Framing::Auto, true),
        ] {
            let mut buffer = String::new();
            let mut count = 0;
            for line in lines.iter().cycle() {
                let frame = if counted { format!("{} {line}", line.len()) } else { format!("{line}\n") };
                if buffer.len() + frame.len() > BUFFER_BYTES {
                    break;
                }
                buffer += &frame;
                count += 1;
            }
            let options = FramerOptions { framing, ..FramerOptions::default() };
            group.throughput(Throughput::Elements(count));
            group.bench_function(format!("{framing_name}/{name}"), |bencher| {
                bencher.iter(|| frames(options, black_box(buffer.as_bytes())));
            });
        }
    }
    group.finish();
}

/// Bytes in the frames of a buffer.
fn frames(options: FramerOptions, buffer: &[u8]) -> usize {
    let mut framer = Framer::new(options);
    let (mut start, mut bytes) = (0, 0);
    loop {
        match framer.next(&buffer[start..], false) {
            Step::Frame { message, consumed, .. } => {
                bytes += message.len();
                start += consumed;
            }
            Step::Skip { consumed, .. } | Step::Error { consumed, .. } => start += consumed,
            Step::NeedMore => return bytes,
        }
    }
}

/// Long runs of one byte: what an attacker would send. Linear time shows as a flat row.
fn hostile(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hostile_16k");
    let receipt = Receipt { time_unix_nano: RECEIVED_UNIX_NANO, zone: &Zone::Utc };
    for (name, header, run) in [
        ("spaces", "<13>", " "),
        ("brackets", "<13>1 - - - - - ", "["),
        ("elements", "<13>1 - - - - - ", "[a]"),
        ("backslashes", "<13>1 - - - - - [a k=\"", "\\"),
        ("cef_equals", "CEF:0|v|p|1|2|n|3|", "="),
        ("cef_pairs", "CEF:0|v|p|1|2|n|3|", "a= "),
        ("cef_keys", "CEF:0|v|p|1|2|n|3|", "a"),
    ] {
        let line = format!("{header}{}", run.repeat(16 * 1024 / run.len()));
        group.bench_function(name, |bencher| {
            bencher.iter(|| walk(&parse(black_box(line.as_bytes()), &receipt)));
        });
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(200))
        .measurement_time(std::time::Duration::from_millis(600))
        .sample_size(20)
        .without_plots()
        .configure_from_args();
    parsing(&mut criterion);
    stamps(&mut criterion);
    framing(&mut criterion);
    hostile(&mut criterion);
    criterion.final_summary();
}
