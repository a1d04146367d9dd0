//! Two processes that make sketches, one that merges them, one that estimates quantiles, into a sink; or two that pass
//! points on. All of them, the senders and the sink share the two cores.

use std::path::Path;

use catchment_loadgen::metrics::MetricsError;

use super::super::numbers::{Metric, Numbers};
use super::arrived;
use super::cases::{Case, Method};
use super::configs::{self, Role};
use super::run::{Load, PATIENCE, RATE, RunError, check_raw, finish, start_sink};
use super::truth::QUANTILES;
use crate::process::{Cost, ENGINE_CORE, Engine, LOAD_CORE, Listening, ProcessError, free_address};

/// CPU time of the two branches, of the merging and of the estimating process, for a million observations.
const CPU_BRANCHES: Metric = Metric { name: "cpu_branches", unit: "core s/M observations" };
const CPU_MERGE: Metric = Metric { name: "cpu_merge", unit: "core s/M observations" };
const CPU_ESTIMATE: Metric = Metric { name: "cpu_estimate", unit: "core s/M observations" };
/// The same of the latter two for a window of both sources.
pub(super) const MERGE_WINDOW: Metric = Metric { name: "cpu_merge_window", unit: "ms/window" };
pub(super) const ESTIMATE_WINDOW: Metric = Metric { name: "cpu_estimate_window", unit: "ms/window" };
/// Largest resident sizes, of the larger branch.
const RSS_BRANCH: Metric = Metric { name: "rss_branch", unit: "MiB" };
const RSS_MERGE: Metric = Metric { name: "rss_merge", unit: "MiB" };
const RSS_ESTIMATE: Metric = Metric { name: "rss_estimate", unit: "MiB" };

/// Cores of the branches.
const BRANCH_CORES: [usize; 2] = [ENGINE_CORE, LOAD_CORE];

/// One run of a method.
pub(super) fn run(binary: &Path, case: &Case, load: &Load, method: Method) -> Result<Numbers, RunError> {
    let (sink, backend) = start_sink(case.protocol)?;
    let start = |role, core, endpoint| {
        let listening = free_address()?;
        let config = configs::process(case, method, role, core, listening, endpoint);
        let engine = Engine::start_on(core, binary, config, &[Listening::Tcp(listening)])?;
        Ok::<_, RunError>((engine, listening))
    };
    // From the backend to the front, so that each has somewhere to send to. The middle is one process after the other.
    let (middle, endpoint) = if method == Method::Raw {
        (Vec::new(), backend)
    } else {
        let (estimate, endpoint) = start(Role::Estimate, LOAD_CORE, backend)?;
        let (merge, endpoint) = start(Role::Merge { sources: case.sources() }, ENGINE_CORE, endpoint)?;
        (vec![merge, estimate], endpoint)
    };
    let role = |source| if method == Method::Raw { Role::Pass } else { Role::Create { source } };
    let mut branches = Vec::new();
    for (source, core) in (0..).zip(BRANCH_CORES) {
        branches.push(start(role(source), core, endpoint)?);
    }

    let points = load.points(method);
    let results = (QUANTILES.len() + 1) * load.truth.len();
    let expected = if method == Method::Raw { points } else { results as u64 };
    let engines = || branches.iter().map(|(engine, _)| engine).chain(&middle);
    let windows = engines().map(Engine::open_window).collect::<Result<Vec<_>, _>>()?;
    let sent = std::thread::scope(|scope| {
        let senders: Vec<_> = branches
            .iter()
            .enumerate()
            .map(|(source, (_, listening))| scope.spawn(move || load.send(source, method, *listening)))
            .collect();
        let join = |sender: std::thread::ScopedJoinHandle<'_, Result<(), MetricsError>>| {
            sender.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        senders.into_iter().map(join).collect::<Vec<_>>().into_iter().collect::<Result<Vec<()>, _>>()
    });
    let last_words = || engines().map(Engine::last_words).collect::<Vec<_>>().join("\n---\n");
    let _ = sent.map_err(|source| RunError::Send { source, log: last_words() })?;
    let arrived = sink.wait_for(expected, PATIENCE);
    let costs = windows.into_iter().map(|window| window.close()).collect::<Result<Vec<_>, _>>()?;
    if let Err(source) = arrived {
        return Err(RunError::Missing { source, log: last_words() });
    }

    stop_all(branches.into_iter().map(|(engine, _)| engine).chain(middle))?;
    let (messages, counts) = finish(sink, points)?;
    if method == Method::Raw {
        check_raw(load, messages, counts)?;
    } else {
        load.truth.check(&arrived::quantiles(messages, &load.truth)?, method)?;
    }
    Ok(numbers(&costs, points, load.truth.windows()))
}

/// Stops all at once: each takes its time, and what everything waited for has arrived.
fn stop_all(engines: impl Iterator<Item = Engine>) -> Result<(), ProcessError> {
    std::thread::scope(|scope| {
        let stopping: Vec<_> = engines.map(|engine| scope.spawn(|| engine.stop())).collect();
        let join = |one: std::thread::ScopedJoinHandle<'_, Result<(), ProcessError>>| {
            one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        stopping.into_iter().map(join).collect::<Vec<_>>().into_iter().collect()
    })
}

/// Costs are those of both branches, and of merging and estimating if there was any.
fn numbers(costs: &[Cost], points: u64, windows: u64) -> Numbers {
    let (branches, middle) = costs.split_at(BRANCH_CORES.len().min(costs.len()));
    let millions = points as f64 / 1e6;
    let cpu = |costs: &[Cost]| costs.iter().map(|cost| cost.cpu_seconds).sum::<f64>();
    let rss = |costs: &[Cost]| costs.iter().map(|cost| cost.peak_rss_mib).fold(0.0, f64::max);
    let seconds = costs.iter().map(|cost| cost.seconds).fold(0.0, f64::max);
    let numbers = Numbers::default()
        .with(RATE, points as f64 / seconds)
        .with(CPU_BRANCHES, cpu(branches) / millions)
        .with(RSS_BRANCH, rss(branches));
    match middle {
        [merge, estimate] => numbers
            .with(CPU_MERGE, merge.cpu_seconds / millions)
            .with(CPU_ESTIMATE, estimate.cpu_seconds / millions)
            .with(MERGE_WINDOW, merge.cpu_seconds * 1e3 / windows as f64)
            .with(ESTIMATE_WINDOW, estimate.cpu_seconds * 1e3 / windows as f64)
            .with(RSS_MERGE, merge.peak_rss_mib)
            .with(RSS_ESTIMATE, estimate.peak_rss_mib),
        _ => numbers,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Branches are added up, the others stand for themselves.
    #[test]
    fn by_role() {
        let cost = |cpu_seconds, rss| Cost { seconds: 2.0, cpu_seconds, peak_rss_mib: rss, mean_rss_mib: 1.0 };
        let costs = [cost(0.5, 60.0), cost(0.7, 70.0), cost(0.1, 40.0), cost(0.05, 50.0)];
        let all = numbers(&costs, 4_000_000, 20);
        let metrics = [RATE, CPU_BRANCHES, RSS_BRANCH, CPU_MERGE, MERGE_WINDOW, ESTIMATE_WINDOW, RSS_ESTIMATE];
        let expected = [2_000_000.0, 0.3, 70.0, 0.025, 5.0, 2.5, 50.0];
        for (metric, expected) in metrics.into_iter().zip(expected) {
            assert!((all.get(metric).unwrap() - expected).abs() < 1e-9, "{metric:?}");
        }
        let raw = numbers(&costs[..2], 4_000_000, 20);
        assert_eq!((raw.get(CPU_MERGE), raw.get(RATE)), (None, Some(2_000_000.0)));
    }
}
