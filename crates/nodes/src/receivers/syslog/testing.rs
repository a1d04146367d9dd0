//! What the tests of the receiver share: a listener's state without an engine, and the records that come out.

use std::net::SocketAddr;
use std::rc::Rc;

use catchment_columns::syslog::{Receipt, Transport};
use catchment_columns::{Budget, Job, OtapArrowRecords, Step, json};
use catchment_sampling::Input;
use otel_arrow_dfe_engine::memory_limiter::{
    LocalReceiverAdmissionState, MemoryPressureChanged, MemoryPressureLevel, MemoryPressureState,
};
use serde_json::Value;

use super::config::Config;
use super::senders::Senders;
use super::shared::{Shared, SyslogPending};
use super::tcp::Tcp;
use crate::accounts::NodeName;
use crate::ingest::tcp::Tls;
use crate::ingest::{Books, Intake, Pending, Rates, Sampling};

/// What the sources of a receiver with this configuration share.
pub(super) fn shared(config: &Config) -> Rc<Shared> {
    let pressure = LocalReceiverAdmissionState::from_process_state(&MemoryPressureState::default());
    let sampling = config.sampling.as_ref().map(|config| Sampling::new(config, Input::Syslog, 0).expect("valid"));
    let intake =
        Intake::new(SyslogPending::new(config, sampling), config.batch.clone(), config.max_in_flight_bytes, pressure);
    let rates = Rates::new(None, config.max_messages_per_second_per_source);
    let name = NodeName { group: "g".into(), pipeline: "p".into(), node: "n".into(), core: 0 };
    Rc::new(Shared::new(intake, rates, None, name, config.max_message_size))
}

/// A TCP listener's state. `more` goes beside the address into the configuration; a batch holds all of a test.
pub(super) async fn tcp(more: Value) -> Rc<Tcp> {
    let mut value = serde_json::json!({
        "tcp": {"listening_addr": "127.0.0.1:0"},
        "batch": {"max_messages": 8192, "max_bytes": "64 MiB"},
    });
    for (key, more) in more.as_object().expect("map") {
        match more {
            Value::Object(inner) if value.get(key).is_some() => {
                for (inner_key, inner) in inner {
                    value[key][inner_key] = inner.clone();
                }
            }
            other => value[key] = other.clone(),
        }
    }
    let config = Config::parse(&value).expect("valid");
    let tcp = config.tcp.as_ref().expect("tcp");
    let tls = match &tcp.tls {
        Some(tls) => Some(Tls::load(tls).await.expect("certificates")),
        None => None,
    };
    let senders = Senders::new(config.zones.tcp.clone(), Transport::Tcp);
    Rc::new(Tcp::new(tcp, config.max_message_size, tls, senders, shared(&config)))
}

/// The record batches of messages that come as datagrams of one sender to a receiver with this configuration, each at its
/// time, and what has become of them. Every message is in a batch or was dropped.
pub(crate) fn receive(config: &Value, messages: impl Iterator<Item = (i64, String)>) -> (Vec<OtapArrowRecords>, Books) {
    let config = Config::parse(config).expect("valid");
    let shared = shared(&config);
    let senders = Senders::new(config.zones.udp.clone(), Transport::Udp);
    let peer = SocketAddr::from(([192, 0, 2, 1], 514));
    let mut batches = Vec::new();
    let mut take = |shared: &Shared| {
        let (mut job, items) = shared.intake.take_job_for_test();
        shared.intake.books_mut().sent += items;
        batches.extend(job.run().expect("decoded"));
    };
    for (time_unix_nano, message) in messages {
        shared.take_datagram(message.as_bytes(), peer, &senders, Receipt { time_unix_nano, truncated: false });
        if shared.intake.with_pending(|pending| pending.items() >= 4_096) {
            take(&shared);
        }
    }
    take(&shared);
    let books = shared.intake.books().clone();
    assert_eq!(books.waiting(), 0);
    assert_eq!(books.received, books.sent + books.sampled_out);
    (batches, books)
}

/// Takes the waiting batch out and gives its records.
pub(super) fn take_records(shared: &Shared) -> Vec<Value> {
    let (mut job, items) = shared.intake.take_job_for_test();
    shared.intake.books_mut().sent += items;
    let mut records = Vec::new();
    loop {
        match job.step(Budget::UNLIMITED).expect("decoded") {
            Step::More => {}
            Step::Batch(batch) => json::objects(&batch, |record| records.push(record)).expect("records"),
            Step::End => return records,
        }
    }
}

/// The raw message or the content of each record.
pub(super) fn texts(records: &[Value]) -> Vec<String> {
    let text = |record: &Value| match record["body"].as_str() {
        Some(body) => body.to_owned(),
        None => record["attributes"]["syslog.content"].as_str().expect("text").to_owned(),
    };
    records.iter().map(text).collect()
}

/// Sets the memory pressure that the receiver knows of.
pub(super) fn press(shared: &Shared, generation: u64, level: MemoryPressureLevel) {
    shared.intake.apply_pressure(MemoryPressureChanged { generation, level, retry_after_secs: 1, usage_bytes: 0 });
}
