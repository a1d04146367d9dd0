//! Where Redis is, and what is read there.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use otel_arrow_dfe_config::error::Error as ConfigError;
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use serde::Deserialize;

use crate::config;

/// `redis`: where the rows of telemetry sessions are.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super::super) struct RedisConfig {
    /// `redis://[user[:password]@]host[:port]`.
    url: Option<String>,
    unix_socket: Option<PathBuf>,
    username: Option<String>,
    /// A file that holds the password; it is read at each connection.
    password_file: Option<PathBuf>,
    #[serde(default = "db")]
    pub(super) db: u16,
    #[serde(default = "table")]
    pub(super) table: String,
    /// Between the table and the rest of a key.
    #[serde(default = "separator")]
    pub(super) separator: String,
    #[serde(default = "rescan_interval", with = "humantime_serde")]
    pub(super) rescan_interval: Duration,
}

/// STATE_DB.
const fn db() -> u16 {
    6
}

fn table() -> String {
    "HIGH_FREQUENCY_TELEMETRY_SESSION_TABLE".to_owned()
}

fn separator() -> String {
    "|".to_owned()
}

const fn rescan_interval() -> Duration {
    Duration::from_secs(30)
}

impl fmt::Debug for RedisConfig {
    /// Without the URL, which may hold a password.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("RedisConfig")
            .field("address", &self.info().map(|info| info.addr().to_string()))
            .field("db", &self.db)
            .field("table", &self.table)
            .finish_non_exhaustive()
    }
}

impl RedisConfig {
    /// # Errors
    /// Names the key at fault and what would be right.
    pub(in super::super::super) fn check(&self) -> Result<(), ConfigError> {
        let info = self.info().map_err(|error| config::invalid(format!("config.sonic.sessions.redis.{error}")))?;
        if info.redis_settings().password().is_some() && self.password_file.is_some() {
            return Err(config::invalid(
                "config.sonic.sessions.redis: a password in `url` and a `password_file` given, expected at most one of them",
            ));
        }
        if info.redis_settings().username().is_some() && self.username.is_some() {
            return Err(config::invalid(
                "config.sonic.sessions.redis: a user in `url` and a `username` given, expected at most one of them",
            ));
        }
        let url_db = info.redis_settings().db();
        if url_db != 0 && url_db != i64::from(self.db) {
            return Err(config::invalid(format!(
                "config.sonic.sessions.redis.url: names database {url_db} and `db` names {}, expected it in `db` only",
                self.db
            )));
        }
        if self.table.is_empty() {
            return Err(config::invalid("config.sonic.sessions.redis.table: empty, expected the name of a table"));
        }
        config::within(
            "sonic.sessions.redis.rescan_interval (ms)",
            self.rescan_interval.as_millis(),
            100,
            24 * 3_600_000,
        )
    }

    /// Address and credentials as far as they are in the configuration.
    pub(super) fn info(&self) -> Result<ConnectionInfo, String> {
        match (&self.url, &self.unix_socket) {
            (Some(url), None) => url.as_str().into_connection_info().map_err(|error| {
                format!("url: {error}; expected `redis://host:port` (TLS is not supported) or, instead, `unix_socket`")
            }),
            (None, Some(path)) if path.as_os_str().is_empty() => {
                Err("unix_socket: empty, expected the path of a socket".to_owned())
            }
            (None, Some(path)) => ConnectionAddr::Unix(path.clone())
                .into_connection_info()
                .map_err(|error| format!("unix_socket: {error}")),
            (Some(_), Some(_)) => Err("url: given together with `unix_socket`, expected one of them".to_owned()),
            (None, None) => Err("url: missing, expected it or `unix_socket`".to_owned()),
        }
    }

    /// Address and credentials, with the password of the file.
    pub(super) fn connection_info(&self) -> Result<ConnectionInfo, String> {
        let info = self.info()?;
        let mut settings = info.redis_settings().clone().set_db(i64::from(self.db));
        if let Some(username) = &self.username {
            settings = settings.set_username(username);
        }
        if let Some(path) = &self.password_file {
            let password = std::fs::read_to_string(path)
                .map_err(|error| format!("cannot read password file {}: {error}", path.display()))?;
            settings = settings.set_password(password.trim_end_matches(['\r', '\n']));
        }
        Ok(info.set_redis_settings(settings))
    }
}
