//! From a payload to a batch.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use catchment_ipfix::{
    FieldSpec, Kind, Limits, MessageInfo, Records, SequenceCheck, SubTemplates, Template, TimeEncoding, Version,
    netflow_v5_template,
};
use catchment_sampling::Threshold;
use minicbor::Decoder;
use minicbor::data::Type;

use super::{
    EncodedError, FIELD_BYTES, FLOWS, NONE, SCOPE, SETTINGS, SetEntry, THRESHOLD_BYTES, VERSION_SAMPLED, array, facts,
    items_of,
};
use crate::ParentIds;
use crate::flow::batch::{FlowBatch, FlowReceipt, Set};
use crate::flow::facts::{Carried, Facts};
use crate::flow::mapping::{
    Biflow, Enumerations, ExporterAt, FlowMapping, FlowSchema, OptionsData, SamplingUse, TimeForm, U64Overflow,
};

/// The data sets in a payload, and how they are to become log records.
///
/// # Errors
/// [`EncodedError`] with the place of what is wrong.
pub fn decode(payload: &[u8]) -> Result<(FlowBatch, FlowMapping), EncodedError> {
    let mut input = Input(Decoder::new(payload));
    let items = input.item(Decoder::array)?;
    let offset = input.offset();
    let version = input.item(Decoder::u8)?;
    let wanted = items_of(version).ok_or(EncodedError::Version { offset, found: version })?;
    if items != Some(wanted) {
        return Err(EncodedError::Value { offset: 0, field: "length of this array", found: format!("{items:?}") });
    }
    let offset = input.offset();
    let kind = input.item(Decoder::u8)?;
    if kind != FLOWS {
        return Err(EncodedError::Kind { offset, found: kind });
    }
    let announced = (input.offset(), input.item(Decoder::u32)?);
    let mapping = input.mapping()?;
    let mut tables = Tables::default();
    input.each(|input| {
        tables.templates.push(input.template()?);
        Ok(())
    })?;
    input.each(|input| {
        let mut group = Vec::new();
        input.each(|input| {
            group.push(input.number("template", |number| tables.templates.get(number).cloned())?);
            Ok(())
        })?;
        tables.groups.push(SubTemplates::new(group));
        Ok(())
    })?;
    input.each(|input| {
        let place = tables.facts.len();
        tables.facts.push(Arc::new(facts::read(input, place)?));
        Ok(())
    })?;
    input.each(|input| {
        input.array(2)?;
        let address: IpAddr = input.parsed("address")?;
        tables.exporters.push(SocketAddr::new(address, input.item(Decoder::u16)?));
        Ok(())
    })?;
    let entries = input.item(Decoder::bytes)?;
    // Byte strings end where the decoder stands after them.
    let entries_at = input.offset() - entries.len();
    let contents = input.item(Decoder::bytes)?;
    let thresholds = if version == VERSION_SAMPLED { Some(input.item(Decoder::bytes)?) } else { None };
    let unused = payload.len() - input.offset() + entries.len() % SetEntry::BYTES;
    if unused > 0 {
        return Err(EncodedError::Unused { offset: input.offset(), unused });
    }
    let mut batch = tables.batch(entries, entries_at, contents)?;
    if let Some(thresholds) = thresholds {
        read_thresholds(thresholds, input.offset() - thresholds.len(), &mut batch.sets)?;
    }
    match batch.records == usize::try_from(announced.1).unwrap_or(usize::MAX) {
        true => Ok((batch, mapping)),
        false => Err(EncodedError::Value {
            offset: announced.0,
            field: "number of the records that follow",
            found: announced.1.to_string(),
        }),
    }
}

/// What sets share.
#[derive(Default)]
struct Tables {
    templates: Vec<Arc<Template>>,
    groups: Vec<SubTemplates>,
    facts: Vec<Arc<Carried>>,
    exporters: Vec<SocketAddr>,
}

/// One of `all` by its number; nothing for [`NONE`].
fn one_of<'t, T>(
    all: &'t [T],
    number: u32,
    field: &'static str,
    (offset, set): (usize, usize),
) -> Result<Option<&'t T>, EncodedError> {
    if number == NONE {
        return Ok(None);
    }
    let found = usize::try_from(number).unwrap_or(usize::MAX);
    let error = EncodedError::Set { offset, set, field, found, bound: all.len() };
    all.get(found).map(Some).ok_or(error)
}

impl Tables {
    fn batch(&self, entries: &[u8], entries_at: usize, contents: &[u8]) -> Result<FlowBatch, EncodedError> {
        let mut batch = FlowBatch {
            arena: contents.to_vec(),
            sets: Vec::with_capacity(entries.len() / SetEntry::BYTES),
            records: 0,
        };
        let mut end = 0_usize;
        for (number, bytes) in entries.chunks_exact(SetEntry::BYTES).enumerate() {
            let entry = SetEntry::from_bytes(bytes);
            let place = (entries_at + number * SetEntry::BYTES, number);
            let of_set =
                |field, found: usize, bound| EncodedError::Set { offset: place.0, set: number, field, found, bound };
            let start = end;
            end = end.saturating_add(usize::try_from(entry.bytes).unwrap_or(usize::MAX));
            let content = contents.get(start..end).ok_or_else(|| of_set("end of its bytes", end, contents.len()))?;
            let template = one_of(&self.templates, entry.template, "template", place)?;
            let template = Arc::clone(template.ok_or_else(|| of_set("no template", 0, self.templates.len()))?);
            let records = Records::new(&template, content).count();
            let announced = usize::try_from(entry.records).unwrap_or(usize::MAX);
            if records != announced {
                return Err(of_set("number of records", announced, records));
            }
            batch.records += records;
            let facts = one_of(&self.facts, entry.facts, "facts", place)?;
            let exporter = one_of(&self.exporters, entry.exporter, "exporter", place)?.copied();
            batch.sets.push(Set {
                template,
                sub_templates: one_of(&self.groups, entry.group, "group", place)?.cloned().unwrap_or_default(),
                facts: facts.map_or(Facts::None, |facts| Facts::Carried(Arc::clone(facts))),
                records,
                bytes: start..end,
                message: message(&entry).ok_or_else(|| of_set("version", usize::from(entry.version), 10))?,
                receipt: FlowReceipt { time_unix_nano: entry.received_unix_nano, exporter },
                threshold: Threshold::KEEP_ALL,
            });
        }
        match contents.len() - end {
            0 => Ok(batch),
            unused => Err(EncodedError::Unused { offset: entries_at + entries.len() + end, unused }),
        }
    }
}

/// The thresholds of all sets; `start` is where they are in the payload.
fn read_thresholds(bytes: &[u8], start: usize, sets: &mut [Set]) -> Result<(), EncodedError> {
    let (thresholds, rest) = bytes.as_chunks::<THRESHOLD_BYTES>();
    if thresholds.len() != sets.len() || !rest.is_empty() {
        let found = format!("{} bytes for {} sets", bytes.len(), sets.len());
        return Err(EncodedError::Value { offset: start, field: "list of a threshold for each set", found });
    }
    for (number, (set, value)) in sets.iter_mut().zip(thresholds).enumerate() {
        let value = u64::from_le_bytes(*value);
        set.threshold = Threshold::new(value).ok_or_else(|| {
            let offset = start + number * THRESHOLD_BYTES;
            EncodedError::Value { offset, field: "threshold below 2^56", found: value.to_string() }
        })?;
    }
    Ok(())
}

/// The message of a set, as far as its records need it.
fn message(entry: &SetEntry) -> Option<MessageInfo> {
    Some(MessageInfo {
        version: Version::from_number(u16::from(entry.version))?,
        offset: 0,
        length: 0,
        export_time_unix_nano: entry.exported_unix_nano,
        uptime_ms: entry.uptime_ms,
        sequence: entry.sequence,
        sequence_check: SequenceCheck::Unchecked,
        domain: entry.domain,
        header_count: None,
        sampling: entry.sampling,
        complete: true,
    })
}

pub(super) struct Input<'b>(Decoder<'b>);

impl<'b> Input<'b> {
    fn offset(&self) -> usize {
        self.0.position()
    }

    pub(super) fn item<T>(
        &mut self,
        read: impl FnOnce(&mut Decoder<'b>) -> Result<T, minicbor::decode::Error>,
    ) -> Result<T, EncodedError> {
        let offset = self.offset();
        read(&mut self.0).map_err(|error| EncodedError::Item { offset, message: error.to_string() })
    }

    /// An item, or null.
    pub(super) fn optional<T>(
        &mut self,
        read: impl FnOnce(&mut Decoder<'b>) -> Result<T, minicbor::decode::Error>,
    ) -> Result<Option<T>, EncodedError> {
        match self.item(|input| input.datatype())? {
            Type::Null => self.item(Decoder::null).map(|()| None),
            _ => self.item(read).map(Some),
        }
    }

    pub(super) fn array(&mut self, length: u64) -> Result<(), EncodedError> {
        let offset = self.offset();
        match self.item(Decoder::array)? {
            Some(found) if found == length => Ok(()),
            found => Err(EncodedError::Value { offset, field: "length of this array", found: format!("{found:?}") }),
        }
    }

    /// Reads an array of any length. An item takes a byte at least, so this ends with the input whatever the length says.
    pub(super) fn each(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<(), EncodedError>,
    ) -> Result<(), EncodedError> {
        let offset = self.offset();
        let Some(length) = self.item(Decoder::array)? else {
            return Err(EncodedError::Value { offset, field: "array with a length", found: "one without".to_owned() });
        };
        (0..length).try_for_each(|_| read(self))
    }

    pub(super) fn number<T>(
        &mut self,
        field: &'static str,
        of: impl FnOnce(usize) -> Option<T>,
    ) -> Result<T, EncodedError> {
        let offset = self.offset();
        let number = self.item(Decoder::u32)?;
        let found = usize::try_from(number).ok().and_then(of);
        found.ok_or_else(|| EncodedError::Value { offset, field, found: number.to_string() })
    }

    fn one<T: Copy>(&mut self, field: &'static str, all: &[T]) -> Result<T, EncodedError> {
        self.number(field, |number| all.get(number).copied())
    }

    fn parsed<T: std::str::FromStr>(&mut self, field: &'static str) -> Result<T, EncodedError> {
        let offset = self.offset();
        let text = self.item(Decoder::str)?;
        text.parse().map_err(|_| EncodedError::Value { offset, field, found: text.to_owned() })
    }

    fn mapping(&mut self) -> Result<FlowMapping, EncodedError> {
        self.array(SETTINGS)?;
        Ok(FlowMapping {
            schema: self.one("schema", &[FlowSchema::Otel, FlowSchema::Ipfix])?,
            enumerations: self.one("form of enumerations", &[Enumerations::Names, Enumerations::Numbers])?,
            times: self.one("form of times", &[TimeForm::UnixNano, TimeForm::Rfc3339])?,
            sampling: self.one("use of sampling rates", &[SamplingUse::Keep, SamplingUse::Apply])?,
            options: self.one("use of options data", &[OptionsData::Both, OptionsData::Emit, OptionsData::Use])?,
            u64_overflow: self
                .one("form of large integers", &[U64Overflow::Double, U64Overflow::String, U64Overflow::Saturate])?,
            list_semantics: self.one("choice about semantics of lists", &[false, true])?,
            biflow: self.one("form of biflows", &[Biflow::One, Biflow::Two])?,
            exporter_at: self.one("place of exporters", &[ExporterAt::Record, ExporterAt::Resource])?,
            per_exporter: self.one("choice about batches", &[false, true])?,
            time_encoding: self
                .one("encoding of times", &[TimeEncoding::Auto, TimeEncoding::Ntp, TimeEncoding::UnixNano])?,
            parent_ids: self.one("form of parent ids", &[ParentIds::Plain, ParentIds::Transport])?,
        })
    }

    fn template(&mut self) -> Result<Arc<Template>, EncodedError> {
        self.array(3)?;
        let offset = self.offset();
        let id = self.item(Decoder::u16)?;
        let kind = self.one("kind of template", &[Some(Kind::Flow), Some(Kind::Options), None])?;
        let bytes = self.item(Decoder::bytes)?;
        let Some(kind) = kind else { return Ok(Arc::clone(netflow_v5_template())) };
        let invalid = |found: String| EncodedError::Value { offset, field: "template", found };
        if bytes.len() % FIELD_BYTES > 0 {
            return Err(invalid(format!("one with {} bytes of fields, {FIELD_BYTES} each,", bytes.len())));
        }
        let fields = bytes.chunks_exact(FIELD_BYTES).map(field).collect::<Option<Vec<_>>>();
        let fields = fields.ok_or_else(|| invalid("one with a field of no name space".to_owned()))?;
        let (empty, most) =
            (fields.iter().filter(|field| field.length == 0).count(), Limits::default().max_empty_fields);
        if empty > most {
            return Err(invalid(format!("one with {empty} fields of length 0, {most} at most,")));
        }
        let template = Template::new(id, kind, fields).map_err(|error| invalid(error.to_string()))?;
        Ok(Arc::new(template))
    }
}

/// A field of [`FIELD_BYTES`] bytes.
fn field(bytes: &[u8]) -> Option<FieldSpec> {
    let [flags] = array(bytes, 0);
    let (id, length) = (u16::from_le_bytes(array(bytes, 1)), u16::from_le_bytes(array(bytes, 7)));
    let scope = flags & SCOPE != 0;
    let field = match flags & !SCOPE {
        0 => FieldSpec::ipfix(id, u32::from_le_bytes(array(bytes, 3)), length, scope),
        1 => FieldSpec::netflow_v9(id, length),
        2 => FieldSpec::netflow_v9_scope(id, length),
        _ => return None,
    };
    Some(FieldSpec { scope, ..field })
}
