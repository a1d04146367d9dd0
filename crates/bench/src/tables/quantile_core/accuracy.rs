//! Rank errors over many seeds.
//!
//! A stream goes into one sketch, or in equal pieces into several that are merged. Half of the sketch of the whole stream is
//! the first of the two pieces too: cells share coins, runs of a cell do not.

use std::io::Write;

use catchment_quantile::seed;

use super::super::numbers::{Metric, Numbers};
use super::super::rounds::Measurements;
use super::super::{Setup, progress};
use super::Wrong;
use super::corpus::{Stream, Truth};
use super::sketches::{Contender, KLL, Sketch};
use super::speed::add_rows;
use crate::row::Rows;

const N: usize = 262_144;
const SEEDS: u64 = 100;
const QUICK_N: usize = 65_536;
const QUICK_SEEDS: u64 = 10;
const KS: [u16; 2] = [400, 200];
const RANKS: [f64; 3] = [0.5, 0.99, 0.999];
/// Root mean square and largest error at each rank.
const METRICS: [[Metric; 2]; 3] = [
    [metric("rms_p50"), metric("max_p50")],
    [metric("rms_p99"), metric("max_p99")],
    [metric("rms_p999"), metric("max_p999")],
];

const fn metric(name: &'static str) -> Metric {
    Metric { name, unit: "% of n" }
}

/// Numbers of pieces that a stream is cut into.
fn pieces(stream: Stream) -> &'static [usize] {
    if stream == Stream::Uniform { &[1, 2, 64, 1_000] } else { &[1, 2, 64] }
}

fn name(k: u16, stream: Stream, pieces: usize) -> String {
    format!("rank-error/k{k}/{}/{pieces}", stream.name())
}

fn name_of_all(k: u16) -> String {
    format!("rank-error/k{k}/all")
}

/// Names of all cases.
pub(super) fn names() -> Vec<String> {
    let of_k = |k| {
        let cells = Stream::ALL.into_iter().flat_map(|stream| pieces(stream).iter().map(move |&of| (stream, of)));
        cells.map(move |(stream, of)| name(k, stream, of)).chain([name_of_all(k)])
    };
    KS.into_iter().flat_map(of_k).collect()
}

/// Measures the cases that are asked for.
pub(super) fn measure<W: Write>(setup: &Setup, rows: &mut Rows<W>) -> std::io::Result<usize> {
    let mut failures = 0;
    for k in KS {
        let all_wanted = setup.wants(&name_of_all(k));
        let mut all: Vec<(Contender, Errors)> = Vec::new();
        for stream in Stream::ALL {
            let wanted = |of: &usize| all_wanted || setup.wants(&name(k, stream, *of));
            let pieces: Vec<usize> = pieces(stream).iter().copied().filter(wanted).collect();
            if pieces.is_empty() {
                continue;
            }
            progress(&format!("rank-error/k{k}/{}", stream.name()));
            let (n, seeds) = if setup.quick { (QUICK_N, QUICK_SEEDS) } else { (N, SEEDS) };
            let cells = match Cells::measure(k, &stream.values(n), &pieces, seeds) {
                Ok(cells) => cells,
                Err(error) => {
                    progress(&format!("error: rank-error/k{k}/{}: {error}", stream.name()));
                    failures += 1;
                    continue;
                }
            };
            for (pieces, sides) in cells.0 {
                if stream.is_smooth() {
                    pool(&mut all, &sides);
                }
                let name = name(k, stream, pieces);
                if setup.wants(&name) {
                    write(rows, &name, sides)?;
                }
            }
        }
        if all_wanted {
            write(rows, &name_of_all(k), all)?;
        }
    }
    Ok(failures)
}

/// Adds the errors of a cell to those of all.
fn pool(all: &mut Vec<(Contender, Errors)>, sides: &[(Contender, Errors)]) {
    for (side, errors) in sides {
        match all.iter_mut().find(|(one, _)| one == side) {
            Some((_, sum)) => sum.add(errors),
            None => all.push((*side, errors.clone())),
        }
    }
}

fn write<W: Write>(rows: &mut Rows<W>, case: &str, sides: Vec<(Contender, Errors)>) -> std::io::Result<()> {
    let numbers = sides.into_iter().map(|(side, errors)| (side, errors.numbers())).collect();
    add_rows(rows, case, &Measurements::of_numbers(numbers))
}

/// Errors at each of the ranks.
#[derive(Debug, Clone, Default, PartialEq)]
struct Errors {
    runs: u64,
    squares: [f64; RANKS.len()],
    largest: [f64; RANKS.len()],
}

impl Errors {
    fn take(&mut self, sketch: &Sketch, truth: &Truth) -> Result<(), Wrong> {
        self.runs += 1;
        for (index, (found, q)) in sketch.quantiles(&RANKS)?.into_iter().zip(RANKS).enumerate() {
            let error = truth.rank_error(found, q).abs();
            self.squares[index] += error * error;
            self.largest[index] = self.largest[index].max(error);
        }
        Ok(())
    }

    fn add(&mut self, other: &Self) {
        self.runs += other.runs;
        for index in 0..RANKS.len() {
            self.squares[index] += other.squares[index];
            self.largest[index] = self.largest[index].max(other.largest[index]);
        }
    }

    fn numbers(&self) -> Numbers {
        let each = METRICS.into_iter().zip(self.squares).zip(self.largest);
        each.fold(Numbers::default(), |numbers, (([rms, max], squares), largest)| {
            numbers.with(rms, 100.0 * (squares / self.runs as f64).sqrt()).with(max, 100.0 * largest)
        })
    }
}

/// The errors of all sides for each number of pieces.
struct Cells(Vec<(usize, Vec<(Contender, Errors)>)>);

impl Cells {
    fn measure(k: u16, values: &[f64], pieces: &[usize], seeds: u64) -> Result<Self, Wrong> {
        let truth = Truth::of(values.to_vec());
        let mut cells = Self(pieces.iter().map(|&of| (of, Vec::new())).collect());
        // DDSketch has no coins: one run tells everything.
        for (side, seeds) in KLL.into_iter().map(|side| (side, seeds)).chain([(Contender::DdSketch, 1)]) {
            for (_, sides) in &mut cells.0 {
                sides.push((side, Errors::default()));
            }
            for seed in 0..seeds {
                let coins = Coins { side, k, seed };
                let mut found = coins.whole_and_halves(values, pieces)?;
                for &of in pieces.iter().filter(|&&of| of > 2) {
                    found.push((of, coins.merged(values, of)?));
                }
                for (of, sketch) in found {
                    sketch.check_count(values.len())?;
                    let sides = cells.0.iter_mut().find(|(one, _)| *one == of).and_then(|(_, sides)| sides.last_mut());
                    if let Some((_, errors)) = sides {
                        errors.take(&sketch, &truth)?;
                    }
                }
            }
        }
        Ok(cells)
    }
}

/// A side and the coins of one run; sketches of a run have different ones.
#[derive(Debug, Clone, Copy)]
struct Coins {
    side: Contender,
    k: u16,
    seed: u64,
}

impl Coins {
    fn filled(self, piece: u64, of: usize, values: &[f64]) -> Result<Sketch, Wrong> {
        let seed = seed::derive(self.seed, piece, i64::try_from(of).unwrap_or(0));
        Sketch::filled(self.side, self.k, seed, values)
    }

    /// One sketch of everything, and one merged from two halves, those of them that are asked for.
    fn whole_and_halves(self, values: &[f64], pieces: &[usize]) -> Result<Vec<(usize, Sketch)>, Wrong> {
        let (left, right) = values.split_at(values.len() / 2);
        let mut found = Vec::new();
        if pieces.contains(&1) || pieces.contains(&2) {
            let mut whole = self.filled(0, 2, left)?;
            if pieces.contains(&2) {
                let mut halves = whole.clone();
                halves.merge(&self.filled(1, 2, right)?)?;
                found.push((2, halves));
            }
            if pieces.contains(&1) {
                whole.insert(right);
                found.push((1, whole));
            }
        }
        Ok(found)
    }

    /// One sketch merged from so many.
    fn merged(self, values: &[f64], of: usize) -> Result<Sketch, Wrong> {
        let mut whole = self.filled(u64::MAX, of, &[])?;
        for (number, piece) in values.chunks(values.len().div_ceil(of)).enumerate() {
            whole.merge(&self.filled(number as u64, of, piece)?)?;
        }
        Ok(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All sides have all cells; errors are those of their `k`, but for DDSketch's.
    #[test]
    fn cells() {
        let values = Stream::Uniform.values(10_000);
        let cells = Cells::measure(50, &values, &[1, 2, 64], 10).unwrap().0;
        assert_eq!(cells.iter().map(|(of, _)| *of).collect::<Vec<_>>(), [1, 2, 64]);
        for (_, sides) in &cells {
            let sides_there: Vec<_> = sides.iter().map(|(side, _)| *side).collect();
            assert_eq!(sides_there[..4], KLL);
            for (side, errors) in &sides[..4] {
                assert_eq!(errors.runs, 10);
                let rms = errors.numbers().get(METRICS[0][0]).unwrap();
                assert!(rms > 0.1 && rms < 5.0, "{side:?}: {rms}");
                assert!(errors.numbers().get(METRICS[0][1]).unwrap() >= rms);
            }
            assert_eq!(sides[4].1.runs, 1);
        }
    }

    /// Mean squares and largest of all runs, in percent.
    #[test]
    fn pooled() {
        let one = |runs, square: f64, largest| Errors { runs, squares: [square; 3], largest: [largest; 3] };
        let mut all = Vec::new();
        pool(&mut all, &[(Contender::Ours, one(1, 0.0001, 0.01))]);
        pool(&mut all, &[(Contender::Ours, one(3, 0.0003, 0.05)), (Contender::Asap, one(1, 1.0, 1.0))]);
        assert_eq!(all.len(), 2);
        let numbers = all[0].1.numbers();
        assert!((numbers.get(METRICS[1][0]).unwrap() - 1.0).abs() < 1e-9);
        assert!((numbers.get(METRICS[2][1]).unwrap() - 5.0).abs() < 1e-9);
    }
}
