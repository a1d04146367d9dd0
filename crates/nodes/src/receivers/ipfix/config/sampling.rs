//! Which records are kept, and what becomes of the rates that exporters sample packets with.

use std::fmt;

use catchment_sampling::{Input, SamplingConfig};
use otel_arrow_dfe_config::error::Error;
use serde::de::value::MapAccessDeserializer;
use serde::de::{IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::mapping::SamplingName;
use super::{Config, Profile};
use crate::config;
use crate::ingest::Sampling;

/// The key `sampling`: settings of a sampler, or a word that stands for `packet_sampling`.
#[derive(Debug, Clone)]
pub(super) enum SamplingKey {
    Head(SamplingConfig),
    Packets(SamplingName),
}

impl<'de> Deserialize<'de> for SamplingKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordOrMap;

        impl<'de> Visitor<'de> for WordOrMap {
            type Value = SamplingKey;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a map with `policies`, or `keep` or `apply`")
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<SamplingKey, E> {
                SamplingName::deserialize(word.into_deserializer()).map(SamplingKey::Packets)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<SamplingKey, A::Error> {
                SamplingConfig::deserialize(MapAccessDeserializer::new(map)).map(SamplingKey::Head)
            }
        }

        deserializer.deserialize_any(WordOrMap)
    }
}

impl Config {
    pub(super) fn check_sampling(&self) -> Result<(), Error> {
        let Some(sampling) = &self.sampling else { return Ok(()) };
        if self.profile == Profile::SonicHft {
            return Err(config::invalid(
                "config.sampling: values of `profile: sonic_hft` are cumulative or gauges, of which no weight makes up for a dropped one; expected `profile: flows` with it, or a longer interval in the switch",
            ));
        }
        match sampling {
            SamplingKey::Packets(_) if self.packet_sampling.is_some() => Err(config::invalid(
                "config.sampling: a word says what `packet_sampling` says too, expected one of them, or a map with `policies`",
            )),
            SamplingKey::Packets(_) => Ok(()),
            SamplingKey::Head(settings) => Sampling::new(settings, Input::Flows, 0).map(|_| ()),
        }
    }

    /// Which records are kept, if not all.
    pub(in super::super) fn head_sampling(&self) -> Option<&SamplingConfig> {
        match &self.sampling {
            Some(SamplingKey::Head(settings)) => Some(settings),
            _ => None,
        }
    }

    /// What becomes of the rates that exporters tell.
    pub(super) fn packet_sampling(&self) -> SamplingName {
        match (&self.sampling, self.packet_sampling) {
            (_, Some(name)) => name,
            (Some(SamplingKey::Packets(name)), None) => *name,
            _ => SamplingName::default(),
        }
    }
}
