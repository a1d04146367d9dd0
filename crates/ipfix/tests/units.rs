//! The generated units against the CSV file they were generated from.

use std::fs;

use catchment_ipfix::element_unit;

/// Octets, packets, flows and times have their UCUM unit; elements without a unit have none.
#[test]
fn units() {
    let path = format!("{}/tables/iana-information-elements.csv", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).expect("a table");
    let mut known = 0;
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let unit = match cells[4] {
            "octets" => Some("By"),
            "packets" => Some("{packet}"),
            "flows" => Some("{flow}"),
            "milliseconds" => Some("ms"),
            "" => None,
            _ => continue,
        };
        let id = cells[0].parse().expect("a number");
        assert_eq!(element_unit(0, id), unit, "{line}");
        assert_eq!(element_unit(29_305, id), unit, "in the reverse direction");
        assert_eq!(element_unit(9, id), None);
        known += usize::from(unit.is_some());
    }
    assert!(known > 90);
}
