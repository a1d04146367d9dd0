//! Batches that go out undecoded.

use std::num::NonZeroUsize;

use catchment_columns::flow::FlowReceipt;
use catchment_ipfix::sonic::{SonicRecords, SonicTemplate};
use catchment_ipfix::{Admitted, Limits, Session, Transport};

use super::*;

/// What is taken out, as items and bytes of each payload.
fn payloads(collected: Collected, signal: SignalType) -> Vec<(u64, usize)> {
    let mut pending = IpfixPending::new(collected, None);
    let items = pending.items() as u64;
    let Payload::Encoded(encoding, found, payloads) = pending.take_payload() else { panic!("decoded") };
    assert_eq!((encoding, found), (IPFIX_BATCH, signal));
    assert_eq!((pending.items(), pending.bytes()), (0, 0));
    assert_eq!(payloads.iter().map(|(items, _)| items).sum::<u64>(), items);
    payloads.into_iter().map(|(items, payload)| (items, payload.len())).collect()
}

/// Flow records beyond those of one batch go into further payloads, and none is forgotten.
#[test]
fn flows_in_several_payloads() {
    let mut message = vec![0, 10];
    let content = vec![6; 20_000];
    let length = u16::try_from(16 + 12 + 4 + content.len()).expect("fits a message");
    message.extend(length.to_be_bytes());
    message.extend([0; 12]);
    message.extend([0, 2, 0, 12, 1, 0, 0, 1, 0, 4, 0, 1, 1, 0]);
    message.extend((length - 28).to_be_bytes());
    message.extend(content);
    let (mut batch, mut admitted) = (FlowBatch::default(), Admitted::default());
    Session::new(Transport::Udp, Limits::default()).admit(&message, &mut admitted);
    let receipt = FlowReceipt { time_unix_nano: 1, exporter: None };
    assert_eq!(batch.push(&message, &mut admitted, receipt), 20_000);
    let collected = Collected::Logs { batch, mapping: FlowMapping::default(), emit: Emit::Encoded };
    let payloads = payloads(collected, SignalType::Logs);
    assert_eq!(payloads.iter().map(|(items, _)| *items).collect::<Vec<_>>(), [8_192, 8_192, 3_616]);
    assert!(payloads.iter().all(|(items, bytes)| (1..300).contains(&(*bytes as u64 - items))));
}

/// SONiC's records go out with as many payloads as there are batches in them, counted by points.
#[test]
fn sonic_in_several_payloads() {
    let definition = [1, 0, 0, 2, 0x80, 7, 0, 8, 0, 1, 0, 4, 0x80, 8, 0, 8, 0, 1, 0, 4];
    let template = SonicTemplate::from_definition(0, &definition, [(7, "Ethernet0".into())]).expect("a template");
    let template = Arc::new(template);
    for (records_per_batch, expected) in
        [(None, vec![8_192, 1_808, 8_192, 1_808]), (NonZeroUsize::new(4_000), vec![8_000, 2_000, 8_000, 2_000])]
    {
        let mut batch = SonicBatch::default();
        for source in 0..2 {
            let bytes = vec![1; 5_000 * 16];
            batch.push(
                source,
                SonicRecords { template: &template, bytes: &bytes, records: 5_000, time_unix_nano: Some(1) },
            );
        }
        let mapping = Arc::new(SonicMapping { records_per_batch, ..SonicMapping::default() });
        let payloads = payloads(Collected::Sonic { batch, mapping, emit: Emit::Encoded }, SignalType::Metrics);
        assert_eq!(payloads.iter().map(|(items, _)| *items).collect::<Vec<_>>(), expected);
    }
}
