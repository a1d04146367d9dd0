//! What all batches of a template have in common, made once: metrics, resources, the order of the points.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Int32Array, RecordBatch, StringArray, StructArray, UInt8Array,
    UInt16Array,
};
use arrow::datatypes::{Field, Fields, Schema, UInt8Type, UInt16Type};
use arrow::error::ArrowError;
use catchment_ipfix::sonic::{Counter, SonicTemplate, StatisticId};
use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::otap::Metrics;
use otel_arrow_dfe_pdata::otlp::metrics::MetricType;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;
use otel_arrow_dfe_pdata::schema::consts::metadata::encodings;
use otel_arrow_dfe_pdata::schema::{FieldExt as _, consts};
use rustc_hash::FxHashMap;

use super::mapping::{AttributesAt, SonicMapping, SonicNames};
use super::order::{MetricKey, ObjectKey, Order, number};
use super::points::{Labels, PointTables};
use super::values::Layout;
use crate::table::{AttributeTable, AttributeWriter};
use crate::{ColumnsError, ParentIds};

/// Bytes of tables kept for different numbers of records.
pub(super) const KEPT_BYTES: usize = 2 * 1024 * 1024;

/// AGGREGATION_TEMPORALITY_CUMULATIVE of OTLP.
const CUMULATIVE: i32 = 2;

/// The skeleton of a template's batches.
#[derive(Debug)]
pub(super) struct Skeleton {
    /// Where the counters stand in a record, in the order of their points.
    pub(super) layout: Layout,
    /// Parent id of the points of each column.
    pub(super) metrics: Box<[u16]>,
    /// Attributes of the points of each column; `None` if points have none.
    pub(super) labels: Option<Labels>,
    pub(super) ids: ParentIds,
    /// A series occurs more than once in a record: only batches of one record keep its points in order.
    pub(super) repeats: bool,
    /// Metrics and resources.
    pub(super) shared: OtapArrowRecords,
    /// Tables by number of records, the one used last at the end.
    kept: Mutex<Vec<(usize, Arc<PointTables>)>>,
}

impl Skeleton {
    pub(super) fn new(template: &SonicTemplate, mapping: &SonicMapping, order: Order) -> Result<Self, ColumnsError> {
        let Order { columns, metric_of, metrics, names, objects, repeats } = order;
        let labels = (mapping.attributes_at == AttributesAt::Point).then(|| labels(template, mapping, &columns));
        let mut shared = OtapArrowRecords::Metrics(Metrics::default());
        let table = metrics_table(&metrics, &names, mapping).map_err(ColumnsError::arrow("metrics"))?;
        shared.set(ArrowPayloadType::UnivariateMetrics, table).map_err(ColumnsError::otap("metrics"))?;
        if let Some(table) = resource_attributes(&objects, template, mapping)? {
            let set = shared.set(ArrowPayloadType::ResourceAttrs, table);
            set.map_err(ColumnsError::otap("resource attributes"))?;
        }
        Ok(Self {
            layout: Layout::new(template.record_length(), &columns),
            metrics: metric_of.into(),
            labels,
            ids: mapping.ids(),
            repeats,
            shared,
            kept: Mutex::default(),
        })
    }

    /// Number of columns: counters of a record.
    pub(super) fn columns(&self) -> usize {
        self.metrics.len()
    }

    /// The tables of batches of so many records, and whether they had to be made.
    pub(super) fn tables(&self, records: usize) -> Result<(Arc<PointTables>, bool), ColumnsError> {
        {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(place) = kept.iter().position(|(known, _)| *known == records) {
                let entry = kept.remove(place);
                let tables = Arc::clone(&entry.1);
                kept.push(entry);
                return Ok((tables, false));
            }
        }
        let tables = Arc::new(PointTables::new(self, records)?);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push((records, Arc::clone(&tables)));
        while kept.len() > 1 && bytes_of(&kept) > KEPT_BYTES {
            let _ = kept.remove(0);
        }
        Ok((tables, true))
    }

    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        bytes_of(&self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn bytes_of(kept: &[(usize, Arc<PointTables>)]) -> usize {
    kept.iter().map(|(_, tables)| tables.bytes).sum()
}

fn object_name(template: &SonicTemplate, label: u16) -> Cow<'_, str> {
    template.object_name(label).map_or_else(|| Cow::Owned(format!("unknown_{label}")), Cow::Borrowed)
}

/// Text that stands for the type of an object.
fn type_text(statistic: StatisticId, names: SonicNames) -> Cow<'static, str> {
    match names {
        SonicNames::Sai => statistic.object_type_name(),
        SonicNames::Legacy => Cow::Owned(statistic.object_type.to_string()),
    }
}

fn statistic_text(statistic: StatisticId, names: SonicNames) -> Cow<'static, str> {
    match names {
        SonicNames::Sai => statistic.statistic_name(),
        SonicNames::Legacy => Cow::Owned(statistic.statistic.to_string()),
    }
}

fn type_attribute(names: SonicNames) -> &'static str {
    match names {
        SonicNames::Sai => "sai_type",
        SonicNames::Legacy => "sai_type_id",
    }
}

fn labels(template: &SonicTemplate, mapping: &SonicMapping, columns: &[Counter]) -> Labels {
    let statistic = match mapping.names {
        SonicNames::Sai => "sai_stat",
        SonicNames::Legacy => "sai_stat_id",
    };
    // Ascending, as the rows of attributes are.
    let mut labels = Labels::new(["object_name", statistic, type_attribute(mapping.names)]);
    // Each text is looked up once, however many columns have it.
    let mut objects: FxHashMap<u16, u16> = FxHashMap::default();
    let mut types: FxHashMap<u32, u16> = FxHashMap::default();
    let mut statistics: FxHashMap<StatisticId, u16> = FxHashMap::default();
    for counter in columns {
        let id = counter.statistic;
        let texts = [
            *objects.entry(counter.label).or_insert_with(|| labels.text(&object_name(template, counter.label))),
            *statistics.entry(id).or_insert_with(|| labels.text(&statistic_text(id, mapping.names))),
            *types.entry(id.object_type).or_insert_with(|| labels.text(&type_text(id, mapping.names))),
        ];
        labels.push(texts);
    }
    labels
}

fn resource_attributes(
    objects: &[ObjectKey],
    template: &SonicTemplate,
    mapping: &SonicMapping,
) -> Result<Option<RecordBatch>, ColumnsError> {
    let mut table = AttributeTable::new(&[]);
    let mut write = |resource, object: Option<&ObjectKey>| {
        let mut attributes = AttributeWriter::new(&mut table, resource, true);
        if let Some((label, object_type)) = object {
            attributes.text("object", object_name(template, *label).as_bytes());
            let id = StatisticId { object_type: *object_type, statistic: 0 };
            attributes.text(type_attribute(mapping.names), type_text(id, mapping.names).as_bytes());
        }
        attributes.text("service.name", super::SCOPE.as_bytes());
    };
    if mapping.attributes_at == AttributesAt::Point {
        write(0, None);
    }
    for (index, object) in objects.iter().enumerate() {
        write(number(index), Some(object));
    }
    let Some(mut ordering) = table.order(mapping.ids()) else { return Ok(None) };
    while !ordering.step() {}
    ordering.laid_out().record_batch().map(Some).map_err(ColumnsError::arrow("resource attributes"))
}

fn metrics_table(metrics: &[MetricKey], names: &[String], mapping: &SonicMapping) -> Result<RecordBatch, ArrowError> {
    let rows = metrics.len();
    let encoding = match mapping.ids() {
        ParentIds::Plain => encodings::PLAIN,
        ParentIds::Transport => encodings::DELTA,
    };
    let ids = |values: Vec<u16>| -> ArrayRef {
        Arc::new(UInt16Array::from(match mapping.ids() {
            ParentIds::Plain => values,
            ParentIds::Transport => differences(&values),
        }))
    };
    let resources = ids(metrics.iter().map(|metric| metric.resource).collect());
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    let mut add = |name: &str, array: ArrayRef, nullable| {
        fields.push(Field::new(name, array.data_type().clone(), nullable));
        arrays.push(array);
    };
    add(consts::ID, ids((0..rows).map(number).collect()), false);
    let id_field = |array: &ArrayRef| Field::new(consts::ID, array.data_type().clone(), true).with_encoding(encoding);
    let resource = vec![(id_field(&resources), Arc::clone(&resources))];
    add(consts::RESOURCE, structure(resource)?, true);
    let scope_names = DictionaryArray::<UInt8Type>::try_new(
        UInt8Array::from(vec![0; rows]),
        Arc::new(StringArray::from(vec![super::SCOPE])),
    )?;
    let scope_name = Field::new(consts::NAME, scope_names.data_type().clone(), true);
    // Each resource has a scope of its own, since readers tell where a scope ends by its id alone.
    let scope = vec![(id_field(&resources), resources), (scope_name, Arc::new(scope_names) as ArrayRef)];
    add(consts::SCOPE, structure(scope)?, true);
    let sums: Vec<bool> = metrics.iter().map(|metric| metric.is_sum).collect();
    let types = sums.iter().map(|sum| if *sum { MetricType::Sum as u8 } else { MetricType::Gauge as u8 });
    add(consts::METRIC_TYPE, Arc::new(UInt8Array::from_iter_values(types)), false);
    add(consts::NAME, names_column(metrics, names)?, false);
    if sums.contains(&true) {
        let keys: UInt8Array = sums.iter().map(|sum| sum.then_some(0)).collect();
        let temporality = DictionaryArray::<UInt8Type>::try_new(keys, Arc::new(Int32Array::from(vec![CUMULATIVE])))?;
        add(consts::AGGREGATION_TEMPORALITY, Arc::new(temporality), true);
        let monotonic: BooleanArray = sums.iter().map(|sum| sum.then_some(true)).collect();
        add(consts::IS_MONOTONIC, Arc::new(monotonic), true);
    }
    if let Some(id) = fields.first_mut() {
        *id = id.clone().with_encoding(encoding);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
}

fn structure(columns: Vec<(Field, ArrayRef)>) -> Result<ArrayRef, ArrowError> {
    let (fields, arrays): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    Ok(Arc::new(StructArray::try_new(Fields::from(fields), arrays, None)?))
}

/// The first value, then what each one is above that before it. Values must ascend.
fn differences(values: &[u16]) -> Vec<u16> {
    let mut before = 0;
    values.iter().map(|value| value.saturating_sub(std::mem::replace(&mut before, *value))).collect()
}

/// Names of the metrics, as a dictionary with the narrowest keys that suffice.
fn names_column(metrics: &[MetricKey], names: &[String]) -> Result<ArrayRef, ArrowError> {
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values(names));
    let keys = metrics.iter().map(|metric| metric.name);
    if names.len() <= 1 << 8 {
        #[allow(clippy::cast_possible_truncation, reason = "there are no more than 256")]
        let keys = UInt8Array::from_iter_values(keys.map(|key| key as u8));
        return Ok(Arc::new(DictionaryArray::<UInt8Type>::try_new(keys, texts)?));
    }
    Ok(Arc::new(DictionaryArray::<UInt16Type>::try_new(UInt16Array::from_iter_values(keys), texts)?))
}
