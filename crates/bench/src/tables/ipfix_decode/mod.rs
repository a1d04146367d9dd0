//! Table `ipfix-decode`: IPFIX messages to OTAP batches with our decoder, beside crates that decode to records of their
//! own. One thread, no engine, no socket. Sides take turns.
//!
//! | case | what |
//! | --- | --- |
//! | `flow-N` | flow records of N fields -> logs |
//! | `sonic-N/point`, `sonic-N/resource` | telemetry with N counters in a record -> metrics, attributes at each point or at the resource |
//! | `capture/NAME` | a recorded stream -> logs, if there is a folder of captures |
//!
//! Every side decodes everything: the number of records (for telemetry, counters) and the sum of what they count must be
//! the same on all sides. A peer that loses some has only a row that says how many it decodes.

mod corpus;
mod ours;
mod peers;
mod published;
mod run;

use std::io::Write;

use self::corpus::Corpus;
use self::run::{Contender, RATE, Runs};
use super::rounds::{Plan, interleaved};
use super::{Setup, progress};
use crate::row::{Measured, Peer, Rows};

/// Name of the table.
const TABLE: &str = "ipfix-decode";

/// Measures the cases that are asked for; gives the number of sides that failed in one.
pub(super) fn measure<W: Write>(setup: &Setup, rows: &mut Rows<W>) -> Result<usize, Box<dyn std::error::Error>> {
    let names = corpus::names();
    if !names.iter().any(|case| setup.wants(case)) {
        return Err(format!("no case with {:?}; there are: {}", setup.cases, names.join(", ")).into());
    }
    if setup.peer_ipfix.is_none() {
        progress("without a program of peers (--peer-ipfix) there are no rows of them");
    }
    let mut failures = 0;
    for name in names.iter().filter(|name| setup.wants(name)) {
        let corpus = match Corpus::named(name, setup) {
            Ok(Some(corpus)) => corpus,
            Ok(None) => {
                progress(&format!("{name}: skipped, there is no folder of captures (CATCHMENT_IPFIX_CAPTURES)"));
                continue;
            }
            Err(error) => {
                progress(&format!("error: {name}: {error}"));
                failures += 1;
                continue;
            }
        };
        failures += measure_case(setup, name, &corpus, rows)?;
    }
    Ok(failures)
}

fn measure_case<W: Write>(setup: &Setup, name: &str, corpus: &Corpus, rows: &mut Rows<W>) -> std::io::Result<usize> {
    let mut runs = Runs::new(setup, corpus);
    let sides = Contender::ALL.into_iter().filter(|side| runs.has(*side)).collect();
    let measured = interleaved(&Plan::new(setup, name, sides), |side| runs.run(side));
    measured.add_rows(rows, TABLE, name, Contender::Ours, &Contender::PEERS)?;
    let ours = measured.of(Contender::Ours).and_then(|numbers| numbers.get(RATE));
    for (ours, (peer, value)) in ours.into_iter().flat_map(|ours| published::of(name).map(move |row| (ours, row))) {
        let peer = Some(Peer { name: peer, value });
        rows.add(&Measured { table: TABLE, case: name, metric: RATE.name, unit: RATE.unit, ours, peer })?;
    }
    Ok(measured.failures())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name of which there is no case is an error that tells the names.
    #[test]
    fn unknown_case() {
        let setup = Setup { quick: true, cases: vec!["flwo".to_owned()], ..Setup::default() };
        let mut rows = Rows::new(crate::row::Machine::detect(), Vec::new(), None);
        let error = measure(&setup, &mut rows).unwrap_err().to_string();
        assert!(error.contains("flwo") && error.contains("sonic-500/point"), "{error}");
    }
}
