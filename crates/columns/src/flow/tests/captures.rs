//! Captures of real exporters: every record comes out, the same whichever way it is decoded.

use std::collections::HashMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use catchment_capture::{Item, Reader};

use super::*;

/// The folder of further captures, if the environment names one; says so if not.
fn further_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("CATCHMENT_IPFIX_CAPTURES").map(PathBuf::from);
    if folder.is_none() {
        // Written past the test harness, which would keep it to itself.
        let note = "SKIPPED: CATCHMENT_IPFIX_CAPTURES is not set, further captures are not decoded";
        writeln!(std::io::stderr(), "{note}").expect("standard error");
    }
    folder
}

/// All that a capture holds, with one session for each pair of addresses.
fn admitted(path: &Path) -> FlowBatch {
    let mut sessions = HashMap::new();
    let (mut batch, mut out) = (FlowBatch::default(), Admitted::default());
    for item in Reader::open(path).expect("a capture file") {
        let Ok(Item::Packet(packet)) = item else { continue };
        let ends = (packet.source, packet.destination);
        let session = sessions.entry(ends).or_insert_with(|| Session::new(Transport::Udp, Limits::default()));
        out.clear();
        session.admit(&packet.payload, &mut out);
        let receipt = FlowReceipt { time_unix_nano: packet.time_unix_nano.unwrap_or(NOON), exporter: packet.source };
        let _ = batch.push(&packet.payload, &mut out, receipt);
    }
    batch
}

fn decoded(mut job: FlowJob, by_record: bool) -> (Vec<Value>, FlowCounts) {
    job.by_record = by_record;
    let mut out = Vec::new();
    for records in job.run().expect("decoded") {
        records_json::objects(&records, |object| out.push(object)).expect("readable");
    }
    (out, job.counts())
}

/// Field by field, record by record, and from a payload, under both schemas.
#[test]
fn every_record_comes_out() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ipfix/tests/data");
    let mut captures = 0;
    for folder in [Some(own), further_folder()].into_iter().flatten() {
        for entry in std::fs::read_dir(&folder).expect("the folder of captures") {
            let path = entry.expect("an entry").path();
            // Long ones are many times the same.
            let is_short = path.metadata().is_ok_and(|metadata| metadata.len() < 60_000);
            if path.extension().is_none_or(|extension| extension != "pcap") || !is_short {
                continue;
            }
            captures += 1;
            let records = admitted(&path).len();
            for schema in [FlowSchema::Otel, FlowSchema::Ipfix] {
                let mapping = FlowMapping { schema, ..FlowMapping::default() };
                let job = || FlowJob::with_mapping(admitted(&path), &mapping);
                let (all, counts) = decoded(job(), false);
                assert_eq!((all.len(), counts.records), (records, records as u64), "{}", path.display());
                let payload = encoded::encode(&admitted(&path), &mapping);
                let (batch, read) = encoded::decode(&payload).expect("a payload");
                let from_payload = decoded(FlowJob::with_mapping(batch, &read), false);
                for (others, other_counts) in [decoded(job(), true), from_payload] {
                    assert_eq!(other_counts, counts, "{}", path.display());
                    let different = others.iter().zip(&all).find(|(other, one)| other != one);
                    assert_eq!(different, None, "{}", path.display());
                }
            }
        }
    }
    assert!(captures >= 5, "{captures}");
}
