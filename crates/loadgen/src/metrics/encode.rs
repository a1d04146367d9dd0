//! Points to requests.

use std::ops::Range;

use bytes::Bytes;
use otel_arrow_dfe_pdata::Producer;
use otel_arrow_dfe_pdata::encode::encode_metrics_otap_batch;
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::{
    AnyValue, InstrumentationScope, KeyValue, any_value::Value,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::{
    Gauge, Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric::Data, number_data_point,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::resource::v1::Resource;
use prost::Message as _;

use super::{
    Corpus, MAX_REQUEST_BYTES, METRIC_NAME, MetricsError, MetricsOptions, MetricsProtocol, MetricsShape, SERIES_KEYS,
};

/// Points of a batch of OTAP when each has a metric.
const MOST_OF_OTAP: usize = 65_535;
/// Attributes of points of [`MetricsShape::MetricPerPoint`] beside those of the series.
const FURTHER_ATTRIBUTES: [(&str, &str); 4] = [
    ("cloud.region", "eu-central-01"),
    ("k8s.namespace.name", "billing"),
    ("deployment.env.name", "stable"),
    ("network.transport", "tcp-ipv6"),
];

/// An encoded request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Body of HTTP, or message of gRPC without its prefix.
    pub body: Bytes,
    /// Points in it.
    pub points: u64,
}

/// A corpus, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requests {
    pub(super) options: MetricsOptions,
    /// In the order of the corpus. Over OTAP those of a stream are `connections` apart.
    pub(super) all: Vec<Request>,
}

impl Requests {
    /// Encodes all observations.
    ///
    /// # Errors
    ///
    /// [`MetricsError::Batch`] and [`MetricsError::TooLarge`] if there are too many points in a request, and
    /// [`MetricsError::Encode`].
    pub fn encode(corpus: &Corpus, options: &MetricsOptions) -> Result<Self, MetricsError> {
        Self::encode_part(corpus, 0..corpus.count, options)
    }

    /// Encodes observations by their positions. Positions beyond the count of the corpus go on in the same way: one that is
    /// far enough ahead in time lets windows close.
    ///
    /// # Errors
    ///
    /// As those of [`encode`](Self::encode).
    pub fn encode_part(corpus: &Corpus, part: Range<u64>, options: &MetricsOptions) -> Result<Self, MetricsError> {
        let batch = options.batch.get();
        if options.protocol == MetricsProtocol::Otap && batch > MOST_OF_OTAP {
            return Err(MetricsError::Batch { batch, most: MOST_OF_OTAP });
        }
        let series: Vec<Vec<KeyValue>> =
            (0..corpus.series.get()).map(|series| attributes(corpus, series, options.shape)).collect();
        // A stream each.
        let mut producers: Vec<Producer> = (0..options.connections.get()).map(|_| Producer::new()).collect();
        let mut all = Vec::new();
        for first in part.clone().step_by(batch) {
            let indices = first..part.end.min(first.saturating_add(batch as u64));
            let points = indices.end - indices.start;
            let metrics = metrics(corpus, indices, options.shape, &series);
            let body = match options.protocol {
                MetricsProtocol::OtlpHttp | MetricsProtocol::OtlpGrpc => metrics.encode_to_vec(),
                MetricsProtocol::Otap => {
                    let stream = all.len() % producers.len();
                    otap(&mut producers[stream], &metrics)?
                }
            };
            if body.len() > MAX_REQUEST_BYTES {
                return Err(MetricsError::TooLarge { points: batch, bytes: body.len() });
            }
            all.push(Request { body: body.into(), points });
        }
        Ok(Self { options: *options, all })
    }

    /// How many requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is nothing to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Points of all of them.
    #[must_use]
    pub fn points(&self) -> u64 {
        self.all.iter().map(|request| request.points).sum()
    }

    /// Bytes of all bodies.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.all.iter().map(|request| request.body.len() as u64).sum()
    }

    /// Each request, in the order of the corpus.
    pub fn iter(&self) -> impl Iterator<Item = &Request> {
        self.all.iter()
    }
}

fn otap(producer: &mut Producer, metrics: &MetricsData) -> Result<Vec<u8>, MetricsError> {
    let failed = |error: &dyn std::fmt::Display| MetricsError::Encode(error.to_string());
    let mut records = encode_metrics_otap_batch(metrics).map_err(|error| failed(&error))?;
    let batch = producer.produce_bar(&mut records).map_err(|error| failed(&error))?;
    Ok(batch.encode_to_vec())
}

fn attributes(corpus: &Corpus, series: u32, shape: MetricsShape) -> Vec<KeyValue> {
    let values = corpus.series_attributes(series);
    let mut attributes: Vec<KeyValue> =
        SERIES_KEYS.iter().zip(&values).map(|(key, value)| attribute(key, value)).collect();
    if shape == MetricsShape::MetricPerPoint {
        attributes.extend(FURTHER_ATTRIBUTES.iter().map(|(key, value)| attribute(key, value)));
    }
    attributes
}

fn attribute(key: &str, value: &str) -> KeyValue {
    KeyValue { key: key.into(), value: Some(AnyValue { value: Some(Value::StringValue(value.into())) }) }
}

fn metrics(corpus: &Corpus, indices: Range<u64>, shape: MetricsShape, series: &[Vec<KeyValue>]) -> MetricsData {
    let points = indices.map(|index| NumberDataPoint {
        attributes: series[corpus.series_of(index) as usize].clone(),
        time_unix_nano: corpus.time(index),
        value: Some(number_data_point::Value::AsDouble(corpus.value(index))),
        ..NumberDataPoint::default()
    });
    let scope_metrics = match shape {
        MetricsShape::MetricPerPoint => points.map(|point| scope(vec![point])).collect(),
        MetricsShape::SharedMetric => vec![scope(points.collect())],
    };
    let resource =
        Resource { attributes: vec![attribute("bench.source", &corpus.source.to_string())], ..Resource::default() };
    let resource_metrics =
        vec![ResourceMetrics { resource: Some(resource), scope_metrics, ..ResourceMetrics::default() }];
    MetricsData { resource_metrics }
}

fn scope(data_points: Vec<NumberDataPoint>) -> ScopeMetrics {
    let data = Some(Data::Gauge(Gauge { data_points }));
    let metrics = vec![Metric { name: METRIC_NAME.into(), unit: "s".into(), data, ..Metric::default() }];
    let scope = Some(InstrumentationScope { name: "bench".into(), ..InstrumentationScope::default() });
    ScopeMetrics { scope, metrics, ..ScopeMetrics::default() }
}
