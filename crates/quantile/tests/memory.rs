//! Memory of the process, not what the crate believes: alone in its file, since tests of one file
//! share a process.

use std::fs;

use catchment_quantile::accumulator::{AccumulatorConfig, Method};
use catchment_quantile::window::{WindowConfig, WindowSpec, Windows};

const SERIES: u64 = 100_000;

/// Resident bytes of this process, where the kernel tells.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

/// A hundred thousand series of five values, with their keys and their places in a window, take
/// less than 40 MB; a thousand windows of other series after them take no more.
#[test]
fn many_short_series_take_little_memory() {
    let Some(before) = resident() else {
        println!("skipped: no VmRSS in /proc/self/status");
        return;
    };
    let spec = WindowSpec::Tumbling { size_ns: 10, allowed_lateness_ns: 0, max_future_ns: u64::MAX };
    let config = WindowConfig { spec, max_series: SERIES as usize, idle_ns: 1 };
    let factory = AccumulatorConfig::new(Method::Kll { k: 400 }, 1).expect("method");
    let mut windows = Windows::new(config, factory).expect("windows");
    for series in 0..SERIES {
        windows.observe_run(&series, &[1; 5], &[1.0, 2.0, 3.0, 4.0, 5.0], 0, |_, _| {});
    }
    let after = resident().expect("as before").saturating_sub(before);
    assert_eq!(windows.open_series(), SERIES as usize);
    println!("{after} bytes resident, {} in accumulators", windows.retained_bytes());
    assert!(after < 40_000_000, "{after} bytes");

    for round in 1..1000u64 {
        for series in 0..100 {
            windows.observe(&(SERIES + round * 100 + series), round as i64 * 10, 1.0, 0);
        }
        windows.poll_closed();
    }
    let churned = resident().expect("as before").saturating_sub(before);
    assert!(churned < 45_000_000, "{churned} bytes");
    assert_eq!(windows.counters().offered(), SERIES * 5 + 99_900);
}
