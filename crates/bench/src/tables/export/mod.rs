//! Table `export`: counters of a switch, flow records and lines over TCP -> receiver -> exporter, on one core; ours beside
//! the engine's own with the same batches. Sides take turns.
//!
//! | case | what |
//! | --- | --- |
//! | `sonic-SERIES/BATCH` | counters in wide IPFIX records, a point each with three attributes |
//! | `flow-11/BATCH`, `syslog/BATCH`, `syslog-unique/BATCH` | log records |
//! | `flow-11-of-EXPORTERS/BATCH` | the same of several exporters, whose batches are kept apart |
//! | `.../to-engine` | to the engine's own receiver in a second process, in place of the sink that counts |
//! | `.../raw` | to a sink that only reads; then the exporter counts |
//! | `no-answer/...`, `outage-30s/...` | to a sink that never answers, or is not there at first |
//!
//! The side is added to the case in the rows. A run gives numbers only if every item arrived once.

mod cases;
mod configs;
mod distance;
mod load;
mod outage;
mod published;
mod run;

use std::io::Write;

use self::cases::{Case, Lanes, Side, Source};
use self::load::Load;
use self::outage::Failure;
use self::run::{CPU, EXPORT};
use super::numbers::{Metric, Numbers};
use super::rounds::{Measurements, Plan, interleaved};
use super::{Setup, progress};
use crate::row::{Measured, Peer, Rows};

/// Name of the table.
const TABLE: &str = "export";
/// CPU time with order by key divided by that without order.
const ORDER_COST: Metric = Metric { name: "order_cost", unit: "1" };
/// Runs of sides whose difference is small.
const CLOSE_ROUNDS: usize = 9;

/// Measures the cases that are asked for; gives the number of sides that failed in one.
pub(super) fn measure<W: Write>(setup: &Setup, rows: &mut Rows<W>) -> Result<usize, Box<dyn std::error::Error>> {
    let cases = cases::all();
    let wanted = |case: &Case, side: Side| setup.wants(&case.name_of(side));
    let without_sink = [outage::NO_ANSWER, outage::OUTAGE].map(|name| (name, setup.wants(name)));
    let any = cases.iter().any(|case| case.sides.iter().any(|side| wanted(case, *side)));
    if !any && without_sink.iter().all(|(_, wanted)| !wanted) {
        let names = cases.iter().map(Case::name).chain(without_sink.map(|(name, _)| name.to_owned()));
        let names: Vec<String> = names.collect();
        return Err(format!("no case with {:?}; there are: {}", setup.cases, names.join(", ")).into());
    }
    let binary = setup.binary.as_deref().ok_or("this table needs the engine")?;
    let mut failures = 0;
    for (name, _) in without_sink.iter().filter(|(_, wanted)| *wanted) {
        let Some(case) = cases.first() else { break };
        let load = Load::new(case, setup.quick)?;
        progress(&format!("{name}: {} items", load.items()));
        let measured = match *name {
            outage::OUTAGE => outage::outage(binary, &load, setup.quick, rows),
            _ => outage::no_answer(binary, &load, rows),
        };
        match measured {
            Ok(()) => {}
            Err(Failure::Run(error)) => {
                progress(&format!("error: {name}: {error}"));
                failures += 1;
            }
            Err(Failure::Rows(error)) => return Err(error.into()),
        }
    }
    for case in cases {
        let sides: Vec<Side> = case.sides.iter().copied().filter(|side| wanted(&case, *side)).collect();
        if sides.is_empty() {
            continue;
        }
        let name = case.name();
        progress(&format!("{name}: making {} items", case.items(setup.quick)));
        let load = Load::new(&case, setup.quick)?;
        let plan = if matches!(case.source, Source::FlowsOf(_)) && !setup.quick {
            Plan::of_short_runs(&name, sides.clone(), CLOSE_ROUNDS)
        } else {
            Plan::new(setup, &name, sides.clone())
        };
        let measured = interleaved(&plan, |side| run::run(binary, &case, &load, side));
        failures += measured.failures();
        let measured = without_receiver(&measured);
        for side in sides.iter().copied().filter(|side| !matches!(side, Side::Upstream(_))) {
            measured.add_rows(rows, TABLE, &case.name_of(side), side, &case.peers(side))?;
            add_order_cost(rows, &case, &measured, side)?;
            add_published(rows, &case, &measured, side)?;
        }
    }
    Ok(failures)
}

/// The same with what the exporter costs beyond the receiver alone, if that was measured.
fn without_receiver(measured: &Measurements<Side>) -> Measurements<Side> {
    let alone = measured.of(Side::Noop).and_then(|numbers| numbers.get(CPU));
    let sides = measured.sides().filter_map(|side| {
        let numbers = measured.of(side)?.clone();
        let export = numbers.get(CPU).zip(alone).map(|(cpu, alone)| cpu - alone);
        let numbers = match export {
            Some(export) if side != Side::Noop => numbers.with(EXPORT, export),
            _ => numbers,
        };
        Some((side, numbers))
    });
    Measurements::of_numbers(sides.collect())
}

/// What order by key costs beside the same lanes without.
fn add_order_cost<W: Write>(
    rows: &mut Rows<W>,
    case: &Case,
    measured: &Measurements<Side>,
    side: Side,
) -> std::io::Result<()> {
    let Side::Lanes(wire, Lanes::Keyed(count)) = side else { return Ok(()) };
    let cpu = |side| measured.of(side).and_then(|numbers| numbers.get(CPU));
    let Some((keyed, turns)) = cpu(side).zip(cpu(Side::Lanes(wire, Lanes::Turns(count)))) else { return Ok(()) };
    rows.add(&Measured {
        table: TABLE,
        case: &case.name_of(side),
        metric: ORDER_COST.name,
        unit: ORDER_COST.unit,
        ours: keyed / turns,
        peer: Some(Peer { name: "4-lanes", value: 1.0 }),
    })
}

/// Rows beside what others published.
fn add_published<W: Write>(
    rows: &mut Rows<W>,
    case: &Case,
    measured: &Measurements<Side>,
    side: Side,
) -> std::io::Result<()> {
    for (metric, value) in measured.of(side).into_iter().flat_map(Numbers::iter) {
        for (name, published) in published::of(case, side, metric) {
            rows.add(&Measured {
                table: TABLE,
                case: &case.name_of(side),
                metric: metric.name,
                unit: metric.unit,
                ours: value,
                peer: Some(Peer { name, value: published }),
            })?;
        }
    }
    Ok(())
}
