//! HTTP status codes by the OTLP specification ("Failures", OTLP/HTTP).

use std::time::SystemTime;

use http::header::{LOCATION, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use prost::Message;

use super::delay::{self, Status};
use super::{Outcome, clip, oversize};

/// What an answer other than 2xx means for the request. `body` is as much of it as was read, decompressed; `now` is what
/// a date in Retry-After is compared with.
///
/// 429, 502, 503 and 504 are sent again, nothing else; Retry-After counts on 429 and 503. 413, and 400 from servers that
/// have no 413, mean that the request is too large. A redirect is not followed: it is the configuration that is wrong.
#[must_use]
pub fn classify(status: StatusCode, headers: &HeaderMap, body: &[u8], now: SystemTime) -> Outcome {
    let said = said(body);
    let text = || format!("HTTP {}: {}", status.as_u16(), clip(&said));
    if status == StatusCode::PAYLOAD_TOO_LARGE {
        return Outcome::Oversize { sizes: oversize::recognise(&said).flatten(), message: text() };
    }
    if status == StatusCode::BAD_REQUEST
        && let Some(sizes) = oversize::recognise(&said)
    {
        return Outcome::Oversize { sizes, message: text() };
    }
    let delay = || headers.get(RETRY_AFTER).and_then(|value| delay::retry_after(value.as_bytes(), now));
    match status.as_u16() {
        429 => Outcome::Retry { delay: delay(), ambiguous: false, message: text() },
        503 => {
            // As with UNAVAILABLE: a proxy that lost its server cannot know what that one did.
            let delay = delay();
            Outcome::Retry { delay, ambiguous: delay.is_none(), message: text() }
        }
        502 | 504 => Outcome::Retry { delay: None, ambiguous: true, message: text() },
        300..=399 => {
            let target = headers.get(LOCATION).and_then(|value| value.to_str().ok()).unwrap_or("nowhere");
            Outcome::permanent(format!("HTTP {}: redirects to {} are not followed", status.as_u16(), clip(target)))
        }
        _ => Outcome::permanent(text()),
    }
}

/// The message of a failure: the specification's `google.rpc.Status`, or the text that other servers send.
fn said(body: &[u8]) -> String {
    match Status::decode(body) {
        Ok(status) if !status.message.is_empty() => status.message,
        _ => String::from_utf8_lossy(&body[..body.len().min(super::MESSAGE_LIMIT)]).into_owned(),
    }
}
