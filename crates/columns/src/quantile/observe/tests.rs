//! Observations read back from batches that the writers of this crate made.

use super::*;
use crate::logs::{LogFields, LogsTable, NO_LEVELS};
use crate::quantile::gauges::{WindowResult, gauges};

fn attribute(text: &str) -> AttributeRef {
    text.parse().expect("attribute")
}

fn log_source(text: TextNumbers) -> ValueSource {
    ValueSource::LogAttribute { attribute: attribute("bytes"), text }
}

fn sample_logs() -> OtapArrowRecords {
    let mut table = LogsTable::new("test", &NO_LEVELS, &[]);
    let mut log = |time, write: &dyn Fn(&mut crate::table::AttributeWriter<'_>)| {
        let fields = LogFields { time_unix_nano: time, observed_time_unix_nano: 1_000, ..LogFields::default() };
        write(&mut table.record(fields));
    };
    log(Some(10), &|a| {
        a.text("proto", b"tcp");
        a.int("bytes", 100);
    });
    log(None, &|a| {
        a.double("bytes", 2.5);
        a.text("proto", b"udp");
    });
    log(Some(30), &|a| a.text("bytes", b" 7.5 "));
    log(Some(40), &|a| a.text("proto", b"tcp"));
    log(Some(50), &|a| {
        a.int("bytes", 0);
        a.text("proto", b"tcp");
    });
    table.finish_at_once().expect("batch")
}

/// Values, times and series of log attributes; every record is an observation or counted.
#[test]
fn log_attributes_are_observed_and_nothing_is_lost() {
    let records = sample_logs();
    let seen = observe(&records, &log_source(TextNumbers::Refuse), &[attribute("proto")], TimeSource::Event, 9)
        .expect("readable");
    assert_eq!(seen.values, [100.0, 2.5, 0.0]);
    assert_eq!(seen.times, [10, 1_000, 50]);
    let key = |index: usize| seen.keys[seen.series[index] as usize].clone();
    assert_eq!(key(0).as_ref(), [KeyValue::Text("tcp".into())]);
    assert_eq!(key(1).as_ref(), [KeyValue::Text("udp".into())]);
    assert_eq!(key(0), key(2));
    use Fate::{NoValue, NotANumber, Observed};
    assert_eq!(seen.fates, [Observed, Observed, NotANumber, NoValue, Observed]);
    assert_eq!(seen.items, [0, 1, 4]);
}

/// Text counts as a number on request only, and a record without the grouping attribute is a series of its own.
#[test]
fn text_that_spells_a_number_counts_on_request() {
    let seen =
        observe(&sample_logs(), &log_source(TextNumbers::Decimal), &[attribute("proto")], TimeSource::Observed, 9)
            .expect("readable");
    assert_eq!(seen.values, [100.0, 2.5, 7.5, 0.0]);
    assert_eq!(seen.times, [1_000; 4]);
    assert_eq!(seen.keys[seen.series[2] as usize].as_ref(), [KeyValue::Absent]);
}

/// Points that this crate writes are read back with name patterns, group and time.
#[test]
fn gauge_points_are_observed_by_name() {
    let group = [attribute("host"), attribute("port")];
    let key = [KeyValue::Text("a".into()), KeyValue::Int(80)];
    let result = |key| WindowResult {
        name: "t",
        unit: "ms",
        group_by: &group,
        key,
        start_unix_nano: 1,
        end_unix_nano: 20,
        quantiles: &[(0.5, 1.5), (0.99, 9.0)],
        statistics: &[("count", 3.0)],
    };
    let records = gauges(&[result(Some(&key)), result(None)]).expect("built").expect("not empty");
    let source = |name: &str| ValueSource::Metric { names: vec![name.to_owned()] };
    let seen = observe(&records, &source("t.q*"), &group, TimeSource::Event, 9).expect("readable");
    assert_eq!(seen.values, [1.5, 9.0, 1.5, 9.0]);
    assert_eq!(seen.times, [20; 4]);
    assert_eq!(seen.keys[0].as_ref(), key);
    assert_eq!(seen.keys[1].as_ref(), [KeyValue::Absent, KeyValue::Absent]);
    let others = seen.fates.iter().filter(|fate| **fate == Fate::NoValue).count();
    assert_eq!(others, 2, "the two counts are other metrics");
    let counts =
        observe(&records, &source("t.count"), &[attribute(crate::quantile::gauges::OVERFLOW)], TimeSource::Event, 9)
            .expect("readable");
    assert_eq!(counts.values, [3.0, 3.0]);
    assert_eq!(counts.keys[1].as_ref(), [KeyValue::Bool(true)]);
}

/// A source for one signal sees nothing in the other.
#[test]
fn the_other_signal_gives_nothing() {
    let source = ValueSource::Metric { names: vec!["*".to_owned()] };
    let seen = observe(&sample_logs(), &source, &[], TimeSource::Event, 9).expect("readable");
    assert!(seen.values.is_empty());
}
