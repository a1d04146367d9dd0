//! Messages from a UDP socket: one datagram, one message.

use std::rc::Rc;

use catchment_columns::syslog::Receipt;
use catchment_syslog::framing::datagram;

use super::senders::Senders;
use super::shared::Shared;
use crate::ingest::{Datagram, UdpIngress, receive_datagrams};

/// Receives until the intake stops.
pub(super) async fn receive(udp: UdpIngress, senders: Senders, shared: Rc<Shared>) {
    let UdpIngress { socket, granted, drops } = udp;
    receive_datagrams(socket, granted, drops, &shared.intake, |received| match received {
        Datagram::Received { bytes, peer, truncated, time_unix_nano } => {
            shared.take_datagram(datagram(bytes), peer, &senders, Receipt { time_unix_nano, truncated });
        }
        Datagram::Failed => shared.counters.borrow_mut().receive_errors += 1,
    })
    .await;
}
