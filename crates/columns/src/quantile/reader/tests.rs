//! Observations read back from batches that the writers of this crate made, and from OTLP requests by both ways.

mod again;
mod both_ways;

use super::*;
use crate::logs::{LogFields, LogsTable, NO_LEVELS};
use crate::quantile::gauges::{OVERFLOW, WindowResult, gauges};
use crate::quantile::query::{NonFinite, TextNumbers, TimeSource};
use crate::quantile::{Fate, KeyValue};

fn path(text: &str) -> AttributePath {
    text.parse().expect("a path")
}

fn log_query(text: TextNumbers) -> Query {
    Query::new(ValueSource::LogAttribute { attribute: path("bytes"), text })
}

fn metric_query(name: &str) -> Query {
    Query::new(ValueSource::Metric { names: vec![name.to_owned()] })
}

/// Observations with the keys of their series.
#[derive(Debug)]
struct Seen {
    observations: Observations,
    keys: Vec<SeriesKey>,
}

impl Seen {
    fn new(reader: &Reader, observations: Observations) -> Self {
        let keys = observations.series.iter().map(|number| reader.series(*number).clone()).collect();
        Self { observations, keys }
    }
}

impl std::ops::Deref for Seen {
    type Target = Observations;

    fn deref(&self) -> &Observations {
        &self.observations
    }
}

fn read(records: &OtapArrowRecords, query: Query) -> Seen {
    let mut out = Observations::default();
    let mut reader = Reader::new(query, 100);
    reader.read_records(records, 9, &mut out).expect("readable");
    Seen::new(&reader, out)
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
        a.int("rate", 512);
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
        a.int("rate", 0);
    });
    table.finish_at_once().expect("batch")
}

/// Values, times and series of log attributes; every record is an observation or counted.
#[test]
fn log_attributes_are_observed_and_nothing_is_lost() {
    let seen = read(&sample_logs(), log_query(TextNumbers::Refuse).grouped_by(vec![path("proto")]));
    assert_eq!(seen.values, [100.0, 2.5, 0.0]);
    assert_eq!(seen.times, [10, 1_000, 50]);
    let key = |index: usize| seen.keys[seen.groups[index] as usize].clone();
    assert_eq!(*key(0), [KeyValue::Text("tcp".into())]);
    assert_eq!(*key(1), [KeyValue::Text("udp".into())]);
    assert_eq!(key(0), key(2));
    use Fate::{NoValue, NotANumber, Observed};
    assert_eq!(seen.fates, [Observed, Observed, NotANumber, NoValue, Observed]);
    assert_eq!(seen.items, [0, 1, 4]);
    assert!(seen.weights.is_empty());
}

/// Text counts as a number on request only, and a record without the grouping attribute is a series of its own.
#[test]
fn text_that_spells_a_number_counts_on_request() {
    let mut query = log_query(TextNumbers::Decimal).grouped_by(vec![path("proto")]);
    query.time = TimeSource::Observed;
    let seen = read(&sample_logs(), query);
    assert_eq!(seen.values, [100.0, 2.5, 7.5, 0.0]);
    assert_eq!(seen.times, [1_000; 4]);
    assert_eq!(*seen.keys[seen.groups[2] as usize], [KeyValue::Absent]);
}

/// A weight counts where it is a number of at least 1; an item with another one is no observation.
#[test]
fn weights_come_from_an_attribute() {
    let mut query = log_query(TextNumbers::Refuse);
    query.weight_from = Some(path("rate"));
    let seen = read(&sample_logs(), query);
    assert_eq!((&seen.values[..], &seen.weights[..]), (&[100.0, 2.5][..], &[512, 1][..]));
    assert_eq!((seen.times.len(), seen.groups.len(), seen.items.as_slice()), (2, 2, &[0, 1][..]));
    use Fate::{BadWeight, NoValue, NotANumber, Observed};
    assert_eq!(seen.fates, [Observed, Observed, NotANumber, NoValue, BadWeight]);
}

/// Values and groups within structured data.
#[test]
fn paths_lead_into_maps() {
    let mut table = LogsTable::new("test", &NO_LEVELS, &[]);
    for (id, time) in [("a", 7), ("b", 8)] {
        let mut encoded = Vec::new();
        let mut encoder = minicbor::Encoder::new(&mut encoded);
        encoder
            .map(1)
            .and_then(|e| e.str("haproxy@32473"))
            .and_then(|e| e.begin_map())
            .and_then(|e| e.str("id")?.str(id)?.str("time_total_ms")?.i64(time)?.end())
            .expect("written");
        table.record(LogFields::default()).map("syslog.structured_data", &encoded);
    }
    let records = table.finish_at_once().expect("batch");
    let source = |step: &str| ValueSource::LogAttribute {
        attribute: path(&format!("syslog.structured_data/haproxy@32473/{step}")),
        text: TextNumbers::Refuse,
    };
    let group = vec![path("syslog.structured_data/haproxy@32473/id")];
    let seen = read(&records, Query::new(source("time_total_ms")).grouped_by(group));
    assert_eq!(seen.values, [7.0, 8.0]);
    assert_eq!(*seen.keys[1], [KeyValue::Text("b".into())]);
    assert_eq!(read(&records, Query::new(source("none"))).fates, [Fate::NoValue; 2]);
}

/// Points that this crate writes are read back with name patterns, group and time.
#[test]
fn gauge_points_are_observed_by_name() {
    let group = vec![path("host"), path("port")];
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
        exact: true,
    };
    let records = gauges(&[result(Some(&key)), result(None)]).expect("built").expect("not empty");
    let seen = read(&records, metric_query("t.q*").grouped_by(group.clone()));
    assert_eq!(seen.values, [1.5, 9.0, 1.5, 9.0]);
    assert_eq!(seen.times, [20; 4]);
    assert_eq!(*seen.keys[0], key);
    assert_eq!(*seen.keys[1], [KeyValue::Absent, KeyValue::Absent]);
    let others = seen.fates.iter().filter(|fate| **fate == Fate::NoValue).count();
    assert_eq!(others, 2, "the two counts are other metrics");
    let counts = read(&records, metric_query("t.count").grouped_by(vec![path(OVERFLOW)]));
    assert_eq!(counts.values, [3.0, 3.0]);
    assert_eq!(*counts.keys[1], [KeyValue::Bool(true)]);
}

/// Infinite values by policy, NaN never.
#[test]
fn non_finite_values_are_kept_on_request() {
    let quantiles = [(0.1, f64::NEG_INFINITY), (0.5, f64::NAN), (0.9, 3.0), (1.0, f64::INFINITY)];
    let result = WindowResult {
        name: "t",
        unit: "",
        group_by: &[],
        key: Some(&[]),
        start_unix_nano: 1,
        end_unix_nano: 2,
        quantiles: &quantiles,
        statistics: &[],
        exact: true,
    };
    let records = gauges(&[result]).expect("built").expect("not empty");
    let mut query = metric_query("*");
    assert_eq!(read(&records, query.clone()).values, [3.0]);
    query.non_finite = NonFinite::Keep;
    let seen = read(&records, query);
    assert_eq!(seen.values, [f64::NEG_INFINITY, 3.0, f64::INFINITY]);
    assert_eq!(seen.fates[1], Fate::NotANumber);
}

/// A query of one signal sees nothing in the other.
#[test]
fn the_other_signal_gives_nothing() {
    let seen = read(&sample_logs(), metric_query("*"));
    assert!(seen.values.is_empty() && seen.fates.is_empty());
}

/// A small memory forgets between batches; what is read stays the same.
#[test]
fn forgetting_changes_nothing() {
    let mut reader = Reader::new(log_query(TextNumbers::Decimal).grouped_by(vec![path("proto")]), 0);
    let (mut first, mut second) = (Observations::default(), Observations::default());
    reader.read_records(&sample_logs(), 9, &mut first).expect("readable");
    let (first, generation) = (Seen::new(&reader, first), reader.generation());
    reader.read_records(&sample_logs(), 9, &mut second).expect("readable");
    assert_ne!(reader.generation(), generation);
    let second = Seen::new(&reader, second);
    assert_eq!((&first.keys, &first.groups), (&second.keys, &second.groups));
}
