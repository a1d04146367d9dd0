//! Text columns from bytes of unknown encoding.

use std::borrow::Cow;

/// The bytes as UTF-8: as they are where they are valid, with U+FFFD for each bad sequence elsewhere.
///
/// Arrow checks a whole text column at once, so one bad byte let through here would cost every record of the batch.
pub(crate) fn utf8(bytes: &[u8]) -> Cow<'_, [u8]> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::utf8;

    #[test]
    fn bad_bytes_are_replaced_and_good_ones_borrowed() {
        assert!(matches!(utf8(b"plain"), std::borrow::Cow::Borrowed(b"plain")));
        assert_eq!(utf8(b"caf\xe9!").as_ref(), "caf\u{fffd}!".as_bytes());
    }
}
