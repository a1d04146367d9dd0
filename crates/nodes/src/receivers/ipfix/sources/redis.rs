//! Telemetry sessions from SONiC's Redis, followed while they change.
//!
//! All rows of the table are read at the start and after each reconnection, then those that the server gives notice of
//! (keyspace notifications), and all again from time to time, as notices may be turned off and are lost without a trace.

mod settings;

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::convert::Infallible;
use std::rc::Rc;
use std::time::Duration;

use catchment_ipfix::sonic::SessionRow;
use futures_util::StreamExt;
use redis::aio::{MultiplexedConnection, PubSubStream};
use redis::{AsyncConnectionConfig, Client, RedisError};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::SessionUpdate;
use crate::ingest::{Seldom, now};
pub(in super::super) use settings::RedisConfig;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Pauses before the next try to connect: this one first, twice as long each time.
const FIRST_BACKOFF: Duration = Duration::from_millis(100);
const MAX_BACKOFF: Duration = Duration::from_secs(10);
/// Keys that the server looks at for one step of a scan; it serves others in between.
const SCAN_COUNT: usize = 512;
/// Rows that are followed. SONiC has one for each group of a profile.
const MAX_ROWS: usize = 4_096;
/// Bytes of a row.
const MAX_ROW_BYTES: usize = 16 * 1024 * 1024;

/// Sums over the life of the source, and what it knows now.
#[derive(Debug, Clone, Copy, Default)]
pub(in super::super) struct RedisCounters {
    /// Times that a connection came about.
    pub(in super::super) connects: u64,
    /// Tries to connect that failed, and connections that broke.
    pub(in super::super) failures: u64,
    /// All rows were read.
    pub(in super::super) scans: u64,
    /// Notices of changes that the server gave.
    pub(in super::super) notices: u64,
    /// Rows that were new or had changed.
    pub(in super::super) rows_set: u64,
    /// Rows that were gone.
    pub(in super::super) rows_removed: u64,
    /// Rows that are too large, too many, or no hashes; counted each time they are read.
    pub(in super::super) rows_refused: u64,
    /// Rows known now.
    pub(in super::super) rows: u64,
    /// Whether there is a connection now.
    pub(in super::super) connected: bool,
}

#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Settings(String),
    #[error("{0}")]
    Redis(#[from] RedisError),
    #[error("no connection within {} s", CONNECT_TIMEOUT.as_secs())]
    Timeout,
    #[error("the server closed the connection")]
    Closed,
}

/// Names and values of a row.
type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// Tells the rows of the table and their changes by `update` until `stop`. While there is no connection, what was told
/// last holds; what changed meanwhile is told once there is one again.
pub(in super::super) async fn follow(
    config: RedisConfig,
    stop: CancellationToken,
    counters: Rc<RefCell<RedisCounters>>,
    update: impl FnMut(SessionUpdate),
) {
    let address = config.info().map_or_else(|error| error, |info| info.addr().to_string());
    let told = Seldom::default();
    let mut follower = Follower {
        prefix: format!("{}{}", config.table, config.separator),
        config,
        address,
        known: HashMap::new(),
        counters,
        update,
        backoff: FIRST_BACKOFF,
        silence_told: false,
    };
    loop {
        let failure = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            ended = follower.connection() => match ended {
                Ok(never) => match never {},
                Err(failure) => failure,
            },
        };
        {
            let mut counters = follower.counters.borrow_mut();
            counters.failures += 1;
            counters.connected = false;
        }
        let pause = follower.backoff;
        if told.now() {
            otel_warn!(
                "ipfix_receiver.redis.failed",
                address = follower.address.as_str(),
                error = %failure,
                retry_after_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
                message = "the telemetry sessions cannot be followed; those known are kept"
            );
        }
        follower.backoff = (2 * pause).min(MAX_BACKOFF);
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = sleep(pause) => {}
        }
    }
}

struct Follower<U> {
    config: RedisConfig,
    address: String,
    /// What the keys of the table begin with.
    prefix: String,
    /// Rows as they were told last, by key.
    known: HashMap<Vec<u8>, SessionRow>,
    counters: Rc<RefCell<RedisCounters>>,
    update: U,
    backoff: Duration,
    /// It has been said that the server gives no notices.
    silence_told: bool,
}

impl<U: FnMut(SessionUpdate)> Follower<U> {
    /// One connection, until it breaks.
    async fn connection(&mut self) -> Result<Infallible, Failure> {
        let client = Client::open(self.config.connection_info().map_err(Failure::Settings)?)?;
        // Notices are asked for before the rows are read: what changes in between is read again.
        let mut notices = timeout(CONNECT_TIMEOUT, self.subscribe(&client)).await.map_err(|_| Failure::Timeout)??;
        let settings = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(RESPONSE_TIMEOUT));
        let mut commands = client.get_multiplexed_async_connection_with_config(&settings).await?;
        self.look_for_notices(&mut commands).await;
        self.scan(&mut commands).await?;
        self.backoff = FIRST_BACKOFF;
        {
            let mut counters = self.counters.borrow_mut();
            counters.connects += 1;
            counters.connected = true;
        }
        otel_info!("ipfix_receiver.redis.following", address = self.address.as_str(), rows = self.known.len());
        let mut scan_at = Instant::now() + self.config.rescan_interval;
        loop {
            tokio::select! {
                notice = notices.next() => {
                    let mut keys = BTreeSet::new();
                    self.note(notice.ok_or(Failure::Closed)?, &mut keys);
                    // Several changes of a row are read once.
                    while keys.len() < SCAN_COUNT && let Some(Some(notice)) = now(notices.next()).await {
                        self.note(notice, &mut keys);
                    }
                    for key in keys {
                        let _ = self.load(&mut commands, key).await?;
                    }
                }
                () = sleep_until(scan_at) => {
                    self.scan(&mut commands).await?;
                    scan_at = Instant::now() + self.config.rescan_interval;
                }
            }
        }
    }

    async fn subscribe(&self, client: &Client) -> Result<PubSubStream, Failure> {
        let mut notices = client.get_async_pubsub().await?;
        notices.psubscribe(format!("{}{}*", self.channel(), glob_escaped(&self.prefix))).await?;
        Ok(notices.into_on_message())
    }

    /// What the channels of notices begin with, before the key.
    fn channel(&self) -> String {
        format!("__keyspace@{}__:", self.config.db)
    }

    /// Takes the key out of a notice.
    fn note(&self, notice: redis::Msg, keys: &mut BTreeSet<Vec<u8>>) {
        self.counters.borrow_mut().notices += 1;
        let channel = notice.get_channel::<Vec<u8>>().unwrap_or_default();
        if let Some(key) = channel.strip_prefix(self.channel().as_bytes()) {
            let _ = keys.insert(key.to_vec());
        }
    }

    /// Says once if the server gives no notices of changed hashes. Not every user may ask; then nothing is said.
    async fn look_for_notices(&mut self, commands: &mut MultiplexedConnection) {
        let asked: Result<HashMap<String, String>, _> =
            redis::cmd("CONFIG").arg("GET").arg("notify-keyspace-events").query_async(commands).await;
        let Some(flags) = asked.ok().and_then(|answer| answer.into_values().next()) else { return };
        if !gives_notices(&flags) && !std::mem::replace(&mut self.silence_told, true) {
            otel_info!(
                "ipfix_receiver.redis.no_notices",
                address = self.address.as_str(),
                notify_keyspace_events = flags.as_str(),
                rescan_interval = format!("{:?}", self.config.rescan_interval),
                message = "the server gives no notice of changed rows; changes are seen at the next reading of all rows. To have them at once, set its notify-keyspace-events to Khg"
            );
        }
    }

    /// Reads all rows. Those that were known and are there no longer are removed.
    async fn scan(&mut self, commands: &mut MultiplexedConnection) -> Result<(), Failure> {
        let pattern = format!("{}*", glob_escaped(&self.prefix));
        let mut seen = HashSet::new();
        let mut cursor = 0u64;
        loop {
            let (next, keys): (u64, Vec<Vec<u8>>) = redis::cmd("SCAN")
                .arg(cursor)
                .arg("MATCH")
                .arg(&pattern)
                .arg("COUNT")
                .arg(SCAN_COUNT)
                .query_async(commands)
                .await?;
            for key in keys {
                if !seen.contains(&key) && self.load(commands, key.clone()).await? {
                    let _ = seen.insert(key);
                }
            }
            cursor = next;
            if cursor == 0 {
                break;
            }
        }
        let unseen: Vec<_> = self.known.keys().filter(|key| !seen.contains(*key)).cloned().collect();
        for key in unseen {
            // A row that was removed and came back during the scan may have been passed over.
            let _ = self.load(commands, key).await?;
        }
        self.counters.borrow_mut().scans += 1;
        Ok(())
    }

    /// Reads a row and tells what is new. Gives whether it is there.
    async fn load(&mut self, commands: &mut MultiplexedConnection, key: Vec<u8>) -> Result<bool, Failure> {
        let fields: Result<Fields, RedisError> = redis::cmd("HGETALL").arg(&key).query_async(commands).await;
        let row = match fields {
            Ok(fields) if fields.is_empty() => None,
            Ok(fields) => self.accept(&key, fields),
            Err(error) if error.code() == Some("WRONGTYPE") => {
                self.refuse(&key, "no hash");
                None
            }
            Err(error) => return Err(error.into()),
        };
        let is_there = row.is_some();
        self.tell(key, row);
        Ok(is_there)
    }

    fn accept(&self, key: &[u8], fields: Fields) -> Option<SessionRow> {
        if fields.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() > MAX_ROW_BYTES {
            self.refuse(key, "more than 16 MiB");
            return None;
        }
        if self.known.len() >= MAX_ROWS && !self.known.contains_key(key) {
            self.refuse(key, "more than 4096 rows");
            return None;
        }
        Some(row(fields))
    }

    fn refuse(&self, key: &[u8], reason: &'static str) {
        self.counters.borrow_mut().rows_refused += 1;
        let key = String::from_utf8_lossy(key);
        otel_debug!("ipfix_receiver.redis.row_refused", key = key.as_ref(), reason = reason);
    }

    fn tell(&mut self, key: Vec<u8>, row: Option<SessionRow>) {
        let name = String::from_utf8_lossy(key.strip_prefix(self.prefix.as_bytes()).unwrap_or(&key)).into_owned();
        let update = match row {
            Some(row) if self.known.get(&key) == Some(&row) => return,
            Some(row) => {
                let _ = self.known.insert(key, row.clone());
                self.counters.borrow_mut().rows_set += 1;
                SessionUpdate::Set { key: name, row }
            }
            None if self.known.remove(&key).is_none() => return,
            None => {
                self.counters.borrow_mut().rows_removed += 1;
                SessionUpdate::Remove { key: name }
            }
        };
        self.counters.borrow_mut().rows = self.known.len() as u64;
        (self.update)(update);
    }
}

fn row(fields: Fields) -> SessionRow {
    let mut row = SessionRow::default();
    for (name, value) in fields {
        let text = || String::from_utf8_lossy(&value).into_owned();
        match name.as_slice() {
            b"stream_status" => row.stream_status = text(),
            b"session_type" => row.session_type = text(),
            b"object_names" => row.object_names = text(),
            b"object_ids" => row.object_ids = text(),
            b"session_config" => row.session_config = value,
            _ => {}
        }
    }
    row
}

/// Whether a server with this setting gives notice of changed (`h`) and removed (`g`) hashes by key (`K`).
fn gives_notices(flags: &str) -> bool {
    flags.contains('K') && (flags.contains('A') || (flags.contains('h') && flags.contains('g')))
}

/// A pattern that only `text` matches.
fn glob_escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for char in text.chars() {
        if matches!(char, '*' | '?' | '[' | ']' | '\\' | '^') {
            pattern.push('\\');
        }
        pattern.push(char);
    }
    pattern
}

#[cfg(test)]
mod tests;
