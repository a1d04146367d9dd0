//! Records in parts of so many items, in order.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, RecordBatch, StructArray, UInt16Array, UInt32Array};
use arrow::compute::take_record_batch;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::otap::{Logs, Metrics, Traces};
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::{FieldExt as _, consts};

use super::error::EncodeError;
use super::ids::{self, Ids, field};
use super::index::Children;
use super::table::Table;

/// Records in parts of at most `max_items` log records, points or spans, in their order; the records as they are if they
/// have no more. A metric whose points come into several parts is in each of them. Ids are plain in the parts, and those that
/// the rows had before.
///
/// # Errors
/// [`EncodeError`] for columns that are missing or of another type than the protocol has.
pub fn split(records: &OtapArrowRecords, max_items: usize) -> Result<Vec<OtapArrowRecords>, EncodeError> {
    let max_items = max_items.max(1);
    if records.num_items() <= max_items {
        return Ok(vec![records.clone()]);
    }
    Splitter { records, parts: records.num_items().div_ceil(max_items), first: max_items, others: max_items }.split()
}

/// The first `at` items and the rest, as [`split`] makes them, `0 < at < num_items`.
///
/// # Errors
/// As [`split`]; and if there are no items on either side of `at`.
pub fn split_at(records: &OtapArrowRecords, at: usize) -> Result<(OtapArrowRecords, OtapArrowRecords), EncodeError> {
    let items = records.num_items();
    let others = items.saturating_sub(at).max(1);
    let parts = Splitter { records, parts: 2, first: at, others }.split()?;
    <[OtapArrowRecords; 2]>::try_from(parts).map(|[head, tail]| (head, tail)).map_err(|_| EncodeError::TooMany {
        table: records.root_payload_type(),
        what: "items before the cut",
        found: at,
        bound: items.saturating_sub(1),
    })
}

struct Splitter<'r> {
    records: &'r OtapArrowRecords,
    parts: usize,
    /// Items of the first part.
    first: usize,
    /// Items of every further part but the last.
    others: usize,
}

/// Rows of each part, and the table with plain ids.
struct Placed {
    batch: RecordBatch,
    rows: Vec<Vec<u32>>,
}

const POINTS: [ArrowPayloadType; 4] = [
    ArrowPayloadType::NumberDataPoints,
    ArrowPayloadType::SummaryDataPoints,
    ArrowPayloadType::HistogramDataPoints,
    ArrowPayloadType::ExpHistogramDataPoints,
];

impl Splitter<'_> {
    /// The part that an item goes into.
    fn part(&self, item: usize) -> usize {
        let part = item.checked_sub(self.first).map_or(0, |item| 1 + item / self.others);
        part.min(self.parts - 1)
    }

    fn split(&self) -> Result<Vec<OtapArrowRecords>, EncodeError> {
        use ArrowPayloadType as Type;
        let root_kind = match self.records {
            OtapArrowRecords::Logs(_) => Type::Logs,
            OtapArrowRecords::Metrics(_) => Type::UnivariateMetrics,
            OtapArrowRecords::Traces(_) => Type::Spans,
        };
        let mut out: Vec<OtapArrowRecords> = (0..self.parts)
            .map(|_| match self.records {
                OtapArrowRecords::Logs(_) => OtapArrowRecords::Logs(Logs::default()),
                OtapArrowRecords::Metrics(_) => OtapArrowRecords::Metrics(Metrics::default()),
                OtapArrowRecords::Traces(_) => OtapArrowRecords::Traces(Traces::default()),
            })
            .collect();
        let Some(batch) = self.plain(root_kind)? else { return Ok(vec![self.records.clone()]) };
        let rows = batch.num_rows();
        let mut root = Placed { batch, rows: vec![Vec::new(); self.parts] };
        if root_kind == Type::UnivariateMetrics {
            let mut points = self.metrics(&mut root)?;
            for (kind, placed) in &points {
                self.put(&mut out, *kind, placed)?;
            }
            while let Some((kind, placed)) = points.pop() {
                self.below(&mut out, kind, &placed)?;
            }
        } else {
            for row in 0..rows {
                root.rows[self.part(row)].push(row as u32);
            }
        }
        self.put(&mut out, root_kind, &root)?;
        self.below(&mut out, root_kind, &root)?;
        // Points without a metric are no items after all.
        out.retain(|records| records.num_items() > 0);
        Ok(out)
    }

    /// Places metrics and their points: each point in one part, in the order of metrics.
    fn metrics(&self, root: &mut Placed) -> Result<Vec<(ArrowPayloadType, Placed)>, EncodeError> {
        let ids = column_ids(ArrowPayloadType::UnivariateMetrics, &root.batch)?;
        let mut tables = Vec::new();
        for kind in POINTS {
            if let Some(batch) = self.plain(kind)? {
                let table = Table::from_batch(kind, &batch);
                let fields = batch.schema_ref().fields();
                let children = Children::new(&ids::parents(&table, field(fields, &[consts::PARENT_ID]))?);
                tables.push((kind, children, Placed { batch, rows: vec![Vec::new(); self.parts] }));
            }
        }
        let mut items = 0;
        for row in 0..root.batch.num_rows() {
            let first = self.part(items);
            let mut last = None;
            if let Some(id) = ids.as_ref().and_then(|ids| ids.get(row)) {
                for (_, children, placed) in &mut tables {
                    for point in children.of(id) {
                        // Points that two metrics of one id share would count twice.
                        let part = self.part(items);
                        placed.rows[part].push(point as u32);
                        items += 1;
                        last = Some(part);
                    }
                }
            }
            for part in first..=last.unwrap_or(first) {
                root.rows[part].push(row as u32);
            }
        }
        Ok(tables.into_iter().map(|(kind, _, placed)| (kind, placed)).collect())
    }

    /// Places the tables whose rows belong to those that have been placed.
    fn below(&self, out: &mut [OtapArrowRecords], kind: ArrowPayloadType, parents: &Placed) -> Result<(), EncodeError> {
        use ArrowPayloadType as Type;
        let own = column_ids(kind, &parents.batch)?;
        let children: &[Type] = match kind {
            Type::Logs => &[Type::LogAttrs],
            Type::Spans => &[Type::SpanAttrs, Type::SpanEvents, Type::SpanLinks],
            Type::SpanEvents => &[Type::SpanEventAttrs],
            Type::SpanLinks => &[Type::SpanLinkAttrs],
            Type::UnivariateMetrics => &[Type::MetricAttrs],
            Type::NumberDataPoints => &[Type::NumberDpAttrs, Type::NumberDpExemplars],
            Type::SummaryDataPoints => &[Type::SummaryDpAttrs],
            Type::HistogramDataPoints => &[Type::HistogramDpAttrs, Type::HistogramDpExemplars],
            Type::ExpHistogramDataPoints => &[Type::ExpHistogramDpAttrs, Type::ExpHistogramDpExemplars],
            Type::NumberDpExemplars => &[Type::NumberDpExemplarAttrs],
            Type::HistogramDpExemplars => &[Type::HistogramDpExemplarAttrs],
            Type::ExpHistogramDpExemplars => &[Type::ExpHistogramDpExemplarAttrs],
            _ => &[],
        };
        for child in children {
            self.child(out, *child, own.as_ref(), parents)?;
        }
        if matches!(kind, Type::Logs | Type::Spans | Type::UnivariateMetrics) {
            let table = Table::from_batch(kind, &parents.batch);
            let fields = parents.batch.schema_ref().fields();
            for (name, child) in [(consts::RESOURCE, Type::ResourceAttrs), (consts::SCOPE, Type::ScopeAttrs)] {
                let (inner, _) = table.structure(name)?;
                let ids = ids::own(&inner, field(fields, &[name, consts::ID]))?;
                self.child(out, child, ids.as_ref(), parents)?;
            }
        }
        Ok(())
    }

    fn child(
        &self,
        out: &mut [OtapArrowRecords],
        kind: ArrowPayloadType,
        ids: Option<&Ids<'_>>,
        parents: &Placed,
    ) -> Result<(), EncodeError> {
        let (Some(ids), Some(batch)) = (ids, self.plain(kind)?) else { return Ok(()) };
        let table = Table::from_batch(kind, &batch);
        let children = Children::new(&ids::parents(&table, field(batch.schema_ref().fields(), &[consts::PARENT_ID]))?);
        let rows = parents.rows.iter().map(|rows| {
            // Rows of a part that share a parent, as those of a resource do, have its children once.
            let mut used: Vec<u32> = rows.iter().filter_map(|row| ids.get(*row as usize)).collect();
            used.sort_unstable();
            used.dedup();
            let mut rows: Vec<u32> = used.iter().flat_map(|id| children.of(*id)).map(|row| row as u32).collect();
            rows.sort_unstable();
            rows
        });
        let rows = rows.collect();
        let placed = Placed { batch, rows };
        self.put(out, kind, &placed)?;
        self.below(out, kind, &placed)
    }

    fn put(&self, out: &mut [OtapArrowRecords], kind: ArrowPayloadType, placed: &Placed) -> Result<(), EncodeError> {
        for (records, rows) in out.iter_mut().zip(&placed.rows).filter(|(_, rows)| !rows.is_empty()) {
            let is_run = rows.windows(2).all(|pair| pair[0] + 1 == pair[1]);
            let batch = match rows.first().filter(|_| is_run) {
                Some(first) => placed.batch.slice(*first as usize, rows.len()),
                None => take_record_batch(&placed.batch, &UInt32Array::from(rows.clone())).map_err(arrow(kind))?,
            };
            let set = records.set(kind, batch);
            set.map_err(|error| EncodeError::Arrow { table: kind, message: error.to_string() })?;
        }
        Ok(())
    }

    /// A table with plain ids; nothing if it has no rows.
    fn plain(&self, kind: ArrowPayloadType) -> Result<Option<RecordBatch>, EncodeError> {
        let Some(batch) = self.records.get(kind).filter(|batch| batch.num_rows() > 0) else { return Ok(None) };
        let table = Table::from_batch(kind, batch);
        let fields = batch.schema_ref().fields();
        let mut columns = batch.columns().to_vec();
        let mut new_fields: Vec<Field> = fields.iter().map(|field| field.as_ref().clone()).collect();
        for (place, old) in fields.iter().enumerate() {
            let ids = match old.name().as_str() {
                consts::ID => ids::own(&table, Some(old))?,
                consts::PARENT_ID => Some(ids::parents(&table, Some(old))?),
                name @ (consts::RESOURCE | consts::SCOPE) => {
                    let name = if name == consts::RESOURCE { consts::RESOURCE } else { consts::SCOPE };
                    let (inner, structure) = table.structure(name)?;
                    let ids = ids::own(&inner, field(fields, &[name, consts::ID]))?;
                    if let Some((ids, structure)) = ids.zip(structure) {
                        let structure = with_ids(kind, structure, ids)?;
                        new_fields[place] = Field::new(name, structure.data_type().clone(), old.is_nullable());
                        columns[place] = structure;
                    }
                    None
                }
                _ => None,
            };
            if let Some(ids) = ids {
                let array = id_column(ids, old.data_type());
                let field = Field::new(old.name(), array.data_type().clone(), old.is_nullable());
                new_fields[place] = field.with_plain_encoding();
                columns[place] = array;
            }
        }
        RecordBatch::try_new(Arc::new(Schema::new(new_fields)), columns).map(Some).map_err(arrow(kind))
    }
}

fn arrow(table: ArrowPayloadType) -> impl Fn(arrow::error::ArrowError) -> EncodeError {
    move |error| EncodeError::Arrow { table, message: error.to_string() }
}

/// Ids of the rows of a table, which are plain.
fn column_ids(kind: ArrowPayloadType, batch: &RecordBatch) -> Result<Option<Ids<'_>>, EncodeError> {
    let table = Table::from_batch(kind, batch);
    ids::own(&table, field(batch.schema_ref().fields(), &[consts::ID]))
}

fn id_column(ids: Ids<'_>, data_type: &DataType) -> ArrayRef {
    let Ids { values, nulls } = ids;
    if *data_type == DataType::UInt16 {
        let narrow: Vec<u16> = values.iter().map(|id| *id as u16).collect();
        return Arc::new(UInt16Array::new(narrow.into(), nulls));
    }
    Arc::new(UInt32Array::new(values.into_owned().into(), nulls))
}

fn with_ids(kind: ArrowPayloadType, structure: &StructArray, ids: Ids<'_>) -> Result<ArrayRef, EncodeError> {
    let mut fields: Vec<Field> = structure.fields().iter().map(|field| field.as_ref().clone()).collect();
    let mut columns = structure.columns().to_vec();
    let place = fields.iter().position(|field| field.name() == consts::ID);
    if let Some((field, column)) = place.and_then(|place| fields.get_mut(place).zip(columns.get_mut(place))) {
        *column = id_column(ids, field.data_type());
        *field = Field::new(consts::ID, column.data_type().clone(), true).with_plain_encoding();
    }
    let nulls = structure.nulls().cloned();
    let structure = StructArray::try_new(Fields::from(fields), columns, nulls).map_err(arrow(kind))?;
    Ok(Arc::new(structure))
}
