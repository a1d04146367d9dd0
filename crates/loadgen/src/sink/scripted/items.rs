//! Requests of OTLP, whatever they came over, and the items in them.

use bytes::Bytes;
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::logs::v1::{
    ExportLogsPartialSuccess, ExportLogsServiceRequest, ExportLogsServiceResponse,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use otel_arrow_dfe_pdata::proto::opentelemetry::common::v1::{KeyValue, any_value::Value};
use otel_arrow_dfe_pdata::proto::opentelemetry::metrics::v1::metric::Data as Points;
use prost::{DecodeError, Message as _};
use tonic::Status;

use crate::sink::ledger::{Keyed, OrderOptions, RequestItems};
use crate::sink::script::Signal;
use crate::sink::services::Receiver;

/// A request of OTLP.
#[derive(Debug)]
pub(super) enum Data {
    Logs(ExportLogsServiceRequest),
    Metrics(ExportMetricsServiceRequest),
    Traces(ExportTraceServiceRequest),
}

impl Data {
    pub(super) fn decode(signal: Signal, bytes: Bytes) -> Result<Self, DecodeError> {
        Ok(match signal {
            Signal::Logs => Self::Logs(ExportLogsServiceRequest::decode(bytes)?),
            Signal::Metrics => Self::Metrics(ExportMetricsServiceRequest::decode(bytes)?),
            Signal::Traces => Self::Traces(ExportTraceServiceRequest::decode(bytes)?),
        })
    }

    /// Counts and records the items as a sink without a script does.
    pub(super) fn store(self, receiver: &Receiver) -> Result<(), Status> {
        match self {
            Self::Logs(request) => receiver.logs(request),
            Self::Metrics(request) => receiver.metrics(request),
            Self::Traces(request) => {
                receiver.traces(request);
                Ok(())
            }
        }
    }

    /// All items in order, with the key and number of those that have both.
    pub(super) fn items(&self, order: &OrderOptions) -> Vec<Option<Keyed>> {
        let mut items = Vec::new();
        let mut add = |attributes: &[KeyValue]| items.push(keyed(attributes, order));
        match self {
            Self::Logs(request) => {
                let scopes = request.resource_logs.iter().flat_map(|resource| &resource.scope_logs);
                scopes.flat_map(|scope| &scope.log_records).for_each(|item| add(&item.attributes));
            }
            Self::Traces(request) => {
                let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
                scopes.flat_map(|scope| &scope.spans).for_each(|item| add(&item.attributes));
            }
            Self::Metrics(request) => {
                let scopes = request.resource_metrics.iter().flat_map(|resource| &resource.scope_metrics);
                for data in scopes.flat_map(|scope| &scope.metrics).filter_map(|metric| metric.data.as_ref()) {
                    match data {
                        Points::Gauge(data) => data.data_points.iter().for_each(|item| add(&item.attributes)),
                        Points::Sum(data) => data.data_points.iter().for_each(|item| add(&item.attributes)),
                        Points::Histogram(data) => data.data_points.iter().for_each(|item| add(&item.attributes)),
                        Points::ExponentialHistogram(data) => {
                            data.data_points.iter().for_each(|item| add(&item.attributes));
                        }
                        Points::Summary(data) => data.data_points.iter().for_each(|item| add(&item.attributes)),
                    }
                }
            }
        }
        items
    }

    /// Leaves only the first so many items.
    pub(super) fn keep_first(&mut self, mut left: usize) {
        let left = &mut left;
        match self {
            Self::Logs(request) => {
                let scopes = request.resource_logs.iter_mut().flat_map(|resource| &mut resource.scope_logs);
                scopes.for_each(|scope| keep(&mut scope.log_records, left));
            }
            Self::Traces(request) => {
                let scopes = request.resource_spans.iter_mut().flat_map(|resource| &mut resource.scope_spans);
                scopes.for_each(|scope| keep(&mut scope.spans, left));
            }
            Self::Metrics(request) => {
                let scopes = request.resource_metrics.iter_mut().flat_map(|resource| &mut resource.scope_metrics);
                for data in scopes.flat_map(|scope| &mut scope.metrics).filter_map(|metric| metric.data.as_mut()) {
                    match data {
                        Points::Gauge(data) => keep(&mut data.data_points, left),
                        Points::Sum(data) => keep(&mut data.data_points, left),
                        Points::Histogram(data) => keep(&mut data.data_points, left),
                        Points::ExponentialHistogram(data) => keep(&mut data.data_points, left),
                        Points::Summary(data) => keep(&mut data.data_points, left),
                    }
                }
            }
        }
    }
}

fn keep<T>(items: &mut Vec<T>, left: &mut usize) {
    items.truncate(*left);
    *left -= items.len();
}

fn keyed(attributes: &[KeyValue], order: &OrderOptions) -> Option<Keyed> {
    let value = |name: &str| attributes.iter().find(|attribute| attribute.key == name)?.value.as_ref()?.value.as_ref();
    let key = match value(&order.key_attribute)? {
        Value::StringValue(key) => key.clone(),
        Value::IntValue(key) => key.to_string(),
        _ => return None,
    };
    let Value::IntValue(number) = value(&order.sequence_attribute)? else {
        return None;
    };
    Some(Keyed { key, number: u64::try_from(*number).ok()? })
}

/// What the ledger wants to know of some items.
pub(super) fn of_request(items: Vec<Option<Keyed>>) -> RequestItems {
    let count = items.len() as u64;
    let keyed: Vec<_> = items.into_iter().flatten().collect();
    let without_key = count - keyed.len() as u64;
    RequestItems { keyed, without_key }
}

/// A response of OTLP, with a partial success if there is anything to say.
pub(super) fn response(signal: Signal, partial: Option<(u64, &str)>) -> Vec<u8> {
    let partial = partial.map(|(rejected, message)| (i64::try_from(rejected).unwrap_or(i64::MAX), message.to_owned()));
    match signal {
        Signal::Logs => ExportLogsServiceResponse {
            partial_success: partial.map(|(rejected_log_records, error_message)| ExportLogsPartialSuccess {
                rejected_log_records,
                error_message,
            }),
        }
        .encode_to_vec(),
        Signal::Metrics => ExportMetricsServiceResponse {
            partial_success: partial.map(|(rejected_data_points, error_message)| ExportMetricsPartialSuccess {
                rejected_data_points,
                error_message,
            }),
        }
        .encode_to_vec(),
        Signal::Traces => ExportTraceServiceResponse {
            partial_success: partial
                .map(|(rejected_spans, error_message)| ExportTracePartialSuccess { rejected_spans, error_message }),
        }
        .encode_to_vec(),
    }
}
