//! Status codes of OTAP's `BatchStatus`.

use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::{BatchStatus, StatusCode};

use super::{Outcome, clip, oversize};

/// What a status means for its batch, and whether the stream is still of use behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classified {
    /// For the batch.
    pub outcome: Outcome,
    /// The state of the server's decoder is unknown: the next batch needs a new stream. So it is after every refusal.
    pub reset: bool,
}

/// Reads a status. A code that is not in the protocol is permanent for its batch.
#[must_use]
pub fn classify(status: &BatchStatus) -> Classified {
    let code = StatusCode::try_from(status.status_code);
    let said = clip(&status.status_message);
    let text = || match code {
        Ok(code) => format!("{}: {said}", code.as_str_name()),
        Err(_) => format!("status code {}, which OTAP does not have: {said}", status.status_code),
    };
    let retry = |ambiguous| Outcome::Retry { delay: None, ambiguous, message: text() };
    let outcome = match code {
        Ok(StatusCode::Ok) if said.is_empty() => Outcome::OK,
        Ok(StatusCode::Ok) => Outcome::unreadable(format!("server warns: {said}")),
        Ok(StatusCode::ResourceExhausted | StatusCode::InvalidArgument)
            if let Some(sizes) = oversize::recognise(&status.status_message) =>
        {
            Outcome::Oversize { sizes, message: text() }
        }
        Ok(StatusCode::Canceled | StatusCode::DeadlineExceeded) => retry(true),
        Ok(StatusCode::ResourceExhausted | StatusCode::Aborted | StatusCode::Unavailable) => retry(false),
        _ => Outcome::permanent(text()),
    };
    // Whether the server read a batch before it refused it, and so knows its dictionaries, is not in the protocol.
    let reset = !matches!(outcome, Outcome::Accepted { .. });
    Classified { outcome, reset }
}
