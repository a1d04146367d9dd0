use crate::{Format, Receipt, Zone, parse};

/// Host, tag, process id, prefix and message of a line.
fn read(line: &str) -> [Option<&str>; 5] {
    let receipt = Receipt { time_unix_nano: 1_796_040_000_000_000_000, zone: &Zone::Utc };
    let record = parse(line.as_bytes(), &receipt);
    assert_eq!(record.format, Format::Rfc3164, "{line}");
    [record.hostname, record.app_name, record.proc_id, record.prefix, record.message]
        .map(|field| field.map(|bytes| std::str::from_utf8(bytes).unwrap()))
}

fn check(cases: &[(&str, [&str; 5])]) {
    for (line, wanted) in cases {
        let wanted = wanted.map(|text| (!text.is_empty()).then_some(text));
        assert_eq!(read(line), wanted, "{line}");
    }
}

/// Which word after a stamp is the host.
#[test]
fn hosts() {
    check(&[
        ("<13>Nov 30 10:00:00 h", ["h", "", "", "", ""]),
        ("<13>Nov 30 10:00:00 h ", ["h", "", "", "", ""]),
        ("<13>Nov 30 10:00:00  h  a: x", ["h", "a", "", "", "x"]),
        ("<13>Nov 30 10:00:00 - a: x", ["", "a", "", "", "x"]),
        ("<13>Nov 30 10:00:00 a: x", ["", "a", "", "", "x"]),
        ("<13>Nov 30 10:00:00 a[1]: x", ["", "a", "1", "", "x"]),
        ("<13>Nov 30 10:00:00 2001:db8:: a: x", ["2001:db8::", "a", "", "", "x"]),
        ("<13>Nov 30 10:00:00 2001:db8::1: x", ["2001:db8::1", "", "", "", "x"]),
        ("<13>Nov 30 10:00:00 192.0.2.1: x", ["192.0.2.1", "", "", "", "x"]),
        ("<13>Nov 30 10:00:00 fe80::1%eth0 a: x", ["fe80::1%eth0", "a", "", "", "x"]),
        ("<13>Nov 30 10:00:00 h/1 a: x", ["h/1", "a", "", "", "x"]),
        ("<13>Nov 30 10:00:00 h : %X: y", ["h", "", "", "", "%X: y"]),
        ("<13>Nov 30 10:00:00 %X: y", ["", "", "", "", "%X: y"]),
        ("<13>Nov 30 10:00:00 k=v x", ["", "", "", "", "k=v x"]),
        ("<13>Nov 30 10:00:00 {\"a\": 1}", ["", "", "", "", "{\"a\": 1}"]),
        ("<13>Nov 30 10:00:00 http://h/p x", ["", "", "", "", "http://h/p x"]),
        ("<13>Nov 30 10:00:00 LEEF:1.0|a|b", ["", "", "", "", "LEEF:1.0|a|b"]),
        ("<13>Nov 30 10:00:00 CEF:0|a|b", ["", "", "", "", "CEF:0|a|b"]),
        ("<13>Nov 30 10:00:00 h CEF:0|a|b", ["h", "", "", "", "CEF:0|a|b"]),
    ]);
    let long = "h".repeat(300);
    let line = format!("<13>Nov 30 10:00:00 {long} x");
    assert_eq!(read(&line), [None, None, None, None, Some(&line[20..])]);
}

/// What is a tag, and where the message begins.
#[test]
fn tags() {
    check(&[
        ("<13>Nov 30 10:00:00 h a:x", ["h", "a", "", "", "x"]),
        ("<13>Nov 30 10:00:00 h a:  x ", ["h", "a", "", "", " x "]),
        ("<13>Nov 30 10:00:00 h a[1]:x", ["h", "a", "1", "", "x"]),
        ("<13>Nov 30 10:00:00 h a[1] x", ["h", "a", "1", "", "x"]),
        ("<13>Nov 30 10:00:00 h a[]: x", ["h", "a", "", "", "x"]),
        ("<13>Nov 30 10:00:00 h a[w-1]: x", ["h", "a", "w-1", "", "x"]),
        ("<13>Nov 30 10:00:00 h a[w 1]: x", ["h", "a", "w 1", "", "x"]),
        ("<13>Nov 30 10:00:00 h a[w 1] x", ["h", "", "", "", "a[w 1] x"]),
        ("<13>Nov 30 10:00:00 h a[1]=x", ["h", "", "", "", "a[1]=x"]),
        ("<13>Nov 30 10:00:00 h -: x", ["h", "", "", "", "x"]),
        ("<13>Nov 30 10:00:00 h -[1]: x", ["h", "", "1", "", "x"]),
        ("<13>Nov 30 10:00:00 h a[-]: x", ["h", "a", "", "", "x"]),
        ("<13>Nov 30 10:00:00 h a[1 x", ["h", "", "", "", "a[1 x"]),
        ("<13>Nov 30 10:00:00 h postfix/smtp[1]: x", ["h", "postfix/smtp", "1", "", "x"]),
        ("<13>Nov 30 10:00:00 h [1]: x", ["h", "", "", "", "[1]: x"]),
        ("<13>Nov 30 10:00:00 h 12: x", ["h", "12", "", "", "x"]),
        ("<13>Nov 30 10:00:00 h 12:30 x", ["h", "", "", "", "12:30 x"]),
        ("<13>Nov 30 10:00:00 h 2026-11-30T10:00:00Z x", ["h", "", "", "", "2026-11-30T10:00:00Z x"]),
        ("<13>Nov 30 10:00:00 h 02:00:00:00:00:01 x", ["h", "", "", "", "02:00:00:00:00:01 x"]),
        ("<13>Nov 30 10:00:00 h fe80::1 is down", ["h", "", "", "", "fe80::1 is down"]),
        ("<13>Nov 30 10:00:00 h fe80:1:2:3:4:5:6:7: x", ["h", "", "", "", "fe80:1:2:3:4:5:6:7: x"]),
        ("<13>Nov 30 10:00:00 h std::vec x", ["h", "", "", "", "std::vec x"]),
        ("<13>Nov 30 10:00:00 h ftp://x y", ["h", "", "", "", "ftp://x y"]),
        ("<13>Nov 30 10:00:00 h https: x", ["h", "", "", "", "https: x"]),
        ("<13>Nov 30 10:00:00 h C:\\x y", ["h", "", "", "", "C:\\x y"]),
        ("<13>Nov 30 10:00:00 h k=v: x", ["h", "", "", "", "k=v: x"]),
        ("<13>Nov 30 10:00:00 h two words: x", ["h", "", "", "", "two words: x"]),
        ("<13>Nov 30 10:00:00 h  two words", ["h", "", "", "", " two words"]),
        ("<13>Nov 30 10:00:00 h <190>1: Nov 30 x", ["h", "", "", "", "<190>1: Nov 30 x"]),
    ]);
    let fits = "t".repeat(48);
    assert_eq!(read(&format!("<13>Nov 30 10:00:00 h {fits}: x"))[1], Some(&fits[..]));
    let too_long = format!("<13>Nov 30 10:00:00 h t{fits}: x");
    assert_eq!(read(&too_long)[1], None);
    let long_pid = format!("<13>Nov 30 10:00:00 h a[{}]: x", "1".repeat(129));
    assert_eq!(read(&long_pid)[1], None);
}

/// `-` alone is no tag; any other tag is kept as sent.
#[test]
fn nil_tags() {
    let receipt = Receipt { time_unix_nano: 0, zone: &Zone::Utc };
    for (line, tag) in [("-: x", None), ("-[-]: x", Some("-[-]")), ("-[1]: x", Some("-[1]")), ("a[-]: x", Some("a[-]"))]
    {
        assert_eq!(parse(line.as_bytes(), &receipt).tag, tag.map(str::as_bytes), "{line}");
    }
}

/// Headers without a stamp.
#[test]
fn without_stamp() {
    check(&[
        ("<13>", ["", "", "", "", ""]),
        ("<13> text", ["", "", "", "", "text"]),
        ("<13>a: x", ["", "a", "", "", "x"]),
        ("<13>a[1]: x", ["", "a", "1", "", "x"]),
        ("<13>a[1] x", ["", "", "", "", "a[1] x"]),
        ("<13>h a: x", ["h", "a", "", "", "x"]),
        ("<13>h a:x", ["", "", "", "", "h a:x"]),
        ("<13>h a[1] x", ["", "", "", "", "h a[1] x"]),
        ("<13>h is a: x", ["", "", "", "", "h is a: x"]),
        ("<13>2 disks: x", ["", "", "", "", "2 disks: x"]),
        ("<13>- a: x", ["", "", "", "", "- a: x"]),
        ("<13>%X-1-Y: z", ["", "", "", "", "%X-1-Y: z"]),
        ("<13>a: 2026-11-30 10:00:00 x", ["", "a", "", "", "2026-11-30 10:00:00 x"]),
        ("a: x", ["", "a", "", "", "x"]),
        ("two words", ["", "", "", "", "two words"]),
        ("0 2026-11-30T10:00:00Z h a: x", ["", "", "", "", "0 2026-11-30T10:00:00Z h a: x"]),
    ]);
}

/// What Cisco devices put around the stamp.
#[test]
fn cisco() {
    check(&[
        ("<13>7: Nov 30 10:00:00: %X: y", ["", "", "", "7:", "%X: y"]),
        ("<13>7: 8: *Nov 30 10:00:00.1 UTC: %X: y", ["", "", "", "7: 8: *", "%X: y"]),
        ("<13>7: .Nov 30 2026 10:00:00: %X: y", ["", "", "", "7: .", "%X: y"]),
        ("<13>7:Nov 30 10:00:00: %X: y", ["", "", "", "7:", "%X: y"]),
        ("<13>*Nov 30 10:00:00: %X: y", ["", "", "", "*", "%X: y"]),
        ("<13>: 2026 Nov 30 10:00:00 UTC: %X: y", ["", "", "", "", "%X: y"]),
        ("<13>7: r1: Nov 30 10:00:00: %X: y", ["r1", "", "", "7: r1:", "%X: y"]),
        ("<13>7: r1: *Nov 30 10:00:00: %X: y", ["r1", "", "", "7: r1: *", "%X: y"]),
        ("<13>7: 2001:db8::1: Nov 30 10:00:00: %X: y", ["2001:db8::1", "", "", "7: 2001:db8::1:", "%X: y"]),
        ("<13>r1: Nov 30 10:00:00: %X: y", ["r1", "", "", "", "%X: y"]),
        ("<13>7: -: Nov 30 10:00:00: %X: y", ["", "", "", "7: -:", "%X: y"]),
        ("<13>: r1: 2026 Nov 30 10:00:00 UTC: %X: y", ["r1", "", "", "", "%X: y"]),
        ("<13>7: RP/0/CPU0:Nov 30 10:00:00 : a[65]: %X: y", ["RP/0/CPU0", "a", "65", "7: RP/0/CPU0:", "%X: y"]),
        ("<13>7: 13w1d: %X: y", ["", "", "", "7: 13w1d:", "%X: y"]),
        ("<13>7: 00:01:46: %X: y", ["", "", "", "7: 00:01:46:", "%X: y"]),
        ("<13>7: %X: y", ["", "", "", "7:", "%X: y"]),
        ("<13>7: text", ["", "7", "", "", "text"]),
        ("<13>7: 8d: h a: x", ["h", "a", "", "7: 8d:", "x"]),
        ("<13>13w1d: text", ["", "13w1d", "", "", "text"]),
        ("<13>: text", ["", "", "", "", ": text"]),
        ("<13>7: h1 Nov 30 10:00:00 x", ["", "7", "", "", "h1 Nov 30 10:00:00 x"]),
    ]);
}

/// CEF in every place where it may begin.
#[test]
fn cef() {
    let receipt = Receipt { time_unix_nano: 0, zone: &Zone::Utc };
    let event = "CEF:0|v|p|1|2|n|3|a=1";
    for (header, format, host, app) in [
        ("", Format::Cef, None, None),
        ("<13>", Format::CefRfc3164, None, None),
        ("<13>Nov 30 10:00:00 ", Format::CefRfc3164, None, None),
        ("<13>Nov 30 10:00:00 h ", Format::CefRfc3164, Some("h"), None),
        ("<13>Nov 30 10:00:00 h a: ", Format::CefRfc3164, Some("h"), Some("a")),
        ("<13>Nov 30 10:00:00 h CEF: ", Format::CefRfc3164, Some("h"), Some("CEF")),
        ("<13>a: ", Format::CefRfc3164, None, Some("a")),
        ("<13>h ", Format::CefRfc3164, Some("h"), None),
        ("<13>h a: ", Format::CefRfc3164, Some("h"), Some("a")),
        ("<13>h CEF: ", Format::CefRfc3164, Some("h"), Some("CEF")),
        ("Nov 30 10:00:00 h ", Format::CefRfc3164, Some("h"), None),
    ] {
        let line = format!("{header}{event}");
        let record = parse(line.as_bytes(), &receipt);
        assert_eq!(record.format, format, "{line}");
        assert_eq!(record.cef.map(|cef| cef.raw()), Some(event.as_bytes()), "{line}");
        assert_eq!(record.message, None, "{line}");
        assert_eq!(record.hostname, host.map(str::as_bytes), "{line}");
        assert_eq!(record.app_name, app.map(str::as_bytes), "{line}");
        let has_pri_or_needs_none = !header.starts_with("Nov");
        assert_eq!(record.fully_parsed, has_pri_or_needs_none, "{line}");
    }
}
