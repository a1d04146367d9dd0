use proptest::prelude::*;

use super::*;

fn cef(text: &str) -> Option<Cef<'_>> {
    Cef::parse(text.as_bytes())
}

fn pairs(extension: &str) -> Vec<(String, String)> {
    let text = format!("CEF:0|v|p|1|2|n|3|{extension}");
    let text_of = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    cef(&text).unwrap().extensions().map(|(key, value)| (text_of(key), text_of(&value))).collect()
}

/// Header fields in order, unescaped, empty ones kept.
#[test]
fn header() {
    let event = cef(r"CEF: 1.2|A \| B|C:\\D|\x||n\\|Very-High|").unwrap();
    assert_eq!((event.version(), event.version_text()), (1, &b"1.2"[..]));
    assert_eq!(&*event.device_vendor(), b"A | B");
    assert_eq!(&*event.device_product(), br"C:\D");
    assert_eq!(&*event.device_version(), br"\x");
    assert_eq!(&*event.device_event_class_id(), b"");
    assert_eq!(&*event.name(), br"n\");
    assert_eq!(&*event.severity(), b"Very-High");
    assert_eq!(event.extensions().count(), 0);
    assert_eq!(event.unplaced(), None);
}

/// Texts that are no CEF.
#[test]
fn other_texts() {
    for text in [
        "",
        "CEF",
        "CEF:",
        "CEF:0",
        "CEF:0|a|b|c|d|e|5",
        "CEF:0|a|b|c|d|e",
        "CEF:2|a|b|c|d|e|5|",
        "CEF:|a|b|c|d|e|5|",
        "CEF:10|a|b|c|d|e|5|",
        "CEF:0.|a|b|c|d|e|5|",
        "CEF:0.x|a|b|c|d|e|5|",
        "CEF:  0|a|b|c|d|e|5|",
        "cef:0|a|b|c|d|e|5|",
        r"CEF:0|a|b|c|d|e|5\|",
        "LEEF:0|a|b|c|d|e|5|",
    ] {
        assert!(cef(text).is_none(), "{text}");
    }
}

/// Where pairs begin and end.
#[test]
fn extension() {
    for (extension, wanted) in [
        ("a=1 b=2", &[("a", "1"), ("b", "2")][..]),
        (" a=1", &[("a", "1")]),
        ("a= b= c=x", &[("a", ""), ("b", ""), ("c", "x")]),
        ("a=1  b=2 ", &[("a", "1 "), ("b", "2 ")]),
        ("a=x y z b=2", &[("a", "x y z"), ("b", "2")]),
        ("a=u?b=c&d=e f=g", &[("a", "u?b=c&d=e"), ("f", "g")]),
        ("a==b c==", &[("a", "=b"), ("c", "=")]),
        (r"a=x\=y b\=c d=e", &[("a", r"x=y b=c"), ("d", "e")]),
        (r"a=l1\nl2\rl3 b=DOM\user c=C:\\x\", &[("a", "l1\nl2\rl3"), ("b", r"DOM\user"), ("c", r"C:\x\")]),
        ("ad.l[0]=x x-y_z=1", &[("ad.l[0]", "x"), ("x-y_z", "1")]),
        ("a=1 \u{e4}=2 b=3", &[("a", "1 \u{e4}=2"), ("b", "3")]),
        ("a=1\tb=2", &[("a", "1\tb=2")]),
        ("a=x|y", &[("a", "x|y")]),
        ("a=1 a=2", &[("a", "1"), ("a", "2")]),
        ("=1 =2", &[]),
    ] {
        let wanted: Vec<_> = wanted.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        assert_eq!(pairs(extension), wanted, "{extension}");
    }
}

/// Extension text without a key is given apart.
#[test]
fn unplaced() {
    for (extension, wanted) in [
        ("plain words", Some("plain words")),
        (" words a=1", Some("words")),
        ("=x a=1", Some("=x")),
        ("a=1 words", None),
        ("  ", None),
    ] {
        let text = format!("CEF:0|v|p|1|2|n|3|{extension}");
        assert_eq!(cef(&text).unwrap().unplaced(), wanted.map(str::as_bytes), "{extension}");
    }
}

/// `rt`, else `end`, else `start`, and the zone that applies.
#[test]
fn event_time() {
    let zone: Zone = "+01:00".parse().unwrap();
    let received: jiff::Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
    let time_unix_nano = i64::try_from(received.as_nanosecond()).unwrap();
    let receipt = Receipt { time_unix_nano, zone: &zone };
    for (extension, wanted) in [
        ("rt=1796032800123", Some("2026-11-30T10:00:00.123Z")),
        ("start=1796032800001 end=1796032800002", Some("2026-11-30T10:00:00.002Z")),
        ("start=1796032800001", Some("2026-11-30T10:00:00.001Z")),
        ("rt=soon start=1796032800001", Some("2026-11-30T10:00:00.001Z")),
        ("rt=Nov 30 2026 10:00:00", Some("2026-11-30T09:00:00Z")),
        ("rt=Nov 30 10:00:00.5", Some("2026-11-30T09:00:00.5Z")),
        ("rt=Nov 30 2026 10:00:00 GMT dtz=America/New_York", Some("2026-11-30T10:00:00Z")),
        ("rt=Nov 30 2026 10:00:00 GMT+02:00", Some("2026-11-30T08:00:00Z")),
        ("rt=Nov 30 2026 10:00:00.250 America/New_York", Some("2026-11-30T15:00:00.25Z")),
        ("rt=Nov 30 2026 10:00:00 dtz=America/New_York", Some("2026-11-30T15:00:00Z")),
        ("rt=Nov 30 2026 10:00:00 dtz=+05:30", Some("2026-11-30T04:30:00Z")),
        ("rt=Nov 30 2026 10:00:00 dtz=GMT-3", Some("2026-11-30T13:00:00Z")),
        ("rt=Nov 30 2026 10:00:00 dtz=../../etc/passwd", Some("2026-11-30T09:00:00Z")),
        ("rt=2026-11-30T10:00:00Z", Some("2026-11-30T10:00:00Z")),
        ("rt=Nov 30 2026 10:00:00 in the morning", None),
        ("rt=999999999999999999", None),
        ("rt=", None),
        ("rt=-1", None),
        ("src=1", None),
    ] {
        let text = format!("CEF:0|v|p|1|2|n|3|{extension}");
        let time = cef(&text).unwrap().event_time(&receipt);
        let wanted: Option<jiff::Timestamp> = wanted.map(|text| text.parse().unwrap());
        assert_eq!(time.map(i128::from), wanted.map(|at| at.as_nanosecond()), "{extension}");
    }
}

fn escape_extension(value: &str) -> String {
    value.replace('\\', r"\\").replace('=', r"\=").replace('\n', r"\n").replace('\r', r"\r")
}

proptest! {
    /// Events written with the escapes of the format come back.
    #[test]
    fn comes_back(
        header in prop::collection::vec(r"[a-z |\\=]{0,8}", 6),
        sent in prop::collection::vec(("[A-Za-z0-9_.-]{1,6}", r"[a-z =\\\n\r|]{0,12}"), 0..6),
    ) {
        let mut text = "CEF:0|".to_owned();
        for field in &header {
            text += &field.replace('\\', r"\\").replace('|', r"\|");
            text.push('|');
        }
        let extension: Vec<_> =
            sent.iter().map(|(key, value)| format!("{key}={}", escape_extension(value))).collect();
        text += &extension.join(" ");
        let event = cef(&text).unwrap();
        let read = [
            event.device_vendor(), event.device_product(), event.device_version(),
            event.device_event_class_id(), event.name(), event.severity(),
        ];
        for (read, sent) in read.iter().zip(&header) {
            prop_assert_eq!(&**read, sent.as_bytes());
        }
        let read: Vec<_> = event.extensions().map(|(key, value)| (key.to_vec(), value.into_owned())).collect();
        let sent: Vec<_> = sent.into_iter().map(|(key, value)| (key.into_bytes(), value.into_bytes())).collect();
        prop_assert_eq!(read, sent);
        prop_assert_eq!(event.unplaced(), None);
    }
}
