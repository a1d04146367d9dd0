//! Sets and templates as bytes.

use super::FlowProtocol;
use super::fields::Field;

/// The first id that a template may have.
pub(super) const TEMPLATE_ID: u16 = 256;
pub(super) const SET_HEADER_BYTES: usize = 4;
const TEMPLATE_HEADER_BYTES: usize = 4;

/// Bytes of a set that holds one template.
pub(super) fn template_set_bytes(fields: &[Field]) -> usize {
    SET_HEADER_BYTES + TEMPLATE_HEADER_BYTES + 4 * fields.len()
}

/// Appends a set with one template.
pub(super) fn append_template(out: &mut Vec<u8>, protocol: FlowProtocol, id: u16, fields: &[Field]) {
    let set = begin_set(out, if protocol == FlowProtocol::Ipfix { 2 } else { 0 });
    out.extend(id.to_be_bytes());
    out.extend((fields.len() as u16).to_be_bytes());
    append_fields(out, fields);
    end_set(out, set, protocol);
}

/// Appends a set with one options template, whose first `scope` fields are its scope.
pub(super) fn append_options_template(
    out: &mut Vec<u8>,
    protocol: FlowProtocol,
    id: u16,
    scope: &[Field],
    fields: &[Field],
) {
    let set = begin_set(out, if protocol == FlowProtocol::Ipfix { 3 } else { 1 });
    out.extend(id.to_be_bytes());
    let (scope_count, field_count) = (scope.len() as u16, fields.len() as u16);
    match protocol {
        // RFC 7011 section 3.4.2.2: all fields, then those of the scope.
        FlowProtocol::Ipfix => out.extend([scope_count + field_count, scope_count].map(u16::to_be_bytes).concat()),
        // RFC 3954 section 6.1: bytes of the specifiers of the scope, then of the others.
        _ => out.extend([4 * scope_count, 4 * field_count].map(u16::to_be_bytes).concat()),
    }
    append_fields(out, scope);
    append_fields(out, fields);
    end_set(out, set, protocol);
}

fn append_fields(out: &mut Vec<u8>, fields: &[Field]) {
    for field in fields {
        out.extend(field.id.to_be_bytes());
        out.extend(field.bytes.to_be_bytes());
    }
}

/// Appends the header of a set and gives where it is, for [`end_set`].
pub(super) fn begin_set(out: &mut Vec<u8>, id: u16) -> usize {
    let set = out.len();
    out.extend(id.to_be_bytes());
    out.extend([0, 0]);
    set
}

/// Pads a set and fills in its length.
pub(super) fn end_set(out: &mut Vec<u8>, set: usize, protocol: FlowProtocol) {
    while !(out.len() - set).is_multiple_of(protocol.set_alignment()) {
        out.push(0);
    }
    let bytes = (out.len() - set) as u16;
    out[set + 2..set + 4].copy_from_slice(&bytes.to_be_bytes());
}

/// Fills in the length of a message, which only IPFIX has.
pub(super) fn end_message(out: &mut [u8], start: usize, protocol: FlowProtocol) {
    if protocol == FlowProtocol::Ipfix {
        let bytes = (out.len() - start) as u16;
        out[start + 2..start + 4].copy_from_slice(&bytes.to_be_bytes());
    }
}
