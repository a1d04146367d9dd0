//! Big-endian numbers out of byte slices, without panics.

/// The two bytes at `at`, if they are there.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|chunk| u16::from_be_bytes(*chunk))
}

/// The four bytes at `at`, if they are there.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|chunk| u32::from_be_bytes(*chunk))
}

/// An unsigned number of 1 to 8 bytes.
pub(crate) fn unsigned(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() || bytes.len() > 8 {
        return None;
    }
    Some(bytes.iter().fold(0, |value, &byte| (value << 8) | u64::from(byte)))
}

/// A two's complement number of 1 to 8 bytes; the sign is the highest bit of the bytes given.
pub(crate) fn signed(bytes: &[u8]) -> Option<i64> {
    let value = unsigned(bytes)?;
    let unused_bits = 64 - 8 * bytes.len();
    Some((value << unused_bits).cast_signed() >> unused_bits)
}

/// A value with a length prefix (RFC 7011 section 7): the length of the prefix and the length of the value, if the
/// prefix is there. The value itself may still be cut off.
pub(crate) fn prefixed_length(bytes: &[u8]) -> Option<(usize, usize)> {
    match *bytes.first()? {
        255 => u16_at(bytes, 1).map(|length| (3, usize::from(length))),
        length => Some((1, usize::from(length))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of every length keep their value and their sign.
    #[test]
    fn numbers_of_all_lengths() {
        assert_eq!(unsigned(&[]), None);
        assert_eq!(unsigned(&[0; 9]), None);
        assert_eq!(unsigned(&[1, 2, 3]), Some(0x01_02_03));
        assert_eq!(unsigned(&[0xff; 8]), Some(u64::MAX));
        assert_eq!(signed(&[0xff]), Some(-1));
        assert_eq!(signed(&[0x80, 0, 0]), Some(-0x80_00_00));
        assert_eq!(signed(&[0x7f, 0xff]), Some(0x7fff));
        assert_eq!(signed(&[0x80, 0, 0, 0, 0, 0, 0, 0]), Some(i64::MIN));
    }

    /// Both forms of a length prefix are read, a cut one is not.
    #[test]
    fn length_prefixes() {
        assert_eq!(prefixed_length(&[]), None);
        assert_eq!(prefixed_length(&[0]), Some((1, 0)));
        assert_eq!(prefixed_length(&[254]), Some((1, 254)));
        assert_eq!(prefixed_length(&[255, 0]), None);
        assert_eq!(prefixed_length(&[255, 0, 2]), Some((3, 2)));
        assert_eq!(prefixed_length(&[255, 1, 0]), Some((3, 256)));
    }

    /// A number that is not whole is not there.
    #[test]
    fn fixed_numbers_stop_at_the_end() {
        assert_eq!(u16_at(&[1, 2], 0), Some(0x0102));
        assert_eq!(u16_at(&[1, 2], 1), None);
        assert_eq!(u32_at(&[1, 2, 3, 4, 5], 1), Some(0x0203_0405));
        assert_eq!(u32_at(&[1, 2, 3, 4, 5], 9), None);
    }
}
