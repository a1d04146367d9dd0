//! Datagrams from a UDP socket.

use std::rc::Rc;

use tokio::net::UdpSocket;

use super::shared::Shared;
use crate::ingest::{Datagram, receive_datagrams};

/// Receives until the intake stops.
pub(super) async fn receive(socket: UdpSocket, kernel_buffer: usize, shared: Rc<Shared>) {
    receive_datagrams(socket, kernel_buffer, &shared.intake, |received| match received {
        Datagram::Received(bytes, exporter) => shared.take(bytes, Some(exporter)),
        Datagram::Failed => shared.totals.borrow_mut().receive_errors += 1,
    })
    .await;
}
