//! What sender and sink of OTLP/HTTP have to agree on (OpenTelemetry protocol specification 1.x, section OTLP/HTTP).

/// Type of all bodies.
pub(crate) const CONTENT_TYPE_PROTOBUF: &str = "application/x-protobuf";
/// Where metrics go.
pub(crate) const METRICS_PATH: &str = "/v1/metrics";

/// `google.rpc.Status`: the body of an answer that refuses, and the details of a gRPC status.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct RpcStatus {
    /// The code of gRPC.
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    /// For people.
    #[prost(string, tag = "2")]
    pub(crate) message: String,
    /// For programs.
    #[prost(message, repeated, tag = "3")]
    pub(crate) details: Vec<Any>,
}

/// `google.protobuf.Any`: a message and the name of its type.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Any {
    /// Which message.
    #[prost(string, tag = "1")]
    pub(crate) type_url: String,
    /// Its encoding.
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
}
