//! Configuration of the console table exporter.

use std::time::Duration;

use otel_arrow_dfe_config::error::Error;
use serde::Deserialize;
use serde_json::Value;

use crate::config;

/// The checked configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    #[serde(default)]
    pub(super) format: Format,
    /// How long a table waits for further rows of its window. Lines do not wait.
    #[serde(default = "gather", with = "humantime_serde")]
    pub(super) gather: Duration,
}

const fn gather() -> Duration {
    Duration::from_millis(500)
}

/// What is written to standard output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Format {
    /// Tables on a terminal, lines elsewhere.
    #[default]
    Auto,
    /// Tables.
    Table,
    /// One line a series, for other programs.
    Lines,
}

impl Config {
    /// Reads and checks the configuration.
    ///
    /// # Errors
    /// Names the key at fault and what would be right.
    pub(super) fn parse(value: &Value) -> Result<Self, Error> {
        let config: Self = config::parse(value)?;
        config::within("gather (ms)", config.gather.as_millis(), 0, 60_000)?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_config_is_valid_and_a_wrong_one_explained() {
        assert_eq!(Config::parse(&Value::Null).expect("valid").format, Format::Auto);
        let refused = Config::parse(&serde_json::json!({"format": "csv"})).expect_err("refused").to_string();
        assert!(refused.contains("config.format") && refused.contains("lines"), "{refused}");
    }
}
