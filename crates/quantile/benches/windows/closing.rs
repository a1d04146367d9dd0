//! How long a window of many series holds the thread when it closes.

use std::hint::black_box;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use catchment_quantile::accumulator::{Accumulator, AccumulatorConfig, Method, WhenFull};
use catchment_quantile::window::{WindowConfig, WindowSpec, Windows};

const SERIES: usize = 100_000;
const ROUNDS: usize = 7;

/// Milliseconds of each step; of quantiles, those of the longest series.
pub fn run(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\nwindow of {SERIES} series of 5 values, milliseconds, best / median of {ROUNDS}")?;
    let kll = Method::Kll { k: 200 };
    let exact = Method::Exact { max_values: u64::MAX, when_full: WhenFull::Refuse };
    for (name, method) in [("KLL k=200", kll), ("exact", exact)] {
        let mut times: [Vec<Duration>; 4] = Default::default();
        for _ in 0..ROUNDS {
            step(method, &mut times);
        }
        for (what, times) in ["longest batch of 1000", "close", "quantiles of all", "drop"].iter().zip(&mut times) {
            times.sort_unstable();
            let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
            let (best, median) = (milliseconds(times[0]), milliseconds(times[ROUNDS / 2]));
            writeln!(out, "  {name:<12} {what:<24} {best:>8.2} / {median:>8.2}")?;
        }
    }
    Ok(())
}

fn step(method: Method, times: &mut [Vec<Duration>; 4]) {
    let spec = WindowSpec::Tumbling { size_ns: 10, allowed_lateness_ns: 0, max_future_ns: u64::MAX };
    let config = WindowConfig { spec, max_series: SERIES, idle_ns: 1 };
    let mut windows = Windows::new(config, AccumulatorConfig::new(method, 1).expect("method")).expect("windows");
    let keys: Vec<u64> = (0..SERIES as u64).collect();
    let mut longest = Duration::ZERO;
    for keys in keys.chunks(1000) {
        let begin = Instant::now();
        for key in keys {
            windows.observe_run(key, &[1; 5], &[1.0, 2.0, 3.0, 4.0, 5.0], 0, |_, _| {});
        }
        longest = longest.max(begin.elapsed());
    }
    times[0].push(longest);
    let begin = Instant::now();
    let closed = black_box(windows.flush_all());
    times[1].push(begin.elapsed());
    let begin = Instant::now();
    for (_, values) in closed.iter().flat_map(|window| &window.series) {
        let _ = black_box(values.quantiles(&[0.5, 0.99]));
    }
    times[2].push(begin.elapsed());
    let begin = Instant::now();
    drop(closed);
    times[3].push(begin.elapsed());
}
