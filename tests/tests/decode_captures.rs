//! `catchment decode ipfix` on every capture: each element of each record against the decode of other programs.

use std::collections::BTreeMap;
use std::path::Path;

use catchment_tests::expected::{Expected, Outcome, capture_names, further_captures, own_captures};
use catchment_tests::{Elements, Ended, Schema, catchment, protocol, repository, run};
use serde_json::{Map, Value};

fn decode(file: &Path, schema: Schema) -> Ended {
    run(catchment().args(["decode", "ipfix"]).arg(file).args(schema.options()))
}

/// Every capture of a folder, and where it is there the same as a stream.
fn compare_folder(folder: &Path, schema: Schema) {
    let elements = Elements::load();
    for name in capture_names(folder) {
        let expected = Expected::load(folder, &name);
        let capture = folder.join(format!("{name}.pcap"));
        compare(&format!("{name}.pcap"), &decode(&capture, schema), expected.outcomes(&elements, schema, true), schema);
        let stream = folder.join(format!("{name}.ipfix"));
        if stream.exists() {
            let outcomes = expected.outcomes(&elements, schema, false);
            compare(&format!("{name}.ipfix"), &decode(&stream, schema), outcomes, schema);
        }
    }
}

/// The records of a run, taken one by one.
struct Records {
    all: Vec<Map<String, Value>>,
    next: usize,
    /// Records of data that came before its template and is decoded once that is there.
    late: Vec<u64>,
}

/// What tells records of one set from those of another.
fn place(attributes: &Map<String, Value>) -> [Option<&Value>; 3] {
    ["flow.template_id", "flow.sequence_num", "flow.time_exported"].map(|key| attributes.get(key))
}

fn template(attributes: &Map<String, Value>) -> u64 {
    attributes.get("flow.template_id").and_then(Value::as_u64).expect("each record has a template")
}

impl Records {
    /// The next record for `expected`. Before it there may be others for `missing` templates, or any if `more`.
    fn next_for(&mut self, expected: &Map<String, Value>, missing: &[u64], more: bool) -> Option<Map<String, Value>> {
        loop {
            let record = self.all.get(self.next)?.clone();
            self.next += 1;
            let skipped = more || missing.contains(&template(&record));
            if !skipped || place(&record) == place(expected) {
                return Some(record);
            }
            self.late.push(template(&record));
        }
    }
}

fn compare(file: &str, ended: &Ended, outcomes: impl Iterator<Item = Outcome>, schema: Schema) {
    assert!(matches!(ended.code, Some(0 | 1)), "{file}: {:?} {}", ended.code, ended.stderr);
    assert_eq!(ended.code == Some(1), !ended.stderr.is_empty(), "{file}: {}", ended.stderr);
    let attributes = |line: &str| {
        let record: Value = serde_json::from_str(line).expect("each line is JSON");
        assert_eq!(record["body"], Value::Null, "{file}: {record}");
        record["attributes"].as_object().cloned().expect("attributes")
    };
    let mut records = Records { all: ended.stdout.lines().map(attributes).collect(), next: 0, late: Vec::new() };
    let (mut missing, mut more, mut fault) = (Vec::new(), false, false);
    for (number, outcome) in outcomes.enumerate() {
        for (at, expected) in outcome.records.iter().enumerate() {
            let Some(found) = records.next_for(expected, &missing, more) else {
                panic!("{file}: {} records, none for record {at} of packet {number}", records.all.len())
            };
            if let Some(difference) = difference(&found, expected, schema) {
                panic!("{file}, packet {number}, record {at}: {difference} in {found:#?}");
            }
        }
        // What follows a fault in its message is not read.
        if !outcome.fault {
            missing.extend(outcome.unknown);
        }
        more |= outcome.more;
        fault |= outcome.fault;
    }
    let rest = &records.all[records.next..];
    let unexpected = rest.iter().find(|record| !more && !missing.contains(&template(record)));
    assert!(unexpected.is_none(), "{file}: nothing is told of {unexpected:?}");
    records.late.extend(rest.iter().map(template));
    for id in &missing {
        let told = ended.stderr.contains(&format!("template {id}"));
        assert!(told || records.late.contains(id), "{file}: nothing of template {id} in {}", ended.stderr);
    }
    assert!(!fault || ended.code == Some(1), "{file}: the fault is not told");
}

/// What of a record is not as expected: an attribute that is missing or wrong, or one that is made of an element which
/// nobody sent.
fn difference(found: &Map<String, Value>, expected: &Map<String, Value>, schema: Schema) -> Option<String> {
    let value_of = |name: &str| found.get(name).unwrap_or(&Value::Null);
    let wrong = expected.iter().find(|(name, value)| value_of(name) != *value);
    let made_up = || {
        found
            .keys()
            .find(|name| schema.is_of_an_element(name) && !expected.contains_key(*name))
            .map(|name| (name, &Value::Null))
    };
    let (name, value) = wrong.or_else(made_up)?;
    Some(format!("{name} is {} and not {value}", value_of(name)))
}

/// A record without one of its elements, with a wrong one, and with one too many are all noticed.
#[test]
fn differences_are_noticed() {
    let elements = Elements::load();
    let expected = Expected::load(&own_captures(), "local-softflowd-ipfix-nano");
    for record in expected.outcomes(&elements, Schema::Collector, true).flat_map(|outcome| outcome.records) {
        let differs = |found: &Map<String, Value>| difference(found, &record, Schema::Collector).is_some();
        assert!(!differs(&record));
        for name in record.iter().filter(|(_, value)| !value.is_null()).map(|(name, _)| name) {
            let mut other = record.clone();
            let _ = other.insert(name.clone(), "wrong".into());
            assert!(differs(&other), "{name}");
            let _ = other.remove(name);
            assert!(differs(&other), "{name}");
        }
        let mut other = record.clone();
        let _ = other.insert("ipfix.flowId".to_owned(), 1.into());
        assert!(differs(&other));
    }
}

/// The repository's own captures.
#[test]
fn own_captures_as_they_are_printed() {
    compare_folder(&own_captures(), Schema::Collector);
}

/// The captures of the folder that the environment names.
#[test]
fn further_captures_as_they_are_printed() {
    if let Some(folder) = further_captures() {
        compare_folder(&folder, Schema::Collector);
    }
}

/// The same under the names of the registry.
#[test]
fn own_captures_under_registered_names() {
    compare_folder(&own_captures(), Schema::Ipfix);
}

/// The same for the other folder.
#[test]
fn further_captures_under_registered_names() {
    if let Some(folder) = further_captures() {
        compare_folder(&folder, Schema::Ipfix);
    }
}

/// Names of attributes whose values have names, without what stands before them, and the registry of these.
const NAMED: [(&str, &str); 19] = [
    ("mplsTopLabelType", "ipfix-mpls-label-type"),
    ("classificationEngineId", "classification-engine-ids"),
    ("flowEndReason", "ipfix-flow-end-reason"),
    ("natOriginatingAddressRealm", "ipfix-nat-originating-address-realm"),
    ("natEvent", "ipfix-nat-event-type"),
    ("firewallEvent", "ipfix-firewall-event"),
    ("biflowDirection", "ipfix-biflow-direction"),
    ("observationPointType", "ipfix-observation-point-type"),
    ("anonymizationTechnique", "ipfix-anonymization-technique"),
    ("natType", "ipfix-nat-type"),
    ("selectorAlgorithm", "ipfix-flowselectoralgorithm"),
    ("informationElementDataType", "ipfix-information-element-data-types"),
    ("informationElementSemantics", "ipfix-information-element-semantics"),
    ("informationElementUnits", "ipfix-information-element-units"),
    ("valueDistributionMethod", "ipfix-value-distribution-method"),
    ("dataLinkFrameType", "ipfix-data-link-frame-type"),
    ("flowSelectorAlgorithm", "ipfix-flowselectoralgorithm"),
    ("natQuotaExceededEvent", "ipfix-nat-quota-exceeded-event"),
    ("natThresholdEvent", "ipfix-nat-threshold-event"),
];

/// Names of values, by registry.
fn registered_names() -> BTreeMap<(String, i64), String> {
    let file = repository().join("crates/ipfix/tables/iana-ipfix-subregistries.csv");
    let text = std::fs::read_to_string(file).expect("the table");
    let rows = text.lines().filter_map(|line| {
        let mut columns = line.splitn(3, ',');
        let (registry, value, name) = (columns.next()?, columns.next()?, columns.next()?);
        let value = match (value.strip_prefix("0x"), value.strip_suffix('b')) {
            (Some(digits), _) => i64::from_str_radix(digits, 16).ok()?,
            (None, Some(digits)) => i64::from_str_radix(digits, 2).ok()?,
            (None, None) => value.parse().ok()?,
        };
        Some(((registry.to_owned(), value), name.to_owned()))
    });
    rows.filter(|(_, name)| !["Reserved", "Unassigned"].contains(&name.as_str())).collect()
}

/// The name of a value of an attribute, where it is to have one.
fn name_of(attribute: &str, value: i64, names: &BTreeMap<(String, i64), String>) -> Option<Value> {
    let local = attribute.rsplit('.').next().unwrap_or(attribute);
    let reversed = local.strip_prefix("reverse").map(|rest| rest[..1].to_lowercase() + &rest[1..]);
    let element = reversed.as_deref().unwrap_or(local);
    match element {
        // Described in the text of the registry alone.
        "flowDirection" => ["ingress", "egress"].get(usize::try_from(value).ok()?).map(|name| (*name).into()),
        "samplingAlgorithm" | "flowSamplerMode" | "samplerMode" => match value {
            1 => Some("deterministic".into()),
            2 => Some("random".into()),
            _ => None,
        },
        "protocolIdentifier" => match protocol(Some(value)) {
            Value::String(keyword) if keyword.parse::<u8>().is_ok() => None,
            keyword => Some(keyword),
        },
        // The two upper bits say what happened, the whole says why. Names of the Collector keep its types.
        "forwardingStatus" => {
            let what = names.get(&("forwarding-status".to_owned(), value >> 6))?;
            let why = names.get(&(format!("forwarding-status-{:02b}b", value >> 6), value));
            Some(why.map_or_else(|| what.clone(), |why| format!("{what}: {why}")).into())
        }
        // The registry's own spelling differs from value to value.
        "flowEndReason" if value == 3 => Some("end of flow detected".into()),
        "natOriginatingAddressRealm" if value == 2 => Some("Public".into()),
        _ => {
            let (_, registry) = NAMED.iter().find(|(name, _)| *name == element)?;
            names.get(&((*registry).to_owned(), value)).map(|name| name.as_str().into())
        }
    }
}

/// Puts names in the place of numbers; gives how many.
fn put_names(values: &mut Map<String, Value>, names: &BTreeMap<(String, i64), String>) -> usize {
    let mut count = 0;
    for (attribute, value) in values {
        let all = match value {
            Value::Array(values) => values.iter_mut().collect(),
            single => vec![single],
        };
        for value in all {
            if let Value::Object(inner) = value {
                count += put_names(inner, names);
            } else if let Some(name) = value.as_i64().and_then(|number| name_of(attribute, number, names)) {
                *value = name;
                count += 1;
            }
        }
    }
    count
}

/// What is printed with names is what is printed with numbers, but for the names of the registries.
fn compare_names(folder: &Path) -> usize {
    let names = registered_names();
    let mut count = 0;
    for name in capture_names(folder) {
        let file = folder.join(format!("{name}.pcap"));
        let printed = |options: &[&str]| {
            let ended = run(catchment().args(["decode", "ipfix"]).arg(&file).args(options));
            let attributes = |line: &str| {
                let record: Value = serde_json::from_str(line).expect("each line is JSON");
                record["attributes"].as_object().cloned().expect("attributes")
            };
            ended.stdout.lines().map(attributes).collect::<Vec<_>>()
        };
        for (number, (mut expected, found)) in
            printed(Schema::Collector.options()).into_iter().zip(printed(&[])).enumerate()
        {
            count += put_names(&mut expected, &names);
            assert_eq!(found, expected, "record {number} of {name}");
        }
    }
    count
}

#[test]
fn names_of_values_in_own_captures() {
    assert!(compare_names(&own_captures()) > 0);
}

#[test]
fn names_of_values_in_further_captures() {
    if let Some(folder) = further_captures() {
        assert!(compare_names(&folder) > 0);
    }
}
