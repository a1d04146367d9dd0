//! Reading node configs: errors that name the key, byte sizes with units.

use otel_arrow_dfe_config::error::Error;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A config error with this text. The engine puts group, pipeline and node before it.
pub(crate) fn invalid(error: impl Into<String>) -> Error {
    Error::InvalidUserConfig { error: error.into() }
}

/// Reads the `config` of a node; one that was left out counts as empty.
///
/// # Errors
/// Names the key at fault (`tcp.framing`), what was found, and what is allowed.
pub(crate) fn parse<T: DeserializeOwned>(config: &Value) -> Result<T, Error> {
    let config = if config.is_null() { Value::Object(serde_json::Map::new()) } else { config.clone() };
    parse_below("config", config)
}

/// Reads a part of a config that stands at `place`.
///
/// # Errors
/// As for [`parse`].
pub(crate) fn parse_below<T: DeserializeOwned>(place: &str, value: Value) -> Result<T, Error> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        invalid(if path == "." { format!("{place}: {inner}") } else { format!("{place}.{path}: {inner}") })
    })
}

/// Checks a number against inclusive bounds.
pub(crate) fn within<T: PartialOrd + std::fmt::Display>(key: &str, value: T, low: T, high: T) -> Result<(), Error> {
    if value < low || value > high {
        return Err(invalid(format!("config.{key}: {value} is out of range, expected {low} to {high}")));
    }
    Ok(())
}

/// A number of bytes, written as a number or with a unit (`64 KiB`).
pub(crate) mod bytes {
    use serde::Deserializer;
    use serde::de::Error;

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
        let value = otel_arrow_dfe_config::byte_units::deserialize(deserializer)?;
        let value = value.ok_or_else(|| D::Error::custom("expected a number of bytes, such as 65536 or 64 KiB"))?;
        usize::try_from(value).map_err(D::Error::custom)
    }
}

/// An address to listen on, `IP:PORT`.
pub(crate) mod address {
    use std::net::SocketAddr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer};

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        value.as_str().and_then(|text| text.parse().ok()).ok_or_else(|| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            D::Error::custom(format!("`{text}` is no address, expected IP:PORT such as `0.0.0.0:514` or `[::]:514`"))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        #[serde(default)]
        inner: Option<Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Inner {
        #[serde(deserialize_with = "bytes::deserialize")]
        size: usize,
        #[serde(default = "nowhere", deserialize_with = "address::deserialize")]
        listening_addr: std::net::SocketAddr,
    }

    fn nowhere() -> std::net::SocketAddr {
        ([0, 0, 0, 0], 0).into()
    }

    /// The whole path of a bad key is named, with what was found and what is allowed.
    #[test]
    fn errors_name_the_key() {
        let message = |value| parse::<Outer>(&value).expect_err("refused").to_string();
        let unknown = message(json!({"inner": {"sise": 1}}));
        assert!(unknown.contains("config.inner.sise") && unknown.contains("expected `size`"), "{unknown}");
        let kind = message(json!({"inner": {"size": true}}));
        assert!(kind.contains("config.inner.size"), "{kind}");
    }

    /// Names of hosts are no addresses, and what is wanted is said.
    #[test]
    fn addresses_are_explained() {
        let read = |address| parse::<Outer>(&json!({"inner": {"size": 1, "listening_addr": address}}));
        let outer = read("[::1]:514").expect("valid");
        assert_eq!(outer.inner.map(|inner| inner.listening_addr.port()), Some(514));
        let error = read("localhost:514").expect_err("refused").to_string();
        assert!(error.contains("config.inner.listening_addr: `localhost:514`") && error.contains("IP:PORT"), "{error}");
    }

    /// An omitted config is an empty one; sizes take units.
    #[test]
    fn null_is_empty_and_units_are_read() {
        assert!(parse::<Outer>(&Value::Null).expect("empty").inner.is_none());
        let outer: Outer = parse(&json!({"inner": {"size": "64 KiB"}})).expect("valid");
        assert_eq!(outer.inner.expect("inner").size, 65_536);
    }
}
