use super::*;
use crate::field::VARIABLE_LENGTH;
use crate::message::parse_header;

fn context() -> DecodeContext {
    let header = [0, 10, 0, 16, 0x6a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    parse_header(&header, 0).expect("a header").context()
}

fn field(id: u16, bytes: &[u8]) -> FieldSpec {
    FieldSpec::ipfix(id, 0, u16::try_from(bytes.len()).expect("a length"), false)
}

fn value(id: u16, bytes: &[u8]) -> Value<'_> {
    decode(&field(id, bytes), bytes, &context())
}

/// Numbers in every length up to that of their type; longer ones stay bytes.
#[test]
fn reduced_size() {
    for length in 1..=8 {
        let bytes = vec![0xff; length];
        let expected = u64::MAX >> (64 - 8 * length);
        assert_eq!(value(1, &bytes), Value::Unsigned(expected), "octetDeltaCount in {length} bytes");
        assert_eq!(value(434, &bytes[..length.min(4)]), Value::Signed(-1), "mibObjectValueInteger");
    }
    let nine = [1; 9];
    assert_eq!(value(1, &nine), Value::Opaque(&nine));
    assert_eq!(value(10, &nine[..5]), Value::Opaque(&nine[..5]), "unsigned32");
    assert_eq!(value(4, &nine[..2]), Value::Opaque(&nine[..2]), "unsigned8");
    assert_eq!(value(434, &nine[..5]), Value::Opaque(&nine[..5]), "signed32");
}

/// NetFlow v9 has no types, so numbers may be wider than IPFIX says.
#[test]
fn wide_numbers_in_v9() {
    let bytes = [0, 0, 1, 0];
    assert_eq!(decode(&FieldSpec::netflow_v9(48, 4), &bytes, &context()), Value::Unsigned(256));
    let nine = [0; 9];
    assert_eq!(decode(&FieldSpec::netflow_v9(1, 9), &nine, &context()), Value::Opaque(&nine));
}

/// Types of one length only.
#[test]
fn exact_lengths() {
    assert_eq!(value(8, &[192, 0, 2, 1]), Value::Ipv4(Ipv4Addr::new(192, 0, 2, 1)));
    assert_eq!(value(8, &[192, 0, 2]), Value::Opaque(&[192, 0, 2]));
    let address = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    assert_eq!(value(27, &address.octets()), Value::Ipv6(address));
    assert_eq!(value(27, &[1; 4]), Value::Opaque(&[1; 4]));
    assert_eq!(value(56, &[1, 2, 3, 4, 5, 6]), Value::Mac([1, 2, 3, 4, 5, 6]));
    assert_eq!(value(56, &[1; 8]), Value::Opaque(&[1; 8]));
}

/// 1 is true, 2 is false, and nothing else is either.
#[test]
fn booleans() {
    assert_eq!(value(276, &[1]), Value::Boolean(true), "dataRecordsReliability");
    assert_eq!(value(276, &[2]), Value::Boolean(false));
    assert_eq!(value(276, &[0]), Value::Opaque(&[0]));
    assert_eq!(value(276, &[0, 1]), Value::Opaque(&[0, 1]));
}

/// float64 in both sizes.
#[test]
fn floats() {
    assert_eq!(value(311, &0.25_f64.to_be_bytes()), Value::Float(0.25), "samplingProbability");
    assert_eq!(value(311, &0.25_f32.to_be_bytes()), Value::Float(0.25));
    assert_eq!(value(311, &[0; 3]), Value::Opaque(&[0; 3]));
}

/// Text loses the NULs at its end and no others.
#[test]
fn text() {
    assert_eq!(value(82, b"eth0\0\0\0\0"), Value::Text(b"eth0"));
    assert_eq!(value(82, b"a\0b\0"), Value::Text(b"a\0b"));
    assert_eq!(value(82, &[0; 4]), Value::Text(b""));
    assert_eq!(value(82, &[0xff, 0xfe]), Value::Text(&[0xff, 0xfe]), "not checked");
}

/// An empty text is a value, an empty number is none; a field of length 0 never has one.
#[test]
fn empty_values() {
    let variable = |id| decode(&FieldSpec::ipfix(id, 0, VARIABLE_LENGTH, false), &[], &context());
    assert_eq!(variable(82), Value::Text(b""));
    assert_eq!(variable(313), Value::Bytes(b""), "ipHeaderPacketSection");
    assert_eq!(variable(1), Value::Absent);
    assert_eq!(variable(291), Value::Absent);
    assert_eq!(value(82, &[]), Value::Absent);
}

/// What is not known, and what has no better form, stays bytes; padding is nothing.
#[test]
fn bytes() {
    let unknown = FieldSpec::ipfix(1, 99_999, 2, false);
    assert_eq!(decode(&unknown, &[1, 2], &context()), Value::Bytes(&[1, 2]));
    assert_eq!(value(210, &[1, 2]), Value::Absent);
    let wide = [1; 32];
    let id = (1..600).find(|&id| field(id, &wide).data_type() == DataType::Unsigned256).expect("an unsigned256");
    assert_eq!(value(id, &wide), Value::Bytes(&wide));
}

/// A list is a list by its type, whatever its number.
#[test]
fn lists_by_type() {
    let bytes = [3, 1, 227, 0, 4, 0, 0, 0, 9];
    assert!(matches!(value(484, &bytes), Value::List(List::Basic(_))), "bgpSourceCommunityList");
    assert_eq!(value(484, &bytes[..4]), Value::Opaque(&bytes[..4]));
}
