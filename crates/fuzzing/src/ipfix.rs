//! Targets for IPFIX and NetFlow.

use std::time::Duration;

use catchment_capture::{Format, Item, Options, Reader};
use catchment_ipfix::{
    Admitted, Counters, DataSet, DecodeContext, FieldSpec, Kind, Limits, List, MAX_LIST_DEPTH, MessageInfo,
    ProblemKind, Records, Session, SubTemplates, TimeEncoding, Transport, Value, check_framing, decode, flow_times,
    stream_message_length,
};

/// Fields of length 0 that a template may have by default, and one field with bytes: what one byte can be part of at
/// one level of lists.
const FIELDS_A_BYTE: usize = 65;

/// Admits a sequence of datagrams to one session. The bits of the first byte of `input` choose the transport, tight
/// limits, and the encoding of times; then come datagrams, each behind its length in two bytes.
///
/// Asserted after each datagram: every byte is counted once, records and problems are as many as the counters say and
/// lie where they should, all that is kept obeys the limits, and decoding takes no more steps than the bytes allow.
pub fn ipfix_admit(input: &[u8]) {
    let Some((&choice, mut rest)) = input.split_first() else {
        return;
    };
    let transport = if choice & 1 == 0 { Transport::Udp } else { Transport::Stream };
    let limits = if choice & 2 == 0 { Limits::default() } else { tight_limits() };
    let encoding = match choice >> 2 & 3 {
        0 => TimeEncoding::Auto,
        1 => TimeEncoding::UnixNano,
        _ => TimeEncoding::Ntp,
    };
    let mut session = Session::new(transport, limits.clone());
    let mut waiting = Vec::new();
    let mut admitted = Admitted::default();
    for second in 0.. {
        let Some((&length, following)) = rest.split_first_chunk() else {
            break;
        };
        let length = usize::from(u16::from_be_bytes(length)).min(following.len());
        let (datagram, following) = following.split_at(length);
        rest = following;
        session.set_clock(Duration::from_secs(second));
        admitted.clear();
        session.admit(datagram, &mut admitted);
        check_admitted(datagram, &admitted, &limits, encoding);
        check_templates(&session, &limits);
        for set in &admitted.unknown_sets {
            waiting.push((admitted.messages[set.message], set.template_id, &datagram[set.range.clone()]));
        }
    }
    for (message, template_id, content) in waiting {
        admitted.clear();
        if session.admit_set(&message, template_id, content, &mut admitted) {
            assert_eq!(counted_bytes(&admitted.counters), content.len() as u64);
            let _ = decode_sets(content, &admitted, encoding);
        } else {
            assert!(admitted.messages.is_empty() && admitted.sets.is_empty());
        }
    }
    let mut heir = Session::new(transport, limits);
    for (version, domain, template) in session.templates() {
        assert!(heir.insert_template(version, domain, template.clone()).is_none());
    }
    assert_eq!(heir.templates().count(), session.templates().count());
}

pub(crate) fn tight_limits() -> Limits {
    Limits {
        max_template_fields: 8,
        max_empty_fields: 1,
        max_templates: 2,
        max_total_fields: 12,
        max_domains: 2,
        max_facts: 4,
        max_problems: 3,
        template_lifetime: Some(Duration::from_secs(2)),
    }
}

/// Reads messages from a byte stream as a receiver of TCP would, and admits them to one session.
///
/// Asserted: the length of a message does not depend on how many of its bytes are there, a reader of files finds the
/// same messages, the check of the framing agrees with the session, and what holds for datagrams.
pub fn ipfix_stream(input: &[u8]) {
    let mut session = Session::new(Transport::Stream, Limits::default());
    let mut admitted = Admitted::default();
    let mut messages: Vec<&[u8]> = Vec::new();
    let mut rest = input;
    while let Ok(Some(length)) = message_length(rest) {
        let Some((message, following)) = rest.split_at_checked(length) else {
            break;
        };
        rest = following;
        messages.push(message);
        admitted.clear();
        session.admit(message, &mut admitted);
        check_admitted(message, &admitted, &Limits::default(), TimeEncoding::Ntp);
        assert_eq!((admitted.counters.messages, admitted.counters.trailing_bytes), (1, 0));
        let framing = [ProblemKind::SetLength, ProblemKind::MessageLength, ProblemKind::Version];
        match check_framing(message) {
            Ok(count) => {
                assert_eq!(count, 1);
                assert!(framing.iter().all(|kind| admitted.counters.problem(*kind) == 0));
            }
            Err((offset, _)) => {
                assert!(offset <= message.len());
                assert_eq!(admitted.counters.incomplete_messages, 1);
            }
        }
    }
    if let Ok(count) = check_framing(input) {
        assert_eq!((count, rest.len()), (messages.len(), 0));
    }
    let options = Options { format: Some(Format::IpfixStream), ..Options::default() };
    let Ok(reader) = Reader::new(input, "input", options) else {
        assert!(input.is_empty());
        return;
    };
    let (mut read, mut whole) = (Vec::new(), true);
    for item in reader {
        match item {
            Ok(Item::Packet(packet)) => read.push(packet.payload),
            Ok(Item::Skipped { offset, reason }) => panic!("message at {offset} skipped: {reason}"),
            Err(_) => whole = false,
        }
    }
    assert_eq!(read, messages);
    assert_eq!(whole, rest.is_empty());
}

/// Takes all but the first byte of `input` as records of a template with the three kinds of lists, whose entries are of
/// templates with more lists, one of them unknown. The first byte chooses the encoding of times and whether the record
/// begins with a fixed field.
///
/// Asserted: what holds for datagrams; and the entries of all lists are no more than the bytes.
pub fn ipfix_lists(input: &[u8]) {
    let Some((&choice, content)) = input.split_first() else {
        return;
    };
    const ANY: u16 = u16::MAX;
    let lists = [(291, ANY), (292, ANY), (293, ANY)];
    let fixed = [(4, 1), (292, 9), (291, ANY)];
    let templates = [
        template(256, if choice & 1 == 0 { &lists } else { &fixed }),
        template(257, &[(4, 1), (291, ANY)]),
        template(258, &[(293, ANY), (8, 4), (1, 0)]),
        template(259, &[(7, 2)]),
    ];
    let content = &content[..content.len().min(60_000)];
    let datagram = message(&[(2, &templates.concat()), (256, content)]);
    let encoding = if choice & 2 == 0 { TimeEncoding::Auto } else { TimeEncoding::Ntp };
    let mut session = Session::new(Transport::Udp, Limits::default());
    let mut admitted = Admitted::default();
    session.admit(&datagram, &mut admitted);
    check_admitted(&datagram, &admitted, &Limits::default(), encoding);
    for set in &admitted.sets {
        let context = set.context(&admitted.messages[set.message]);
        let entries = entries(set.records(&datagram), &set.sub_templates, &context);
        assert!(entries <= datagram.len(), "{entries} entries in {} bytes", datagram.len());
    }
}

/// The number of entries in lists of all records.
fn entries(records: Records<'_, '_>, templates: &SubTemplates, context: &DecodeContext) -> usize {
    let fields = |record: catchment_ipfix::Record<'_, '_>| {
        record.fields().map(|(field, bytes)| value_entries(field, bytes, templates, context)).sum::<usize>()
    };
    records.map(fields).sum()
}

fn value_entries(field: &FieldSpec, bytes: &[u8], templates: &SubTemplates, context: &DecodeContext) -> usize {
    let Value::List(list) = decode(field, bytes, context) else {
        return 0;
    };
    let nested = context.nested();
    let of_group = |group: catchment_ipfix::Group<'_>| {
        let records = || group.records(templates);
        let inside = records().map_or(0, |records| entries(records, templates, &nested));
        records().map_or(0, Iterator::count) + inside
    };
    match list {
        List::Basic(list) => {
            list.elements().map(|element| 1 + value_entries(&list.field(), element, templates, &nested)).sum()
        }
        List::SubTemplate(list) => of_group(list.group()),
        List::SubTemplateMulti(list) => list.groups().map(of_group).sum(),
    }
}

/// The record of a template of pairs of element and length.
pub(crate) fn template(id: u16, fields: &[(u16, u16)]) -> Vec<u8> {
    let head = [id, fields.len() as u16];
    let fields = fields.iter().flat_map(|&(id, length)| [id, length]);
    head.into_iter().chain(fields).flat_map(u16::to_be_bytes).collect()
}

/// An IPFIX message of sets by id and content, in domain 1.
pub(crate) fn message(sets: &[(u16, &[u8])]) -> Vec<u8> {
    let mut message = vec![0, 10, 0, 0, 0x6a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    for (id, content) in sets {
        message.extend(id.to_be_bytes());
        message.extend((content.len() as u16 + 4).to_be_bytes());
        message.extend(*content);
    }
    let length = message.len() as u16;
    message[2..4].copy_from_slice(&length.to_be_bytes());
    message
}

/// The length of the first message of `rest`, which must be the same from the bytes of its first two words and from
/// more, and must not be told too early.
fn message_length(rest: &[u8]) -> Result<Option<usize>, ()> {
    let length = |count: usize| stream_message_length(&rest[..count.min(rest.len())]).map_err(|_| ());
    let known = length(rest.len());
    assert_eq!(length(4), known);
    for count in 0..4 {
        assert!(length(count) == known || length(count) == Ok(None));
    }
    known
}

/// Checks that counts agree with each other and with what was given out, and decodes everything.
pub(crate) fn check_admitted(datagram: &[u8], admitted: &Admitted, limits: &Limits, encoding: TimeEncoding) {
    let counters = &admitted.counters;
    assert_eq!(counters.datagrams, 1);
    assert_eq!(counters.bytes, datagram.len() as u64);
    assert_eq!(counted_bytes(counters), counters.bytes, "{counters:?}");
    assert_eq!(counters.messages, admitted.messages.len() as u64);
    assert_eq!(counters.unknown_template_sets, admitted.unknown_sets.len() as u64);
    let incomplete = admitted.messages.iter().filter(|message| !message.complete).count();
    assert_eq!(counters.incomplete_messages, incomplete as u64);

    let mut end = 0;
    for message in &admitted.messages {
        assert!(message.offset == end && message.length > 0);
        end += message.length;
    }
    assert!(end <= datagram.len());
    let sets = admitted.sets.iter().map(|set| (set.message, &set.range));
    for (message, range) in sets.chain(admitted.unknown_sets.iter().map(|set| (set.message, &set.range))) {
        let message = &admitted.messages[message];
        assert!(message.offset < range.start && range.end <= message.offset + message.length);
    }

    let total: u64 = counters.problems.iter().sum();
    assert!(admitted.problems.len() <= limits.max_problems && admitted.problems.len() as u64 <= total);
    for problem in &admitted.problems {
        assert!(problem.offset <= datagram.len());
        assert_eq!(problem.kind, problem.fault.kind());
        assert!(counters.problem(problem.kind) > 0 && !problem.fault.to_string().is_empty());
    }
    let (mut flows, mut options) = decode_sets(datagram, admitted, encoding);
    for released in &admitted.released {
        let records = decode_set(&released.content, &released.set, &released.message, encoding);
        match released.set.kind() {
            Kind::Flow => flows += records,
            Kind::Options => options += records,
        }
    }
    assert_eq!((flows, options), (counters.flow_records, counters.options_records));
}

/// Sum of all the counters that divide the bytes among them.
fn counted_bytes(counters: &Counters) -> u64 {
    counters.header_bytes
        + counters.template_bytes
        + counters.record_bytes
        + counters.padding_bytes
        + counters.skipped_bytes
        + counters.discarded_bytes
        + counters.trailing_bytes
}

fn check_templates(session: &Session, limits: &Limits) {
    let (mut templates, mut fields) = (0, 0);
    for (_, _, template) in session.templates() {
        templates += 1;
        fields += template.fields().len();
        assert!(template.fields().len() <= limits.max_template_fields);
        assert!(template.fields().iter().filter(|field| field.length == 0).count() <= limits.max_empty_fields);
    }
    assert!(templates <= limits.max_templates && (templates < 2 || fields <= limits.max_total_fields));
}

/// Decodes all data sets; gives the number of flows and of options records.
fn decode_sets(datagram: &[u8], admitted: &Admitted, encoding: TimeEncoding) -> (u64, u64) {
    let (mut flows, mut options) = (0, 0);
    for set in &admitted.sets {
        let records = decode_set(datagram, set, &admitted.messages[set.message], encoding);
        match set.kind() {
            Kind::Flow => flows += records,
            Kind::Options => options += records,
        }
    }
    (flows, options)
}

/// Decodes a data set; gives the number of its records.
fn decode_set(bytes: &[u8], set: &DataSet, message: &MessageInfo, encoding: TimeEncoding) -> u64 {
    let mut context = set.context(message);
    context.time_encoding = encoding;
    let (mut records, mut steps) = (set.records(bytes), 0);
    let count = decode_records(&mut records, &set.sub_templates, &context, &mut steps);
    assert_eq!(count, set.records);
    assert!(records.rest().is_empty() && !records.is_overrun());
    assert!(steps <= set.range.len() * FIELDS_A_BYTE * (usize::from(MAX_LIST_DEPTH) + 1));
    count as u64
}

/// Decodes records and what lists in them hold; gives their number.
fn decode_records(
    records: &mut Records<'_, '_>,
    templates: &SubTemplates,
    context: &DecodeContext,
    steps: &mut usize,
) -> usize {
    let mut count = 0;
    for record in records {
        count += 1;
        let mut fields = 0;
        for (field, bytes) in record.fields() {
            // By index this costs a walk of its own in some layouts, so only where it is cheap.
            if record.template().offsets().is_some() || fields < 4 {
                assert_eq!(record.field(fields), Some(bytes));
            }
            fields += 1;
            let _ = field.name();
            decode_value(field, bytes, templates, context, steps);
        }
        assert_eq!(fields, record.template().fields().len());
        let _ = flow_times(&record, context);
    }
    count
}

fn decode_value(field: &FieldSpec, bytes: &[u8], templates: &SubTemplates, context: &DecodeContext, steps: &mut usize) {
    *steps += 1;
    let Value::List(list) = decode(field, bytes, context) else {
        return;
    };
    let _ = list.semantic().as_str();
    let nested = context.nested();
    let mut group = |group: catchment_ipfix::Group<'_>| {
        if let Some(mut records) = group.records(templates) {
            let _ = decode_records(&mut records, templates, &nested, steps);
        }
    };
    match list {
        List::Basic(list) => {
            let field = list.field();
            for (element, value) in list.elements().zip(list.values(context)) {
                // Not a number is not equal to itself.
                assert!(decode(&field, element, &nested) == value || matches!(value, Value::Float(_)));
                decode_value(&field, element, templates, &nested, steps);
            }
        }
        List::SubTemplate(list) => group(list.group()),
        List::SubTemplateMulti(list) => list.groups().for_each(group),
    }
}
