//! TLS of a listener: its configuration and its acceptor.

use std::io;
use std::time::Duration;

use otel_arrow_dfe_config::error::Error;
use otel_arrow_dfe_config::tls::TlsServerConfig;
use otel_arrow_dfe_engine::error::{Error as EngineError, ReceiverErrorKind};
use otel_arrow_dfe_engine::local::receiver::EffectHandler;
use otel_arrow_dfe_otap::pdata::OtapPdata;
use otel_arrow_dfe_otap::tls_utils::{accept_tls_connection, build_tls_acceptor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::config;

/// Where the engine's settings name none.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The engine's settings of TLS servers. Its own type lets unknown keys pass; this does not.
#[derive(Debug, Clone)]
pub(crate) struct TlsConfig(pub(crate) TlsServerConfig);

pub(crate) const TLS_KEYS: [&str; 10] = [
    "cert_file",
    "cert_pem",
    "key_file",
    "key_pem",
    "client_ca_file",
    "client_ca_pem",
    "include_system_ca_certs_pool",
    "watch_client_ca",
    "reload_interval",
    "handshake_timeout",
];

impl<'de> Deserialize<'de> for TlsConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let map = serde_json::Map::deserialize(deserializer)?;
        if let Some(key) = map.keys().find(|key| !TLS_KEYS.contains(&key.as_str())) {
            return Err(D::Error::custom(format!(
                "unknown field `{key}`, expected one of `{}`",
                TLS_KEYS.join("`, `")
            )));
        }
        serde_json::from_value(Value::Object(map)).map(Self).map_err(D::Error::custom)
    }
}

impl TlsConfig {
    /// Checks what can be checked without reading files.
    ///
    /// # Errors
    /// Names the key of `tcp.tls` at fault and what would be right.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let tls = &self.0;
        let one = |file: bool, pem: bool, name: &str| {
            if file == pem {
                let found = if file { "both" } else { "neither" };
                return Err(config::invalid(format!(
                    "config.tcp.tls: {found} of `{name}_file` and `{name}_pem` given, expected one of them"
                )));
            }
            Ok(())
        };
        one(tls.config.cert_file.is_some(), tls.config.cert_pem.is_some(), "cert")?;
        one(tls.config.key_file.is_some(), tls.config.key_pem.is_some(), "key")?;
        if tls.client_ca_file.is_some() && tls.client_ca_pem.is_some() {
            return Err(config::invalid(
                "config.tcp.tls: both `client_ca_file` and `client_ca_pem` given, expected at most one of them",
            ));
        }
        if tls.watch_client_ca && tls.client_ca_file.is_none() {
            return Err(config::invalid("config.tcp.tls.watch_client_ca: expected together with `client_ca_file`"));
        }
        Ok(())
    }

    /// Whether clients must show a certificate.
    pub(crate) fn asks_clients(&self) -> bool {
        let tls = &self.0;
        tls.client_ca_file.is_some() || tls.client_ca_pem.is_some() || tls.include_system_ca_certs_pool == Some(true)
    }
}

/// TLS of a listener, ready to accept.
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    handshake_timeout: Duration,
}

impl Tls {
    /// What `tcp.tls` asks for; `None` if it was left out.
    ///
    /// # Errors
    /// As of [`Self::load`], for the engine.
    pub(crate) async fn open(
        effects: &EffectHandler<OtapPdata>,
        config: Option<&TlsConfig>,
    ) -> Result<Option<Self>, EngineError> {
        let Some(config) = config else { return Ok(None) };
        Self::load(config).await.map(Some).map_err(|error| EngineError::ReceiverError {
            receiver: effects.receiver_id(),
            kind: ReceiverErrorKind::Configuration,
            error: format!("config.tcp.tls: {error}"),
            source_detail: String::new(),
        })
    }

    /// Loads the certificates.
    ///
    /// # Errors
    /// A file cannot be read, or what is in it is no certificate or key.
    pub(crate) async fn load(config: &TlsConfig) -> io::Result<Self> {
        let acceptor = build_tls_acceptor(Some(&config.0)).await?;
        let acceptor = acceptor.ok_or_else(|| io::Error::other("no acceptor for the configured certificates"))?;
        Ok(Self { acceptor, handshake_timeout: config.0.handshake_timeout.unwrap_or(HANDSHAKE_TIMEOUT) })
    }

    /// The handshake of a connection, within its time limit.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        accept_tls_connection(stream, &self.acceptor, self.handshake_timeout).await
    }
}
