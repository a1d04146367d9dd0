//! Bounds of what is kept of exporters.

use std::time::Duration;

use catchment_ipfix::{CollectorLimits, Limits, PendingLimits, TemplateScope, TimeEncoding};
use otel_arrow_dfe_config::error::Error;
use serde::Deserialize;

use super::Config;
use crate::config;

/// Which data a template holds for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum TemplateScopeName {
    /// That of the same address and port.
    #[default]
    Session,
    /// That of the same address, whatever the port.
    Address,
}

/// How exporters write dateTimeMicroseconds and dateTimeNanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum TimeEncodingName {
    /// Whichever of the other two makes sense.
    #[default]
    Auto,
    Ntp,
    UnixNano,
}

/// Data that came before its template.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a map; to keep nothing, `{max_bytes: 0}`")]
pub(in super::super) struct PendingConfig {
    /// Bytes held of one exporter; 0 drops such data at once.
    #[serde(deserialize_with = "config::bytes::deserialize")]
    max_bytes_per_exporter: usize,
    /// Bytes held of all exporters.
    #[serde(deserialize_with = "config::bytes::deserialize")]
    max_bytes: usize,
    #[serde(with = "humantime_serde")]
    pub(in super::super) max_age: Duration,
}

impl Default for PendingConfig {
    fn default() -> Self {
        Self { max_bytes_per_exporter: 1024 * 1024, max_bytes: 16 * 1024 * 1024, max_age: Duration::from_secs(30 * 60) }
    }
}

impl From<TimeEncodingName> for TimeEncoding {
    fn from(name: TimeEncodingName) -> Self {
        match name {
            TimeEncodingName::Auto => Self::Auto,
            TimeEncodingName::Ntp => Self::Ntp,
            TimeEncodingName::UnixNano => Self::UnixNano,
        }
    }
}

impl Config {
    /// Bounds of what is kept of exporters.
    pub(in super::super) fn collector_limits(&self) -> CollectorLimits {
        let pending = &self.pending;
        CollectorLimits {
            session: Limits {
                max_templates: self.max_templates,
                template_lifetime: Some(self.template_lifetime),
                ..Limits::default()
            },
            max_sessions: self.max_exporters,
            max_sessions_per_address: self.max_exporters_per_address,
            max_total_fields: self.max_template_fields,
            template_scope: match self.template_scope {
                TemplateScopeName::Session => TemplateScope::Session,
                TemplateScopeName::Address => TemplateScope::Address,
            },
            idle: self.exporter_idle,
            pending: (pending.max_bytes_per_exporter > 0 && pending.max_bytes > 0).then_some(PendingLimits {
                bytes_per_session: pending.max_bytes_per_exporter,
                bytes_total: pending.max_bytes,
                max_age: pending.max_age,
            }),
            ..CollectorLimits::default()
        }
    }

    pub(super) fn check_limits(&self) -> Result<(), Error> {
        config::within("max_exporters", self.max_exporters, 4, 1_000_000)?;
        config::within("max_exporters_per_address", self.max_exporters_per_address, 1, 1_000_000)?;
        config::within("max_templates", self.max_templates, 1, 65_280)?;
        config::within("max_template_fields", self.max_template_fields, 1_000, 100_000_000)?;
        config::within("exporter_metrics", self.exporter_metrics, 0, 10_000)?;
        let seconds = |duration: Duration| duration.as_secs();
        config::within("template_lifetime (s)", seconds(self.template_lifetime), 60, 366 * 24 * 3_600)?;
        config::within("exporter_idle (s)", seconds(self.exporter_idle), 60, 366 * 24 * 3_600)?;
        config::within("pending.max_bytes_per_exporter", self.pending.max_bytes_per_exporter, 0, 1 << 30)?;
        config::within("pending.max_bytes", self.pending.max_bytes, 0, 1 << 34)?;
        config::within("pending.max_age (s)", seconds(self.pending.max_age), 1, 24 * 3_600)?;
        if let Some(cache) = &self.template_cache {
            if cache.path.as_os_str().is_empty() {
                return Err(config::invalid("config.template_cache.path: is empty, expected the path of a file"));
            }
            config::within("template_cache.interval (s)", seconds(cache.interval), 1, 24 * 3_600)?;
        }
        Ok(())
    }
}
