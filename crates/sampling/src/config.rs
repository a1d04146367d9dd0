//! The settings of a sampler, the same in every receiver.
//!
//! ```yaml
//! sampling:
//!   seed: 7
//!   policies:
//!     - always_keep: {severity: err, apps: [sshd]}
//!     - trace_flag: {unsampled: drop}
//!     - key_hash: {ratio: 0.1, key: [host, app]}
//!     - ratio: 0.01
//! ```
//!
//! A record goes down the list to the first policy that applies to it, which decides. A record that none applies to is
//! kept. `ratio`, `rate_limit`, and nothing else, apply to every record.

use std::fmt;
use std::marker::PhantomData;

use ipnet::IpNet;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Settings under `sampling`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplingConfig {
    /// Where all choices begin. The same seed gives the same choice for the same key everywhere; another seed another,
    /// unrelated choice.
    #[serde(default)]
    pub seed: u64,
    /// At least one policy; the first that applies to a record decides.
    pub policies: Vec<PolicyConfig>,
}

/// One policy: a map with its name as the only key.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyConfig {
    /// Keeps what is worth it in any case.
    AlwaysKeep(AlwaysKeepConfig),
    /// Follows the sampled flag of the trace that a message belongs to.
    TraceFlag(TraceFlagConfig),
    /// Keeps a share of the records, whatever they are.
    #[serde(deserialize_with = "number_or_map")]
    Ratio(RatioConfig),
    /// Keeps all records of a share of the keys.
    KeyHash(KeyHashConfig),
    /// Keeps the messages of a share of the traces: those that OpenTelemetry's consistent samplers keep at this ratio.
    #[serde(deserialize_with = "number_or_map")]
    TraceRatio(TraceRatioConfig),
    /// Keeps about so many records a second.
    #[serde(deserialize_with = "number_or_map")]
    RateLimit(RateLimitConfig),
}

impl PolicyConfig {
    /// Name of the policy, as in the settings.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::AlwaysKeep(_) => "always_keep",
            Self::TraceFlag(_) => "trace_flag",
            Self::Ratio(_) => "ratio",
            Self::KeyHash(_) => "key_hash",
            Self::TraceRatio(_) => "trace_ratio",
            Self::RateLimit(_) => "rate_limit",
        }
    }
}

/// Keeps a record that any of these is true of, with weight 1. The others go on to the next policy.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlwaysKeepConfig {
    /// Messages of this severity in PRI, and more severe ones.
    pub severity: Option<Severity>,
    /// Messages of these hosts, as written in the header.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Messages of these programs, as written in the header; for CEF without one `vendor|product`.
    #[serde(default)]
    pub apps: Vec<String>,
    /// Records from these addresses (`192.0.2.1`) and networks (`2001:db8::/32`).
    #[serde(default)]
    pub sources: Vec<Source>,
}

/// Severity of syslog by its keyword in syslog.conf.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// 0
    Emerg,
    /// 1
    Alert,
    /// 2
    Crit,
    /// 3
    Err,
    /// 4
    Warning,
    /// 5
    Notice,
    /// 6
    Info,
    /// 7
    Debug,
}

/// An address, or the addresses of a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source(pub IpNet);

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let network = text.parse::<IpNet>().or_else(|error| match text.parse() {
            Ok(address) => Ok(IpNet::from(std::net::IpAddr::to_canonical(&address))),
            Err(_) => Err(error),
        });
        network.map(Self).map_err(|_| {
            Error::custom(format!("`{text}` is no source, expected an address or a network such as `192.0.2.0/24`"))
        })
    }
}

/// Follows the flag `sampled` in the `traceparent` of a message. One without a valid `traceparent` goes on to the next
/// policy. Messages of sampled traces are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceFlagConfig {
    /// What becomes of messages of traces that are not sampled.
    pub unsampled: Unsampled,
}

/// What becomes of a message of a trace that is not sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unsampled {
    /// It is dropped. The messages that are kept then stand for these, by the threshold that their `tracestate` tells;
    /// if it tells none, they count once.
    Drop,
    /// It is kept.
    Keep,
    /// The next policy decides.
    Pass,
}

/// Keeps this share of all records; also written as the number alone.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RatioConfig {
    /// 0 to 1; 0 drops all.
    pub ratio: f64,
    /// How records are drawn.
    #[serde(default)]
    pub draw: Draw,
}

/// How records are drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Draw {
    /// Each record by itself: right whatever the order of records.
    #[default]
    Random,
    /// At even distances from a random start: the number kept is exact, but records that come in a rhythm of their own
    /// may be hit always or never.
    Systematic,
}

/// Keeps all records of this share of the keys. A record without any field of the key goes on to the next policy.
///
/// The choice is the same on every core and host, and that of a lower ratio is part of that of a higher one. Sums are
/// right on average, but vary much if a few keys have most of the records.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyHashConfig {
    /// 0 to 1; 0 drops all that have a key.
    pub ratio: f64,
    /// One field, or a list.
    #[serde(deserialize_with = "one_or_list")]
    pub key: Vec<KeyField>,
}

/// A field of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyField {
    /// Host in the header of a message.
    Host,
    /// Program in the header of a message; for CEF without one `vendor|product`.
    App,
    /// Address of the sender.
    Source,
    /// Address of the exporter and observation domain.
    Exporter,
    /// Addresses, ports and protocol of a flow, in this direction.
    Flow,
}

impl fmt::Display for KeyField {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Host => "host",
            Self::App => "app",
            Self::Source => "source",
            Self::Exporter => "exporter",
            Self::Flow => "flow",
        })
    }
}

/// Keeps the messages of this share of the traces; also written as the number alone. A message without a valid
/// `traceparent` goes on to the next policy.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceRatioConfig {
    /// 0 to 1; 0 drops all that have a trace.
    pub ratio: f64,
    /// What a threshold in `tracestate` means.
    #[serde(default)]
    pub incoming: Incoming,
}

/// What the threshold means that a sampled trace came with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Incoming {
    /// Its messages have been thinned by it already, as where programs log only in sampled traces, or after a
    /// `trace_flag` that drops: the higher threshold counts.
    #[default]
    Equalize,
    /// Messages of all traces come: only the ratio counts.
    Ignore,
}

/// Keeps about so many records a second; also written as the number alone.
///
/// Each tenth of a second records are drawn with the probability that fits the rate so far, and each kept one stands for
/// as many as this probability says. So sums stay right however wrong the guess was, unless the hard cap is reached.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RateLimitConfig {
    /// Records to keep each second, of each sampler: a receiver has one on each core.
    pub per_second: f64,
    /// Never keep more than so many a second, over a few tenths of one. What is dropped for this is missing from sums,
    /// and counted apart. Twice `per_second` if left out.
    pub hard_cap: Option<f64>,
}

/// A policy that can be written as a number.
trait FromNumber {
    /// What is expected instead of something else.
    const EXPECTED: &'static str;

    fn from_number(number: f64) -> Self;
}

impl FromNumber for RatioConfig {
    const EXPECTED: &'static str = "a ratio from 0 to 1, or a map with `ratio` and `draw`";

    fn from_number(ratio: f64) -> Self {
        Self { ratio, draw: Draw::default() }
    }
}

impl FromNumber for TraceRatioConfig {
    const EXPECTED: &'static str = "a ratio from 0 to 1, or a map with `ratio` and `incoming`";

    fn from_number(ratio: f64) -> Self {
        Self { ratio, incoming: Incoming::default() }
    }
}

impl FromNumber for RateLimitConfig {
    const EXPECTED: &'static str = "records per second, or a map with `per_second` and `hard_cap`";

    fn from_number(per_second: f64) -> Self {
        Self { per_second, hard_cap: None }
    }
}

fn number_or_map<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromNumber + Deserialize<'de>,
{
    struct NumberOrMap<T>(PhantomData<T>);

    impl<'de, T: FromNumber + Deserialize<'de>> Visitor<'de> for NumberOrMap<T> {
        type Value = T;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(T::EXPECTED)
        }

        fn visit_f64<E>(self, number: f64) -> Result<T, E> {
            Ok(T::from_number(number))
        }

        fn visit_u64<E>(self, number: u64) -> Result<T, E> {
            Ok(T::from_number(number as f64))
        }

        fn visit_i64<E>(self, number: i64) -> Result<T, E> {
            Ok(T::from_number(number as f64))
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map))
        }
    }

    deserializer.deserialize_any(NumberOrMap(PhantomData))
}

fn one_or_list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<KeyField>, D::Error> {
    struct OneOrList;

    impl<'de> Visitor<'de> for OneOrList {
        type Value = Vec<KeyField>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("one of `host`, `app`, `source`, `exporter`, `flow`, or a list of them")
        }

        fn visit_str<E: Error>(self, name: &str) -> Result<Vec<KeyField>, E> {
            KeyField::deserialize(name.into_deserializer()).map(|field| vec![field])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Vec<KeyField>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(list))
        }
    }

    deserializer.deserialize_any(OneOrList)
}

#[cfg(test)]
mod tests;
