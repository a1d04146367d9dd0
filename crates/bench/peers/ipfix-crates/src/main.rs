//! Decodes IPFIX messages with crates of others and says what it cost.
//!
//! `catchment-peer-ipfix-crates DECODER SUM TEMPLATES MESSAGES MILLISECONDS`: DECODER is `netflow_parser` or `netgauze`, SUM
//! is `flows` or `counters`, TEMPLATES and MESSAGES are files of IPFIX messages one after the other. TEMPLATES is decoded
//! once, MESSAGES again and again until the time of this thread is over. Prints one JSON object:
//!
//! - `items`, `sum`: of one pass; records, and the sum of octetDeltaCount and packetDeltaCount, or with `counters` the
//!   number and the sum of all fields of other enterprises;
//! - `failed`: messages that could not be decoded, and `error`, why the first of them could not;
//! - `cpu_seconds`: of a pass, the mean;
//! - `memcpy_seconds`: for copying the messages once, the mean.
//!
//! There are no times if a message could not be decoded.

mod decoders;

use std::error::Error;
use std::hint::black_box;

use nix::time::{ClockId, clock_gettime};

use decoders::{Decoder, NetflowParser, Netgauze, Tally};

/// What is added up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sum {
    Flows,
    Counters,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [decoder, sum, templates, messages, milliseconds] = arguments.as_slice() else {
        return Err("usage: DECODER SUM TEMPLATES MESSAGES MILLISECONDS".into());
    };
    let mut decoder: Box<dyn Decoder> = match decoder.as_str() {
        "netflow_parser" => Box::new(NetflowParser::new()?),
        "netgauze" => Box::new(Netgauze::default()),
        other => return Err(format!("decoder {other:?}, expected netflow_parser or netgauze").into()),
    };
    let sum = match sum.as_str() {
        "flows" => Sum::Flows,
        "counters" => Sum::Counters,
        other => return Err(format!("sum {other:?}, expected flows or counters").into()),
    };
    let seconds = milliseconds.parse::<u32>().map(f64::from)? / 1e3;
    let (templates, bytes) = (std::fs::read(templates)?, std::fs::read(messages)?);
    let mut tally = Tally::default();
    for message in split(&templates)? {
        decoder.decode(message, Some((Sum::Flows, &mut tally)))?;
    }
    let messages = split(&bytes)?;
    let mut tally = Tally::default();
    let (mut failed, mut error) = (0_u64, None);
    for message in &messages {
        if let Err(one) = decoder.decode(message, Some((sum, &mut tally))) {
            failed += 1;
            error = error.or_else(|| Some(one.to_string()));
        }
    }
    let Tally { items, sum } = tally;
    if failed > 0 {
        println!("{}", serde_json::json!({ "items": items, "sum": sum, "failed": failed, "error": error }));
        return Ok(());
    }
    let cpu_seconds = mean_time(seconds, || messages.iter().try_for_each(|message| decoder.decode(message, None)))?;
    let mut copy = vec![0; bytes.len()];
    let memcpy_seconds = mean_time(seconds / 4.0, || {
        copy.copy_from_slice(black_box(&bytes));
        let _ = black_box(&mut copy);
        Ok(())
    })?;
    let result = serde_json::json!({
        "items": items, "sum": sum, "failed": failed, "cpu_seconds": cpu_seconds, "memcpy_seconds": memcpy_seconds,
    });
    println!("{result}");
    Ok(())
}

/// The messages of a file.
fn split(mut bytes: &[u8]) -> Result<Vec<&[u8]>, String> {
    let mut messages = Vec::new();
    while let [_, _, high, low, ..] = bytes {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let (message, rest) = bytes
            .split_at_checked(length)
            .filter(|(message, _)| message.len() >= 16)
            .ok_or_else(|| format!("message {} is {length} bytes long, of {}", messages.len(), bytes.len()))?;
        messages.push(message);
        bytes = rest;
    }
    Ok(messages)
}

/// Calls `pass` until it has had `seconds` of this thread; gives the mean of a pass.
fn mean_time(seconds: f64, mut pass: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let began = thread_seconds()?;
    let mut passes = 0.0;
    loop {
        pass()?;
        passes += 1.0;
        let taken = thread_seconds()? - began;
        if taken >= seconds {
            return Ok(taken / passes);
        }
    }
}

fn thread_seconds() -> Result<f64, nix::Error> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9)
}
