//! Settings of the client: those of the engine's own exporters, with one name for the address.

use std::collections::HashMap;
use std::str::FromStr as _;

use catchment_delivery::wire::otlp_http::HttpSettings;
use http::header::USER_AGENT;
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use otel_arrow_dfe_config::error::Error;
use otel_arrow_dfe_config::tls::TlsClientConfig;
use otel_arrow_dfe_otap::otap_grpc::client_settings::GrpcClientSettings;
use otel_arrow_dfe_otap::otap_grpc::proxy::ProxyConfig;
use otel_arrow_dfe_otap::otlp_http::client_settings::HttpClientSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Protocol;
use crate::config;

/// How the server is reached.
#[derive(Debug, Clone)]
pub(in super::super) enum Client {
    /// Over gRPC.
    Grpc(Box<GrpcClientSettings>),
    /// Over HTTP.
    Http(Box<HttpClient>),
}

/// Settings of HTTP.
#[derive(Debug, Clone)]
pub(in super::super) struct HttpClient {
    /// Where each signal goes, by its index.
    pub(in super::super) targets: [Uri; 3],
    pub(in super::super) headers: HeaderMap,
    pub(in super::super) proxy: Option<ProxyConfig>,
    pub(in super::super) settings: HttpClientSettings,
}

/// Keys of the engine's settings that others of this node stand for.
const ELSEWHERE: [(&str, &str); 7] = [
    ("compression", "use `config.compression`"),
    ("compression_method", "use `config.compression`"),
    ("timeout", "use `config.request.attempt_timeout`"),
    ("concurrency_limit", "a lane has one request in flight; use `config.lanes.count`"),
    ("buffer_size", "a lane has one request in flight; use `config.lanes.max_queue_batches`"),
    ("startup_check", "connections are made when there is something to send, and tried again by `config.retry`"),
    ("grpc_endpoint", "use `endpoint`"),
];

const TLS_KEYS: [&str; 11] = [
    "cert_file",
    "cert_pem",
    "key_file",
    "key_pem",
    "reload_interval",
    "ca_file",
    "ca_pem",
    "include_system_ca_certs_pool",
    "server_name_override",
    "insecure",
    "insecure_skip_verify",
];

impl Client {
    pub(super) fn parse(protocol: Protocol, value: Value) -> Result<Self, Error> {
        let Value::Object(mut map) = value else {
            return Err(config::invalid("config.client: expected a map with `endpoint`"));
        };
        for (key, instead) in ELSEWHERE {
            if map.contains_key(key) {
                return Err(config::invalid(format!("config.client.{key}: not used here, {instead}")));
            }
        }
        if let Some(Value::Object(tls)) = map.get("tls")
            && let Some(key) = tls.keys().find(|key| !TLS_KEYS.contains(&key.as_str()))
        {
            return Err(config::invalid(format!(
                "config.client.tls.{key}: unknown field, expected one of `{}`",
                TLS_KEYS.join("`, `")
            )));
        }
        if protocol == Protocol::OtlpHttp {
            return HttpClient::parse(map).map(|client| Self::Http(Box::new(client)));
        }
        let endpoint = text(&mut map, "endpoint")?
            .ok_or_else(|| config::invalid("config.client.endpoint: missing, expected such as http://host:4317"))?;
        if let Some(key) = map.keys().find(|key| key.ends_with("_endpoint")) {
            return Err(config::invalid(format!("config.client.{key}: belongs to `protocol: otlp_http`")));
        }
        let uri = address("endpoint", &endpoint)?;
        let _ = map.insert("grpc_endpoint".to_owned(), endpoint.into());
        let settings: GrpcClientSettings = read(map)?;
        settings.validate().map_err(|error| config::invalid(format!("config.client: {error}")))?;
        check_tls(settings.tls.as_ref(), std::slice::from_ref(&uri))?;
        Ok(Self::Grpc(Box::new(settings)))
    }
}

impl HttpClient {
    fn parse(mut map: Map<String, Value>) -> Result<Self, Error> {
        let endpoint = text(&mut map, "endpoint")?;
        let mut targets = match &endpoint {
            Some(endpoint) => {
                let uri = address("endpoint", endpoint)?;
                let settings = HttpSettings::endpoint(&uri);
                settings.map_err(|error| config::invalid(format!("config.client.endpoint: {error}")))?.targets.map(Some)
            }
            None => [None, None, None],
        };
        for (target, key) in targets.iter_mut().zip(["logs_endpoint", "metrics_endpoint", "traces_endpoint"]) {
            if let Some(endpoint) = text(&mut map, key)? {
                *target = Some(address(key, &endpoint)?);
            }
        }
        let [Some(logs), Some(metrics), Some(traces)] = targets else {
            return Err(config::invalid(
                "config.client.endpoint: missing, expected such as http://host:4318, or `logs_endpoint`, \
                 `metrics_endpoint` and `traces_endpoint`, all three",
            ));
        };
        let targets = [logs, metrics, traces];
        let proxy = map.remove("proxy").map(|proxy| config::parse_below("config.client.proxy", proxy)).transpose()?;
        let plain: HashMap<String, String> = match map.get("headers") {
            Some(headers) => config::parse_below("config.client.headers", headers.clone())?,
            None => HashMap::new(),
        };
        let settings: HttpClientSettings = read(map)?;
        settings.validate().map_err(|error| config::invalid(format!("config.client: {error}")))?;
        check_tls(settings.tls.as_ref(), &targets)?;
        let mut headers = HeaderMap::new();
        for (name, value) in &plain {
            if let (Ok(name), Ok(mut value)) = (HeaderName::from_str(name), HeaderValue::from_str(value)) {
                value.set_sensitive(true);
                let _ = headers.insert(name, value);
            }
        }
        if let Some(agent) = settings.user_agent.as_deref().and_then(|agent| HeaderValue::from_str(agent).ok()) {
            let _ = headers.insert(USER_AGENT, agent);
        }
        Ok(Self { targets, headers, proxy, settings })
    }
}

/// Takes a text out of the settings.
fn text(map: &mut Map<String, Value>, key: &str) -> Result<Option<String>, Error> {
    match map.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(config::invalid(format!("config.client.{key}: {other} is no text, expected an address"))),
    }
}

fn read<T: DeserializeOwned>(map: Map<String, Value>) -> Result<T, Error> {
    config::parse_below("config.client", Value::Object(map))
}

fn address(key: &str, text: &str) -> Result<Uri, Error> {
    let uri = Uri::from_str(text).ok().filter(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some_and(|host| !host.is_empty())
    });
    uri.ok_or_else(|| {
        config::invalid(format!(
            "config.client.{key}: `{text}` is no address, expected http://HOST:PORT or https://HOST:PORT"
        ))
    })
}

/// Checks what can be checked without reading files.
fn check_tls(tls: Option<&TlsClientConfig>, targets: &[Uri]) -> Result<(), Error> {
    let Some(tls) = tls else { return Ok(()) };
    let wrong = |text: &str| Err(config::invalid(format!("config.client.tls{text}")));
    if tls.insecure_skip_verify == Some(true) {
        return wrong(".insecure_skip_verify: a server is always verified, expected `ca_file` with its authority");
    }
    let has = |file: bool, pem: &Option<String>| file || pem.as_ref().is_some_and(|pem| !pem.trim().is_empty());
    let certificate = has(tls.config.cert_file.is_some(), &tls.config.cert_pem);
    if certificate != has(tls.config.key_file.is_some(), &tls.config.key_pem) {
        return wrong(": a certificate without its key or the other way round, expected both or neither");
    }
    let encrypted = targets.iter().any(|target| target.scheme_str() == Some("https"));
    if !encrypted && tls.insecure != Some(true) {
        return wrong(": the address is http://, expected https://, or `insecure: true`");
    }
    if encrypted && tls.insecure == Some(true) {
        return wrong(".insecure: the address is https://, expected http://, or the key left out");
    }
    Ok(())
}
