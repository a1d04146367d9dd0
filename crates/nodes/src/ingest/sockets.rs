//! Sockets that say clearly why they cannot be had.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use nix::sys::socket::{setsockopt, sockopt};
use otel_arrow_dfe_config::error::Error as ConfigError;
use otel_arrow_dfe_engine::error::{Error, ReceiverErrorKind};
use otel_arrow_dfe_engine::local::receiver::EffectHandler;
use otel_arrow_dfe_otap::pdata::OtapPdata;
use serde::Deserialize;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use tokio::net::{TcpListener, UdpSocket};

use super::kernel::KernelDrops;
use crate::accounts::NodeName;
use crate::config;

/// Size of a socket's receive buffer in bytes, as asked of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(crate) struct ReceiveBuffer(#[serde(deserialize_with = "config::bytes::deserialize")] pub(crate) usize);

/// What is asked for where nothing is configured: a tenth of a second of a hundred thousand small datagrams a second.
const DEFAULT_RECEIVE_BUFFER: usize = 8 * 1024 * 1024;

impl ReceiveBuffer {
    pub(crate) fn check(self) -> Result<(), ConfigError> {
        config::within("udp.receive_buffer", self.0, 1_024, 1024 * 1024 * 1024)
    }
}

/// A UDP socket and what is known of it.
#[derive(Debug)]
pub(crate) struct UdpIngress {
    pub(crate) socket: UdpSocket,
    /// Bytes of the receive buffer as the kernel counts them, which is twice what payload may need.
    pub(crate) granted: usize,
    pub(crate) drops: Rc<KernelDrops>,
}

/// Who of this process listens where. Every core binds its own socket of one address with SO_REUSEPORT, so the kernel
/// does not object to a second user of the port; this does.
static LISTENERS: Mutex<Option<Listeners>> = Mutex::new(None);

/// By kind (stream or not) and address: the node, and on how many cores it listens.
type Listeners = HashMap<(bool, SocketAddr), (String, usize)>;

fn claim(name: &NodeName, address: SocketAddr, stream: bool) -> Result<(), String> {
    if address.port() == 0 {
        // The kernel picks a port of its own for each socket.
        return Ok(());
    }
    let owner = format!("{}/{}/{}", name.group, name.pipeline, name.node);
    let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
    let listeners = listeners.get_or_insert_with(HashMap::new);
    match listeners.get_mut(&(stream, address)) {
        Some((known, users)) if *users > 0 => {
            if *known != owner {
                return Err(format!("already in use by node {known} of this process"));
            }
            *users += 1;
        }
        _ => {
            probe(address, stream).map_err(|error| error.to_string())?;
            let _ = listeners.insert((stream, address), (owner, 1));
        }
    }
    Ok(())
}

/// Gives an address back when its socket is closed.
#[derive(Debug)]
pub(crate) struct Claim {
    address: SocketAddr,
    stream: bool,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut listeners = LISTENERS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, users)) = listeners.as_mut().and_then(|all| all.get_mut(&(self.stream, self.address))) {
            *users = users.saturating_sub(1);
        }
    }
}

/// Binds the address for a moment without sharing it: another process there is an error now and not a silent split of
/// the traffic later.
fn probe(address: SocketAddr, stream: bool) -> io::Result<()> {
    let (kind, protocol) = if stream { (Type::STREAM, Protocol::TCP) } else { (Type::DGRAM, Protocol::UDP) };
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    // Connections of an earlier run that linger in TIME_WAIT are no user of the port.
    socket.set_reuse_address(stream)?;
    socket.bind(&address.into())?;
    if stream {
        socket.listen(1)?;
    }
    Ok(())
}

fn bind_error(
    effects: &EffectHandler<OtapPdata>,
    what: &str,
    address: SocketAddr,
    reason: impl std::fmt::Display,
) -> Error {
    Error::ReceiverError {
        receiver: effects.receiver_id(),
        kind: ReceiverErrorKind::Connect,
        error: format!("cannot listen on {what} {address}: {reason}"),
        source_detail: String::new(),
    }
}

/// A UDP socket of this core on `address`, with the receive buffer asked for as far as the kernel grants it.
pub(crate) fn udp_socket(
    effects: &EffectHandler<OtapPdata>,
    name: &NodeName,
    address: SocketAddr,
    receive_buffer: Option<ReceiveBuffer>,
) -> Result<(UdpIngress, Claim), Error> {
    claim(name, address, false).map_err(|reason| bind_error(effects, "udp", address, reason))?;
    let held = Claim { address, stream: false };
    let socket = effects.udp_socket(address).map_err(|error| bind_error(effects, "udp", address, error))?;
    let ingress = UdpIngress::new(socket, receive_buffer.map_or(DEFAULT_RECEIVE_BUFFER, |asked| asked.0))
        .map_err(|error| bind_error(effects, "udp", address, error))?;
    if let Some(ReceiveBuffer(asked)) = receive_buffer.filter(|asked| ingress.granted < asked.0) {
        otel_arrow_dfe_telemetry::otel_warn!(
            "ingest.receive_buffer_small",
            address = %address,
            asked_bytes = asked,
            granted_bytes = ingress.granted,
            message = "the kernel grants less than udp.receive_buffer; raise net.core.rmem_max, or give CAP_NET_ADMIN"
        );
    }
    Ok((ingress, held))
}

impl UdpIngress {
    /// Prepares a socket: receive buffer, count of drops.
    pub(crate) fn new(socket: UdpSocket, receive_buffer: usize) -> io::Result<Self> {
        // Beyond net.core.rmem_max only with privileges; without them the kernel gives what it may.
        if setsockopt(&socket, sockopt::RcvBufForce, &receive_buffer).is_err() {
            SockRef::from(&socket).set_recv_buffer_size(receive_buffer)?;
        }
        // Without it the count comes from /proc alone.
        let _ = setsockopt(&socket, sockopt::RxqOvfl, &1);
        let granted = SockRef::from(&socket).recv_buffer_size().unwrap_or(0);
        let drops = Rc::new(KernelDrops::of(&socket));
        Ok(Self { socket, granted, drops })
    }
}

/// A TCP listener of this core on `address`.
pub(crate) fn tcp_listener(
    effects: &EffectHandler<OtapPdata>,
    name: &NodeName,
    address: SocketAddr,
) -> Result<(TcpListener, Claim), Error> {
    claim(name, address, true).map_err(|reason| bind_error(effects, "tcp", address, reason))?;
    let held = Claim { address, stream: true };
    let listener = effects.tcp_listener(address).map_err(|error| bind_error(effects, "tcp", address, error))?;
    Ok((listener, held))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(node: &str) -> NodeName {
        NodeName { group: "g".into(), pipeline: "p".into(), node: node.into(), core: 0 }
    }

    /// A port that another socket holds is refused; two cores of one node share it; a second node does not.
    #[test]
    fn addresses_are_claimed_once_per_node() {
        let other = std::net::UdpSocket::bind("127.0.0.1:0").expect("port");
        let address = other.local_addr().expect("address");
        assert!(claim(&name("a"), address, false).is_err());
        drop(other);
        claim(&name("a"), address, false).expect("free");
        claim(&name("a"), address, false).expect("second core of the same node");
        let refused = claim(&name("b"), address, false).expect_err("another node");
        assert!(refused.contains("g/p/a"), "{refused}");
        drop(Claim { address, stream: false });
        drop(Claim { address, stream: false });
        claim(&name("b"), address, false).expect("free again");
    }
}
