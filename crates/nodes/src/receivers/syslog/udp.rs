//! Messages from a UDP socket: one datagram, one message.

use std::rc::Rc;

use catchment_columns::syslog::{Receipt, Transport};
use catchment_syslog::framing::datagram;
use tokio::net::UdpSocket;

use super::shared::Shared;
use crate::ingest::{Datagram, receive_datagrams};
use crate::time::now_unix_nano;

/// Receives until the intake stops.
pub(super) async fn receive(socket: UdpSocket, kernel_buffer: usize, shared: Rc<Shared>) {
    receive_datagrams(socket, kernel_buffer, &shared.intake, |received| match received {
        Datagram::Received(bytes, peer) => {
            let source = shared.source(Some(peer), Transport::Udp);
            shared.take(datagram(bytes), &source, Receipt { time_unix_nano: now_unix_nano(), truncated: false });
        }
        Datagram::Failed => shared.counters.borrow_mut().receive_errors += 1,
    })
    .await;
}
