//! SONiC's telemetry from the kernel: payloads of a generic netlink multicast group.
//!
//! `kernel.rs` is the socket, `walk.rs` takes the payloads out of its datagrams. Here is how the stream is kept up: the
//! family may be missing, and come and go with its kernel module.

#[cfg(target_os = "linux")]
mod kernel;
mod walk;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use nix::errno::Errno;
use otel_arrow_dfe_config::error::Error as ConfigError;
use serde::Deserialize;
use tokio::time::{Instant, sleep, sleep_until};

use crate::config;
use crate::ingest::{Intake, Pending, Seldom, now};
use crate::time::now_unix_nano;
use walk::{Part, Walk};

/// A datagram of more bytes is cut; that many are what SONiC's own reader accepts.
const MAX_DATAGRAM_BYTES: usize = 16 * 1024 * 1024;
/// Datagrams taken before others get their turn.
const DATAGRAMS_PER_TURN: usize = 32;
/// Of a family's or group's name, without the NUL at its end (GENL_NAMSIZ).
const MAX_NAME_BYTES: usize = 15;
const ERROR_PAUSE: Duration = Duration::from_millis(100);

/// `netlink`: the multicast group that payloads come from.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct NetlinkConfig {
    #[serde(default = "family")]
    family: String,
    #[serde(default = "group")]
    group: String,
    /// SO_RCVBUF, as far as the kernel grants it.
    #[serde(default = "receive_buffer", deserialize_with = "config::bytes::deserialize")]
    receive_buffer: usize,
    /// How often a family that is missing is looked for, and one that is there is looked after.
    #[serde(default = "retry_interval", with = "humantime_serde")]
    retry_interval: Duration,
}

fn family() -> String {
    "sonic_stel".to_owned()
}

fn group() -> String {
    "ipfix".to_owned()
}

const fn receive_buffer() -> usize {
    4 * 1024 * 1024
}

const fn retry_interval() -> Duration {
    Duration::from_secs(10)
}

impl NetlinkConfig {
    /// # Errors
    /// Names the key at fault and what would be right.
    pub(in super::super) fn check(&self) -> Result<(), ConfigError> {
        if cfg!(not(target_os = "linux")) {
            return Err(config::invalid("config.netlink: not on this platform, expected Linux"));
        }
        config::within("netlink.family (bytes)", self.family.len(), 1, MAX_NAME_BYTES)?;
        config::within("netlink.group (bytes)", self.group.len(), 1, MAX_NAME_BYTES)?;
        config::within("netlink.receive_buffer", self.receive_buffer, 1_024, 1024 * 1024 * 1024)?;
        config::within("netlink.retry_interval (ms)", self.retry_interval.as_millis(), 10, 3_600_000)
    }
}

/// Sums over the life of the source, and what it is at now.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct NetlinkCounters {
    /// Datagrams received.
    pub(in super::super) datagrams: u64,
    /// Payloads taken out of them.
    pub(in super::super) payloads: u64,
    /// Bytes of payloads.
    pub(in super::super) bytes: u64,
    /// Times that the kernel told of datagrams dropped since the last time, as the receive buffer was full (ENOBUFS).
    /// How many they were it does not tell.
    pub(in super::super) overruns: u64,
    /// Datagrams longer than 16 MiB, of which the rest was cut off and the whole is dropped.
    pub(in super::super) truncated: u64,
    /// Datagrams with a header that does not fit; what came before it was taken.
    pub(in super::super) damaged: u64,
    /// Messages of other families, and datagrams that are not from the kernel.
    pub(in super::super) foreign: u64,
    /// Times that the group was joined.
    pub(in super::super) joins: u64,
    /// Tries to join that failed, and families that vanished.
    pub(in super::super) failures: u64,
    /// Failed reads.
    pub(in super::super) receive_errors: u64,
    /// Whether the group is joined now.
    pub(in super::super) joined: bool,
}

/// A group that was joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Joined {
    /// Number of the family, which is the type of its messages.
    family: u16,
    /// Bytes of the receive buffer as the kernel counts them.
    receive_buffer: usize,
}

/// A datagram in the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Received {
    /// The buffer has only its beginning.
    truncated: bool,
    from_kernel: bool,
}

/// Why there is nothing to receive from.
#[derive(Debug, thiserror::Error)]
enum JoinError {
    #[error("cannot open a generic netlink socket: {0}")]
    Socket(io::Error),
    #[error(
        "the kernel has no generic netlink family `{family}`, and so no group `{group}`; it comes with a kernel module"
    )]
    NoFamily { family: String, group: String },
    #[error("generic netlink family `{family}` has no multicast group `{group}`, expected one of: {known}")]
    NoGroup { family: String, group: String, known: String },
    #[error("cannot join multicast group `{group}` of generic netlink family `{family}`: {error}")]
    Join { family: String, group: String, error: io::Error },
    #[error("cannot ask the kernel for generic netlink family `{family}`: {reason}")]
    Ask { family: String, reason: String },
    #[error("generic netlink family `{family}` was registered anew")]
    Replaced { family: String },
}

/// Where netlink datagrams come from: the kernel, or a test.
trait PayloadSource {
    /// Joins the group, after a failure anew.
    async fn join(&mut self) -> Result<Joined, JoinError>;

    /// Whether the group that was joined is there still.
    async fn look(&mut self) -> Result<(), JoinError>;

    /// Waits for the next datagram and puts it into `buffer` in place of what was there. May be dropped at any time.
    async fn receive(&mut self, buffer: &mut Vec<u8>) -> io::Result<Received>;
}

/// Hands each payload of the kernel's group to `take`, with the time of its receipt, until the intake stops; then those
/// that the kernel holds. While the batch is full nothing is read, and the kernel drops what its buffer cannot hold.
#[cfg(target_os = "linux")]
pub(in super::super) async fn receive<P: Pending>(
    config: NetlinkConfig,
    intake: Rc<Intake<P>>,
    counters: Rc<RefCell<NetlinkCounters>>,
    take: impl FnMut(&[u8], i64),
) {
    receive_from(kernel::KernelSource::new(&config), config, intake, counters, take).await;
}

/// As [`receive`], from any source.
async fn receive_from<S: PayloadSource, P: Pending>(
    source: S,
    config: NetlinkConfig,
    intake: Rc<Intake<P>>,
    counters: Rc<RefCell<NetlinkCounters>>,
    take: impl FnMut(&[u8], i64),
) {
    let mut stream = Stream { source, config, intake, counters, take, buffer: Vec::new() };
    let told = Seldom::default();
    loop {
        let stop = stream.intake.stop.clone();
        let joined = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            joined = stream.source.join() => joined,
        };
        let error = match joined {
            Ok(joined) => match stream.run(joined).await {
                Ok(()) => return,
                Err(error) => error,
            },
            Err(error) => error,
        };
        {
            let mut counters = stream.counters.borrow_mut();
            counters.failures += 1;
            counters.joined = false;
        }
        let pause = stream.config.retry_interval;
        if told.now() {
            otel_warn!(
                "ipfix_receiver.netlink.failed",
                family = stream.config.family.as_str(),
                group = stream.config.group.as_str(),
                error = %error,
                retry_after_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX)
            );
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = sleep(pause) => {}
        }
    }
}

struct Stream<S, P, T> {
    source: S,
    config: NetlinkConfig,
    intake: Rc<Intake<P>>,
    counters: Rc<RefCell<NetlinkCounters>>,
    take: T,
    buffer: Vec<u8>,
}

impl<S: PayloadSource, P: Pending, T: FnMut(&[u8], i64)> Stream<S, P, T> {
    /// Receives until the intake stops, or the group is there no longer.
    async fn run(&mut self, joined: Joined) -> Result<(), JoinError> {
        {
            let mut counters = self.counters.borrow_mut();
            counters.joins += 1;
            counters.joined = true;
        }
        otel_info!(
            "ipfix_receiver.netlink.joined",
            family = self.config.family.as_str(),
            group = self.config.group.as_str(),
            receive_buffer_bytes = joined.receive_buffer
        );
        let stop = self.intake.stop.clone();
        let mut look_at = Instant::now() + self.config.retry_interval;
        let mut since_yield = 0;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                () = self.intake.room() => {}
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                // The kernel does not tell members of a group that it has gone.
                () = sleep_until(look_at) => {
                    self.source.look().await?;
                    look_at = Instant::now() + self.config.retry_interval;
                }
                received = self.source.receive(&mut self.buffer) => {
                    if self.take(received, joined.family).await.is_err() {
                        sleep(ERROR_PAUSE).await;
                    }
                    since_yield += 1;
                }
            }
            if since_yield >= DATAGRAMS_PER_TURN {
                since_yield = 0;
                tokio::task::yield_now().await;
            }
        }
        // What the runtime knows of the socket may be old: it looks anew while we stand back.
        tokio::task::yield_now().await;
        // A sender who does not stop cannot keep it going.
        let mut left = joined.receive_buffer;
        while left > 0
            && let Some(received) = now(self.source.receive(&mut self.buffer)).await
        {
            let taken = self.buffer.len().max(1);
            if self.take(received, joined.family).await.is_err() {
                break;
            }
            left = left.saturating_sub(taken);
        }
        Ok(())
    }

    /// Takes the payloads of a datagram. Waits for room before each of them, so that no batch gets larger than it may.
    async fn take(&mut self, received: io::Result<Received>, family: u16) -> io::Result<()> {
        let time_unix_nano = now_unix_nano();
        let Received { truncated, from_kernel } = match received {
            Ok(received) => received,
            Err(error) if error.raw_os_error() == Some(Errno::ENOBUFS as i32) => {
                self.counters.borrow_mut().overruns += 1;
                return Ok(());
            }
            Err(error) => {
                self.counters.borrow_mut().receive_errors += 1;
                otel_debug!("ipfix_receiver.netlink.receive_failed", error = %error);
                return Err(error);
            }
        };
        {
            let mut counters = self.counters.borrow_mut();
            counters.datagrams += 1;
            if truncated {
                counters.truncated += 1;
                return Ok(());
            }
            if !from_kernel {
                counters.foreign += 1;
                return Ok(());
            }
        }
        for part in Walk::new(&self.buffer, family) {
            match part {
                Part::Payload(payload) => {
                    self.intake.room().await;
                    {
                        let mut counters = self.counters.borrow_mut();
                        counters.payloads += 1;
                        counters.bytes += payload.len() as u64;
                    }
                    (self.take)(payload, time_unix_nano);
                }
                Part::Foreign => self.counters.borrow_mut().foreign += 1,
                Part::Damaged => self.counters.borrow_mut().damaged += 1,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
