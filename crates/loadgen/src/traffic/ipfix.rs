//! Flow records as an exporter sends them: IPFIX (RFC 7011) and NetFlow v9 (RFC 3954).

use serde::Deserialize;

use super::random::Random;
use super::{DEFAULT_START_UNIX_NANO, Source};

/// Largest payload that fits in one IPv4 packet of 1,500 bytes.
const DEFAULT_MESSAGE_BYTES: usize = 1_472;
/// Largest payload of a UDP datagram over IPv4.
const MAX_MESSAGE_BYTES: usize = 65_507;
/// The first id that a template may have.
const TEMPLATE_ID: u16 = 256;
const SET_HEADER_BYTES: usize = 4;
const TEMPLATE_HEADER_BYTES: usize = 4;
/// How long the exporter has been up when it begins: an hour.
const UPTIME_AT_START_MS: u64 = 3_600_000;
/// Time between the ends of one flow and the next.
const FLOW_STEP_MS: u64 = 1;

/// Protocol of the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum FlowProtocol {
    /// IPFIX, version 10. Times are flowStartMilliseconds and flowEndMilliseconds.
    Ipfix,
    /// NetFlow version 9. Times are milliseconds of the exporter's uptime (FIRST_SWITCHED, LAST_SWITCHED).
    NetflowV9,
}

/// What a record holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum FlowFields {
    /// The 16 fields of softflowd's IPv4 template, 50 bytes (42 in v9).
    Softflowd,
    /// 18 fields with 64-bit counters, masks and autonomous systems, as a router sends; 67 bytes (59 in v9).
    Router,
}

/// How to make flow messages.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowOptions {
    /// Protocol of the messages.
    pub protocol: FlowProtocol,
    /// What a record holds.
    pub fields: FlowFields,
    /// Observation domain (IPFIX) or source id (v9).
    #[serde(default)]
    pub observation_domain: u32,
    /// Messages are a function of the seed and the other options.
    #[serde(default)]
    pub seed: u64,
    /// Data records in every message; `None` for as many as fit beside the template in a packet of 1,500 bytes.
    #[serde(default)]
    pub records_per_message: Option<u16>,
    /// The template is in the first message and in every so many-th after it; 0 for the first alone.
    #[serde(default = "default_template_every")]
    pub template_every: u64,
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

impl FlowOptions {
    /// Messages of full packets, with the template in every 16th.
    #[must_use]
    pub fn new(protocol: FlowProtocol, fields: FlowFields, observation_domain: u32, seed: u64) -> Self {
        Self {
            protocol,
            fields,
            observation_domain,
            seed,
            records_per_message: None,
            template_every: default_template_every(),
            start_unix_nano: DEFAULT_START_UNIX_NANO,
        }
    }
}

/// Options that no exporter can follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FlowOptionsError {
    /// The records do not fit in a message.
    #[error("records_per_message is {found}, expected 1 to {most}: a datagram holds no more")]
    RecordsPerMessage {
        /// The number asked for.
        found: u16,
        /// The largest number that fits.
        most: usize,
    },
}

/// One field of a template.
#[derive(Debug, Clone, Copy)]
struct Field {
    id: u16,
    bytes: u16,
}

/// The values that fields are filled from.
#[derive(Debug)]
struct Flow {
    source: [u8; 4],
    destination: [u8; 4],
    source_port: u16,
    destination_port: u16,
    protocol: u8,
    tcp_flags: u8,
    octets: u64,
    packets: u64,
    start_ms: u64,
    end_ms: u64,
    ingress: u32,
    egress: u32,
    source_as: u32,
    destination_as: u32,
}

/// An exporter: endless messages with right sequence numbers, of flows whose sizes and durations have long tails.
#[derive(Debug, Clone)]
pub struct FlowExporter {
    options: FlowOptions,
    fields: Vec<Field>,
    records_per_message: usize,
    random: Random,
    messages_sent: u64,
    records_sent: u64,
    /// Time of export of the last message, in milliseconds since the Unix epoch.
    now_ms: u64,
}

impl FlowExporter {
    /// An exporter that has not sent anything yet.
    ///
    /// # Errors
    ///
    /// [`FlowOptionsError`] if the options cannot be followed.
    pub fn new(options: FlowOptions) -> Result<Self, FlowOptionsError> {
        let fields = fields(options.protocol, options.fields);
        let record_bytes: usize = fields.iter().map(|field| usize::from(field.bytes)).sum();
        let fixed_bytes = options.protocol.header_bytes() + template_set_bytes(&fields) + SET_HEADER_BYTES;
        let fit = |message_bytes: usize| {
            // Room for the padding of a v9 data set.
            let padding = options.protocol.set_alignment() - 1;
            (message_bytes - fixed_bytes - padding) / record_bytes
        };
        let records_per_message = match options.records_per_message {
            None => fit(DEFAULT_MESSAGE_BYTES),
            Some(records) => {
                let most = fit(MAX_MESSAGE_BYTES);
                if records == 0 || usize::from(records) > most {
                    let found = records;
                    return Err(FlowOptionsError::RecordsPerMessage { found, most });
                }
                usize::from(records)
            }
        };
        Ok(Self {
            random: Random::new(options.seed),
            now_ms: options.start_unix_nano / 1_000_000,
            fields,
            records_per_message,
            messages_sent: 0,
            records_sent: 0,
            options,
        })
    }

    /// Data records in every message.
    #[must_use]
    pub fn records_per_message(&self) -> usize {
        self.records_per_message
    }

    /// Milliseconds of uptime at a time.
    fn uptime_ms(&self, unix_ms: u64) -> u32 {
        let start_ms = self.options.start_unix_nano / 1_000_000;
        let uptime = (unix_ms + UPTIME_AT_START_MS).saturating_sub(start_ms);
        // The counter of a real exporter wraps after 49 days too.
        uptime as u32
    }

    fn has_template(&self) -> bool {
        match self.options.template_every {
            0 => self.messages_sent == 0,
            every => self.messages_sent.is_multiple_of(every),
        }
    }

    /// Appends the header. `records` is the count of v9, templates included; the length of IPFIX is filled in later.
    fn append_header(&self, out: &mut Vec<u8>, records: u16) {
        let seconds = (self.now_ms / 1_000) as u32;
        match self.options.protocol {
            FlowProtocol::Ipfix => {
                out.extend(10_u16.to_be_bytes());
                out.extend([0, 0]);
                out.extend(seconds.to_be_bytes());
                // Data records sent before this message, modulo 2^32 (RFC 7011 section 3.1).
                out.extend((self.records_sent as u32).to_be_bytes());
            }
            FlowProtocol::NetflowV9 => {
                out.extend(9_u16.to_be_bytes());
                out.extend(records.to_be_bytes());
                out.extend(self.uptime_ms(self.now_ms).to_be_bytes());
                out.extend(seconds.to_be_bytes());
                // Messages sent before this one (RFC 3954 section 5.1).
                out.extend((self.messages_sent as u32).to_be_bytes());
            }
        }
        out.extend(self.options.observation_domain.to_be_bytes());
    }

    fn append_template(&self, out: &mut Vec<u8>) {
        let set_id: u16 = match self.options.protocol {
            FlowProtocol::Ipfix => 2,
            FlowProtocol::NetflowV9 => 0,
        };
        out.extend(set_id.to_be_bytes());
        out.extend((template_set_bytes(&self.fields) as u16).to_be_bytes());
        out.extend(TEMPLATE_ID.to_be_bytes());
        out.extend((self.fields.len() as u16).to_be_bytes());
        for field in &self.fields {
            out.extend(field.id.to_be_bytes());
            out.extend(field.bytes.to_be_bytes());
        }
    }

    fn append_record(&mut self, out: &mut Vec<u8>, end_ms: u64) {
        let flow = Flow::new(end_ms, &mut self.random);
        for field in &self.fields {
            // Big-endian, the last bytes of the widest form.
            let value = match field.id {
                ie::FIRST_SWITCHED => self.uptime_ms(flow.start_ms).into(),
                ie::LAST_SWITCHED => self.uptime_ms(flow.end_ms).into(),
                id => flow.value(id),
            };
            let bytes = value.to_be_bytes();
            out.extend(&bytes[bytes.len() - usize::from(field.bytes)..]);
        }
    }
}

impl Source for FlowExporter {
    fn append_next(&mut self, out: &mut Vec<u8>) -> Option<u64> {
        let start = out.len();
        let with_template = self.has_template();
        let records = self.records_per_message as u64;
        let counted = self.records_per_message as u16 + u16::from(with_template);
        let first_end_ms = self.now_ms + FLOW_STEP_MS;
        // The last flow ends when the message is exported, the others before.
        self.now_ms += records * FLOW_STEP_MS;
        self.append_header(out, counted);
        if with_template {
            self.append_template(out);
        }
        let set = out.len();
        out.extend(TEMPLATE_ID.to_be_bytes());
        out.extend([0, 0]);
        for index in 0..records {
            self.append_record(out, first_end_ms + index * FLOW_STEP_MS);
        }
        while !(out.len() - set).is_multiple_of(self.options.protocol.set_alignment()) {
            out.push(0);
        }
        let set_bytes = (out.len() - set) as u16;
        out[set + 2..set + 4].copy_from_slice(&set_bytes.to_be_bytes());
        if self.options.protocol == FlowProtocol::Ipfix {
            let message_bytes = (out.len() - start) as u16;
            out[start + 2..start + 4].copy_from_slice(&message_bytes.to_be_bytes());
        }
        self.messages_sent += 1;
        self.records_sent += records;
        Some(records)
    }
}

impl FlowProtocol {
    fn header_bytes(self) -> usize {
        match self {
            Self::Ipfix => 16,
            Self::NetflowV9 => 20,
        }
    }

    /// Sets end at a multiple of so many bytes: a must in v9 (RFC 3954 section 5.3), a may in IPFIX.
    fn set_alignment(self) -> usize {
        match self {
            Self::Ipfix => 1,
            Self::NetflowV9 => 4,
        }
    }
}

impl Flow {
    fn new(end_ms: u64, random: &mut Random) -> Self {
        let packets = random.long_tail(1, 16);
        let octets = packets * random.range(40, 1_500);
        let duration_ms = random.long_tail(1, 17) - 1;
        let is_tcp = random.range(0, 9) < 8;
        Self {
            source: [10, random.range(0, 3) as u8, 0, random.range(1, 254) as u8],
            destination: [192, 0, 2, random.range(1, 254) as u8],
            source_port: random.range(1_024, 65_535) as u16,
            destination_port: *match is_tcp {
                true => random.choice(&[443, 443, 443, 80, 22, 8_080]),
                false => random.choice(&[53, 123, 443]),
            },
            protocol: if is_tcp { 6 } else { 17 },
            tcp_flags: if is_tcp { 0x1b } else { 0 },
            octets,
            packets,
            start_ms: end_ms.saturating_sub(duration_ms),
            end_ms,
            ingress: random.range(1, 48) as u32,
            egress: random.range(1, 48) as u32,
            source_as: random.range(64_496, 64_511) as u32,
            destination_as: random.range(64_496, 64_511) as u32,
        }
    }

    /// Value of an information element.
    fn value(&self, id: u16) -> u64 {
        match id {
            ie::OCTETS => self.octets,
            ie::PACKETS => self.packets,
            ie::PROTOCOL => self.protocol.into(),
            ie::TCP_FLAGS => self.tcp_flags.into(),
            ie::SOURCE_PORT => self.source_port.into(),
            ie::SOURCE_ADDRESS => u32::from_be_bytes(self.source).into(),
            ie::DESTINATION_ADDRESS => u32::from_be_bytes(self.destination).into(),
            ie::SOURCE_MASK | ie::DESTINATION_MASK => 24,
            ie::INGRESS => self.ingress.into(),
            ie::EGRESS => self.egress.into(),
            ie::DESTINATION_PORT => self.destination_port.into(),
            ie::SOURCE_AS => self.source_as.into(),
            ie::DESTINATION_AS => self.destination_as.into(),
            ie::IP_VERSION => 4,
            // End of flow detected for TCP, idle timeout for the rest.
            ie::END_REASON => {
                if self.protocol == 6 {
                    3
                } else {
                    1
                }
            }
            ie::START_MS => self.start_ms,
            ie::END_MS => self.end_ms,
            // Type of service and direction: best effort, ingress.
            _ => 0,
        }
    }
}

/// Bytes of a set that holds one template.
fn template_set_bytes(fields: &[Field]) -> usize {
    SET_HEADER_BYTES + TEMPLATE_HEADER_BYTES + 4 * fields.len()
}

/// Information elements (IANA registry), the same numbers in v9.
mod ie {
    pub(super) const OCTETS: u16 = 1;
    pub(super) const PACKETS: u16 = 2;
    pub(super) const PROTOCOL: u16 = 4;
    pub(super) const TYPE_OF_SERVICE: u16 = 5;
    pub(super) const TCP_FLAGS: u16 = 6;
    pub(super) const SOURCE_PORT: u16 = 7;
    pub(super) const SOURCE_ADDRESS: u16 = 8;
    pub(super) const SOURCE_MASK: u16 = 9;
    pub(super) const INGRESS: u16 = 10;
    pub(super) const DESTINATION_PORT: u16 = 11;
    pub(super) const DESTINATION_ADDRESS: u16 = 12;
    pub(super) const DESTINATION_MASK: u16 = 13;
    pub(super) const EGRESS: u16 = 14;
    pub(super) const SOURCE_AS: u16 = 16;
    pub(super) const DESTINATION_AS: u16 = 17;
    pub(super) const LAST_SWITCHED: u16 = 21;
    pub(super) const FIRST_SWITCHED: u16 = 22;
    pub(super) const IP_VERSION: u16 = 60;
    pub(super) const DIRECTION: u16 = 61;
    pub(super) const END_REASON: u16 = 136;
    pub(super) const START_MS: u16 = 152;
    pub(super) const END_MS: u16 = 153;
}

/// The template of a kind of record.
#[rustfmt::skip]
fn fields(protocol: FlowProtocol, fields: FlowFields) -> Vec<Field> {
    let (start, end) = match protocol {
        FlowProtocol::Ipfix => ((ie::START_MS, 8), (ie::END_MS, 8)),
        FlowProtocol::NetflowV9 => ((ie::FIRST_SWITCHED, 4), (ie::LAST_SWITCHED, 4)),
    };
    let field = |&(id, bytes): &(u16, u16)| Field { id, bytes };
    match fields {
        FlowFields::Softflowd => [
            (ie::SOURCE_ADDRESS, 4), (ie::DESTINATION_ADDRESS, 4), start, end,
            (ie::OCTETS, 4), (ie::PACKETS, 4), (ie::INGRESS, 4), (ie::EGRESS, 4),
            (ie::DIRECTION, 1), (ie::END_REASON, 1), (ie::SOURCE_PORT, 2), (ie::DESTINATION_PORT, 2),
            (ie::PROTOCOL, 1), (ie::TCP_FLAGS, 1), (ie::IP_VERSION, 1), (ie::TYPE_OF_SERVICE, 1),
        ].iter().map(field).collect(),
        FlowFields::Router => [
            (ie::SOURCE_ADDRESS, 4), (ie::DESTINATION_ADDRESS, 4), (ie::OCTETS, 8), (ie::PACKETS, 8),
            start, end, (ie::SOURCE_PORT, 2), (ie::DESTINATION_PORT, 2),
            (ie::INGRESS, 4), (ie::EGRESS, 4), (ie::PROTOCOL, 1), (ie::TYPE_OF_SERVICE, 1),
            (ie::TCP_FLAGS, 2), (ie::END_REASON, 1), (ie::SOURCE_MASK, 1), (ie::DESTINATION_MASK, 1),
            (ie::SOURCE_AS, 4), (ie::DESTINATION_AS, 4),
        ].iter().map(field).collect(),
    }
}

#[cfg(test)]
mod tests;
