//! Captures with a decode by other programs beside them, and what of that is to come out.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::elements::{Element, Elements, Numbers, big_endian};
use crate::repository;
use crate::schema::Schema;

/// Names a folder of further captures.
const VARIABLE: &str = "CATCHMENT_IPFIX_CAPTURES";

/// The fields of NetFlow v5 in their order, by their names in the expected decodes, as elements; 210 is padding.
const V5: [(&str, u16); 20] = [
    ("srcaddr", 8),
    ("dstaddr", 12),
    ("nexthop", 15),
    ("input", 10),
    ("output", 14),
    ("dPkts", 2),
    ("dOctets", 1),
    ("first", 22),
    ("last", 21),
    ("srcport", 7),
    ("dstport", 11),
    ("pad1", 210),
    ("tcp_flags", 6),
    ("prot", 4),
    ("tos", 5),
    ("src_as", 16),
    ("dst_as", 17),
    ("src_mask", 9),
    ("dst_mask", 13),
    ("pad2", 210),
];

/// The folder of the repository's own captures.
#[must_use]
pub fn own_captures() -> PathBuf {
    repository().join("crates/ipfix/tests/data")
}

/// The folder of further captures that the environment names. Without one, says that the test is skipped.
#[allow(clippy::print_stdout, reason = "cargo test shows what a test prints with --nocapture")]
#[must_use]
pub fn further_captures() -> Option<PathBuf> {
    let folder = std::env::var_os(VARIABLE).map(PathBuf::from);
    if folder.is_none() {
        println!("SKIPPED: {VARIABLE} names no folder of captures");
    }
    folder
}

/// Names of the captures of a folder that have an expected decode, sorted.
///
/// # Panics
/// If there are none.
#[must_use]
pub fn capture_names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut names: Vec<_> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".pcap")?.to_owned()))
        .collect();
    names.sort_unstable();
    assert!(!names.is_empty(), "no captures in {}", folder.display());
    names
}

/// What other programs made of a capture.
#[derive(Debug)]
pub struct Expected {
    packets: Vec<Value>,
}

/// What is to come out of a packet.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Its records in order.
    pub records: Vec<Map<String, Value>>,
    /// Ids of the templates that were missing, once for each set.
    pub unknown: Vec<u64>,
    /// A fault that ends the reading of the message.
    pub fault: bool,
    /// Further messages follow, which the other programs have not read.
    pub more: bool,
}

impl Expected {
    /// Reads the decode of a capture.
    ///
    /// # Panics
    /// If it is not there or of another form.
    #[must_use]
    pub fn load(folder: &Path, name: &str) -> Self {
        let plain = folder.join(format!("{name}.expected.json"));
        let bytes = std::fs::read(&plain).unwrap_or_else(|_| {
            let packed = folder.join(format!("{name}.expected.json.gz"));
            Command::new("gzip").arg("-dc").arg(packed).output().expect("gzip").stdout
        });
        let mut json: Value = serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let Value::Array(packets) = json["packets"].take() else { panic!("{name}: no packets") };
        Self { packets }
    }

    /// What is to come out of each packet under `schema`. `peers`: the records tell the address of the exporter.
    pub fn outcomes<'e>(
        &'e self,
        elements: &'e Elements,
        schema: Schema,
        peers: bool,
    ) -> impl Iterator<Item = Outcome> + 'e {
        self.packets.iter().map(move |packet| outcome(packet, elements, schema, peers))
    }
}

fn outcome(packet: &Value, elements: &Elements, schema: Schema, peers: bool) -> Outcome {
    let issues: Vec<_> = packet["issues"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let says = |words: &str| issues.iter().any(|issue| issue.contains(words));
    let mut outcome = Outcome {
        fault: says("rejected") || says("v5 count"),
        more: says("another message follows"),
        ..Outcome::default()
    };
    let head = Head::of(packet);
    for set in packet["sets"].as_array().expect("sets") {
        let kind = set["kind"].as_str().expect("a kind");
        if kind == "data_unknown_template" {
            outcome.unknown.push(set["id"].as_u64().expect("an id"));
        }
        for record in set["records"].as_array().into_iter().flatten() {
            let fields = record.as_array().expect("fields");
            let fields: Vec<_> = fields.iter().map(|field| Field::of(field, elements, &head)).collect();
            let mut attributes = schema.attributes(&fields, kind == "options_data", &head);
            let template = if head.version == 5 { json!(5) } else { set["id"].clone() };
            let _ = attributes.insert("flow.template_id".to_owned(), template);
            if peers {
                let (address, _) = packet["src"].as_str().and_then(|src| src.split_once('|')).expect("ADDRESS|PORT");
                let _ = attributes.insert("flow.sampler_address".to_owned(), address.into());
            }
            outcome.records.push(attributes);
        }
    }
    outcome
}

/// What the header of a message says.
#[derive(Debug)]
pub struct Head {
    /// 5, 9 or 10.
    pub version: u64,
    /// Time of export in nanoseconds since 1970.
    pub exported: i64,
    /// Uptime of the exporter in milliseconds.
    pub uptime: Option<i64>,
    /// Sequence number.
    pub sequence: u64,
    /// Observation domain.
    pub domain: u64,
    /// Sampling interval of NetFlow v5, without the mode in its upper two bits.
    pub sampling: Option<u16>,
}

impl Head {
    fn of(packet: &Value) -> Self {
        let number = |key: &str| packet["header"][key].as_u64();
        let some = |keys: [&str; 2]| keys.iter().find_map(|key| number(key)).unwrap_or_default();
        let seconds = some(["export_time", "unix_secs"]).cast_signed();
        let engine = some(["engine_type", ""]) << 8 | some(["engine_id", ""]);
        Self {
            version: packet["version"].as_u64().expect("a version"),
            exported: seconds * 1_000_000_000 + some(["unix_nsecs", ""]).cast_signed(),
            uptime: number("sys_uptime_ms").map(u64::cast_signed),
            sequence: some(["sequence", ""]),
            sampling: number("sampling_interval_raw").and_then(|raw| u16::try_from(raw & 0x3fff).ok()),
            domain: number("observation_domain").or_else(|| number("source_id")).unwrap_or(engine),
        }
    }
}

/// A field of an expected record.
#[derive(Debug)]
pub struct Field {
    /// What it is.
    pub element: Element,
    /// Its value as printed; `None` where it has none.
    pub value: Option<Value>,
    /// Its value as a number, for the times that are made of several fields.
    pub number: Option<i64>,
    /// The records of a subTemplateMultiList.
    pub list: Option<Vec<Vec<Field>>>,
}

impl Field {
    fn of(json: &Value, elements: &Elements, head: &Head) -> Self {
        let scope = json["scope"] == true;
        let enterprise = u32::try_from(json["pen"].as_u64().unwrap_or_default()).expect("32 bits");
        let id = match json["field"].as_str() {
            Some(name) => V5.iter().find(|(known, _)| *known == name).expect("a field of v5").1,
            None => u16::try_from(json["ie"].as_u64().expect("a number")).expect("16 bits"),
        };
        let numbers = match head.version {
            10 => Numbers::Ipfix,
            9 if scope && (1..=5).contains(&id) => Numbers::NetflowV9Scope,
            _ => Numbers::NetflowV9,
        };
        let element = elements.of(id, enterprise, scope, numbers);
        let bytes = unhex(json["hex"].as_str().expect("hex"));
        let variable = json["varlen"] == true;
        let value = element.value(&bytes, variable, head.exported / 1_000_000_000);
        let records = |group: &Value| group["records"].as_array().cloned().expect("records");
        let fields = |record: &Value| {
            record.as_array().expect("fields").iter().map(|field| Self::of(field, elements, head)).collect()
        };
        let list = json["list"]["groups"].as_array().filter(|_| element.is_list());
        let list = list.map(|groups| groups.iter().flat_map(records).map(|record| fields(&record)).collect());
        let number = (bytes.len() <= 8).then(|| big_endian(&bytes).cast_signed());
        Self { element, value, number, list }
    }
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).expect("hex");
    (0..text.len()).step_by(2).map(digits).collect()
}
