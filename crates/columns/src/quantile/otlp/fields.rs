//! Field numbers of opentelemetry-proto 1.x, of what is looked at.

/// Resource of `ResourceMetrics`, `ResourceLogs`; scope of `ScopeMetrics`, `ScopeLogs`; content of a request.
pub(in crate::quantile) const FIRST: u32 = 1;
/// Scopes of a resource; metrics and log records of a scope.
pub(in crate::quantile) const CHILDREN: u32 = 2;

pub(in crate::quantile) const RESOURCE_ATTRIBUTES: u32 = 1;
pub(in crate::quantile) const SCOPE_ATTRIBUTES: u32 = 3;

pub(in crate::quantile) const METRIC_NAME: u32 = 1;
pub(in crate::quantile) const METRIC_UNIT: u32 = 3;
pub(in crate::quantile) const METRIC_GAUGE: u32 = 5;
pub(in crate::quantile) const METRIC_SUM: u32 = 7;
pub(in crate::quantile) const METRIC_HISTOGRAM: u32 = 9;
pub(in crate::quantile) const METRIC_EXPONENTIAL_HISTOGRAM: u32 = 10;
pub(in crate::quantile) const METRIC_SUMMARY: u32 = 11;

pub(in crate::quantile) const DATA_POINTS: u32 = 1;
pub(in crate::quantile) const SUM_TEMPORALITY: u32 = 2;

pub(in crate::quantile) const POINT_START: u32 = 2;
pub(in crate::quantile) const POINT_TIME: u32 = 3;
pub(in crate::quantile) const POINT_DOUBLE: u32 = 4;
/// Of a Summary point.
pub(in crate::quantile) const SUMMARY_COUNT: u32 = 4;
pub(in crate::quantile) const POINT_INT: u32 = 6;
pub(in crate::quantile) const POINT_ATTRIBUTES: u32 = 7;
pub(in crate::quantile) const POINT_FLAGS: u32 = 8;

pub(in crate::quantile) const LOG_TIME: u32 = 1;
pub(in crate::quantile) const LOG_OBSERVED_TIME: u32 = 11;
pub(in crate::quantile) const LOG_ATTRIBUTES: u32 = 6;

pub(in crate::quantile) const KEY: u32 = 1;
pub(in crate::quantile) const VALUE: u32 = 2;

pub(in crate::quantile) const STRING: u32 = 1;
pub(in crate::quantile) const BOOL: u32 = 2;
pub(in crate::quantile) const INT: u32 = 3;
pub(in crate::quantile) const DOUBLE: u32 = 4;
pub(in crate::quantile) const ARRAY: u32 = 5;
pub(in crate::quantile) const KVLIST: u32 = 6;
pub(in crate::quantile) const BYTES: u32 = 7;
/// Values of `ArrayValue` and `KeyValueList`.
pub(in crate::quantile) const ELEMENTS: u32 = 1;
