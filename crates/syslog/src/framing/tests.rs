use proptest::prelude::*;

use super::*;

#[derive(Debug, Default, PartialEq)]
struct Outcome {
    /// Messages, and whether they were truncated.
    frames: Vec<(Vec<u8>, bool)>,
    /// Soft errors, and the one that ended the stream.
    errors: Vec<FramingError>,
}

/// Feeds a stream in chunks of the given sizes (the last repeats) to a framer.
fn run(options: FramerOptions, stream: &[u8], chunk_sizes: &[usize]) -> Outcome {
    let mut framer = Framer::new(options);
    let mut outcome = Outcome::default();
    let (mut buffer, mut rest) = (Vec::new(), stream);
    let mut sizes = chunk_sizes.iter().copied();
    let mut size = stream.len().max(1);
    loop {
        let before = framer.offset;
        match framer.next(&buffer, rest.is_empty()) {
            Step::Frame { message, consumed, truncated } => {
                assert!(!message.is_empty() && message.len() <= framer.options.max_message_size);
                outcome.frames.push((message.to_vec(), truncated));
                assert_eq!(framer.offset, before + consumed as u64);
                buffer.drain(..consumed);
            }
            Step::Skip { consumed, error } => {
                assert!(consumed > 0, "a skip must move on");
                outcome.errors.extend(error);
                buffer.drain(..consumed);
            }
            Step::Error { error, consumed } => {
                assert_eq!(consumed, buffer.len());
                outcome.errors.push(error);
                return outcome;
            }
            Step::NeedMore if rest.is_empty() => {
                assert!(buffer.is_empty(), "bytes left over at the end");
                return outcome;
            }
            Step::NeedMore => {
                assert!(buffer.len() < framer.max_buffered(), "no bound: {}", buffer.len());
                size = sizes.next().unwrap_or(size).max(1);
                let (chunk, later) = rest.split_at(size.min(rest.len()));
                buffer.extend_from_slice(chunk);
                rest = later;
            }
        }
    }
}

fn options(framing: Framing, max_message_size: usize) -> FramerOptions {
    FramerOptions { framing, max_message_size, ..FramerOptions::default() }
}

/// The messages of a stream that is whole and has no truncated message, read in one and in single
/// bytes.
fn messages(framing: Framing, stream: &[u8]) -> Vec<String> {
    let outcome = run(options(framing, 1024), stream, &[]);
    assert_eq!(outcome, run(options(framing, 1024), stream, &[1]));
    assert!(outcome.frames.iter().all(|(_, truncated)| !truncated));
    outcome.frames.into_iter().map(|(bytes, _)| String::from_utf8(bytes).unwrap()).collect()
}

fn errors(framing: Framing, stream: &[u8]) -> Vec<FramingError> {
    let outcome = run(options(framing, 1024), stream, &[]);
    assert_eq!(outcome, run(options(framing, 1024), stream, &[1]));
    outcome.errors
}

/// LF or CR LF ends a line, empty lines are nothing, the rest at the end is a message.
#[test]
fn newline() {
    let lines = messages(Framing::Newline, b"one\r\n\r\n\n\r\r\ntwo\nth\0ree\r\x20\n \ntail\r");
    assert_eq!(lines, ["one", "two", "th\0ree\r ", " ", "tail"]);
    assert!(messages(Framing::Newline, b"").is_empty());
    assert_eq!(messages(Framing::Newline, b"31 <13>x\n"), ["31 <13>x"]);
}

/// With NUL framing LF is text, but a frame of line ends is nothing.
#[test]
fn nul() {
    assert_eq!(messages(Framing::Nul, b"one\0\0two\nmore\0\n\0three\n"), ["one", "two\nmore", "three\n"]);
}

/// Frames follow each other without delimiter, and what is counted is text.
#[test]
fn octet_counting() {
    assert_eq!(messages(Framing::OctetCounting, b"3 a\nb5 cdefg1 h"), ["a\nb", "cdefg", "h"]);
    assert_eq!(messages(Framing::OctetCounting, b"2 a\n3 b\r\n1 \n4 c\n\r\n"), ["a", "b", "c\n"]);
    let literal = FramerOptions { trim_trailing_newline: false, ..options(Framing::OctetCounting, 16) };
    let frames = run(literal, b"2 a\n1 \n", &[1]).frames;
    assert_eq!(frames, [(b"a\n".to_vec(), false), (b"\n".to_vec(), false)]);
}

/// Line ends between counted frames are one soft error each time, with the offset of the first.
#[test]
fn stray_delimiters() {
    let stream = b"\n1 a\r\n\n1 b\x001 c";
    assert_eq!(messages(Framing::OctetCounting, stream), ["a", "b", "c"]);
    let at = |offset| FramingError::StrayDelimiter { offset };
    assert_eq!(errors(Framing::OctetCounting, stream), [at(4), at(10)]);
}

/// What is no message length ends the stream, and the messages before it are given.
#[test]
fn invalid_length() {
    for (stream, offset, byte) in [
        (&b"1 a12x <13>"[..], 5, b'x'),
        (b"1 a0 <13>", 3, b'0'),
        (b"1 a <13>", 3, b' '),
        (b"1 a<13>x", 3, b'<'),
        (b"1 a12345678901 x", 13, b'1'),
    ] {
        let outcome = run(options(Framing::OctetCounting, 64), stream, &[1]);
        assert_eq!(outcome.frames, [(b"a".to_vec(), false)]);
        assert_eq!(outcome.errors, [FramingError::InvalidLength { offset, byte }]);
    }
}

/// After an error nothing of the stream is used.
#[test]
fn stays_failed() {
    let mut framer = Framer::new(options(Framing::OctetCounting, 64));
    assert!(matches!(framer.next(b"x", false), Step::Error { consumed: 1, .. }));
    assert_eq!(framer.next(b"1 a", false), Step::Skip { consumed: 3, error: None });
    assert_eq!(framer.next(b"", true), Step::NeedMore);
}

/// A counted frame that the end of the stream cuts off is an error and no message.
#[test]
fn unexpected_end() {
    let at = |offset, missing| [FramingError::UnexpectedEnd { offset, missing }];
    assert_eq!(errors(Framing::OctetCounting, b"1 a10 abc"), at(9, 7));
    assert_eq!(errors(Framing::OctetCounting, b"1 a10"), at(5, 1));
    assert_eq!(errors(Framing::OctetCounting, b"1 a10 "), at(6, 10));
    assert_eq!(errors(Framing::Auto, b"10 <13>abc"), at(10, 3));
    assert_eq!(errors(Framing::OctetCounting, b"2000 "), at(5, 2000));
}

/// `auto` takes a count only before `<` or `CEF:`; everything else is a line.
#[test]
fn auto() {
    for (stream, wanted) in [
        (&b"5 <1>ab6 <2>a\nb<3>line\n4 <4>x"[..], &["<1>ab", "<2>a\nb", "<3>line", "<4>x"][..]),
        (b"9 CEF:0|a|b5 CEF:\n6 CEX:ab\n", &["CEF:0|a|b", "CEF:", "6 CEX:ab"]),
        (b"2026-11-30 text\n5 disks\n05 <1>a\n", &["2026-11-30 text", "5 disks", "05 <1>a"]),
        (b"12345678901 <1>a\n12", &["12345678901 <1>a", "12"]),
        (b"5 <1>ab\n\0\r\n<2>c\n", &["<1>ab", "<2>c"]),
        (b"31 CEF", &["31 CEF"]),
        (b"3", &["3"]),
    ] {
        assert_eq!(messages(Framing::Auto, stream), wanted);
    }
    let after_counted = FramingError::StrayDelimiter { offset: 7 };
    assert_eq!(errors(Framing::Auto, b"5 <1>ab\n\n<2>c\n\n<3>d\n"), [after_counted]);
}

/// A message too long gives one truncated record, and the next message is found.
#[test]
fn truncates_once() {
    let cut = |text: &[u8]| (text.to_vec(), true);
    let whole = |text: &[u8]| (text.to_vec(), false);
    for (framing, stream) in [
        (Framing::Newline, &b"abcdefghijkl\nnext\n"[..]),
        (Framing::Newline, b"abcde\nnext\n"),
        (Framing::Newline, b"abcde\r\nnext\r\n"),
        (Framing::Newline, b"abcd\rx\nnext"),
        (Framing::Auto, b"abcdefghijkl\nnext\n"),
        (Framing::Nul, b"abcdefgh\0next\0"),
        (Framing::Nul, b"abcd\r\0next\0"),
        (Framing::OctetCounting, b"5 abcde4 next"),
        (Framing::OctetCounting, b"6 abcdef4 next"),
        (Framing::OctetCounting, b"12 abcdefghijkl4 next"),
    ] {
        for chunks in [&[][..], &[1], &[2], &[5, 1]] {
            let outcome = run(options(framing, 4), stream, chunks);
            assert_eq!(outcome.frames, [cut(b"abcd"), whole(b"next")], "{framing:?} {stream:?}");
            assert_eq!(outcome.errors, []);
        }
    }
}

/// A message of just the limit is whole, with every kind of line end.
#[test]
fn limit_itself_is_fine() {
    for (framing, stream) in [
        (Framing::Newline, &b"abcd\r\nabcd\nabcd\r"[..]),
        (Framing::Nul, b"abcd\0abcd\0abcd"),
        (Framing::OctetCounting, b"4 abcd5 abcd\n6 abcd\r\n"),
    ] {
        for chunks in [&[][..], &[1], &[3]] {
            let outcome = run(options(framing, 4), stream, chunks);
            assert_eq!(outcome.frames, vec![(b"abcd".to_vec(), false); 3], "{framing:?}");
        }
    }
}

/// The truncated message comes before the end of the frame is seen, and a huge counted frame is
/// skipped by its length.
#[test]
fn truncates_early() {
    let mut framer = Framer::new(options(Framing::OctetCounting, 4));
    let step = framer.next(b"9000000000 abcd", false);
    assert_eq!(step, Step::Frame { message: b"abcd", consumed: 15, truncated: true });
    assert_eq!(framer.state, State::DiscardCounted { remaining: 8_999_999_996 });
    assert_eq!(framer.next(b"rest", false), Step::Skip { consumed: 4, error: None });

    let mut framer = Framer::new(options(Framing::Newline, 4));
    assert_eq!(framer.next(b"abcd", false), Step::NeedMore);
    let step = framer.next(b"abcde", false);
    assert_eq!(step, Step::Frame { message: b"abcd", consumed: 4, truncated: true });
}

/// What was searched for the delimiter is not searched again.
#[test]
fn remembers_how_far_it_searched() {
    let mut framer = Framer::new(options(Framing::Newline, 64));
    assert_eq!(framer.next(b"abc", false), Step::NeedMore);
    assert_eq!(framer.state, State::Delimited { searched: 3 });
    // A delimiter put before that position by a caller that breaks the rule is not seen.
    let step = framer.next(b"a\ncd\n", false);
    assert_eq!(step, Step::Frame { message: b"a\ncd", consumed: 5, truncated: false });
}

/// A limit of zero would give no message at all.
#[test]
fn limit_is_at_least_one() {
    let outcome = run(options(Framing::Newline, 0), b"ab\n", &[]);
    assert_eq!(outcome.frames, [(b"a".to_vec(), true)]);
}

/// Trailing NUL, LF and CR of a datagram go; inner ones stay.
#[test]
fn datagrams() {
    assert_eq!(datagram(b"a\nb\0c\r\n\0"), b"a\nb\0c");
    assert_eq!(datagram(b"\n\0\r"), b"");
    assert_eq!(datagram(b""), b"");
}

fn any_framing() -> impl Strategy<Value = Framing> {
    prop_oneof![Just(Framing::Auto), Just(Framing::Newline), Just(Framing::OctetCounting), Just(Framing::Nul),]
}

/// Streams made of the pieces that framings are made of.
fn any_stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "\n",
        "\r",
        "\0",
        "\r\n",
        "3 <1>",
        "7 <13>abc",
        "12 CEF:0|",
        "1 ",
        "0",
        " ",
        "<",
        "CEF:",
        "CEF",
        "x",
        "hello",
        "5 ",
        "2 \n",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat().into_bytes())
}

proptest! {
    /// However a stream is cut, it gives the same messages and the same errors.
    #[test]
    fn chunking_changes_nothing(
        framing in any_framing(),
        stream in any_stream(),
        max in 1usize..12,
        trim in any::<bool>(),
        chunks in prop::collection::vec(1usize..9, 0..8),
    ) {
        let options = FramerOptions { framing, max_message_size: max, trim_trailing_newline: trim };
        let whole = run(options, &stream, &[]);
        prop_assert_eq!(&run(options, &stream, &[1]), &whole);
        prop_assert_eq!(&run(options, &stream, &chunks), &whole);
    }

    /// Messages written with octet counting come out as they went in.
    #[test]
    fn counted_messages_come_back(
        sent in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8),
        chunk in 1usize..16,
    ) {
        let mut stream = Vec::new();
        for message in &sent {
            stream.extend_from_slice(format!("{} ", message.len()).as_bytes());
            stream.extend_from_slice(message);
        }
        let literal = FramerOptions { trim_trailing_newline: false, ..options(Framing::OctetCounting, 40) };
        let outcome = run(literal, &stream, &[chunk]);
        let wanted: Vec<_> = sent.into_iter().map(|message| (message, false)).collect();
        prop_assert_eq!(outcome.frames, wanted);
        prop_assert_eq!(outcome.errors, vec![]);
    }
}
