//! Sketches into one another, into bytes and back, and questions to them.

use std::io::Write;

use super::super::Setup;
use super::Wrong;
use super::corpus::{Stream, Truth};
use super::sketches::{Contender, RANKS, Sketch};
use super::speed::{self, Figure, Work};
use crate::row::Rows;

/// Observations of each sketch.
const N: usize = 65_536;
/// Times that a run does its work, with a sketch of its own each time where it changes it.
const REPEATS: usize = 50;
const KS: [u16; 2] = [400, 200];
const OPERATIONS: [&str; 4] = ["merge", "to-bytes", "from-bytes", "query"];
const SIDES: [Contender; 3] = [Contender::Ours, Contender::DataSketches, Contender::Asap];

fn cases() -> impl Iterator<Item = (String, &'static str, u16)> {
    OPERATIONS
        .into_iter()
        .flat_map(|operation| KS.into_iter().map(move |k| (format!("{operation}/k{k}/{N}"), operation, k)))
}

/// Names of all cases.
pub(super) fn names() -> Vec<String> {
    cases().map(|(name, ..)| name).collect()
}

/// Measures the cases that are asked for.
pub(super) fn measure<W: Write>(setup: &Setup, rows: &mut Rows<W>) -> Result<usize, Box<dyn std::error::Error>> {
    let mut failures = 0;
    for (name, operation, k) in cases().filter(|(name, ..)| setup.wants(name)) {
        let all = Stream::Uniform.values(2 * N);
        let (left, right) = all.split_at(N);
        let subject = Subject { k, left_truth: Truth::of(left.to_vec()), truth: Truth::of(all.clone()), left, right };
        let works = SIDES.into_iter().map(|side| subject.work(operation, side)).collect::<Result<_, _>>()?;
        failures += speed::measure(setup, rows, &name, Figure::Microseconds, works)?;
    }
    Ok(failures)
}

/// What two sketches are made of.
struct Subject<'a> {
    k: u16,
    left: &'a [f64],
    right: &'a [f64],
    left_truth: Truth,
    truth: Truth,
}

impl Subject<'_> {
    fn work(&self, operation: &str, side: Contender) -> Result<Work<'_>, Wrong> {
        let k = self.k;
        let left = Sketch::filled(side, k, 1, self.left)?;
        let right = Sketch::filled(side, k, 2, self.right)?;
        let check_left = move |sketch: &Sketch| sketch.check(k, N, &self.left_truth);
        Ok(match operation {
            "merge" => {
                let copies = move || Ok(vec![left.clone(); REPEATS]);
                let merge = move |mut copies: Vec<Sketch>| {
                    copies.iter_mut().try_for_each(|copy| copy.merge(&right))?;
                    Ok(copies)
                };
                Work::new(side, REPEATS, copies, merge, move |merged: &Vec<Sketch>| {
                    merged.iter().take(1).try_for_each(|sketch| sketch.check(k, 2 * N, &self.truth))
                })
            }
            "to-bytes" => {
                let write = move |()| (0..REPEATS).map(|_| left.to_bytes()).collect::<Result<Vec<_>, _>>();
                Work::new(
                    side,
                    REPEATS,
                    || Ok(()),
                    write,
                    move |images: &Vec<Vec<u8>>| {
                        images.iter().take(1).try_for_each(|image| check_left(&Sketch::from_bytes(side, image)?))
                    },
                )
            }
            "from-bytes" => {
                let image = left.to_bytes()?;
                let read =
                    move |()| (0..REPEATS).map(|_| Sketch::from_bytes(side, &image)).collect::<Result<Vec<_>, _>>();
                Work::new(
                    side,
                    REPEATS,
                    || Ok(()),
                    read,
                    move |sketches: &Vec<Sketch>| sketches.iter().take(1).try_for_each(check_left),
                )
            }
            _ => {
                check_left(&left)?;
                let ask = move |()| (0..REPEATS).map(|_| left.quantiles(&RANKS)).collect::<Result<Vec<_>, _>>();
                Work::new(
                    side,
                    REPEATS,
                    || Ok(()),
                    ask,
                    |answers: &Vec<Vec<f64>>| {
                        if answers.iter().all(|answer| answer.len() == RANKS.len()) {
                            Ok(())
                        } else {
                            Err(Wrong::Empty)
                        }
                    },
                )
            }
        })
    }
}
