//! What each setting changes, and what options data adds.

use std::sync::Arc;

use catchment_ipfix::{DataType, TimeEncoding};

use super::super::facts::{Carried, Facts};
use super::*;

fn with(batch: FlowBatch, mapping: FlowMapping) -> Vec<Value> {
    let mut out = Vec::new();
    for records in FlowJob::with_mapping(batch, &mapping).run().expect("decoded") {
        records_json::objects(&records, |object| out.push(object)).expect("readable");
    }
    out
}

fn one(batch: FlowBatch, mapping: FlowMapping) -> Value {
    let mut all = with(batch, mapping);
    assert_eq!(all.len(), 1);
    all.remove(0)["attributes"].take()
}

/// One record of a template 256 of elements of any enterprise.
fn record(fields: &[(u32, u16, u16)], content: &[u8]) -> FlowBatch {
    let mut template = [256, u16::try_from(fields.len()).expect("few")].map(u16::to_be_bytes).concat();
    for (enterprise, id, length) in fields {
        let bit = if *enterprise == 0 { 0 } else { 0x8000 };
        template.extend([id | bit, *length].map(u16::to_be_bytes).concat());
        if *enterprise != 0 {
            template.extend(enterprise.to_be_bytes());
        }
    }
    batch(&[message(0, &[set(2, &template), set(256, content)].concat())])
}

fn told(mut batch: FlowBatch, carried: Carried) -> FlowBatch {
    let facts = Facts::Carried(Arc::new(carried));
    batch.sets.iter_mut().for_each(|set| set.facts = facts.clone());
    batch
}

/// The registry's names, with the receiver's own under `flow.`; nothing of the collector's.
#[test]
fn the_schema_of_the_registry() {
    let fields = [(0, 8, 4), (0, 4, 1), (0, 136, 1), (0, 30_000, 1), (9, 30_000, 1), (29_305, 1, 4)];
    let content = [192, 0, 2, 7, 17, 3, 1, 2, 0, 0, 0, 9];
    let mapping = FlowMapping { schema: FlowSchema::Ipfix, times: TimeForm::Rfc3339, ..FlowMapping::default() };
    assert_eq!(
        one(record(&fields, &content), mapping),
        json!({
            "sourceIPv4Address": "192.0.2.7", "protocolIdentifier": "udp", "flowEndReason": named(136, 3),
            "0.30000": {"base16": "01"}, "9.30000": {"base16": "02"}, "reverseOctetDeltaCount": 9,
            "flow.type": "ipfix", "flow.sequence_num": 7, "flow.observation_domain_id": 0, "flow.template_id": 256,
            "flow.time_received": "2026-11-30T12:00:00.000000000Z", "flow.time_exported": "2026-11-30T12:00:00.000000000Z",
            "flow.sampler_address": "192.0.2.1",
        })
    );
}

/// Numbers stay numbers on request and where they have no name; the protocol has its name all the same.
#[test]
fn enumerations() {
    let fields = [(0, 4, 1), (0, 136, 1)];
    for (enumerations, reason, expected) in [
        (Enumerations::Names, 4, named(136, 4)),
        (Enumerations::Names, 77, json!(77)),
        (Enumerations::Numbers, 4, json!(4)),
    ] {
        let mapping = FlowMapping { enumerations, ..FlowMapping::default() };
        let attributes = one(record(&fields, &[6, reason]), mapping);
        assert_eq!(attributes["ipfix.flowEndReason"], expected);
        assert_eq!(attributes["network.transport"], "tcp");
    }
    assert!(named(136, 4).is_string());
}

/// A protocol whose number has a length of its own is named like any other; one that is no number keeps its bytes.
#[test]
fn protocols_of_odd_lengths() {
    let variable = catchment_ipfix::VARIABLE_LENGTH;
    let attributes = one(record(&[(0, 4, variable)], &[1, 17]), FlowMapping::default());
    assert_eq!(attributes["network.transport"], "udp");
    let attributes = one(record(&[(0, 4, 2)], &[0, 17]), FlowMapping::default());
    assert_eq!(attributes["ipfix.protocolIdentifier"], json!({"base16": "0011"}));
    assert!(attributes["network.transport"].is_null());
}

/// Counters of octets and packets are multiplied, others are not; what no integer can hold follows its own setting.
#[test]
fn sampling_is_applied_on_request() {
    let fields = [(0, 34, 4), (0, 1, 8), (0, 86, 8), (0, 7, 2)];
    let content = [&[0, 0, 0, 100][..], &5_u64.to_be_bytes(), &u64::MAX.to_be_bytes(), &[0, 80]].concat();
    let kept = one(record(&fields, &content), FlowMapping::default());
    assert_eq!((&kept["flow.io.bytes"], &kept["flow.sampling_applied"]), (&json!(5), &Value::Null));
    for (u64_overflow, expected) in [
        (U64Overflow::Double, json!(1.844_674_407_370_955_2e21)),
        (U64Overflow::String, json!("1844674407370955161500")),
        (U64Overflow::Saturate, json!(i64::MAX)),
    ] {
        let mapping = FlowMapping { sampling: SamplingUse::Apply, u64_overflow, ..FlowMapping::default() };
        let applied = one(record(&fields, &content), mapping);
        assert_eq!(applied["flow.io.bytes"], 500);
        assert_eq!(applied["ipfix.packetTotalCount"], expected);
        assert_eq!(applied["source.port"], 80);
        assert_eq!((&applied["flow.sampling_rate"], &applied["flow.sampling_applied"]), (&json!(100), &json!(true)));
    }
    // Without a rate nothing is applied.
    let mapping = FlowMapping { sampling: SamplingUse::Apply, ..FlowMapping::default() };
    let unknown = one(record(&fields[1..2], &content[4..12]), mapping);
    assert_eq!((&unknown["flow.io.bytes"], &unknown["flow.sampling_applied"]), (&json!(5), &Value::Null));
}

/// Integers above 2^63 never wrap, whatever the setting, and are counted.
#[test]
fn large_integers() {
    for (u64_overflow, expected) in [
        (U64Overflow::Double, json!(1.844_674_407_370_955_2e19)),
        (U64Overflow::String, json!("18446744073709551615")),
        (U64Overflow::Saturate, json!(i64::MAX)),
    ] {
        let mapping = FlowMapping { u64_overflow, ..FlowMapping::default() };
        let content = [u64::MAX.to_be_bytes(), 3_u64.to_be_bytes()].concat();
        let mut job = FlowJob::with_mapping(record(&[(0, 1, 8)], &content), &mapping);
        let batches = job.run().expect("decoded");
        let mut bytes = Vec::new();
        records_json::objects(&batches[0], |object| bytes.push(object["attributes"]["flow.io.bytes"].clone()))
            .expect("readable");
        assert_eq!(bytes, [expected, json!(3)]);
        assert_eq!(job.counts(), FlowCounts { records: 2, overflowed_values: 1, ..FlowCounts::default() });
    }
}

/// Values that do not fit their type and elements that nobody knows are kept as bytes and counted.
#[test]
fn odd_values_are_counted() {
    let fields = [(0, 276, 1), (0, 30_000, 2), (0, 7, 3)];
    let mut job = FlowJob::new(record(&fields, &[9, 1, 2, 3, 4, 5]));
    let batches = job.run().expect("decoded");
    records_json::objects(&batches[0], |object| {
        assert_eq!(object["attributes"]["ipfix.30000"], json!({"base16": "0102"}));
        assert_eq!(object["attributes"]["source.port"], json!({"base16": "030405"}));
    })
    .expect("readable");
    let expected = FlowCounts { records: 1, opaque_values: 2, unknown_values: 1, ..FlowCounts::default() };
    assert_eq!(job.counts(), expected);
}

/// A batch with an options record and a flow of the same exporter.
fn options_and_flow() -> FlowBatch {
    let options = [1, 1, 0, 2, 0, 1, 0, 10, 0, 4, 0, 82, 0, 4];
    let sets = [
        set(3, &options),
        set(257, b"\0\0\0\x05eth0"),
        set(2, &template(256, &[(10, 4), (14, 4), (234, 4), (95, 4), (22, 4)])),
        set(256, &[0, 0, 0, 5, 0, 0, 0, 6, 0, 0, 0, 1, 0, 0, 0, 80, 0, 0, 0, 10]),
    ];
    let mut carried = Carried { system_init_unix_nano: Some(NOON - 1_000_000_000), ..Carried::default() };
    let _ = carried.interfaces.insert(5, "eth0".to_owned());
    let _ = carried.vrfs.insert(1, "blue".to_owned());
    let _ = carried.applications.insert(vec![0, 0, 0, 80], "web".to_owned());
    let _ = carried.rates.insert(([None; 4], 256), 512.0);
    told(batch(&[message(0, &sets.concat())]), carried)
}

/// What options data tells goes onto flows, not onto options records themselves, unless the settings say otherwise.
#[test]
fn options_data_is_emitted_and_used() {
    for (options, records, is_used) in
        [(OptionsData::Both, 2, true), (OptionsData::Emit, 2, false), (OptionsData::Use, 1, true)]
    {
        let mapping = FlowMapping { options, ..FlowMapping::default() };
        let mut job = FlowJob::with_mapping(options_and_flow(), &mapping);
        let mut all = Vec::new();
        for batch in job.run().expect("decoded") {
            records_json::objects(&batch, |object| all.push(object)).expect("readable");
        }
        assert_eq!(all.len(), records, "{options:?}");
        let left_out = u64::from(records == 1);
        assert_eq!((job.counts().options_left_out, job.unused_items()), (left_out, left_out));
        assert_eq!(job.items_in_batch(), Some(records as u64));
        let flow = &all[records - 1]["attributes"];
        let looked_up = [
            ("flow.in_if_name", json!("eth0")),
            ("flow.out_if_name", Value::Null),
            ("flow.ingress_vrf_name", json!("blue")),
            ("flow.application_name", json!("web")),
            ("flow.sampling_rate", json!(512)),
            ("flow.start", json!(NOON - 990_000_000)),
        ];
        for (name, value) in looked_up {
            assert_eq!(flow[name], if is_used { value } else { Value::Null }, "{name} under {options:?}");
        }
        assert!(records == 1 || all[0]["attributes"]["flow.in_if_name"].is_null());
    }
}

/// An element that the exporter has described (RFC 5610) has its name and type, in records and in lists.
#[test]
fn described_elements() {
    let described = |generation, name: &str| {
        let mut carried = Carried { generation, ..Carried::default() };
        let _ = carried.elements.insert((9, 30_000), (name.to_owned(), DataType::Unsigned32));
        carried
    };
    // A basicList of the element beside it.
    let list = [255, 0xf5, 0x30, 0, 4, 0, 0, 0, 9, 0, 0, 0, 2];
    let content = [&[0, 0, 0, 1][..], &list].concat();
    let batch = || record(&[(9, 30_000, 4), (0, 291, 13)], &content);
    let mut first = told(batch(), described(1, "load"));
    let unknown = one(batch(), FlowMapping::default());
    assert_eq!(unknown["ipfix.9.30000"], json!({"base16": "00000001"}));
    assert_eq!(unknown["ipfix.basicList"], json!([{"base16": "00000002"}]));
    // The same template under a description that has changed: another plan.
    let mut second = told(batch(), described(2, "usage"));
    second.sets[0].template = Arc::clone(&first.sets[0].template);
    second.sets[0].bytes = first.arena.len()..first.arena.len() + second.arena.len();
    first.arena.append(&mut second.arena);
    first.records += second.records;
    first.sets.append(&mut second.sets);
    let all = with(first, FlowMapping::default());
    assert_eq!(all[0]["attributes"]["ipfix.9.load"], 1);
    assert_eq!(all[0]["attributes"]["ipfix.basicList"], json!([2]));
    assert_eq!(all[1]["attributes"]["ipfix.9.usage"], 1);
}

/// Lists in lists, with the semantics of each on request.
#[test]
fn semantics_of_lists() {
    let sub = template(300, &[(7, 2), (291, 7)]);
    // allOf, then a group of template 300 with one record: a port, and a basicList (ordered) of a protocol in two bytes.
    let list = [3, 1, 44, 0, 13, 0, 80, 4, 0, 4, 0, 1, 6, 17];
    let sets = [set(2, &[template(256, &[(293, 14)]), sub].concat()), set(256, &list)].concat();
    let plain = one(batch(&[message(0, &sets)]), FlowMapping::default());
    let inner = json!({"ipfix.sourceTransportPort": 80, "ipfix.basicList": ["tcp", "udp"]});
    assert_eq!(plain["ipfix.subTemplateMultiList"], json!([inner]));
    let mapping = FlowMapping { list_semantics: true, ..FlowMapping::default() };
    let told = one(batch(&[message(0, &sets)]), mapping);
    let inner_list = json!({"_semantic": "ordered", "_values": ["tcp", "udp"]});
    let inner = json!({"ipfix.sourceTransportPort": 80, "ipfix.basicList": inner_list});
    assert_eq!(told["ipfix.subTemplateMultiList"], json!({"_semantic": "allOf", "_values": [inner]}));
}

/// Both directions as two records: ends and interfaces change places, reverse values have forward names, and what is of the
/// forward direction only is not on the reverse record.
#[test]
fn biflows_in_two() {
    let fields = [
        (0, 8, 4),
        (0, 12, 4),
        (0, 7, 2),
        (0, 11, 2),
        (0, 4, 1),
        (0, 10, 2),
        (0, 1, 4),
        (0, 2, 4),
        (0, 239, 1),
        (29_305, 1, 4),
        (0, 152, 8),
        (29_305, 152, 8),
    ];
    let content = [
        &[192, 0, 2, 7, 198, 51, 100, 9, 0x9c, 0x40, 1, 187, 6, 0, 3, 0, 0, 0, 10, 0, 0, 0, 2, 1, 0, 0, 0, 99][..],
        &1_796_039_990_000_u64.to_be_bytes(),
        &1_796_039_991_000_u64.to_be_bytes(),
    ]
    .concat();
    let whole = one(record(&fields, &content), FlowMapping::default());
    assert_eq!((&whole["flow.io.bytes"], &whole["ipfix.reverseOctetDeltaCount"]), (&json!(10), &json!(99)));
    let both = with(record(&fields, &content), FlowMapping { biflow: Biflow::Two, ..FlowMapping::default() });
    assert_eq!(both.len(), 2);
    let [forward, reverse] = [&both[0]["attributes"], &both[1]["attributes"]];
    for (record, expected) in [
        (
            forward,
            json!({
                "source.address": "192.0.2.7", "destination.address": "198.51.100.9", "source.port": 40000,
                "destination.port": 443, "flow.in_if": 3, "flow.io.bytes": 10, "flow.io.packets": 2,
                "ipfix.biflowDirection": named(239, 1), "flow.biflow_direction": "forward",
                "flow.start": 1_796_039_990_000_000_000_i64,
            }),
        ),
        (
            reverse,
            json!({
                "source.address": "198.51.100.9", "destination.address": "192.0.2.7", "source.port": 443,
                "destination.port": 40000, "flow.out_if": 3, "flow.io.bytes": 99, "ipfix.biflowDirection": named(239, 2),
                "flow.biflow_direction": "reverse", "flow.start": 1_796_039_991_000_000_000_i64,
                "network.transport": "tcp", "network.type": "ipv4",
            }),
        ),
    ] {
        for (name, value) in expected.as_object().expect("attributes") {
            assert_eq!(&record[name], value, "{name} of {record}");
        }
    }
    assert!(reverse["flow.io.packets"].is_null() && reverse["flow.in_if"].is_null());
    assert!(forward["ipfix.reverseOctetDeltaCount"].is_null());
}

/// Without addresses the version or the Ethernet type tells the family; without those nothing does.
#[test]
fn address_families() {
    let family = |fields: &[(u32, u16, u16)], content: &[u8]| {
        one(record(fields, content), FlowMapping::default())["network.type"].clone()
    };
    assert_eq!(family(&[(0, 28, 16)], &[0; 16]), "ipv6");
    assert_eq!(family(&[(0, 60, 1)], &[4]), "ipv4");
    assert_eq!(family(&[(0, 256, 2)], &[0x86, 0xdd]), "ipv6");
    assert_eq!(family(&[(0, 256, 2)], &[8, 6]), Value::Null);
    assert_eq!(family(&[(0, 60, 1), (0, 256, 2)], &[0, 8, 0]), "ipv4");
}

/// Exporters that write nanoseconds since 1970 where NTP times belong.
#[test]
fn times_that_are_no_ntp_times() {
    let content = u64::try_from(NOON).expect("late enough").to_be_bytes();
    let mapping = FlowMapping { time_encoding: TimeEncoding::UnixNano, ..FlowMapping::default() };
    assert_eq!(one(record(&[(0, 156, 8)], &content), mapping)["flow.start"], NOON);
}

/// Sets of two exporters and two domains, in turns.
fn lanes() -> FlowBatch {
    let mut session = Session::new(Transport::Udp, Limits::default());
    let (mut batch, mut admitted) = (FlowBatch::default(), Admitted::default());
    for number in 0..8_u8 {
        let sets = [set(2, &template(256, &[(7, 2)])), set(256, &[0, number])].concat();
        let datagram = message(u32::from(number / 4), &sets);
        admitted.clear();
        session.admit(&datagram, &mut admitted);
        let exporter = Some(std::net::SocketAddr::from(([192, 0, 2, number % 2], 4_739)));
        let _ = batch.push(&datagram, &mut admitted, FlowReceipt { time_unix_nano: NOON, exporter });
    }
    batch
}

/// The address of the exporter on the record or on its resource, never on both.
#[test]
fn exporters_as_resources() {
    let mapping = FlowMapping { exporter_at: ExporterAt::Resource, ..FlowMapping::default() };
    for (number, record) in with(lanes(), FlowMapping::default()).iter().enumerate() {
        assert_eq!(record["attributes"]["source.port"], number);
        assert_eq!(record["attributes"]["flow.sampler_address"], format!("192.0.2.{}", number % 2));
        assert_eq!(record["resource"], json!({}));
    }
    let mut seen = 0;
    for record in with(lanes(), mapping) {
        let number = record["attributes"]["source.port"].as_u64().expect("a port");
        assert!(record["attributes"]["flow.sampler_address"].is_null());
        assert_eq!(record["resource"], json!({"flow.sampler_address": format!("192.0.2.{}", number % 2)}));
        seen += 1;
    }
    assert_eq!(seen, 8);
}

/// A batch for each exporter and domain, in order within.
#[test]
fn a_batch_for_each_exporter() {
    let mapping = FlowMapping { per_exporter: true, ..FlowMapping::default() };
    let batches = FlowJob::with_mapping(lanes(), &mapping).run().expect("decoded");
    let ports: Vec<Vec<u64>> = batches
        .iter()
        .map(|batch| {
            let mut ports = Vec::new();
            let port = |object: Value| ports.push(object["attributes"]["source.port"].as_u64().expect("a port"));
            records_json::objects(batch, port).expect("readable");
            ports
        })
        .collect();
    assert_eq!(ports, [[0, 2], [1, 3], [4, 6], [5, 7]]);
    assert_eq!(FlowJob::new(lanes()).run().expect("decoded").len(), 1);
}

/// A set that waited for its template is decoded with it, under the message and receipt it came with.
#[test]
fn released_sets() {
    let mut session = Session::new(Transport::Udp, Limits::default());
    let mut admitted = Admitted::default();
    let early = message(0, &set(256, &[0, 80]));
    session.admit(&early, &mut admitted);
    let unknown = admitted.unknown_sets.remove(0);
    let info = admitted.messages[unknown.message];
    let content = early[unknown.range].to_vec();
    admitted.clear();
    session.admit(&message(0, &set(2, &template(256, &[(7, 2)]))), &mut admitted);
    admitted.clear();
    assert!(session.admit_set(&info, unknown.template_id, &content, &mut admitted));
    let mut batch = FlowBatch::default();
    let receipt = FlowReceipt { time_unix_nano: NOON - 5, exporter: None };
    let released = admitted.sets.remove(0);
    assert_eq!(batch.push_released(&content, &info, receipt, released), 1);
    let attributes = one(batch, FlowMapping::default());
    assert_eq!((&attributes["source.port"], &attributes["flow.time_received"]), (&json!(80), &json!(NOON - 5)));
}

/// A full batch is made in many steps, each of a part of its columns.
#[test]
fn finishing_is_divided() {
    let mut sets = set(2, &template(256, &[(7, 2), (11, 2)]));
    let content: Vec<u8> = (0u16..1_000).flat_map(|i| [i.to_be_bytes(), [0, 53]]).flatten().collect();
    sets.extend(set(256, &content));
    let mut job = FlowJob::new(batch(&[message(0, &sets)]));
    let mut steps = 0;
    while !matches!(job.step(Budget::default()).expect("decoded"), Step::Batch(_)) {
        steps += 1;
    }
    assert!(steps >= 1_000 / 64 + 3, "{steps}");
}

/// Every record of the input is in some batch or told as unused, whatever becomes of it.
#[test]
fn records_are_accounted_for() {
    let options = [1, 1, 0, 2, 0, 1, 0, 10, 0, 4, 0, 82, 0, 4];
    let flows = template(256, &[(7, 2), (11, 2)]);
    let content: Vec<u8> = (0u16..9_000).flat_map(|port| [port.to_be_bytes(), [0, 53]]).flatten().collect();
    let sets =
        [set(2, &flows), set(3, &options), set(257, b"\0\0\0\x05eth0\0\0\0\x06eth1"), set(256, &content)].concat();
    for (options, expected) in [(OptionsData::Both, (9_002, 0)), (OptionsData::Use, (9_000, 2))] {
        let mapping = FlowMapping { options, ..FlowMapping::default() };
        let mut job = FlowJob::with_mapping(batch(&[message(0, &sets)]), &mapping);
        let (mut items, mut batches) = (0, 0);
        loop {
            match job.step(job.budget()).expect("decoded") {
                Step::More => {}
                Step::Batch(_) => {
                    items += job.items_in_batch().expect("known");
                    batches += 1;
                }
                Step::End => break,
            }
        }
        assert_eq!((items, job.unused_items(), batches), (expected.0, expected.1, 2), "{options:?}");
    }
}
