//! Work in proportion to the length, whatever the bytes: counted, not timed.

use super::tests::{RECEIPT, text_of};
use super::*;
use crate::bytes::work;

/// Places of a message where a run of bytes may begin.
const PLACES: [&str; 16] = [
    "",
    "<",
    "<13>",
    "<13>7: ",
    "<13>Nov 30 10:00:00",
    "<13>Nov 30 10:00:00 ",
    "<13>Nov 30 10:00:00 h a[",
    "<13>1 ",
    "<13>1 - ",
    "<13>1 - - - - - ",
    "<13>1 - - - - - [a ",
    "<13>1 - - - - - [a k=\"",
    "CEF:0",
    "CEF:0|v|p|1|2|n|",
    "CEF:0|v|p|1|2|n|3|",
    "CEF:0|v|p|1|2|n|3|rt=1 a=",
];

/// Bytes looked at while a line is parsed and all its parts are read.
fn work_of(line: &[u8]) -> usize {
    work::take();
    let record = parse(line, &RECEIPT);
    let _ = text_of(&record);
    let _ = record.trace_context();
    work::take()
}

fn assert_linear(place: &str, run: &[u8], len: usize) {
    let line = [place.as_bytes(), &run.repeat(len / run.len())].concat();
    let work = work_of(&line);
    // A search that began anew at every byte would look at hundreds for each.
    assert!(work <= 16 * line.len() + 1024, "{place:?} {run:?}: {work} for {}", line.len());
}

/// Any single byte, repeated.
#[test]
fn runs_of_one_byte() {
    for place in PLACES {
        for byte in 0..=u8::MAX {
            assert_linear(place, &[byte], 2048);
        }
    }
    assert!(work_of(b"<13>Nov 30 10:00:00 host tag: x") > 8, "nothing is counted");
}

/// Any two of the bytes that have a meaning, and longer pieces of headers, repeated.
#[test]
fn runs_of_pairs() {
    let special = b" <>[]\"\\=|:-.*%17Na_T\n\0";
    for place in PLACES {
        for first in special {
            for second in special {
                assert_linear(place, &[*first, *second], 1024);
            }
        }
        for piece in [
            "a= ",
            " a=",
            "a=b ",
            "[a]",
            "[a k=\"\"]",
            " k=\"\\\"\"",
            "1: ",
            "1:",
            "Nov 1 ",
            "CEF:0|",
            "\\|",
            "\\\\|",
            "::1 ",
        ] {
            assert_linear(place, piece.as_bytes(), 16 * 1024);
        }
    }
}
