//! Each part is one batch, and together they are what the whole is.

use catchment_ipfix::{Admitted, Limits, Session, Transport};
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::flow::{FlowJob, FlowReceipt, encoded};
use crate::{Job, json};

/// Templates of domain 1: a counter of two octets; a text after it; and one with a reverse counter (RFC 5103).
const TEMPLATES: [&[u8]; 3] = [
    &[1, 0, 0, 1, 0, 7, 0, 2],
    &[1, 1, 0, 2, 0, 7, 0, 2, 0, 82, 0xff, 0xff],
    &[1, 2, 0, 2, 0, 1, 0, 2, 0x80, 1, 0, 2, 0, 0, 0x72, 0x79],
];

/// A datagram with sets of a template and a number of records each, as long as a TCP message may be.
fn message(domain: u32, sets: &[(u16, usize)]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut add = |id: u16, content: &[u8]| {
        body.extend(id.to_be_bytes());
        body.extend(u16::try_from(content.len() + 4).expect("fits a set").to_be_bytes());
        body.extend_from_slice(content);
    };
    add(2, &TEMPLATES.concat());
    for (template, records) in sets {
        let records = (0..*records).map(|number| u16::try_from(number).expect("few").to_be_bytes());
        let mut content: Vec<u8> = match template {
            0 => records.flatten().collect(),
            1 => records
                .flat_map(|[high, low]| [high, low, low % 3].into_iter().chain(vec![b'x'; low as usize % 3]))
                .collect(),
            _ => records.flat_map(|[high, low]| [high, low, 0, 1]).collect(),
        };
        if *template > 0 {
            // Padding.
            content.push(0);
        }
        add(256 + template, &content);
    }
    let mut out = vec![0, 10];
    out.extend(u16::try_from(16 + body.len()).expect("fits a message").to_be_bytes());
    out.extend([0; 8]);
    out.extend(domain.to_be_bytes());
    [out, body].concat()
}

fn batch(messages: &[(u32, Vec<(u16, usize)>)]) -> FlowBatch {
    let mut session = Session::new(Transport::Stream, Limits::default());
    let (mut batch, mut admitted) = (FlowBatch::default(), Admitted::default());
    for (number, (domain, sets)) in messages.iter().enumerate() {
        admitted.clear();
        let message = message(*domain, sets);
        session.admit(&message, &mut admitted);
        assert!(admitted.problems.is_empty(), "{:?}", admitted.problems);
        let exporter = Some("[::ffff:192.0.2.1]:4739".parse().expect("address"));
        let receipt = FlowReceipt { time_unix_nano: 1 + i64::try_from(number).expect("few"), exporter };
        let added = batch.push(&message, &mut admitted, receipt);
        assert_eq!(added, sets.iter().map(|(_, records)| records).sum::<usize>());
    }
    batch
}

fn objects(batch: FlowBatch, mapping: &FlowMapping) -> Vec<Value> {
    let mut objects = Vec::new();
    for batch in FlowJob::with_mapping(batch, mapping).run().expect("decoded") {
        json::objects(&batch, |object| objects.push(object)).expect("readable");
    }
    objects
}

/// Splits the batch and compares the parts, by themselves and as payloads, with the whole. Gives the sizes of the parts.
fn check(messages: &[(u32, Vec<(u16, usize)>)], mapping: &FlowMapping) -> Vec<usize> {
    let whole = objects(batch(messages), mapping);
    let records = batch(messages).len();
    let parts = batch(messages).split(mapping);
    let sizes: Vec<usize> = parts.iter().map(FlowBatch::len).collect();
    assert_eq!(sizes.iter().sum::<usize>(), records);
    let mut all = Vec::new();
    for part in parts {
        let payload = encoded::encode(&part, mapping);
        let batches = FlowJob::with_mapping(part, mapping).run().expect("decoded");
        assert_eq!(batches.len(), 1);
        json::objects(&batches[0], |object| all.push(object)).expect("readable");
        let (read, read_mapping) = encoded::decode(&payload).expect("a payload");
        assert!(FlowJob::with_mapping(read, &read_mapping).run().expect("decoded") == batches);
    }
    assert!(all == whole, "{} records, not {}", all.len(), whole.len());
    sizes
}

/// A datagram of 20,000 records, of fixed and of variable length, behind others.
#[test]
fn large_datagrams() {
    let mapping = FlowMapping::default();
    assert_eq!(check(&[(1, vec![(0, 7)]), (1, vec![(0, 20_000)])], &mapping), [8_192, 8_192, 3_623]);
    assert_eq!(check(&[(1, vec![(1, 7)]), (1, vec![(1, 9_000)])], &mapping), [8_192, 815]);
    assert_eq!(check(&[(1, vec![(0, 8_192)])], &mapping), [8_192]);
    assert!(FlowBatch::default().split(&mapping).is_empty());
}

/// Records that become two rows each take the room of two.
#[test]
fn biflows() {
    let mapping = FlowMapping { biflow: Biflow::Two, ..FlowMapping::default() };
    assert_eq!(check(&[(1, vec![(0, 3), (2, 5_000), (0, 1)])], &mapping), [4_097, 907]);
}

/// Batches of one exporter each.
#[test]
fn exporters() {
    let mapping = FlowMapping { per_exporter: true, ..FlowMapping::default() };
    let messages = [(1, vec![(0, 2)]), (2, vec![(1, 3)]), (1, vec![(1, 8_200)]), (2, vec![(0, 1)])];
    assert_eq!(check(&messages, &mapping), [8_192, 10, 4]);
    assert_eq!(check(&messages[..1], &mapping), [2]);
}

/// Large records end a part by their bytes.
#[test]
fn bytes() {
    let mut session = Session::new(Transport::Stream, Limits::default());
    let (mut batch, mut admitted) = (FlowBatch::default(), Admitted::default());
    let mut message = message(1, &[]);
    let text = 65_000_u16;
    let mut set = 257_u16.to_be_bytes().to_vec();
    set.extend((text + 9).to_be_bytes());
    set.extend([0, 1, 255]);
    set.extend(text.to_be_bytes());
    set.extend(vec![b'x'; usize::from(text)]);
    message.extend(set);
    let length = u16::try_from(message.len()).expect("fits a message");
    message[2..4].copy_from_slice(&length.to_be_bytes());
    for _ in 0..130 {
        admitted.clear();
        session.admit(&message, &mut admitted);
        let _ = batch.push(&message, &mut admitted, FlowReceipt { time_unix_nano: 1, exporter: None });
    }
    assert_eq!(batch.len(), 130);
    let sizes: Vec<usize> = batch.split(&FlowMapping::default()).iter().map(FlowBatch::len).collect();
    assert_eq!(sizes, [65, 65]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    /// Whatever is in a batch.
    #[test]
    fn parts_are_the_whole(
        messages in prop::collection::vec((1_u32..3, prop::collection::vec((0_u16..3, 0_usize..1_500), 1..4)), 1..6),
        is_two in any::<bool>(),
        per_exporter in any::<bool>(),
    ) {
        let biflow = if is_two { Biflow::Two } else { Biflow::One };
        let _ = check(&messages, &FlowMapping { biflow, per_exporter, ..FlowMapping::default() });
    }
}
