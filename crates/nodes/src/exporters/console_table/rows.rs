//! Points -> rows: one a window and series, with its quantiles and statistics as columns.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// A series in a window.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// Name of the measure: the metric's name without `.quantile`, `.count` and the like.
    pub(super) measure: String,
    /// Unit of the values, which statistics in other units do not change.
    pub(super) unit: String,
    /// Attributes of the series, without `quantile`.
    pub(super) series: Map<String, Value>,
    /// Column name (`count`, `p50`, ..., `value`), value and unit, in the order they are shown.
    pub(super) cells: Vec<Cell>,
}

/// One number of a row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Cell {
    pub(super) column: String,
    pub(super) value: f64,
    pub(super) unit: String,
    order: (u8, f64),
}

/// The rows of one window.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Block {
    /// Begin, RFC 3339; `None` for points without one.
    pub(super) start: Option<String>,
    /// End, RFC 3339.
    pub(super) end: Option<String>,
    pub(super) rows: Vec<Row>,
}

/// Gathers points (as `catchment_columns::json` gives them) into blocks.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    blocks: Vec<Block>,
    /// Where the row of a measure and series is, by block.
    rows: HashMap<(usize, String, String), usize>,
}

impl Blocks {
    /// Adds a point; false if it has no finite value, which a table cannot show.
    pub(super) fn add(&mut self, point: &Value) -> bool {
        let Some(value) = point["value"].as_f64() else { return false };
        let text = |key: &str| point[key].as_str().map(str::to_owned);
        let mut series = point["attributes"].as_object().cloned().unwrap_or_default();
        let quantile = series.get("quantile").and_then(Value::as_str).and_then(|text| text.parse::<f64>().ok());
        let name = text("name").unwrap_or_default();
        let (measure, column, order) = match (name.rsplit_once('.'), quantile) {
            (Some((measure, "quantile")), Some(quantile)) => {
                let _ = series.remove("quantile");
                (measure.to_owned(), percentile(quantile), (1, quantile))
            }
            (Some((measure, suffix @ ("count" | "sum" | "min" | "max"))), None) => {
                let place = if suffix == "count" { 0 } else { 2 };
                (measure.to_owned(), suffix.to_owned(), (place, f64::from(suffix.as_bytes()[1])))
            }
            _ => (name, "value".to_owned(), (1, 0.0)),
        };
        let cell = Cell { column, value, unit: text("unit").unwrap_or_default(), order };
        self.row(text("start_time"), text("time"), measure, series).push(cell);
        true
    }

    fn row(
        &mut self,
        start: Option<String>,
        end: Option<String>,
        measure: String,
        series: Map<String, Value>,
    ) -> &mut Row {
        let known = self.blocks.iter().position(|block| block.start == start && block.end == end);
        let block = known.unwrap_or_else(|| {
            self.blocks.push(Block { start, end, rows: Vec::new() });
            self.blocks.len() - 1
        });
        let rows = &mut self.blocks[block].rows;
        let name = Value::Object(series.clone()).to_string();
        let at = *self.rows.entry((block, measure.clone(), name)).or_insert_with(|| {
            rows.push(Row { measure, unit: String::new(), series, cells: Vec::new() });
            rows.len() - 1
        });
        &mut rows[at]
    }

    /// The blocks in the order of their windows, rows by measure and series.
    pub(super) fn finish(mut self) -> Vec<Block> {
        self.blocks.sort_by(|a, b| (&a.end, &a.start).cmp(&(&b.end, &b.start)));
        for block in &mut self.blocks {
            block.rows.sort_by_cached_key(|row| (row.measure.clone(), Value::Object(row.series.clone()).to_string()));
        }
        self.blocks
    }
}

impl Row {
    fn push(&mut self, cell: Cell) {
        if cell.column != "count" {
            self.unit.clone_from(&cell.unit);
        }
        self.cells.push(cell);
        self.cells.sort_by(|a, b| a.order.0.cmp(&b.order.0).then(a.order.1.total_cmp(&b.order.1)));
    }
}

/// `p99.9` for 0.999.
fn percentile(quantile: f64) -> String {
    let percent = (quantile * 1e8).round() / 1e6;
    format!("p{percent}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn point(name: &str, unit: &str, value: f64, attributes: Value) -> Value {
        json!({
            "name": name, "unit": unit, "value": value, "attributes": attributes,
            "start_time": "2026-11-30T12:00:00.000000000Z", "time": "2026-11-30T12:00:10.000000000Z",
        })
    }

    /// The points of a series become one row with its columns in order, whatever order they come in.
    #[test]
    fn points_of_a_series_share_a_row() {
        let mut blocks = Blocks::default();
        let _ = blocks.add(&point("t.quantile", "ms", 9.0, json!({"host": "a", "quantile": "0.999"})));
        let _ = blocks.add(&point("t.max", "ms", 9.5, json!({"host": "a"})));
        let _ = blocks.add(&point("t.quantile", "ms", 1.0, json!({"host": "a", "quantile": "0.5"})));
        let _ = blocks.add(&point("t.count", "1", 12.0, json!({"host": "a"})));
        assert!(blocks.add(&point("other", "", 3.0, json!({"host": "b"}))));
        assert!(!blocks.add(&point("other", "", f64::NAN, json!({"host": "b"}))));
        let blocks = blocks.finish();
        assert_eq!(blocks.len(), 1);
        let rows = &blocks[0].rows;
        assert_eq!(rows.len(), 2);
        let columns: Vec<_> = rows[1].cells.iter().map(|cell| (cell.column.as_str(), cell.value)).collect();
        assert_eq!(columns, [("count", 12.0), ("p50", 1.0), ("p99.9", 9.0), ("max", 9.5)]);
        assert_eq!((rows[1].measure.as_str(), rows[1].unit.as_str()), ("t", "ms"));
        assert_eq!(rows[0].cells[0].column, "value");
    }
}
