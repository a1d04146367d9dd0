//! Sides that take turns, and the rows that come of it.

use std::io::{self, Write};

use super::super::{Setup, progress};
use super::TABLE;
use super::numbers::{Metric, Numbers};
use super::run::RunError;
use super::sides::Side;
use crate::row::{Measured, Peer, Rows};

/// Runs of each side.
const ROUNDS: usize = 3;

/// What to run.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    case: &'a str,
    sides: Vec<Side>,
    rounds: usize,
}

impl<'a> Plan<'a> {
    /// All of `sides` whose program is there.
    pub(super) fn new(setup: &Setup, case: &'a str, sides: &[Side]) -> Self {
        let sides = sides.iter().copied().filter(|side| side.program(setup).is_some()).collect();
        Self { case, sides, rounds: if setup.quick { 1 } else { ROUNDS } }
    }
}

/// The medians of each side.
#[derive(Debug)]
pub(super) struct Measurements {
    sides: Vec<(Side, Numbers)>,
    failures: usize,
}

/// Runs every side once a round; whoever begins in one round is last in the next. A side that fails has no numbers and no
/// further runs; the others go on.
pub(super) fn interleaved(plan: &Plan<'_>, mut run: impl FnMut(Side) -> Result<Numbers, RunError>) -> Measurements {
    let Plan { case, ref sides, rounds } = *plan;
    let mut runs: Vec<(Side, Vec<Numbers>)> = sides.iter().map(|side| (*side, Vec::new())).collect();
    for round in 0..rounds {
        let mut order: Vec<Side> = runs.iter().map(|(side, _)| *side).collect();
        if !order.is_empty() {
            let first = round % order.len();
            order.rotate_left(first);
        }
        for side in order {
            match run(side) {
                Ok(numbers) => {
                    progress(&format!("{case}, {}, run {} of {rounds}: {numbers}", side.name(), round + 1));
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

impl Measurements {
    /// Sides that failed.
    pub(super) fn failures(&self) -> usize {
        self.failures
    }

    fn of(&self, side: Side) -> Option<&Numbers> {
        self.sides.iter().find(|(one, _)| *one == side).map(|(_, numbers)| numbers)
    }

    /// A metric in `above` divided by the same in `below`, as the metric `named`, of each side that has both.
    pub(super) fn ratio_of(above: &Self, below: &Self, metric: Metric, named: Metric) -> Self {
        let ratio = |(side, numbers): &(Side, Numbers)| {
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
        case: &str,
        ours: Side,
        peers: &[Side],
    ) -> io::Result<()> {
        for (metric, value) in self.of(ours).into_iter().flat_map(Numbers::iter) {
            let peer = |side: &Side| Some(Peer { name: side.name(), value: self.of(*side)?.get(metric)? });
            let peers: Vec<Peer<'_>> = peers.iter().filter_map(peer).collect();
            let mut row =
                Measured { table: TABLE, case, metric: metric.name, unit: metric.unit, ours: value, peer: None };
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
    const ALL: [Side; 3] = [Side::Ours, Side::Upstream62, Side::Upstream63];

    fn plan(rounds: usize) -> Plan<'static> {
        Plan { case: "case", sides: ALL.to_vec(), rounds }
    }

    fn rows(measured: &Measurements) -> Vec<Value> {
        let mut out = Vec::new();
        let mut rows = Rows::new(Machine::detect(), &mut out, None);
        measured.add_rows(&mut rows, "case", Side::Ours, &ALL[1..]).unwrap();
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
            Ok(Numbers::default())
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
            let factor = if side == Side::Ours { 1.0 } else { 10.0 };
            let numbers = Numbers::default().with(CPU, factor * number);
            Ok(if side == Side::Upstream63 { numbers } else { numbers.with(RSS, 5.0 * factor) })
        });
        let rows: Vec<_> = rows(&measured)
            .iter()
            .map(|row| (row["metric"].clone(), row["ours"].as_f64(), row["peer"].as_f64(), row["peer_name"].clone()))
            .collect();
        // Ours ran as number 1, 6 and 8, the others as 2, 4, 9 and 3, 5, 7.
        assert_eq!(
            rows,
            [
                ("cpu".into(), Some(6.0), Some(40.0), "upstream-0.62-8192".into()),
                ("cpu".into(), Some(6.0), Some(50.0), "upstream-0.63-8192".into()),
                ("rss".into(), Some(5.0), Some(50.0), "upstream-0.62-8192".into()),
            ]
        );
    }

    /// Whoever fails drops out at once; without peers there are rows of ours, without ours there are none.
    #[test]
    fn failures() {
        for (good, expected) in [(Side::Ours, 1), (Side::Upstream62, 0)] {
            let mut runs = 0;
            let measured = interleaved(&plan(3), |side| {
                runs += 1;
                let wrong = RunError::Miscounted { sent: 1, received: 2 };
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
                let own = if side == Side::Ours { 2.0 } else { 3.0 };
                Ok(Numbers::default().with(RSS, f64::powf(own, factor)))
            })
        };
        let ratio = Metric { name: "rss_overload_ratio", unit: "1" };
        let ratios = Measurements::ratio_of(&measured(3.0), &measured(1.0), RSS, ratio);
        assert_eq!(ratios.of(Side::Ours).unwrap().get(ratio), Some(4.0));
        assert_eq!(ratios.of(Side::Upstream63).unwrap().get(ratio), Some(9.0));
    }
}
