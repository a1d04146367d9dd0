//! Works of several sides that are timed in turns.

use std::hint::black_box;
use std::io::Write;

use super::super::numbers::{Metric, Numbers};
use super::super::rounds::{Measurements, Plan, Side, interleaved};
use super::super::{Setup, progress};
use super::sketches::Contender;
use super::{TABLE, Wrong};
use crate::process::thread_time;
use crate::row::Rows;

/// Runs of each side: their median and the best are told.
const ROUNDS: usize = 25;
const QUICK_ROUNDS: usize = 3;

/// How a case states its numbers, of CPU time: the metric of the median and that of the best run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    MillionsPerSecond,
    Nanoseconds,
    Microseconds,
}

impl Figure {
    fn metrics(self) -> [Metric; 2] {
        let (names, unit) = match self {
            Self::MillionsPerSecond => (["rate", "best_rate"], "M values/s"),
            Self::Nanoseconds => (["time", "best_time"], "ns/value"),
            Self::Microseconds => (["time", "best_time"], "us"),
        };
        names.map(|name| Metric { name, unit })
    }

    fn of(self, seconds: f64) -> f64 {
        match self {
            Self::MillionsPerSecond => 1e-6 / seconds,
            Self::Nanoseconds => seconds * 1e9,
            Self::Microseconds => seconds * 1e6,
        }
    }

    fn better(self, one: f64, other: f64) -> f64 {
        if self == Self::MillionsPerSecond { one.max(other) } else { one.min(other) }
    }
}

/// What a side does in a case.
pub(super) struct Work<'a> {
    pub(super) contender: Contender,
    /// Runs once; gives the CPU seconds of an item.
    run: Box<dyn FnMut() -> Result<f64, Wrong> + 'a>,
}

impl<'a> Work<'a> {
    /// A run makes what it needs by `prepare`, is timed while it does `work` on `items`, and has a number only if what comes
    /// of it passes the `check`.
    pub(super) fn new<P, T>(
        contender: Contender,
        items: usize,
        mut prepare: impl FnMut() -> Result<P, Wrong> + 'a,
        mut work: impl FnMut(P) -> Result<T, Wrong> + 'a,
        mut check: impl FnMut(&T) -> Result<(), Wrong> + 'a,
    ) -> Self {
        let run = move || {
            let prepared = black_box(prepare()?);
            let began = thread_time()?;
            let made = black_box(work(prepared)?);
            let taken = thread_time()?.saturating_sub(began);
            check(&made)?;
            Ok(taken.as_secs_f64() / items as f64)
        };
        Self { contender, run: Box::new(run) }
    }
}

/// Times the works of a case, the first of which is ours, and writes its rows; gives the number of sides that failed.
pub(super) fn measure<W: Write>(
    setup: &Setup,
    rows: &mut Rows<W>,
    case: &str,
    figure: Figure,
    mut works: Vec<Work<'_>>,
) -> std::io::Result<usize> {
    progress(case);
    let [middle, best] = figure.metrics();
    let sides: Vec<Contender> = works.iter().map(|work| work.contender).collect();
    let mut bests: Vec<(Contender, Numbers)> = Vec::new();
    let rounds = if setup.quick { QUICK_ROUNDS } else { ROUNDS };
    let measured = interleaved(&Plan::of_short_runs(case, sides, rounds), |side| {
        let Some(work) = works.iter_mut().find(|work| work.contender == side) else { return Err(Wrong::Empty) };
        let value = figure.of((work.run)()?);
        match bests.iter_mut().find(|(one, _)| *one == side) {
            Some((_, numbers)) => {
                let so_far = numbers.get(best).unwrap_or(value);
                *numbers = Numbers::default().with(best, figure.better(so_far, value));
            }
            None => bests.push((side, Numbers::default().with(best, value))),
        }
        Ok(Numbers::default().with(middle, value))
    });
    bests.retain(|(side, _)| measured.of(*side).is_some());
    add_rows(rows, case, &measured)?;
    add_rows(rows, case, &Measurements::of_numbers(bests))?;
    Ok(measured.failures())
}

/// Writes the rows of ours beside all others.
pub(super) fn add_rows<W: Write>(
    rows: &mut Rows<W>,
    case: &str,
    measured: &Measurements<Contender>,
) -> std::io::Result<()> {
    let peers: Vec<Contender> = measured.sides().filter(|side| *side != Contender::Ours).collect();
    measured.add_rows(rows, TABLE, case, Contender::Ours, &peers)
}

impl std::fmt::Debug for Work<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Work").field(&self.contender.name()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Machine;

    /// Median and best of each side; one whose result is wrong has no rows.
    #[test]
    fn rows() {
        let busy = |contender, wrong: bool| {
            let check = move |_: &u64| if wrong { Err(Wrong::Empty) } else { Ok(()) };
            Work::new(contender, 10, || Ok(50_000u64), |n| Ok((0..n).map(black_box).sum::<u64>()), check)
        };
        let works = vec![busy(Contender::Ours, false), busy(Contender::Asap, true), busy(Contender::DdSketch, false)];
        let setup = Setup { quick: true, ..Setup::default() };
        let mut out = Vec::new();
        let mut rows = Rows::new(Machine::detect(), &mut out, None);
        assert_eq!(measure(&setup, &mut rows, "case", Figure::MillionsPerSecond, works).unwrap(), 1);
        let rows: Vec<serde_json::Value> =
            String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let names: Vec<_> = rows.iter().map(|row| (row["metric"].clone(), row["peer_name"].clone())).collect();
        let peer = "sketches-ddsketch-0.3.2";
        assert_eq!(names, [("rate".into(), peer.into()), ("best_rate".into(), peer.into())]);
        assert!(rows[1]["ours"].as_f64() >= rows[0]["ours"].as_f64());
    }
}
