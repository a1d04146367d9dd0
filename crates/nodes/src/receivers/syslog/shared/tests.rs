//! Messages past the sampler of a receiver.

use catchment_columns::syslog::Transport;
use catchment_columns::{Job, json};
use catchment_sampling::{DropReason, Input};
use otel_arrow_dfe_engine::memory_limiter::MemoryPressureLevel;
use serde_json::{Value, json};

use super::super::connection::Frames;
use super::super::testing::{press, receive, shared, take_records, tcp, texts};
use super::*;
use crate::counting::allocations;
use crate::ingest::tcp::{End, Messages as _, Next, Now};

const SECOND: i64 = 1_000_000_000;

fn config(policies: Value) -> Value {
    json!({"udp": {"listening_addr": "127.0.0.1:0"}, "sampling": {"seed": 11, "policies": policies}})
}

fn peer(number: u32) -> SocketAddr {
    SocketAddr::from((std::net::Ipv4Addr::from_bits(0x0a00_0000 + number), 514))
}

fn source() -> Arc<Source> {
    Arc::new(Source::new(Some(peer(1)), Transport::Tcp, Arc::new(catchment_syslog::Zone::Utc)))
}

fn traced(number: usize, is_sampled: bool) -> String {
    format!(
        "<14>1 2026-11-30T10:00:00Z h a - - [t@1 n=\"{number}\" traceparent=\"00-{:032x}-{:016x}-0{}\"] m",
        number + 1,
        number + 7,
        u8::from(is_sampled)
    )
}

/// Each message is counted once, by what became of it; what is kept has its trace whole, and says what it stands for.
#[test]
fn counts_are_exact_and_traces_whole() {
    let config = config(json!([
        {"always_keep": {"severity": "err"}}, {"trace_flag": {"unsampled": "drop"}}, {"ratio": 0.25},
    ]));
    let parsed = Config::parse(&config).expect("valid");
    let shared = shared(&parsed);
    let senders = Senders::new(parsed.zones.udp.clone(), Transport::Udp);
    let receipt = Receipt { time_unix_nano: SECOND, truncated: false };
    let take = |text: &str| shared.take_datagram(text.as_bytes(), peer(1), &senders, receipt);
    for number in 0..1_000 {
        take(&traced(number, number % 2 == 0));
        take("<11>disk full");
        take("<14>nothing to see");
        take("");
    }
    let counts = shared.sampling_counts().expect("a sampler");
    let drawn = counts.dropped_by(DropReason::Ratio);
    assert_eq!((counts.seen, counts.kept), (3_000, 2_500 - drawn));
    assert_eq!(counts.dropped_by(DropReason::TraceFlag), 500);
    assert!((700..800).contains(&drawn), "{drawn}");
    // Memory runs short: what is shed is not decided on.
    press(&shared, 1, MemoryPressureLevel::Hard);
    take("<11>disk full");
    let books = shared.intake.books().clone();
    assert_eq!((books.received, books.shed), (3_001, 1));
    assert_eq!((books.sampled_out, books.waiting()), (500 + drawn, counts.kept));
    assert_eq!(shared.sampling_counts(), Some(counts));
    assert_eq!(shared.counters.borrow().empty, 1_000);

    let mut next = 0;
    for record in take_records(&shared) {
        let attributes = &record["attributes"];
        let weight = attributes["sampling.adjusted_count"].as_f64();
        if let Some(number) = attributes["syslog.structured_data"]["t@1"]["n"].as_str() {
            assert_eq!(number, next.to_string());
            assert_eq!(record["trace_id"], format!("{:032x}", next + 1));
            assert_eq!(record["span_id"], format!("{:016x}", next + 7));
            assert_eq!((&record["flags"], weight), (&json!(1), None));
            next += 2;
        } else {
            let is_drawn = attributes["syslog.severity"] == 6;
            assert_eq!(weight, is_drawn.then_some(4.0), "{record}");
            assert_eq!(attributes["sampling.threshold"], if is_drawn { json!("c") } else { Value::Null });
        }
    }
    assert_eq!(next, 1_000);
}

/// Batches that go out encoded take the weights along.
#[test]
fn encoded_batches_carry_weights() {
    let mut config = config(json!([{"ratio": 0.25}]));
    config["emit"] = "encoded".into();
    let parsed = Config::parse(&config).expect("valid");
    let sampling = Sampling::new(parsed.sampling.as_ref().expect("settings"), Input::Syslog, 0).expect("valid");
    let mut pending = SyslogPending::new(&parsed, Some(sampling));
    let source = source();
    for _ in 0..100 {
        let receipt = Receipt { time_unix_nano: 1, truncated: false };
        let _ = pending.push(b"<14>x", None, || &source, receipt);
    }
    let Payload::Encoded(_, _, mut payloads) = pending.take_payload() else { panic!("encoded") };
    let (items, payload) = payloads.remove(0);
    let (batch, options) = encoded::decode(&payload).expect("a payload");
    let mut weights = Vec::new();
    for records in SyslogJob::new(batch, options).run().expect("decoded") {
        json::objects(&records, |record| weights.push(record["attributes"]["sampling.adjusted_count"].as_f64()))
            .expect("readable");
    }
    assert_eq!(weights.len() as u64, items);
    assert!((10..50).contains(&items) && weights.iter().all(|weight| *weight == Some(4.0)), "{weights:?}");
}

/// Frames are found as ever, whatever becomes of what is in them, one by one or many at once.
#[tokio::test]
async fn frames_are_never_skipped() {
    for unlimited in [false, true] {
        let sampling = json!({"sampling": {"policies": [{"always_keep": {"severity": "err"}}, {"ratio": 0}]}});
        let tcp = tcp(sampling).await;
        let mut frames = Frames::new(peer(1), source(), Rc::clone(&tcp.shared), tcp.options);
        let stream = b"10 <14>a\nb cd<11>one\n<14>two\n\n7 <11>3\n3<14>four\n9 <11>five!";
        let now = Now { time_unix_nano: 1, end: None, unlimited };
        let mut at = 0;
        while at < stream.len() {
            match frames.next(&stream[at..], now) {
                Next::Message(consumed) | Next::Skip(consumed) => at += consumed,
                Next::NeedMore | Next::Failed(_) => panic!("at {at}"),
            }
        }
        assert_eq!(texts(&take_records(&tcp.shared)).len(), 3);
        let books = tcp.shared.intake.books().clone();
        assert_eq!((books.received, books.sampled_out), (6, 3));
        assert_eq!(tcp.shared.counters.borrow().bytes, 10 + 7 + 7 + 7 + 8 + 9);
    }
}

/// Where nobody counts the messages of a sender, those that are dropped are gone through many at once. The same ones are
/// kept, and the same is counted, in whatever pieces the stream comes.
#[tokio::test]
async fn many_at_once_are_as_one_by_one() {
    let lines = (0..600).map(|number| match number % 7 {
        0 => "\n".to_owned(),
        3 => format!("<11>{number} {}\n", "long".repeat(40)),
        _ => format!("{}\n", traced(number, number % 5 == 0)),
    });
    let stream = lines.collect::<String>() + "<14>without an end";
    let policies = json!([{"trace_flag": {"unsampled": "pass"}}, {"ratio": 0.2}]);
    let mut expected = None;
    for (unlimited, piece) in [(false, stream.len()), (true, stream.len()), (true, 1_000), (true, 37)] {
        let tcp = tcp(json!({"max_message_size": 100, "sampling": {"seed": 5, "policies": policies}})).await;
        let mut frames = Frames::new(peer(1), source(), Rc::clone(&tcp.shared), tcp.options);
        let (mut done, mut read, mut end) = (0, 0, None);
        loop {
            let now = Now { time_unix_nano: 1, end, unlimited };
            match frames.next(&stream.as_bytes()[done..read], now) {
                Next::Message(consumed) | Next::Skip(consumed) => done += consumed,
                Next::NeedMore if end.is_some() => break,
                Next::NeedMore if read == stream.len() => end = Some(End::Cut),
                Next::NeedMore => read = (read + piece).min(stream.len()),
                Next::Failed(_) => panic!("at {done}"),
            }
        }
        assert_eq!(done, stream.len());
        let records = texts(&take_records(&tcp.shared));
        assert!((80..450).contains(&records.len()), "{}", records.len());
        let (books, counters) = (tcp.shared.intake.books().clone(), tcp.shared.counters.borrow().clone());
        assert_eq!(books.received, books.sent + books.sampled_out);
        let found = (records, books.received, books.sampled_out, counters.bytes, counters.truncated);
        assert_eq!(*expected.get_or_insert_with(|| found.clone()), found, "{unlimited} {piece}");
    }
}

/// A dropped message allocates nothing, whoever sends it: it is not copied, and its sender is not remembered.
#[tokio::test]
async fn dropped_messages_allocate_nothing() {
    let lines: Vec<String> = (0..1_000)
        .flat_map(|number| [traced(number, false), format!("<14>Nov 30 10:00:00 h{number} a[1]: text"), "<13>x".into()])
        .collect();
    for policies in [
        json!([{"ratio": 0}]),
        json!([{"always_keep": {"severity": "err", "hosts": ["x"]}}, {"trace_flag": {"unsampled": "drop"}}, {"ratio": 0}]),
        json!([{"key_hash": {"ratio": 0, "key": ["host", "app", "source"]}}, {"ratio": 0}]),
        json!([{"trace_ratio": 0}, {"ratio": {"ratio": 0.0000001, "draw": "systematic"}}]),
    ] {
        let parsed = Config::parse(&config(policies.clone())).expect("valid");
        let by_udp = shared(&parsed);
        let senders = Senders::new(parsed.zones.udp.clone(), Transport::Udp);
        let made = allocations(|| {
            for (number, line) in (0..).zip(&lines) {
                let receipt = Receipt { time_unix_nano: SECOND, truncated: false };
                by_udp.take_datagram(line.as_bytes(), peer(number), &senders, receipt);
            }
        });
        assert_eq!((made, by_udp.intake.books().sampled_out), (0, 3_000), "{policies}");

        let by_tcp = tcp(json!({"sampling": {"policies": policies}})).await;
        let mut frames = Frames::new(peer(1), source(), Rc::clone(&by_tcp.shared), by_tcp.options);
        let stream = lines.join("\n") + "\n";
        let now = Now { time_unix_nano: 1, end: None, unlimited: true };
        let made = allocations(|| {
            let mut rest = stream.as_bytes();
            while let Next::Message(consumed) | Next::Skip(consumed) = frames.next(rest, now) {
                rest = &rest[consumed..];
            }
        });
        assert_eq!((made, by_tcp.shared.intake.books().sampled_out), (0, 3_000), "{policies}");
    }
}

/// About so many messages a second, and sums that are right all the same.
#[test]
fn rate_limits_follow_the_time_of_receipt() {
    let config = config(json!([{"rate_limit": 100}]));
    // 1,000 a second for ten seconds.
    let messages = (0..10_000).map(|number| (number * SECOND / 1_000, "<14>x".to_owned()));
    let (batches, books) = receive(&config, messages);
    assert!((800..1_500).contains(&books.sent), "{}", books.sent);
    let mut sum = 0.0;
    for records in &batches {
        json::objects(records, |record| sum += record["attributes"]["sampling.adjusted_count"].as_f64().unwrap_or(1.0))
            .expect("readable");
    }
    assert!((sum - 10_000.0).abs() < 4.0 * 10_000.0 / 30.0, "{sum}");
}
