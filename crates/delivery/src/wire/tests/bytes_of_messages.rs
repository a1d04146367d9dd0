//! Compression and framing, without a network.

use http_body::Frame;
use http_body_util::StreamBody;
use proptest::prelude::*;

use super::*;
use crate::wire::compress::{Compression, Compressor, decompress};
use crate::wire::message::{Message, MessageReader, header, status};

fn compressor(compression: Compression) -> Compressor {
    Compressor::new(compression).expect("a level").expect("a compressor")
}

/// Levels that do not exist are errors, and none is no compressor.
#[test]
fn levels() {
    for bad in [Compression::Gzip(10), Compression::Zstd(0), Compression::Zstd(23)] {
        let error = Compressor::new(bad).map(|_| ()).expect_err("no such level");
        assert!(error.to_string().contains("level"), "{error}");
    }
    assert!(Compressor::new(Compression::None).expect("none").is_none());
}

/// More than the limit is an error, at the limit it is not; names that are unknown are named.
#[test]
fn decompression_is_capped() {
    let raw = vec![7; 100_000];
    for compression in [Compression::Gzip(6), Compression::Zstd(1)] {
        let name = compression.name().expect("a name");
        let bytes = compressor(compression).compress(&raw, 0).expect("compressed");
        assert_eq!(decompress(name, &bytes, 100_000).expect("all"), raw);
        assert!(decompress(name, &bytes, 99_999).expect_err("too much").to_string().contains("99999"));
        assert!(decompress(name, &bytes[..bytes.len() - 1], 100_000).is_err(), "cut");
    }
    assert!(decompress("identity", &raw, 99_999).is_err());
    assert!(decompress("lzma", &raw, 1).expect_err("unknown").to_string().contains("lzma"));
}

/// Percent encoding, and what is no number.
#[test]
fn statuses() {
    let read = |code: &str, message: &str| status(&map(&[("grpc-status", code), ("grpc-message", message)]));
    let one = read("5", "50%25 of %C3%A4 %zz %4").expect("a status");
    assert_eq!((one.code, one.message.as_str()), (tonic::Code::NotFound, "50% of \u{e4} %zz %4"));
    assert_eq!(read("17", "").expect("a status").code, tonic::Code::Unknown);
    assert_eq!(read("-1", "").expect("a status").code, tonic::Code::Unknown);
    assert_eq!(status(&map(&[("grpc-message", "x")])), None);
    assert_eq!(header(true, 258), Some([1, 0, 0, 1, 2]));
    assert_eq!(header(false, 1 << 32), None);
}

/// Reads all messages of a body that comes in chunks of the given sizes.
fn read(bytes: &[u8], chunks: &[usize], limit: usize) -> (Vec<Message>, bool) {
    let mut frames = Vec::new();
    let mut rest = bytes;
    let mut sizes = chunks.iter().cycle();
    while !rest.is_empty() {
        let (chunk, more) = rest.split_at((*sizes.next().unwrap_or(&1)).clamp(1, rest.len()));
        frames.push(Ok::<_, BoxError>(Frame::data(Bytes::copy_from_slice(chunk))));
        rest = more;
    }
    let body = StreamBody::new(futures_util::stream::iter(frames));
    let mut reader = MessageReader::new(&map(&[]), body, limit);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let mut all = Vec::new();
        loop {
            match reader.next().await {
                Ok(Some(message)) => all.push(message),
                Ok(None) => return (all, true),
                Err(_) => return (all, false),
            }
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// What is compressed comes back, with one context for many messages, behind its prefix.
    #[test]
    fn compression_round_trip(
        messages in proptest::collection::vec(proptest::collection::vec(0_u8..4, 0..5000), 1..5),
        level in 1_u32..10,
        prefix in 0_usize..6,
    ) {
        for compression in [Compression::Gzip(level), Compression::Zstd(level as i32)] {
            let mut compressor = compressor(compression);
            for raw in &messages {
                let bytes = compressor.compress(raw, prefix).expect("compressed");
                prop_assert!(bytes[..prefix].iter().all(|byte| *byte == 0));
                let name = compression.name().expect("a name");
                prop_assert_eq!(&decompress(name, &bytes[prefix..], raw.len()).expect("plain"), raw);
            }
        }
    }

    /// Messages come out whole and in order, however the body is cut; those over the limit are told, not held.
    #[test]
    fn framing(
        messages in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..60), 0..6),
        chunks in proptest::collection::vec(1_usize..50, 1..5),
        limit in 0_usize..60,
        cut in 0_usize..3,
    ) {
        let mut bytes: Vec<u8> = messages.iter().flat_map(|message| framed(0, message)).collect();
        let whole = bytes.len();
        bytes.truncate(whole.saturating_sub(cut));
        let (found, clean) = read(&bytes, &chunks, limit);
        let complete = if bytes.len() == whole { messages.len() } else { messages.len() - 1 };
        if bytes.len() == whole {
            prop_assert!(clean && found.len() == complete);
        } else {
            prop_assert!(!clean || bytes.is_empty());
        }
        for (found, message) in found.iter().zip(&messages) {
            match found {
                Message::Read(bytes) => prop_assert_eq!(&bytes[..], &message[..]),
                Message::Unreadable(_) => prop_assert!(message.len() > limit),
            }
        }
    }

    /// Any bytes: no panic, an end.
    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        _ = read(&bytes, &[7, 1, 30], 50);
        for name in ["gzip", "zstd", "identity"] {
            _ = decompress(name, &bytes, 1000);
        }
    }
}
