//! Undoing backslash escapes, with a copy only where there is one to undo.

use std::borrow::Cow;

use crate::bytes::find;

/// Replaces each backslash pair that `undo` knows by the byte it stands for. A backslash before any
/// other byte, or at the end, stays as it is.
pub(crate) fn unescape(raw: &[u8], undo: fn(u8) -> Option<u8>) -> Cow<'_, [u8]> {
    let Some(first) = find(raw, b'\\') else {
        return Cow::Borrowed(raw);
    };
    let mut out = Vec::new();
    let mut copied = 0;
    let mut at = first;
    loop {
        let undone = raw.get(at + 1).and_then(|&byte| undo(byte));
        if let Some(byte) = undone {
            if out.is_empty() {
                out.reserve_exact(raw.len());
            }
            out.extend_from_slice(&raw[copied..at]);
            out.push(byte);
            copied = at + 2;
        }
        // A pair that is not undone may still have a second backslash that begins one.
        let next = if undone.is_some() { at + 2 } else { at + 1 };
        match raw.get(next..).and_then(|rest| find(rest, b'\\')) {
            Some(distance) => at = next + distance,
            None => break,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(raw);
    }
    out.extend_from_slice(&raw[copied..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undo(byte: u8) -> Option<u8> {
        match byte {
            b'\\' | b'"' => Some(byte),
            b'n' => Some(b'\n'),
            _ => None,
        }
    }

    /// Known pairs change, unknown ones and a last backslash stay.
    #[test]
    fn undoes_only_what_it_knows() {
        let cases: [(&[u8], &[u8]); 8] = [
            (b"", b""),
            (b"plain", b"plain"),
            (b"a\\\\b", b"a\\b"),
            (b"\\\"", b"\""),
            (b"\\x\\n", b"\\x\n"),
            (b"DOM\\user", b"DOM\\user"),
            (b"end\\", b"end\\"),
            (b"\\\\n", b"\\n"),
        ];
        for (raw, plain) in cases {
            assert_eq!(&*unescape(raw, undo), plain, "{:?}", String::from_utf8_lossy(raw));
        }
    }

    /// No copy is made when nothing is undone.
    #[test]
    fn borrows_without_escape() {
        assert!(matches!(unescape(b"DOM\\user", undo), Cow::Borrowed(_)));
        assert!(matches!(unescape(b"a\\\\", undo), Cow::Owned(_)));
    }
}
