//! gRPC status codes by the OTLP specification ("Failures", OTLP/gRPC).

use std::time::Duration;

use tonic::Code;

use super::{Outcome, ResourceExhausted, clip, oversize};

/// What a status other than OK means for the request.
///
/// `delay` is the RetryInfo, if there was one. UNIMPLEMENTED is permanent here; only who opened a stream can tell whether
/// it is a [`Outcome::Downgrade`].
#[must_use]
pub fn classify(code: Code, message: &str, delay: Option<Duration>, exhausted: ResourceExhausted) -> Outcome {
    let text = || format!("{code:?}: {}", clip(message));
    if matches!(code, Code::ResourceExhausted | Code::OutOfRange)
        && let Some(sizes) = oversize::recognise(message)
    {
        return Outcome::Oversize { sizes, message: text() };
    }
    let retry = |ambiguous| Outcome::Retry { delay, ambiguous, message: text() };
    match code {
        // Also made by proxies on the way that do not know how far the request came.
        Code::Cancelled | Code::DeadlineExceeded | Code::DataLoss => retry(true),
        // A server that says when to come again has not taken it; a proxy that lost its server cannot know.
        Code::Unavailable => retry(delay.is_none()),
        Code::Aborted | Code::OutOfRange => retry(false),
        Code::ResourceExhausted if delay.is_some() || exhausted == ResourceExhausted::Retry => retry(false),
        _ => Outcome::permanent(text()),
    }
}

/// The code that stands for an HTTP status without `grpc-status`, by gRPC's own table ("HTTP to gRPC Status Code Mapping").
#[must_use]
pub fn code_of_http(status: http::StatusCode) -> Code {
    match status.as_u16() {
        400 => Code::Internal,
        401 => Code::Unauthenticated,
        403 => Code::PermissionDenied,
        404 => Code::Unimplemented,
        429 | 502..=504 => Code::Unavailable,
        _ => Code::Unknown,
    }
}
