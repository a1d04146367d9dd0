//! Templates, sessions and payloads of SONiC telemetry, made here; and reading metrics back.
#![allow(dead_code, reason = "each test file uses some of it")]

pub mod read;

use catchment_ipfix::sonic::{SessionRow, SonicLimits, SonicSessions};

/// A message of one set.
pub fn message(set: u16, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + content.len()).expect("fits a message");
    let mut bytes = vec![0, 10];
    bytes.extend(length.to_be_bytes());
    bytes.extend([0; 12]);
    bytes.extend(set.to_be_bytes());
    bytes.extend((length - 16).to_be_bytes());
    bytes.extend_from_slice(content);
    bytes
}

/// A session of one template, 256: the time and `counters` counters of 8 bytes, of ports with four statistics each.
pub fn session(counters: usize) -> SessionRow {
    let mut template = vec![1, 0];
    template.extend(u16::try_from(counters + 1).expect("few").to_be_bytes());
    template.extend([1, 69, 0, 8]);
    for counter in 0..counters {
        let (label, statistic) = (counter / 4 + 1, [0, 1, 4, 9][counter % 4]);
        template.extend((0x8000 | u16::try_from(label).expect("few")).to_be_bytes());
        template.extend([0, 8, 0, 1, 0, statistic]);
    }
    let labels: Vec<_> = (1..=counters.div_ceil(4)).collect();
    let list = |text: &dyn Fn(&usize) -> String| labels.iter().map(text).collect::<Vec<_>>().join(",");
    SessionRow {
        stream_status: "enabled".into(),
        session_type: "ipfix".into(),
        object_names: list(&|label| format!("Ethernet{}", label * 4)),
        object_ids: list(&|label| label.to_string()),
        session_config: message(2, &template),
    }
}

/// Sessions with that one.
pub fn sessions(counters: usize) -> SonicSessions {
    let mut sessions = SonicSessions::new(SonicLimits::default());
    let _ = sessions.apply("profile|PORT", &session(counters)).expect("a good session");
    sessions
}

/// A message with `records` records of the template of [`session`], the first taken at `time`.
pub fn data(counters: usize, records: usize, time: u64) -> Vec<u8> {
    let mut content = Vec::with_capacity(records * (counters + 1) * 8);
    for record in 0..records as u64 {
        content.extend((time + record).to_be_bytes());
        content.extend((0..counters as u64).flat_map(|counter| (time + counter * 1_000 + record).to_be_bytes()));
    }
    message(256, &content)
}
