//! Payloads as datagrams on a unix socket: what the kernel would give out, from a program, and longer than UDP can carry.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use otel_arrow_dfe_config::error::Error;
use serde::Deserialize;
use tokio::net::UnixDatagram;
use tokio::time::sleep;

use crate::config;
use crate::ingest::{Intake, Pending, now};
use crate::time::now_unix_nano;

/// A datagram of more bytes is dropped.
const MAX_DATAGRAM_BYTES: usize = 16 * 1024 * 1024;
/// Datagrams taken before others get their turn.
const DATAGRAMS_PER_TURN: usize = 32;
/// What is taken at a drain at most, if senders do not stop.
const DRAIN_BYTES: usize = 2 * MAX_DATAGRAM_BYTES;
/// Of the path in an address, without the NUL at its end.
const MAX_PATH_BYTES: usize = 107;
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// `unix`: a socket that takes datagrams.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct UnixConfig {
    /// Where the socket is put. One that nobody listens on any more is replaced; it is removed at the end.
    path: PathBuf,
}

impl UnixConfig {
    /// # Errors
    /// Names the key at fault and what would be right.
    pub(in super::super) fn check(&self) -> Result<(), Error> {
        config::within("unix.path (bytes)", self.path.as_os_str().len(), 1, MAX_PATH_BYTES)
    }
}

/// Sums over the life of the source.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct UnixCounters {
    /// Datagrams received.
    pub(in super::super) datagrams: u64,
    /// Bytes of those that were taken.
    pub(in super::super) bytes: u64,
    /// Datagrams longer than 16 MiB, which are dropped.
    pub(in super::super) truncated: u64,
    /// Failed reads.
    pub(in super::super) receive_errors: u64,
}

/// The socket, and its file.
#[derive(Debug)]
pub(in super::super) struct UnixIngress {
    socket: UnixDatagram,
    path: PathBuf,
    /// Device and number of the file.
    file: Option<(u64, u64)>,
}

impl UnixIngress {
    /// Opens the socket of the configuration.
    ///
    /// # Errors
    /// There is a file that is no socket, or somebody listens there, or the folder cannot be written.
    pub(in super::super) fn open(config: &UnixConfig) -> io::Result<Self> {
        let path = config.path.clone();
        remove_stale(&path)?;
        let socket = UnixDatagram::bind(&path)?;
        Ok(Self { file: identity(&path), socket, path })
    }
}

impl Drop for UnixIngress {
    fn drop(&mut self) {
        // Another program may have put its own socket there.
        if self.file.is_some() && identity(&self.path) == self.file {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Removes the socket of a program that has ended.
fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = match std::fs::symlink_metadata(path) {
        Ok(metadata) => metadata.file_type().is_socket(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !is_socket {
        return Err(io::Error::new(ErrorKind::AlreadyExists, "a file that is no socket is there"));
    }
    match std::os::unix::net::UnixDatagram::unbound()?.connect(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        _ => Err(io::Error::new(ErrorKind::AddrInUse, "another program listens there")),
    }
}

/// Hands each datagram to `take`, with the time of its receipt, until the intake stops; then those that have arrived.
/// While the batch is full or memory is short nothing is read, and senders wait.
pub(in super::super) async fn receive<P: Pending>(
    ingress: UnixIngress,
    intake: Rc<Intake<P>>,
    counters: Rc<RefCell<UnixCounters>>,
    mut take: impl FnMut(&[u8], i64),
) {
    let socket = &ingress.socket;
    // Pages that no datagram has needed yet are not in memory.
    let mut buffer = Vec::with_capacity(MAX_DATAGRAM_BYTES + 1);
    let mut since_yield = 0;
    let mut taken = |buffer: &[u8]| {
        let mut counters = counters.borrow_mut();
        counters.datagrams += 1;
        if buffer.len() > MAX_DATAGRAM_BYTES {
            counters.truncated += 1;
            return;
        }
        counters.bytes += buffer.len() as u64;
        drop(counters);
        take(buffer, now_unix_nano());
    };
    loop {
        tokio::select! {
            biased;
            () = intake.stop.cancelled() => break,
            () = intake.let_on() => {}
        }
        buffer.clear();
        let received = tokio::select! {
            biased;
            () = intake.stop.cancelled() => break,
            received = socket.recv_buf(&mut buffer) => received,
        };
        match received {
            Ok(_) => taken(&buffer),
            Err(error) => {
                counters.borrow_mut().receive_errors += 1;
                otel_debug!("ipfix_receiver.unix.receive_failed", error = %error);
                sleep(ERROR_PAUSE).await;
            }
        }
        since_yield += 1;
        if since_yield >= DATAGRAMS_PER_TURN {
            since_yield = 0;
            tokio::task::yield_now().await;
        }
    }
    // What the runtime knows of the socket may be old: it looks anew while we stand back.
    tokio::task::yield_now().await;
    let mut left = DRAIN_BYTES;
    while left > 0 {
        intake.room().await;
        buffer.clear();
        let Some(Ok(_)) = now(socket.recv_buf(&mut buffer)).await else { break };
        left = left.saturating_sub(buffer.len().max(1));
        taken(&buffer);
    }
}

#[cfg(test)]
mod tests;
