//! How records become log records and metrics.

use std::fmt;

use catchment_columns::ParentIds;
use catchment_columns::flow::{
    Biflow, Enumerations, ExporterAt, FlowMapping, FlowSchema, OptionsData, SamplingUse, TimeForm, U64Overflow,
};
use catchment_columns::metrics::{ElementRef, MetricKind, MetricRule, MetricRules};
use catchment_columns::sonic::U64Overflow as PointOverflow;
use otel_arrow_dfe_config::error::Error;
use serde::{Deserialize, Deserializer};

use super::{Config, Emit, Profile, Signal};
use crate::config;

/// A key whose values are those of a type of the columns.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident of $of:ident { $($(#[$marker:meta])* $value:ident $(alias $alias:literal)?),* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub(in super::super) enum $name {
            $($(#[$marker])* $(#[serde(alias = $alias)])? $value,)*
        }

        impl From<$name> for $of {
            fn from(name: $name) -> Self {
                match name {
                    $($name::$value => Self::$value,)*
                }
            }
        }
    };
}
pub(super) use choice;

choice! {
    /// Names of attributes.
    SchemaName of FlowSchema { #[default] Otel alias "collector", Ipfix }
}
choice! {
    /// Values that have names.
    EnumerationsName of Enumerations { #[default] Names, Numbers }
}
choice! {
    /// Form of times.
    TimesName of TimeForm { #[default] UnixNano, Rfc3339 }
}
choice! {
    /// What becomes of options data.
    OptionsName of OptionsData { #[default] Both, Emit, Use }
}
choice! {
    /// What becomes of sampling rates.
    SamplingName of SamplingUse { #[default] Keep, Apply }
}
choice! {
    /// What becomes of integers that OTLP cannot hold.
    OverflowName of U64Overflow { #[default] Double, String, Saturate }
}
choice! {
    /// Records of both directions of a flow.
    BiflowName of Biflow { #[default] One, Two }
}
choice! {
    /// Where the address of the exporter stands.
    ExporterPlace of ExporterAt { #[default] Record, Resource }
}

/// How parent ids of attributes are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in super::super) enum ParentIdsName {
    /// Plain, unless whoever starts the engine knows that all nodes behind understand more and says so.
    #[default]
    Auto,
    Plain,
    Transport,
}

impl From<ParentIdsName> for ParentIds {
    fn from(name: ParentIdsName) -> Self {
        match name {
            ParentIdsName::Auto | ParentIdsName::Plain => Self::Plain,
            ParentIdsName::Transport => Self::Transport,
        }
    }
}

/// Kind of a metric.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MetricKindName {
    /// By the semantics that the registry gives the element.
    #[default]
    Auto,
    Delta,
    Cumulative,
    Gauge,
}

/// An element as it is written in a rule: a name, a number, or enterprise and number.
#[derive(Debug, Clone)]
struct ElementName(String);

impl<'de> Deserialize<'de> for ElementName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl serde::de::Visitor<'_> for Visitor {
            type Value = ElementName;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("the name of an element, its number, or enterprise and number such as `9/8232`")
            }

            fn visit_str<E>(self, text: &str) -> Result<ElementName, E> {
                Ok(ElementName(text.to_owned()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<ElementName, E> {
                Ok(ElementName(number.to_string()))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

/// Which counters become metrics, and what tells their series apart.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in super::super) struct MetricRuleConfig {
    elements: Vec<ElementName>,
    #[serde(default)]
    kind: MetricKindName,
    name: Option<String>,
    #[serde(default)]
    keys: Vec<ElementName>,
}

impl MetricRuleConfig {
    /// The rule; `at` is its place in the list.
    fn rule(&self, at: usize) -> Result<MetricRule, Error> {
        let parse = |key: &str, names: &[ElementName]| {
            let parsed = names.iter().enumerate().map(|(place, ElementName(name))| {
                element(name).ok_or_else(|| {
                    config::invalid(format!(
                        "config.metrics[{at}].{key}[{place}]: `{name}` is no element, expected a name of the IANA registry such as `octetDeltaCount`, or enterprise and number such as `9/8232`"
                    ))
                })
            });
            parsed.collect::<Result<Vec<_>, _>>()
        };
        Ok(MetricRule {
            elements: parse("elements", &self.elements)?,
            kind: match self.kind {
                MetricKindName::Auto => MetricKind::Auto,
                MetricKindName::Delta => MetricKind::Delta,
                MetricKindName::Cumulative => MetricKind::Cumulative,
                MetricKindName::Gauge => MetricKind::Gauge,
            },
            name: self.name.clone(),
            keys: parse("keys", &self.keys)?,
        })
    }
}

/// An element by name, by number, or by enterprise and number.
fn element(text: &str) -> Option<ElementRef> {
    let (enterprise, id) = match text.split_once('/') {
        Some((enterprise, id)) => (enterprise.parse().ok()?, id),
        None => (0, text),
    };
    match id.parse() {
        Ok(id) => Some(ElementRef::Number { enterprise, id }),
        Err(_) => (enterprise == 0 && !text.contains('/')).then(|| ElementRef::Name(text.to_owned())),
    }
}

impl Config {
    pub(super) fn check_mapping(&self) -> Result<(), Error> {
        let signal = self.signal();
        if self.profile == Profile::SonicHft && signal == Signal::Logs {
            return Err(config::invalid("config.signal: `profile: sonic_hft` gives metrics, expected `metrics`"));
        }
        let wants_rules = self.profile == Profile::Flows && signal == Signal::Metrics;
        if wants_rules && self.metrics.is_empty() {
            return Err(config::invalid(
                "config.metrics: `signal: metrics` needs at least one rule, such as `{elements: [octetDeltaCount], keys: [ingressInterface]}`",
            ));
        }
        if !wants_rules && !self.metrics.is_empty() {
            return Err(config::invalid("config.metrics: rules are given, expected `signal: metrics` with them"));
        }
        if self.emit == Emit::Encoded && wants_rules {
            return Err(config::invalid(
                "config.emit: metrics of flows are not sent encoded, expected `records` with `signal: metrics`",
            ));
        }
        if self.emit == Emit::Encoded && self.parent_ids == ParentIdsName::Transport {
            return Err(config::invalid(
                "config.parent_ids: `transport` is of decoded batches, expected `emit: records` with it",
            ));
        }
        self.metric_rules().map(|_| ())
    }

    /// How flow records become log records.
    pub(in super::super) fn flow_mapping(&self) -> FlowMapping {
        FlowMapping {
            schema: self.schema.into(),
            enumerations: self.enumerations.into(),
            times: self.times.into(),
            sampling: self.packet_sampling().into(),
            options: self.options.into(),
            u64_overflow: self.u64_overflow.into(),
            list_semantics: self.list_semantics,
            biflow: self.biflow.into(),
            exporter_at: self.exporter_at.into(),
            per_exporter: self.batch_per_exporter,
            time_encoding: self.time_encoding.into(),
            parent_ids: self.parent_ids.into(),
        }
    }

    /// Which counters become metrics.
    ///
    /// # Errors
    /// Names the rule at fault and what would be right.
    pub(in super::super) fn metric_rules(&self) -> Result<MetricRules, Error> {
        let rules = self.metrics.iter().enumerate().map(|(at, rule)| rule.rule(at)).collect::<Result<Vec<_>, _>>()?;
        let overflow = match self.u64_overflow {
            OverflowName::Saturate => PointOverflow::Saturate,
            OverflowName::Double | OverflowName::String => PointOverflow::Double,
        };
        MetricRules::new(&rules, overflow).map_err(|error| config::invalid(format!("config.metrics: {error}")))
    }
}
