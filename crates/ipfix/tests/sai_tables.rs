//! The generated SAI names against the CSV files they were generated from.

use std::fs;

use catchment_ipfix::sonic::{object_type_name, statistic_name};

fn rows(name: &str) -> Vec<Vec<String>> {
    let path = format!("{}/tables/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(path).expect("a table");
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// Every object type of the table has its name, and no other number has one.
#[test]
fn object_types() {
    let rows = rows("sai-object-types.csv");
    for row in &rows {
        assert_eq!(object_type_name(row[0].parse().expect("a number")), Some(row[1].as_str()));
    }
    assert!(rows.len() > 100);
    assert_eq!(object_type_name(0x7fff), None);
}

/// Every statistic of both tables has its name, under the type that it belongs to and no other.
#[test]
fn statistics() {
    let mut known = 0;
    for table in ["sai-stats.csv", "sai-stats-other-types.csv"] {
        for row in rows(table) {
            let (object_type, statistic) = (row[0].parse().expect("a number"), row[2].parse().expect("a number"));
            assert_eq!(statistic_name(object_type, statistic), Some(row[3].as_str()));
            assert_eq!(object_type_name(object_type), Some(row[1].as_str()));
            known += 1;
        }
    }
    assert!(known > 600);
    assert_eq!(statistic_name(1, 0x7fff), None);
    assert_eq!(statistic_name(0x7fff, 0), None);
}
