use crate::{Format, Receipt, Record, Zone, parse};

fn read(line: &str) -> Record<'_> {
    parse(line.as_bytes(), &Receipt { time_unix_nano: 0, zone: &Zone::Utc })
}

/// What is RFC 5424 and what only looks so.
#[test]
fn detection() {
    for line in ["<13>1 - h", "<13>999 - h", "<13>1 2026-11-30T", "<13>1 9999-99-99Tx h a p m - x"] {
        assert_eq!(read(line).format, Format::Rfc5424, "{line}");
    }
    for line in [
        "<13>1 -",
        "<13>1",
        "<13>0 - h",
        "<13>01 - h",
        "<13>1000 - h",
        "<13>1  - h",
        "<13>1 -h",
        "<13>1 2026-11-30 h",
        "<13>1 26-11-30T10:00:00Z",
        "<13>2 disks",
        "1 - h",
        "<13> 1 - h",
    ] {
        assert_eq!(read(line).format, Format::Rfc3164, "{line}");
    }
}

/// Fields are parted by single spaces, and `-` is none of them.
#[test]
fn fields() {
    let record = read("<13>42 - h:1 a/b -x- m=1 - text");
    assert_eq!(record.version, Some(42));
    assert_eq!(record.hostname, Some(&b"h:1"[..]));
    assert_eq!(record.app_name, Some(&b"a/b"[..]));
    assert_eq!(record.proc_id, Some(&b"-x-"[..]));
    assert_eq!(record.msg_id, Some(&b"m=1"[..]));
    assert_eq!(record.message, Some(&b"text"[..]));
    assert_eq!(record.tag, None);
    assert!(record.fully_parsed);
}

/// A header that ends early or has an empty field keeps what it has, and is not fully parsed.
#[test]
fn short_headers() {
    for (line, host, message) in [
        ("<13>1 - ", None, None),
        ("<13>1 - h", Some("h"), None),
        ("<13>1 - h a p m", Some("h"), None),
        ("<13>1 - h a p m ", Some("h"), None),
        ("<13>1 -  a p m - text", None, Some("text")),
    ] {
        let record = read(line);
        assert_eq!(record.hostname, host.map(str::as_bytes), "{line}");
        assert_eq!(record.message, message.map(str::as_bytes), "{line}");
        assert!(!record.fully_parsed, "{line}");
    }
}

/// Structured data, MSG, and malformed data that becomes MSG.
#[test]
fn structured_data_and_message() {
    for (rest, data, message, fully_parsed) in [
        ("-", None, None, true),
        ("- ", None, None, true),
        ("-  x", None, Some(" x"), true),
        ("- \u{feff}x", None, Some("x"), true),
        ("- \u{feff}\u{feff}x", None, Some("\u{feff}x"), true),
        ("- \u{feff}", None, None, true),
        ("[a]", Some("[a]"), None, true),
        ("[a] [b]", Some("[a]"), Some("[b]"), true),
        ("[a]\u{feff}x", None, Some("[a]\u{feff}x"), false),
        ("-x", None, Some("-x"), false),
        ("[a k=v] x", None, Some("[a k=v] x"), false),
        ("x", None, Some("x"), false),
    ] {
        let line = format!("<13>1 - h a p m {rest}");
        let record = read(&line);
        assert_eq!(record.structured_data.map(|data| data.raw()), data.map(str::as_bytes), "{line}");
        assert_eq!(record.message, message.map(str::as_bytes), "{line}");
        assert_eq!(record.fully_parsed, fully_parsed, "{line}");
    }
}

/// A stamp that cannot be read is absent, and the record says so.
#[test]
fn bad_stamps() {
    for stamp in [
        "2026-13-05T10:00:00Z",
        "2026-11-30T24:00:00Z",
        "2026-11-30T10:00:60Z",
        "2026-11-30T10:00:00.1234567890Z",
        "2026-11-30T10:00:00+24:00",
        "2026-11-30T10:00Z",
        "9999-12-31T23:59:59Z",
    ] {
        let line = format!("<13>1 {stamp} h a p m - x");
        let record = read(&line);
        assert_eq!(record.time_unix_nano, None, "{line}");
        assert_eq!(record.hostname, Some(&b"h"[..]), "{line}");
        assert!(!record.fully_parsed, "{line}");
    }
}

/// CEF as MSG, and where a sender leaves fields out.
#[test]
fn cef() {
    let event = "CEF:0|v|p|1|2|n|3|rt=5";
    for (header, app, time, fully_parsed) in [
        ("<13>1 - h a p m - ", Some("a"), Some(5_000_000), true),
        ("<13>1 - h a p m [x] \u{feff}", Some("a"), Some(5_000_000), true),
        ("<13>1 1970-01-01T00:00:00Z h a p m - ", Some("a"), Some(0), true),
        ("<13>1 - h a p m ", Some("a"), Some(5_000_000), false),
        ("<13>1 - h a ", Some("a"), Some(5_000_000), false),
        ("<13>1 - h ", None, Some(5_000_000), false),
    ] {
        let line = format!("{header}{event}");
        let record = read(&line);
        assert_eq!(record.format, Format::CefRfc5424, "{line}");
        assert_eq!(record.cef.map(|cef| cef.raw()), Some(event.as_bytes()), "{line}");
        assert_eq!(record.hostname, Some(&b"h"[..]), "{line}");
        assert_eq!(record.app_name, app.map(str::as_bytes), "{line}");
        assert_eq!(record.time_unix_nano, time, "{line}");
        assert_eq!(record.message, None, "{line}");
        assert_eq!(record.fully_parsed, fully_parsed, "{line}");
    }
    let broken = read("<13>1 - h a p m - CEF:0|v|p");
    assert_eq!((broken.format, broken.message), (Format::Rfc5424, Some(&b"CEF:0|v|p"[..])));
}
