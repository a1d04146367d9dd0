//! Random templates and records: what an encoder writes is what comes back.

mod common;

use catchment_ipfix::{Admitted, FieldSpec, Kind, Limits, List, Session, Transport, VARIABLE_LENGTH, Value, decode};
use common::check_consistent;
use proptest::collection::vec;
use proptest::prelude::*;

/// A field of a template to be encoded.
#[derive(Debug, Clone)]
struct Field {
    id: u16,
    enterprise: Option<u32>,
    length: u16,
}

/// A value to be encoded; `long` asks for the three-byte length prefix.
#[derive(Debug, Clone)]
struct Encoded {
    bytes: Vec<u8>,
    long: bool,
}

#[derive(Debug, Clone)]
struct Case {
    version_9: bool,
    options: bool,
    fields: Vec<Field>,
    records: Vec<Vec<Encoded>>,
    padding: Vec<u8>,
}

fn field() -> impl Strategy<Value = Field> {
    let length = prop_oneof![4 => 0_u16..20, 2 => Just(VARIABLE_LENGTH), 1 => 20_u16..400];
    (0_u16..0x8000, proptest::option::of(0_u32..100_000), length).prop_map(|(id, enterprise, length)| Field {
        id,
        enterprise,
        length,
    })
}

fn record(fields: Vec<Field>) -> impl Strategy<Value = Vec<Encoded>> {
    let values = fields.into_iter().map(|field| {
        let lengths = match field.length {
            VARIABLE_LENGTH => prop_oneof![3 => 0..4_usize, 1 => 250..260_usize].boxed(),
            length => Just(usize::from(length)).boxed(),
        };
        let bytes = lengths.prop_flat_map(|length| vec(any::<u8>(), length));
        (bytes, any::<bool>()).prop_map(|(bytes, long)| Encoded { bytes, long }).boxed()
    });
    values.collect::<Vec<_>>()
}

fn case() -> impl Strategy<Value = Case> {
    (any::<bool>(), any::<bool>(), vec(field(), 1..8), vec(any::<u8>(), 0..8))
        .prop_flat_map(|(version_9, options, fields, padding)| {
            let records = vec(record(fields.clone()), 0..5);
            (Just((version_9, options, fields, padding)), records)
        })
        .prop_map(|((version_9, options, fields, mut padding), records)| {
            // Padding is shorter than any record, or it would be one.
            padding.truncate(min_record_length(&fields).saturating_sub(1));
            Case { version_9, options, fields, records, padding }
        })
}

fn min_record_length(fields: &[Field]) -> usize {
    let length = |field: &Field| if field.length == VARIABLE_LENGTH { 1 } else { usize::from(field.length) };
    fields.iter().map(length).sum()
}

fn encode_value(value: &Encoded, variable: bool, into: &mut Vec<u8>) {
    let length = value.bytes.len();
    if variable && (value.long || length >= 255) {
        into.push(255);
        into.extend((length as u16).to_be_bytes());
    } else if variable {
        into.push(length as u8);
    }
    into.extend(&value.bytes);
}

fn encode_set(id: u16, content: &[u8]) -> Vec<u8> {
    let length = (content.len() + 4) as u16;
    [&id.to_be_bytes()[..], &length.to_be_bytes(), content].concat()
}

impl Case {
    fn encode(&self) -> Vec<u8> {
        let fields = self.fields.len() as u16;
        let mut template = 300_u16.to_be_bytes().to_vec();
        match (self.version_9, self.options) {
            (true, true) => template.extend([4_u16.to_be_bytes(), (4 * fields - 4).to_be_bytes()].concat()),
            (false, true) => template.extend([fields.to_be_bytes(), 1_u16.to_be_bytes()].concat()),
            (_, false) => template.extend(fields.to_be_bytes()),
        }
        for field in &self.fields {
            let enterprise = field.enterprise.filter(|_| !self.version_9);
            let bit = if enterprise.is_some() { 0x8000 } else { 0 };
            template.extend((field.id | bit).to_be_bytes());
            template.extend(field.length.to_be_bytes());
            template.extend(enterprise.into_iter().flat_map(u32::to_be_bytes));
        }
        let mut data = Vec::new();
        for value in self.records.iter().flat_map(|record| self.fields.iter().zip(record)) {
            encode_value(value.1, value.0.length == VARIABLE_LENGTH, &mut data);
        }
        data.extend(&self.padding);
        let template_set = match (self.version_9, self.options) {
            (true, options) => u16::from(options),
            (false, options) => 2 + u16::from(options),
        };
        let sets = [encode_set(template_set, &template), encode_set(300, &data)].concat();
        let mut message = Vec::new();
        if self.version_9 {
            message.extend([0, 9, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]);
        } else {
            message.extend([0, 10]);
            message.extend((sets.len() as u16 + 16).to_be_bytes());
            message.extend([0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]);
        }
        message.extend(sets);
        message
    }
}

fn admit(datagram: &[u8]) -> Admitted {
    let mut admitted = Admitted::default();
    Session::new(Transport::Stream, Limits::default()).admit(datagram, &mut admitted);
    admitted
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    /// All lengths, both forms of the length prefix, padding of any value, IPFIX and v9, data and options.
    #[test]
    fn records_come_back(case in case()) {
        let datagram = case.encode();
        let admitted = admit(&datagram);
        check_consistent(&datagram, &admitted);
        prop_assert!(admitted.problems.iter().all(|problem| !problem.discarded), "{:?}", admitted.problems);
        let empty = min_record_length(&case.fields) == 0;
        if empty || case.records.is_empty() {
            prop_assert!(admitted.sets.is_empty());
            return Ok(());
        }
        prop_assert_eq!(admitted.sets.len(), 1);
        let set = &admitted.sets[0];
        prop_assert_eq!(set.kind() == Kind::Options, case.options);
        prop_assert_eq!((set.records, set.padding), (case.records.len(), case.padding.len()));
        for (field, expected) in set.template.fields().iter().zip(&case.fields) {
            let enterprise = expected.enterprise.filter(|_| !case.version_9).unwrap_or_default();
            prop_assert_eq!((field.id, field.enterprise, field.length), (expected.id, enterprise, expected.length));
        }
        for (record, expected) in set.records(&datagram).zip(&case.records) {
            let values: Vec<&[u8]> = record.fields().map(|(_, bytes)| bytes).collect();
            let expected: Vec<&[u8]> = expected.iter().map(|value| &value.bytes[..]).collect();
            prop_assert_eq!(&values, &expected);
            for (index, value) in values.iter().enumerate() {
                prop_assert_eq!(record.field(index), Some(*value));
            }
        }
    }

    /// Lists of values, lists of records, and groups of records inside a record.
    #[test]
    fn lists_come_back(
        ports in vec(any::<u16>(), 0..6),
        names in vec((vec(any::<u8>(), 0..5), any::<bool>()), 0..6),
        groups in vec(vec(any::<[u8; 3]>(), 0..4), 0..4),
    ) {
        let mut ports_list = vec![3, 0, 7, 0, 2];
        ports_list.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        let mut inner = vec![4, 0, 82, 255, 255];
        for (bytes, long) in &names {
            encode_value(&Encoded { bytes: bytes.clone(), long: *long }, true, &mut inner);
        }
        // A list of lists: records of template 302, which hold one basicList each.
        let mut names_list = vec![255, 1, 46];
        encode_value(&Encoded { bytes: inner, long: true }, true, &mut names_list);
        let mut multi = vec![0];
        for group in &groups {
            multi.extend([301_u16.to_be_bytes(), (4 + 3 * group.len() as u16).to_be_bytes()].concat());
            multi.extend(group.concat());
        }
        let lists = [(291, ports_list), (292, names_list), (293, multi)];
        let words = |words: &[u16]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
        let mut templates = words(&[300, 3]);
        let mut data = Vec::new();
        for (id, bytes) in lists {
            templates.extend(words(&[id, VARIABLE_LENGTH]));
            encode_value(&Encoded { bytes, long: false }, true, &mut data);
        }
        templates.extend(words(&[301, 2, 4, 1, 7, 2, 302, 1, 291, VARIABLE_LENGTH]));
        let sets = [encode_set(2, &templates), encode_set(300, &data)].concat();
        let mut datagram = words(&[10, sets.len() as u16 + 16]);
        datagram.extend([0; 12]);
        datagram.extend(sets);

        let admitted = admit(&datagram);
        check_consistent(&datagram, &admitted);
        prop_assert!(admitted.problems.is_empty(), "{:?}", admitted.problems);
        let set = &admitted.sets[0];
        let context = admitted.messages[0].context();
        let record = set.records(&datagram).next().expect("a record");
        let values: Vec<Value<'_>> = record.fields().map(|(field, bytes)| decode(field, bytes, &context)).collect();
        let [
            Value::List(List::Basic(first)),
            Value::List(List::SubTemplate(second)),
            Value::List(List::SubTemplateMulti(third)),
        ] = values[..] else {
            panic!("other values: {values:?}");
        };
        let found: Vec<Value<'_>> = first.values(&context).collect();
        let expected: Vec<Value<'_>> = ports.iter().map(|&port| Value::Unsigned(port.into())).collect();
        prop_assert_eq!(found, expected);

        let inner = second.group().records(&set.sub_templates).expect("template 302").next().expect("a record");
        let (field, bytes) = inner.fields().next().expect("a field");
        let Value::List(List::Basic(inner)) = decode(field, bytes, &context.nested()) else {
            panic!("no list");
        };
        let found: Vec<&[u8]> = inner.elements().collect();
        prop_assert_eq!(found, names.iter().map(|(bytes, _)| &bytes[..]).collect::<Vec<_>>());

        let found: Vec<Vec<Vec<u8>>> = third.groups().map(|group| {
            let records = group.records(&set.sub_templates).expect("template 301");
            records.map(|record| record.bytes().to_vec()).collect()
        }).collect();
        let records = |group: &Vec<[u8; 3]>| group.iter().map(|bytes| bytes.to_vec()).collect::<Vec<_>>();
        prop_assert_eq!(found, groups.iter().map(records).collect::<Vec<_>>());
    }

    /// Numbers keep their value in every length that holds them.
    #[test]
    fn reduced_numbers_come_back(value in any::<u64>(), length in 1_usize..=8) {
        let value = value >> (64 - 8 * length);
        let bytes = &value.to_be_bytes()[8 - length..];
        let field = FieldSpec::ipfix(1, 0, length as u16, false);
        let context = admit(&[0, 10, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).messages[0].context();
        prop_assert_eq!(decode(&field, bytes, &context), Value::Unsigned(value));
    }

    /// Noise behind a good header, and pure noise: nothing panics, everything adds up.
    #[test]
    fn noise(
        version in prop_oneof![Just(5_u8), Just(9), Just(10), any::<u8>()],
        noise in vec(prop_oneof![Just(0_u8), Just(1), Just(2), any::<u8>()], 0..400),
    ) {
        let mut datagram = noise;
        if datagram.len() >= 16 {
            datagram[..2].copy_from_slice(&[0, version]);
        }
        if datagram.len() >= 16 && version == 10 {
            let length = (datagram.len() as u16).to_be_bytes();
            datagram[2..4].copy_from_slice(&length);
        }
        check_consistent(&datagram, &admit(&datagram));
    }
}
