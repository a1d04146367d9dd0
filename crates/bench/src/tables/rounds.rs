//! Sides that take turns, and the rows that come of it.

use std::fmt::Display;
use std::io::{self, Write};

use super::numbers::{Metric, Numbers};
use super::{Setup, progress};
use crate::row::{Measured, Peer, Rows};

/// Runs of each side.
const ROUNDS: usize = 3;

/// Something that is measured beside others.
pub(super) trait Side: Copy + PartialEq {
    /// Its name as a peer in rows.
    fn name(self) -> &'static str;
}

/// What to run.
#[derive(Debug)]
pub(super) struct Plan<'a, S> {
    case: &'a str,
    sides: Vec<S>,
    rounds: usize,
    /// Whether each run is told to whoever waits.
    tell: bool,
}

impl<'a, S: Side> Plan<'a, S> {
    /// Every side so many times as a table is worth, once if it is to be quick.
    pub(super) fn new(setup: &Setup, case: &'a str, sides: Vec<S>) -> Self {
        Self { case, sides, rounds: if setup.quick { 1 } else { ROUNDS }, tell: true }
    }

    /// Every side so many times, which are over too soon to be told one by one.
    pub(super) fn of_short_runs(case: &'a str, sides: Vec<S>, rounds: usize) -> Self {
        Self { case, sides, rounds, tell: false }
    }
}

/// The medians of each side.
#[derive(Debug)]
pub(super) struct Measurements<S> {
    sides: Vec<(S, Numbers)>,
    failures: usize,
}

/// Runs every side once a round; whoever begins in one round is last in the next. A side that fails has no numbers and no
/// further runs; the others go on.
pub(super) fn interleaved<S: Side, E: Display>(
    plan: &Plan<'_, S>,
    mut run: impl FnMut(S) -> Result<Numbers, E>,
) -> Measurements<S> {
    let Plan { case, ref sides, rounds, tell } = *plan;
    let mut runs: Vec<(S, Vec<Numbers>)> = sides.iter().map(|side| (*side, Vec::new())).collect();
    for round in 0..rounds {
        let mut order: Vec<S> = runs.iter().map(|(side, _)| *side).collect();
        if !order.is_empty() {
            let first = round % order.len();
            order.rotate_left(first);
        }
        for side in order {
            match run(side) {
                Ok(numbers) => {
                    if tell {
                        progress(&format!("{case}, {}, run {} of {rounds}: {numbers}", side.name(), round + 1));
                    }
                    runs.iter_mut().filter(|(one, _)| *one == side).for_each(|(_, all)| all.push(numbers.clone()));
                }
                Err(error) => {
                    progress(&format!("error: {case}, {}: {error}", side.name()));
                    runs.retain(|(one, _)| *one != side);
                }
            }
        }
    }
    let failures = sides.len() - runs.len();
    let sides = runs.into_iter().map(|(side, runs)| (side, Numbers::medians(&runs))).collect();
    Measurements { sides, failures }
}

impl<S: Side> Measurements<S> {
    /// Numbers that were found in another way.
    pub(super) fn of_numbers(sides: Vec<(S, Numbers)>) -> Self {
        Self { sides, failures: 0 }
    }

    /// Sides that have numbers.
    pub(super) fn sides(&self) -> impl Iterator<Item = S> {
        self.sides.iter().map(|(side, _)| *side)
    }

    /// Sides that failed.
    pub(super) fn failures(&self) -> usize {
        self.failures
    }

    /// The medians of a side, unless it failed.
    pub(super) fn of(&self, side: S) -> Option<&Numbers> {
        self.sides.iter().find(|(one, _)| *one == side).map(|(_, numbers)| numbers)
    }

    /// A metric in `above` divided by the same in `below`, as the metric `named`, of each side that has both.
    pub(super) fn ratio_of(above: &Self, below: &Self, metric: Metric, named: Metric) -> Self {
        let ratio = |(side, numbers): &(S, Numbers)| {
            let ratio = numbers.get(metric)? / below.of(*side)?.get(metric)?;
            Some((*side, Numbers::default().with(named, ratio)))
        };
        Self { sides: above.sides.iter().filter_map(ratio).collect(), failures: 0 }
    }

    /// Writes a row for each metric of `ours` and each of `peers` that has it, or one without a peer if none has. There
    /// are none if `ours` failed.
    pub(super) fn add_rows<W: Write>(
        &self,
        rows: &mut Rows<W>,
        table: &str,
        case: &str,
        ours: S,
        peers: &[S],
    ) -> io::Result<()> {
        for (metric, value) in self.of(ours).into_iter().flat_map(Numbers::iter) {
            let peer = |side: &S| Some(Peer { name: side.name(), value: self.of(*side)?.get(metric)? });
            let peers: Vec<Peer<'_>> = peers.iter().filter_map(peer).collect();
            let mut row = Measured { table, case, metric: metric.name, unit: metric.unit, ours: value, peer: None };
            if peers.is_empty() {
                rows.add(&row)?;
            }
            for peer in peers {
                row.peer = Some(peer);
                rows.add(&row)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::row::Machine;

    const CPU: Metric = Metric { name: "cpu", unit: "us/log" };
    const RSS: Metric = Metric { name: "rss", unit: "MiB" };
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Contender {
        Ours,
        Second,
        Third,
    }

    impl Side for Contender {
        fn name(self) -> &'static str {
            match self {
                Self::Ours => "ours",
                Self::Second => "second",
                Self::Third => "third",
            }
        }
    }

    const ALL: [Contender; 3] = [Contender::Ours, Contender::Second, Contender::Third];

    fn plan(rounds: usize) -> Plan<'static, Contender> {
        Plan { case: "case", sides: ALL.to_vec(), rounds, tell: true }
    }

    fn rows(measured: &Measurements<Contender>) -> Vec<Value> {
        let mut out = Vec::new();
        let mut rows = Rows::new(Machine::detect(), &mut out, None);
        measured.add_rows(&mut rows, "table", "case", Contender::Ours, &ALL[1..]).unwrap();
        out.split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    /// Everybody is first, second and third once.
    #[test]
    fn order_rotates() {
        let mut order = Vec::new();
        let measured = interleaved(&plan(3), |side| {
            order.push(side);
            Ok::<_, io::Error>(Numbers::default())
        });
        let [a, b, c] = ALL;
        assert_eq!(order, [a, b, c, b, c, a, c, a, b]);
        assert_eq!(measured.failures(), 0);
    }

    /// A row for each peer and metric, with medians.
    #[test]
    fn a_row_for_each_peer() {
        let mut number = 0.0;
        let measured = interleaved(&plan(3), |side| {
            number += 1.0;
            let factor = if side == Contender::Ours { 1.0 } else { 10.0 };
            let numbers = Numbers::default().with(CPU, factor * number);
            Ok::<_, io::Error>(if side == Contender::Third { numbers } else { numbers.with(RSS, 5.0 * factor) })
        });
        let rows: Vec<_> = rows(&measured)
            .iter()
            .map(|row| (row["metric"].clone(), row["ours"].as_f64(), row["peer"].as_f64(), row["peer_name"].clone()))
            .collect();
        // Ours ran as number 1, 6 and 8, the others as 2, 4, 9 and 3, 5, 7.
        assert_eq!(
            rows,
            [
                ("cpu".into(), Some(6.0), Some(40.0), "second".into()),
                ("cpu".into(), Some(6.0), Some(50.0), "third".into()),
                ("rss".into(), Some(5.0), Some(50.0), "second".into()),
            ]
        );
    }

    /// Whoever fails drops out at once; without peers there are rows of ours, without ours there are none.
    #[test]
    fn failures() {
        for (good, expected) in [(Contender::Ours, 1), (Contender::Second, 0)] {
            let mut runs = 0;
            let measured = interleaved(&plan(3), |side| {
                runs += 1;
                let wrong = "miscounted";
                if side == good { Ok(Numbers::default().with(CPU, 1.0)) } else { Err(wrong) }
            });
            assert_eq!((runs, measured.failures()), (5, 2));
            let rows = rows(&measured);
            assert_eq!(rows.len(), expected);
            assert!(rows.iter().all(|row| row["peer"].is_null()));
        }
    }

    /// Each side is divided by itself.
    #[test]
    fn ratios() {
        let measured = |factor: f64| {
            interleaved(&plan(1), |side| {
                let own = if side == Contender::Ours { 2.0 } else { 3.0 };
                Ok::<_, io::Error>(Numbers::default().with(RSS, f64::powf(own, factor)))
            })
        };
        let ratio = Metric { name: "rss_overload_ratio", unit: "1" };
        let ratios = Measurements::ratio_of(&measured(3.0), &measured(1.0), RSS, ratio);
        assert_eq!(ratios.of(Contender::Ours).unwrap().get(ratio), Some(4.0));
        assert_eq!(ratios.of(Contender::Third).unwrap().get(ratio), Some(9.0));
    }
}
