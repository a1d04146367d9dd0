//! Addresses and times as text.

use std::io::Write as _;
use std::net::Ipv6Addr;

/// `192.0.2.1`.
pub(super) fn ipv4(address: u32, out: &mut Vec<u8>) {
    for (place, octet) in address.to_be_bytes().into_iter().enumerate() {
        if place > 0 {
            out.push(b'.');
        }
        let (hundreds, tens, ones) = (octet / 100, octet / 10 % 10, octet % 10);
        if hundreds > 0 {
            out.push(b'0' + hundreds);
        }
        if octet >= 10 {
            out.push(b'0' + tens);
        }
        out.push(b'0' + ones);
    }
}

/// In the form of RFC 5952.
pub(super) fn ipv6(address: u128, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "{}", Ipv6Addr::from(address));
}

/// `00:00:5e:00:53:01`, of the six low octets.
pub(super) fn mac(address: u64, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (place, octet) in address.to_be_bytes().into_iter().skip(2).enumerate() {
        if place > 0 {
            out.push(b':');
        }
        out.extend([octet >> 4, octet & 15].map(|digit| DIGITS[usize::from(digit)]));
    }
}

/// RFC 3339 in UTC with nine digits of a second.
pub(super) fn rfc3339(unix_nano: i64, out: &mut Vec<u8>) {
    if let Ok(time) = jiff::Timestamp::from_nanosecond(i128::from(unix_nano)) {
        // Writing to a vector cannot fail.
        let _ = write!(out, "{time:.9}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        String::from_utf8(out).expect("ascii")
    }

    proptest! {
        /// Addresses come out as the standard library writes them.
        #[test]
        fn addresses(v4: u32, v6: u128) {
            prop_assert_eq!(text(|out| ipv4(v4, out)), std::net::Ipv4Addr::from(v4).to_string());
            prop_assert_eq!(text(|out| ipv6(v6, out)), Ipv6Addr::from(v6).to_string());
        }
    }

    /// Octets with and without leading zeros, and a time before the epoch.
    #[test]
    fn the_other_forms() {
        assert_eq!(text(|out| mac(0x0000_5e00_53ff, out)), "00:00:5e:00:53:ff");
        assert_eq!(text(|out| rfc3339(-1, out)), "1969-12-31T23:59:59.999999999Z");
        assert_eq!(text(|out| rfc3339(i64::MAX, out)), "2262-04-11T23:47:16.854775807Z");
    }
}
