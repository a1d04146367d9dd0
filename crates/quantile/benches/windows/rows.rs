//! Observations through windows: one series in slices, many series row by row.

use std::io::{self, Write};

use catchment_quantile::accumulator::{AccumulatorConfig, Method, WhenFull};
use catchment_quantile::seed;
use catchment_quantile::window::{SeriesSlot, WindowConfig, WindowSpec, Windows};

use crate::timing::{Subject, compare};

const N: usize = 262_144;
const BATCH: usize = 1024;
const TUMBLING: WindowSpec =
    WindowSpec::Tumbling { size_ns: 1_000_000_000, allowed_lateness_ns: 0, max_future_ns: u64::MAX };

/// A uniform number in 0..1 for each index.
fn uniform(index: usize) -> f64 {
    (seed::derive(1, index as u64, 0) >> 11) as f64 / (1u64 << 53) as f64
}

/// A key like those of three text attributes.
type Key = [String; 3];

fn key(series: usize) -> Key {
    [format!("service-{}", series % 10), format!("/route/{}", series / 10), "POST".into()]
}

/// Values with times in two windows, and a random series for each.
struct Rows {
    values: Vec<f64>,
    times: Vec<i64>,
    series: Vec<usize>,
}

/// One and many series, KLL and exact.
pub fn run(out: &mut dyn Write) -> io::Result<()> {
    let rows = |series: u64| Rows {
        values: (0..N).map(uniform).collect(),
        times: (0..N as i64).map(|index| index * 2_000_000_000 / N as i64).collect(),
        series: (0..N as u64).map(|index| (seed::derive(5, index, 0) % series) as usize).collect(),
    };
    let one = rows(1);
    let exact = Method::Exact { max_values: u64::MAX, when_full: WhenFull::Refuse };
    let subjects = [
        ("KLL k=400, tumbling", Method::Kll { k: 400 }, TUMBLING),
        ("KLL k=400, count", Method::Kll { k: 400 }, WindowSpec::Count(65_536)),
        ("exact, tumbling", exact, TUMBLING),
    ]
    .map(|(name, method, spec)| Subject(name, slices(&one, method, spec)));
    let title = format!("windows, one series, n={N}, slices of {BATCH}");
    compare(out, &title, N as u64, subjects.into())?;
    for series in [100, 1000, 9000] {
        let many = rows(series);
        let mut subjects = Vec::new();
        for (name, method, by_slot) in [
            ("KLL k=200 by slot", Method::Kll { k: 200 }, true),
            ("KLL k=200 by key", Method::Kll { k: 200 }, false),
            ("exact by slot", exact, true),
        ] {
            subjects.push(Subject(name, interleaved(&many, series as usize, method, by_slot)));
        }
        let title = format!("windows, {series} series interleaved, n={N}");
        compare(out, &title, N as u64, subjects)?;
    }
    Ok(())
}

fn windows(method: Method, spec: WindowSpec) -> Windows<Key, AccumulatorConfig> {
    let config = WindowConfig { spec, max_series: 10_000, idle_ns: 1 };
    Windows::new(config, AccumulatorConfig::new(method, 1).expect("method")).expect("windows")
}

fn slices(rows: &Rows, method: Method, spec: WindowSpec) -> Box<dyn FnMut() -> u64 + '_> {
    Box::new(move || {
        let mut windows = windows(method, spec);
        let slot = windows.intern(&key(0));
        let mut closed = 0;
        for (values, times) in rows.values.chunks(BATCH).zip(rows.times.chunks(BATCH)) {
            windows.observe_slice(slot, times, values, 0, |_, _| {}).expect("fresh slot");
            closed += windows.poll_closed().len() as u64;
        }
        closed + windows.flush_all().len() as u64
    })
}

fn interleaved(rows: &Rows, series: usize, method: Method, by_slot: bool) -> Box<dyn FnMut() -> u64 + '_> {
    let keys: Vec<Key> = (0..series).map(key).collect();
    Box::new(move || {
        let mut windows = windows(method, TUMBLING);
        let slots: Vec<SeriesSlot> = keys.iter().map(|key| windows.intern(key)).collect();
        let mut row_slots = Vec::with_capacity(BATCH);
        for ((values, times), series) in
            rows.values.chunks(BATCH).zip(rows.times.chunks(BATCH)).zip(rows.series.chunks(BATCH))
        {
            if by_slot {
                row_slots.clear();
                row_slots.extend(series.iter().map(|&series| slots[series]));
                windows.observe_rows(&row_slots, times, values, 0, |_, _| {}).expect("fresh slots");
            } else {
                for ((value, time), &series) in values.iter().zip(times).zip(series) {
                    windows.observe(&keys[series], *time, *value, 0);
                }
            }
            windows.poll_closed();
        }
        windows.flush_all().len() as u64
    })
}
