//! What a decision costs, in CPU time of the thread: `cargo bench -p catchment-sampling`.
//!
//! For each policy, nanoseconds for a record that is dropped and for one that is kept, best and median of many rounds;
//! messages of syslog have 250 bytes.

use std::hint::black_box;
use std::io::{self, Write};
use std::time::Duration;

use catchment_sampling::{Decision, Flow, FlowRecord, Input, Sampler, SamplingConfig, SyslogMessage};
use nix::time::ClockId;
use serde_json::{Value, json};

const ROUNDS: usize = 41;
const RECORDS: usize = 100_000;
/// Length of a message.
const BYTES: usize = 250;

fn main() -> io::Result<()> {
    let out = &mut io::stdout().lock();
    writeln!(out, "ns a record, best / median of {ROUNDS}")?;
    syslog(out)?;
    flows(out)
}

fn syslog(out: &mut dyn Write) -> io::Result<()> {
    let parent = |flags| format!("traceparent=\"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-{flags}\"");
    let in_data =
        |flags| format!("<14>1 2026-11-30T10:00:00.123456Z edge-eu-01 loadgen 77 EV1 [t@1 {}]", parent(flags));
    let rfc5424 = "<14>1 2026-11-30T10:00:00.123456Z edge-eu-01 loadgen 77 EV1 -".to_owned();
    let rfc3164 = "<14>Nov 30 10:00:00 edge-eu-01 loadgen[77]:".to_owned();
    let cef = "<14>Nov 30 10:00:00 edge-eu-01 CEF:0|Norwall|NX-OSF|11.2.4|100|probe|5|act=drop".to_owned();
    let error = rfc5424.replace("<14>", "<11>");
    let drop = json!({"ratio": 0});
    for (name, message, policies) in [
        ("ratio 0", &rfc5424, json!([drop])),
        ("ratio 0.001", &rfc5424, json!([{"ratio": 0.001}])),
        ("ratio 0.1", &rfc5424, json!([{"ratio": 0.1}])),
        ("ratio 0.1 systematic", &rfc5424, json!([{"ratio": {"ratio": 0.1, "draw": "systematic"}}])),
        ("ratio 0.5", &rfc5424, json!([{"ratio": 0.5}])),
        ("ratio 1", &rfc5424, json!([{"ratio": 1}])),
        ("rate_limit 1000", &rfc5424, json!([{"rate_limit": 1000}])),
        ("severity, err", &error, json!([{"always_keep": {"severity": "err"}}, drop])),
        ("severity, info", &rfc5424, json!([{"always_keep": {"severity": "err"}}, drop])),
        ("key_hash 0, rfc5424", &rfc5424, json!([{"key_hash": {"ratio": 1e-9, "key": ["host", "app"]}}])),
        ("key_hash 0, rfc3164", &rfc3164, json!([{"key_hash": {"ratio": 1e-9, "key": ["host", "app"]}}])),
        ("key_hash 0, cef", &cef, json!([{"key_hash": {"ratio": 1e-9, "key": ["host", "app"]}}])),
        ("key_hash 1, rfc5424", &rfc5424, json!([{"key_hash": {"ratio": 1, "key": ["host", "app"]}}])),
        ("trace_flag, unsampled", &in_data("00"), json!([{"trace_flag": {"unsampled": "drop"}}])),
        ("trace_flag, sampled", &in_data("01"), json!([{"trace_flag": {"unsampled": "drop"}}])),
        ("trace_flag, no trace", &rfc5424, json!([{"trace_flag": {"unsampled": "drop"}}, drop])),
        ("trace_ratio 0", &in_data("01"), json!([{"trace_ratio": 1e-9}])),
        ("trace_ratio 1", &in_data("01"), json!([{"trace_ratio": 1}])),
        (
            "all of them",
            &rfc5424,
            json!([
                {"always_keep": {"severity": "err"}},
                {"trace_flag": {"unsampled": "pass"}},
                {"trace_ratio": 0.1},
                {"key_hash": {"ratio": 1e-9, "key": ["host", "app"]}},
            ]),
        ),
    ] {
        let mut message = message.clone().into_bytes();
        let text = b" queue depth 4711, oldest entry 12 s, 3 workers busy, back to normal after restart";
        message.extend(text.iter().cycle().take(BYTES - message.len()));
        let facts = SyslogMessage { message: &message, source: None };
        measure(out, &format!("syslog  {name}"), sampler(&policies, Input::Syslog), |sampler, record| {
            // 100,000 a second.
            u64::from(matches!(sampler.decide(black_box(&facts), record * 10_000), Decision::Keep { .. }))
        })?;
    }
    Ok(())
}

fn flows(out: &mut dyn Write) -> io::Result<()> {
    let flow = Flow {
        source_address: &[192, 0, 2, 1],
        destination_address: &[198, 51, 100, 7],
        source_port: &[0xc3, 0x50],
        destination_port: &[1, 0xbb],
        protocol: &[6],
    };
    let facts = FlowRecord { exporter: "192.0.2.9".parse().ok(), domain: 1, flow };
    let key = |ratio: f64, field: &str| json!([{"key_hash": {"ratio": ratio, "key": field}}]);
    for (name, policies) in [
        ("ratio 0", json!([{"ratio": 0}])),
        ("ratio 0.1", json!([{"ratio": 0.1}])),
        ("ratio 0.001", json!([{"ratio": 0.001}])),
        ("ratio 1", json!([{"ratio": 1}])),
        ("rate_limit 1000", json!([{"rate_limit": 1000}])),
        ("key_hash 0 flow", key(1e-9, "flow")),
        ("key_hash 1 flow", key(1.0, "flow")),
        ("key_hash 0 exporter", key(1e-9, "exporter")),
    ] {
        measure(out, &format!("flow    {name}"), sampler(&policies, Input::Flows), |sampler, record| {
            u64::from(matches!(sampler.decide(black_box(&facts), record * 10_000), Decision::Keep { .. }))
        })?;
    }
    for (name, policies) in [
        ("ratio 0", json!([{"ratio": 0}])),
        ("ratio 0.1", json!([{"ratio": 0.1}])),
        ("ratio 0.001", json!([{"ratio": 0.001}])),
        ("rate_limit 1000", json!([{"rate_limit": 1000}])),
    ] {
        let mut sampler = sampler(&policies, Input::Flows);
        let mut now = 0;
        let times = rounds(|| {
            // Sets of 30 records, as in a datagram.
            for _ in 0..RECORDS / 30 {
                now += 300_000;
                let mut left = 30;
                while left > 0 {
                    left -= sampler.run(black_box(&facts), left, now).records;
                }
            }
        });
        print(out, &format!("run     {name}, 30 at once"), &times, &sampler)?;
    }
    Ok(())
}

fn sampler(policies: &Value, input: Input) -> Sampler {
    let config = serde_json::from_value::<SamplingConfig>(json!({"policies": policies})).map_err(|e| e.to_string());
    match config.and_then(|config| config.compile(input, 0).map_err(|error| error.to_string())) {
        Ok(sampler) => sampler,
        Err(error) => panic!("{policies}: {error}"),
    }
}

fn measure(
    out: &mut dyn Write,
    name: &str,
    mut sampler: Sampler,
    mut decide: impl FnMut(&mut Sampler, u64) -> u64,
) -> io::Result<()> {
    let mut record = 0;
    let times = rounds(|| {
        let mut kept = 0;
        for _ in 0..RECORDS {
            kept += decide(&mut sampler, record);
            record += 1;
        }
        let _kept = black_box(kept);
    });
    print(out, name, &times, &sampler)
}

/// CPU times of this thread for each round, in order; the first rounds warm up.
fn rounds(mut work: impl FnMut()) -> Vec<Duration> {
    let now = || ClockId::CLOCK_THREAD_CPUTIME_ID.now().map(Duration::from).unwrap_or_default();
    let mut times: Vec<_> = (0..ROUNDS + 3)
        .map(|_| {
            let begin = now();
            work();
            now().saturating_sub(begin)
        })
        .skip(3)
        .collect();
    times.sort_unstable();
    times
}

fn print(out: &mut dyn Write, name: &str, times: &[Duration], sampler: &Sampler) -> io::Result<()> {
    let nanos = |time: Duration| time.as_nanos() as f64 / RECORDS as f64;
    let counts = sampler.counts();
    let kept = 100.0 * counts.kept as f64 / counts.seen as f64;
    writeln!(out, "  {name:<34} {:>7.2} / {:>7.2}   kept {kept:>6.2} %", nanos(times[0]), nanos(times[times.len() / 2]))
}
