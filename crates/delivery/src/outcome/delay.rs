//! The delay that a server asks for.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use prost::Message;

/// `google.rpc.Status`, as carried by `grpc-status-details-bin` and by the body of a failed OTLP/HTTP request.
#[derive(Clone, PartialEq, Message)]
pub struct Status {
    /// A gRPC code.
    #[prost(int32, tag = "1")]
    pub code: i32,
    /// For people.
    #[prost(string, tag = "2")]
    pub message: String,
    /// Anything; we look for a RetryInfo.
    #[prost(message, repeated, tag = "3")]
    pub details: Vec<Any>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
pub struct Any {
    /// Names the type of `value`, its part behind the last slash.
    #[prost(string, tag = "1")]
    pub type_url: String,
    /// An encoded message.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
pub struct RetryInfo {
    /// How long to wait at least.
    #[prost(message, optional, tag = "1")]
    pub retry_delay: Option<Span>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, PartialEq, Message)]
pub struct Span {
    /// Seconds; must have the sign of `nanos`.
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    /// Nanoseconds.
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

/// The name of RetryInfo in a type address.
pub const RETRY_INFO: &str = "google.rpc.RetryInfo";

impl Status {
    /// The delay of the first RetryInfo among the details. An absent or negative delay is none at all: "at once".
    #[must_use]
    pub fn retry_delay(&self) -> Option<Duration> {
        let info = self.details.iter().find(|any| any.type_url.rsplit('/').next() == Some(RETRY_INFO))?;
        let span = RetryInfo::decode(info.value.as_slice()).ok()?.retry_delay.unwrap_or_default();
        let seconds = u64::try_from(span.seconds).unwrap_or(0);
        let nanos = if span.seconds < 0 { 0 } else { u32::try_from(span.nanos).unwrap_or(0).min(999_999_999) };
        Some(Duration::new(seconds, nanos))
    }
}

/// Reads the value of `grpc-status-details-bin`: base64 of the standard alphabet, padded or not.
///
/// `None` if it cannot be read: the status itself counts then.
#[must_use]
pub fn status_details(header: &[u8]) -> Option<Status> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    // Several values may have been joined by commas on the way.
    let first = header.split(|&byte| byte == b',').next()?.trim_ascii();
    Status::decode(LENIENT.decode(first).ok()?.as_slice()).ok()
}

/// Reads a Retry-After header (RFC 9110, section 10.2.3): seconds, or a date, of which the time from `now` on is taken.
/// A date in the past is no delay; anything else is `None`.
#[must_use]
pub fn retry_after(header: &[u8], now: SystemTime) -> Option<Duration> {
    let text = std::str::from_utf8(header).ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // Digits only: what does not fit is a very long time.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::from(u32::MAX))));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now).unwrap_or(Duration::ZERO))
}
