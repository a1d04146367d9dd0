//! What is decided once per template and settings: the attribute of each field, how its column is read, and what needs
//! more than its own bytes.

use catchment_ipfix::{DataType, FieldSpec, Kind, Namespace, Semantics, Template, enumeration_name};
use minicbor::Encoder;
use rustc_hash::{FxHashMap, FxHashSet};

use super::biflow::Directions;
use super::facts::Facts;
use super::mapping::{Biflow, Enumerations, FlowMapping, FlowSchema, SamplingUse, TimeForm};
use super::names::{self, Own};

/// Where the value of a field goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// To the attribute whose name has this index in [`Plan::names`].
    Attribute(usize),
    /// To the list of this index in [`Plan::repeated`], which collects all fields of one element of a record in their
    /// order.
    Repeated(usize),
    /// To the attribute `network.transport`, as a name; where it is no number to that of this name.
    Transport(usize),
    /// Nowhere: padding.
    Skip,
}

/// How a field of records of one length is read, for all records of a set at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    Unsigned,
    /// A number with names for some of its values.
    Named,
    Transport,
    Ipv4,
    Ipv6,
    Mac,
    Seconds,
    Milliseconds,
    /// Value by value, as in records of any length.
    Value,
    /// Not at all, or with others as a list.
    Skip,
}

/// A field of a template.
#[derive(Debug)]
pub(super) struct PlannedField {
    /// The field, with the type that the exporter describes where the tables know none.
    pub(super) spec: FieldSpec,
    pub(super) target: Target,
    pub(super) reading: Reading,
    pub(super) place: Place,
    /// Some of its values have names.
    pub(super) is_named: bool,
    /// A counter that the sampling rate applies to.
    pub(super) is_scaled: bool,
}

/// A list of all values of an element that a record has several times.
#[derive(Debug)]
pub(super) struct Repeated {
    pub(super) name: usize,
    pub(super) fields: Vec<usize>,
}

/// What the address family of a flow is told by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FamilyBy {
    Address,
    IpVersion,
    EtherType,
}

/// A first form of a flow's start or end that is quickly read; where it gives nothing all others are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuickTime {
    Milliseconds(Place),
    Seconds(Place),
    Uptime {
        place: Place,
        /// The record has nothing else that tells this time, nor when the exporter started.
        is_alone: bool,
    },
    /// By the value of the field of this index.
    Field(usize),
}

/// Where a field stands in a record: so many values of variable length are before it, and so many bytes after the last of
/// those, or after the start of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) segment: usize,
    pub(super) offset: usize,
    pub(super) is_variable: bool,
}

/// Something that options data tells of what a record names by a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    Interface,
    Vrf,
    Application,
}

/// Indexes of the fields of a [`catchment_ipfix::SamplingKey`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SamplerFields {
    pub(super) selector: Option<usize>,
    pub(super) ingress_interface: Option<usize>,
    pub(super) egress_interface: Option<usize>,
    pub(super) line_card: Option<usize>,
}

/// The compiled form of a template.
#[derive(Debug)]
pub(super) struct Plan {
    /// In the order of the template.
    pub(super) fields: Box<[PlannedField]>,
    /// Attribute names. They never change, and no two are the same.
    pub(super) names: Box<[String]>,
    pub(super) repeated: Box<[Repeated]>,
    /// Names of the scope fields of options data, as a list in CBOR.
    pub(super) scope: Vec<u8>,
    /// Index of each field that tells the sampling rate, by element.
    pub(super) sampling: Vec<(u16, usize)>,
    pub(super) sampler: SamplerFields,
    /// Options data rather than flows.
    pub(super) is_options: bool,
    /// What tells the address family, best first.
    pub(super) family: Vec<(FamilyBy, usize)>,
    /// The family of all records, where that is certain.
    pub(super) constant_family: Option<&'static str>,
    pub(super) start: Option<QuickTime>,
    pub(super) end: Option<QuickTime>,
    /// What is looked up by which field, and the name that it goes under.
    pub(super) lookups: Vec<(Lookup, usize, Own)>,
    /// Fields of which neither tables nor exporter tell anything.
    pub(super) unknown: u64,
    pub(super) has_scaled: bool,
    /// Bytes of fixed length before each value of variable length, and after the last.
    pub(super) runs: Box<[usize]>,
    /// In place of all else: the two directions of the records.
    pub(super) directions: Option<Box<Directions>>,
}

/// Elements that tell a sampling rate alone or in pairs.
const SAMPLING: [u16; 7] = [34, 50, 305, 306, 309, 310, 311];
const PROTOCOL_IDENTIFIER: u16 = 4;
/// Elements of flow times, best first, as [`catchment_ipfix::flow_times`] looks at them.
const STARTS: [u16; 10] = [156, 154, 152, 150, 22, 158, 325, 324, 323, 322];
const ENDS: [u16; 10] = [157, 155, 153, 151, 21, 159, 325, 324, 323, 322];
/// Values asked for to find out whether an element has names for some: all small ones, and protocols of Ethernet.
const ASKED: [u64; 5] = [0x0800, 0x0806, 0x86dd, 0x8100, 0x8847];

impl Plan {
    /// The plan of `template` for a record of one direction, or of both in one.
    pub(super) fn of_one(template: &Template, mapping: &FlowMapping, facts: &Facts) -> Self {
        let specs: Vec<FieldSpec> = template.fields().iter().map(|field| facts.typed(field)).collect();
        let is_options = template.kind() == Kind::Options;
        let mut names = Names::default();
        let targets = targets(template.fields(), mapping.schema, facts, &mut names);
        let repeated = names.repeated;
        let is_fast = |spec: &FieldSpec| spec.length > 0 && !spec.is_padding();
        let (places, runs) = places(&specs);
        let fields = specs.iter().zip(targets).zip(&places).map(|((spec, target), place)| {
            let is_named = mapping.enumerations == Enumerations::Names
                && !has_type_of_collector(spec, target, &names.names, mapping.schema)
                && is_enumerated(spec);
            let is_scaled = mapping.sampling == SamplingUse::Apply && !is_options && is_sampled_counter(spec);
            let reading = match target {
                Target::Skip | Target::Repeated(_) => Reading::Skip,
                _ if !is_fast(spec) => Reading::Skip,
                Target::Attribute(_) if is_scaled => Reading::Value,
                _ => reading(spec, target, is_named, mapping.times),
            };
            PlannedField { spec: *spec, target, reading, place: *place, is_named, is_scaled }
        });
        let fields: Box<[PlannedField]> = fields.collect();
        let position = |id: u16| specs.iter().position(|field| field.is_iana(id) && !field.scope);
        let sampling = SAMPLING.iter().filter_map(|id| Some((*id, specs.iter().position(|field| field.is_iana(*id))?)));
        let family = if is_options || mapping.schema == FlowSchema::Ipfix { Vec::new() } else { family(&specs) };
        let constant_family = match family.first() {
            Some((FamilyBy::Address, index)) => specs.get(*index).and_then(fixed_family),
            _ => None,
        };
        let quick = |ids: [u16; 10]| quick_time(template, &places, ids);
        Self {
            scope: scope(&fields, &names.names, &repeated),
            names: names.names.into(),
            repeated: repeated.into(),
            sampling: sampling.collect(),
            sampler: SamplerFields {
                selector: position(48).or_else(|| position(302)),
                ingress_interface: position(10).or_else(|| position(252)),
                egress_interface: position(14).or_else(|| position(253)),
                line_card: position(141),
            },
            is_options,
            family,
            constant_family,
            start: quick(STARTS),
            end: quick(ENDS),
            lookups: if is_options { Vec::new() } else { lookups(position) },
            unknown: specs.iter().filter(|field| field.element.is_none() && field.length > 0).count() as u64,
            has_scaled: fields.iter().any(|field| field.is_scaled),
            runs: runs.into(),
            directions: None,
            fields,
        }
    }

    /// The plan of `template`.
    pub(super) fn new(template: &Template, mapping: &FlowMapping, facts: &Facts) -> Self {
        let directions = if mapping.biflow == Biflow::Two { Directions::of(template, mapping, facts) } else { None };
        Self { directions: directions.map(Box::new), ..Self::of_one(template, mapping, facts) }
    }
}

/// Names under collection.
#[derive(Default)]
struct Names {
    names: Vec<String>,
    index: FxHashMap<String, usize>,
    repeated: Vec<Repeated>,
}

impl Names {
    fn add(&mut self, name: String) -> usize {
        *self.index.entry(name.clone()).or_insert_with(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }
}

/// One target for each field. A template may have thousands of fields: each is looked at a fixed number of times.
fn targets(specs: &[FieldSpec], schema: FlowSchema, facts: &Facts, names: &mut Names) -> Vec<Target> {
    let mut first_of: FxHashMap<usize, usize> = FxHashMap::default();
    let mut places: Vec<Option<usize>> = Vec::with_capacity(specs.len());
    for (index, field) in specs.iter().enumerate() {
        if field.is_padding() {
            places.push(None);
            continue;
        }
        let is_same_element = |other: &usize| {
            specs.get(*other).is_some_and(|other| {
                (other.id, other.enterprise, other.namespace) == (field.id, field.enterprise, field.namespace)
            })
        };
        let collector = (schema == FlowSchema::Otel).then(|| names::collector(field)).flatten();
        let place = match collector {
            // Of two elements with one name the first has it.
            Some(name) if names.index.get(name).and_then(|place| first_of.get(place)).is_none_or(is_same_element) => {
                names.add(name.to_owned())
            }
            _ => names.add(names::registered(field, facts, schema)),
        };
        let _ = first_of.entry(place).or_insert(index);
        places.push(Some(place));
    }
    let mut counts = vec![0_usize; names.names.len()];
    for place in places.iter().flatten() {
        if let Some(count) = counts.get_mut(*place) {
            *count += 1;
        }
    }
    let mut lists: FxHashMap<usize, usize> = FxHashMap::default();
    let mut targets = Vec::with_capacity(specs.len());
    for (index, (field, place)) in specs.iter().zip(places).enumerate() {
        let Some(place) = place else {
            targets.push(Target::Skip);
            continue;
        };
        if counts.get(place).is_some_and(|count| *count > 1) {
            let list = *lists.entry(place).or_insert_with(|| {
                names.repeated.push(Repeated { name: place, fields: Vec::new() });
                names.repeated.len() - 1
            });
            names.repeated[list].fields.push(index);
            targets.push(Target::Repeated(list));
        } else if schema == FlowSchema::Otel && is_protocol(field) {
            targets.push(Target::Transport(place));
        } else {
            targets.push(Target::Attribute(place));
        }
    }
    targets
}

fn is_protocol(field: &FieldSpec) -> bool {
    field.is_iana(PROTOCOL_IDENTIFIER) && !field.scope && !field.reverse
}

/// Whether the attribute is one of the collector's, which are numbers where they have names too.
fn has_type_of_collector(field: &FieldSpec, target: Target, names: &[String], schema: FlowSchema) -> bool {
    let Target::Attribute(name) = target else { return false };
    schema == FlowSchema::Otel
        && names::collector(field).is_some_and(|collector| names.get(name).is_some_and(|name| name == collector))
}

fn is_enumerated(field: &FieldSpec) -> bool {
    number_bytes(field).is_some() && (0..256).chain(ASKED).any(|value| enumeration_name(field, value).is_some())
}

/// Counters of octets or packets of flows; not those of the work of the exporter itself, nor sums of squares.
fn is_sampled_counter(field: &FieldSpec) -> bool {
    let Some(element) = field.element else { return false };
    let name = element.name.to_ascii_lowercase();
    matches!(element.semantics, Semantics::DeltaCounter | Semantics::TotalCounter)
        && name.ends_with("count")
        && (name.contains("octet") || name.contains("packet"))
        && !["exported", "ignored", "notsent"].iter().any(|word| name.contains(word))
}

/// Bytes that a number of a type may take, as in [`catchment_ipfix::decode`].
fn number_bytes(spec: &FieldSpec) -> Option<u16> {
    let bytes = match spec.data_type() {
        DataType::Unsigned8 => 1,
        DataType::Unsigned16 => 2,
        DataType::Unsigned32 => 4,
        DataType::Unsigned64 => 8,
        _ => return None,
    };
    Some(if spec.namespace == Namespace::Ipfix { bytes } else { 8 })
}

fn reading(spec: &FieldSpec, target: Target, is_named: bool, times: TimeForm) -> Reading {
    if number_bytes(spec).is_some_and(|limit| spec.length <= limit) {
        return match target {
            Target::Transport(_) => Reading::Transport,
            _ if is_named => Reading::Named,
            _ => Reading::Unsigned,
        };
    }
    match (spec.data_type(), spec.length) {
        (DataType::Ipv4Address, 4) => Reading::Ipv4,
        (DataType::Ipv6Address, 16) => Reading::Ipv6,
        (DataType::MacAddress, 6) => Reading::Mac,
        (DataType::DateTimeSeconds, 4) if times == TimeForm::UnixNano => Reading::Seconds,
        (DataType::DateTimeMilliseconds, 8) if times == TimeForm::UnixNano => Reading::Milliseconds,
        _ => Reading::Value,
    }
}

fn family(specs: &[FieldSpec]) -> Vec<(FamilyBy, usize)> {
    let positions = |by: FamilyBy, ids: [u16; 2]| {
        let fields = specs.iter().enumerate();
        fields
            .filter(move |(_, field)| !field.scope && !field.reverse && ids.iter().any(|id| field.is_iana(*id)))
            .map(move |(index, _)| (by, index))
    };
    positions(FamilyBy::Address, [8, 27])
        .take(1)
        .chain(positions(FamilyBy::Address, [12, 28]).take(1))
        .chain(positions(FamilyBy::IpVersion, [60, 60]).take(1))
        .chain(positions(FamilyBy::EtherType, [256, 256]).take(1))
        .collect()
}

/// The family that an address field of fixed length has in all records.
fn fixed_family(spec: &FieldSpec) -> Option<&'static str> {
    match (spec.data_type(), spec.length) {
        (DataType::Ipv4Address, 4) => Some("ipv4"),
        (DataType::Ipv6Address, 16) => Some("ipv6"),
        _ => None,
    }
}

/// systemInitTimeMilliseconds.
const SYSTEM_INIT: u16 = 160;

fn quick_time(template: &Template, places: &[Place], ids: [u16; 10]) -> Option<QuickTime> {
    let fields = template.fields();
    let index = ids.iter().find_map(|id| fields.iter().position(|field| field.is_iana(*id)))?;
    let (field, place) = (fields.get(index)?, *places.get(index)?);
    match (field.data_type(), field.length) {
        (DataType::DateTimeMilliseconds, 8) => Some(QuickTime::Milliseconds(place)),
        (DataType::DateTimeSeconds, 4) => Some(QuickTime::Seconds(place)),
        (DataType::DateTimeMicroseconds | DataType::DateTimeNanoseconds, 8) => Some(QuickTime::Field(index)),
        (DataType::Unsigned32, 4) if matches!(field.id, 21 | 22) => {
            let tells = |field: &FieldSpec| field.is_iana(SYSTEM_INIT) || ids.iter().any(|id| field.is_iana(*id));
            let is_alone = fields.iter().filter(|field| tells(field)).count() == 1;
            Some(QuickTime::Uptime { place, is_alone })
        }
        _ => None,
    }
}

/// The place of each field, and the bytes of fixed length around values of variable length.
fn places(specs: &[FieldSpec]) -> (Vec<Place>, Vec<usize>) {
    let (mut runs, mut offset) = (Vec::new(), 0);
    let places = specs.iter().map(|field| {
        let place = Place { segment: runs.len(), offset, is_variable: field.is_variable() };
        if field.is_variable() {
            runs.push(std::mem::take(&mut offset));
        } else {
            offset += usize::from(field.length);
        }
        place
    });
    let places = places.collect();
    runs.push(offset);
    (places, runs)
}

fn lookups(position: impl Fn(u16) -> Option<usize>) -> Vec<(Lookup, usize, Own)> {
    let all = [
        (Lookup::Interface, position(10).or_else(|| position(252)), Own::InIfName),
        (Lookup::Interface, position(14).or_else(|| position(253)), Own::OutIfName),
        (Lookup::Vrf, position(234), Own::IngressVrfName),
        (Lookup::Vrf, position(235), Own::EgressVrfName),
        (Lookup::Application, position(95), Own::ApplicationName),
    ];
    all.into_iter().filter_map(|(lookup, field, own)| Some((lookup, field?, own))).collect()
}

fn scope(fields: &[PlannedField], names: &[String], repeated: &[Repeated]) -> Vec<u8> {
    let name_of = |field: &PlannedField| match field.target {
        Target::Attribute(name) | Target::Transport(name) => Some(name),
        Target::Repeated(list) => repeated.get(list).map(|repeated| repeated.name),
        Target::Skip => None,
    };
    let mut told = FxHashSet::default();
    let scope: Vec<&String> = fields
        .iter()
        .filter(|field| field.spec.scope)
        .filter_map(name_of)
        // A list of several scope fields has one name.
        .filter(|name| told.insert(*name))
        .filter_map(|name| names.get(name))
        .collect();
    let mut out = Encoder::new(Vec::new());
    // Writing to a vector cannot fail.
    let _ = out
        .array(u64::try_from(scope.len()).unwrap_or(u64::MAX))
        .and_then(|out| scope.iter().try_for_each(|name| out.str(name).map(|_| ())));
    out.into_writer()
}
