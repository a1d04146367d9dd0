//! Results of windows as points of exponential histograms.

use std::sync::Arc;

use arrow::array::{Array, Float64Array, RecordBatch};
use arrow::datatypes::{Field, Schema};
use arrow::error::ArrowError;
use otel_arrow_dfe_pdata::otlp::metrics::MetricType;
use otel_arrow_dfe_pdata::schema::consts;

use super::gauges::{Results, WindowResult, append_key};

/// Counts of the observations of a window by their magnitude (OTLP, `ExponentialHistogramDataPoint`).
#[derive(Debug, Clone, Copy)]
pub struct ExponentialPoint<'a> {
    /// Observations: the sum of all buckets and of `zero_count`.
    pub count: u64,
    /// Their sum.
    pub sum: Option<f64>,
    /// The smallest.
    pub min: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
    /// Buckets grow by factors of `2^(2^-scale)`.
    pub scale: i32,
    /// Observations that are zero.
    pub zero_count: u64,
    /// Index of the first bucket of positive values, and the counts from there on.
    pub positive: (i32, &'a [u64]),
    /// The same of negative values, by their absolute values.
    pub negative: (i32, &'a [u64]),
}

impl Results {
    /// Writes a result as one point of the exponential histogram `<name>`, of delta temporality, and its statistics as
    /// gauges. The quantiles of the result are not looked at.
    pub fn push_exponential(&mut self, result: &WindowResult<'_>, point: &ExponentialPoint<'_>) {
        let metric = self.metric(MetricType::ExponentialHistogram, result.name.to_owned(), result.unit);
        let table = &mut self.exponentials;
        table.append_id(self.exponential_rows);
        table.append_parent_id(metric);
        table.append_start_time_unix_nano(result.start_unix_nano);
        table.append_time_unix_nano(result.end_unix_nano);
        table.append_count(point.count);
        for (column, value) in self.exponential_moments.iter_mut().zip([point.sum, point.min, point.max]) {
            column.push(value);
        }
        // Their columns are made in `exponential_table`.
        table.append_sum(None);
        table.append_min(None);
        table.append_max(None);
        table.append_scale(point.scale);
        table.append_zero_count(point.zero_count);
        table.append_zero_threshold(0.0);
        table.append_flags(0);
        for (builder, (offset, counts)) in
            [(&mut table.positive, point.positive), (&mut table.negative, point.negative)]
        {
            builder.append(Some((offset, counts.iter().copied())));
        }
        append_key(&mut self.exponential_attributes, self.exponential_rows, result);
        self.exponential_rows += 1;
        self.push_statistics(result);
    }

    /// The table of the points. The builder of pdata leaves out a column of nothing but zeros, which reads back as unknown
    /// where a zero is not the default: sum, minimum and maximum get their columns here.
    pub(super) fn exponential_table(&mut self) -> Result<RecordBatch, ArrowError> {
        let table = self.exponentials.finish()?;
        let (schema, mut columns, _) = table.into_parts();
        let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
        let names = [consts::HISTOGRAM_SUM, consts::HISTOGRAM_MIN, consts::HISTOGRAM_MAX];
        for (name, values) in names.into_iter().zip(&mut self.exponential_moments) {
            let array = Arc::new(Float64Array::from(std::mem::take(values)));
            let field = Arc::new(Field::new(name, array.data_type().clone(), true));
            match fields.iter().position(|field| field.name() == name) {
                Some(at) => (fields[at], columns[at]) = (field, array),
                None => {
                    fields.push(field);
                    columns.push(array);
                }
            }
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
    }
}

#[cfg(test)]
mod tests {
    use otel_arrow_dfe_pdata::proto::opentelemetry::collector::metrics::v1::ExportMetricsServiceRequest;
    use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::exponential_histogram_data_point::Buckets;
    use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::{
        AggregationTemporality, ExponentialHistogramDataPoint, metric,
    };
    use otel_arrow_dfe_pdata::{OtapArrowRecords, OtlpProtoBytes, TryIntoWithOptions};
    use prost::Message;

    use super::*;
    use crate::quantile::KeyValue;

    fn result<'a>(key: Option<&'a [KeyValue]>, group_by: &'a [crate::quantile::AttributePath]) -> WindowResult<'a> {
        WindowResult {
            name: "t",
            unit: "ms",
            group_by,
            key,
            start_unix_nano: 10,
            end_unix_nano: 20,
            quantiles: &[],
            statistics: &[("max", 9.0)],
            exact: true,
        }
    }

    fn otlp(records: OtapArrowRecords) -> ExportMetricsServiceRequest {
        let request: OtlpProtoBytes = records.try_into_with_options(Default::default()).expect("converts");
        let OtlpProtoBytes::ExportMetricsRequest(bytes) = request else { panic!("metrics") };
        ExportMetricsServiceRequest::decode(bytes).expect("valid")
    }

    fn points(request: &ExportMetricsServiceRequest) -> Vec<ExponentialHistogramDataPoint> {
        let metrics = request.resource_metrics.iter().flat_map(|r| &r.scope_metrics).flat_map(|s| &s.metrics);
        let mut all = Vec::new();
        for metric in metrics {
            if let Some(metric::Data::ExponentialHistogram(data)) = &metric.data {
                assert_eq!((metric.name.as_str(), metric.unit.as_str()), ("t", "ms"));
                assert_eq!(data.aggregation_temporality, AggregationTemporality::Delta as i32);
                all.extend(data.data_points.iter().cloned());
            }
        }
        all
    }

    /// What was written is what OTLP says after the conversion, whether a side has buckets or none, beside statistics.
    #[test]
    fn points_survive_the_conversion() {
        let group_by = ["g".parse().expect("a path")];
        let key = [KeyValue::Text("a".into())];
        let both = ExponentialPoint {
            count: 12,
            sum: Some(-3.5),
            min: Some(-8.0),
            max: Some(4.0),
            scale: -1,
            zero_count: 2,
            positive: (-3, &[1, 0, 4]),
            negative: (2, &[5]),
        };
        let zeros = ExponentialPoint {
            count: 7,
            sum: Some(0.0),
            min: Some(0.0),
            max: Some(0.0),
            scale: 8,
            zero_count: 7,
            positive: (0, &[]),
            negative: (0, &[]),
        };
        let unknown = ExponentialPoint { sum: None, min: None, max: None, ..both };
        for written in [&[both, zeros][..], &[zeros][..], &[both][..], &[unknown, zeros][..], &[unknown][..]] {
            let mut results = Results::new();
            for point in written {
                results.push_exponential(&result(Some(&key), &group_by), point);
            }
            assert_eq!(results.points() as usize, written.len() * 2, "a histogram and a maximum each");
            let records = results.finish().expect("built").expect("not empty");
            assert_eq!(records.num_items(), written.len() * 2);
            let read = points(&otlp(records));
            assert_eq!(read.len(), written.len());
            for (read, written) in read.iter().zip(written) {
                assert_eq!((read.start_time_unix_nano, read.time_unix_nano), (10, 20));
                assert_eq!(
                    (read.count, read.sum, read.min, read.max),
                    (written.count, written.sum, written.min, written.max)
                );
                assert_eq!((read.scale, read.zero_count, read.flags), (written.scale, written.zero_count, 0));
                let side = |buckets: &Option<Buckets>| {
                    buckets.as_ref().map(|buckets| (buckets.offset, buckets.bucket_counts.clone())).unwrap_or_default()
                };
                assert_eq!(side(&read.positive), (written.positive.0, written.positive.1.to_vec()));
                assert_eq!(side(&read.negative), (written.negative.0, written.negative.1.to_vec()));
                assert_eq!(read.attributes.len(), 1);
                assert_eq!(read.attributes[0].key, "g");
            }
        }
    }

    /// A series that is not exact says so on its histogram, and nowhere else is there a word.
    #[test]
    fn points_say_that_they_are_not_exact() {
        let point = ExponentialPoint {
            count: 1,
            sum: None,
            min: None,
            max: None,
            scale: 0,
            zero_count: 1,
            positive: (0, &[]),
            negative: (0, &[]),
        };
        let mut results = Results::new();
        results.push_exponential(&WindowResult { exact: false, ..result(Some(&[]), &[]) }, &point);
        results.push_exponential(&result(Some(&[]), &[]), &point);
        let records = results.finish().expect("built").expect("not empty");
        let read = points(&otlp(records));
        let keys: Vec<Vec<&str>> = read
            .iter()
            .map(|point| point.attributes.iter().map(|attribute| attribute.key.as_str()).collect())
            .collect();
        assert_eq!(keys, [vec!["quantile.exact"], vec![]]);
    }
}
