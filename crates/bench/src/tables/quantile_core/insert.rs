//! Values into sketches, and what exact answers take beside them.

use std::io::Write;

use catchment_quantile::{ExactQuantiles, SortedRun};

use super::super::Setup;
use super::Wrong;
use super::corpus::{Stream, Truth};
use super::exact::{check_pair, select_f64, sort_f64};
use super::sketches::{BATCH, Contender, RANKS, Sketch};
use super::speed::{self, Figure, Work};
use crate::row::Rows;

const STREAMS: [Stream; 5] = [Stream::Uniform, Stream::Normal, Stream::Pareto, Stream::Bimodal, Stream::Sorted];
const KS: [u16; 2] = [400, 200];
const SIZES: [usize; 3] = [16_384, 65_536, 262_144];
const SKETCHES: [Contender; 6] = [
    Contender::Ours,
    Contender::Slices,
    Contender::OneByOne,
    Contender::DataSketches,
    Contender::Asap,
    Contender::DdSketch,
];

fn cases() -> impl Iterator<Item = (String, Stream, u16, usize)> {
    let all = STREAMS.into_iter().flat_map(|stream| KS.into_iter().map(move |k| (stream, k)));
    all.flat_map(|(stream, k)| {
        SIZES.into_iter().map(move |n| (format!("insert/{}/k{k}/{n}", stream.name()), stream, k, n))
    })
}

/// Names of all cases.
pub(super) fn names() -> Vec<String> {
    cases().map(|(name, ..)| name).collect()
}

/// Measures the cases that are asked for.
pub(super) fn measure<W: Write>(setup: &Setup, rows: &mut Rows<W>) -> std::io::Result<usize> {
    let mut failures = 0;
    for (name, stream, k, n) in cases().filter(|(name, ..)| setup.wants(name)) {
        let values = stream.values(n);
        let truth = Truth::of(values.clone());
        failures += speed::measure(setup, rows, &name, Figure::MillionsPerSecond, works(&values, &truth, k))?;
    }
    Ok(failures)
}

/// A sketch made and filled; for the exact ones, values kept and two quantiles found, or all of them sorted.
fn works<'a>(values: &'a [f64], truth: &'a Truth, k: u16) -> Vec<Work<'a>> {
    let n = values.len();
    let nothing = || Ok(());
    let mut works: Vec<Work<'a>> = SKETCHES
        .into_iter()
        .map(|contender| {
            let fill = move |()| Sketch::filled(contender, k, 1, values);
            Work::new(contender, n, nothing, fill, move |sketch: &Sketch| sketch.check(k, n, truth))
        })
        .collect();
    let select = move |()| {
        let mut exact = ExactQuantiles::new(u64::MAX);
        for batch in values.chunks(BATCH) {
            let _ = exact.observe_slice(batch);
        }
        Ok((exact.n(), exact.quantiles(&RANKS).map_err(Wrong::library)?))
    };
    works.push(Work::new(Contender::Exact, n, nothing, select, move |(found, pair): &(u64, Vec<f64>)| {
        truth.check_count(*found)?;
        check_pair(truth, pair)
    }));
    let run = move |()| Ok(SortedRun::from_values(values));
    works.push(Work::new(Contender::Run, n, nothing, run, move |run: &SortedRun| truth.check_count(run.n())));
    works.push(sort_f64(values, truth));
    works.push(select_f64(values, truth));
    works
}
