//! Random templates, records and mappings, read back and compared with what went in.

use std::num::NonZeroUsize;
use std::sync::Arc;

use catchment_columns::sonic::{AttributesAt, SonicBatch, SonicJob, SonicMapping, SonicNames, U64Overflow, encoded};
use catchment_columns::{Budget, Job, OtapArrowRecords, ParentIds, Step, json};
use catchment_ipfix::sonic::{SessionRow, SonicLimits, SonicSessions, StatisticId};
use otel_arrow_dfe_pdata::OtapPayloadHelpers as _;
use otel_arrow_dfe_pdata::otap::batching::make_item_batches;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use proptest::prelude::*;

mod common;

use common::read::{self, Attributes, Kind, Number, Point, Series};

/// A field of a template that is no time.
#[derive(Debug, Clone, Copy)]
enum Field {
    Counter { label: u16, object_type: u16, statistic: u16, width: u8 },
    PlaceHolder(u8),
    Foreign(u8),
}

/// How records say when they were taken.
#[derive(Debug, Clone, Copy)]
enum Times {
    UnixNano,
    SecondsAndNanos,
    Nowhere,
}

#[derive(Debug, Clone)]
struct Template {
    times: Times,
    fields: Vec<Field>,
    /// Position of the time among the fields.
    time_at: prop::sample::Index,
}

/// A set: template, records as a time and values, bytes of padding; and whether objects are renamed before it.
type Set = (prop::sample::Index, Vec<(u32, Vec<u64>)>, prop::sample::Index, bool);

fn field() -> impl Strategy<Value = Field> {
    let counter =
        (1_u16..5, prop::sample::select(vec![1_u16, 21, 30_000]), 0_u16..4, prop_oneof![6 => Just(8), 2 => 1_u8..8]);
    prop_oneof![
        10 => counter.prop_map(|(label, object_type, statistic, width)| {
            Field::Counter { label, object_type, statistic, width }
        }),
        1 => (0_u8..10).prop_map(Field::PlaceHolder),
        1 => (0_u8..10).prop_map(Field::Foreign),
    ]
}

/// A template that counts something. Most name many objects with the same few statistics in a row, as switches do.
fn template() -> impl Strategy<Value = Template> {
    let times = prop_oneof![4 => Just(Times::UnixNano), 1 => Just(Times::SecondsAndNanos), 1 => Just(Times::Nowhere)];
    let regular = (1_u16..5, 1_u16..5).prop_map(|(labels, statistics)| {
        let counter = |label, statistic| Field::Counter { label, object_type: 1, statistic, width: 8 };
        (1..=labels).flat_map(|label| (0..statistics).map(move |statistic| counter(label, statistic))).collect()
    });
    let fields = prop_oneof![prop::collection::vec(field(), 1..24), regular];
    let counts = |template: &Template| template.fields.iter().any(|field| matches!(field, Field::Counter { .. }));
    (times, fields, any::<prop::sample::Index>())
        .prop_map(|(times, fields, time_at)| Template { times, fields, time_at })
        .prop_filter("a counter", counts)
}

fn value() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 0_u64..1_000, 2 => any::<u64>(), 1 => Just(i64::MAX as u64), 1 => Just(i64::MAX as u64 + 1)]
}

fn mapping() -> impl Strategy<Value = SonicMapping> {
    let names = prop::sample::select(vec![SonicNames::Sai, SonicNames::Legacy]);
    let places = prop::sample::select(vec![AttributesAt::Point, AttributesAt::Resource]);
    let ways = prop::sample::select(vec![U64Overflow::Saturate, U64Overflow::Double]);
    let cumulative = prop::sample::select(vec!["SAI_PORT_*", "*_OCTETS", "none", "*"]);
    let records = prop::sample::select(vec![0_usize, 0, 1, 2, 3]).prop_map(NonZeroUsize::new);
    let ids = prop::sample::select(vec![ParentIds::Plain, ParentIds::Transport]);
    (names, places, ways, cumulative, 1_usize..80, records, ids).prop_map(
        |(names, attributes_at, u64_overflow, cumulative, max_points, records_per_batch, parent_ids)| SonicMapping {
            names,
            attributes_at,
            u64_overflow,
            cumulative: vec![cumulative.to_owned()],
            max_points,
            records_per_batch,
            parent_ids,
        },
    )
}

impl Template {
    /// Template `number`; labels of different templates differ, as those of the parts of a group do.
    fn definition(&self, number: usize) -> Vec<u8> {
        let mut fields: Vec<Vec<u8>> = self.fields.iter().map(|field| field.definition(number)).collect();
        let times: &[u8] = match self.times {
            Times::UnixNano => &[1, 69, 0, 8],
            Times::SecondsAndNanos => &[1, 66, 0, 4, 1, 69, 0, 4],
            Times::Nowhere => &[],
        };
        fields.insert(self.time_at.index(fields.len() + 1), times.to_vec());
        let time_fields = times.len() / 4;
        let mut bytes = vec![1, number as u8, 0, (self.fields.len() + time_fields) as u8];
        bytes.extend(fields.concat());
        bytes
    }

    /// Whether any of its objects has a name.
    fn names_objects(&self, number: usize) -> bool {
        let label = |field: &Field| match field {
            Field::Counter { label, .. } => label + 4 * number as u16,
            _ => 0,
        };
        self.fields.iter().any(|field| label(field) % 4 != 0)
    }

    fn record(&self, time: u32, values: &[u64]) -> Vec<u8> {
        let mut fields: Vec<Vec<u8>> =
            self.fields.iter().zip(values).map(|(field, value)| field.bytes(*value)).collect();
        let time = nanos(time);
        let times = match self.times {
            Times::UnixNano => time.to_be_bytes().to_vec(),
            Times::SecondsAndNanos => {
                let (seconds, nanos) = ((time / 1_000_000_000) as u32, (time % 1_000_000_000) as u32);
                [seconds.to_be_bytes(), nanos.to_be_bytes()].concat()
            }
            Times::Nowhere => Vec::new(),
        };
        fields.insert(self.time_at.index(fields.len() + 1), times);
        fields.concat()
    }
}

/// Times are some way into the present century.
fn nanos(time: u32) -> u64 {
    1_767_225_600_000_000_000 + u64::from(time) * 1_000_003
}

impl Field {
    fn definition(self, template: usize) -> Vec<u8> {
        match self {
            Self::Counter { label, object_type, statistic, width } => {
                let label = 0x8000 | (label + 4 * template as u16);
                [&label.to_be_bytes()[..], &[0, width], &object_type.to_be_bytes(), &statistic.to_be_bytes()].concat()
            }
            Self::PlaceHolder(width) => vec![0x80, 0, 0, width, 0, 0, 0, 0],
            Self::Foreign(width) => vec![0, 210, 0, width],
        }
    }

    fn bytes(self, value: u64) -> Vec<u8> {
        match self {
            Self::Counter { width, .. } => value.to_be_bytes()[8 - usize::from(width)..].to_vec(),
            Self::PlaceHolder(width) | Self::Foreign(width) => vec![0xee; usize::from(width)],
        }
    }

    /// The point of a value, if the field gives one.
    fn point(self, template: usize, renamed: bool, value: u64, time: u64, mapping: &SonicMapping) -> Option<Point> {
        let Self::Counter { label, object_type, statistic, width } = self else { return None };
        let value = value & (u64::MAX >> (64 - 8 * u32::from(width)));
        let label = label + 4 * template as u16;
        let id = StatisticId { object_type: object_type.into(), statistic: statistic.into() };
        let sai = id.statistic_name().into_owned();
        let (metric, type_key, type_text, statistic_pair) = match mapping.names {
            SonicNames::Sai => (sai.clone(), "sai_type", id.object_type_name().into_owned(), ("sai_stat", sai.clone())),
            SonicNames::Legacy => (
                format!("sai_counter_type_{object_type}_stat_{statistic}"),
                "sai_type_id",
                object_type.to_string(),
                ("sai_stat_id", statistic.to_string()),
            ),
        };
        let object = if label.is_multiple_of(4) { format!("unknown_{label}") } else { name(label, renamed) };
        let pair = |(key, text): (&str, String)| (key.to_owned(), text);
        let mut resource = Attributes::from([pair(("service.name", "countersyncd".into()))]);
        let mut attributes = Attributes::new();
        match mapping.attributes_at {
            AttributesAt::Point => {
                attributes.extend([("object_name", object), (type_key, type_text), statistic_pair].map(pair));
            }
            AttributesAt::Resource => resource.extend([("object", object), (type_key, type_text)].map(pair)),
        }
        let is_sum = match mapping.cumulative[0].as_str() {
            "SAI_PORT_*" => sai.starts_with("SAI_PORT_"),
            "*_OCTETS" => sai.ends_with("_OCTETS"),
            pattern => pattern == "*",
        };
        let value = match (i64::try_from(value), mapping.u64_overflow) {
            (Ok(value), _) => Number::Int(value),
            (Err(_), U64Overflow::Saturate) => Number::Int(i64::MAX),
            (Err(_), U64Overflow::Double) => Number::Double(value as f64),
        };
        let kind = if is_sum { Kind::Cumulative } else { Kind::Gauge };
        Some(Point {
            series: Series { resource, metric, unit: String::new(), kind, attributes },
            start: 0,
            time,
            value,
        })
    }
}

fn name(label: u16, renamed: bool) -> String {
    format!("{}{label}|{}", if renamed { "Uplink" } else { "Ethernet" }, label % 3)
}

/// All objects but each fourth have names.
fn row(templates: &[Template], renamed: bool) -> SessionRow {
    let labels: Vec<u16> = (1..20).filter(|label| label % 4 != 0).collect();
    let list = |text: &dyn Fn(&u16) -> String| labels.iter().map(text).collect::<Vec<_>>().join(",");
    let definitions: Vec<u8> =
        templates.iter().enumerate().flat_map(|(number, template)| template.definition(number)).collect();
    SessionRow {
        stream_status: "enabled".into(),
        session_type: "ipfix".into(),
        object_names: list(&|label| name(*label, renamed)),
        object_ids: list(&|label| label.to_string()),
        session_config: common::message(2, &definitions),
    }
}

/// Steps through the job; each batch has the bounds that the mapping asks for.
fn step_through(mut job: SonicJob, budget: Budget) -> (Vec<OtapArrowRecords>, u64) {
    let mut batches = Vec::new();
    loop {
        match job.step(budget).expect("a step") {
            Step::More => {}
            Step::Batch(records) => batches.push(records),
            Step::End => return (batches, job.counts().overflowed),
        }
    }
}

fn points_of(batch: &OtapArrowRecords) -> usize {
    batch.get(ArrowPayloadType::NumberDataPoints).expect("points").num_rows()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Every value of every record comes back in its series, in order and with its time, whoever reads the batches; printed
    /// they have the order of their rows; payloads of them say the same; batches for transport are left as they are by the exporter's encoder.
    #[test]
    fn what_went_in_comes_out(
        templates in prop::collection::vec(template(), 1..3),
        sets in prop::collection::vec(
            (
                any::<prop::sample::Index>(),
                prop::collection::vec((0_u32..100, prop::collection::vec(value(), 24)), 0..6),
                any::<prop::sample::Index>(),
                prop::bool::weighted(0.1),
            ),
            1..12,
        ),
        mapping in mapping(),
        budget in (1_usize..40, 1_usize..400).prop_map(|(records, bytes)| Budget { records, bytes }),
    ) {
        check(&templates, &sets, mapping, budget)?;
    }
}

/// A payload gives the same batches elsewhere, and each of the parts of a batch gives one of them.
fn check_payloads(
    payload: &[u8],
    parts: Vec<SonicBatch>,
    mapping: &SonicMapping,
    batches: &[OtapArrowRecords],
) -> Result<(), TestCaseError> {
    let run = |payload: &[u8]| {
        let (batch, read) = encoded::decode(payload).expect("a payload");
        assert_eq!(encoded::count(payload), Some(batch.points()));
        assert_eq!(&read, mapping);
        SonicJob::new(batch, Arc::new(read)).run().expect("batches")
    };
    prop_assert!(run(payload) == batches);
    prop_assert_eq!(parts.len(), batches.len());
    for (part, batch) in parts.iter().zip(batches) {
        prop_assert_eq!(part.points(), points_of(batch));
        prop_assert!(run(&encoded::encode(part, mapping)) == std::slice::from_ref(batch));
    }
    Ok(())
}

/// The same points are in the batches as the engine's batch processor merges them. Sent on, points of a series may have
/// another order, since metrics do not stand in the order of the exporter any more.
fn check_merged(batches: &[OtapArrowRecords], expected: &[Point]) -> Result<(), TestCaseError> {
    let Some(first) = batches.first() else { return Ok(()) };
    let merged = make_item_batches(first.signal_type(), None, batches.to_vec()).expect("merged");
    let rows: Vec<Point> = merged.iter().map(read::decoded).flat_map(|batch| read::row_by_row(&batch)).collect();
    prop_assert_eq!(read::by_series(&rows), read::by_series(expected));
    let sorted = |points: &[Point]| {
        let mut all = read::by_series(points);
        let order = |value: &(u64, u64, Number)| format!("{value:?}");
        all.values_mut().for_each(|values| values.sort_by_key(order));
        all
    };
    let sent: Vec<Point> =
        merged.iter().flat_map(|batch| read::through_view(&read::sent(batch), "countersyncd")).collect();
    prop_assert_eq!(sorted(&sent), sorted(expected));
    Ok(())
}

fn check(templates: &[Template], sets: &[Set], mapping: SonicMapping, budget: Budget) -> Result<(), TestCaseError> {
    let mapping = Arc::new(mapping);
    let mut sessions = SonicSessions::new(SonicLimits::default());
    let _ = sessions.apply("key", &row(templates, false)).expect("a good session");
    let mut batch = SonicBatch::default();
    // Points by template and its generation.
    let mut lanes: Vec<((usize, usize), Vec<Point>)> = Vec::new();
    let mut generations = vec![0; templates.len()];
    let (mut renamed, mut last_time) = (false, 77);
    for (which, records, padding, rename) in sets {
        if *rename {
            renamed = !renamed;
            let _ = sessions.apply("key", &row(templates, renamed)).expect("a good session");
            for (number, generation) in generations.iter_mut().enumerate() {
                *generation += usize::from(templates[number].names_objects(number));
            }
        }
        let number = which.index(templates.len());
        let template = &templates[number];
        let mut content: Vec<u8> = records.iter().flat_map(|(time, values)| template.record(*time, values)).collect();
        let length = template.record(0, &[0; 24]).len();
        content.resize(content.len() + padding.index(length.min(8)), 0);
        sessions
            .admit(9, &common::message(256 + number as u16, &content), 77, |set| batch.push(9, set))
            .expect("admitted");
        for (time, values) in records {
            let own = nanos(*time);
            let time = if matches!(template.times, Times::Nowhere) { last_time } else { own };
            let points = template.fields.iter().zip(values);
            let points = points.filter_map(|(field, value)| field.point(number, renamed, *value, time, &mapping));
            let lane = (number, generations[number]);
            match lanes.iter_mut().find(|(known, _)| *known == lane) {
                Some((_, all)) => all.extend(points),
                // A lane begins with its first record.
                None => lanes.push((lane, points.collect())),
            }
        }
        if let (Some((time, _)), false) = (records.last(), matches!(template.times, Times::Nowhere)) {
            last_time = nanos(*time);
        }
    }
    let expected: Vec<Point> = lanes.into_iter().flat_map(|(_, points)| points).collect();
    prop_assert_eq!(batch.points(), expected.len());
    let payload = encoded::encode(&batch, &mapping);
    let parts = encoded::decode(&payload).expect("a payload").0.split(&mapping);
    let (batches, overflowed) = step_through(SonicJob::new(batch, Arc::clone(&mapping)), budget);
    check_payloads(&payload, parts, &mapping, &batches)?;
    let largest = templates.iter().map(|template| template.fields.len()).max().unwrap_or_default();
    let mut read: [Vec<Point>; 4] = Default::default();
    for batch in &batches {
        prop_assert!(points_of(batch) <= mapping.max_points.max(largest));
        let decoded = read::decoded(batch);
        let rows = read::row_by_row(&decoded);
        let mut printed = Vec::new();
        json::objects(&decoded, |point| printed.push(point)).expect("points");
        prop_assert_eq!(printed, rows.iter().map(|point| point.printed("countersyncd")).collect::<Vec<_>>());
        read[0].extend(rows);
        read[1].extend(read::through_view(&decoded, "countersyncd"));
        read[2].extend(read::through_otlp(batch, "countersyncd"));
        read[3].extend(read::through_view(&read::sent(batch), "countersyncd"));
        let mut encoded = batch.clone();
        encoded.encode_transport_optimized().expect("encoded");
        let is_transport =
            mapping.parent_ids == ParentIds::Transport && mapping.records_per_batch.is_none_or(|most| most.get() > 1);
        prop_assert!(!is_transport || encoded == *batch);
    }
    check_merged(&batches, &expected)?;
    for (reader, points) in read.iter().enumerate() {
        prop_assert_eq!(read::by_series(points), read::by_series(&expected), "reader {}", reader);
    }
    let above = |point: &&Point| match (mapping.u64_overflow, point.value) {
        (U64Overflow::Double, value) => matches!(value, Number::Double(_)),
        (U64Overflow::Saturate, value) => value == Number::Int(i64::MAX),
    };
    // The largest integer itself is not above the range, but looks so once others are held there.
    let looks_above = expected.iter().filter(above).count() as u64;
    prop_assert!(
        overflowed <= looks_above && (mapping.u64_overflow == U64Overflow::Saturate || overflowed == looks_above)
    );
    if mapping.records_per_batch.is_some_and(|most| most.get() == 1) {
        prop_assert_eq!(&read[0], &expected, "the order of the wire");
    }
    Ok(())
}
