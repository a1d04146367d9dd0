//! Targets for syslog framing and parsing.

use std::sync::LazyLock;

use catchment_syslog::framing::datagram;
use catchment_syslog::severity::level;
use catchment_syslog::{
    Cef, Format, Framer, FramerOptions, Framing, FramingError, Receipt, Record, Step, StructuredData, Zone, parse,
    parse_into,
};

use crate::pieces::Pieces;

/// Moments of receipt: an ordinary one, one in the hour that Berlin's clocks repeat, one after a leap day, and the
/// ends of what can be told.
pub(crate) const RECEIVED_UNIX_NANO: [i64; 5] =
    [1_796_040_000_000_000_000, 1_792_887_302_000_000_000, 1_835_481_601_000_000_000, i64::MIN, i64::MAX];

static ZONES: LazyLock<[Zone; 2]> =
    LazyLock::new(|| [Zone::Utc, "Europe/Berlin".parse().expect("the bundled database has it")]);

/// Parses `input` as one message at several moments of receipt, in UTC and in a zone with daylight saving time.
///
/// Asserted: every field is a part of the input or shorter than the part it was unescaped from, absent fields are not
/// empty text, numbers are in their ranges, fields are there only in formats that have them, a trace context has ids that
/// are written in the input, and parsing again into the same record gives the same.
pub fn syslog_parse(input: &[u8]) {
    for zone in ZONES.iter() {
        for time_unix_nano in RECEIVED_UNIX_NANO {
            let receipt = Receipt { time_unix_nano, zone };
            let mut record = parse(input, &receipt);
            check_record(input, &record);
            check_trace_context(input, &record);
            let first = record;
            parse_into(&mut record, input, &receipt);
            assert_eq!(record, first);
        }
    }
    let trimmed = datagram(input);
    assert_part(input, trimmed);
    assert_eq!(datagram(trimmed), trimmed);
}

fn check_record(input: &[u8], record: &Record<'_>) {
    let Record { prefix, hostname, app_name, tag, proc_id, msg_id, message, .. } = *record;
    for field in [prefix, hostname, app_name, tag, proc_id, msg_id, message].into_iter().flatten() {
        assert!(!field.is_empty(), "{record:?}");
        assert_part(input, field);
    }
    for field in [hostname, app_name, proc_id, msg_id].into_iter().flatten() {
        assert_ne!(field, b"-", "{record:?}");
    }
    assert_eq!(record.facility.is_some(), record.severity.is_some());
    assert!(record.facility.is_none_or(|facility| facility <= 23));
    assert!(record.severity.is_none_or(|severity| severity <= 7 && !level(severity).text.is_empty()));
    let rfc5424 = matches!(record.format, Format::Rfc5424 | Format::CefRfc5424);
    assert_eq!(record.version.is_some(), rfc5424);
    assert!(record.version.is_none_or(|version| (1..=999).contains(&version)));
    assert!(rfc5424 || (record.structured_data.is_none() && msg_id.is_none()));
    assert!(!(rfc5424 && tag.is_some()));
    let cef = matches!(record.format, Format::Cef | Format::CefRfc3164 | Format::CefRfc5424);
    assert_eq!(record.cef.is_some(), cef);
    assert!(!(cef && message.is_some()));
    assert_eq!(record.format.as_str().contains("cef"), cef);
    if let Some(data) = &record.structured_data {
        check_structured_data(input, data);
    }
    if let Some(cef) = &record.cef {
        check_cef(input, cef);
    }
}

fn check_trace_context(input: &[u8], record: &Record<'_>) {
    let Some(context) = record.trace_context() else { return };
    assert!(context.trace_id != [0; 16] && context.span_id != [0; 8]);
    assert!(record.structured_data.is_some() || record.cef.is_some());
    for id in [&context.trace_id[..], &context.span_id] {
        let written: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let digits = written.as_bytes();
        assert!(input.windows(digits.len()).any(|part| part.eq_ignore_ascii_case(digits)), "{written} is made up");
    }
}

fn check_structured_data(input: &[u8], data: &StructuredData<'_>) {
    let raw = data.raw();
    assert_part(input, raw);
    assert!(raw.starts_with(b"[") && raw.ends_with(b"]"));
    let (mut elements, mut bytes) = (0, 0);
    for element in data.elements() {
        elements += 1;
        assert!(!element.id().is_empty());
        assert_part(raw, element.id());
        bytes += 2 + element.id().len();
        for (name, value) in element.params() {
            assert!(!name.is_empty());
            assert_part(raw, name);
            // A space, `=` and two quotes.
            bytes += 4 + name.len() + value.len();
        }
    }
    assert!(elements > 0 && bytes <= raw.len());
}

fn check_cef(input: &[u8], cef: &Cef<'_>) {
    let raw = cef.raw();
    assert_part(input, raw);
    assert!(raw.starts_with(b"CEF:") && cef.version() <= 1);
    assert_part(raw, cef.version_text());
    let header = [
        cef.device_vendor(),
        cef.device_product(),
        cef.device_version(),
        cef.device_event_class_id(),
        cef.name(),
        cef.severity(),
    ];
    // The mark, the version, and the seven bars.
    let mut bytes = 4 + cef.version_text().len() + 7 + header.iter().map(|field| field.len()).sum::<usize>();
    if let Some(unplaced) = cef.unplaced() {
        assert!(!unplaced.is_empty());
        assert_part(raw, unplaced);
        bytes += unplaced.len();
    }
    for (key, value) in cef.extensions() {
        assert!(!key.is_empty());
        assert_part(raw, key);
        bytes += key.len() + 1 + value.len();
    }
    assert!(bytes <= raw.len(), "{bytes} bytes from {}", raw.len());
}

/// Asserts that `part` borrows from `whole`; of nothing there is no telling.
pub(crate) fn assert_part(whole: &[u8], part: &[u8]) {
    let (range, inner) = (whole.as_ptr_range(), part.as_ptr_range());
    assert!(part.is_empty() || (range.start <= inner.start && inner.end <= range.end));
}

/// Cuts a stream into messages. The first byte of `input` chooses the framing (two bits) and the trimming of line ends
/// (one bit), the second the longest message, the third the pieces that arrive; the rest is the stream.
///
/// Asserted: messages and errors do not depend on the pieces, every byte is consumed, messages are neither empty nor
/// too long, a full buffer always makes progress, and delimited messages are those of a plain search for delimiters.
pub fn syslog_framing(input: &[u8]) {
    let Some((&[choice, longest, seed], stream)) = input.split_first_chunk() else {
        return;
    };
    let framing = match choice & 3 {
        0 => Framing::Auto,
        1 => Framing::Newline,
        2 => Framing::OctetCounting,
        _ => Framing::Nul,
    };
    let max_message_size = usize::from(longest).max(1);
    let options = FramerOptions { framing, max_message_size, trim_trailing_newline: choice & 4 == 0 };
    let whole = frames(options, stream, Pieces::Whole);
    for pieces in [Pieces::Single, Pieces::Mixed(seed)] {
        assert_eq!(frames(options, stream, pieces), whole, "{options:?}");
    }
    let delimiter = match framing {
        Framing::Newline => b'\n',
        Framing::Nul => 0,
        Framing::Auto | Framing::OctetCounting => return,
    };
    assert!(whole.errors.is_empty());
    assert_eq!(whole.messages, delimited(stream, delimiter, max_message_size), "{options:?}");
}

/// What a framer made of a stream.
#[derive(Debug, Default, PartialEq)]
struct Frames {
    /// The messages, each with whether it was cut.
    messages: Vec<(Vec<u8>, bool)>,
    errors: Vec<FramingError>,
}

fn frames(options: FramerOptions, stream: &[u8], pieces: Pieces) -> Frames {
    let mut framer = Framer::new(options);
    let mut frames = Frames::default();
    let (mut start, mut end, mut failed) = (0, 0, false);
    // Once more at the end of the stream, without new bytes.
    for piece in pieces.cut(stream).map(Some).chain([None]) {
        end += piece.map_or(0, <[u8]>::len);
        loop {
            let buffer = &stream[start..end];
            let consumed = match framer.next(buffer, piece.is_none()) {
                Step::NeedMore => {
                    assert!(buffer.len() < framer.max_buffered());
                    break;
                }
                Step::Frame { message, consumed, truncated } => {
                    assert!(!failed && !message.is_empty() && message.len() <= options.max_message_size);
                    assert!(message.len() <= consumed);
                    frames.messages.push((message.to_vec(), truncated));
                    consumed
                }
                Step::Skip { consumed, error } => {
                    frames.errors.extend(error);
                    consumed
                }
                Step::Error { error, consumed } => {
                    assert!(!failed && consumed == buffer.len());
                    failed = true;
                    frames.errors.push(error);
                    consumed
                }
            };
            // Only the end of the stream can be a fault without bytes.
            assert!(consumed <= buffer.len() && (consumed > 0 || (failed && piece.is_none())));
            start += consumed;
        }
    }
    assert_eq!(start, stream.len());
    frames
}

/// The messages between delimiters, found by splitting the whole stream.
fn delimited(stream: &[u8], delimiter: u8, max_message_size: usize) -> Vec<(Vec<u8>, bool)> {
    let messages = stream.split(|&byte| byte == delimiter).filter_map(|line| {
        let line = match delimiter {
            b'\n' => line.strip_suffix(b"\r").unwrap_or(line),
            _ => line,
        };
        let message = &line[..line.len().min(max_message_size)];
        let blank = message.iter().all(|byte| matches!(byte, b'\r' | b'\n'));
        (!blank).then(|| (message.to_vec(), line.len() > max_message_size))
    });
    messages.collect()
}
