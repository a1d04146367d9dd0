//! What a switch tells of its telemetry beside the stream: templates and names.

use serde::Serialize;

use super::SonicTime;

/// Number of STATE_DB.
const STATE_DB: u8 = 6;
/// Table of the sessions.
const TABLE: &str = "HIGH_FREQUENCY_TELEMETRY_SESSION_TABLE";

/// Information elements of time.
const OBSERVATION_SECONDS: u16 = 322;
const OBSERVATION_NANOSECONDS: u16 = 325;
/// Says that an enterprise number follows.
const ENTERPRISE_BIT: u16 = 0x8000;
/// Bytes of a counter.
pub(super) const COUNTER_BYTES: u16 = 8;
pub(super) const MESSAGE_HEADER_BYTES: usize = 16;
pub(super) const SET_HEADER_BYTES: usize = 4;
const TEMPLATE_HEADER_BYTES: usize = 4;
const TEMPLATE_SET_ID: u16 = 2;
/// Length of a message at most.
pub(super) const MAX_MESSAGE_BYTES: usize = 65_535;

/// A row of STATE_DB: a session of high-frequency telemetry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SonicSession {
    /// Number of the database.
    pub db: u8,
    /// Key of the row.
    pub key: String,
    /// The row.
    pub fields: SonicSessionFields,
}

/// The fields of a row of STATE_DB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SonicSessionFields {
    /// `enabled`.
    pub stream_status: String,
    /// `ipfix`.
    pub session_type: String,
    /// Names of the objects, with commas between them.
    pub object_names: String,
    /// Their labels, in the same order.
    pub object_ids: String,
    /// IPFIX messages with the template sets, two lower-case digits a byte; Redis has the bytes.
    #[serde(serialize_with = "hex", rename = "session_config_hex")]
    pub session_config: Vec<u8>,
}

fn hex<S: serde::Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    serializer.serialize_str(&digits)
}

impl SonicSession {
    pub(super) fn new(profile: &str, group: &str, names: &[String], session_config: Vec<u8>) -> Self {
        let labels: Vec<String> = (1..=names.len()).map(|label| label.to_string()).collect();
        Self {
            db: STATE_DB,
            key: format!("{TABLE}|{profile}|{group}"),
            fields: SonicSessionFields {
                stream_status: "enabled".to_owned(),
                session_type: "ipfix".to_owned(),
                object_names: names.join(","),
                object_ids: labels.join(","),
                session_config,
            },
        }
    }
}

/// A field of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    /// A statistic of the object with a label.
    Counter { label: u16, type_id: u16, statistic: u16 },
    /// Bytes without a meaning.
    PlaceHolder,
}

/// A template: the time, then these fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    pub(super) id: u16,
    pub(super) fields: Vec<Field>,
}

/// Specifiers of a template's time: element and bytes of each.
fn time_specifiers(time: SonicTime) -> &'static [(u16, u16)] {
    match time {
        SonicTime::Nanoseconds => &[(OBSERVATION_NANOSECONDS, 8)],
        SonicTime::SecondsAndNanoseconds => &[(OBSERVATION_SECONDS, 4), (OBSERVATION_NANOSECONDS, 4)],
    }
}

/// Fields of 8 bytes that fit in a template and in a record, beside the time, when a message has so many bytes.
pub(super) fn fields_that_fit(time: SonicTime, message_bytes: usize) -> usize {
    let template = MESSAGE_HEADER_BYTES + SET_HEADER_BYTES + TEMPLATE_HEADER_BYTES + 4 * time_specifiers(time).len();
    (message_bytes.min(MAX_MESSAGE_BYTES).saturating_sub(template)) / 8
}

/// The messages of a session's configuration: as many templates in each as fit.
pub(super) fn session_config(templates: &[Template], time: SonicTime) -> Vec<u8> {
    let mut config = Vec::new();
    let mut records = Vec::new();
    for template in templates {
        let record = template_record(template, time);
        if MESSAGE_HEADER_BYTES + SET_HEADER_BYTES + records.len() + record.len() > MAX_MESSAGE_BYTES {
            append_message(&mut config, TEMPLATE_SET_ID, &std::mem::take(&mut records));
        }
        records.extend(record);
    }
    append_message(&mut config, TEMPLATE_SET_ID, &records);
    config
}

fn template_record(template: &Template, time: SonicTime) -> Vec<u8> {
    let times = time_specifiers(time);
    let mut record = template.id.to_be_bytes().to_vec();
    record.extend(((times.len() + template.fields.len()) as u16).to_be_bytes());
    for (element, bytes) in times {
        record.extend([*element, *bytes].map(u16::to_be_bytes).concat());
    }
    for field in &template.fields {
        let (element, enterprise) = match *field {
            Field::Counter { label, type_id, statistic } => (label, [type_id, statistic]),
            Field::PlaceHolder => (0, [0, 0]),
        };
        record.extend([ENTERPRISE_BIT | element, COUNTER_BYTES].map(u16::to_be_bytes).concat());
        record.extend(enterprise.map(u16::to_be_bytes).concat());
    }
    record
}

/// Appends a message with one set. Export time, sequence number and domain are all 0, as switches send them.
pub(super) fn append_message(out: &mut Vec<u8>, set_id: u16, content: &[u8]) {
    let set_bytes = SET_HEADER_BYTES + content.len();
    out.extend([10, (MESSAGE_HEADER_BYTES + set_bytes) as u16].map(u16::to_be_bytes).concat());
    out.extend([0; 12]);
    out.extend([set_id, set_bytes as u16].map(u16::to_be_bytes).concat());
    out.extend_from_slice(content);
}
