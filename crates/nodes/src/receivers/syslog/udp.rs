//! Messages from a UDP socket: one datagram, one message.

use std::rc::Rc;

use catchment_columns::syslog::Transport;
use catchment_syslog::framing::datagram;
use tokio::net::UdpSocket;

use super::shared::Shared;
use crate::ingest::{Datagram, receive_datagrams};

/// Receives until the intake stops.
pub(super) async fn receive(socket: UdpSocket, kernel_buffer: usize, shared: Rc<Shared>) {
    receive_datagrams(socket, kernel_buffer, &shared.intake, |received| match received {
        Datagram::Received(bytes, peer) => shared.take(datagram(bytes), Some(peer), Transport::Udp, false),
        Datagram::Failed => shared.counters.borrow_mut().receive_errors += 1,
    })
    .await;
}
