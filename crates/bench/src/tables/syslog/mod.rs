//! Table `syslog`: our receiver beside those that come with two versions of the engine, with batches of 8,192 messages and
//! with the default ones.
//!
//! | case | what |
//! | --- | --- |
//! | `tcp-otap-zstd/CORPUS/RATE` | lines over TCP -> receiver -> batches -> OTAP with zstd -> a sink that decodes |
//! | `overload/rss/CORPUS` | largest memory of that without a bound on the rate, divided by that at the fixed rate |
//! | `tcp-noop/CORPUS/RATE` | lines over TCP -> receiver -> nothing |
//! | `udp-loss` | datagrams -> receiver -> nothing: how many get lost |
//! | `probe/CORPUS` | how long OTLP requests on the same core take meanwhile |
//! | `decode/CORPUS` | decode jobs of 8,192 messages by themselves, and their longest step |
//!
//! The engine has one core; senders, sinks and everything else have the other. Sides take turns.

mod config;
mod corpus;
mod decode;
mod noop;
mod otap;
mod probe;
mod run;
mod sides;
mod udp;

use std::io::Write;

use self::corpus::{CORPORA, Corpus};
use self::run::Rate;
use self::sides::Side;
use super::numbers::Metric;
use super::rounds::{self, Measurements, Plan};
use super::{Setup, progress};
use crate::row::{Measured, Rows};

/// Name of the table.
const TABLE: &str = "syslog";
/// Messages in a batch where it is not the default one: enough for the batch processor to pass it on whole.
const BATCH_ITEMS: u64 = 8_192;
/// Corpora that `overload/rss` and `probe` use.
const PROBED: [&str; 2] = ["rfc3164", "rfc5424"];

/// Measures the cases that are asked for; gives the number of sides that failed in one.
pub(super) fn measure<W: Write>(setup: &Setup, rows: &mut Rows<W>) -> Result<usize, Box<dyn std::error::Error>> {
    if !case_names().iter().any(|case| setup.wants(case)) {
        return Err(format!("no case with {:?}; there are: {}", setup.cases, case_names().join(", ")).into());
    }
    if setup.peer_063.is_none() {
        progress("without a program of upstream 0.63 (--peer-063) there are no rows of it");
    }
    let mut failures = 0;
    for corpus in CORPORA {
        failures += through_otap(setup, &corpus, rows)?;
    }
    for corpus in CORPORA.into_iter().filter(Corpus::is_frozen) {
        failures += into_nothing(setup, &corpus, rows)?;
    }
    failures += udp_loss(setup, rows)?;
    for corpus in CORPORA.into_iter().filter(|corpus| PROBED.contains(&corpus.name)) {
        failures += beside_probes(setup, &corpus, rows)?;
    }
    for corpus in CORPORA {
        failures += decoding(setup, &corpus, rows)?;
    }
    Ok(failures)
}

/// Names of all cases.
fn case_names() -> Vec<String> {
    let mut names = Vec::new();
    for corpus in CORPORA {
        names.extend(Rate::ALL.map(|rate| otap_case(&corpus, rate)));
        names.push(decode_case(&corpus));
        if corpus.with_default_batch() {
            names.push(default_batch_case(&corpus));
        }
        if PROBED.contains(&corpus.name) {
            names.push(overload_case(&corpus));
            names.push(probe_case(&corpus));
        }
        if corpus.is_frozen() {
            names.extend(Rate::ALL.map(|rate| noop_case(&corpus, rate)));
        }
    }
    names.push(udp::CASE.to_owned());
    names
}

fn otap_case(corpus: &Corpus, rate: Rate) -> String {
    format!("tcp-otap-zstd/{}/{}", corpus.name, rate.name())
}

fn default_batch_case(corpus: &Corpus) -> String {
    format!("{}/default-batch", otap_case(corpus, Rate::Fixed))
}

fn overload_case(corpus: &Corpus) -> String {
    format!("overload/rss/{}", corpus.name)
}

fn noop_case(corpus: &Corpus, rate: Rate) -> String {
    format!("tcp-noop/{}/{}", corpus.name, rate.name())
}

fn probe_case(corpus: &Corpus) -> String {
    format!("probe/{}", corpus.name)
}

fn decode_case(corpus: &Corpus) -> String {
    format!("decode/{}", corpus.name)
}

/// The sides with batches of 8,192.
const LARGE: [Side; 3] = [Side::Ours, Side::Upstream62, Side::Upstream63];
/// The peers of a row of ours with batches of 8,192.
const PEERS: [Side; 3] = [Side::Upstream62Default, Side::Upstream62, Side::Upstream63];

/// All of `sides` whose program is there.
fn plan<'a>(setup: &Setup, case: &'a str, sides: &[Side]) -> Plan<'a, Side> {
    Plan::new(setup, case, sides.iter().copied().filter(|side| side.program(setup).is_some()).collect())
}

/// Cases `tcp-otap-zstd` of a corpus, and `overload/rss`, which is made of the same runs.
fn through_otap<W: Write>(setup: &Setup, corpus: &Corpus, rows: &mut Rows<W>) -> std::io::Result<usize> {
    let [fixed_case, unlimited_case] = Rate::ALL.map(|rate| otap_case(corpus, rate));
    let (default_case, overload_case) = (default_batch_case(corpus), overload_case(corpus));
    let [fixed, unlimited] = [&fixed_case, &unlimited_case].map(|case| setup.wants(case));
    let defaults = corpus.with_default_batch() && setup.wants(&default_case);
    let overload = PROBED.contains(&corpus.name) && setup.wants(&overload_case);
    if !(fixed || unlimited || defaults || overload) {
        return Ok(0);
    }
    let recording = corpus.record(run::lines(setup.quick));
    let measure = |case: &str, sides: &[Side], rate: Rate| {
        let run = |side| otap::run(setup, side, recording.source(), recording.lines(), rate.per_second(setup.quick));
        rounds::interleaved(&plan(setup, case, sides), run)
    };

    let mut sides = Vec::new();
    if fixed || overload {
        sides.extend(LARGE);
    }
    if defaults {
        sides.push(Side::OursDefault);
    }
    if defaults || fixed && corpus.with_default_batch() {
        sides.push(Side::Upstream62Default);
    }
    let at_fixed = measure(&fixed_case, &sides, Rate::Fixed);
    if fixed {
        at_fixed.add_rows(rows, TABLE, &fixed_case, Side::Ours, &PEERS)?;
    }
    if defaults {
        at_fixed.add_rows(rows, TABLE, &default_case, Side::OursDefault, &[Side::Upstream62Default])?;
    }
    let sides = if unlimited || overload { &LARGE[..] } else { &[] };
    let at_unlimited = measure(&unlimited_case, sides, Rate::Unlimited);
    if unlimited {
        at_unlimited.add_rows(rows, TABLE, &unlimited_case, Side::Ours, &PEERS)?;
    }
    if overload {
        Measurements::ratio_of(&at_unlimited, &at_fixed, otap::PEAK_RSS, otap::RSS_OVERLOAD_RATIO).add_rows(
            rows,
            TABLE,
            &overload_case,
            Side::Ours,
            &PEERS,
        )?;
    }
    Ok(at_fixed.failures() + at_unlimited.failures())
}

/// Cases `tcp-noop` of a corpus.
fn into_nothing<W: Write>(setup: &Setup, corpus: &Corpus, rows: &mut Rows<W>) -> std::io::Result<usize> {
    let mut failures = 0;
    let mut recording = None;
    for rate in Rate::ALL {
        let case = noop_case(corpus, rate);
        if setup.wants(&case) {
            let recording = recording.get_or_insert_with(|| corpus.record(run::lines(setup.quick)));
            let measured = rounds::interleaved(&plan(setup, &case, &LARGE), |side| {
                noop::run(setup, side, recording.source(), recording.lines(), rate.per_second(setup.quick))
            });
            measured.add_rows(rows, TABLE, &case, Side::Ours, &PEERS)?;
            failures += measured.failures();
        }
    }
    Ok(failures)
}

/// Case `udp-loss`.
fn udp_loss<W: Write>(setup: &Setup, rows: &mut Rows<W>) -> std::io::Result<usize> {
    if !setup.wants(udp::CASE) {
        return Ok(0);
    }
    let measured = rounds::interleaved(&plan(setup, udp::CASE, &LARGE), |side| udp::run(setup, side));
    measured.add_rows(rows, TABLE, udp::CASE, Side::Ours, &PEERS)?;
    Ok(measured.failures())
}

/// Case `probe` of a corpus.
fn beside_probes<W: Write>(setup: &Setup, corpus: &Corpus, rows: &mut Rows<W>) -> std::io::Result<usize> {
    let case = probe_case(corpus);
    if !setup.wants(&case) {
        return Ok(0);
    }
    let recording = corpus.record(probe::lines(setup.quick));
    let measured = rounds::interleaved(&plan(setup, &case, &LARGE), |side| {
        probe::run(setup, side, recording.source(), recording.lines())
    });
    measured.add_rows(rows, TABLE, &case, Side::Ours, &PEERS)?;
    Ok(measured.failures())
}

/// Case `decode` of a corpus. There is no peer: upstream's job is no library.
fn decoding<W: Write>(setup: &Setup, corpus: &Corpus, rows: &mut Rows<W>) -> std::io::Result<usize> {
    let case = decode_case(corpus);
    if !setup.wants(&case) {
        return Ok(0);
    }
    match decode::run(&corpus.record(BATCH_ITEMS)) {
        Ok(numbers) => {
            progress(&format!("{case}: {numbers}"));
            for (metric, value) in numbers.iter() {
                let Metric { name, unit } = metric;
                rows.add(&Measured { table: TABLE, case: &case, metric: name, unit, ours: value, peer: None })?;
            }
            Ok(0)
        }
        Err(error) => {
            progress(&format!("error: {case}: {error}"));
            Ok(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every case has one name, and none is a part of a case of another kind.
    #[test]
    fn names() {
        let names = case_names();
        let different: std::collections::BTreeSet<&String> = names.iter().collect();
        assert_eq!(different.len(), names.len());
        for kind in ["tcp-otap-zstd/", "tcp-noop/", "overload/rss/", "udp-loss", "probe/", "decode/"] {
            assert!(names.iter().any(|name| name.starts_with(kind)), "{kind}");
            assert!(names.iter().all(|name| !name[1..].contains(kind)), "{kind}");
        }
    }

    /// A name of which there is no case is an error that tells the names, not an empty table.
    #[test]
    fn unknown_case() {
        let setup = Setup { quick: true, cases: vec!["tpc".to_owned()], ..Setup::default() };
        let mut rows = Rows::new(crate::row::Machine::detect(), Vec::new(), None);
        let error = measure(&setup, &mut rows).unwrap_err().to_string();
        assert!(error.contains("tpc") && error.contains("udp-loss"), "{error}");
    }
}
