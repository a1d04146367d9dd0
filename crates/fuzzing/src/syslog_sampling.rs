//! Target for the look of head sampling at messages.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::LazyLock;

use catchment_sampling::{
    Decision, Facts, HEADER_LOOK, Input, Sampler, SamplingConfig, SyslogMessage, TraceParent, TraceState,
};

use crate::syslog::assert_part;

/// Chains of policies that between them ask for everything there is.
const CHAINS: [&str; 4] = [
    r#"{"policies": [{"always_keep": {"severity": "err", "hosts": ["h"], "apps": ["a"], "sources": ["192.0.2.0/25"]}}, {"ratio": 0.5}]}"#,
    r#"{"policies": [{"trace_flag": {"unsampled": "drop"}}, {"key_hash": {"ratio": 0.5, "key": ["host", "app", "source"]}}]}"#,
    r#"{"policies": [{"trace_flag": {"unsampled": "pass"}}, {"trace_ratio": 0.7}, {"key_hash": {"ratio": 0.3, "key": "app"}}, {"rate_limit": 3}]}"#,
    r#"{"policies": [{"trace_ratio": {"ratio": 0.9, "incoming": "ignore"}}, {"ratio": {"ratio": 0.3, "draw": "systematic"}}]}"#,
];

static SAMPLERS: LazyLock<Vec<Sampler>> = LazyLock::new(|| {
    let sampler = |chain: &&str| {
        let config: SamplingConfig = serde_json::from_str(chain).expect("settings");
        config.compile(Input::Syslog, 0).expect("a sampler")
    };
    CHAINS.iter().map(sampler).collect()
});

/// Decides on messages by several chains of policies. The first byte of `input` is the end of the sender's address, or none
/// if it is 0; the messages are parted by 0xff, which no text has.
///
/// Asserted: what is found is part of the message, host and program within the first [`HEADER_LOOK`] bytes, and not empty; a
/// trace is found the same with and without its state, and again where it is written as a program would; decisions repeat,
/// do not depend on messages before where nothing is drawn, and are all counted; no weight is below 1.
pub fn syslog_sampling(input: &[u8]) {
    let (first, rest) = input.split_first().unwrap_or((&0, &[]));
    let source = (*first > 0).then(|| IpAddr::V4(Ipv4Addr::new(192, 0, 2, *first)));
    let messages: Vec<SyslogMessage<'_>> =
        rest.split(|byte| *byte == 0xff).map(|message| SyslogMessage { message, source }).collect();
    for message in &messages {
        check_facts(message);
    }
    for fresh in SAMPLERS.iter() {
        let (mut sampler, mut again) = (fresh.clone(), fresh.clone());
        let mut kept = 0;
        for (at, message) in (0..).zip(&messages) {
            let now = at * 50_000_000;
            let decision = sampler.decide(message, now);
            assert_eq!(again.decide(message, now), decision);
            if let Decision::Keep { weight } = decision {
                kept += 1;
                let weight = sampler.weight(weight);
                assert!(weight.adjusted_count() >= 1.0 && weight.threshold().probability() > 0.0, "{weight:?}");
                assert_eq!(catchment_sampling::Threshold::from_hex(weight.text().as_bytes()), Some(weight.threshold()));
            }
        }
        let counts = sampler.counts();
        assert_eq!((counts.seen, counts.kept), (messages.len() as u64, kept));
        assert_eq!(counts.seen, counts.kept + counts.dropped.iter().sum::<u64>());
    }
    // Of the second chain nothing is drawn: what a message is decides, whatever was before it.
    for message in &messages {
        let decide = |sampler: &mut Sampler, message| matches!(sampler.decide(message, 0), Decision::Keep { .. });
        let (mut fresh, mut used) = (SAMPLERS[1].clone(), SAMPLERS[1].clone());
        for other in messages.iter().take(4) {
            let _before = decide(&mut used, other);
        }
        assert_eq!(decide(&mut fresh, message), decide(&mut used, message));
    }
}

fn check_facts(message: &SyslogMessage<'_>) {
    let bytes = message.message;
    let names = message.names();
    for name in [names.host, names.app].into_iter().flatten() {
        assert!(!name.is_empty() && name != b"-", "{names:?}");
        assert_part(&bytes[..bytes.len().min(HEADER_LOOK)], name);
    }
    assert!(message.severity().is_none_or(|severity| severity <= 7));
    let parent = message.trace_parent();
    assert_eq!(message.trace().map(|(parent, _)| parent), parent);
    let _state = TraceState::from_header(bytes);
    if let Some(parent) = TraceParent::from_header(bytes) {
        let written = [b"x traceparent=\"", bytes, b"\""].concat();
        assert_eq!(TraceParent::find(&written), Some(parent));
    }
}
