//! Text columns from bytes of unknown encoding.

use std::borrow::Cow;

/// Whether all of the bytes are UTF-8.
pub(crate) fn is_utf8(bytes: &[u8]) -> bool {
    simdutf8::basic::from_utf8(bytes).is_ok()
}

/// Whether two byte strings are equal. Most that are compared are short, for which a call to compare memory costs more than
/// two words that may overlap.
#[inline]
pub(crate) fn same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match a.len() {
        4..8 => ends::<4>(a) == ends::<4>(b),
        8..=16 => ends::<8>(a) == ends::<8>(b),
        _ => a == b,
    }
}

/// The first and the last `N` bytes.
#[inline]
fn ends<const N: usize>(bytes: &[u8]) -> Option<(&[u8; N], &[u8; N])> {
    bytes.first_chunk().zip(bytes.last_chunk())
}

/// The bytes as text: as they are where they are valid, with U+FFFD for each bad sequence elsewhere.
pub(crate) fn text(bytes: &[u8]) -> Cow<'_, str> {
    // Quicker than the lossy conversion, which takes the text apart even if nothing is wrong with it.
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// As [`text`], in bytes.
///
/// Arrow checks a whole text column at once, so one bad byte let through here would cost every record of the batch.
pub(crate) fn utf8(bytes: &[u8]) -> Cow<'_, [u8]> {
    match text(bytes) {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_utf8, same, utf8};

    /// Every length, and a difference at every place.
    #[test]
    fn equal_is_equal() {
        for length in 0..40 {
            let bytes: Vec<u8> = (0..length).collect();
            assert!(same(&bytes, &bytes.clone()) && !same(&bytes, &[&bytes[..], &[0]].concat()));
            for at in 0..bytes.len() {
                let mut other = bytes.clone();
                other[at] ^= 1;
                assert!(!same(&bytes, &other), "{length} {at}");
            }
        }
    }

    #[test]
    fn bad_bytes_are_replaced_and_good_ones_borrowed() {
        assert!(matches!(utf8(b"plain"), std::borrow::Cow::Borrowed(b"plain")));
        assert_eq!(utf8(b"caf\xe9!").as_ref(), "caf\u{fffd}!".as_bytes());
        assert!(is_utf8("caf\u{e9}".as_bytes()) && !is_utf8(b"caf\xe9!"));
    }
}
