use super::*;

fn basic(bytes: &[u8]) -> Result<BasicList<'_>, ListError> {
    BasicList::parse(bytes)
}

/// Values of fixed and of variable length, of the registry and of an enterprise.
#[test]
fn basic_lists() {
    let fixed = [3, 0, 7, 0, 2, 0, 80, 1, 187];
    let list = basic(&fixed).expect("a list");
    assert_eq!((list.field().id, list.field().length), (7, 2));
    assert_eq!(list.elements().collect::<Vec<_>>(), [[0, 80], [1, 187]]);

    let variable = [4, 0, 82, 255, 255, 2, b'e', b'0', 0, 255, 0, 1, b'x'];
    let list = basic(&variable).expect("a list");
    assert_eq!(list.elements().collect::<Vec<_>>(), [&b"e0"[..], b"", b"x"]);

    let enterprise = [255, 0x80, 14, 0, 1, 0, 0, 0x1a, 0xd7, 7];
    let list = basic(&enterprise).expect("a list");
    assert_eq!((list.field().id, list.field().enterprise), (14, 6_871));
    assert_eq!(list.elements().collect::<Vec<_>>(), [[7]]);
}

/// The values of a basicList are decoded by its element.
#[test]
fn basic_list_values() {
    let header = [0, 10, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let context = crate::message::parse_header(&header, 0).expect("a header").context();
    let list = basic(&[3, 0, 7, 0, 2, 0, 80, 1, 187]).expect("a list");
    let values: Vec<Value<'_>> = list.values(&context).collect();
    assert_eq!(values, [Value::Unsigned(80), Value::Unsigned(443)]);
}

/// Headers alone are lists without entries.
#[test]
fn empty_lists() {
    assert_eq!(basic(&[255, 0, 7, 0, 2]).map(|list| list.elements().count()), Ok(0));
    assert_eq!(basic(&[255, 0, 7, 0, 0]).map(|list| list.elements().count()), Ok(0));
    let sub = SubTemplateList::parse(&[255, 1, 0]).expect("a list");
    assert_eq!((sub.group().template_id, sub.group().bytes.len()), (256, 0));
    assert_eq!(SubTemplateMultiList::parse(&[255]).map(|list| list.groups().count()), Ok(0));
}

/// Groups with records, without, and with the length that leaves the header out.
#[test]
fn groups() {
    let bytes = [3, 1, 0, 0, 6, 9, 9, 1, 1, 0, 4, 1, 2, 0, 0, 1, 3, 0, 5, 8];
    let list = SubTemplateMultiList::parse(&bytes).expect("a list");
    let groups: Vec<(u16, &[u8])> = list.groups().map(|group| (group.template_id, group.bytes)).collect();
    assert_eq!(groups, [(256, &[9, 9][..]), (257, &[]), (258, &[]), (259, &[8])]);
}

/// What is no list, and why.
#[test]
fn malformed_lists() {
    let header = |length, needed| Err(ListError::Header { length, needed });
    assert_eq!(basic(&[]), header(0, 5));
    assert_eq!(basic(&[3, 0x80, 7, 0, 2]), header(5, 9));
    assert_eq!(basic(&[3, 0, 7, 0, 0, 1]), Err(ListError::EmptyEntries { content: 1 }));
    assert_eq!(basic(&[3, 0, 7, 0, 2, 1, 2, 3]), Err(ListError::Entry { offset: 7, length: 8 }));
    assert_eq!(basic(&[3, 0, 82, 255, 255, 2, 1]), Err(ListError::Entry { offset: 5, length: 7 }));
    assert_eq!(SubTemplateList::parse(&[3, 1]).err(), header(2, 3).err());
    let multi = |bytes| SubTemplateMultiList::parse(bytes).err();
    assert_eq!(multi(&[]), header(0, 1).err());
    assert_eq!(multi(&[3, 1, 0, 0]), Some(ListError::Entry { offset: 1, length: 4 }));
    assert_eq!(multi(&[3, 1, 0, 0, 3]), Some(ListError::GroupLength { offset: 1, length: 3 }));
    assert_eq!(multi(&[3, 1, 0, 0, 6, 1]), Some(ListError::Entry { offset: 1, length: 6 }));
    assert_eq!(List::parse(DataType::String, &[]), Err(ListError::NotAList(DataType::String)));
}

/// The registered semantics, and others by their number.
#[test]
fn semantics() {
    let names = [0, 1, 2, 3, 4, 255, 9].map(|number| ListSemantic::from_wire(number).as_str());
    let expected = ["noneOf", "exactlyOneOf", "oneOrMoreOf", "allOf", "ordered", "undefined", "unassigned"];
    assert_eq!(names, expected);
}

/// Lists in lists have no more entries in all than they have bytes, whatever they hold.
#[test]
fn entries_are_bounded_by_bytes() {
    fn entries(field: &FieldSpec, bytes: &[u8]) -> usize {
        match List::parse(field.data_type(), bytes) {
            Ok(List::Basic(list)) => list.elements().map(|element| 1 + entries(&list.field(), element)).sum(),
            _ => 0,
        }
    }
    let list = FieldSpec::ipfix(291, 0, 65_535, false);
    let header = |length: u8| [3, 291_u16.to_be_bytes()[0], 291_u16.to_be_bytes()[1], 255, length];
    let leaves = [&[3, 0, 4, 0, 1][..], &[6; 40]].concat();
    let inner = [&[45_u8][..], &leaves, &[45], &leaves].concat();
    let nested = [&header(255)[..], &inner].concat();
    assert_eq!(entries(&list, &nested), 2 + 80);
    assert!(entries(&list, &nested) < nested.len());
    let empty_lists = [&header(255)[..], &[5, 3, 0, 4, 0, 1].repeat(30)].concat();
    assert_eq!(entries(&list, &empty_lists), 30);
    let flat = [&[3, 0, 4, 0, 1][..], &[6; 65_000]].concat();
    assert_eq!(entries(&list, &flat), 65_000);
}
