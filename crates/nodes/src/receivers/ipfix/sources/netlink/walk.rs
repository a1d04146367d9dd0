//! The messages in a netlink datagram.
//!
//! A datagram holds one message or several: each a header of 16 bytes (length with the header u32, type u16, flags u16,
//! sequence u32, port u32) in the machine's byte order, and 4 more of generic netlink (command u8, version u8, reserved
//! u16) before the payload. The next message begins at a multiple of 4 bytes.

/// Bytes of `struct nlmsghdr`.
pub(super) const NETLINK_HEADER_BYTES: usize = 16;
/// Bytes of `struct genlmsghdr`.
pub(super) const GENERIC_HEADER_BYTES: usize = 4;
/// Where messages begin.
const ALIGNMENT: usize = 4;

/// A message of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'d> {
    /// What is behind the headers of a message of the family.
    Payload(&'d [u8]),
    /// A message of another type.
    Foreign,
    /// A length that does not fit, or too few bytes for headers. It is the last part.
    Damaged,
}

/// The messages of a datagram, one after the other.
#[derive(Debug, Clone)]
pub(super) struct Walk<'d> {
    rest: &'d [u8],
    family: u16,
}

impl<'d> Walk<'d> {
    /// `family` is the type of the messages that are looked for.
    pub(super) fn new(datagram: &'d [u8], family: u16) -> Self {
        Self { rest: datagram, family }
    }
}

impl<'d> Iterator for Walk<'d> {
    type Item = Part<'d>;

    fn next(&mut self) -> Option<Part<'d>> {
        if self.rest.is_empty() {
            return None;
        }
        match message(self.rest) {
            Some((kind, message)) => {
                let next = message.len().next_multiple_of(ALIGNMENT);
                // The last one may lack its padding.
                self.rest = self.rest.get(next..).unwrap_or_default();
                if kind != self.family {
                    return Some(Part::Foreign);
                }
                match message.get(NETLINK_HEADER_BYTES + GENERIC_HEADER_BYTES..) {
                    Some(payload) => Some(Part::Payload(payload)),
                    None => {
                        self.rest = &[];
                        Some(Part::Damaged)
                    }
                }
            }
            None => {
                self.rest = &[];
                Some(Part::Damaged)
            }
        }
    }
}

/// Type and bytes of the first message, with its headers.
pub(super) fn message(bytes: &[u8]) -> Option<(u16, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let kind = rest.first_chunk::<2>()?;
    let length = usize::try_from(u32::from_ne_bytes(*length)).ok().filter(|&length| length >= NETLINK_HEADER_BYTES)?;
    Some((u16::from_ne_bytes(*kind), bytes.get(..length)?))
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message of type `kind`, padded.
    pub(in super::super) fn encode(kind: u16, payload: &[u8]) -> Vec<u8> {
        let length = NETLINK_HEADER_BYTES + GENERIC_HEADER_BYTES + payload.len();
        let mut message = Vec::with_capacity(length);
        message.extend(u32::try_from(length).expect("short").to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.resize(NETLINK_HEADER_BYTES + GENERIC_HEADER_BYTES, 0);
        message.extend(payload);
        message.resize(length.next_multiple_of(ALIGNMENT), 0);
        message
    }

    /// Several messages, padded to 4 bytes, the last one with or without; those of other types are told apart.
    #[test]
    fn messages_are_found() {
        let mut datagram = [encode(30, b"a"), encode(2, b"error"), encode(30, b""), encode(30, b"last!")].concat();
        let expected = [Part::Payload(&b"a"[..]), Part::Foreign, Part::Payload(b""), Part::Payload(b"last!")];
        assert_eq!(Walk::new(&datagram, 30).collect::<Vec<_>>(), expected);
        datagram.truncate(datagram.len() - 3);
        assert_eq!(Walk::new(&datagram, 30).collect::<Vec<_>>(), expected);
        assert_eq!(Walk::new(&[], 30).next(), None);
    }

    /// A length that does not fit ends the walk; what came before it is there.
    #[test]
    fn damage_ends_the_walk() {
        let good = encode(30, b"good");
        let damaged = |bad: Vec<u8>| Walk::new(&[good.clone(), bad].concat(), 30).collect::<Vec<_>>().len();
        for length in [0u32, 15, 25, u32::MAX] {
            let mut bad = encode(30, b"bad!");
            bad[..4].copy_from_slice(&length.to_ne_bytes());
            let datagram = [good.clone(), bad].concat();
            let parts: Vec<_> = Walk::new(&datagram, 30).collect();
            assert_eq!(parts, [Part::Payload(&b"good"[..]), Part::Damaged], "length {length}");
        }
        // Of the family, but without the header of generic netlink; and less than a header.
        for bad in [[&17u32.to_ne_bytes()[..], &30u16.to_ne_bytes(), &[0; 14]].concat(), vec![0; 7]] {
            assert_eq!(damaged(bad), 2);
        }
    }

    proptest! {
        /// What was encoded comes out again.
        #[test]
        fn round_trip(payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8)) {
            let datagram: Vec<u8> = payloads.iter().flat_map(|payload| encode(30, payload)).collect();
            let parts: Vec<_> = Walk::new(&datagram, 30).collect();
            let expected: Vec<_> = payloads.iter().map(|payload| Part::Payload(payload)).collect();
            prop_assert_eq!(parts, expected);
        }

        /// Any bytes come to an end, and no more is given than is there.
        #[test]
        fn any_bytes_come_to_an_end(
            good in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..4),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
            cut in any::<prop::sample::Index>(),
            noise in prop::collection::vec(any::<u8>(), 0..64),
        ) {
            let mut datagram: Vec<u8> = good.iter().flat_map(|payload| encode(30, payload)).collect();
            if !datagram.is_empty() {
                let at = at.index(datagram.len());
                datagram[at] = byte;
                datagram.truncate(cut.index(datagram.len() + 1));
            }
            datagram.extend(noise);
            let parts: Vec<_> = Walk::new(&datagram, 30).collect();
            prop_assert!(parts.len() <= datagram.len().div_ceil(NETLINK_HEADER_BYTES));
            let bytes: usize = parts.iter().map(|part| match part { Part::Payload(bytes) => bytes.len(), _ => 0 }).sum();
            prop_assert!(bytes <= datagram.len());
            let damaged = parts.iter().filter(|part| **part == Part::Damaged).count();
            prop_assert!(damaged == 0 || (damaged == 1 && parts.last() == Some(&Part::Damaged)));
        }
    }
}
