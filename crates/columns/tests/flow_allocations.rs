//! What the way from datagrams to log batches allocates: something for each batch, nothing for each record.

use std::net::SocketAddr;

use catchment_columns::flow::{FlowBatch, FlowJob, FlowMapping, FlowReceipt};
use catchment_columns::{Job, OtapArrowRecords, Step};
use catchment_ipfix::{Admitted, Collector, CollectorLimits, SessionKey};
use counting::allocations;

#[path = "common/counting.rs"]
mod counting;

/// Element and length of each field: addresses, ports, protocol, counters, interfaces, times.
const FIELDS: [(u16, u16); 11] =
    [(8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (1, 8), (2, 8), (10, 4), (14, 4), (152, 8), (153, 8)];
const RECORDS: u32 = 24;

fn message(sequence: u32, set_id: u16, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + content.len()).expect("short");
    let mut out = [10, length].map(u16::to_be_bytes).concat();
    out.extend([1_796_040_000, sequence, 7].map(u32::to_be_bytes).concat());
    out.extend([set_id, length - 16].map(u16::to_be_bytes).concat());
    out.extend(content);
    out
}

fn template() -> Vec<u8> {
    let words = [256, 11].into_iter().chain(FIELDS.into_iter().flat_map(|(id, length)| [id, length]));
    message(0, 2, &words.flat_map(u16::to_be_bytes).collect::<Vec<_>>())
}

/// A datagram of records; addresses come again, ports and counters do not.
fn data(number: u32) -> Vec<u8> {
    let mut content = Vec::new();
    for record in 0..RECORDS {
        let seed = (number * RECORDS + record).wrapping_mul(2_654_435_761);
        for (id, length) in FIELDS {
            let value: u64 = match id {
                8 | 12 => 0x0a00_0000 + u64::from(seed % 200),
                4 => 6,
                152 | 153 => 1_796_039_990_000 + u64::from(record),
                _ => u64::from(seed).wrapping_mul(u64::from(id)),
            };
            content.extend(&value.to_be_bytes()[8 - usize::from(length)..]);
        }
    }
    message(number * RECORDS, 256, &content)
}

/// Once an exporter is known, admitting and collecting allocate nothing, and a batch of 8,000 records costs hardly more
/// allocations than one of 1,000: only what grows by doubling does.
#[test]
fn allocations_are_for_batches() {
    let peer: SocketAddr = "192.0.2.1:2055".parse().expect("address");
    let key = SessionKey::Udp { peer, listener: 0 };
    let mut collector = Collector::new(CollectorLimits::default());
    let (mut admitted, mut batch) = (Admitted::default(), FlowBatch::default());
    let _ = collector.admit(key, 0, &template(), &mut admitted);
    let mut round = |datagrams: u32| {
        let datagrams: Vec<Vec<u8>> = (0..datagrams).map(data).collect();
        let (admitting, ()) = allocations(|| {
            for datagram in &datagrams {
                admitted.begin_next();
                let _ = collector.admit(key, 0, datagram, &mut admitted);
                let _ = batch.push(datagram, &mut admitted, FlowReceipt { time_unix_nano: 1, exporter: Some(peer) });
            }
        });
        let mut job = FlowJob::with_mapping(batch.take(), &FlowMapping::default());
        let mut out: Vec<OtapArrowRecords> = Vec::with_capacity(4);
        let (working, ()) = allocations(|| {
            loop {
                match job.step(job.budget()).expect("a step") {
                    Step::Batch(records) => out.push(records),
                    Step::More => {}
                    Step::End => break,
                }
            }
        });
        let records: usize = out.iter().map(OtapArrowRecords::num_items).sum();
        assert_eq!((records, out.len()), (datagrams.len() * RECORDS as usize, 1));
        (admitting, working)
    };
    let _ = round(340);
    let (admitting, large) = round(340);
    assert_eq!(admitting, 0, "of 340 datagrams");
    let _ = round(42);
    let (admitting, small) = round(42);
    assert_eq!(admitting, 0, "of 42 datagrams");
    assert!(large < 600 && large < small + 100, "{large} for 8,160 records, {small} for 1,008");
}
