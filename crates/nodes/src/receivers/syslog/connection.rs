//! The messages in the stream of one connection.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use catchment_columns::syslog::{Receipt, Source};
use catchment_syslog::{Framer, FramerOptions, FramingError, Step};

use super::shared::Shared;
use crate::ingest::UnderPressure;
use crate::ingest::tcp::{End, Messages, Next, Now};

/// Finds the frames and hands on the messages in them.
pub(super) struct Frames {
    shared: Rc<Shared>,
    framer: Framer,
    peer: SocketAddr,
    source: Arc<Source>,
    /// A framing error has been told.
    warned: bool,
}

impl Frames {
    pub(super) fn new(peer: SocketAddr, source: Arc<Source>, shared: Rc<Shared>, options: FramerOptions) -> Self {
        Self { shared, framer: Framer::new(options), peer, source, warned: false }
    }

    /// Counts an error; tells the first one of each connection.
    fn framing_error(&mut self, error: &FramingError) {
        {
            let mut counters = self.shared.counters.borrow_mut();
            match error {
                FramingError::StrayDelimiter { .. } => counters.stray_delimiters += 1,
                FramingError::InvalidLength { .. } => counters.invalid_lengths += 1,
                FramingError::UnexpectedEnd { .. } => counters.unexpected_ends += 1,
            }
        }
        if !std::mem::replace(&mut self.warned, true) {
            otel_warn!("syslog_receiver.tcp.framing_error", peer = %self.peer, error = %error);
        }
    }
}

impl Messages for Frames {
    fn next(&mut self, bytes: &[u8], now: Now) -> Next {
        let (end, sender) = (now.end.is_some(), self.peer.ip());
        let receipt = Receipt { time_unix_nano: now.time_unix_nano, truncated: now.end == Some(End::Cut) };
        let skipped =
            if now.unlimited { self.shared.skip_dropped(&mut self.framer, bytes, end, sender, receipt) } else { None };
        let (dropped, step, threshold) = match skipped {
            Some((dropped, step, threshold)) => (dropped, step, Some(threshold)),
            None => (0, self.framer.next(bytes, end), None),
        };
        match step {
            Step::Frame { message, consumed, truncated } => {
                let receipt = Receipt { truncated: truncated || receipt.truncated, ..receipt };
                match threshold {
                    Some(threshold) => self.shared.take_kept(message, &self.source, receipt, threshold),
                    None => {
                        let source = || &self.source;
                        self.shared.take(message, Some(sender), source, receipt, UnderPressure::Keep);
                    }
                }
                Next::Message(dropped + consumed)
            }
            Step::Skip { consumed, error } => {
                if let Some(error) = error {
                    self.framing_error(&error);
                }
                if dropped > 0 { Next::Message(dropped + consumed) } else { Next::Skip(consumed) }
            }
            Step::NeedMore if dropped > 0 => Next::Message(dropped),
            Step::NeedMore => Next::NeedMore,
            Step::Error { error, consumed } => {
                self.framing_error(&error);
                Next::Failed(dropped + consumed)
            }
        }
    }
}

#[cfg(test)]
mod tests;
