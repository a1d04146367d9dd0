//! Rows of OTAP tables.

use arrow::array::{Array, BooleanArray, RecordBatch, UInt16Array, UInt32Array};
use arrow::compute::filter_record_batch;
use arrow::datatypes::UInt32Type;
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::otap::filter::{IdBitmap, IdBitmapPool, filter_child_batch, filter_otap_batch};
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::consts;

use super::Kept;
use crate::ColumnsError;

/// Tables of data points.
const POINTS: [ArrowPayloadType; 4] = [
    ArrowPayloadType::NumberDataPoints,
    ArrowPayloadType::HistogramDataPoints,
    ArrowPayloadType::ExpHistogramDataPoints,
    ArrowPayloadType::SummaryDataPoints,
];

/// Tables that belong to number points, each after the one it hangs on.
const OF_NUMBER_POINTS: [ArrowPayloadType; 3] =
    [ArrowPayloadType::NumberDpAttrs, ArrowPayloadType::NumberDpExemplars, ArrowPayloadType::NumberDpExemplarAttrs];

/// What is kept of records whose ids are not transport encoded, with the attributes and exemplars that belong to it;
/// `None` if that is nothing.
///
/// # Errors
/// [`ColumnsError`] if a table lacks a column or has one of a wrong type.
pub fn records(records: &OtapArrowRecords, kept: Kept<'_>) -> Result<Option<OtapArrowRecords>, ColumnsError> {
    let Some(root) = records.root_record_batch() else { return Ok(None) };
    let points = match records {
        OtapArrowRecords::Metrics(_) => records.get(ArrowPayloadType::NumberDataPoints),
        _ => None,
    };
    let of_points = points.map(|points| mask(points.num_rows(), kept));
    let of_root = match records {
        OtapArrowRecords::Metrics(_) => metrics(records, root, of_points.as_ref(), kept.others)?,
        _ => mask(root.num_rows(), kept),
    };
    if of_root.true_count() == 0 {
        return Ok(None);
    }
    let failed = ColumnsError::otap("kept rows");
    let mut left = filter_otap_batch(&of_root, records, &mut IdBitmapPool::new()).map_err(failed)?;
    if let (Some(points), Some(mask)) = (points, &of_points)
        && mask.false_count() > 0
    {
        filter_points(records, &mut left, points, mask)?;
    }
    Ok(Some(left))
}

fn mask(rows: usize, kept: Kept<'_>) -> BooleanArray {
    (0..rows).map(|row| Some(kept.item(row))).collect()
}

/// The metrics that are kept: those with a point that is, and with `others` those that have no points.
fn metrics(
    records: &OtapArrowRecords,
    root: &RecordBatch,
    of_points: Option<&BooleanArray>,
    others: bool,
) -> Result<BooleanArray, ColumnsError> {
    let missing = |table: &'static str| move || ColumnsError::Otap { table, reason: "16 bit id is missing".to_owned() };
    let ids = |batch: &RecordBatch, name: &str| {
        batch.column_by_name(name).and_then(|column| column.as_any().downcast_ref::<UInt16Array>()).cloned()
    };
    // By metric: whether it has points, and whether one of them is kept.
    let mut state = vec![(false, false); usize::from(u16::MAX) + 1];
    for table in POINTS {
        let Some(points) = records.get(table) else { continue };
        let parents = ids(points, consts::PARENT_ID).ok_or_else(missing("data points"))?;
        let mask = of_points.filter(|_| table == ArrowPayloadType::NumberDataPoints);
        for (row, parent) in parents.iter().enumerate() {
            if let Some(parent) = parent {
                let (seen, keep) = &mut state[usize::from(parent)];
                *seen = true;
                *keep |= mask.map_or(others, |mask| mask.value(row));
            }
        }
    }
    let ids = ids(root, consts::ID).ok_or_else(missing("metrics"))?;
    let keep = |id: Option<u16>| match id.map(|id| state[usize::from(id)]) {
        Some((true, keep)) => keep,
        _ => others,
    };
    Ok(ids.iter().map(|id| Some(keep(id))).collect())
}

/// Takes number points out of `left`, and what belongs to them.
fn filter_points(
    records: &OtapArrowRecords,
    left: &mut OtapArrowRecords,
    points: &RecordBatch,
    mask: &BooleanArray,
) -> Result<(), ColumnsError> {
    let _ = left.remove(ArrowPayloadType::NumberDataPoints);
    for table in OF_NUMBER_POINTS {
        let _ = left.remove(table);
    }
    if mask.true_count() == 0 {
        return Ok(());
    }
    let rows = filter_record_batch(points, mask).map_err(ColumnsError::arrow("number data points"))?;
    left.set(ArrowPayloadType::NumberDataPoints, rows).map_err(ColumnsError::otap("number data points"))?;
    let mut ids = IdBitmap::new();
    for table in OF_NUMBER_POINTS {
        let parent = match table {
            ArrowPayloadType::NumberDpExemplarAttrs => ArrowPayloadType::NumberDpExemplars,
            _ => ArrowPayloadType::NumberDataPoints,
        };
        // Without ids nothing hangs on the rows.
        let parent_ids = left.get(parent).and_then(|batch| batch.column_by_name(consts::ID));
        if parent_ids.is_some_and(|ids| ids.as_any().is::<UInt32Array>()) {
            filter_child_batch::<UInt32Type>(records, left, table, &mut ids)
                .map_err(ColumnsError::otap("tables of number data points"))?;
        }
    }
    Ok(())
}
