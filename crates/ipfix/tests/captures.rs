//! Real exports against the decode of two other programs.

mod common;

use std::fs;
use std::path::Path;

use catchment_ipfix::{
    Admitted, DataSet, Kind, Limits, List, ListSemantic, MessageInfo, ProblemKind, Record, Session, SubTemplates,
    Template, Transport, Value, Version, check_framing, decode, stream_message_length,
};
use common::{Sessions, check_consistent, hex};
use serde_json::Value as Json;

/// Every capture of the repository decodes as expected.
#[test]
fn own_captures() {
    let folder = common::own_folder();
    for case in common::cases(&folder) {
        compare_case(&folder, &case);
    }
}

/// So do the captures of the folder that the environment names.
#[test]
fn further_captures() {
    let Some(folder) = common::further_folder() else { return };
    let cases = common::cases(&folder);
    for case in &cases {
        compare_case(&folder, case);
    }
}

fn compare_case(folder: &Path, case: &str) {
    let datagrams = common::datagrams(folder, case);
    let expected = common::expected(folder, case);
    let packets = expected["packets"].as_array().expect("packets");
    assert_eq!(datagrams.len(), packets.len(), "{case}");
    let mut sessions = Sessions::default();
    let mut admitted = Admitted::default();
    for (datagram, packet) in datagrams.iter().zip(packets) {
        let place = format!("{case} frame {}", packet["frame"]);
        let session = sessions.of(datagram);
        // The other program looks only at the first message of a datagram.
        let (first, rest) = datagram.payload.split_at(first_message_length(packet));
        admitted.clear();
        session.admit(first, &mut admitted);
        check_consistent(first, &admitted);
        compare_packet(&place, first, packet, &admitted, session);
        if !rest.is_empty() {
            admitted.clear();
            session.admit(&datagram.payload, &mut admitted);
            check_consistent(&datagram.payload, &admitted);
            assert_eq!((admitted.messages.len(), admitted.counters.trailing_bytes), (3, 0), "{place}");
        }
    }
}

/// Length of the first message where another one follows, else of the datagram.
fn first_message_length(packet: &Json) -> usize {
    let issues = packet["issues"].as_array().into_iter().flatten();
    let follows = issues.filter_map(Json::as_str).any(|issue| issue.contains("another message follows"));
    let length = if follows { &packet["header"]["length"] } else { &packet["bytes"] };
    usize::try_from(number(length)).expect("a length")
}

fn number(json: &Json) -> u64 {
    json.as_u64().unwrap_or_default()
}

fn compare_packet(place: &str, datagram: &[u8], packet: &Json, admitted: &Admitted, session: &Session) {
    compare_header(place, packet, admitted.messages.first());
    // What follows a fault is discarded here; the other program goes on with the next set.
    let fault = admitted.problems.iter().find(|problem| problem.discarded).map(|problem| problem.offset);
    let sets: Vec<&Json> = packet["sets"]
        .as_array()
        .expect("sets")
        .iter()
        .filter(|set| fault.is_none_or(|fault| number(&set["off"]) < fault as u64))
        .collect();
    let of_kind = |kinds: &[&str]| {
        let chosen = sets.iter().filter(|set| kinds.contains(&set["kind"].as_str().expect("a kind")));
        chosen.copied().collect::<Vec<&Json>>()
    };

    let data = of_kind(&["data", "options_data", "v5"]);
    let data: Vec<&Json> =
        data.into_iter().filter(|set| !set["records"].as_array().expect("records").is_empty()).collect();
    assert_eq!(admitted.sets.len(), data.len(), "{place}: data sets");
    for (set, expected) in admitted.sets.iter().zip(data) {
        compare_set(place, datagram, set, &admitted.messages[set.message], expected);
    }

    let unknown = of_kind(&["data_unknown_template"]);
    assert_eq!(admitted.unknown_sets.len(), unknown.len(), "{place}: unknown templates");
    for (set, expected) in admitted.unknown_sets.iter().zip(unknown) {
        assert_eq!(u64::from(set.template_id), number(&expected["id"]), "{place}");
        assert_eq!(set.range.len() as u64, number(&expected["bytes"]), "{place}");
    }

    let template_sets = of_kind(&["template", "options_template"]);
    let templates: Vec<&Json> = template_sets
        .iter()
        .flat_map(|set| set["templates"].as_array().expect("templates"))
        .filter(|template| template["fields"].is_array())
        .collect();
    let counters = &admitted.counters;
    let learned = counters.templates_new + counters.templates_refreshed + counters.templates_replaced;
    assert_eq!(learned, templates.len() as u64, "{place}: templates");
    for expected in templates {
        let version = admitted.messages[0].version;
        let same = |&(of, _, template): &(Version, u32, &std::sync::Arc<Template>)| {
            of == version && u64::from(template.id()) == number(&expected["id"]) && same_fields(template, expected)
        };
        assert!(session.templates().any(|known| same(&known)), "{place}: template {}", expected["id"]);
    }
}

fn compare_header(place: &str, packet: &Json, message: Option<&MessageInfo>) {
    let rejected = packet["sets"].as_array().is_some_and(Vec::is_empty) && message.is_none();
    if rejected {
        let issues = packet["issues"].as_array().expect("a reason for rejecting the message");
        assert!(issues.iter().any(|issue| issue.as_str().is_some_and(|text| text.contains("rejected"))), "{place}");
        return;
    }
    let message = message.expect("a message");
    let header = &packet["header"];
    let seconds = number(&header["export_time"]) + number(&header["unix_secs"]);
    let nanos = seconds * 1_000_000_000 + number(&header["unix_nsecs"]);
    assert_eq!(message.export_time_unix_nano, nanos as i64, "{place}");
    assert_eq!(u64::from(message.sequence), number(&header["sequence"]), "{place}");
    assert_eq!(message.uptime_ms.map(u64::from), header["sys_uptime_ms"].as_u64(), "{place}");
    assert_eq!(message.header_count.map(u64::from), header["count"].as_u64(), "{place}");
    assert_eq!(message.sampling.map(u64::from), header["sampling_interval_raw"].as_u64(), "{place}");
    let domain = match message.version {
        Version::Ipfix => number(&header["observation_domain"]),
        Version::V9 => number(&header["source_id"]),
        Version::V5 => number(&header["engine_type"]) << 8 | number(&header["engine_id"]),
    };
    assert_eq!(u64::from(message.domain), domain, "{place}");
}

fn same_fields(template: &Template, expected: &Json) -> bool {
    let fields = expected["fields"].as_array().expect("fields");
    let scope = number(&expected["scope_field_count"]);
    template.scope_field_count() as u64 == scope
        && template.fields().len() == fields.len()
        && template.fields().iter().zip(fields).all(|(field, expected)| {
            u64::from(field.id) == number(&expected["ie"])
                && u64::from(field.length) == number(&expected["len"])
                && u64::from(field.enterprise) == number(&expected["pen"])
        })
}

fn compare_set(place: &str, datagram: &[u8], set: &DataSet, message: &MessageInfo, expected: &Json) {
    let place = format!("{place} set at {}", set.range.start);
    let kind = match expected["kind"].as_str() {
        Some("options_data") => Kind::Options,
        _ => Kind::Flow,
    };
    assert_eq!(set.kind(), kind, "{place}");
    if message.version != Version::V5 {
        assert_eq!(u64::from(set.template.id()), number(&expected["id"]), "{place}");
        assert_eq!((set.range.len() + set.padding + 4) as u64, number(&expected["length"]), "{place}");
        assert_eq!(set.padding as u64, number(&expected["padding"]), "{place}");
    }
    let records = expected["records"].as_array().expect("records");
    assert_eq!(set.records, records.len(), "{place}");
    for (record, expected) in set.records(datagram).zip(records) {
        compare_record(&place, &record, &set.sub_templates, message, expected);
    }
}

fn compare_record(
    place: &str,
    record: &Record<'_, '_>,
    templates: &SubTemplates,
    message: &MessageInfo,
    expected: &Json,
) {
    let expected = expected.as_array().expect("fields");
    assert_eq!(record.template().fields().len(), expected.len(), "{place}");
    let mut seen = 0;
    for ((field, bytes), expected) in record.fields().zip(expected) {
        seen += 1;
        assert_eq!(hex(bytes), expected["hex"].as_str().expect("hex"), "{place} {field:?}");
        if message.version == Version::V5 {
            continue;
        }
        assert_eq!(u64::from(field.id), number(&expected["ie"]), "{place}");
        assert_eq!(u64::from(field.enterprise), number(&expected["pen"]), "{place}");
        assert_eq!(field.scope, expected["scope"] == true, "{place} {field:?}");
        assert_eq!(field.is_variable(), expected["varlen"] == true, "{place} {field:?}");
        // The other program takes scope types of v9 for elements and number 0 for one.
        let other_name = expected["name"].as_str().filter(|name| *name != "Reserved");
        if let Some(name) = other_name.filter(|_| !(field.scope && message.version == Version::V9)) {
            assert_eq!(field.name().as_deref(), Some(name), "{place}");
        }
        if expected["list"].is_object() {
            let Value::List(List::SubTemplateMulti(list)) = decode(field, bytes, &message.context()) else {
                panic!("{place}: not a subTemplateMultiList: {}", hex(bytes));
            };
            compare_list(place, &list, templates, message, &expected["list"]);
        }
    }
    assert_eq!(seen, expected.len(), "{place}");
}

fn compare_list(
    place: &str,
    list: &catchment_ipfix::SubTemplateMultiList<'_>,
    templates: &SubTemplates,
    message: &MessageInfo,
    expected: &Json,
) {
    let semantic: ListSemantic = List::SubTemplateMulti(*list).semantic();
    assert_eq!(Some(semantic.as_str()), expected["semantic"].as_str(), "{place}");
    let groups = expected["groups"].as_array().expect("groups");
    assert_eq!(list.groups().count(), groups.len(), "{place}");
    for (group, expected) in list.groups().zip(groups) {
        assert_eq!(u64::from(group.template_id), number(&expected["template"]), "{place}");
        let records: Vec<Record<'_, '_>> = group.records(templates).expect("a known template").collect();
        let expected = expected["records"].as_array().expect("records");
        assert_eq!(records.len(), expected.len(), "{place}");
        for (record, expected) in records.iter().zip(expected) {
            compare_record(place, record, templates, message, expected);
        }
    }
}

/// A stream cut in two at any place is framed into the same messages.
#[test]
fn stream_cut_anywhere() {
    let case = "local-softflowd-ipfix-tcp-stream";
    let stream = fs::read(common::own_folder().join(format!("{case}.ipfix"))).expect("the stream");
    let messages: Vec<Vec<u8>> =
        common::datagrams(&common::own_folder(), case).into_iter().map(|datagram| datagram.payload).collect();
    assert_eq!(messages.concat(), stream);
    for cut in 0..=stream.len() {
        let (mut buffer, mut framed) = (Vec::new(), Vec::new());
        for part in [&stream[..cut], &stream[cut..]] {
            buffer.extend_from_slice(part);
            while let Some(length) = stream_message_length(&buffer).expect("framing") {
                if buffer.len() < length {
                    break;
                }
                framed.push(buffer.drain(..length).collect::<Vec<u8>>());
            }
        }
        assert!(framed == messages && buffer.is_empty(), "cut at {cut}");
    }
}

/// The stream and the datagrams of it give the same records.
#[test]
fn stream_messages() {
    let case = "local-softflowd-ipfix-tcp-stream";
    let stream = fs::read(common::own_folder().join(format!("{case}.ipfix"))).expect("the stream");
    let mut session = Session::new(Transport::Stream, Limits::default());
    let mut admitted = Admitted::default();
    let mut rest = &stream[..];
    while let Some(length) = stream_message_length(rest).expect("framing") {
        let (message, following) = rest.split_at(length);
        session.admit(message, &mut admitted);
        rest = following;
    }
    let counters = &admitted.counters;
    assert_eq!((counters.messages, counters.flow_records, counters.options_records), (4, 88, 1));
    assert_eq!(counters.problem(ProblemKind::TemplateRedefined), 0);
}

/// The telemetry vectors by the plain rules of IPFIX: the counters of all good datagrams come out raw, in order, and
/// the framing of the bad ones is refused.
#[test]
fn sonic_vectors() {
    let folder = common::own_folder().join("sonic");
    let mut cases = 0;
    for entry in fs::read_dir(&folder).expect("vectors") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let Some(case) = name.strip_suffix(".session.json") else { continue };
        cases += 1;
        let session: Json = serde_json::from_slice(&fs::read(&path).expect("a case")).expect("valid JSON");
        let points = session["expected_points_in_order"].as_array().expect("points");
        let expected: Vec<u64> = points
            .iter()
            .map(|point| point["value"].as_str().and_then(|text| text.parse().ok()).expect("a value"))
            .collect();
        assert_eq!(sonic_counters(&folder, case, &session), expected, "{case}");
    }
    assert_eq!(cases, 6);
}

fn sonic_counters(folder: &Path, case: &str, session_json: &Json) -> Vec<u64> {
    let mut session = Session::new(Transport::Stream, Limits::default());
    let mut admitted = Admitted::default();
    let config = fs::read(folder.join(format!("{case}.session_config.ipfix"))).expect("templates");
    session.admit(&config, &mut admitted);
    assert!(admitted.problems.is_empty() && admitted.counters.templates_new > 0, "{case}");
    let mut counters = Vec::new();
    for file in session_json["datagram_files"].as_array().expect("datagrams") {
        let datagram = fs::read(folder.join(file.as_str().expect("a name"))).expect("a datagram");
        admitted.clear();
        session.admit(&datagram, &mut admitted);
        check_consistent(&datagram, &admitted);
        let framed = check_framing(&datagram);
        let refused =
            admitted.problems.iter().any(|problem| problem.discarded || problem.kind == ProblemKind::TrailingBytes);
        assert_eq!(framed.is_err(), refused, "{case} {file}");
        assert_eq!(admitted.counters.lost_records, 0, "{case}: a gap that is none");
        if framed.is_err() {
            continue;
        }
        for set in &admitted.sets {
            for record in set.records(&datagram) {
                let values = record.fields().filter(|(field, _)| field.enterprise != 0);
                counters.extend(values.map(|(_, bytes)| bytes.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte))));
            }
        }
    }
    counters
}
