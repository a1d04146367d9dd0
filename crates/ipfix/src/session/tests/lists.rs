//! Templates for lists are those of the moment of receipt.

use super::{admit, ipfix, kinds, session, set, template, words};
use crate::admitted::Admitted;
use crate::list::{Group, List};
use crate::problem::ProblemKind;
use crate::session::Transport;
use crate::value::{Value, decode};

const BASIC: u16 = 291;
const SUB_TEMPLATE: u16 = 292;
const SUB_TEMPLATE_MULTI: u16 = 293;

/// The list in the first field of the first record.
fn first_list<'a>(admitted: &Admitted, datagram: &'a [u8]) -> List<'a> {
    let set = &admitted.sets[0];
    let record = set.records(datagram).next().expect("a record");
    let (field, bytes) = record.fields().next().expect("a field");
    match decode(field, bytes, &admitted.messages[0].context()) {
        Value::List(list) => list,
        other => panic!("no list: {other:?}"),
    }
}

/// A record of one value of variable length.
fn value(bytes: &[u8]) -> Vec<u8> {
    [&[u8::try_from(bytes.len()).expect("a short value")], bytes].concat()
}

/// The template of a list is replaced after the data was admitted; the data keeps the old one.
#[test]
fn snapshot() {
    let mut session = session(Transport::Udp);
    let list = value(&[3, 1, 1, 6, 17]);
    let message = ipfix(&[template(256, &[(SUB_TEMPLATE, 65_535)]), template(257, &[(4, 1)]), set(256, &list)]);
    let admitted = admit(&mut session, &message);
    let _ = admit(&mut session, &ipfix(&[template(257, &[(7, 2)])]));
    let List::SubTemplate(list) = first_list(&admitted, &message) else {
        panic!("another list");
    };
    let records = list.group().records(&admitted.sets[0].sub_templates).expect("the template");
    assert_eq!(records.map(|record| record.bytes().to_vec()).collect::<Vec<_>>(), [[6], [17]]);
}

/// Templates are found at all depths and in all kinds of lists, each once.
#[test]
fn nested() {
    let mut session = session(Transport::Udp);
    let inner = [255, 1, 2, 6]; // records of 258
    let middle = [&[3, 1, 1][..], &value(&inner), &value(&inner)].concat(); // records of 257, each a list
    let basic = [&words(&[0x0301, 0x24ff, 0xff00])[..5], &value(&middle)].concat(); // a basicList of subTemplateLists
    let multi = [&[4][..], &words(&[259, 5]), &[1], &words(&[259, 0]), &words(&[260, 4])].concat();
    let message = ipfix(&[
        template(256, &[(BASIC, 65_535), (SUB_TEMPLATE_MULTI, 65_535)]),
        template(257, &[(SUB_TEMPLATE, 65_535)]),
        template(258, &[(4, 1)]),
        template(259, &[(4, 1)]),
        set(256, &[value(&basic), value(&multi)].concat()),
    ]);
    let admitted = admit(&mut session, &message);
    let known: Vec<u16> = admitted.sets[0].sub_templates.iter().map(|template| template.id()).collect();
    assert_eq!(known, [257, 258, 259]);
    assert_eq!(kinds(&admitted), [ProblemKind::UnknownSubTemplate]);
    assert_eq!(admitted.problems[0].fault.to_string(), "template 260 is not known, a list needs it");
    let missing = Group { template_id: 260, bytes: &[] };
    assert!(missing.records(&admitted.sets[0].sub_templates).is_none());
}

/// A malformed list costs its value, not its record.
#[test]
fn malformed() {
    let mut session = session(Transport::Udp);
    let fields = [(SUB_TEMPLATE_MULTI, 65_535), (4, 1)];
    let message = ipfix(&[template(256, &fields), set(256, &[value(&[3, 1, 1, 0, 2]), vec![6]].concat())]);
    let admitted = admit(&mut session, &message);
    assert_eq!(kinds(&admitted), [ProblemKind::MalformedList]);
    let record = admitted.sets[0].records(&message).next().expect("a record");
    let context = admitted.messages[0].context();
    let values: Vec<Value<'_>> = record.fields().map(|(field, bytes)| decode(field, bytes, &context)).collect();
    assert_eq!(values, [Value::Opaque(&[3, 1, 1, 0, 2]), Value::Unsigned(6)]);
}

/// Lists in lists in lists: the search ends, and so does decoding.
#[test]
fn depth() {
    let mut session = session(Transport::Udp);
    let mut list = vec![3, 1, 0];
    for _ in 0..20 {
        list = [&[3, 1, 0][..], &value(&list)].concat();
    }
    let message = ipfix(&[template(256, &[(SUB_TEMPLATE, 65_535)]), set(256, &value(&list))]);
    let admitted = admit(&mut session, &message);
    let set = &admitted.sets[0];
    let mut context = admitted.messages[0].context();
    let mut records = set.records(&message);
    let mut levels = 0;
    while let Some(record) = records.next() {
        let (field, bytes) = record.fields().next().expect("a field");
        let Value::List(List::SubTemplate(list)) = decode(field, bytes, &context) else { break };
        levels += 1;
        context = context.nested();
        records = list.group().records(&set.sub_templates).expect("the template");
    }
    assert_eq!(levels, crate::context::MAX_LIST_DEPTH);
}
