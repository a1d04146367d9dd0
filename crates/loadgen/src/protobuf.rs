//! What sender and sink of OTLP/HTTP have to agree on (OpenTelemetry protocol specification 1.x, section OTLP/HTTP).

/// Type of all bodies.
pub(crate) const CONTENT_TYPE_PROTOBUF: &str = "application/x-protobuf";
/// Where metrics go.
pub(crate) const METRICS_PATH: &str = "/v1/metrics";

/// The part of `google.rpc.Status` that is read: the body of an answer that refuses.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct RpcStatus {
    /// For people.
    #[prost(string, tag = "2")]
    pub(crate) message: String,
}
