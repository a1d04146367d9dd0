//! High-frequency telemetry as switches with SONiC stream it: IPFIX whose templates and names travel beside the stream.

mod objects;
mod session;

use serde::Deserialize;

use super::random::Random;
use super::{DEFAULT_START_UNIX_NANO, Source};

use session::{Field, MAX_MESSAGE_BYTES, MESSAGE_HEADER_BYTES, SET_HEADER_BYTES, Template};
use session::{append_message, fields_that_fit, session_config};

pub use objects::SonicObject;
pub use session::{SonicSession, SonicSessionFields};

/// The first id that a template may have.
const FIRST_TEMPLATE_ID: u16 = 256;
/// Labels have 15 bits.
const MAX_LABEL: u16 = 0x7fff;
/// Time between the snapshots of two templates of one round.
const TEMPLATE_STEP_NANO: u64 = 1_000;
/// What a place holder holds; nobody should look.
const PLACE_HOLDER: u64 = 0xdead_beef_dead_beef;

/// How a record tells its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub enum SonicTime {
    /// Element 325 in 8 bytes: nanoseconds since the Unix epoch.
    Nanoseconds,
    /// Elements 322 and 325 in 4 bytes each: seconds, and nanoseconds within the second.
    SecondsAndNanoseconds,
}

/// How to make telemetry.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SonicOptions {
    /// Kind of the objects.
    pub object: SonicObject,
    /// Objects; 1 to 32,767.
    pub objects: u16,
    /// Statistics of each, from the first on; at most [`SonicObject::statistics`].
    pub statistics: u16,
    /// Records, each a snapshot of all counters of a template, in a message.
    pub records_per_message: u16,
    /// Messages in a payload, one after the other; fewer where `max_payload_bytes` is met first.
    pub messages_per_payload: u16,
    /// Bytes of a payload at most.
    pub max_payload_bytes: usize,
    /// How records tell their time.
    pub time: SonicTime,
    /// Place holders in each template, one after each of the first counters and the rest at the end.
    pub place_holders: u16,
    /// Time between two snapshots, in nanoseconds.
    pub interval_nano: u64,
    /// Name of the telemetry profile.
    pub profile: String,
    /// Counters are a function of the seed and the other options.
    pub seed: u64,
    /// Time of the first snapshot, in nanoseconds since the Unix epoch.
    pub start_unix_nano: u64,
}

impl Default for SonicOptions {
    /// Ten statistics of 32 ports every 10 ms, a record in a message and a message in a payload that fits a datagram.
    fn default() -> Self {
        Self {
            object: SonicObject::Port,
            objects: 32,
            statistics: 10,
            records_per_message: 1,
            messages_per_payload: 1,
            max_payload_bytes: 65_507,
            time: SonicTime::Nanoseconds,
            place_holders: 0,
            interval_nano: 10_000_000,
            profile: "hft0".to_owned(),
            seed: 0,
            start_unix_nano: DEFAULT_START_UNIX_NANO,
        }
    }
}

/// Options that no switch can follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SonicOptionsError {
    /// Labels do not suffice.
    #[error("objects is {found}, expected 1 to {MAX_LABEL}")]
    Objects {
        /// The number asked for.
        found: u16,
    },
    /// There are not so many statistics.
    #[error("statistics is {found}, expected 1 to {most} for this kind of object")]
    Statistics {
        /// The number asked for.
        found: u16,
        /// How many there are.
        most: u16,
    },
    /// The records do not fit in a message.
    #[error("records_per_message is {found}, expected 1 to {most}: a message holds no more")]
    RecordsPerMessage {
        /// The number asked for.
        found: u16,
        /// The largest number that fits.
        most: usize,
    },
    /// A payload has at least one message.
    #[error("messages_per_payload is 0, expected 1 or more")]
    MessagesPerPayload,
    /// Not even a counter fits beside the place holders.
    #[error("max_payload_bytes is {found} and place_holders {place_holders}: no counter fits in a message")]
    Payload {
        /// The bytes asked for.
        found: usize,
        /// The place holders asked for.
        place_holders: u16,
    },
}

/// Endless telemetry of one session. Its payloads are messages back to back; a record is a snapshot of a template.
///
/// Counters only go up, levels go up and down. Each round takes a message of each template in turn.
#[derive(Debug, Clone)]
pub struct SonicTelemetry {
    options: SonicOptions,
    names: Vec<String>,
    templates: Vec<Template>,
    /// Values of the counters: of the first template, then of the second ...
    values: Vec<u64>,
    random: Random,
    /// Template of the next message.
    turn: usize,
    /// Where its values begin.
    first_value: usize,
    /// Snapshots of each template so far.
    snapshots: u64,
    counters_made: u64,
}

impl SonicTelemetry {
    /// Telemetry from the first snapshot on. Counters that do not fit in one template are split over several.
    ///
    /// # Errors
    ///
    /// [`SonicOptionsError`] if the options cannot be followed.
    pub fn new(options: SonicOptions) -> Result<Self, SonicOptionsError> {
        if !(1..=MAX_LABEL).contains(&options.objects) {
            return Err(SonicOptionsError::Objects { found: options.objects });
        }
        let most = options.object.statistics();
        if !(1..=most).contains(&options.statistics) {
            return Err(SonicOptionsError::Statistics { found: options.statistics, most });
        }
        if options.messages_per_payload == 0 {
            return Err(SonicOptionsError::MessagesPerPayload);
        }
        let templates = split(&options)?;
        let found = options.records_per_message;
        let largest = templates.iter().map(record_bytes).max().unwrap_or(1);
        let message_bytes = options.max_payload_bytes.min(MAX_MESSAGE_BYTES);
        let most = message_bytes.saturating_sub(MESSAGE_HEADER_BYTES + SET_HEADER_BYTES) / largest;
        if found == 0 || usize::from(found) > most {
            return Err(SonicOptionsError::RecordsPerMessage { found, most });
        }
        let mut random = Random::new(options.seed);
        let count = usize::from(options.objects) * usize::from(options.statistics);
        // Switches have been up for different times.
        let values = (0..count).map(|_| random.range(0, 1 << 40)).collect();
        Ok(Self {
            names: options.object.names(options.objects),
            templates,
            values,
            random,
            turn: 0,
            first_value: 0,
            snapshots: 0,
            counters_made: 0,
            options,
        })
    }

    /// What a receiver has to know to make sense of the stream.
    #[must_use]
    pub fn session(&self) -> SonicSession {
        let config = session_config(&self.templates, self.options.time);
        SonicSession::new(&self.options.profile, self.options.object.group(), &self.names, config)
    }

    /// Templates of the session.
    #[must_use]
    pub fn templates(&self) -> usize {
        self.templates.len()
    }

    /// Counters in all records so far.
    #[must_use]
    pub fn counters_made(&self) -> u64 {
        self.counters_made
    }

    /// Bytes of the next message.
    fn next_message_bytes(&self) -> usize {
        let record = self.templates.get(self.turn).map_or(0, record_bytes);
        MESSAGE_HEADER_BYTES + SET_HEADER_BYTES + record * usize::from(self.options.records_per_message)
    }

    /// Appends a message and gives the number of records.
    fn append_message(&mut self, out: &mut Vec<u8>) -> u64 {
        let records = self.options.records_per_message;
        let mut content = Vec::with_capacity(self.next_message_bytes());
        let Self { templates, values, random, options, turn, .. } = self;
        let template = &templates[*turn];
        let counters = template.fields.iter().filter(|field| **field != Field::PlaceHolder).count();
        let values = &mut values[self.first_value..self.first_value + counters];
        for record in 0..records {
            let snapshot = self.snapshots + u64::from(record);
            let offset = snapshot * options.interval_nano + *turn as u64 * TEMPLATE_STEP_NANO;
            append_time(&mut content, options.time, options.start_unix_nano + offset);
            let mut values = values.iter_mut();
            for field in &template.fields {
                let value = match *field {
                    Field::PlaceHolder => PLACE_HOLDER,
                    Field::Counter { statistic, .. } => values.next().map_or(0, |value| {
                        *value = step(*value, options.object.is_level(statistic), random);
                        *value
                    }),
                };
                content.extend(value.to_be_bytes());
            }
        }
        append_message(out, template.id, &content);
        self.counters_made += counters as u64 * u64::from(records);
        self.turn += 1;
        self.first_value += counters;
        if self.turn == self.templates.len() {
            (self.turn, self.first_value) = (0, 0);
            self.snapshots += u64::from(records);
        }
        records.into()
    }
}

/// The next value of a counter or level.
fn step(value: u64, is_level: bool, random: &mut Random) -> u64 {
    let bits = random.bits();
    if is_level { bits >> 44 } else { value.wrapping_add(bits >> 50) }
}

fn append_time(out: &mut Vec<u8>, time: SonicTime, unix_nano: u64) {
    match time {
        SonicTime::Nanoseconds => out.extend(unix_nano.to_be_bytes()),
        SonicTime::SecondsAndNanoseconds => {
            out.extend(((unix_nano / 1_000_000_000) as u32).to_be_bytes());
            out.extend(((unix_nano % 1_000_000_000) as u32).to_be_bytes());
        }
    }
}

/// Bytes of a record: the time takes 8 in both forms.
fn record_bytes(template: &Template) -> usize {
    8 + 8 * template.fields.len()
}

/// The templates: all statistics of the first object, of the second, and so on, as many in each as fit.
fn split(options: &SonicOptions) -> Result<Vec<Template>, SonicOptionsError> {
    let (found, place_holders) = (options.max_payload_bytes, options.place_holders);
    // A record has 8 bytes less in front of its counters than a template.
    let room = fields_that_fit(options.time, found).checked_sub(place_holders.into()).filter(|room| *room > 0);
    let room = room.ok_or(SonicOptionsError::Payload { found, place_holders })?;
    let type_id = options.object.type_id();
    let counters: Vec<Field> = (1..=options.objects)
        .flat_map(|label| (0..options.statistics).map(move |statistic| Field::Counter { label, type_id, statistic }))
        .collect();
    let templates = counters.chunks(room).zip(FIRST_TEMPLATE_ID..).map(|(counters, id)| {
        let mut fields = Vec::with_capacity(counters.len() + usize::from(place_holders));
        let mut left = place_holders;
        for counter in counters {
            fields.push(*counter);
            if left > 0 {
                fields.push(Field::PlaceHolder);
                left -= 1;
            }
        }
        fields.extend((0..left).map(|_| Field::PlaceHolder));
        Template { id, fields }
    });
    Ok(templates.collect())
}

impl Source for SonicTelemetry {
    fn append_next(&mut self, out: &mut Vec<u8>) -> Option<u64> {
        let start = out.len();
        let mut records = self.append_message(out);
        for _ in 1..self.options.messages_per_payload {
            if out.len() - start + self.next_message_bytes() > self.options.max_payload_bytes {
                break;
            }
            records += self.append_message(out);
        }
        Some(records)
    }
}

#[cfg(test)]
mod tests;
