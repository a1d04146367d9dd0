//! Exact quantiles: sorting, selection, and sorted runs that several sources send.

use std::io::Write;

use catchment_quantile::{ExactQuantiles, SortedRun, run};

use super::super::Setup;
use super::Wrong;
use super::corpus::{Stream, Truth};
use super::sketches::{BATCH, Contender, RANKS};
use super::speed::{self, Figure, Work};
use crate::row::Rows;

const SIZES: [usize; 3] = [16_384, 65_536, 262_144];
/// Observations of all runs together, and of the one whose bytes are written and read.
const N: usize = 65_536;
const RUNS: [usize; 3] = [2, 16, 64];
/// Times that a run asks all runs.
const REPEATS: usize = 50;

#[derive(Debug, Clone, Copy)]
enum Operation {
    Observe(usize),
    Sort(usize),
    Select(usize),
    Bisect(usize),
    ToBytes,
    FromBytes,
}

fn cases() -> impl Iterator<Item = (String, Operation)> {
    let observe = [(format!("exact/observe/{N}"), Operation::Observe(N))];
    let sort = SIZES.into_iter().map(|n| (format!("exact/sort/{n}"), Operation::Sort(n)));
    let select = SIZES.into_iter().map(|n| (format!("exact/select/{n}"), Operation::Select(n)));
    let bisect = RUNS.into_iter().map(|runs| (format!("exact/bisect/{runs}-runs"), Operation::Bisect(runs)));
    let bytes =
        [(format!("exact/to-bytes/{N}"), Operation::ToBytes), (format!("exact/from-bytes/{N}"), Operation::FromBytes)];
    observe.into_iter().chain(sort).chain(select).chain(bisect).chain(bytes)
}

/// Names of all cases.
pub(super) fn names() -> Vec<String> {
    cases().map(|(name, _)| name).collect()
}

/// Measures the cases that are asked for.
pub(super) fn measure<W: Write>(setup: &Setup, rows: &mut Rows<W>) -> std::io::Result<usize> {
    let mut failures = 0;
    for (name, operation) in cases().filter(|(name, _)| setup.wants(name)) {
        let (n, figure) = match operation {
            Operation::Observe(n) | Operation::Sort(n) | Operation::Select(n) => (n, Figure::Nanoseconds),
            Operation::Bisect(_) => (N, Figure::Microseconds),
            Operation::ToBytes | Operation::FromBytes => (N, Figure::Nanoseconds),
        };
        let values = Stream::Uniform.values(n);
        let truth = Truth::of(values.clone());
        failures += speed::measure(setup, rows, &name, figure, works(operation, &values, &truth))?;
    }
    Ok(failures)
}

fn works<'a>(operation: Operation, values: &'a [f64], truth: &'a Truth) -> Vec<Work<'a>> {
    let (n, ours) = (values.len(), Contender::Ours);
    let nothing = || Ok(());
    let check_run = move |run: &SortedRun| {
        truth.check_count(run.n())?;
        check_pair(truth, &run::quantiles(std::slice::from_ref(run), &RANKS).map_err(Wrong::library)?)
    };
    match operation {
        Operation::Observe(_) => {
            let observe = move |()| Ok(observed(values));
            vec![Work::new(ours, n, nothing, observe, move |exact: &ExactQuantiles| truth.check_count(exact.n()))]
        }
        Operation::Sort(_) => {
            let sort = move |()| Ok(SortedRun::from_values(values));
            vec![Work::new(ours, n, nothing, sort, check_run), sort_f64(values, truth)]
        }
        Operation::Select(_) => {
            let exact = observed(values);
            let select = move |()| exact.quantiles(&RANKS).map_err(Wrong::library);
            let select = Work::new(ours, n, nothing, select, |pair: &Vec<f64>| check_pair(truth, pair));
            vec![select, select_f64(values, truth), sort_f64(values, truth)]
        }
        Operation::Bisect(count) => {
            let runs: Vec<SortedRun> = values.chunks(n / count).map(SortedRun::from_values).collect();
            let ask = move |()| {
                (0..REPEATS)
                    .map(|_| run::quantiles(&runs, &RANKS).map_err(Wrong::library))
                    .collect::<Result<Vec<_>, _>>()
            };
            let bisect = Work::new(ours, REPEATS, nothing, ask, |pairs: &Vec<Vec<f64>>| {
                pairs.iter().try_for_each(|pair| check_pair(truth, pair))
            });
            // All values of all runs in one place: a window is one item here.
            vec![bisect, select_window(values, truth)]
        }
        Operation::ToBytes => {
            let run = SortedRun::from_values(values);
            let write = move |()| Ok(run.to_bytes());
            vec![Work::new(ours, n, nothing, write, move |bytes: &Vec<u8>| {
                check_run(&SortedRun::from_bytes(bytes).map_err(Wrong::library)?)
            })]
        }
        Operation::FromBytes => {
            let bytes = SortedRun::from_values(values).to_bytes();
            let read = move |()| SortedRun::from_bytes(&bytes).map_err(Wrong::library);
            vec![Work::new(ours, n, nothing, read, check_run)]
        }
    }
}

fn observed(values: &[f64]) -> ExactQuantiles {
    let mut exact = ExactQuantiles::new(u64::MAX);
    for batch in values.chunks(BATCH) {
        let _ = exact.observe_slice(batch);
    }
    exact
}

/// Whether both quantiles are exact.
pub(super) fn check_pair(truth: &Truth, pair: &[f64]) -> Result<(), Wrong> {
    if pair.len() != RANKS.len() {
        return Err(Wrong::Empty);
    }
    let wrong = pair.iter().zip(RANKS).find(|(found, q)| **found != truth.quantile(*q));
    wrong.map_or(Ok(()), |(&found, q)| Err(Wrong::Quantile { q, found }))
}

/// What anybody can write: a copy, sorted.
pub(super) fn sort_f64<'a>(values: &'a [f64], truth: &'a Truth) -> Work<'a> {
    let sort = move |()| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Ok(sorted)
    };
    Work::new(
        Contender::SortF64,
        values.len(),
        || Ok(()),
        sort,
        move |sorted: &Vec<f64>| check_pair(truth, &indexes(sorted.len()).map(|index| sorted[index])),
    )
}

/// A copy, and two selections in it.
pub(super) fn select_f64<'a>(values: &'a [f64], truth: &'a Truth) -> Work<'a> {
    selection(values, truth, values.len())
}

fn select_window<'a>(values: &'a [f64], truth: &'a Truth) -> Work<'a> {
    selection(values, truth, 1)
}

fn selection<'a>(values: &'a [f64], truth: &'a Truth, items: usize) -> Work<'a> {
    let select = move |()| {
        let mut copy = values.to_vec();
        let [middle, high] = indexes(copy.len());
        let (left, &mut high, _) = copy.select_nth_unstable_by(high, f64::total_cmp);
        let (_, &mut middle, _) = left.select_nth_unstable_by(middle, f64::total_cmp);
        Ok([middle, high])
    };
    Work::new(Contender::SelectF64, items, || Ok(()), select, |pair: &[f64; 2]| check_pair(truth, pair))
}

/// Where the quantiles of [`RANKS`] are among so many sorted values.
fn indexes(n: usize) -> [usize; 2] {
    RANKS.map(|q| (q * n as f64).ceil() as usize - 1)
}
