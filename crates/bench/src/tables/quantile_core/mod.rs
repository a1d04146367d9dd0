//! Table `quantile-core`: our sketches and exact quantiles beside other crates. One thread, no engine. Sides take turns.
//!
//! | case | what |
//! | --- | --- |
//! | `series/k400/100000x5` | resident size of 100,000 series of 5 observations |
//! | `memory/kK/N` | resident size of a sketch of N observations |
//! | `bytes/kK/N` | bytes of a sketch of N observations for exchange |
//! | `insert/STREAM/kK/N` | N values in slices of 1,024 into a new sketch |
//! | `merge/kK/N`, `to-bytes/kK/N`, `from-bytes/kK/N`, `query/kK/N` | sketches of N observations each; a query asks two quantiles |
//! | `exact/...` | sorting, selection, and sorted runs |
//! | `rank-error/kK/STREAM/PIECES` | errors of ranks over 100 seeds, of a sketch that was merged from so many |
//! | `rank-error/kK/all` | of all streams with more than a few distinct values together |
//!
//! Every run is checked: a side that lost observations, or answers beyond its bounds, has no numbers.

mod accuracy;
mod corpus;
mod exact;
mod exchange;
mod insert;
mod memory;
mod sketches;
mod speed;

use std::fmt::Display;
use std::io::Write;

use super::Setup;
use crate::process::ProcessError;
use crate::row::Rows;

/// Name of the table.
const TABLE: &str = "quantile-core";

/// Why a side has no number.
#[derive(Debug, thiserror::Error)]
enum Wrong {
    #[error("{found} observations were counted, but there are {expected}")]
    Count { found: u64, expected: u64 },
    #[error("the quantile {q} is far from {found}")]
    Quantile { q: f64, found: f64 },
    #[error("there is no answer")]
    Empty,
    #[error("{0}")]
    Library(String),
    #[error(transparent)]
    Process(#[from] ProcessError),
}

impl Wrong {
    /// What a crate says.
    fn library(error: impl Display) -> Self {
        Self::Library(error.to_string())
    }
}

/// Measures the cases that are asked for; gives the number of sides that failed in one.
pub(super) fn measure<W: Write>(setup: &Setup, rows: &mut Rows<W>) -> Result<usize, Box<dyn std::error::Error>> {
    let names = names();
    if !names.iter().any(|case| setup.wants(case)) {
        return Err(format!("no case with {:?}; there are: {}", setup.cases, names.join(", ")).into());
    }
    // Memory first, as long as the process has none to give back.
    Ok(memory::measure(setup, rows)?
        + insert::measure(setup, rows)?
        + exchange::measure(setup, rows)?
        + exact::measure(setup, rows)?
        + accuracy::measure(setup, rows)?)
}

fn names() -> Vec<String> {
    [memory::names(), insert::names(), exchange::names(), exact::names(), accuracy::names()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Machine;

    fn rows(cases: &[&str]) -> Vec<serde_json::Value> {
        let cases = cases.iter().map(|case| (*case).to_owned()).collect();
        let setup = Setup { quick: true, cases, ..Setup::default() };
        let mut out = Vec::new();
        let failures = measure(&setup, &mut Rows::new(Machine::detect(), &mut out, None)).unwrap();
        assert_eq!(failures, 0);
        String::from_utf8(out).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn cell<'a>(rows: &'a [serde_json::Value], metric: &str, peer: &str) -> &'a serde_json::Value {
        rows.iter().find(|row| row["metric"] == metric && row["peer_name"] == peer).unwrap()
    }

    /// No name twice, and one of which there is no case is an error that tells the names.
    #[test]
    fn names_of_cases() {
        let mut all = names();
        all.sort();
        let count = all.len();
        all.dedup();
        assert_eq!(all.len(), count);
        let setup = Setup { cases: vec!["isnert".to_owned()], ..Setup::default() };
        let error = measure(&setup, &mut Rows::new(Machine::detect(), Vec::new(), None)).unwrap_err().to_string();
        assert!(error.contains("isnert") && error.contains("merge/k400/65536"), "{error}");
    }

    /// Every peer of a case of insertion has a rate, and the best is no less.
    #[test]
    fn insertion() {
        let rows = rows(&["insert/uniform/k200/16384"]);
        assert_eq!(rows.len(), 2 * 9);
        for peer in ["ours-slices", "datasketches-0.6.0", "ours-run", "select-f64"] {
            let (rate, best) = (cell(&rows, "rate", peer), cell(&rows, "best_rate", peer));
            assert!(rate["peer"].as_f64() <= best["peer"].as_f64() && rate["ratio"].as_f64() > Some(0.0));
        }
    }

    /// All operations on sketches and on runs pass their checks.
    #[test]
    fn operations() {
        let exact = ["exact/bisect/16-runs", "exact/select/16384", "exact/to-bytes", "exact/from-bytes"];
        let rows = rows(&[&["merge/k200", "bytes/k200/65536", "query/k200"], &exact[..]].concat());
        let ours = |case: &str| rows.iter().find(|row| row["case"] == case).unwrap()["ours"].as_f64().unwrap();
        for case in ["merge/k200/65536", "query/k200/65536", "exact/bisect/16-runs", "exact/select/16384"] {
            assert!(ours(case) > 0.0, "{case}");
        }
        // The network leaves other numbers of items in the levels than updates one by one.
        let image = cell(&rows, "image", "datasketches-0.6.0");
        assert!((0.8..1.2).contains(&image["ratio"].as_f64().unwrap()), "{image}");
        assert_eq!(cell(&rows, "counted", "datasketches-0.6.0")["ours"], 100.0);
    }

    /// A sketch takes at least the memory that it counts itself, and all have a row.
    #[test]
    fn memory_of_sketches() {
        let rows = rows(&["memory/k200"]);
        let counted = cell(&rows, "counted_bytes", "asap_sketchlib-0.4.0");
        assert!(
            counted["ours"].as_f64().unwrap() > 4_000.0 && counted["ours"].as_f64().unwrap() < 8_000.0,
            "{counted}"
        );
        assert!(rows.iter().filter(|row| row["metric"] == "resident").count() == 3);
    }

    /// Beside a message that was published there is ours.
    #[test]
    fn published() {
        let rows = rows(&["bytes/k400/65536"]);
        let row = cell(&rows, "image", "asap-stream-bench-published");
        assert!(row["peer"] == 12_800.0 && row["ratio"].as_f64() < Some(1.0), "{row}");
    }
}
