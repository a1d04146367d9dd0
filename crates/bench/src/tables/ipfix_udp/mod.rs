//! Table `ipfix-udp`: flow records over UDP into nothing (ours), a file (nfcapd) or a table in memory (nfacctd), at rates
//! that rise until all lose some. Sides take turns.
//!
//! | case | what |
//! | --- | --- |
//! | `flow-N/RATE` | records of N fields at so many thousand a second: what arrives, what it costs |
//! | `flow-N/highest` | the highest of these rates at which nothing is lost |
//!
//! The collector has one core; the sender and everything else have the other.

mod run;
mod sides;

use std::io::Write;
use std::num::NonZeroU64;

use catchment_loadgen::traffic::{FlowExporter, FlowFields, FlowOptions, FlowProtocol};

use self::run::{LOST, OFFERED, Offer};
use self::sides::Collectors;
use super::messages::Messages;
use super::numbers::{Metric, Numbers};
use super::rounds::{Measurements, Plan, interleaved};
use super::{Setup, progress};
use crate::row::{Measured, Peer, Rows};

/// Name of the table.
const TABLE: &str = "ipfix-udp";

/// Kinds of records, by their fields.
const KINDS: [(&str, FlowFields); 2] = [("flow-11", FlowFields::Basic), ("flow-26", FlowFields::IosXr)];
/// Thousands of records a second, from low to high.
const RATES: [u64; 6] = [100, 200, 400, 800, 1_600, 3_200];
/// Seconds of sending in a run.
const SECONDS: u64 = 2;
/// Losing no more than this, in percent, is losing nothing.
const NOTHING: f64 = 0.01;
/// What the sender has to achieve of a rate, in parts of it; if it does not, higher rates are of no use.
const ACHIEVED: f64 = 0.95;

/// Records in a second.
const HIGHEST: Metric = Metric { name: "rate_without_loss", unit: "records/s" };

/// Measures the cases that are asked for; gives the number of sides that failed in one.
pub(super) fn measure<W: Write>(setup: &Setup, rows: &mut Rows<W>) -> Result<usize, Box<dyn std::error::Error>> {
    let names = case_names();
    if !names.iter().any(|case| setup.wants(case)) {
        return Err(format!("no case with {:?}; there are: {}", setup.cases, names.join(", ")).into());
    }
    let collectors = Collectors::find(setup);
    for missing in collectors.missing() {
        progress(&format!("{missing} is not installed: there are no rows of it"));
    }
    let mut failures = 0;
    for (kind, fields) in KINDS {
        failures += ladder(setup, &collectors, kind, fields, rows)?;
    }
    Ok(failures)
}

fn case_names() -> Vec<String> {
    let of_kind = |kind| RATES.map(|rate| rate_case(kind, rate)).into_iter().chain([highest_case(kind)]);
    KINDS.into_iter().flat_map(|(kind, _)| of_kind(kind)).collect()
}

fn rate_case(kind: &str, rate: u64) -> String {
    format!("{kind}/{rate}k")
}

fn highest_case(kind: &str) -> String {
    format!("{kind}/highest")
}

/// All rates of a kind of records.
fn ladder<W: Write>(
    setup: &Setup,
    collectors: &Collectors,
    kind: &str,
    fields: FlowFields,
    rows: &mut Rows<W>,
) -> Result<usize, Box<dyn std::error::Error>> {
    let highest_case = highest_case(kind);
    let highest_wanted = setup.wants(&highest_case);
    let mut highest: Vec<(sides::Side, f64)> = Vec::new();
    let mut failures = 0;
    // To see that it works, the lowest rate does.
    let rates = if setup.quick { &RATES[..1] } else { &RATES[..] };
    for &rate in rates {
        let case = rate_case(kind, rate);
        let wanted = setup.wants(&case);
        if !(wanted || highest_wanted) {
            continue;
        }
        let offer = offer(fields, rate * 1_000, setup.quick)?;
        let measured = interleaved(&Plan::new(setup, &case, collectors.sides()), |side| collectors.run(side, &offer));
        failures += measured.failures();
        if wanted {
            measured.add_rows(rows, TABLE, &case, sides::Side::Ours, &sides::Side::PEERS)?;
        }
        let outcome = outcome(&measured, collectors, rate * 1_000);
        highest.retain(|(side, _)| !outcome.lossless.iter().any(|(one, _)| one == side));
        highest.extend(outcome.lossless);
        if outcome.is_last {
            break;
        }
    }
    if highest_wanted {
        add_highest(&highest, &highest_case, rows)?;
    }
    Ok(failures)
}

/// Traffic of a run.
fn offer(fields: FlowFields, per_second: u64, quick: bool) -> Result<Offer, Box<dyn std::error::Error>> {
    let exporter = FlowExporter::new(FlowOptions::new(FlowProtocol::Ipfix, fields, 1, 0))?;
    let records_per_message = exporter.records_per_message() as u64;
    let records = if quick { per_second / 5 } else { per_second * SECONDS };
    let messages_per_second = NonZeroU64::new(per_second / records_per_message).unwrap_or(NonZeroU64::MIN);
    Ok(Offer { messages: Messages::record(exporter, records), messages_per_second })
}

/// What a rate came to.
#[derive(Debug, PartialEq)]
struct Outcome {
    /// Who lost nothing, with the rate that was offered.
    lossless: Vec<(sides::Side, f64)>,
    /// Whether higher rates would tell nothing more.
    is_last: bool,
}

fn outcome(measured: &Measurements<sides::Side>, collectors: &Collectors, rate: u64) -> Outcome {
    let numbers: Vec<(sides::Side, &Numbers)> =
        collectors.sides().into_iter().filter_map(|side| Some((side, measured.of(side)?))).collect();
    let lossless: Vec<(sides::Side, f64)> = numbers
        .iter()
        .filter(|(_, numbers)| numbers.get(LOST).is_some_and(|lost| lost <= NOTHING))
        .filter_map(|(side, numbers)| Some((*side, numbers.get(OFFERED)?)))
        .collect();
    let achieved = |numbers: &Numbers| numbers.get(OFFERED).is_some_and(|offered| offered >= ACHIEVED * rate as f64);
    let is_last = lossless.is_empty() || !numbers.iter().any(|(_, numbers)| achieved(numbers));
    Outcome { lossless, is_last }
}

fn add_highest<W: Write>(highest: &[(sides::Side, f64)], case: &str, rows: &mut Rows<W>) -> std::io::Result<()> {
    use super::rounds::Side as _;
    let Some((_, ours)) = highest.iter().find(|(side, _)| *side == sides::Side::Ours) else { return Ok(()) };
    let mut row = Measured { table: TABLE, case, metric: HIGHEST.name, unit: HIGHEST.unit, ours: *ours, peer: None };
    let peers: Vec<Peer<'_>> = highest
        .iter()
        .filter(|(side, _)| *side != sides::Side::Ours)
        .map(|(side, value)| Peer { name: side.name(), value: *value })
        .collect();
    if peers.is_empty() {
        rows.add(&row)?;
    }
    for peer in peers {
        row.peer = Some(peer);
        rows.add(&row)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::sides::Side;
    use super::*;

    /// Every case has one name, and one that is not there is an error that tells them.
    #[test]
    fn names() {
        let names = case_names();
        assert_eq!(names.len(), 14);
        let different: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(different.len(), names.len());
        let setup = Setup { quick: true, cases: vec!["flow-12".to_owned()], ..Setup::default() };
        let mut rows = Rows::new(crate::row::Machine::detect(), Vec::new(), None);
        let error = measure(&setup, &mut rows).unwrap_err().to_string();
        assert!(error.contains("flow-12") && error.contains("flow-11/highest"), "{error}");
    }

    /// The offer has the records and the pace of the rate.
    #[test]
    fn offers() {
        let offer = offer(FlowFields::Basic, 100_000, false).unwrap();
        let records = offer.messages.records() as f64;
        assert!((200_000.0..200_100.0).contains(&records));
        let per_message = records / offer.messages.len() as f64;
        let rate = offer.messages_per_second.get() as f64 * per_message;
        assert!((99_000.0..=100_000.0).contains(&rate), "{rate}");
    }

    /// The ladder ends when all lose or the sender cannot keep up.
    #[test]
    fn outcomes() {
        let setup = Setup { quick: true, ..Setup::default() };
        let collectors = Collectors::of(vec![Side::Ours, Side::Nfcapd]);
        let outcome = |ours: f64, peer: f64, offered: f64| {
            let measured = interleaved(&Plan::new(&setup, "case", collectors.sides()), |side| {
                let lost = if side == Side::Ours { ours } else { peer };
                Ok::<_, std::io::Error>(Numbers::default().with(LOST, lost).with(OFFERED, offered))
            });
            outcome(&measured, &collectors, 1_000)
        };
        assert_eq!(outcome(0.0, 5.0, 999.0), Outcome { lossless: vec![(Side::Ours, 999.0)], is_last: false });
        assert_eq!(outcome(1.0, 5.0, 999.0), Outcome { lossless: Vec::new(), is_last: true });
        assert!(outcome(0.0, 0.0, 900.0).is_last);
    }

    /// A row for each peer, none without ours.
    #[test]
    fn highest() {
        let rows = |highest: &[(Side, f64)]| {
            let mut out = Vec::new();
            add_highest(highest, "case", &mut Rows::new(crate::row::Machine::detect(), &mut out, None)).unwrap();
            String::from_utf8(out).unwrap().lines().count()
        };
        assert_eq!(rows(&[(Side::Ours, 2.0)]), 1);
        assert_eq!(rows(&[(Side::Nfcapd, 1.0), (Side::Ours, 2.0), (Side::Nfacctd, 1.0)]), 2);
        assert_eq!(rows(&[(Side::Nfcapd, 1.0)]), 0);
    }
}
