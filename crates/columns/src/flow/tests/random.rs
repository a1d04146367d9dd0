//! Random data sets: whichever way they are decoded, the same comes out.

use std::sync::Arc;

use catchment_ipfix::{
    DataType, FieldSpec, Kind, MessageInfo, Records, SequenceCheck, SubTemplates, Template, TimeEncoding, Version,
    netflow_v5_template,
};
use catchment_sampling::Threshold;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

use super::super::batch::Set;
use super::super::facts::{Carried, Facts};
use super::super::*;
use crate::{Budget, Job, ParentIds, Step, json as records_json};

/// 2026-11-30T12:00:00Z.
const NOON: i64 = 1_796_040_000_000_000_000;

/// Enterprise, element, and the length that exporters give it.
const ELEMENTS: &[(u32, u16, u16)] = &[
    (0, 8, 4),
    (0, 12, 4),
    (0, 27, 16),
    (0, 28, 16),
    (0, 7, 2),
    (0, 11, 2),
    (0, 4, 1),
    (0, 6, 1),
    (0, 1, 8),
    (0, 2, 4),
    (0, 85, 8),
    (0, 10, 4),
    (0, 14, 4),
    (0, 22, 4),
    (0, 21, 4),
    (0, 152, 8),
    (0, 153, 8),
    (0, 150, 4),
    (0, 151, 4),
    (0, 154, 8),
    (0, 157, 8),
    (0, 158, 4),
    (0, 160, 8),
    (0, 323, 8),
    (0, 56, 6),
    (0, 80, 6),
    (0, 136, 1),
    (0, 34, 4),
    (0, 305, 4),
    (0, 306, 4),
    (0, 311, 8),
    (0, 48, 1),
    (0, 234, 4),
    (0, 235, 4),
    (0, 95, 4),
    (0, 58, 2),
    (0, 60, 1),
    (0, 256, 2),
    (0, 239, 1),
    (0, 276, 1),
    (0, 210, 3),
    (0, 82, 6),
    (0, 291, 9),
    (0, 434, 4),
    (0, 30_000, 3),
    (9, 30_000, 4),
    (9, 30_001, 4),
    (12_235, 8_199, 4),
    (29_305, 1, 8),
    (29_305, 2, 4),
    (29_305, 152, 8),
    (29_305, 30_000, 2),
];

fn fields(is_fixed: bool) -> impl Strategy<Value = Vec<FieldSpec>> {
    let length = move |natural: u16| {
        let variable = if is_fixed { natural } else { catchment_ipfix::VARIABLE_LENGTH };
        prop_oneof![6 => Just(natural), 1 => 0..10_u16, 1 => Just(variable)]
    };
    let field = select(ELEMENTS).prop_flat_map(move |(enterprise, id, natural)| {
        (length(natural), 0..4_u8).prop_map(move |(length, kind)| match (kind, enterprise) {
            (0, 0) => FieldSpec::netflow_v9(id, length),
            _ => FieldSpec::ipfix(id, enterprise, length, false),
        })
    });
    proptest::collection::vec(field, 1..14)
}

fn template(is_fixed: bool) -> impl Strategy<Value = Arc<Template>> {
    let made = (fields(is_fixed), 0..5_u8, 256..260_u16).prop_map(|(mut fields, kind, id)| {
        let kind = if kind == 0 { Kind::Options } else { Kind::Flow };
        if kind == Kind::Options {
            fields[0].scope = true;
        }
        Arc::new(Template::new(id, kind, fields).expect("a template"))
    });
    prop_oneof![12 => made, 1 => Just(Arc::clone(netflow_v5_template()))]
}

/// Bytes among which small numbers and zeros are frequent.
fn content() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![4 => Just(0_u8), 3 => 0..4_u8, 2 => any::<u8>()];
    proptest::collection::vec(byte, 0..400)
}

fn message() -> impl Strategy<Value = MessageInfo> {
    let version = select(&[Version::V5, Version::V9, Version::Ipfix][..]);
    (version, any::<Option<u32>>(), any::<Option<u16>>(), 0..3_u32, any::<u32>()).prop_map(
        |(version, uptime_ms, sampling, domain, sequence)| MessageInfo {
            version,
            offset: 0,
            length: 0,
            export_time_unix_nano: NOON,
            uptime_ms,
            sequence,
            sequence_check: SequenceCheck::Unchecked,
            domain,
            header_count: None,
            sampling,
            complete: true,
        },
    )
}

fn facts() -> impl Strategy<Value = Facts> {
    (any::<bool>(), any::<bool>()).prop_map(|(is_known, depends_on_record)| {
        if !is_known {
            return Facts::None;
        }
        let names = |what: &str| (0..3).map(|number| (number, format!("{what} {number}"))).collect();
        let mut carried = Carried {
            system_init_unix_nano: Some(NOON - 3_600_000_000_000),
            depends_on_record,
            generation: 1,
            interfaces: names("interface"),
            vrfs: names("vrf"),
            ..Carried::default()
        };
        let _ = carried.applications.insert(vec![0, 0, 0, 1], "web".to_owned());
        let _ = carried.elements.insert((9, 30_000), ("rate".to_owned(), DataType::Float32));
        let _ = carried.rates.insert(([None; 4], 257), 100.0);
        let _ = carried.rates.insert(([None, Some(0), None, None], 256), 12.5);
        let _ = carried.rates.insert(([Some(1), None, None, None], 256), 7.0);
        Facts::Carried(Arc::new(carried))
    })
}

/// What a set is made of: the numbers of a template and of an exporter, its records, its message and its facts.
type Part = (usize, Option<u8>, Vec<u8>, MessageInfo, Facts);

fn batch(templates: &[Arc<Template>], parts: &[Part]) -> FlowBatch {
    let mut batch = FlowBatch::default();
    for (number, (template, exporter, content, message, facts)) in parts.iter().enumerate() {
        let template = &templates[template % templates.len()];
        let mut cursor = Records::new(template, content);
        let records = cursor.by_ref().count();
        let start = batch.arena.len();
        batch.arena.extend_from_slice(&content[..cursor.position()]);
        batch.records += records;
        let exporter = exporter.map(|number| std::net::SocketAddr::from(([192, 0, 2, number], 4_739)));
        batch.sets.push(Set {
            template: Arc::clone(template),
            sub_templates: SubTemplates::new(templates.to_vec()),
            facts: facts.clone(),
            records,
            bytes: start..batch.arena.len(),
            message: *message,
            receipt: FlowReceipt { time_unix_nano: NOON + i64::try_from(number).expect("few"), exporter },
            // As different from set to set as the time of export is.
            threshold: Threshold::new((message.export_time_unix_nano.unsigned_abs() % 3) << 54).expect("56 bits"),
        });
    }
    batch
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let exporter = proptest::option::of(1..3_u8);
    proptest::collection::vec((0..4_usize, exporter, content(), message(), facts()), 1..6)
}

fn templates() -> impl Strategy<Value = Vec<Arc<Template>>> {
    proptest::collection::vec(any::<bool>().prop_flat_map(template), 1..4)
}

fn mapping() -> impl Strategy<Value = FlowMapping> {
    let half = || any::<[bool; 7]>();
    (half(), 0..3_u8, 0..3_u8).prop_map(
        |([schema, numbers, rfc3339, apply, semantics, two, resource], options, overflow)| FlowMapping {
            schema: if schema { FlowSchema::Ipfix } else { FlowSchema::Otel },
            enumerations: if numbers { Enumerations::Numbers } else { Enumerations::Names },
            times: if rfc3339 { TimeForm::Rfc3339 } else { TimeForm::UnixNano },
            sampling: if apply { SamplingUse::Apply } else { SamplingUse::Keep },
            options: [OptionsData::Both, OptionsData::Emit, OptionsData::Use][usize::from(options)],
            u64_overflow: [U64Overflow::Double, U64Overflow::String, U64Overflow::Saturate][usize::from(overflow)],
            list_semantics: semantics,
            biflow: if two { Biflow::Two } else { Biflow::One },
            exporter_at: if resource { ExporterAt::Resource } else { ExporterAt::Record },
            per_exporter: resource && semantics,
            time_encoding: if numbers { TimeEncoding::UnixNano } else { TimeEncoding::Ntp },
            parent_ids: if two { ParentIds::Transport } else { ParentIds::Plain },
        },
    )
}

/// The records as JSON, and what was counted.
fn decoded(mut job: FlowJob, budget: Budget) -> (Vec<Value>, FlowCounts) {
    let mut out = Vec::new();
    loop {
        match job.step(budget).expect("decoded") {
            Step::More => {}
            Step::Batch(mut records) => {
                records.decode_transport_optimized_ids().expect("decodable");
                records_json::objects(&records, |object| out.push(object)).expect("readable");
            }
            Step::End => return (out, job.counts()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Field by field or record by record, at once or in small steps, here or after a journey as a payload, with parent ids
    /// of either form: the same records, and the same counts.
    #[test]
    fn all_ways_are_one(templates in templates(), parts in parts(), mapping in mapping()) {
        let job = || FlowJob::with_mapping(batch(&templates, &parts), &mapping);
        let (records, counts) = decoded(job(), Budget::UNLIMITED);
        let mut by_record = job();
        by_record.by_record = true;
        let (others, other_counts) = decoded(by_record, Budget::UNLIMITED);
        prop_assert_eq!(&others, &records);
        prop_assert_eq!(other_counts, counts);
        prop_assert_eq!(&decoded(job(), Budget { records: 3, bytes: 40 }), &(others, counts));
        let transport = job().with_parent_ids(ParentIds::Transport);
        prop_assert_eq!(&decoded(transport, Budget::default()), &(records.clone(), counts));

        let batch = batch(&templates, &parts);
        let payload = encoded::encode(&batch, &mapping);
        prop_assert_eq!(encoded::count(&payload), Some(batch.len()));
        let (read, read_mapping) = encoded::decode(&payload).expect("a payload");
        prop_assert_eq!(read_mapping, mapping);
        prop_assert_eq!(read.len(), batch.len());
        prop_assert_eq!(&decoded(FlowJob::with_mapping(read, &mapping), Budget::UNLIMITED), &(records, counts));
    }

    /// Damaged payloads are refused, or decode to something, and never stop the process.
    #[test]
    fn damaged_payloads(
        templates in templates(),
        parts in parts(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut: prop::sample::Index,
    ) {
        let mut payload = encoded::encode(&batch(&templates, &parts), &FlowMapping::default());
        let cut = cut.index(payload.len());
        prop_assert!(encoded::decode(&payload[..cut]).is_err());
        for (at, to) in changes {
            let at = at.index(payload.len());
            payload[at] = to;
        }
        if let Ok((batch, mapping)) = encoded::decode(&payload) {
            let _ = decoded(FlowJob::with_mapping(batch, &mapping), Budget::UNLIMITED);
        }
        let _ = encoded::count(&payload);
    }
}
