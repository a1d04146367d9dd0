use std::borrow::Cow;

use proptest::prelude::*;

use super::*;
use crate::Zone;

pub(super) const RECEIPT: Receipt<'_> = Receipt { time_unix_nano: 1_796_040_000_000_000_000, zone: &Zone::Utc };

/// Lines of all formats, to be cut and mixed.
const LINES: [&str; 10] = [
    "<34>Nov 30 10:00:00 web01 sshd[4321]: Accepted publickey for deploy",
    "<189>237: *Mar  1 00:00:12.345 UTC: %SYS-5-CONFIG_I: Configured from console",
    "<166>Nov 30 2026 10:00:00 fw1 : %ASA-6-302013: Built outbound",
    "<13>2026-11-30T10:00:00.123456+01:00 db02 postgres[812]: checkpoint: wrote 41",
    "<165>1 2026-11-30T04:59:58.003214-07:00 edge flowd 8710 ID [a@1 k=\"v\\\"\\]\" n=\"\"][b] \u{feff}opened",
    "<14>1 - - - - - -",
    "CEF:0|Acme \\| Co|GK|4.2|310|Policy|7|src=192.0.2.1 msg=a\\=b c\\nd rt=1796032800123",
    "<134>Nov 30 10:00:00 fw9 CEF:1|Acme|GK|1|2|n|3|words end=Nov 30 2026 10:00:00 CET dtz=Asia/Tokyo",
    "gw9 pppd[5]: link up",
    "<13>Nov 30 10:00:00 2001:db8::1 named: x",
];

/// All text of a record: every field, without escapes and without the raw texts.
pub(super) fn text_of(record: &Record<'_>) -> Vec<u8> {
    let fields =
        [record.prefix, record.hostname, record.app_name, record.tag, record.proc_id, record.msg_id, record.message];
    let mut text = fields.into_iter().flatten().collect::<Vec<_>>().join(&b'\n');
    if let Some(data) = record.structured_data {
        for element in data.elements() {
            text.extend_from_slice(element.id());
            element.params().for_each(|(name, value)| text.extend([name, &value].concat()));
        }
    }
    if let Some(cef) = record.cef {
        for field in [
            cef.device_vendor(),
            cef.device_product(),
            cef.device_version(),
            cef.device_event_class_id(),
            cef.name(),
            cef.severity(),
        ] {
            text.extend_from_slice(&field);
        }
        cef.extensions().for_each(|(key, value)| text.extend([key, &value].concat()));
    }
    text
}

/// Asserts that every field of a record is a part of the input, and never an empty one.
fn assert_borrows(input: &[u8], record: &Record<'_>) {
    let fields =
        [record.prefix, record.hostname, record.app_name, record.tag, record.proc_id, record.msg_id, record.message];
    let range = input.as_ptr_range();
    let within = |part: &[u8]| range.start <= part.as_ptr_range().start && part.as_ptr_range().end <= range.end;
    for field in fields.into_iter().flatten() {
        assert!(!field.is_empty() && within(field), "{record:?}");
    }
    for element in record.structured_data.iter().flat_map(|data| data.elements()) {
        assert!(within(element.id()));
        for (name, value) in element.params() {
            assert!(within(name) && (matches!(value, Cow::Owned(_)) || within(&value)));
        }
    }
    if let Some(cef) = &record.cef {
        assert!(within(cef.raw()) && within(cef.version_text()) && cef.unplaced().is_none_or(within));
        for (key, value) in cef.extensions() {
            assert!(within(key) && (matches!(value, Cow::Owned(_)) || within(&value)));
        }
    }
}

/// A record that is used again keeps nothing of the message before.
#[test]
fn into_a_used_record() {
    let mut record = Record::default();
    for line in LINES.into_iter().chain(["", "<999>", "<13>"]) {
        parse_into(&mut record, line.as_bytes(), &RECEIPT);
        assert_eq!(record, parse(line.as_bytes(), &RECEIPT), "{line}");
    }
}

/// A record fits four cache lines: it is moved for every message.
#[test]
fn is_small() {
    assert!(size_of::<Record<'_>>() <= 256, "{}", size_of::<Record<'_>>());
    assert!(size_of::<Cef<'_>>() <= 64 && size_of::<StructuredData<'_>>() <= 32);
}

/// PRI has one to three digits, up to 191, without leading zero.
#[test]
fn pri_values() {
    for (input, wanted) in [
        ("<0>x", Some((0, 0))),
        ("<9>x", Some((1, 1))),
        ("<13>x", Some((1, 5))),
        ("<191>x", Some((23, 7))),
        ("<192>x", None),
        ("<999>x", None),
        ("<00>x", None),
        ("<013>x", None),
        ("<1234>x", None),
        ("<>x", None),
        ("<1x", None),
        ("<-1>x", None),
        ("<1", None),
        ("<", None),
        ("13>x", None),
    ] {
        let record = parse(input.as_bytes(), &RECEIPT);
        assert_eq!(record.facility.zip(record.severity), wanted, "{input}");
        let message = if wanted.is_some() { "x" } else { input };
        assert_eq!(record.message, Some(message.as_bytes()), "{input}");
        assert_eq!(record.fully_parsed, wanted.is_some(), "{input}");
    }
}

/// An empty input is an empty record.
#[test]
fn empty_input() {
    let record = parse(b"", &RECEIPT);
    assert_eq!(record, Record { fully_parsed: false, ..Record::empty(Format::Rfc3164) });
}

/// The names are those of the attribute, and all differ.
#[test]
fn format_names() {
    let formats = [Format::Rfc3164, Format::Rfc5424, Format::Cef, Format::CefRfc3164, Format::CefRfc5424];
    let names = formats.map(Format::as_str);
    assert_eq!(names, ["rfc3164", "rfc5424", "cef", "cef_rfc3164", "cef_rfc5424"]);
}

/// Long runs of the bytes that have a meaning, behind every kind of header, keep all their text.
#[test]
fn long_runs() {
    let headers = [
        "",
        "<13>",
        "<13>Nov 30 10:00:00 ",
        "<13>Nov 30 10:00:00 h a[",
        "<13>1 - - - - - ",
        "<13>1 - - - - - [a k=\"",
        "CEF:0|v|p|1|2|n|",
        "CEF:0|v|p|1|2|n|3|",
        "CEF:0|v|p|1|2|n|3|a=",
    ];
    for header in headers {
        for run in ["[", "\"", "\\", "=", "|", " ", ":", "<", "1", "1:", "a=", "\\=", " a=", "[a]", "::"] {
            let line = format!("{header}{}", run.repeat(16 * 1024 / run.len()));
            let record = parse(line.as_bytes(), &RECEIPT);
            // Spaces and colons part fields; every other byte of the run is in one.
            let count = |text: &[u8]| text.iter().filter(|byte| !b" :".contains(byte)).count();
            let data = record.structured_data.map_or(&b""[..], |data| data.raw());
            let event = record.cef.map_or(&b""[..], |cef| cef.raw());
            let texts = [&text_of(&record), data, event].map(count);
            let kept = texts.iter().sum::<usize>() >= count(line.as_bytes()) - count(header.as_bytes());
            assert!(kept || !record.fully_parsed, "{header} {run}");
        }
    }
}

proptest! {
    /// No input panics, and every field lies within the input.
    #[test]
    fn takes_any_bytes(input in prop::collection::vec(any::<u8>(), 0..200)) {
        let record = parse(&input, &RECEIPT);
        assert_borrows(&input, &record);
        let text = text_of(&record);
        prop_assert!(text.len() <= 8 * input.len() + 8);
    }

    /// Real lines, cut, mixed and with bytes replaced, do not panic either, in any zone.
    #[test]
    fn takes_mutated_lines(
        (first, second) in (prop::sample::select(&LINES[..]), prop::sample::select(&LINES[..])),
        (cut, from) in (any::<prop::sample::Index>(), any::<prop::sample::Index>()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    ) {
        let mut line = first.as_bytes()[..cut.index(first.len())].to_vec();
        line.extend_from_slice(&second.as_bytes()[from.index(second.len())..]);
        for (at, byte) in changes {
            let at = at.index(line.len());
            line[at] = byte;
        }
        let new_york: Zone = "America/New_York".parse().unwrap();
        for zone in [&Zone::Utc, &Zone::Fixed(-3600), &new_york] {
            let record = parse(&line, &Receipt { zone, ..RECEIPT });
            assert_borrows(&line, &record);
            let _ = (text_of(&record), record.trace_context());
        }
    }

    /// No text is lost: if a record claims to hold all, each word that is no part of a stamp is in
    /// some field, and without a PRI or with a broken one it claims nothing of the kind.
    #[test]
    fn loses_no_text(
        (start, words_of_start) in prop::sample::select(vec![
            ("", vec![]),
            ("<13>", vec![]),
            ("<134>1 ", vec![]),
            ("<999>", vec![]),
            ("<13>1 - ", vec![]),
            ("<13>1 2026-11-30T10:00:00Z ", vec![]),
            ("<13>7701: 7702: *Nov 30 10:00:00: ", vec!["7701", "7702", "*"]),
            ("<13>7701: origin: Nov 30 10:00:00 ", vec!["7701", "origin"]),
            ("<13>7701: 13w1d: ", vec!["7701", "13w1d"]),
            ("<13>Nov 30 10:00:00 host tag[pid]: ", vec!["host", "tag", "pid"]),
            ("<13>1 - host app proc id [sd@1 name=\"value\"] ", vec!["app", "proc", "id", "sd@1", "name", "value"]),
            ("CEF:0|vendor|product|5|class|event|High|", vec!["vendor", "product", "class", "event", "High"]),
        ]),
        words in prop::collection::vec(
            (
                prop::sample::select(vec![
                    "", "Nov", "Nov 30", "Nov 30 10:00:00", "10:00:00", "2026", "2026-11-30T10:00:00Z", "UTC", "CET",
                    "-", ":", "*", "7:", "13w1d:", "%X:", "[a", "[a]", "[a k=\"v\"]", "CEF:0|a|b|c|d|e|f|", "CEF:",
                    "k=v", "h:", "p[1]:", "p[1]", "::1", "\u{feff}", "=", "\"", "\\", "|",
                ]),
                any::<bool>(),
                " {0,2}",
            ),
            0..10,
        ),
    ) {
        let mut line = start.to_owned();
        let mut marks: Vec<_> = words_of_start.into_iter().map(str::to_owned).collect();
        for (index, (word, marked, spaces)) in words.iter().enumerate() {
            line += word;
            if *marked {
                // A word that occurs once and is no part of any stamp.
                let mark = format!("q{index}w");
                line += &mark;
                marks.push(mark);
            }
            line += spaces;
        }
        let record = parse(line.as_bytes(), &RECEIPT);
        let text = text_of(&record);
        if record.fully_parsed {
            for mark in &marks {
                prop_assert!(memchr::memmem::find(&text, mark.as_bytes()).is_some(), "{} lost from {}", mark, line);
            }
            let needs_no_pri = record.format == Format::Cef;
            prop_assert!(needs_no_pri || record.severity.is_some());
        }
        // Bare words of the line are never lost, stamps aside, whether it claims so or not.
        if record.format == Format::Rfc3164 && record.time_unix_nano.is_none() && record.fully_parsed {
            let behind_pri = line.strip_prefix("<13>").or(line.strip_prefix("<134>")).unwrap_or(&line);
            for word in behind_pri.split([' ', ':']).filter(|word| *word != "-") {
                prop_assert!(memchr::memmem::find(&text, word.as_bytes()).is_some(), "{} lost from {}", word, line);
            }
        }
    }
}
