//! Scripts from a seed: every kind of fault, but none for ever.

use std::fmt;
use std::time::Duration;

use super::{
    Answer, Code, Event, HttpBody, Lie, Moment, Protocol, RetryAfter, SinkScript, Step, StopReading, Unread, When,
    Wording,
};
use crate::traffic::random::Random;

/// What goes wrong again and again between exporters and servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    /// Some requests have to be repeated while their neighbours pass.
    Order,
    /// Data is stored, but the client does not hear of it.
    Duplicates,
    /// A stream or a connection ends with nothing said.
    SilentLoss,
    /// Data that the server never takes.
    Poison,
    /// Answers that are easily put into the wrong class.
    WrongClass,
    /// No answer, or nothing read.
    Hang,
    /// A connection that is not to be used any longer.
    Connection,
    /// A stream of Arrow whose state is lost; for OTLP, a stream that is reset.
    Stream,
    /// Limits that hold after decompression, and narrow windows.
    Compression,
    /// Overload: many requests refused for some time.
    Load,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [Self; 10] = [
        Self::Order,
        Self::Duplicates,
        Self::SilentLoss,
        Self::Poison,
        Self::WrongClass,
        Self::Hang,
        Self::Connection,
        Self::Stream,
        Self::Compression,
        Self::Load,
    ];
}

impl fmt::Display for FaultKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Order => "order",
            Self::Duplicates => "duplicates",
            Self::SilentLoss => "silent loss",
            Self::Poison => "poison",
            Self::WrongClass => "wrong class",
            Self::Hang => "hang",
            Self::Connection => "connection",
            Self::Stream => "stream",
            Self::Compression => "compression",
            Self::Load => "load",
        })
    }
}

impl SinkScript {
    /// A script with faults over `protocol`, always the same for the same arguments. `intensity` from 0 to 1 says how
    /// many, how dense and for how long; beyond that it is cut.
    ///
    /// Every step ends with a number of requests, and after [`fault_time`](Self::fault_time) at the latest; from then on
    /// all is well, so that a client that holds on delivers everything but what was refused for good, which the report
    /// counts. Names of steps begin with their [`FaultKind`]. Clients need a time limit for answers.
    #[must_use]
    pub fn random(seed: u64, protocol: Protocol, intensity: f64) -> Self {
        let intensity = if intensity.is_finite() { intensity.clamp(0.0, 1.0) } else { 0.0 };
        let mut random = Random::new(seed);
        let count = 3 + (intensity * 12.0) as u64;
        let steps = (0..count)
            .map(|_| {
                let kind = *random.choice(&FaultKind::ALL);
                let step = fault(kind, protocol, &mut random);
                let when = when(kind, protocol, intensity, step.when.on, &mut random);
                let name = Some(format!("{kind}: {}", step.answer.name()));
                let times = step.times.or_else(|| Some(random.range(1, 4)));
                Step { name, when, times, ..step }
            })
            .collect();
        // A narrow window only costs time, so it may stay.
        let window_bytes = *random.choice(&[65_535, 65_535, 16_384, 1_024]);
        Self { seed, window_bytes, steps }
    }

    /// The time after the start from which on no step applies; none if one never ends.
    #[must_use]
    pub fn fault_time(&self) -> Option<Duration> {
        let mut ends = self.steps.iter().map(|step| step.when.before);
        ends.try_fold(Duration::ZERO, |latest, before| Some(latest.max(before?)))
    }
}

/// The requests of a step: a few in a row, some of many, or for overload all of some time.
fn when(kind: FaultKind, protocol: Protocol, intensity: f64, on: Event, random: &mut Random) -> When {
    let horizon_ms = 1_000 + (intensity * 4_000.0) as u64;
    let before = Some(Duration::from_millis(random.range(500, horizon_ms)));
    let when = When { protocol: Some(protocol), on, before, ..When::default() };
    if on == Event::Open {
        return When { to: Some(random.range(1, 3)), ..when };
    }
    let horizon = 10 + (intensity * 90.0) as u64;
    let from = random.range(1, horizon);
    match random.range(0, 2) {
        _ if kind == FaultKind::Load => When { from, to: Some(from + horizon / 2), ..when },
        0 => When { from, to: Some(from + random.range(0, 3)), ..when },
        1 => When { from, to: Some(from + horizon), every: random.range(2, 7), ..when },
        _ => {
            let probability = random.range(5, 50) as f64 / 100.0;
            When { to: Some(horizon * 2), probability, ..when }
        }
    }
}

fn fault(kind: FaultKind, protocol: Protocol, random: &mut Random) -> Step {
    let coin = random.range(0, 1) == 1;
    match kind {
        FaultKind::Order if protocol == Protocol::Otap && coin => answered(Answer::Lie(Lie::OutOfOrder)),
        FaultKind::Order if coin => Step { delay: millis(random, 5, 60), ..Step::default() },
        FaultKind::Order => answered(retryable(protocol, random)),
        FaultKind::Duplicates => duplicates(protocol, random),
        FaultKind::SilentLoss if protocol != Protocol::OtlpHttp && coin => answered(Answer::EndStream),
        FaultKind::SilentLoss if protocol == Protocol::Otap => {
            let answer = Answer::Close { at: Moment::BeforeBody, reset: random.range(0, 1) == 1 };
            Step { when: When { on: Event::Open, ..When::default() }, ..answered(answer) }
        }
        FaultKind::SilentLoss => answered(close(Moment::AfterBody, random)),
        FaultKind::Poison if coin => {
            let bytes = random.range(4, 64) * 1_024;
            answered(Answer::SizeLimit {
                bytes,
                wording: if bytes.is_multiple_of(2_048) { Wording::Go } else { Wording::Tonic },
            })
        }
        FaultKind::Poison => Step { times: Some(random.range(1, 2)), ..answered(permanent(protocol, random)) },
        FaultKind::WrongClass => answered(wrong_class(protocol, random)),
        FaultKind::Hang if coin => Step { times: Some(random.range(1, 2)), ..answered(Answer::Never) },
        FaultKind::Hang => {
            let of = if random.range(0, 1) == 1 { Unread::Body } else { Unread::Connection };
            Step { stop_reading: Some(StopReading { time: millis(random, 20, 300), of }), ..Step::default() }
        }
        FaultKind::Connection if coin => {
            let exclude = protocol != Protocol::OtlpHttp && random.range(0, 1) == 1;
            answered(Answer::Goaway { exclude, code: 0 })
        }
        FaultKind::Connection => {
            let at = *random.choice(&[Moment::BeforeBody, Moment::DuringBody, Moment::AfterBody]);
            answered(close(at, random))
        }
        FaultKind::Stream => stream(protocol, random),
        FaultKind::Compression => {
            let bytes = random.range(8, 128) * 1_024;
            let wording = if coin { Wording::Go } else { Wording::Tonic };
            answered(Answer::SizeLimit { bytes, wording })
        }
        FaultKind::Load => {
            let answer = if coin { retryable(protocol, random) } else { overload(protocol, random) };
            Step { times: Some(random.range(5, 30)), delay: millis(random, 0, 20), ..answered(answer) }
        }
    }
}

fn answered(answer: Answer) -> Step {
    Step { answer, ..Step::default() }
}

fn millis(random: &mut Random, low: u64, high: u64) -> Duration {
    Duration::from_millis(random.range(low, high))
}

fn close(at: Moment, random: &mut Random) -> Answer {
    Answer::Close { at, reset: random.range(0, 1) == 1 }
}

fn grpc(code: Code, retry_info: Option<Duration>, random: &mut Random) -> Answer {
    Answer::Grpc { code, message: "scripted".to_owned(), retry_info, trailers_only: random.range(0, 3) > 0 }
}

fn http(status: u16, retry_after: Option<RetryAfter>, random: &mut Random) -> Answer {
    let body = *random.choice(&[HttpBody::Status, HttpBody::Status, HttpBody::Rubbish, HttpBody::Empty]);
    Answer::Http { status, retry_after, body, message: "scripted".to_owned() }
}

/// A refusal after which the same data may be sent again.
fn retryable(protocol: Protocol, random: &mut Random) -> Answer {
    match protocol {
        Protocol::OtlpHttp => {
            let status = *random.choice(&[429, 502, 503, 504]);
            http(status, None, random)
        }
        Protocol::Otap if random.range(0, 1) == 1 => {
            let code = Code(*random.choice(&[1, 4, 8, 10, 14]));
            Answer::BatchStatus { code, message: "scripted".to_owned() }
        }
        Protocol::OtlpGrpc | Protocol::Otap => {
            let code = Code(*random.choice(&[1, 4, 10, 14, 15]));
            grpc(code, None, random)
        }
    }
}

/// A refusal because there is too much at the moment.
fn overload(protocol: Protocol, random: &mut Random) -> Answer {
    match protocol {
        Protocol::OtlpHttp => {
            let retry_after = match random.range(0, 3) {
                0 => RetryAfter::Seconds(1),
                1 => RetryAfter::DateIn(Duration::from_secs(1)),
                2 => RetryAfter::Text("soon".to_owned()),
                _ => RetryAfter::Seconds(0),
            };
            let status = *random.choice(&[429, 503]);
            http(status, Some(retry_after), random)
        }
        Protocol::Otap => {
            Answer::BatchStatus { code: Code::RESOURCE_EXHAUSTED, message: "scripted: too much".to_owned() }
        }
        Protocol::OtlpGrpc => {
            let retry_info = (random.range(0, 2) > 0).then(|| millis(random, 0, 200));
            let code = *random.choice(&[Code::RESOURCE_EXHAUSTED, Code::UNAVAILABLE]);
            grpc(code, retry_info, random)
        }
    }
}

/// A refusal after which the same data must not be sent again.
fn permanent(protocol: Protocol, random: &mut Random) -> Answer {
    match protocol {
        Protocol::OtlpHttp => {
            let status = *random.choice(&[400, 401, 403, 404, 408, 413, 415, 500, 501]);
            http(status, None, random)
        }
        Protocol::Otap => {
            let code = Code(*random.choice(&[3, 7, 13, 16]));
            Answer::BatchStatus { code, message: "scripted".to_owned() }
        }
        Protocol::OtlpGrpc => {
            let code = Code(*random.choice(&[2, 3, 5, 6, 7, 9, 12, 13, 16, 99]));
            grpc(code, None, random)
        }
    }
}

/// Stored, but not told so.
fn duplicates(protocol: Protocol, random: &mut Random) -> Step {
    let answer = match random.range(0, 3) {
        0 => close(Moment::AfterBody, random),
        1 if protocol == Protocol::OtlpGrpc => grpc(Code::DEADLINE_EXCEEDED, None, random),
        2 if protocol != Protocol::OtlpHttp => Answer::ResetStream { code: 8 },
        3 => Answer::Never,
        _ => retryable(protocol, random),
    };
    let times = (answer == Answer::Never).then_some(1);
    Step { store: Some(true), delay: millis(random, 0, 30), times, ..answered(answer) }
}

fn wrong_class(protocol: Protocol, random: &mut Random) -> Answer {
    match (protocol, random.range(0, 3)) {
        (Protocol::Otap, 0) => Answer::Lie(Lie::UnknownBatch),
        (Protocol::Otap, 1) => Answer::Lie(Lie::DuplicateStatus),
        (_, 0) => Answer::PartialSuccess { rejected: random.range(0, 3), message: "scripted".to_owned() },
        (_, 1) => Answer::Lie(Lie::UnreadableBody),
        (_, 2) => overload(protocol, random),
        _ => close(Moment::DuringBody, random),
    }
}

fn stream(protocol: Protocol, random: &mut Random) -> Step {
    match (protocol, random.range(0, 3)) {
        (Protocol::OtlpHttp, _) => answered(close(Moment::DuringBody, random)),
        (Protocol::Otap, 0) => Step {
            when: When { on: Event::Open, ..When::default() },
            ..answered(grpc(Code::UNIMPLEMENTED, None, random))
        },
        (Protocol::Otap, 1) => answered(grpc(Code::OK, None, random)),
        (Protocol::Otap, 2) => answered(grpc(Code::UNAVAILABLE, None, random)),
        _ => {
            // REFUSED_STREAM, CANCEL and INTERNAL_ERROR.
            let code = *random.choice(&[7, 8, 2]);
            answered(Answer::ResetStream { code })
        }
    }
}
