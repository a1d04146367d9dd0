//! The messages in the stream of one connection.

use std::net::SocketAddr;
use std::rc::Rc;

use catchment_ipfix::stream_message_length;

use super::tcp::Tcp;
use crate::ingest::tcp::{End, Messages, Next, Now};
use crate::ingest::{Intake, Pending, Rates};

/// A TCP connection, which is one transport session: its templates are nothing to any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Connection {
    /// Counted up from 1 for each listener; never used twice.
    pub(super) number: u64,
    /// The exporter.
    pub(super) peer: SocketAddr,
}

/// Where the messages of connections go.
pub(super) trait MessageSink: 'static {
    /// Batches under construction.
    type Pending: Pending;

    /// Holds the connections back when its batch is full or memory is short, and tells them to stop.
    fn intake(&self) -> &Intake<Self::Pending>;

    /// How many messages a source address may send.
    fn rates(&self) -> &Rates;

    /// Takes one whole message, which lies where it was read. It is not to be shed: its sender was let send it.
    fn take_message(&self, connection: Connection, message: &[u8], time_unix_nano: i64);

    /// The connection has ended, and its session with it.
    fn connection_closed(&self, connection: Connection);
}

/// Finds the messages by the lengths in their headers, the only framing that there is (RFC 7011 section 10.4.2).
pub(super) struct Frames<S: MessageSink> {
    tcp: Rc<Tcp<S>>,
    connection: Connection,
    /// Where in the stream the next message begins.
    offset: u64,
}

impl<S: MessageSink> Frames<S> {
    pub(super) fn new(connection: Connection, tcp: Rc<Tcp<S>>) -> Self {
        Self { tcp, connection, offset: 0 }
    }
}

impl<S: MessageSink> Messages for Frames<S> {
    fn next(&mut self, bytes: &[u8], now: Now) -> Next {
        let length = match stream_message_length(bytes) {
            Ok(length) => length,
            Err(fault) => {
                self.tcp.counters.borrow_mut().framing_errors += 1;
                if self.tcp.framing_told.now() {
                    otel_warn!(
                        "ipfix_receiver.tcp.framing_error",
                        peer = %self.connection.peer,
                        offset = self.offset,
                        error = %fault,
                        message = "no IPFIX message begins here, and nothing tells where the next one does; the connection is closed. NetFlow v5 and v9 go over UDP only"
                    );
                }
                return Next::Failed(0);
            }
        };
        match length.and_then(|length| bytes.get(..length)) {
            Some(message) => {
                self.tcp.sink.take_message(self.connection, message, now.time_unix_nano);
                self.offset += message.len() as u64;
                Next::Message(message.len())
            }
            None => {
                if let Some(end) = now.end.filter(|_| !bytes.is_empty()) {
                    self.incomplete(bytes.len(), end);
                }
                Next::NeedMore
            }
        }
    }
}

impl<S: MessageSink> Frames<S> {
    fn incomplete(&self, bytes: usize, end: End) {
        self.tcp.counters.borrow_mut().incomplete_messages += 1;
        otel_debug!(
            "ipfix_receiver.tcp.incomplete_message",
            peer = %self.connection.peer,
            offset = self.offset,
            bytes = bytes,
            by_sender = end == End::Sender
        );
    }
}

impl<S: MessageSink> Drop for Frames<S> {
    fn drop(&mut self) {
        self.tcp.sink.connection_closed(self.connection);
    }
}

#[cfg(test)]
mod tests;
