//! Messages for the tests of this crate.

/// An IPFIX message of domain 7 and sequence number 0.
pub(crate) fn ipfix(sets: &[Vec<u8>]) -> Vec<u8> {
    ipfix_from(7, 0, sets)
}

/// An IPFIX message, exported at 60 s.
pub(crate) fn ipfix_from(domain: u32, sequence: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let sets = sets.concat();
    let length = u16::try_from(16 + sets.len()).expect("a message");
    let mut message = vec![0, 10];
    message.extend(length.to_be_bytes());
    message.extend([0, 0, 0, 60]);
    message.extend(sequence.to_be_bytes());
    message.extend(domain.to_be_bytes());
    message.extend(sets);
    message
}

/// A NetFlow v9 packet of source 7.
pub(crate) fn v9(sequence: u32, uptime_ms: u32, sets: &[Vec<u8>]) -> Vec<u8> {
    let mut packet = vec![0, 9, 0, 99];
    packet.extend(uptime_ms.to_be_bytes());
    packet.extend([0, 0, 0, 60]);
    packet.extend(sequence.to_be_bytes());
    packet.extend([0, 0, 0, 7]);
    packet.extend(sets.concat());
    packet
}

/// Numbers of two bytes.
pub(crate) fn words(words: &[u16]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A set with its header.
pub(crate) fn set(id: u16, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(4 + content.len()).expect("a set");
    [&words(&[id, length])[..], content].concat()
}

/// Template set with one template of pairs of element and length.
pub(crate) fn template(id: u16, fields: &[(u16, u16)]) -> Vec<u8> {
    set(2, &template_record(id, fields))
}

/// The record of a template of pairs of element and length.
pub(crate) fn template_record(id: u16, fields: &[(u16, u16)]) -> Vec<u8> {
    let mut record = words(&[id, u16::try_from(fields.len()).expect("a template")]);
    record.extend(fields.iter().flat_map(|&(id, length)| words(&[id, length])));
    record
}

/// Options template set with one template of pairs of element and length, the first `scopes` of them its scope.
pub(crate) fn options_template(id: u16, scopes: u16, fields: &[(u16, u16)]) -> Vec<u8> {
    let count = u16::try_from(fields.len()).expect("a template");
    let fields = fields.iter().flat_map(|&(id, length)| words(&[id, length]));
    set(3, &words(&[id, count, scopes]).into_iter().chain(fields).collect::<Vec<u8>>())
}
