//! Flow records as an exporter sends them: IPFIX (RFC 7011), NetFlow v9 (RFC 3954) and v5.

mod fields;
mod netflow_v5;
mod options;
mod settings;
mod wire;

use super::Source;
use super::random::Random;

use fields::{Field, Flow, fields, ie};
use options::OptionsData;
use wire::TEMPLATE_ID;

pub use fields::FlowFields;
pub use settings::{FlowOptions, FlowOptionsError, FlowProtocol, FlowTemplates, FlowTemplatesError};

/// Largest payload that fits in one IPv4 packet of 1,500 bytes.
const DEFAULT_MESSAGE_BYTES: usize = 1_472;
/// Largest payload of a UDP datagram over IPv4.
const MAX_MESSAGE_BYTES: usize = 65_507;
/// How long the exporter has been up when it begins: an hour.
const UPTIME_AT_START_MS: u64 = 3_600_000;
/// Time between the ends of one flow and the next.
const FLOW_STEP_MS: u64 = 1;

/// An exporter: endless messages with right sequence numbers, of flows whose sizes and durations have long tails.
///
/// Records are counted as RFC 7011 section 3.1 does: those of options data are data records too.
#[derive(Debug, Clone)]
pub struct FlowExporter {
    options: FlowOptions,
    fields: Vec<Field>,
    /// Fields of the template when it flips: the same in the opposite order.
    flipped: Vec<Field>,
    records_per_message: usize,
    random: Random,
    /// Messages with flows.
    flow_messages: u64,
    /// Whether options data has been sent before the next message with flows.
    options_sent: bool,
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
        options.check()?;
        let fields = fields(options.protocol, options.fields);
        let fit = |message_bytes| options.protocol.records_that_fit(&fields, message_bytes);
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
            flipped: fields.iter().rev().copied().collect(),
            fields,
            records_per_message,
            flow_messages: 0,
            options_sent: false,
            messages_sent: 0,
            records_sent: 0,
            options,
        })
    }

    /// Data records in every message with flows.
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

    /// When the exporter started, in milliseconds since the Unix epoch.
    fn system_init_ms(&self) -> u64 {
        (self.options.start_unix_nano / 1_000_000).saturating_sub(UPTIME_AT_START_MS)
    }

    /// Whether the next message with flows has the template.
    fn has_template(&self) -> bool {
        let index = self.flow_messages;
        let regular = match self.options.template_every {
            0 => index == 0,
            every => index.is_multiple_of(every),
        };
        match self.options.templates {
            FlowTemplates::Regular => regular,
            FlowTemplates::Late(messages) => index == messages || index > messages && regular,
            FlowTemplates::Flip(every) => regular || index.is_multiple_of(every.get()),
            FlowTemplates::NewIds | FlowTemplates::NewDomains => true,
            FlowTemplates::Never => false,
        }
    }

    fn template_id(&self) -> u16 {
        match self.options.templates {
            FlowTemplates::NewIds => {
                let ids = u64::from(u16::MAX - TEMPLATE_ID) + 1;
                TEMPLATE_ID + (self.flow_messages % ids) as u16
            }
            _ => TEMPLATE_ID,
        }
    }

    /// Fields of the next message.
    fn is_flipped(&self) -> bool {
        match self.options.templates {
            FlowTemplates::Flip(every) => self.flow_messages / every.get() % 2 == 1,
            _ => false,
        }
    }

    fn options_due(&self) -> bool {
        let every = self.options.options_every;
        let has_options = every > 0 && self.options.protocol != FlowProtocol::NetflowV5;
        has_options && !self.options_sent && self.flow_messages.is_multiple_of(every)
    }

    /// Appends the header. `records` is the count of v9, templates included; the length of IPFIX is filled in later.
    fn append_header(&self, out: &mut Vec<u8>, records: u16) {
        let seconds = (self.now_ms / 1_000) as u32;
        let new_domains = self.options.templates == FlowTemplates::NewDomains;
        match self.options.protocol {
            FlowProtocol::Ipfix => {
                out.extend(10_u16.to_be_bytes());
                out.extend([0, 0]);
                out.extend(seconds.to_be_bytes());
                // Data records sent before this message, modulo 2^32 (RFC 7011 section 3.1): of its domain.
                let sequence = if new_domains { 0 } else { self.records_sent };
                out.extend((sequence as u32).to_be_bytes());
            }
            FlowProtocol::NetflowV9 | FlowProtocol::NetflowV5 => {
                out.extend(9_u16.to_be_bytes());
                out.extend(records.to_be_bytes());
                out.extend(self.uptime_ms(self.now_ms).to_be_bytes());
                out.extend(seconds.to_be_bytes());
                // Messages sent before this one (RFC 3954 section 5.1): of its source id.
                let sequence = if new_domains { 0 } else { self.messages_sent };
                out.extend((sequence as u32).to_be_bytes());
            }
        }
        let offset = if new_domains { self.flow_messages as u32 } else { 0 };
        out.extend(self.options.observation_domain.wrapping_add(offset).to_be_bytes());
    }

    fn append_record(&mut self, out: &mut Vec<u8>, end_ms: u64) {
        let flow = Flow::new(end_ms, &mut self.random);
        let fields = if self.is_flipped() { &self.flipped } else { &self.fields };
        for field in fields {
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

    /// Appends a message with flows and gives the number of them.
    fn append_flows(&mut self, out: &mut Vec<u8>) -> u64 {
        let with_template = self.has_template();
        let records = self.records_per_message as u64;
        let first_end_ms = self.now_ms + FLOW_STEP_MS;
        // The last flow ends when the message is exported, the others before.
        self.now_ms += records * FLOW_STEP_MS;
        if self.options.protocol == FlowProtocol::NetflowV5 {
            self.append_v5(out, first_end_ms);
        } else {
            let start = out.len();
            self.append_header(out, self.records_per_message as u16 + u16::from(with_template));
            let id = self.template_id();
            if with_template {
                let fields = if self.is_flipped() { &self.flipped } else { &self.fields };
                wire::append_template(out, self.options.protocol, id, fields);
            }
            let set = wire::begin_set(out, id);
            for index in 0..records {
                self.append_record(out, first_end_ms + index * FLOW_STEP_MS);
            }
            wire::end_set(out, set, self.options.protocol);
            wire::end_message(out, start, self.options.protocol);
        }
        self.flow_messages += 1;
        self.options_sent = false;
        records
    }

    /// Appends a message with options templates and data and gives the number of options records.
    fn append_options(&mut self, out: &mut Vec<u8>) -> u64 {
        let data = OptionsData {
            protocol: self.options.protocol,
            domain: self.options.observation_domain,
            sampling_interval: self.options.sampling_interval,
            system_init_ms: self.system_init_ms(),
        };
        let start = out.len();
        self.append_header(out, data.records() + data.templates());
        data.append(out);
        wire::end_message(out, start, self.options.protocol);
        self.options_sent = true;
        data.records().into()
    }
}

impl Source for FlowExporter {
    fn append_next(&mut self, out: &mut Vec<u8>) -> Option<u64> {
        let records = if self.options_due() { self.append_options(out) } else { self.append_flows(out) };
        self.messages_sent += 1;
        self.records_sent += records;
        Some(records)
    }
}

#[cfg(test)]
mod tests;
