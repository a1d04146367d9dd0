//! Bytes of sketches, on the wire and in memory.
//!
//! Resident sizes are those of this process: what one side has stays there until all of them are done, so that none gets
//! memory that another has given back. So these cases come first of all.

use std::collections::HashMap;
use std::io::Write;

use catchment_quantile::SortedRun;
use catchment_quantile::accumulator::{AccumulatorConfig, Method};
use catchment_quantile::window::{WindowConfig, WindowSpec, Windows};

use super::super::numbers::{Metric, Numbers};
use super::super::rounds::{Measurements, Side};
use super::super::{Setup, progress};
use super::corpus::Stream;
use super::sketches::{Contender, Sketch};
use super::speed::add_rows;
use super::{TABLE, Wrong};
use crate::process::resident_mib;
use crate::row::{Measured, Peer, Rows};

const KS: [u16; 2] = [400, 200];
/// Observations of a sketch whose memory is measured, and how many sketches.
const N: usize = 65_536;
const SKETCHES: u64 = 500;
const QUICK_SKETCHES: u64 = 5;
/// Series of few observations each.
const SERIES: u64 = 100_000;
const SHORT: [f64; 5] = [1.0, 2.0, 3.0, 4.0, 5.0];
/// Observations of sketches whose bytes are counted.
const IMAGES: [usize; 2] = [65_536, 1_000_000];

const RESIDENT: Metric = Metric { name: "resident", unit: "B/sketch" };
const ALL_RESIDENT: Metric = Metric { name: "resident", unit: "MB" };
const COUNTED_BYTES: Metric = Metric { name: "counted_bytes", unit: "B/sketch" };
const IMAGE: Metric = Metric { name: "image", unit: "B" };
const COUNTED: Metric = Metric { name: "counted", unit: "%" };

/// A message of the stream benchmark of ProjectASAP with one sketch of k = 400, of 65,536 or more observations. Published by
/// them; not only the sketch.
const PUBLISHED: (&str, &str, f64) = ("bytes/k400/65536", "asap-stream-bench-published", 12_800.0);

#[derive(Debug, Clone, Copy)]
enum Quantity {
    Series(u16),
    Memory(u16),
    Bytes(u16, usize),
}

fn cases() -> impl Iterator<Item = (String, Quantity)> {
    let series = [(format!("series/k400/{SERIES}x{}", SHORT.len()), Quantity::Series(400))];
    let memory = KS.into_iter().map(|k| (format!("memory/k{k}/{N}"), Quantity::Memory(k)));
    let bytes = KS.into_iter().flat_map(|k| IMAGES.into_iter().map(move |n| (k, n)));
    let bytes = bytes.map(|(k, n)| (format!("bytes/k{k}/{n}"), Quantity::Bytes(k, n)));
    series.into_iter().chain(memory).chain(bytes)
}

/// Names of all cases.
pub(super) fn names() -> Vec<String> {
    cases().map(|(name, _)| name).collect()
}

/// Measures the cases that are asked for.
pub(super) fn measure<W: Write>(setup: &Setup, rows: &mut Rows<W>) -> std::io::Result<usize> {
    let mut failures = 0;
    let mut kept = Kept::default();
    for (name, quantity) in cases().filter(|(name, _)| setup.wants(name)) {
        progress(&name);
        let mut sides = Vec::new();
        for side in [Contender::Ours, Contender::DataSketches, Contender::Asap, Contender::DdSketch, Contender::Run] {
            let found = match quantity {
                Quantity::Series(k) => kept.series(side, k),
                Quantity::Memory(k) => kept.memory(side, k, if setup.quick { QUICK_SKETCHES } else { SKETCHES }),
                Quantity::Bytes(k, n) => bytes(side, k, n),
            };
            match found {
                Ok(numbers) => sides.extend(numbers.map(|numbers| (side, numbers))),
                Err(error) => {
                    progress(&format!("error: {name}, {}: {error}", side.name()));
                    failures += 1;
                }
            }
        }
        let ours = sides.first().filter(|(side, _)| *side == Contender::Ours).and_then(|(_, of)| of.get(IMAGE));
        add_rows(rows, &name, &Measurements::of_numbers(sides))?;
        let (case, peer, value) = PUBLISHED;
        if let Some(ours) = ours.filter(|_| case == name) {
            let peer = Some(Peer { name: peer, value });
            rows.add(&Measured { table: TABLE, case, metric: IMAGE.name, unit: IMAGE.unit, ours, peer })?;
        }
    }
    Ok(failures)
}

/// What must not be given back while others are measured.
#[derive(Default)]
struct Kept {
    windows: Vec<Windows<u64, AccumulatorConfig>>,
    series: Vec<HashMap<u64, Sketch>>,
    sketches: Vec<Vec<Sketch>>,
}

impl Kept {
    /// Many series of few observations: ours in windows, sketches of others in a map. `None` for what is no sketch.
    fn series(&mut self, side: Contender, k: u16) -> Result<Option<Numbers>, Wrong> {
        let before = resident_mib()?;
        match side {
            Contender::Run => return Ok(None),
            Contender::Ours => {
                let spec = WindowSpec::Tumbling { size_ns: 10, allowed_lateness_ns: 0, max_future_ns: u64::MAX };
                let config = WindowConfig { spec, max_series: SERIES as usize, idle_ns: 1 };
                let factory = AccumulatorConfig::new(Method::Kll { k }, 1).map_err(Wrong::library)?;
                let mut windows = Windows::new(config, factory).map_err(Wrong::library)?;
                for series in 0..SERIES {
                    let _ = windows.observe_run(&series, &[1; SHORT.len()], &SHORT, 0, |_, _| {});
                }
                let (found, expected) = (windows.counters().used, SERIES * SHORT.len() as u64);
                if found != expected {
                    return Err(Wrong::Count { found, expected });
                }
                self.windows.push(windows);
            }
            _ => {
                let filled = |series| Ok((series, Sketch::filled(side, k, series, &SHORT)?));
                let sketches = (0..SERIES).map(filled).collect::<Result<HashMap<_, _>, Wrong>>()?;
                sketches.values().try_for_each(|sketch| sketch.check_count(SHORT.len()))?;
                self.series.push(sketches);
            }
        }
        let bytes = (resident_mib()? - before) * f64::from(1 << 20);
        Ok(Some(Numbers::default().with(ALL_RESIDENT, bytes / 1e6)))
    }

    /// Sketches of many observations.
    fn memory(&mut self, side: Contender, k: u16, count: u64) -> Result<Option<Numbers>, Wrong> {
        if side == Contender::Run {
            return Ok(None);
        }
        let values = Stream::Uniform.values(N);
        let mut sketches = Vec::with_capacity(count as usize);
        let before = resident_mib()?;
        for seed in 0..count {
            sketches.push(Sketch::filled(side, k, seed, &values)?);
        }
        let bytes = (resident_mib()? - before) * f64::from(1 << 20);
        sketches.iter().try_for_each(|sketch| sketch.check_count(N))?;
        let numbers = Numbers::default().with(RESIDENT, bytes / count as f64);
        let counted = sketches.last().and_then(Sketch::counted_bytes);
        self.sketches.push(sketches);
        Ok(Some(match counted {
            Some(counted) => numbers.with(COUNTED_BYTES, counted as f64),
            None => numbers,
        }))
    }
}

/// Length of what is sent, and the share of the observations that it stands for.
fn bytes(side: Contender, k: u16, n: usize) -> Result<Option<Numbers>, Wrong> {
    let values = Stream::Uniform.values(n);
    let (image, counted) = match side {
        Contender::DdSketch => return Ok(None),
        Contender::Run => {
            let run = SortedRun::from_values(&values);
            (run.to_bytes(), run.n())
        }
        _ => {
            let sketch = Sketch::filled(side, k, 1, &values)?;
            sketch.check_count(n)?;
            (sketch.to_bytes()?, sketch.count())
        }
    };
    let counted = 100.0 * counted as f64 / n as f64;
    Ok(Some(Numbers::default().with(IMAGE, image.len() as f64).with(COUNTED, counted)))
}
