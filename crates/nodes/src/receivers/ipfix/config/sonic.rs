//! Settings of `profile: sonic_hft`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use catchment_columns::ParentIds;
use catchment_columns::sonic::encoded::MAX_PATTERN_BYTES;
use catchment_columns::sonic::{AttributesAt, DEFAULT_POINTS, SonicMapping, SonicNames, U64Overflow};
use otel_arrow_dfe_config::error::Error;
use serde::Deserialize;

use super::mapping::choice;
use super::{Config, Profile};
use crate::config;
use crate::receivers::ipfix::sources::files::FilesConfig;
use crate::receivers::ipfix::sources::redis::RedisConfig;

choice! {
    /// Names of metrics and attributes.
    NamesName of SonicNames { #[default] Sai, Legacy }
}
choice! {
    /// Place of the attributes.
    AttributesPlace of AttributesAt { #[default] Point, Resource }
}
choice! {
    /// What becomes of values that OTLP cannot hold.
    PointOverflow of U64Overflow { #[default] Saturate, Double }
}

/// `sonic`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in super::super) struct SonicConfig {
    names: NamesName,
    attributes_at: AttributesPlace,
    u64_overflow: PointOverflow,
    /// Statistics that are cumulative sums, as patterns.
    cumulative: Vec<String>,
    /// Points of a batch.
    max_points: Option<usize>,
    /// Records of a batch.
    records_per_batch: Option<NonZeroUsize>,
    pub(in super::super) sessions: SessionsConfig,
}

/// Where templates, labels and names come from.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(in super::super) struct SessionsConfig {
    /// JSON files with rows of the session table.
    files: Vec<PathBuf>,
    /// How often the files are looked at for changes.
    #[serde(with = "humantime_serde")]
    file_interval: Option<Duration>,
    pub(in super::super) redis: Option<RedisConfig>,
}

impl SessionsConfig {
    /// The files, if there are any.
    pub(in super::super) fn files(&self) -> Option<FilesConfig> {
        let poll_interval = self.file_interval.unwrap_or(Duration::from_secs(5));
        (!self.files.is_empty()).then(|| FilesConfig { paths: self.files.clone(), poll_interval })
    }
}

impl Config {
    pub(super) fn check_sonic(&self) -> Result<(), Error> {
        let sonic = &self.sonic;
        let is_sonic = self.profile == Profile::SonicHft;
        if !is_sonic && self.netlink.is_some() {
            return Err(config::invalid("config.netlink: is of `profile: sonic_hft`, expected that with it"));
        }
        if is_sonic && self.replay.is_none() && sonic.sessions.files.is_empty() && sonic.sessions.redis.is_none() {
            return Err(config::invalid(
                "config.sonic.sessions: SONiC sends no templates in the stream, expected `files` or `redis` to take them from",
            ));
        }
        if let Some(points) = sonic.max_points {
            config::within("sonic.max_points", points, 1, 65_536)?;
        }
        if let Some(files) = sonic.sessions.files() {
            files.check()?;
        }
        if let Some(pattern) = sonic.cumulative.iter().find(|pattern| pattern.is_empty()) {
            return Err(config::invalid(format!(
                "config.sonic.cumulative: `{pattern}` matches nothing, expected names such as `SAI_PORT_STAT_IF_*_OCTETS`"
            )));
        }
        // What goes out encoded takes them along, so there is a bound.
        let bytes = sonic.cumulative.iter().map(String::len).sum::<usize>();
        config::within("sonic.cumulative (bytes of all)", bytes, 0, MAX_PATTERN_BYTES)?;
        if let Some(redis) = &sonic.sessions.redis {
            redis.check()?;
        }
        Ok(())
    }

    /// How SONiC's records become metrics.
    pub(in super::super) fn sonic_mapping(&self) -> SonicMapping {
        let sonic = &self.sonic;
        SonicMapping {
            names: sonic.names.into(),
            attributes_at: sonic.attributes_at.into(),
            u64_overflow: sonic.u64_overflow.into(),
            cumulative: sonic.cumulative.clone(),
            max_points: sonic.max_points.unwrap_or(DEFAULT_POINTS),
            records_per_batch: sonic.records_per_batch,
            parent_ids: ParentIds::from(self.parent_ids),
        }
    }
}
