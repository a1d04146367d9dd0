//! Datagrams from a UDP socket.

use std::rc::Rc;

use super::shared::Shared;
use crate::ingest::{Datagram, UdpIngress, receive_datagrams};

/// Receives until the intake stops.
pub(super) async fn receive(udp: UdpIngress, shared: Rc<Shared>) {
    let UdpIngress { socket, granted, drops } = udp;
    receive_datagrams(socket, granted, drops, &shared.intake, |received| match received {
        Datagram::Received { truncated: true, .. } => shared.totals.borrow_mut().truncated_datagrams += 1,
        Datagram::Received { bytes, peer, time_unix_nano, .. } => shared.take_datagram(bytes, peer, time_unix_nano),
        Datagram::Failed => shared.totals.borrow_mut().receive_errors += 1,
    })
    .await;
}
