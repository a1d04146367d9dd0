//! Messages -> record batches.

use otel_arrow_dfe_pdata::OtapArrowRecords;
use otel_arrow_dfe_pdata::encode::record::attributes::{
    AttributesRecordBatchBuilder, AttributesRecordBatchBuilderConstructorHelper,
};
use otel_arrow_dfe_pdata::encode::record::metrics::{MetricsRecordBatchBuilder, SummaryDataPointsRecordBatchBuilder};
use otel_arrow_dfe_pdata::otap::Metrics;
use otel_arrow_dfe_pdata::otlp::attributes::parent_id::ParentId;
use otel_arrow_dfe_pdata::otlp::metrics::MetricType;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::ArrowPayloadType;

use super::*;
use crate::ColumnsError;
use crate::quantile::gauges::append_value;

/// Writes messages as Summary data points, in their order.
///
/// # Errors
/// [`ColumnsError::Otap`] if there are none or more than 65,535, as ids are 16 bits wide; [`ColumnsError::Arrow`] if a
/// table cannot be built.
pub fn encode(messages: &[SketchMessage]) -> Result<OtapArrowRecords, ColumnsError> {
    if messages.is_empty() || messages.len() > usize::from(u16::MAX) {
        let reason = format!("{} sketch messages in a batch, expected 1 to 65535", messages.len());
        return Err(ColumnsError::Otap { table: "metrics", reason });
    }
    let mut metrics = MetricsRecordBatchBuilder::new();
    let mut points = SummaryDataPointsRecordBatchBuilder::new();
    let mut resource_attributes = AttributesRecordBatchBuilder::<u16>::new();
    let mut scope_attributes = AttributesRecordBatchBuilder::<u16>::new();
    let mut attributes = AttributesRecordBatchBuilder::<u32>::new();
    for sketch in SketchType::ALL {
        let text = |text: &str| KeyValue::Text(text.into());
        for (key, value) in [
            (TYPE, text(sketch.name())),
            (ENCODING, text(sketch.encoding())),
            (SCHEMA_VERSION, KeyValue::Int(1)),
            (AGGREGATION_ID, KeyValue::Int(1)),
        ] {
            if messages.iter().any(|message| message.sketch == sketch) {
                resource_attributes.append_parent_id(&resource_of(sketch));
                append(&mut resource_attributes, key, &value);
            }
        }
    }
    // One type of sketch after the other: rows of a resource stand together.
    let mut order: Vec<&SketchMessage> = messages.iter().collect();
    order.sort_by_key(|message| resource_of(message.sketch));
    for (id, message) in (0_u16..).zip(order) {
        metrics.append_id(id);
        metrics.append_metric_type(MetricType::Summary as u8);
        metrics.append_name(message.metric.as_bytes());
        metrics.append_description(b"");
        metrics.append_unit(message.unit.as_bytes());
        metrics.append_aggregation_temporality(None);
        metrics.append_is_monotonic(None);
        metrics.append_scope_schema_url(b"");
        metrics.resource.append_id(Some(resource_of(message.sketch)));
        metrics.resource.append_schema_url(None);
        metrics.resource.append_dropped_attributes_count(0);
        metrics.scope.append_id(Some(id));
        metrics.scope.append_name(Some(SCOPE.as_bytes()));
        metrics.scope.append_version(None);
        metrics.scope.append_dropped_attributes_count(0);
        // Numbers begin at 1: columns of zeros are left out.
        scope_attributes.append_parent_id(&id);
        append(&mut scope_attributes, SERIES_ID, &KeyValue::Int(i64::from(id) + 1));
        for (key, value) in message.series.iter().filter(|(_, value)| *value != KeyValue::Absent) {
            scope_attributes.append_parent_id(&id);
            append(&mut scope_attributes, key, value);
        }
        points.append_id(u32::from(id));
        points.append_parent_id(id);
        points.append_start_time_unix_nano(message.start_unix_nano);
        points.append_time_unix_nano(message.end_unix_nano);
        points.append_count(message.count);
        points.append_sum(message.sum.unwrap_or(0.0));
        points.quantile_values.append(std::iter::empty());
        points.append_flags(0);
        point_attributes(&mut attributes, u32::from(id), message);
    }
    let mut records = OtapArrowRecords::Metrics(Metrics::default());
    let mut set = |table, name: &'static str, batch: Result<_, _>| {
        records.set(table, batch.map_err(ColumnsError::arrow(name))?).map_err(ColumnsError::otap(name))
    };
    set(ArrowPayloadType::UnivariateMetrics, "metrics", metrics.finish())?;
    set(ArrowPayloadType::SummaryDataPoints, "summary data points", points.finish())?;
    set(ArrowPayloadType::ResourceAttrs, "resource attributes", resource_attributes.finish())?;
    set(ArrowPayloadType::ScopeAttrs, "scope attributes", scope_attributes.finish())?;
    set(ArrowPayloadType::SummaryDpAttrs, "summary point attributes", attributes.finish())?;
    Ok(records)
}

const fn resource_of(sketch: SketchType) -> u16 {
    match sketch {
        SketchType::KllDataSketches => 0,
        SketchType::KllAsap => 1,
        SketchType::Run => 2,
    }
}

fn point_attributes(attributes: &mut AttributesRecordBatchBuilder<u32>, id: u32, message: &SketchMessage) {
    let mut put = |key: &str, value: &KeyValue| {
        attributes.append_parent_id(&id);
        append(attributes, key, value);
    };
    let bits = |value: f64| KeyValue::Bytes(value.to_be_bytes().into());
    put(ENVELOPE, &KeyValue::Bytes(message.envelope.as_slice().into()));
    put(WINDOW_START, &KeyValue::Int(message.start_unix_nano.div_euclid(1_000_000)));
    put(WINDOW_END, &KeyValue::Int(message.end_unix_nano.div_euclid(1_000_000)));
    if let Some(identity) = &message.identity {
        put(SOURCE, &KeyValue::Text(identity.source.as_str().into()));
        put(INSTANCE, &KeyValue::Text(format!("{:032x}", identity.instance).into()));
        put(PART, &KeyValue::Int(i64::from(identity.part) + 1));
        put(PARTS, &KeyValue::Int(i64::from(identity.parts)));
        put(SEQUENCE, &KeyValue::Int(identity.sequence.cast_signed()));
    }
    for (key, value) in [(MIN, message.min), (MAX, message.max), (SUM, message.sum)] {
        if let Some(value) = value {
            put(key, &bits(value));
        }
    }
    if let Some((got, expected)) = message.sources {
        put(SOURCES, &KeyValue::Text(format!("{got}/{expected}").into()));
    }
    if message.switched {
        put(SWITCHED, &KeyValue::Bool(true));
    }
    for (reason, count) in message.dropped.iter().filter(|(_, count)| *count > 0) {
        put(&format!("{DROPPED}{reason}"), &KeyValue::Int(count.cast_signed()));
    }
}

/// Appends key and value; the id of the parent has been appended.
fn append<T>(attributes: &mut AttributesRecordBatchBuilder<T>, key: &str, value: &KeyValue)
where
    T: ParentId + AttributesRecordBatchBuilderConstructorHelper,
{
    attributes.append_key(key.as_bytes());
    append_value(&mut attributes.any_values_builder, value);
}
