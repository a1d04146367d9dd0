//! The answer to a successful OTLP request: how much of it was really taken.

use prost::Message;

use super::{Outcome, clip};

/// `Export{Logs,Metrics,Trace}ServiceResponse`: the three have the same fields under the same numbers.
#[derive(Clone, PartialEq, Message)]
struct Response {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

/// `Export{Logs,Metrics,Trace}PartialSuccess`.
#[derive(Clone, PartialEq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// Reads the protobuf body of a success. A body that cannot be read is a success with a warning: the status has said that
/// the data was taken, and sending it again would double it.
#[must_use]
pub fn read(body: &[u8]) -> Outcome {
    let partial = match Response::decode(body) {
        Ok(response) => response.partial_success.unwrap_or_default(),
        Err(error) => return Outcome::unreadable(format!("answer cannot be read: {error}")),
    };
    let message = clip(&partial.error_message);
    match u64::try_from(partial.rejected) {
        Ok(0) if message.is_empty() => Outcome::OK,
        Ok(0) => Outcome::unreadable(format!("server warns: {message}")),
        Ok(rejected) => {
            Outcome::Accepted { rejected, warning: Some(format!("server rejected {rejected} items: {message}")) }
        }
        Err(_) => Outcome::unreadable(format!("server rejected {} items: {message}", partial.rejected)),
    }
}
