//! Table `sampling`: what the receivers' own sampler saves, and what it costs where it saves nothing.
//!
//! | case | what |
//! | --- | --- |
//! | `syslog-tcp/SIDE` | lines over TCP as fast as they are taken -> receiver -> nothing |
//! | `syslog-udp/SIDE` | datagrams at a fixed rate -> receiver -> nothing |
//! | `ipfix-udp/SIDE` | flow records over UDP at a fixed rate -> receiver -> nothing |
//!
//! A side is a setting of the sampler. The peers of each are the receiver without a sampler and, where a tenth is kept, the
//! engine's `processor:log_sampling` behind that. The engine has one core; everything else has the other. Sides take turns.

mod run;
mod sides;
mod traffic;

use std::io::Write;

use self::run::{Input, Load};
use self::sides::Side;
use super::Setup;
use super::rounds::{Plan, Side as _, interleaved};
use crate::row::Rows;

/// Name of the table.
const TABLE: &str = "sampling";

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
        // The one without a sampler is beside every other.
        let mut sides = wanted.clone();
        sides.extend([Side::None].into_iter().filter(|none| !wanted.contains(none)));
        if wanted.contains(&Side::Tenth) {
            sides.extend([Side::Processor].into_iter().filter(|side| !wanted.contains(side)));
        }
        let plan = Plan::new(setup, input.name(), sides);
        let measured = interleaved(&plan, |side| run::run(setup, &load, side));
        failures += measured.failures();
        for side in wanted {
            let peers: &[Side] = match side {
                Side::None => &[],
                Side::Tenth => &[Side::None, Side::Processor],
                _ => &[Side::None],
            };
            measured.add_rows(rows, TABLE, &case_name(input, side), side, peers)?;
        }
    }
    Ok(failures)
}

fn case_name(input: Input, side: Side) -> String {
    format!("{}/{}", input.name(), side.name())
}

fn case_names() -> Vec<String> {
    Input::ALL.into_iter().flat_map(|input| input.sides().map(move |side| case_name(input, side))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every case has one name; traces are of messages only.
    #[test]
    fn names() {
        let names = case_names();
        let different: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(different.len(), names.len());
        assert!(
            names.contains(&"syslog-udp/unsampled".to_owned()) && !names.contains(&"ipfix-udp/unsampled".to_owned())
        );
    }

    /// A name of which there is no case is an error that tells the names.
    #[test]
    fn unknown_case() {
        let setup = Setup { quick: true, cases: vec!["ratoi".to_owned()], ..Setup::default() };
        let mut rows = Rows::new(crate::row::Machine::detect(), Vec::new(), None);
        let error = measure(&setup, &mut rows).unwrap_err().to_string();
        assert!(error.contains("ratoi") && error.contains("syslog-tcp/ratio-0.1"), "{error}");
    }
}
