//! Table `quantile-pipeline`: observations as metrics to quantiles, from KLL sketches and from all values, over three
//! protocols. Methods take turns.
//!
//! | case | what |
//! | --- | --- |
//! | `branch/PROTOCOL/SHAPE/WINDOW[/3-keys]` | one process that makes the sketches of one source, into a sink |
//! | `topology/PROTOCOL/SHAPE/WINDOW` | two such processes, one that merges, one that estimates, into a sink |
//!
//! The name of the method is added to the case in the rows: `/kll`, `/exact` and `/raw`, which passes the points on. A run
//! gives numbers only if the sink has each window once, with every observation counted, and the quantiles are right.

mod arrived;
mod branch;
mod cases;
mod configs;
mod published;
mod run;
mod topology;
mod truth;

use std::io::Write;

use self::cases::{Case, Method, Place};
use super::rounds::{Measurements, Plan, interleaved};
use super::{Setup, numbers::Numbers, progress};
use crate::row::{Measured, Peer, Rows};

/// Name of the table.
const TABLE: &str = "quantile-pipeline";

/// Measures the cases that are asked for; gives the number of methods that failed in one.
pub(super) fn measure<W: Write>(setup: &Setup, rows: &mut Rows<W>) -> Result<usize, Box<dyn std::error::Error>> {
    let cases = cases::all();
    if !cases.iter().any(|case| setup.wants(&case.name())) {
        let names: Vec<String> = cases.iter().map(Case::name).collect();
        return Err(format!("no case with {:?}; there are: {}", setup.cases, names.join(", ")).into());
    }
    let binary = setup.binary.as_deref().ok_or("this table needs the engine")?;
    let mut failures = 0;
    for case in cases {
        let name = case.name();
        if !setup.wants(&name) {
            continue;
        }
        progress(&format!("{name}: making {} points", case.points(setup.quick) * case.sources()));
        let load = run::Load::new(&case, setup.quick)?;
        let plan = Plan::new(setup, &name, case.methods());
        let measured = interleaved(&plan, |method| match case.place {
            Place::Branch => branch::run(binary, &case, &load, method),
            Place::Topology => topology::run(binary, &case, &load, method),
        });
        failures += measured.failures();
        for method in case.methods() {
            add_rows(rows, &case, &measured, method)?;
        }
    }
    Ok(failures)
}

/// Rows of a method, beside the other methods if it is KLL, and beside what others published.
fn add_rows<W: Write>(
    rows: &mut Rows<W>,
    case: &Case,
    measured: &Measurements<Method>,
    method: Method,
) -> std::io::Result<()> {
    let name = case.name_of(method);
    let peers: Vec<Method> = match method {
        Method::Kll => case.methods().into_iter().filter(|one| *one != Method::Kll).collect(),
        Method::Exact | Method::Raw => Vec::new(),
    };
    measured.add_rows(rows, TABLE, &name, method, &peers)?;
    for (metric, value) in measured.of(method).into_iter().flat_map(Numbers::iter) {
        for (peer, published) in published::of(case, method, metric) {
            let peer = Some(Peer { name: peer, value: published });
            rows.add(&Measured {
                table: TABLE,
                case: &name,
                metric: metric.name,
                unit: metric.unit,
                ours: value,
                peer,
            })?;
        }
    }
    Ok(())
}
