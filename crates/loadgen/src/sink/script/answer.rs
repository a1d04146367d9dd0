//! What a client can get for an answer.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Code, Event, Protocol};

/// What a client gets. A step applies only to requests over protocols that can carry its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// Success.
    #[default]
    Ok,
    /// Nothing, for as long as the client waits.
    Never,
    /// A status of gRPC. On a stream of OTAP it ends the stream, and the batch has no status.
    Grpc {
        /// Any number, known or not.
        code: Code,
        /// For people.
        #[serde(default)]
        message: String,
        /// Adds `RetryInfo` with this delay to the details.
        #[serde(default, with = "humantime_serde", skip_serializing_if = "Option::is_none")]
        retry_info: Option<Duration>,
        /// Whether the status comes in the only header block; else head and trailers are two. An open stream of OTAP has
        /// its head already.
        #[serde(default = "yes")]
        trailers_only: bool,
    },
    /// A status of HTTP.
    Http {
        /// From 200 to 599.
        status: u16,
        /// The header of this name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<RetryAfter>,
        /// What the body is.
        #[serde(default)]
        body: HttpBody,
        /// The message in a body that is a status.
        #[serde(default)]
        message: String,
    },
    /// The status of a batch of OTAP; the stream goes on.
    BatchStatus {
        /// Any number, known or not.
        code: Code,
        /// For people.
        #[serde(default)]
        message: String,
    },
    /// Success of OTLP, except for the last so many items, which are not stored. With 0 it is a warning.
    PartialSuccess {
        /// How many; no more than there are.
        rejected: u64,
        /// For people.
        #[serde(default)]
        message: String,
    },
    /// The connection ends, with all that is under way on it.
    Close {
        /// When.
        #[serde(default)]
        at: Moment,
        /// With RST instead of FIN: what the client has not read yet is lost.
        #[serde(default)]
        reset: bool,
    },
    /// The connection takes no more requests. Over HTTP/1.1 it ends after this one.
    Goaway {
        /// Whether this request, and all younger ones, are not served either; else it is answered with success.
        #[serde(default)]
        exclude: bool,
        /// Error code of HTTP/2 (RFC 9113, section 7).
        #[serde(default)]
        code: u32,
    },
    /// RST_STREAM: this request or stream ends.
    ResetStream {
        /// Error code of HTTP/2 (RFC 9113, section 7), such as 7 for REFUSED_STREAM.
        code: u32,
    },
    /// A gRPC answer or stream ends without a status.
    EndStream,
    /// Success, unless the message is too large.
    SizeLimit {
        /// The largest message, compressed and not, in bytes.
        bytes: u64,
        /// Whose words the refusal has. Over HTTP/1.1 it is 413.
        #[serde(default)]
        wording: Wording,
    },
    /// Success, told wrongly.
    Lie(Lie),
}

/// When a connection ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// When the head of the request is there (of a batch of OTAP: its length).
    BeforeBody,
    /// When a part of the body is there.
    DuringBody,
    /// Instead of the answer.
    #[default]
    AfterBody,
}

/// A value of the header Retry-After (RFC 9110, section 10.2.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAfter {
    /// So many seconds.
    Seconds(u64),
    /// The date that is so far away.
    DateIn(#[serde(with = "humantime_serde")] Duration),
    /// As it is, right or not.
    Text(String),
}

/// The body of an HTTP answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpBody {
    /// A `google.rpc.Status` in protobuf.
    #[default]
    Status,
    /// Bytes that are no protobuf, although the type says so.
    Rubbish,
    /// None.
    Empty,
}

/// Whose words a refusal of a large message has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wording {
    /// RESOURCE_EXHAUSTED, as grpc-go says it.
    #[default]
    Go,
    /// OUT_OF_RANGE, as tonic says it.
    Tonic,
}

/// A wrong answer to data that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lie {
    /// OTLP: success with a body that is no protobuf.
    UnreadableBody,
    /// OTAP: a status for a batch that was never sent, then the right one.
    UnknownBatch,
    /// OTAP: the status twice.
    DuplicateStatus,
    /// OTAP: the status comes after that of the next batch, if there is one within half a second.
    OutOfOrder,
}

fn yes() -> bool {
    true
}

impl Answer {
    /// Whether it can be given over `protocol` at `event`.
    #[must_use]
    pub fn fits(&self, protocol: Protocol, event: Event) -> bool {
        if event == Event::Open {
            return protocol == Protocol::Otap && self.fits_opening();
        }
        match self {
            Self::Ok | Self::Never | Self::Close { .. } | Self::SizeLimit { .. } => true,
            Self::Grpc { .. } | Self::ResetStream { .. } | Self::EndStream => protocol != Protocol::OtlpHttp,
            Self::Goaway { exclude, .. } => !exclude || protocol != Protocol::OtlpHttp,
            Self::Http { .. } => protocol == Protocol::OtlpHttp,
            Self::PartialSuccess { .. } | Self::Lie(Lie::UnreadableBody) => protocol != Protocol::Otap,
            Self::BatchStatus { .. } | Self::Lie(_) => protocol == Protocol::Otap,
        }
    }

    fn fits_opening(&self) -> bool {
        match self {
            Self::Ok | Self::Never | Self::Grpc { .. } | Self::Goaway { .. } | Self::ResetStream { .. } => true,
            Self::Close { at, .. } => *at == Moment::BeforeBody,
            _ => false,
        }
    }

    /// Whether the client is told that its data is stored.
    #[must_use]
    pub fn is_success(&self) -> bool {
        match self {
            Self::Ok | Self::PartialSuccess { .. } | Self::SizeLimit { .. } | Self::Lie(_) => true,
            Self::Goaway { exclude, .. } => !exclude,
            Self::BatchStatus { code, .. } => *code == Code::OK,
            Self::Http { status, .. } => (200..300).contains(status),
            // A success of gRPC without a message is none.
            Self::Grpc { .. } | Self::Never | Self::Close { .. } | Self::ResetStream { .. } | Self::EndStream => false,
        }
    }

    /// Whether a client that obeys the protocol gives the data up.
    #[must_use]
    pub fn refuses_for_good(&self, protocol: Protocol) -> bool {
        match self {
            // The end of a stream says nothing of a single batch.
            Self::Grpc { code, .. } => protocol == Protocol::OtlpGrpc && *code != Code::OK && !code.is_retryable(),
            Self::Http { status, .. } => !matches!(status, 200..300 | 429 | 502 | 503 | 504),
            Self::BatchStatus { code, .. } => *code != Code::OK && !code.is_retryable_batch_status(),
            _ => false,
        }
    }

    /// A few words for the report.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Ok => "ok".to_owned(),
            Self::Never => "never".to_owned(),
            Self::Grpc { code, .. } => format!("grpc {code}"),
            Self::Http { status, .. } => format!("http {status}"),
            Self::BatchStatus { code, .. } => format!("batch_status {code}"),
            Self::PartialSuccess { rejected, .. } => format!("partial_success {rejected}"),
            Self::Close { at: Moment::BeforeBody, .. } => "close before_body".to_owned(),
            Self::Close { at: Moment::DuringBody, .. } => "close during_body".to_owned(),
            Self::Close { at: Moment::AfterBody, .. } => "close after_body".to_owned(),
            Self::Goaway { exclude: false, .. } => "goaway".to_owned(),
            Self::Goaway { exclude: true, .. } => "goaway exclude".to_owned(),
            Self::ResetStream { code } => format!("reset_stream {code}"),
            Self::EndStream => "end_stream".to_owned(),
            Self::SizeLimit { bytes, .. } => format!("size_limit {bytes}"),
            Self::Lie(Lie::UnreadableBody) => "lie unreadable_body".to_owned(),
            Self::Lie(Lie::UnknownBatch) => "lie unknown_batch".to_owned(),
            Self::Lie(Lie::DuplicateStatus) => "lie duplicate_status".to_owned(),
            Self::Lie(Lie::OutOfOrder) => "lie out_of_order".to_owned(),
        }
    }

    /// What becomes of a limit on the size for a message with so many bytes on the wire and after decompression; other
    /// answers stay what they are.
    #[must_use]
    pub fn for_size(self, wire_bytes: u64, decoded_bytes: u64, protocol: Protocol) -> Self {
        let Self::SizeLimit { bytes, wording } = self else {
            return self;
        };
        if wire_bytes <= bytes && decoded_bytes <= bytes {
            return Self::Ok;
        }
        if protocol == Protocol::OtlpHttp {
            let message = format!("request body too large: more than {bytes} bytes");
            return Self::Http { status: 413, retry_after: None, body: HttpBody::Status, message };
        }
        let (code, message) = match wording {
            Wording::Go if wire_bytes > bytes => {
                let words = "grpc: received message larger than max";
                (Code::RESOURCE_EXHAUSTED, format!("{words} ({wire_bytes} vs. {bytes})"))
            }
            Wording::Go => {
                let words = "grpc: received message after decompression larger than max";
                (Code::RESOURCE_EXHAUSTED, format!("{words} ({decoded_bytes} vs. {bytes})"))
            }
            Wording::Tonic => {
                let found = if wire_bytes > bytes { wire_bytes } else { decoded_bytes };
                let words = "Error, decoded message length too large";
                (Code::OUT_OF_RANGE, format!("{words}: found {found} bytes, the limit is: {bytes} bytes"))
            }
        };
        Self::Grpc { code, message, retry_info: None, trailers_only: true }
    }
}
