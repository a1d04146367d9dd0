//! `syslog-batch-v1`: received messages as bytes, to be passed on, stored, and decoded elsewhere or later.
//!
//! A payload stands for itself: the messages as they came, with what was known when they were read, and how they are to
//! become records. It is one CBOR array (RFC 8949):
//!
//! | item | content |
//! |---|---|
//! | version | 1, or 2 if a sampler has left others out |
//! | options | array of schema, form of structured data (0: the schema's own), prefix of CEF extension keys, non-UTF-8 |
//! | sources | array of arrays: address or null, port, transport, zone, TLS subject or null |
//! | entries | byte string, 17 bytes each, little endian: length (4), source (4), receipt time in ns (8), flags (1; bit 0: truncated) |
//! | messages | byte string: the messages one after another |
//! | thresholds | of version 2: byte string, 8 bytes for each entry, little endian: the threshold that it has passed |

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use catchment_sampling::Threshold;
use catchment_syslog::Zone;
use hashbrown::HashMap;
use jiff::tz::TimeZone;
use minicbor::data::Type;
use minicbor::{Decoder, Encoder};

use super::batch::{Entry, Receipt, Source, SyslogBatch, Transport};
use super::names::Schema;
use super::row::{MAX_PREFIX_BYTES, NonUtf8, RowOptions, StructuredDataForm};
use crate::ParentIds;

/// Name of the encoding.
pub const ENCODING: &str = "syslog-batch-v1";

/// All messages stand for themselves.
const VERSION: u8 = 1;
/// Messages have thresholds.
const VERSION_SAMPLED: u8 = 2;
const ITEMS: u64 = 5;
const ENTRY_BYTES: usize = 17;
const THRESHOLD_BYTES: usize = 8;
const TRUNCATED: u8 = 1;

/// Why bytes are no batch of messages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodedError {
    /// The CBOR items are not those of the format.
    #[error("offset {offset}: {message}; expected the items of {ENCODING}")]
    Item {
        /// Position in the payload.
        offset: usize,
        /// What the CBOR decoder found.
        message: String,
    },
    /// Another version of the format.
    #[error("version {found} of the format, expected {VERSION} or {VERSION_SAMPLED}")]
    Version {
        /// The version given.
        found: u8,
    },
    /// A number that names nothing.
    #[error("offset {offset}: {found} is no {field}")]
    Value {
        /// Position in the payload.
        offset: usize,
        /// What should be named.
        field: &'static str,
        /// The value given.
        found: String,
    },
    /// The entries do not cover the messages.
    #[error(
        "entry {entry} does not fit: it ends at byte {end} of {bytes} and names source {source_index} of {sources}"
    )]
    Entry {
        /// Number of the entry.
        entry: usize,
        /// Where its message would end.
        end: usize,
        /// Bytes of messages.
        bytes: usize,
        /// The source it names.
        source_index: usize,
        /// Sources there are.
        sources: usize,
    },
    /// Bytes are left over.
    #[error("{unused} bytes that belong to nothing")]
    Unused {
        /// How many.
        unused: usize,
    },
}

/// The messages of `batch`, to become records as `options` say.
#[must_use]
pub fn encode(batch: &SyslogBatch, options: &RowOptions) -> Vec<u8> {
    let mut entries = Vec::with_capacity(batch.entries.len() * ENTRY_BYTES);
    let mut start = 0;
    for entry in &batch.entries {
        entries.extend_from_slice(&narrow(entry.end - start).to_le_bytes());
        entries.extend_from_slice(&narrow(entry.source).to_le_bytes());
        entries.extend_from_slice(&entry.receipt.time_unix_nano.to_le_bytes());
        entries.push(if entry.receipt.truncated { TRUNCATED } else { 0 });
        start = entry.end;
    }
    let mut out = Encoder::new(Vec::with_capacity(entries.len() + batch.arena.len() + 64));
    // Writing to a vector cannot fail.
    let _ = write(&mut out, batch, options, &entries);
    out.into_writer()
}

type Written = Result<(), minicbor::encode::Error<std::convert::Infallible>>;

fn write(out: &mut Encoder<Vec<u8>>, batch: &SyslogBatch, options: &RowOptions, entries: &[u8]) -> Written {
    let is_sampled = batch.entries.iter().any(|entry| entry.threshold != Threshold::KEEP_ALL);
    let _ = match is_sampled {
        true => out.array(ITEMS + 1)?.u8(VERSION_SAMPLED)?,
        false => out.array(ITEMS)?.u8(VERSION)?,
    };
    let _ = out.array(4)?;
    let _ = out.u8(schema_number(options.schema))?.u8(form_number(options.structured_data))?;
    let _ = out.str(&options.cef_extension_prefix)?.u8(u8::from(options.non_utf8 == NonUtf8::Bytes))?;
    let _ = out.array(u64::try_from(batch.sources.len()).unwrap_or(u64::MAX))?;
    for source in &batch.sources {
        let _ = out.array(5)?;
        match source.peer {
            Some(peer) => out.str(&peer.ip().to_string())?.u16(peer.port())?,
            None => out.null()?.u16(0)?,
        };
        let _ = out.u8(transport_number(source.transport))?.str(&zone_name(&source.zone))?;
        let _ = match &source.tls_subject {
            Some(subject) => out.str(subject)?,
            None => out.null()?,
        };
    }
    let _ = out.bytes(entries)?.bytes(&batch.arena)?;
    if is_sampled {
        let thresholds: Vec<u8> = batch.entries.iter().flat_map(|entry| entry.threshold.get().to_le_bytes()).collect();
        let _ = out.bytes(&thresholds)?;
    }
    Ok(())
}

/// The name under which the zone is found again, elsewhere too: that of this machine goes by its own name.
fn zone_name(zone: &Zone) -> String {
    match zone {
        Zone::Utc => "UTC".to_owned(),
        Zone::Fixed(seconds) => {
            let minutes = seconds.abs() / 60;
            format!("{}{:02}:{:02}", if *seconds < 0 { '-' } else { '+' }, minutes / 60, minutes % 60)
        }
        Zone::Named(zone) => zone.iana_name().unwrap_or("UTC").to_owned(),
        Zone::Local => TimeZone::system().iana_name().unwrap_or("local").to_owned(),
    }
}

/// Batches are bounded far below 4 GiB.
fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Messages in a payload, without decoding them; nothing if it is damaged at its beginning.
#[must_use]
pub fn count(payload: &[u8]) -> Option<usize> {
    let mut input = Decoder::new(payload);
    let _ = input.array().ok()?;
    for _ in 0..3 {
        input.skip().ok()?;
    }
    Some(input.bytes().ok()?.len() / ENTRY_BYTES)
}

/// The messages in a payload, and how they are to become records.
///
/// # Errors
/// [`EncodedError`] with the place of what is wrong.
pub fn decode(payload: &[u8]) -> Result<(SyslogBatch, RowOptions), EncodedError> {
    let mut input = Input(Decoder::new(payload));
    let items = input.item(Decoder::array)?;
    let version = input.item(Decoder::u8)?;
    let wanted = match version {
        VERSION => ITEMS,
        VERSION_SAMPLED => ITEMS + 1,
        found => return Err(EncodedError::Version { found }),
    };
    if items != Some(wanted) {
        return Err(EncodedError::Value { offset: 0, field: "length of this array", found: format!("{items:?}") });
    }
    input.array(4)?;
    let options = RowOptions {
        schema: input.number("schema", |number| [Schema::Upstream, Schema::Otel].get(number).copied())?,
        structured_data: input.number("form of structured data", |number| FORMS.get(number).copied())?,
        cef_extension_prefix: input.prefix()?,
        non_utf8: input
            .number("treatment of text", |number| [NonUtf8::Replace, NonUtf8::Bytes].get(number).copied())?,
        // Whoever decodes decides.
        parent_ids: ParentIds::Plain,
    };
    let count = input.item(Decoder::array)?;
    let mut sources = Vec::new();
    let mut zones: HashMap<String, Arc<Zone>> = HashMap::new();
    // An item takes a byte at least, so the loop ends with the input whatever the count says.
    for _ in 0..count.unwrap_or(0) {
        sources.push(Arc::new(input.source(&mut zones)?));
    }
    let entries = input.item(Decoder::bytes)?;
    let arena = input.item(Decoder::bytes)?;
    let thresholds = if version == VERSION_SAMPLED { Some(input.item(Decoder::bytes)?) } else { None };
    let unused = payload.len() - input.0.position() + entries.len() % ENTRY_BYTES;
    if unused > 0 {
        return Err(EncodedError::Unused { unused });
    }
    let mut entries = read_entries(entries, arena.len(), sources.len())?;
    if let Some(thresholds) = thresholds {
        read_thresholds(thresholds, payload.len() - thresholds.len(), &mut entries)?;
    }
    Ok((SyslogBatch { arena: arena.to_vec(), entries, sources }, options))
}

fn read_entries(bytes: &[u8], messages: usize, sources: usize) -> Result<Vec<Entry>, EncodedError> {
    let mut entries = Vec::with_capacity(bytes.len() / ENTRY_BYTES);
    let mut end = 0_usize;
    for entry in bytes.chunks_exact(ENTRY_BYTES) {
        let number = |at: usize| {
            let bytes = entry.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; 4]);
            usize::try_from(u32::from_le_bytes(bytes)).unwrap_or(usize::MAX)
        };
        end = end.saturating_add(number(0));
        let source = number(4);
        if end > messages || source >= sources {
            let entry = entries.len();
            return Err(EncodedError::Entry { entry, end, bytes: messages, source_index: source, sources });
        }
        let time = entry.get(8..16).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; 8]);
        let truncated = entry.last().is_some_and(|flags| flags & TRUNCATED != 0);
        let receipt = Receipt { time_unix_nano: i64::from_le_bytes(time), truncated };
        entries.push(Entry { end, source, receipt, threshold: Threshold::KEEP_ALL });
    }
    match messages - end {
        0 => Ok(entries),
        unused => Err(EncodedError::Unused { unused }),
    }
}

/// The thresholds of all entries; `start` is where they are in the payload.
fn read_thresholds(bytes: &[u8], start: usize, entries: &mut [Entry]) -> Result<(), EncodedError> {
    let (thresholds, rest) = bytes.as_chunks::<THRESHOLD_BYTES>();
    if thresholds.len() != entries.len() || !rest.is_empty() {
        let found = format!("{} bytes for {} entries", bytes.len(), entries.len());
        return Err(EncodedError::Value { offset: start, field: "list of a threshold for each entry", found });
    }
    for (number, (entry, value)) in entries.iter_mut().zip(thresholds).enumerate() {
        let value = u64::from_le_bytes(*value);
        entry.threshold = Threshold::new(value).ok_or_else(|| {
            let offset = start + number * THRESHOLD_BYTES;
            EncodedError::Value { offset, field: "threshold below 2^56", found: value.to_string() }
        })?;
    }
    Ok(())
}

struct Input<'b>(Decoder<'b>);

impl<'b> Input<'b> {
    fn item<T>(
        &mut self,
        read: impl FnOnce(&mut Decoder<'b>) -> Result<T, minicbor::decode::Error>,
    ) -> Result<T, EncodedError> {
        let offset = self.0.position();
        read(&mut self.0).map_err(|error| EncodedError::Item { offset, message: error.to_string() })
    }

    fn array(&mut self, length: u64) -> Result<(), EncodedError> {
        let offset = self.0.position();
        match self.item(Decoder::array)? {
            Some(found) if found == length => Ok(()),
            found => Err(EncodedError::Value { offset, field: "length of this array", found: format!("{found:?}") }),
        }
    }

    fn number<T>(&mut self, field: &'static str, of: impl FnOnce(usize) -> Option<T>) -> Result<T, EncodedError> {
        let offset = self.0.position();
        let number = self.item(Decoder::u8)?;
        of(usize::from(number)).ok_or_else(|| EncodedError::Value { offset, field, found: number.to_string() })
    }

    fn parsed<T: std::str::FromStr>(&mut self, field: &'static str) -> Result<T, EncodedError> {
        let offset = self.0.position();
        let text = self.item(Decoder::str)?;
        text.parse().map_err(|_| EncodedError::Value { offset, field, found: text.to_owned() })
    }

    /// It goes before every key, so its length has a bound.
    fn prefix(&mut self) -> Result<String, EncodedError> {
        let offset = self.0.position();
        let prefix = self.item(Decoder::str)?;
        if prefix.len() > MAX_PREFIX_BYTES {
            let found = format!("text of {} bytes", prefix.len());
            return Err(EncodedError::Value { offset, field: "prefix of at most 256 bytes", found });
        }
        Ok(prefix.to_owned())
    }

    fn is_null(&mut self) -> Result<bool, EncodedError> {
        match self.item(|input| input.datatype())? {
            Type::Null => self.item(Decoder::null).map(|()| true),
            _ => Ok(false),
        }
    }

    fn source(&mut self, zones: &mut HashMap<String, Arc<Zone>>) -> Result<Source, EncodedError> {
        self.array(5)?;
        let address: Option<IpAddr> = if self.is_null()? { None } else { Some(self.parsed("address")?) };
        let port = self.item(Decoder::u16)?;
        let transport = self.number("transport", |number| TRANSPORTS.get(number).copied())?;
        let offset = self.0.position();
        let name = self.item(Decoder::str)?;
        let zone = match zones.get(name) {
            Some(zone) => Arc::clone(zone),
            None => {
                let zone: Zone = name.parse().map_err(|_| EncodedError::Value {
                    offset,
                    field: "time zone",
                    found: name.to_owned(),
                })?;
                let zone = Arc::new(zone);
                let _ = zones.insert(name.to_owned(), Arc::clone(&zone));
                zone
            }
        };
        let source = Source::new(address.map(|address| SocketAddr::new(address, port)), transport, zone);
        Ok(if self.is_null()? { source } else { source.with_tls_subject(self.item(Decoder::str)?.to_owned()) })
    }
}

const TRANSPORTS: [Transport; 3] = [Transport::Udp, Transport::Tcp, Transport::File];

const FORMS: [Option<StructuredDataForm>; 4] =
    [None, Some(StructuredDataForm::Map), Some(StructuredDataForm::Text), Some(StructuredDataForm::Flat)];

fn transport_number(transport: Transport) -> u8 {
    match transport {
        Transport::Udp => 0,
        Transport::Tcp => 1,
        Transport::File => 2,
    }
}

fn form_number(form: Option<StructuredDataForm>) -> u8 {
    match form {
        None => 0,
        Some(StructuredDataForm::Map) => 1,
        Some(StructuredDataForm::Text) => 2,
        Some(StructuredDataForm::Flat) => 3,
    }
}

fn schema_number(schema: Schema) -> u8 {
    match schema {
        Schema::Upstream => 0,
        Schema::Otel => 1,
    }
}
