//! Rows -> text.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Map, Value};

use super::rows::{Block, Row};
use super::units::{plain, readable};

/// One block a window, one table a measure.
pub(super) fn tables(blocks: &[Block]) -> String {
    let mut out = String::new();
    for block in blocks {
        let _ = writeln!(out, "\n=== {} ===", title(block));
        for rows in block.rows.chunk_by(|a, b| a.measure == b.measure) {
            let _ = writeln!(out, "{}", rows[0].measure);
            for line in table(rows).lines() {
                let _ = writeln!(out, "  {}", line.trim_end());
            }
        }
    }
    out
}

fn table(rows: &[Row]) -> Table {
    let mut groups: Vec<&str> = Vec::new();
    let mut columns: Vec<&str> = Vec::new();
    for row in rows {
        for key in row.series.keys() {
            if !groups.contains(&key.as_str()) {
                groups.push(key);
            }
        }
        for cell in &row.cells {
            if !columns.contains(&cell.column.as_str()) {
                columns.push(&cell.column);
            }
        }
    }
    let mut table = Table::new();
    let _ = table.load_preset(presets::NOTHING).set_header(groups.iter().chain(&columns).copied());
    for row in rows {
        let series = groups.iter().map(|key| row.series.get(*key).map_or_else(|| "-".to_owned(), value_text));
        let numbers = columns.iter().map(|column| {
            let cell = row.cells.iter().find(|cell| cell.column == *column);
            cell.map_or_else(|| "-".to_owned(), |cell| readable(cell.value, &cell.unit))
        });
        let _ = table.add_row(series.chain(numbers));
    }
    for at in groups.len()..groups.len() + columns.len() {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// One line a series: `<start>/<end> <measure>{<series>} <column>=<number> ... unit=<unit>`.
pub(super) fn lines(blocks: &[Block]) -> String {
    let mut out = String::new();
    for block in blocks {
        for row in &block.rows {
            let start = block.start.as_deref().unwrap_or("-");
            let _ = write!(out, "{start}/{} {}", block.end.as_deref().unwrap_or("-"), row.measure);
            let _ = write!(out, "{{{}}}", series_text(&row.series));
            for cell in &row.cells {
                let _ = write!(out, " {}={}", cell.column, cell.value);
            }
            let _ = writeln!(out, " unit={}", if row.unit.is_empty() { "1" } else { &row.unit });
        }
    }
    out
}

fn series_text(series: &Map<String, Value>) -> String {
    series.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

fn value_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), plain),
        other => other.to_string(),
    }
}

/// `2026-11-30 12:00:00 - 12:00:10 UTC`
fn title(block: &Block) -> String {
    let (Some(end), start) = (&block.end, &block.start) else { return "no time".to_owned() };
    let parts = |stamp: &str| {
        let (date, time) = stamp.split_once('T').unwrap_or((stamp, ""));
        // Whole seconds are enough for a reader unless a window is shorter.
        let time = time.trim_end_matches('Z').trim_end_matches('0').trim_end_matches('.');
        (date.to_owned(), time.to_owned())
    };
    let (end_date, end_time) = parts(end);
    match start.as_deref().map(parts) {
        Some((date, time)) if date == end_date => format!("{date} {time} - {end_time} UTC"),
        Some((date, time)) => format!("{date} {time} - {end_date} {end_time} UTC"),
        None => format!("{end_date} {end_time} UTC"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::rows::Blocks;
    use super::*;

    fn blocks() -> Vec<Block> {
        let mut blocks = Blocks::default();
        for (name, unit, proto, quantile, value) in [
            ("flow.bytes.quantile", "By", "tcp", Some("0.5"), 568.0),
            ("flow.bytes.quantile", "By", "tcp", Some("0.99"), 189_089.0),
            ("flow.bytes.count", "1", "tcp", None, 812.0),
            ("flow.bytes.quantile", "By", "udp", Some("0.5"), 64.0),
        ] {
            let mut attributes = json!({"network.transport": proto});
            if let Some(quantile) = quantile {
                attributes["quantile"] = quantile.into();
            }
            let _ = blocks.add(&json!({
                "name": name, "unit": unit, "value": value, "attributes": attributes,
                "start_time": "2026-11-30T12:00:00.000000000Z", "time": "2026-11-30T12:00:10.500000000Z",
            }));
        }
        blocks.finish()
    }

    #[test]
    fn a_table_is_aligned_with_units() {
        let text = tables(&blocks());
        let expected = "\n=== 2026-11-30 12:00:00 - 12:00:10.5 UTC ===\nflow.bytes\n   network.transport  count    p50      p99\n   tcp                  812  568 B  185 KiB\n   udp                    -   64 B        -\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn lines_are_plain() {
        let text = lines(&blocks());
        let first = "2026-11-30T12:00:00.000000000Z/2026-11-30T12:00:10.500000000Z flow.bytes{network.transport=\"tcp\"} count=812 p50=568 p99=189089 unit=By";
        assert_eq!(text.lines().next(), Some(first));
        assert_eq!(text.lines().count(), 2);
    }
}
