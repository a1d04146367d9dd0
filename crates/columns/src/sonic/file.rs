//! Telemetry sessions from a file, for switches whose database is out of reach.

use std::collections::HashSet;

use catchment_ipfix::sonic::SessionRow;
use serde_json::Value;
use thiserror::Error;

/// Why a file of sessions cannot be used.
#[derive(Debug, Error)]
pub enum SessionFileError {
    /// It is no JSON.
    #[error("not a json document: {0}")]
    Json(#[from] serde_json::Error),
    /// Something is missing, or not what it should be.
    #[error("session {index}: {field} must be {wanted}")]
    Field {
        /// Position of the session in the file, counted from 0.
        index: usize,
        /// Which part of it.
        field: &'static str,
        /// What it should be.
        wanted: &'static str,
    },
    /// One key for two sessions.
    #[error("session {index} has key {key:?}, as an earlier one has")]
    RepeatedKey {
        /// Position of the session in the file, counted from 0.
        index: usize,
        /// The key.
        key: String,
    },
}

/// Reads sessions with their keys out of a JSON document: one object or a list of them, each with `key` and `fields` as
/// they stand in the database, but `session_config_hex` in place of `session_config`. An object may also hold such an
/// object under `redis`.
///
/// # Errors
/// [`SessionFileError`] with the session and the field at fault. What the fields say is not checked here.
pub fn session_rows(json: &[u8]) -> Result<Vec<(String, SessionRow)>, SessionFileError> {
    let document: Value = serde_json::from_slice(json)?;
    let entries = match &document {
        Value::Array(entries) => entries.as_slice(),
        single => std::slice::from_ref(single),
    };
    let mut keys = HashSet::new();
    let rows = entries.iter().enumerate().map(|(index, entry)| {
        let entry = entry.get("redis").unwrap_or(entry);
        let fault = |field, wanted| SessionFileError::Field { index, field, wanted };
        let key = entry.get("key").and_then(Value::as_str).ok_or_else(|| fault("key", "text"))?.to_owned();
        let fields = entry.get("fields").and_then(Value::as_object).ok_or_else(|| fault("fields", "an object"))?;
        let text = |field: &'static str| {
            let text = fields.get(field).and_then(Value::as_str);
            text.map(str::to_owned).ok_or_else(|| fault(field, "text"))
        };
        let row = SessionRow {
            stream_status: text("stream_status")?,
            session_type: text("session_type")?,
            object_names: text("object_names")?,
            object_ids: text("object_ids")?,
            session_config: bytes(&text("session_config_hex")?)
                .ok_or_else(|| fault("session_config_hex", "pairs of hexadecimal digits"))?,
        };
        if !keys.insert(key.clone()) {
            return Err(SessionFileError::RepeatedKey { index, key });
        }
        Ok((key, row))
    });
    rows.collect()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    let digit = |letter: u8| char::from(letter).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
    if rest.is_empty() { bytes } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, hex: &str) -> String {
        format!(
            r#"{{"key":"{key}","fields":{{"stream_status":"enabled","session_type":"ipfix","object_names":"a|1",
            "object_ids":"1","session_config_hex":"{hex}"}}}}"#
        )
    }

    /// One session, a list, and a wrapped one.
    #[test]
    fn forms() {
        let one = entry("k", "00aF");
        let rows = session_rows(one.as_bytes()).expect("rows");
        assert_eq!((rows[0].0.as_str(), rows[0].1.session_config.as_slice()), ("k", &[0, 0xaf][..]));
        let list = format!(r#"[{one}, {{"redis": {}}}]"#, entry("l", ""));
        let keys: Vec<_> = session_rows(list.as_bytes()).expect("rows").into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["k", "l"]);
    }

    /// Errors name the session and the field.
    #[test]
    fn faults() {
        let fault = |json: &str| session_rows(json.as_bytes()).expect_err("refused").to_string();
        assert!(fault("{").starts_with("not a json document"));
        assert_eq!(fault("[7]"), "session 0: key must be text");
        assert_eq!(fault(r#"{"key":"k"}"#), "session 0: fields must be an object");
        assert_eq!(fault(r#"{"key":"k","fields":{}}"#), "session 0: stream_status must be text");
        let odd = format!("[{}, {}]", entry("k", ""), entry("l", "abc"));
        assert_eq!(fault(&odd), "session 1: session_config_hex must be pairs of hexadecimal digits");
        let twice = format!("[{0}, {0}]", entry("k", ""));
        assert_eq!(fault(&twice), "session 1 has key \"k\", as an earlier one has");
    }
}
