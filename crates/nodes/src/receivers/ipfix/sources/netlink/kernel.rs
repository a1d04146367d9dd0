//! A generic netlink socket of Linux.

use std::io;
use std::time::Duration;

use netlink_packet_core::{
    DefaultNla, Emitable, NLM_F_REQUEST, NetlinkBuffer, NlaBuffer, NlasIterator, parse_string, parse_u16, parse_u32,
};
use netlink_sys::protocols::NETLINK_GENERIC;
use netlink_sys::{AsyncSocket, AsyncSocketExt, SocketAddr, TokioSocket};
use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};
use socket2::SockRef;
use tokio::time::timeout;

use super::walk::{GENERIC_HEADER_BYTES, NETLINK_HEADER_BYTES, message};
use super::{JoinError, Joined, MAX_DATAGRAM_BYTES, NetlinkConfig, PayloadSource, Received};

/// The kernel's controller of generic netlink (linux/genetlink.h), which knows all families.
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const CONTROLLER_VERSION: u8 = 2;
const ATTRIBUTE_FAMILY_ID: u16 = 1;
const ATTRIBUTE_FAMILY_NAME: u16 = 2;
const ATTRIBUTE_GROUPS: u16 = 7;
const ATTRIBUTE_GROUP_NAME: u16 = 1;
const ATTRIBUTE_GROUP_ID: u16 = 2;
/// Type of an answer that is an error.
const ERROR: u16 = 2;
/// Of what the controller says of one family.
const MAX_ANSWER_BYTES: usize = 64 * 1024;
/// The kernel answers before the request returns; this only bounds the worst case.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Membership in a group.
pub(super) struct KernelSource {
    family: String,
    group: String,
    receive_buffer: usize,
    socket: Option<TokioSocket>,
    /// Numbers of family and group.
    ids: (u16, u32),
}

impl KernelSource {
    pub(super) fn new(config: &NetlinkConfig) -> Self {
        Self {
            family: config.family.clone(),
            group: config.group.clone(),
            receive_buffer: config.receive_buffer,
            socket: None,
            ids: (0, 0),
        }
    }

    /// Asks the controller for the numbers of family and group.
    async fn resolve(&self) -> Result<(u16, u32), JoinError> {
        let failed = |reason: String| JoinError::Ask { family: self.family.clone(), reason };
        let socket = open().map_err(JoinError::Socket)?;
        // Destination 0 is the kernel.
        let _ = socket
            .socket_ref()
            .send_to(&request(&self.family), &SocketAddr::new(0, 0), 0)
            .map_err(|error| failed(error.to_string()))?;
        let mut answer = Vec::new();
        let received = timeout(ANSWER_TIMEOUT, receive(&socket, &mut answer, MAX_ANSWER_BYTES)).await;
        let _ = received
            .map_err(|_| failed("no answer".to_owned()))
            .and_then(|received| received.map_err(|error| failed(error.to_string())))?;
        let family = match family(&answer) {
            Ok(Some(family)) => family,
            Ok(None) => {
                return Err(JoinError::NoFamily { family: self.family.clone(), group: self.group.clone() });
            }
            Err(reason) => return Err(failed(reason)),
        };
        match family.groups.iter().find(|(name, _)| *name == self.group) {
            Some((_, group)) => Ok((family.id, *group)),
            None => {
                let known: Vec<_> = family.groups.iter().map(|(name, _)| name.as_str()).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                Err(JoinError::NoGroup { family: self.family.clone(), group: self.group.clone(), known })
            }
        }
    }
}

impl PayloadSource for KernelSource {
    async fn join(&mut self) -> Result<Joined, JoinError> {
        // The membership of an earlier socket ends here.
        self.socket = None;
        let (family, group) = self.resolve().await?;
        let socket = open().map_err(JoinError::Socket)?;
        // Beyond net.core.rmem_max only with privileges; without them the kernel gives what it may.
        if setsockopt(socket.socket_ref(), sockopt::RcvBufForce, &self.receive_buffer).is_err() {
            SockRef::from(socket.socket_ref()).set_recv_buffer_size(self.receive_buffer).map_err(JoinError::Socket)?;
        }
        socket.socket_ref().add_membership(group).map_err(|error| JoinError::Join {
            family: self.family.clone(),
            group: self.group.clone(),
            error,
        })?;
        let receive_buffer = SockRef::from(socket.socket_ref()).recv_buffer_size().unwrap_or(self.receive_buffer);
        self.ids = (family, group);
        self.socket = Some(socket);
        Ok(Joined { family, receive_buffer })
    }

    async fn look(&mut self) -> Result<(), JoinError> {
        // A family that goes takes the memberships of its groups along, and gets another number when it comes again.
        if self.resolve().await? != self.ids {
            return Err(JoinError::Replaced { family: self.family.clone() });
        }
        Ok(())
    }

    async fn receive(&mut self, buffer: &mut Vec<u8>) -> io::Result<Received> {
        match &self.socket {
            Some(socket) => receive(socket, buffer, MAX_DATAGRAM_BYTES).await,
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

/// A socket that does not wait, with a number of its own.
fn open() -> io::Result<TokioSocket> {
    let mut socket = TokioSocket::new(NETLINK_GENERIC)?;
    let _ = socket.socket_mut().bind_auto()?;
    Ok(socket)
}

/// Reads into room for the longest datagram: pages that none has needed yet are not in memory.
async fn receive(socket: &TokioSocket, buffer: &mut Vec<u8>, most: usize) -> io::Result<Received> {
    buffer.clear();
    buffer.reserve(most + 1);
    let sender = socket.recv_from(buffer).await?;
    Ok(Received { truncated: buffer.len() > most, from_kernel: sender.port_number() == 0 })
}

/// A request for what the controller knows of a family.
fn request(family: &str) -> Vec<u8> {
    let mut name = family.as_bytes().to_vec();
    name.push(0);
    let attribute = DefaultNla::new(ATTRIBUTE_FAMILY_NAME, name);
    let start = NETLINK_HEADER_BYTES + GENERIC_HEADER_BYTES;
    let mut request = vec![0; start + attribute.buffer_len()];
    let length = u32::try_from(request.len()).unwrap_or(u32::MAX);
    let mut header = NetlinkBuffer::new(&mut request);
    header.set_length(length);
    header.set_message_type(CONTROLLER);
    header.set_flags(NLM_F_REQUEST);
    if let Some([command, version, ..]) = request.get_mut(NETLINK_HEADER_BYTES..start) {
        (*command, *version) = (GET_FAMILY, CONTROLLER_VERSION);
    }
    if let Some(room) = request.get_mut(start..) {
        attribute.emit(room);
    }
    request
}

/// What the controller says of a family.
#[derive(Debug, PartialEq, Eq)]
struct Family {
    id: u16,
    /// Names and numbers.
    groups: Vec<(String, u32)>,
}

/// Reads the controller's answer; `None` if there is no such family.
fn family(answer: &[u8]) -> Result<Option<Family>, String> {
    let (kind, message) = message(answer).ok_or("an answer that is no netlink message")?;
    let body = message.get(NETLINK_HEADER_BYTES..).unwrap_or_default();
    if kind == ERROR {
        let code = body.first_chunk::<4>().map_or(0, |code| i32::from_ne_bytes(*code));
        return match Errno::from_raw(code.saturating_neg()) {
            Errno::ENOENT => Ok(None),
            errno => Err(format!("refused with {errno}")),
        };
    }
    if kind != CONTROLLER {
        return Err(format!("an answer of type {kind}"));
    }
    let mut id = None;
    let mut groups = Vec::new();
    for attribute in NlasIterator::new(body.get(GENERIC_HEADER_BYTES..).unwrap_or_default()) {
        let attribute = attribute.map_err(|error| error.to_string())?;
        match attribute.kind() {
            ATTRIBUTE_FAMILY_ID => id = Some(parse_u16(attribute.value()).map_err(|error| error.to_string())?),
            ATTRIBUTE_GROUPS => {
                for entry in NlasIterator::new(attribute.value()) {
                    groups.extend(group(&entry.map_err(|error| error.to_string())?)?);
                }
            }
            _ => {}
        }
    }
    Ok(Some(Family { id: id.ok_or("an answer without the number of the family")?, groups }))
}

/// Name and number of a group, if it has both.
fn group(entry: &NlaBuffer<&[u8]>) -> Result<Option<(String, u32)>, String> {
    let (mut name, mut id) = (None, None);
    for attribute in NlasIterator::new(entry.value()) {
        let attribute = attribute.map_err(|error| error.to_string())?;
        match attribute.kind() {
            ATTRIBUTE_GROUP_NAME => name = Some(parse_string(attribute.value()).map_err(|error| error.to_string())?),
            ATTRIBUTE_GROUP_ID => id = Some(parse_u32(attribute.value()).map_err(|error| error.to_string())?),
            _ => {}
        }
    }
    Ok(name.zip(id))
}

#[cfg(test)]
mod tests;
