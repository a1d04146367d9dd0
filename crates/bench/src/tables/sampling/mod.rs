//! Table `sampling`: what the receivers' own sampler saves, and what it costs where it saves nothing.
//!
//! | case | what |
//! | --- | --- |
//! | `syslog-tcp/SIDE` | lines over TCP as fast as they are taken -> receiver -> nothing |
//! | `syslog-udp/SIDE` | datagrams at a fixed rate -> receiver -> nothing |
//! | `ipfix-tcp/SIDE`, `ipfix-wide-tcp/SIDE` | flow records of 11 and of 32 fields over TCP -> receiver -> nothing |
//! | `ipfix-udp/SIDE` | flow records over UDP at a fixed rate -> receiver -> nothing |
//! | `syslog-tcp-otap/SIDE`, `ipfix-tcp-otap/SIDE` | receiver -> OTAP with zstd -> a sink that decodes and counts |
//!
//! A side is a setting of the sampler. The peers of each are the receiver without a sampler and with one that keeps all, where
//! a tenth is kept the engine's `processor:log_sampling` behind a receiver without, and where nothing is kept a program that
//! does nothing but read and find frames. The engine, or that program, has one core; everything else has the other. Sides
//! take turns.

mod inputs;
mod published;
mod run;
mod sides;
mod traffic;

use std::io::{self, Write};

use self::inputs::{Input, Load};
use self::run::CPU;
use self::sides::Side;
use super::Setup;
use super::numbers::Metric;
use super::rounds::{Measurements, Plan, Side as _, interleaved};
use crate::row::{Measured, Peer, Rows};

/// Name of the table.
const TABLE: &str = "sampling";

/// How many times as many records a core takes as with everything kept.
const OVER_ALL: Metric = Metric { name: "rate_over_ratio_1", unit: "1" };
/// The same, of what it takes with nothing kept.
const OF_NOTHING: Metric = Metric { name: "rate_of_ratio_0", unit: "1" };
/// The same, of what the program takes that does nothing but read and find frames.
const OF_FRAMING: Metric = Metric { name: "rate_of_framing", unit: "1" };
/// The same, of what it takes without a sampler.
const OF_NONE: Metric = Metric { name: "rate_of_no_sampler", unit: "1" };
/// CPU time beyond that of the program that only finds frames.
const OVER_FRAMING: Metric = Metric { name: "cpu_over_framing", unit: "ns/record" };

/// Measures the cases that are asked for; gives the number of sides that failed in one.
pub(super) fn measure<W: Write>(setup: &Setup, rows: &mut Rows<W>) -> Result<usize, Box<dyn std::error::Error>> {
    let names = case_names();
    if !names.iter().any(|case| setup.wants(case)) {
        return Err(format!("no case with {:?}; there are: {}", setup.cases, names.join(", ")).into());
    }
    let mut failures = 0;
    for input in Input::ALL {
        let wanted: Vec<Side> = input.sides().filter(|side| setup.wants(&case_name(input, *side))).collect();
        if wanted.is_empty() {
            continue;
        }
        let load = Load::new(input, setup.quick)?;
        let beside = |side: Side| wanted.contains(&side) || wanted.iter().any(|one| one.peers().contains(&side));
        let plan = Plan::new(setup, input.name(), input.sides().filter(|side| beside(*side)).collect());
        let measured = interleaved(&plan, |side| run::run(setup, &load, side));
        failures += measured.failures();
        for side in wanted {
            let case = case_name(input, side);
            measured.add_rows(rows, TABLE, &case, side, side.peers())?;
            add_ratios(rows, &case, &measured, side)?;
        }
    }
    Ok(failures)
}

/// Rows of a side that compare it with others.
fn add_ratios<W: Write>(rows: &mut Rows<W>, case: &str, measured: &Measurements<Side>, side: Side) -> io::Result<()> {
    let cpu = |side: Side| measured.of(side).and_then(|numbers| numbers.get(CPU));
    let rate_of = |other: Side| Some(cpu(other)? / cpu(side)?);
    let mut found = Vec::new();
    match side {
        Side::None | Side::Framing => {}
        Side::All | Side::Processor => found.push((OF_NONE, rate_of(Side::None), Vec::new())),
        _ => found.push((OVER_ALL, rate_of(Side::All), published::over_all(side))),
    }
    if side == Side::Tenth {
        found.push((OF_NOTHING, rate_of(Side::Nothing), published::tenth_of_nothing()));
    }
    if side == Side::Nothing {
        let over = cpu(side).zip(cpu(Side::Framing)).map(|(own, framing)| own - framing);
        found.push((OF_FRAMING, rate_of(Side::Framing), Vec::new()));
        found.push((OVER_FRAMING, over, Vec::new()));
    }
    for (metric, value, published) in found {
        let Some(ours) = value else { continue };
        let mut row = Measured { table: TABLE, case, metric: metric.name, unit: metric.unit, ours, peer: None };
        if published.is_empty() {
            rows.add(&row)?;
        }
        for (name, value) in published {
            row.peer = Some(Peer { name, value });
            rows.add(&row)?;
        }
    }
    Ok(())
}

fn case_name(input: Input, side: Side) -> String {
    format!("{}/{}", input.name(), side.name())
}

fn case_names() -> Vec<String> {
    Input::ALL.into_iter().flat_map(|input| input.sides().map(move |side| case_name(input, side))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::numbers::Numbers;
    use super::*;

    /// Every case has one name; traces are of messages only, and datagrams have no framing.
    #[test]
    fn names() {
        let names = case_names();
        let different: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(different.len(), names.len());
        let has = |name: &str| names.iter().any(|one| one == name);
        assert!(has("syslog-udp/unsampled") && !has("ipfix-udp/unsampled"));
        assert!(has("syslog-tcp/framing-only") && !has("syslog-udp/framing-only"));
    }

    /// A name of which there is no case is an error that tells the names.
    #[test]
    fn unknown_case() {
        let setup = Setup { quick: true, cases: vec!["ratoi".to_owned()], ..Setup::default() };
        let mut rows = Rows::new(crate::row::Machine::detect(), Vec::new(), None);
        let error = measure(&setup, &mut rows).unwrap_err().to_string();
        assert!(error.contains("ratoi") && error.contains("syslog-tcp/ratio-0.1"), "{error}");
    }

    /// Rates are those of a core, the reciprocal of CPU time; what others published is beside them.
    #[test]
    fn ratios() {
        let numbers = |side, cpu| (side, Numbers::default().with(CPU, cpu));
        let measured = Measurements::of_numbers(vec![
            numbers(Side::None, 900.0),
            numbers(Side::All, 1000.0),
            numbers(Side::Tenth, 160.0),
            numbers(Side::Nothing, 80.0),
            numbers(Side::Framing, 60.0),
        ]);
        let mut out = Vec::new();
        let mut rows = Rows::new(crate::row::Machine::detect(), &mut out, None);
        for side in [Side::All, Side::Tenth, Side::Nothing] {
            add_ratios(&mut rows, side.name(), &measured, side).unwrap();
        }
        let found: Vec<(String, f64, bool)> = out
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok())
            .map(|row| {
                let name = format!("{} {}", row["case"].as_str().unwrap(), row["metric"].as_str().unwrap());
                (name, row["ours"].as_f64().unwrap(), row["peer"].is_number())
            })
            .collect();
        let row = |name: &str, ours, peer| (name.to_owned(), ours, peer);
        assert_eq!(
            found,
            [
                row("ratio-1 rate_of_no_sampler", 0.9, false),
                row("ratio-0.1 rate_over_ratio_1", 6.25, true),
                row("ratio-0.1 rate_over_ratio_1", 6.25, true),
                row("ratio-0.1 rate_of_ratio_0", 0.5, true),
                row("ratio-0.1 rate_of_ratio_0", 0.5, true),
                row("ratio-0 rate_over_ratio_1", 12.5, true),
                row("ratio-0 rate_over_ratio_1", 12.5, true),
                row("ratio-0 rate_of_framing", 0.75, false),
                row("ratio-0 cpu_over_framing", 20.0, false),
            ]
        );
    }
}
