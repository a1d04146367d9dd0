//! Targets for batches of syslog messages: decode jobs, and the encoding in which batches travel undecoded.

use std::sync::{Arc, LazyLock};

use catchment_columns::syslog::{
    NonUtf8, Receipt, RowOptions, Schema, Source, StructuredDataForm, SyslogBatch, SyslogJob, Transport, encoded,
};
use catchment_columns::{Budget, Job, MAX_BATCH_RECORDS, OtapArrowRecords, ParentIds, Step, json};
use catchment_syslog::Zone;

use crate::syslog::RECEIVED_UNIX_NANO;

/// Steps that making the arrays of one batch may take, with the last one, which only says that this is the end.
const STEPS_OF_A_BATCH: usize = 8;

/// Prefixes of CEF extension keys: none, one of a user, and two that look like names of the receiver.
const PREFIXES: [&str; 4] = ["", "x.", "cef.ext.", "syslog."];

/// Bytes of an entry in a payload.
const ENTRY_BYTES: usize = 17;

/// Senders: a file, one of datagrams, and two connections, one of them with a certificate and in a zone of its own.
static SENDERS: LazyLock<[Arc<Source>; 4]> = LazyLock::new(|| {
    let source = |peer: Option<&str>, transport, zone: &str| {
        let peer = peer.map(|peer| peer.parse().expect("an address"));
        Source::new(peer, transport, Arc::new(zone.parse::<Zone>().expect("the bundled database has it")))
    };
    [
        source(None, Transport::File, "UTC"),
        source(Some("192.0.2.1:514"), Transport::Udp, "+01:00"),
        source(Some("[::ffff:192.0.2.1]:514"), Transport::Tcp, "UTC"),
        source(Some("[2001:db8::1]:40000"), Transport::Tcp, "Europe/Berlin").with_tls_subject("CN=a,O=b".to_owned()),
    ]
    .map(Arc::new)
});

/// One message, who sent it, and what was known when it was read.
struct Message<'i> {
    bytes: &'i [u8],
    sender: usize,
    receipt: Receipt,
}

/// Decodes a batch in several ways. The first byte of `input` chooses the options (one bit for the schema, two for
/// structured data, one for text that is not UTF-8, two for the prefix of CEF keys), the second and third the budget
/// (records, and bytes in units of 16), the fourth the step after which a job is given up. Then come the messages: sender
/// (two bits), whether it was cut (one bit) and moment of receipt in a byte, the length in two bytes, the message; the
/// last may be shorter.
///
/// Asserted: each message gives one record and is counted once; steps of the budget give the same records as one run, and
/// a bounded number of steps does; parent ids of both kinds read the same; a job that is given up gives back what did
/// not come out, and decoding that gives the rest; and a payload gives the same records elsewhere.
pub fn syslog_job(input: &[u8]) {
    let Some((&[choice, records, bytes, given_up], rest)) = input.split_first_chunk() else {
        return;
    };
    let options = options(choice);
    let messages = messages(rest);
    let whole = at_once(batch(&messages), &options);
    assert_eq!(whole.len(), messages.len());

    let budget = Budget { records: usize::from(records), bytes: 16 * usize::from(bytes) };
    let mut job = SyslogJob::new(batch(&messages), options.clone());
    let (stepped, steps) = step(&mut job, budget, usize::MAX);
    assert_eq!(stepped, whole, "{options:?} {budget:?}");
    assert_eq!(job.remaining(), 0);
    assert!(steps <= messages.len() + STEPS_OF_A_BATCH * (1 + messages.len() / MAX_BATCH_RECORDS), "{steps} steps");
    let counted: u64 = job.parsed().iter().map(|(_, whole, partly)| whole + partly).sum();
    assert_eq!(counted, messages.len() as u64);

    let transport = RowOptions { parent_ids: ParentIds::Transport, ..options.clone() };
    assert_eq!(at_once(batch(&messages), &transport), whole, "{options:?}");

    let mut job = SyslogJob::new(batch(&messages), options.clone());
    let (mut out, _) = step(&mut job, budget, usize::from(given_up));
    let left = job.cancel();
    assert_eq!(out.len() + left.len(), messages.len());
    out.extend(at_once(left, &options));
    assert_eq!(out, whole, "{options:?} {budget:?}, given up after {given_up} steps");

    let payload = encoded::encode(&batch(&messages), &options);
    assert_eq!(encoded::count(&payload), Some(messages.len()));
    let (decoded, decoded_options) = encoded::decode(&payload).expect("a payload that was just made");
    assert_eq!(decoded_options, options);
    assert_eq!(at_once(decoded, &options), whole);
}

/// Reads `input` as a payload of `syslog-batch-v1`.
///
/// Asserted: what is refused says why; what is taken has no more messages and bytes than `input` has room for, as many
/// messages as were counted without decoding, and one record for each; and written again it is the same batch, to the
/// byte from then on.
pub fn syslog_encoded(input: &[u8]) {
    let count = encoded::count(input);
    assert!(count.unwrap_or(0) <= input.len() / ENTRY_BYTES);
    let (batch, options) = match encoded::decode(input) {
        Ok(decoded) => decoded,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let messages = batch.len();
    assert_eq!(count, Some(messages));
    assert!(messages * ENTRY_BYTES + batch.bytes() <= input.len());
    let again = encoded::encode(&batch, &options);
    let (batch_again, options_again) = encoded::decode(&again).expect("a payload that was just made");
    assert_eq!(options_again, options);
    assert_eq!(encoded::encode(&batch_again, &options_again), again);
    let records = at_once(batch, &options);
    assert_eq!(records.len(), messages);
    assert_eq!(at_once(batch_again, &options_again), records);
}

fn options(choice: u8) -> RowOptions {
    RowOptions {
        schema: if choice & 1 == 0 { Schema::Upstream } else { Schema::Otel },
        structured_data: match choice >> 1 & 3 {
            0 => None,
            1 => Some(StructuredDataForm::Map),
            2 => Some(StructuredDataForm::Text),
            _ => Some(StructuredDataForm::Flat),
        },
        non_utf8: if choice & 8 == 0 { NonUtf8::Replace } else { NonUtf8::Bytes },
        cef_extension_prefix: PREFIXES[usize::from(choice >> 4 & 3)].to_owned(),
        parent_ids: ParentIds::Plain,
    }
}

fn messages(mut input: &[u8]) -> Vec<Message<'_>> {
    let mut messages = Vec::new();
    while let Some((&[head, high, low], rest)) = input.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes([high, low])).min(rest.len());
        let (bytes, rest) = rest.split_at(length);
        let time_unix_nano = RECEIVED_UNIX_NANO[usize::from(head >> 3) % RECEIVED_UNIX_NANO.len()];
        let receipt = Receipt { time_unix_nano, truncated: head & 4 != 0 };
        messages.push(Message { bytes, sender: usize::from(head & 3), receipt });
        input = rest;
    }
    messages
}

fn batch(messages: &[Message<'_>]) -> SyslogBatch {
    let mut batch = SyslogBatch::new();
    for message in messages {
        batch.push(message.bytes, &SENDERS[message.sender], message.receipt);
    }
    batch
}

/// The records of `batch` as JSON.
fn at_once(batch: SyslogBatch, options: &RowOptions) -> Vec<String> {
    let mut out = Vec::new();
    for records in SyslogJob::new(batch, options.clone()).run().expect("every message gives a record") {
        print(records, &mut out);
    }
    out
}

/// The records that come out in at most `most` steps, and how many steps were made.
fn step(job: &mut SyslogJob, budget: Budget, most: usize) -> (Vec<String>, usize) {
    let mut out = Vec::new();
    for made in 0..most {
        match job.step(budget).expect("every message gives a record") {
            Step::More => {}
            Step::Batch(records) => print(records, &mut out),
            Step::End => return (out, made + 1),
        }
    }
    (out, most)
}

fn print(mut records: OtapArrowRecords, out: &mut Vec<String>) {
    records.decode_transport_optimized_ids().expect("parent ids of our own making");
    json::objects(&records, |object| out.push(object.to_string())).expect("tables of our own making");
}
