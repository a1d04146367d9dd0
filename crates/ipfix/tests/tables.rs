//! The generated tables against the CSV files they were generated from.

use std::collections::HashMap;
use std::fs;

use catchment_ipfix::{DataType, FieldSpec, Semantics, element, enumeration_name, netflow_v9_field};

/// The rows of a table by column name. Quotes appear only around commas.
fn rows(name: &str) -> Vec<HashMap<String, String>> {
    let path = format!("{}/tables/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).expect("a table");
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let cells = |line: &str| {
        let mut quoted = false;
        line.split(|letter| {
            quoted ^= letter == '"';
            letter == ',' && !quoted
        })
        .map(|cell| cell.trim_matches('"').to_owned())
        .collect::<Vec<String>>()
    };
    lines.map(|line| header.iter().map(|&name| name.to_owned()).zip(cells(line)).collect()).collect()
}

/// Whether a type as written in a table is the one of the element.
fn same_type(written: &str, data_type: DataType) -> bool {
    let name = format!("{data_type:?}").to_lowercase();
    match written.to_lowercase().as_str() {
        "hex" | "" => name == "octetarray",
        "proto" => name == "unsigned8",
        "uint15" => name == "unsigned16",
        "uint" => name == "unsigned64",
        "float" => name == "float64",
        "ip" => name.ends_with("address"),
        "ip4_addr" => name == "ipv4address",
        "ip6_addr" => name == "ipv6address",
        other => name == other.replace("uint", "unsigned") || name == other.replace("int", "signed"),
    }
}

fn same_semantics(written: &str, semantics: Semantics) -> bool {
    let name = format!("{semantics:?}").to_lowercase();
    name == written.to_lowercase() || (written.is_empty() && semantics == Semantics::Default)
}

/// IANA elements: every row with a type, and none without.
#[test]
fn iana() {
    let mut known = 0;
    for row in rows("iana-information-elements.csv") {
        let id = row["id"].parse().expect("a number");
        let found = element(0, id);
        assert_eq!(found.is_some(), !row["type"].is_empty(), "{id}");
        let Some(found) = found else { continue };
        known += 1;
        assert_eq!(found.name, row["name"]);
        assert!(same_type(&row["type"], found.data_type), "{row:?}");
        assert!(same_semantics(&row["semantics"], found.semantics), "{row:?}");
    }
    assert_eq!((0..=u16::MAX).filter(|&id| element(0, id).is_some()).count(), known);
}

/// Elements of enterprises.
#[test]
fn enterprise() {
    for row in rows("enterprise-information-elements.csv") {
        let found = element(row["pen"].parse().expect("a number"), row["id"].parse().expect("a number"));
        let found = found.expect("an element");
        assert_eq!(found.name, row["name"]);
        assert!(same_type(&row["type"], found.data_type), "{row:?}");
        assert!(same_semantics(&row["semantics"], found.semantics), "{row:?}");
    }
}

/// Field types of NetFlow v9: the IANA element where there is one, else the row.
#[test]
fn netflow_v9() {
    for row in rows("netflow-v9-fields.csv") {
        let id = row["id"].parse().expect("a number");
        let Some(found) = netflow_v9_field(id) else {
            assert!(row["type"].is_empty() && row["logstash_type"].is_empty(), "{row:?}");
            continue;
        };
        if element(0, id).is_some() {
            assert_eq!(netflow_v9_field(id), element(0, id));
            continue;
        }
        let (name, data_type) = match row["type"].is_empty() {
            true => (&row["logstash_name"], &row["logstash_type"]),
            false => (&row["name"], &row["type"]),
        };
        assert_eq!(found.name, name);
        assert!(same_type(data_type, found.data_type), "{row:?}");
    }
}

/// Names of values: every registered one of the registries that belong to an element, without an explanation.
#[test]
fn enumerations() {
    let elements = [
        ("ipfix-mpls-label-type", 46),
        ("forwarding-status-10b", 89),
        ("classification-engine-ids", 101),
        ("ipfix-nat-event-type", 230),
        ("ipfix-firewall-event", 233),
        ("ipfix-biflow-direction", 239),
        ("ipfix-observation-point-type", 277),
        ("ipfix-nat-type", 297),
        ("ipfix-flowselectoralgorithm", 390),
        ("ipfix-information-element-data-types", 339),
        ("ipfix-information-element-semantics", 344),
        ("ipfix-information-element-units", 345),
        ("ipfix-nat-quota-exceeded-event", 466),
        ("ipfix-nat-threshold-event", 467),
    ];
    let mut compared = 0;
    for row in rows("iana-ipfix-subregistries.csv") {
        let Some((_, id)) = elements.iter().find(|(registry, _)| *registry == row["registry"]) else { continue };
        let written = &row["value"];
        let number = match written.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).ok(),
            None => written.parse().ok(),
        };
        let Some(number) = number else { continue };
        let name = enumeration_name(&FieldSpec::ipfix(*id, 0, 8, false), number);
        if ["Reserved", "Unassigned"].contains(&row["name"].as_str()) {
            assert_eq!(name, None, "{row:?}");
            continue;
        }
        let name = name.expect("a name");
        assert!(name == row["name"] || name.ends_with(&format!(": {}", row["name"])), "{name}: {row:?}");
        assert!(name.len() < 60, "{name}");
        compared += 1;
    }
    assert!(compared > 100, "{compared}");
}
