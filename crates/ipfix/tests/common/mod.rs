//! Capture files and their expected decode.
#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use catchment_capture::{Item, Reader};
use catchment_ipfix::{Admitted, Counters, Kind, Limits, Records, Session, SubTemplates, Transport, Value, decode};
use catchment_ipfix::{DecodeContext, FieldSpec, List, flow_times};
use serde_json::Value as Json;

/// A datagram of a capture, with the transport session it belongs to.
pub struct Datagram {
    pub session: String,
    pub payload: Vec<u8>,
}

/// The captures that are part of this repository.
pub fn own_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// The folder of further captures, if the environment names one; says so if not.
pub fn further_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("CATCHMENT_IPFIX_CAPTURES").map(PathBuf::from);
    if folder.is_none() {
        // Written past the test harness, which would keep it to itself.
        let note = "SKIPPED: CATCHMENT_IPFIX_CAPTURES is not set, further captures are not tried";
        writeln!(std::io::stderr(), "{note}").expect("standard error");
    }
    folder
}

/// Names of all cases of a folder, in order.
pub fn cases(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder of captures");
    let names = entries.filter_map(|entry| entry.expect("an entry").file_name().into_string().ok());
    let mut cases: Vec<String> = names.filter_map(|name| name.strip_suffix(".pcap").map(str::to_owned)).collect();
    cases.sort();
    assert!(!cases.is_empty(), "no captures in {}", folder.display());
    cases
}

pub fn datagrams(folder: &Path, case: &str) -> Vec<Datagram> {
    let reader = Reader::open(folder.join(format!("{case}.pcap"))).expect("a capture file");
    let packet = |item| match item {
        Item::Packet(packet) => {
            Datagram { session: format!("{:?} {:?}", packet.source, packet.destination), payload: packet.payload }
        }
        other => panic!("{case}: not a datagram: {other:?}"),
    };
    reader.map(|item| packet(item.expect("a readable capture"))).collect()
}

pub fn expected(folder: &Path, case: &str) -> Json {
    let plain = folder.join(format!("{case}.expected.json"));
    let text = if plain.exists() {
        fs::read(&plain).expect("the expected decode")
    } else {
        let packed = folder.join(format!("{case}.expected.json.gz"));
        let output = Command::new("gzip").arg("-dc").arg(&packed).output().expect("gzip");
        assert!(output.status.success(), "{}", packed.display());
        output.stdout
    };
    serde_json::from_slice(&text).expect("valid JSON")
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One session for each pair of addresses, as a receiver would keep them.
#[derive(Default)]
pub struct Sessions(HashMap<String, Session>);

impl Sessions {
    pub fn of(&mut self, datagram: &Datagram) -> &mut Session {
        self.0.entry(datagram.session.clone()).or_insert_with(|| Session::new(Transport::Udp, Limits::default()))
    }
}

/// Checks that the counts agree with each other and with what was given out, and decodes everything.
pub fn check_consistent(datagram: &[u8], admitted: &Admitted) {
    let counters = &admitted.counters;
    assert_eq!(counted_bytes(counters), counters.bytes, "{counters:?}");
    assert_eq!(counters.bytes, datagram.len() as u64);
    let (mut flows, mut options, mut bytes) = (0, 0, 0);
    for set in &admitted.sets {
        let message = &admitted.messages[set.message];
        let records = decode_all(set.records(datagram), &set.sub_templates, &message.context());
        assert_eq!(records, set.records);
        assert!(message.offset < set.range.start && set.range.end <= message.offset + message.length);
        bytes += set.range.len();
        match set.kind() {
            Kind::Flow => flows += records,
            Kind::Options => options += records,
        }
    }
    assert_eq!((flows as u64, options as u64), (counters.flow_records, counters.options_records));
    assert_eq!(bytes as u64, counters.record_bytes);
    assert_eq!(admitted.messages.len() as u64, counters.messages);
    assert_eq!(admitted.unknown_sets.len() as u64, counters.unknown_template_sets);
    let incomplete = admitted.messages.iter().filter(|message| !message.complete).count();
    assert_eq!(incomplete as u64, counters.incomplete_messages);
    let discarding = admitted.problems.iter().filter(|problem| problem.discarded).count() as u64;
    let total: u64 = counters.problems.iter().sum();
    if total == admitted.problems.len() as u64 {
        assert_eq!(discarding, counters.incomplete_messages + counters.rejected_messages);
    }
}

/// Sum of all the counters that divide the bytes among them.
fn counted_bytes(counters: &Counters) -> u64 {
    counters.header_bytes
        + counters.template_bytes
        + counters.record_bytes
        + counters.padding_bytes
        + counters.skipped_bytes
        + counters.discarded_bytes
        + counters.trailing_bytes
}

fn decode_all(records: Records<'_, '_>, templates: &SubTemplates, context: &DecodeContext) -> usize {
    let mut count = 0;
    for record in records {
        count += 1;
        let fields = record.fields().inspect(|(field, bytes)| decode_value(field, bytes, templates, context));
        assert_eq!(fields.count(), record.template().fields().len());
        let _ = flow_times(&record, context);
    }
    count
}

fn decode_value(field: &FieldSpec, bytes: &[u8], templates: &SubTemplates, context: &DecodeContext) {
    let nested = context.nested();
    let groups = match decode(field, bytes, context) {
        Value::List(List::Basic(list)) => {
            for element in list.elements() {
                decode_value(&list.field(), element, templates, &nested);
            }
            return;
        }
        Value::List(List::SubTemplate(list)) => vec![list.group()],
        Value::List(List::SubTemplateMulti(list)) => list.groups().collect(),
        _ => return,
    };
    for group in groups {
        if let Some(records) = group.records(templates) {
            decode_all(records, templates, &nested);
        }
    }
}
