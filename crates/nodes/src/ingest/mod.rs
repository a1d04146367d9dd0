//! What both receivers share: sockets and connections, waiting input, its emission by decode jobs, and the receiver's
//! life.
//!
//! Sources (sockets, connections, replayed files) are local tasks that put what they read into one [`Intake`], so that
//! all connections of a core share their batches. The receiver's own task ([`run`]) takes batches out, decodes them in
//! steps with pauses for its neighbours, sends them on and settles acknowledgements, and stays open to control
//! messages all the while.

mod books;
mod emit;
mod in_flight;
mod intake;
mod kernel;
mod life;
mod now;
mod rates;
mod recent;
mod replay;
mod sampling;
mod seldom;
mod sockets;
mod steer;
pub(crate) mod tcp;
mod udp;

pub(crate) use books::Books;
pub(crate) use intake::{BatchConfig, Intake, MaxInFlight, Payload, Pending, UnderPressure, merge};
pub(crate) use kernel::KernelDrops;
pub(crate) use life::{Report, run};
pub(crate) use now::now;
pub(crate) use rates::Rates;
pub(crate) use recent::Recent;
pub(crate) use replay::{ReplayConfig, Replayed, check_cores, open as open_replay, replay};
pub(crate) use sampling::{Added, Sampling, SamplingReports};
pub(crate) use seldom::Seldom;
pub(crate) use sockets::{Claim, ReceiveBuffer, UdpIngress, tcp_listener, udp_socket};
pub(crate) use steer::by_source_address as steer_by_source_address;
pub(crate) use udp::{Datagram, receive_datagrams};

/// What the tests of receivers share.
#[cfg(test)]
pub(crate) mod testing {
    pub(crate) use super::intake::tests::Fake;
}
