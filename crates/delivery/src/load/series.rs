//! The resource of a load as a number.

use arrow::array::{Array, ArrayRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::consts;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::encode::otlp::bytes as otlp;

/// Columns that make an attribute.
const COLUMNS: [&str; 8] = [
    consts::ATTRIBUTE_KEY,
    consts::ATTRIBUTE_TYPE,
    consts::ATTRIBUTE_STR,
    consts::ATTRIBUTE_INT,
    consts::ATTRIBUTE_DOUBLE,
    consts::ATTRIBUTE_BOOL,
    consts::ATTRIBUTE_BYTES,
    consts::ATTRIBUTE_SER,
];

/// Attributes of a resource; a table with more has those of several.
const MOST_ROWS: usize = 1_024;

/// Resources have their attributes' hash, whatever order the attributes stand in. A key that comes twice is of two
/// resources.
pub(super) fn of_records(records: &OtapArrowRecords) -> Option<u64> {
    let Some(table) = records.get(ArrowPayloadType::ResourceAttrs) else { return Some(xxh3_64(&[])) };
    if table.num_rows() > MOST_ROWS {
        return None;
    }
    let options = FormatOptions::new().with_null("");
    let columns: Vec<Option<ArrayFormatter<'_>>> = COLUMNS
        .iter()
        .map(|name| {
            let column: Option<&ArrayRef> =
                table.column_by_name(name).filter(|column| column.null_count() < column.len());
            column.map(|column| ArrayFormatter::try_new(column, &options)).transpose().ok()
        })
        .collect::<Option<_>>()?;
    let mut rows: Vec<(String, u64)> = (0..table.num_rows())
        .map(|row| {
            let text = |column: &Option<ArrayFormatter<'_>>| {
                column.as_ref().map_or_else(|| Some(String::new()), |column| column.value(row).try_to_string().ok())
            };
            let key = text(columns.first()?)?;
            let mut hash = Xxh3::new();
            for column in &columns[1..] {
                let text = text(column)?;
                hash.update(&(text.len() as u64).to_le_bytes());
                hash.update(text.as_bytes());
            }
            Some((key, hash.digest()))
        })
        .collect::<Option<_>>()?;
    rows.sort_unstable();
    if rows.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return None;
    }
    let mut hash = Xxh3::new();
    for (key, value) in &rows {
        hash.update(&(key.len() as u64).to_le_bytes());
        hash.update(key.as_bytes());
        hash.update(&value.to_le_bytes());
    }
    Some(hash.digest())
}

/// The hash of the bytes of the resource, which whoever wrote them writes the same way again.
pub(super) fn of_request(request: &[u8]) -> Option<u64> {
    let resources = otlp::resources(request).ok()?;
    let (first, others) = resources.split_first()?;
    others.iter().all(|other| other == first).then(|| xxh3_64(first))
}
