//! The codec as the engine uses it.

use catchment_columns::flow::{FlowBatch, FlowMapping, FlowReceipt};
use catchment_columns::sonic::{SonicBatch, SonicMapping};
use catchment_ipfix::sonic::{SonicRecords, SonicTemplate};
use catchment_ipfix::{Admitted, Limits, Session, Transport};
use otel_arrow_dfe_pdata_codec::{CodecService, EncodedPdata, OtapPayload};

use super::*;

/// A batch of datagrams with so many records of one byte each.
fn flows(datagrams: &[usize]) -> FlowBatch {
    let mut session = Session::new(Transport::Udp, Limits::default());
    let (mut batch, mut admitted) = (FlowBatch::default(), Admitted::default());
    for records in datagrams {
        let mut message = vec![0, 10];
        message.extend(u16::try_from(32 + records).expect("fits a message").to_be_bytes());
        message.extend([0; 12]);
        message.extend([0, 2, 0, 12, 1, 0, 0, 1, 0, 4, 0, 1, 1, 0]);
        message.extend(u16::try_from(4 + records).expect("fits a set").to_be_bytes());
        message.extend(vec![6; *records]);
        admitted.clear();
        session.admit(&message, &mut admitted);
        assert_eq!(batch.push(&message, &mut admitted, FlowReceipt { time_unix_nano: 1, exporter: None }), *records);
    }
    batch
}

fn flow_payload(records: usize) -> Vec<u8> {
    flow::encoded::encode(&flows(&[records]), &FlowMapping::default())
}

/// Records of two sources, with two counters each.
fn sonic(records: usize) -> SonicBatch {
    let definition = [1, 0, 0, 2, 0x80, 7, 0, 1, 0, 1, 0, 4, 0x80, 8, 0, 1, 0, 1, 0, 4];
    let template = SonicTemplate::from_definition(0, &definition, [(7, "Ethernet0".into())]).expect("a template");
    let (template, bytes) = (Arc::new(template), vec![1; records * 2]);
    let mut batch = SonicBatch::default();
    for source in 0..2 {
        batch.push(source, SonicRecords { template: &template, bytes: &bytes, records, time_unix_nano: Some(1) });
    }
    batch
}

/// Payloads of the parts of a batch, counted and decoded by the engine. Gives the items of each.
fn through_engine(payloads: Vec<Vec<u8>>, signal: SignalType) -> Vec<usize> {
    let service = CodecService::new().expect("registry");
    let items = payloads.into_iter().map(|payload| {
        let encoded = EncodedPdata::new(service.registry(), &IPFIX_BATCH, signal, payload.into());
        let mut payload: OtapPayload = encoded.expect("registered").into();
        let counted = payload.num_items();
        let records = payload.try_into_otap(&service).expect("decoded");
        assert_eq!(records.num_items(), counted);
        let root = records.root_record_batch().is_some();
        assert!(root && matches!(records, OtapArrowRecords::Logs(_)) == (signal == SignalType::Logs));
        counted
    });
    items.collect()
}

/// The engine finds the codec by its name, counts without decoding, and decodes flows, however many a batch or a datagram has.
#[test]
fn flows_through_the_engine() {
    for (datagrams, expected) in [
        (&[3][..], &[3][..]),
        (&[8_000, 1_000], &[8_192, 808]),
        (&[20_000], &[8_192, 8_192, 3_616]),
        (&[8_191, 60_000], &[8_192, 8_192, 8_192, 8_192, 8_192, 8_192, 8_192, 8_192, 2_655]),
    ] {
        let mapping = FlowMapping::default();
        let parts = flows(datagrams).split(&mapping);
        let payloads = parts.iter().map(|part| flow::encoded::encode(part, &mapping)).collect();
        assert_eq!(through_engine(payloads, SignalType::Logs), expected);
    }
}

/// The same for SONiC's points.
#[test]
fn points_through_the_engine() {
    for (records, expected) in [(3, &[6, 6][..]), (5_000, &[8_192, 1_808, 8_192, 1_808])] {
        let mapping = SonicMapping::default();
        let parts = sonic(records).split(&mapping);
        let payloads = parts.iter().map(|part| sonic::encoded::encode(part, &mapping)).collect();
        assert_eq!(through_engine(payloads, SignalType::Metrics), expected);
    }
}

fn error(signal: SignalType, payload: Vec<u8>) -> String {
    let error = Decoder.decode(signal, &payload.into()).expect_err("refused");
    format!("{error:?} {:?}", std::error::Error::source(&error).map(ToString::to_string))
}

/// A payload under another signal is an error that says what it holds.
#[test]
fn kinds_belong_to_signals() {
    let sonic_payload =
        || sonic::encoded::encode(&sonic(1).split(&SonicMapping::default())[0], &SonicMapping::default());
    for (signal, payload, said) in [
        (SignalType::Logs, sonic_payload(), "content of kind 2, expected 1"),
        (SignalType::Metrics, flow_payload(1), "content of kind 1, expected 2"),
    ] {
        assert_eq!(count(signal, &payload), None);
        let error = error(signal, payload);
        assert!(error.contains(said), "{error}");
    }
    assert_eq!(count(SignalType::Traces, &flow_payload(1)), None);
    assert!(error(SignalType::Traces, flow_payload(1)).contains("expected logs or metrics"));
}

/// Damage and payloads larger than a batch are errors that say so; one of nothing is none.
#[test]
fn bad_payloads_are_refused() {
    let too_large = error(SignalType::Logs, flow_payload(20_000));
    assert!(too_large.contains("20000 records or points become 3 batches"), "{too_large}");
    let too_large = error(SignalType::Metrics, sonic::encoded::encode(&sonic(3), &SonicMapping::default()));
    assert!(too_large.contains("12 records or points become 2 batches"), "{too_large}");
    let nothing = sonic::encoded::encode(&SonicBatch::default(), &SonicMapping::default());
    for (signal, payload) in [(SignalType::Logs, flow_payload(0)), (SignalType::Metrics, nothing)] {
        assert!(Decoder.decode(signal, &payload[..payload.len() - 1].to_vec().into()).is_err());
        let records = Decoder.decode(signal, &payload.into()).expect("nothing");
        assert_eq!(records.num_items(), 0);
        assert_eq!(matches!(records, OtapArrowRecords::Logs(_)), signal == SignalType::Logs);
    }
}
