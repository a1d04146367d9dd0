//! How to make flow messages.

use std::num::NonZeroU64;
use std::str::FromStr;

use serde::Deserialize;

use super::fields::Field;
use super::wire::{SET_HEADER_BYTES, template_set_bytes};
use super::{FlowFields, netflow_v5};
use crate::traffic::DEFAULT_START_UNIX_NANO;

/// Protocol of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum FlowProtocol {
    /// IPFIX, version 10. Times are flowStartMilliseconds and flowEndMilliseconds, but for [`FlowFields::IosXr`].
    Ipfix,
    /// NetFlow version 9. Times are milliseconds of the exporter's uptime (FIRST_SWITCHED, LAST_SWITCHED).
    NetflowV9,
    /// NetFlow version 5: no templates, records of 48 bytes.
    NetflowV5,
}

impl FlowProtocol {
    /// Data records that fit beside the template in a message of so many bytes.
    pub(super) fn records_that_fit(self, fields: &[Field], message_bytes: usize) -> usize {
        let header = match self {
            Self::Ipfix => 16,
            Self::NetflowV9 => 20,
            Self::NetflowV5 => return netflow_v5::MAX_RECORDS,
        };
        let record_bytes: usize = fields.iter().map(|field| usize::from(field.bytes)).sum();
        // Room for the padding of a v9 data set.
        let padding = self.set_alignment() - 1;
        (message_bytes - header - template_set_bytes(fields) - SET_HEADER_BYTES - padding) / record_bytes
    }

    /// Sets end at a multiple of so many bytes: a must in v9 (RFC 3954 section 5.3), a may in IPFIX.
    pub(super) fn set_alignment(self) -> usize {
        match self {
            Self::Ipfix => 1,
            Self::NetflowV9 | Self::NetflowV5 => 4,
        }
    }
}

/// When templates are sent, and which.
///
/// As text: `regular`, `late:MESSAGES`, `flip:MESSAGES`, `new_ids`, `new_domains`, `never`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlowTemplates {
    /// In the first message with flows and every [`FlowOptions::template_every`]-th after it.
    Regular,
    /// Not before so many messages with flows: data comes before its template.
    Late(u64),
    /// As `Regular`, and after every so many messages the same id gets the same fields in the opposite order, and back.
    Flip(NonZeroU64),
    /// In each message, under an id of its own, all ids round and round.
    NewIds,
    /// In each message, which is from an observation domain (or source id) of its own.
    NewDomains,
    /// Never: nobody can tell what the records hold.
    Never,
}

/// Not a word for [`FlowTemplates`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected regular, late:MESSAGES, flip:MESSAGES (1 or more), new_ids, new_domains or never")]
pub struct FlowTemplatesError;

impl FromStr for FlowTemplates {
    type Err = FlowTemplatesError;

    fn from_str(text: &str) -> Result<Self, FlowTemplatesError> {
        let (word, number) = text.split_once(':').map_or((text, None), |(word, number)| (word, Some(number)));
        let number = number.map(str::parse::<u64>).transpose().map_err(|_| FlowTemplatesError)?;
        match (word, number) {
            ("regular", None) => Ok(Self::Regular),
            ("late", Some(messages)) => Ok(Self::Late(messages)),
            ("flip", Some(every)) => NonZeroU64::new(every).map(Self::Flip).ok_or(FlowTemplatesError),
            ("new_ids", None) => Ok(Self::NewIds),
            ("new_domains", None) => Ok(Self::NewDomains),
            ("never", None) => Ok(Self::Never),
            _ => Err(FlowTemplatesError),
        }
    }
}

/// How to make flow messages.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowOptions {
    /// Protocol of the messages.
    pub protocol: FlowProtocol,
    /// What a record holds; records of NetFlow v5 are always the same.
    pub fields: FlowFields,
    /// Observation domain (IPFIX), source id (v9) or, its last 16 bits, engine type and id (v5).
    #[serde(default)]
    pub observation_domain: u32,
    /// Messages are a function of the seed and the other options.
    #[serde(default)]
    pub seed: u64,
    /// Data records in every message with flows; `None` for as many as fit beside the template in a packet of 1,500
    /// bytes (30 in v5).
    #[serde(default)]
    pub records_per_message: Option<u16>,
    /// The template is in the first message with flows and in every so many-th after it; 0 for the first alone.
    #[serde(default = "default_template_every")]
    pub template_every: u64,
    /// Exceptions from that.
    #[serde(default = "default_templates")]
    pub templates: FlowTemplates,
    /// A message with options templates and data goes before the first message with flows and every so many-th after it:
    /// the sampler, names of the interfaces 1 to 48 and (IPFIX) the start of the exporter. 0 for none. There are none in
    /// v5, whose header tells the sampling if this is not 0.
    #[serde(default)]
    pub options_every: u64,
    /// One packet in so many is sampled, as options data says; 1 to 16,383.
    #[serde(default = "default_sampling_interval")]
    pub sampling_interval: u16,
    /// Time of the first message, in nanoseconds since the Unix epoch.
    #[serde(default = "default_start")]
    pub start_unix_nano: u64,
}

fn default_start() -> u64 {
    DEFAULT_START_UNIX_NANO
}

fn default_template_every() -> u64 {
    16
}

fn default_templates() -> FlowTemplates {
    FlowTemplates::Regular
}

fn default_sampling_interval() -> u16 {
    1_000
}

/// The largest sampling interval: v5 has 14 bits for it.
const MAX_SAMPLING_INTERVAL: u16 = 0x3fff;

impl FlowOptions {
    /// Messages of full packets, with the template in every 16th and without options data.
    #[must_use]
    pub fn new(protocol: FlowProtocol, fields: FlowFields, observation_domain: u32, seed: u64) -> Self {
        Self {
            protocol,
            fields,
            observation_domain,
            seed,
            records_per_message: None,
            template_every: default_template_every(),
            templates: default_templates(),
            options_every: 0,
            sampling_interval: default_sampling_interval(),
            start_unix_nano: DEFAULT_START_UNIX_NANO,
        }
    }

    /// What can be checked without the fields.
    pub(super) fn check(&self) -> Result<(), FlowOptionsError> {
        let found = self.sampling_interval;
        if !(1..=MAX_SAMPLING_INTERVAL).contains(&found) {
            return Err(FlowOptionsError::SamplingInterval { found });
        }
        let with_templates = self.protocol != FlowProtocol::NetflowV5;
        if !with_templates && self.templates != FlowTemplates::Regular {
            return Err(FlowOptionsError::NoTemplates);
        }
        Ok(())
    }
}

/// Options that no exporter can follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FlowOptionsError {
    /// The records do not fit in a message.
    #[error("records_per_message is {found}, expected 1 to {most}: a message holds no more")]
    RecordsPerMessage {
        /// The number asked for.
        found: u16,
        /// The largest number that fits.
        most: usize,
    },
    /// The sampling interval cannot be told in every protocol.
    #[error("sampling_interval is {found}, expected 1 to {MAX_SAMPLING_INTERVAL}")]
    SamplingInterval {
        /// The number asked for.
        found: u16,
    },
    /// NetFlow v5 has no templates.
    #[error("templates are to be irregular, but netflow_v5 has none: expected ipfix or netflow_v9")]
    NoTemplates,
}
