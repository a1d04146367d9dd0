//! Requests of OTLP with a key and a number in every item, as the scripted sink follows them.

use std::net::SocketAddr;
use std::ops::Range;

use crate::http;

/// A signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// Log records.
    Logs,
    /// Points of one gauge.
    Metrics,
    /// Spans.
    Traces,
}

impl Signal {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Logs, Self::Metrics, Self::Traces];

    const fn path(self) -> &'static str {
        match self {
            Self::Logs => "/v1/logs",
            Self::Metrics => "/v1/metrics",
            Self::Traces => "/v1/traces",
        }
    }
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn fixed(field: u64, value: u64) -> Vec<u8> {
    [&varint(field << 3 | 1)[..], &value.to_le_bytes()].concat()
}

fn nested(field: u64, content: &[u8]) -> Vec<u8> {
    [&varint(field << 3 | 2), &varint(content.len() as u64), content].concat()
}

fn attribute(field: u64, key: &str, value: &[u8]) -> Vec<u8> {
    nested(field, &[nested(1, key.as_bytes()), nested(2, value)].concat())
}

/// A request of which every item has the attributes `key` and `seq`, of a resource that has the key too.
#[must_use]
pub fn request(signal: Signal, key: &str, numbers: Range<u64>) -> Vec<u8> {
    let text = nested(1, key.as_bytes());
    let attributes =
        |field: u64, seq: u64| [attribute(field, "key", &text), attribute(field, "seq", &number(3, seq))].concat();
    let time = |seq: u64| 1_796_040_000_000_000_000 + seq;
    let items: Vec<u8> = numbers
        .flat_map(|seq| match signal {
            Signal::Logs => {
                let body = nested(5, &nested(1, format!("line {seq} of {key}").as_bytes()));
                nested(2, &[fixed(1, time(seq)), body, attributes(6, seq)].concat())
            }
            Signal::Metrics => nested(1, &[fixed(3, time(seq)), fixed(6, seq), attributes(7, seq)].concat()),
            Signal::Traces => {
                let trace = nested(1, &u128::from(seq + 1).to_be_bytes());
                let span = nested(2, &(seq + 1).to_be_bytes());
                let times = [fixed(7, time(seq)), fixed(8, time(seq) + 5)].concat();
                nested(2, &[trace, span, nested(5, b"work"), times, attributes(9, seq)].concat())
            }
        })
        .collect();
    let items = match signal {
        Signal::Metrics => nested(2, &[nested(1, b"level"), nested(5, &items)].concat()),
        Signal::Logs | Signal::Traces => items,
    };
    let resource = nested(1, &attribute(1, "host.name", &text));
    nested(1, &[resource, nested(2, &items)].concat())
}

/// Posts a request to a receiver of OTLP over HTTP; gives the status of the answer, 0 if there is none.
#[must_use]
pub fn post(address: SocketAddr, signal: Signal, headers: &str, request: &[u8]) -> u16 {
    let headers = format!("Content-Type: application/x-protobuf\r\n{headers}");
    http::post(address, signal.path(), &headers, request).map_or(0, |answer| answer.status)
}
