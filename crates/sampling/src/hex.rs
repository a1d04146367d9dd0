//! Lower-case hexadecimal digits, many at a time.

/// Whether all are digits.
#[inline]
pub(crate) fn are_digits<const N: usize>(text: &[u8; N]) -> bool {
    // Without a way out in the middle, so that it is done on vectors.
    text.iter().fold(true, |all, byte| all & (byte.wrapping_sub(b'0') < 10 || byte.wrapping_sub(b'a') < 6))
}

/// The number that eight digits spell.
#[inline]
fn eight(digits: &[u8; 8]) -> u64 {
    let word = u64::from_le_bytes(*digits);
    let values = (word & 0x0f0f_0f0f_0f0f_0f0f) + 9 * ((word >> 6) & 0x0101_0101_0101_0101);
    let bytes = (values << 4 | values >> 8) & 0x00ff_00ff_00ff_00ff;
    let pairs = (bytes | bytes >> 8) & 0x0000_ffff_0000_ffff;
    let four = (pairs | pairs >> 16) as u32;
    u64::from(four.swap_bytes())
}

/// The number that sixteen digits spell; any number if they are none.
#[inline]
pub(crate) fn sixteen(digits: &[u8; 16]) -> u64 {
    let (halves, _) = digits.as_chunks::<8>();
    eight(&halves[0]) << 32 | eight(&halves[1])
}

/// The value of one digit.
#[inline]
pub(crate) fn one(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every byte, in every place, counts as what it is.
    #[test]
    fn every_byte_in_every_place() {
        for byte in 0..=u8::MAX {
            for place in 0..16 {
                let mut digits = *b"0123456789abcdef";
                digits[place] = byte;
                let expected =
                    digits.iter().try_fold(0, |value: u64, digit| Some(value << 4 | u64::from(one(*digit)?)));
                assert_eq!(are_digits(&digits), expected.is_some(), "{byte} at {place}");
                assert!(expected.is_none_or(|number| sixteen(&digits) == number), "{byte} at {place}");
            }
        }
    }

    proptest! {
        /// What is written by the standard library is read.
        #[test]
        fn reads_what_is_written(number: u64) {
            let text = format!("{number:016x}");
            prop_assert_eq!(sixteen(text.as_bytes().first_chunk().expect("16 digits")), number);
        }
    }
}
