//! Streams of OTAP, read by upstream's consumer.

use std::collections::HashSet;

use catchment_delivery::encode::otap::{OtapSettings, OtapStream};
use catchment_delivery::encode::otlp::OtlpEncoder;
use otel_arrow_dfe_pdata::proto::opentelemetry::arrow::v1::BatchArrowRecords;
use otel_arrow_dfe_pdata::{Consumer, OtapArrowRecords};
use proptest::prelude::*;
use prost::Message as _;

mod common;

use common::meaning::{self, Items};
use common::{Random, logs, metrics, otap_logs, otap_metrics, otap_traces, received, traces};

fn items(records: &OtapArrowRecords) -> Items {
    meaning::of_request(records, &OtlpEncoder::new().encode(records).expect("encoded"))
}

/// Sends batches on one stream: each alone, then again, then some as one, with resets in between.
fn all_come_back(batches: &[OtapArrowRecords], level: Option<i32>, random: &mut Random) {
    let mut stream = OtapStream::new(OtapSettings { zstd_level: level }).expect("a stream");
    let mut consumer = Consumer::default();
    for round in 0..3 {
        let mut rest = batches;
        while !rest.is_empty() {
            let (together, others) = rest.split_at(1 + random.below(rest.len() as u64) as usize % 3);
            rest = others;
            let together: Vec<&OtapArrowRecords> = together.iter().collect();
            let expected = together.iter().map(|records| items(records)).reduce(Items::and).expect("at least one");
            for _ in 0..2 {
                let message = stream.encode(7, &together).expect("encoded");
                if message.is_empty() {
                    assert_eq!(expected.len(), 0);
                    continue;
                }
                let payloads = BatchArrowRecords::decode(message.as_ref()).expect("a message").arrow_payloads;
                let ids: HashSet<_> = payloads.iter().map(|payload| &payload.schema_id).collect();
                assert_eq!(ids.len(), payloads.len(), "schema ids of payloads");
                let received = received(&mut consumer, &message, together[0]);
                items(&received).assert_same(&expected, &format!("round {round}"));
            }
        }
        if random.below(2) == 0 {
            stream.reset();
            consumer = Consumer::default();
        }
    }
}

fn stream_of(seed: u64, make: impl Fn(&mut Random) -> OtapArrowRecords) {
    let mut random = Random(seed);
    let mut batches: Vec<_> = (0..4).map(|_| make(&mut random)).collect();
    if seed.is_multiple_of(3) {
        for records in &mut batches {
            records.encode_transport_optimized().expect("encoded");
        }
    }
    let level = [None, Some(1), Some(3)][random.below(3) as usize];
    all_come_back(&batches, level, &mut random);
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(24))]

    /// Log records come back whatever was sent before.
    #[test]
    fn logs_come_back(seed in any::<u64>()) {
        stream_of(seed, |random| otap_logs(&logs(random)));
    }

    /// Points come back whatever was sent before.
    #[test]
    fn metrics_come_back(seed in any::<u64>()) {
        stream_of(seed, |random| otap_metrics(&metrics(random)));
    }

    /// Spans come back whatever was sent before.
    #[test]
    fn traces_come_back(seed in any::<u64>()) {
        stream_of(seed, |random| otap_traces(&traces(random)));
    }
}
