#!/usr/bin/env python3
"""Writes the element tables of the crate from the CSV files beside this script.

Run it from anywhere: python3 crates/ipfix/tables/generate.py
It writes src/elements/{iana,enterprise,netflow_v9,enumerations}.rs; tests/tables.rs checks that they still agree with the CSVs.
"""

import csv
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "src" / "elements"

# Type names as they stand in the registry, and as other tools write them.
TYPES = {
    "": "OctetArray",
    "octetarray": "OctetArray",
    "hex": "OctetArray",
    "unsigned8": "Unsigned8",
    "uint8": "Unsigned8",
    "proto": "Unsigned8",
    "unsigned16": "Unsigned16",
    "uint16": "Unsigned16",
    "uint15": "Unsigned16",
    "unsigned32": "Unsigned32",
    "uint32": "Unsigned32",
    "unsigned64": "Unsigned64",
    "uint64": "Unsigned64",
    "uint": "Unsigned64",
    "unsigned256": "Unsigned256",
    "signed8": "Signed8",
    "int8": "Signed8",
    "signed16": "Signed16",
    "signed32": "Signed32",
    "int32": "Signed32",
    "signed64": "Signed64",
    "float32": "Float32",
    "float64": "Float64",
    "float": "Float64",
    "boolean": "Boolean",
    "macaddress": "MacAddress",
    "string": "String",
    "datetimeseconds": "DateTimeSeconds",
    "datetimemilliseconds": "DateTimeMilliseconds",
    "datetimemicroseconds": "DateTimeMicroseconds",
    "datetimenanoseconds": "DateTimeNanoseconds",
    "ipv4address": "Ipv4Address",
    "ip4_addr": "Ipv4Address",
    "ipv6address": "Ipv6Address",
    "ip6_addr": "Ipv6Address",
    "basiclist": "BasicList",
    "subtemplatelist": "SubTemplateList",
    "subtemplatemultilist": "SubTemplateMultiList",
}

SEMANTICS = {
    "": "Default",
    "default": "Default",
    "quantity": "Quantity",
    "totalCounter": "TotalCounter",
    "deltaCounter": "DeltaCounter",
    "identifier": "Identifier",
    "flags": "Flags",
    "list": "List",
    "snmpCounter": "SnmpCounter",
    "snmpGauge": "SnmpGauge",
}


def data_type(written, name):
    """The Rust variant for a type as written; a bare "ip" is told apart by the name of the element."""
    if written == "ip":
        return "Ipv6Address" if "ipv6" in name.lower() else "Ipv4Address"
    return TYPES[written.lower()]


def rows(name):
    with open(HERE / name, newline="") as file:
        yield from csv.DictReader(file)


def iana():
    for row in rows("iana-information-elements.csv"):
        # Rows without a type are reserved numbers, not elements.
        if row["type"]:
            yield 0, int(row["id"]), row["name"], data_type(row["type"], row["name"]), SEMANTICS[row["semantics"]]


def enterprise():
    for row in rows("enterprise-information-elements.csv"):
        kind = data_type(row["type"], row["name"])
        yield int(row["pen"]), int(row["id"]), row["name"], kind, SEMANTICS[row["semantics"]]


def netflow_v9():
    known = {int(row["id"]) for row in rows("iana-information-elements.csv")}
    for row in rows("netflow-v9-fields.csv"):
        if int(row["id"]) not in known:
            name = row["name"] or row["logstash_name"]
            yield 0, int(row["id"]), name, data_type(row["type"] or row["logstash_type"], name), "Default"


# Registries of values by the elements whose values they name.
ENUMERATIONS = {
    "ipfix-mpls-label-type": [46],
    "classification-engine-ids": [101],
    "ipfix-flow-end-reason": [136],
    "ipfix-nat-originating-address-realm": [229],
    "ipfix-nat-event-type": [230],
    "ipfix-firewall-event": [233],
    "ipfix-biflow-direction": [239],
    "ipfix-observation-point-type": [277],
    "ipfix-anonymization-technique": [286],
    "ipfix-nat-type": [297],
    # selectorAlgorithm has the same numbers but for the last.
    "ipfix-flowselectoralgorithm": [304, 390],
    "ipfix-information-element-data-types": [339],
    "ipfix-information-element-semantics": [344],
    "ipfix-information-element-units": [345],
    "ipfix-value-distribution-method": [384],
    "ipfix-data-link-frame-type": [408],
    "ipfix-mib-capture-time-semantics": [448],
    "ipfix-nat-quota-exceeded-event": [466],
    "ipfix-nat-threshold-event": [467],
    "ipfix-ipv6-srh-segment-type": [500],
}

# Values that the registry describes in the text of an element only, or where its name is wrong or odd.
FURTHER_VALUES = {
    (35, 1): "deterministic",
    (35, 2): "random",
    (49, 1): "deterministic",
    (49, 2): "random",
    (61, 0): "ingress",
    (61, 1): "egress",
    (136, 3): "end of flow detected",
    (229, 2): "Public",
}

# Not values, or not valid ones.
NO_NAMES = {"Unassigned", "Reserved"}


def enumerations():
    entries = {}
    forwarding = {}
    for row in rows("iana-ipfix-subregistries.csv"):
        registry, name = row["registry"], row["name"]
        if registry == "forwarding-status":
            forwarding[row["value"]] = name
        if "-" in row["value"] or name in NO_NAMES:
            continue
        for element in ENUMERATIONS.get(registry, []):
            entries[element, int(row["value"], 0)] = name
        if registry.startswith("forwarding-status-"):
            status = forwarding[registry.removeprefix("forwarding-status-")]
            entries[89, int(row["value"], 0)] = f"{status}: {name}"
    del entries[304, 9]
    entries.update(FURTHER_VALUES)
    return entries


def write_enumerations():
    entries = sorted(enumerations().items())
    lines = [
        "//! Names of values of IANA elements.",
        "//!",
        "//! Generated by tables/generate.py from tables/iana-ipfix-subregistries.csv; do not edit.",
        "",
        "/// Element, value and name, in the order of the first two.",
        "#[rustfmt::skip]",
        f"pub(super) static ENTRIES: [(u16, u64, &str); {len(entries)}] = [",
    ]
    lines += [f'    ({element}, {value}, "{name}"),' for (element, value), name in entries]
    lines += ["];", ""]
    (OUT / "enumerations.rs").write_text("\n".join(lines), encoding="ascii")


def write(file, what, source, entries):
    entries = sorted(entries)
    keys = [entry[:2] for entry in entries]
    assert len(keys) == len(set(keys)), "two rows for one element"
    lines = [
        f"//! {what}",
        "//!",
        f"//! Generated by tables/generate.py from {source}; do not edit.",
        "",
        "use super::{DataType, Element, Semantics, row};",
        "",
        "/// The elements, in the order of (enterprise, id).",
        "#[rustfmt::skip]",
        f"pub(super) static ELEMENTS: [Element; {len(entries)}] = [",
    ]
    for pen, number, name, kind, semantics in entries:
        lines.append(f'    row({pen}, {number}, "{name}", DataType::{kind}, Semantics::{semantics}),')
    lines += ["];", ""]
    (OUT / file).write_text("\n".join(lines), encoding="ascii")


def main():
    write(
        "iana.rs",
        "Information elements of the IANA registry.",
        "tables/iana-information-elements.csv",
        iana(),
    )
    write(
        "enterprise.rs",
        "Information elements of enterprises.",
        "tables/enterprise-information-elements.csv",
        enterprise(),
    )
    write(
        "netflow_v9.rs",
        "NetFlow v9 field types that are not IPFIX element numbers.",
        "tables/netflow-v9-fields.csv",
        netflow_v9(),
    )
    write_enumerations()


if __name__ == "__main__":
    main()
