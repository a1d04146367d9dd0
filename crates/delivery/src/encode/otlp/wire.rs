//! Numbers and tags of protobuf.

/// Bytes of a varint.
#[inline]
pub(crate) const fn varint_bytes(value: u64) -> usize {
    // 1 to 10: seven bits a byte.
    ((70 - (value | 1).leading_zeros()) / 7) as usize
}

/// Appends a varint.
#[inline]
pub(crate) fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The tag of a field whose content has a length before it.
pub(crate) const fn length_tag(field: u32) -> u32 {
    field << 3 | 2
}
