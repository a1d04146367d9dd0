//! Scripts from seeds, and nodes, loads and ends from the same seeds.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use catchment_loadgen::sink::script::{Protocol, SinkScript};
use serde_json::{Value, json};

use super::checks::{self, Bounds};
use super::data::{Batch, Signal};
use super::rig::{self, End, Job, OnFull, Run};

/// Scripts of every run of the suite, for each protocol.
const SEEDS: std::ops::Range<u64> = 0..200;
/// Runs at a time, of all protocols together; they wait most of the time.
const AT_ONCE: usize = 16;

/// Seeds that have found something.
const FOUND: [(Protocol, &[u64]); 3] = [(Protocol::OtlpGrpc, &[]), (Protocol::OtlpHttp, &[]), (Protocol::Otap, &[])];

/// A job, always the same for the same seed.
fn job(protocol: Protocol, seed: u64) -> (Job, Bounds) {
    let mut random = fastrand::Rng::with_seed(seed ^ 0x6c61_6e65);
    let keys = random.u8(1..=5);
    let bounds =
        Bounds { lanes: random.usize(1..=3), queue_batches: random.usize(1..=6), request_items: random.usize(4..=40) };
    let series = random.u8(0..4) == 0;
    // Requests and record batches of one resource need not be of one series.
    let mixed = !series && random.bool();
    let only = random.bool();
    let several_signals = random.u8(0..3) == 0;
    let padding = if random.u8(0..3) == 0 { 1_000 } else { 10 };
    let count = random.usize(30..=60);
    let mut next = vec![0; usize::from(keys) + 1];
    let batches = (0..count).map(|_| {
        let key = random.u8(1..=keys);
        let items = random.usize(1..=8);
        let first = next[usize::from(key)];
        next[usize::from(key)] += items as u64;
        let signal = match random.u8(0..6) {
            0 if several_signals => Signal::Metrics,
            1 if several_signals => Signal::Traces,
            _ => Signal::Logs,
        };
        let otlp = if mixed { random.bool() } else { only };
        Batch {
            key,
            first,
            items,
            signal,
            otlp,
            padding: random.usize(0..=padding),
            flavour: random.u8(0..4),
            reversed: false,
            broken: false,
        }
    });
    let batches: Vec<_> = batches.collect();
    let end = if random.u8(0..4) == 0 {
        End::Within(random.usize(5..=count), Duration::from_millis(random.u64(200..900)))
    } else {
        End::Answered
    };
    // Few scripts have all that there can be: they take long.
    let intensity = if random.u8(0..8) == 0 { 10 } else { random.u8(0..=5) };
    let script = SinkScript::random(seed, protocol, f64::from(intensity) / 10.0);
    let config = config(protocol, bounds, series, &mut random);
    let on_full = match random.u8(0..10) {
        0 => OnFull::Nack,
        1 => OnFull::DropOldest,
        _ => OnFull::Block,
    };
    (Job { protocol, config, script, batches, end, on_full }, bounds)
}

fn config(protocol: Protocol, bounds: Bounds, series: bool, random: &mut fastrand::Rng) -> Value {
    let key = if series { "series" } else { "peer" };
    let mut config = json!({
        "lanes": {"count": bounds.lanes, "key": key, "max_queue_batches": bounds.queue_batches},
        "batch": {"max_items": bounds.request_items},
    });
    if random.u8(0..3) == 0 {
        config["batch"]["min_items"] = json!(bounds.request_items / 2);
        config["batch"]["max_delay"] = json!("5ms");
    }
    match random.u8(0..8) {
        0 => config["retry"] = json!({"max_elapsed": "60ms"}),
        1 => config["retry"] = json!({"budget": {"per_second": 50.0, "burst": 3}}),
        _ => {}
    }
    config["compression"] = match random.u8(0..4) {
        0 => json!({"codec": "zstd", "layer": "message"}),
        1 => json!({"codec": "gzip", "layer": "message"}),
        2 => json!({"codec": "none"}),
        _ => json!({}),
    };
    if protocol == Protocol::Otap {
        config["stream"] = match random.u8(0..3) {
            0 => json!({"max_batches": random.u8(1..5)}),
            1 => json!({"max_lifetime": "1s"}),
            _ => json!({}),
        };
    }
    config
}

fn seeds(protocol: Protocol) -> Vec<u64> {
    let Ok(range) = std::env::var("CATCHMENT_FAULT_SEEDS") else {
        let found = FOUND.iter().filter(|(of, _)| *of == protocol).flat_map(|(_, seeds)| seeds.iter().copied());
        return SEEDS.chain(found.filter(|seed| !SEEDS.contains(seed))).collect();
    };
    let ends = range.split_once("..").and_then(|(from, to)| Some((from.parse().ok()?, to.parse().ok()?)));
    let (from, to) = ends.expect("CATCHMENT_FAULT_SEEDS has to be such as 0..1000");
    (from..to).collect()
}

/// Leave to run, of which there are [`AT_ONCE`].
struct Turn;

static TAKEN: Mutex<usize> = Mutex::new(0);
static FREED: Condvar = Condvar::new();

impl Turn {
    fn take() -> Self {
        let taken = TAKEN.lock().unwrap();
        *FREED.wait_while(taken, |taken| *taken >= AT_ONCE).unwrap() += 1;
        Self
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *TAKEN.lock().unwrap() -= 1;
        FREED.notify_one();
    }
}

/// Sums over all runs.
#[derive(Debug, Default)]
struct Sums {
    items: u64,
    requests: u64,
    duplicates: u64,
    ambiguous: u64,
    refused: u64,
    given_back: u64,
    busy: Duration,
    /// Runs in which the machine was too slow to tell whose fault a duplicate is.
    slow: u64,
}

impl Sums {
    fn add(&mut self, run: &Run) {
        let totals = &run.report.totals;
        self.items += run.account.received;
        self.requests += totals.requests;
        self.duplicates += totals.duplicates;
        self.ambiguous += totals.ambiguous_items;
        self.refused += run.counted("refused") + run.counted("rejected");
        self.given_back += run.counted("shut down") + run.counted("unanswered");
        self.busy += run.took;
        self.slow += u64::from(run.lag > checks::LAG);
    }
}

fn all(protocol: Protocol) {
    let seeds = seeds(protocol);
    let count = seeds.len();
    let started = Instant::now();
    let waiting = Mutex::new(VecDeque::from(seeds));
    let failed = Mutex::new(Vec::new());
    let sums = Mutex::new(Sums::default());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(count) {
            let _ = scope.spawn(|| {
                loop {
                    let _turn = Turn::take();
                    let Some(seed) = waiting.lock().unwrap().pop_front() else { break };
                    let (job, bounds) = job(protocol, seed);
                    let run = rig::run(&job);
                    let faults = checks::faults(&job, &run, bounds);
                    sums.lock().unwrap().add(&run);
                    if !faults.is_empty() {
                        let text = format!("seed {seed} ({:?}, {:?}): {faults:#?}", job.end, run.took);
                        if count == 1 {
                            println!("{}\n{run:#?}", job.config);
                            println!("{:#?}", job.script);
                        }
                        failed.lock().unwrap().push(text);
                    }
                }
            });
        }
    });
    println!("{protocol:?}: {count} scripts in {:?}, {:?}", started.elapsed(), sums.lock().unwrap());
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} of {count} failed:\n{}", failed.len(), failed.join("\n"));
}

/// OTLP over gRPC.
#[test]
fn otlp_grpc() {
    all(Protocol::OtlpGrpc);
}

/// OTLP over HTTP.
#[test]
fn otlp_http() {
    all(Protocol::OtlpHttp);
}

/// OTAP.
#[test]
fn otap() {
    all(Protocol::Otap);
}
