use serde_json::{Value, json};

use super::*;
use crate::Input;

/// The error of settings under `sampling`, with its key.
fn error(config: Value, input: Input) -> String {
    match serde_path_to_error::deserialize::<_, SamplingConfig>(config.clone()) {
        Err(error) => error.to_string(),
        Ok(read) => match read.compile(input, 0) {
            Err(error) => error.to_string(),
            Ok(_) => panic!("{config} is accepted"),
        },
    }
}

/// All keys in all their forms.
#[test]
fn forms() {
    let config: SamplingConfig = serde_json::from_value(json!({
        "seed": 7,
        "policies": [
            {"always_keep": {"severity": "err", "hosts": ["a"], "apps": ["b"], "sources": ["192.0.2.1", "2001:db8::/32"]}},
            {"trace_flag": {"unsampled": "pass"}},
            {"trace_ratio": 1},
            {"trace_ratio": {"ratio": 0.5, "incoming": "ignore"}},
            {"key_hash": {"ratio": 0.1, "key": "host"}},
            {"key_hash": {"ratio": 0.1, "key": ["host", "app", "source"]}},
            {"rate_limit": {"per_second": 1000}},
        ],
    }))
    .expect("settings");
    assert!(config.compile(Input::Syslog, 0).is_ok());
    let one = |policy: Value| serde_json::from_value::<PolicyConfig>(policy).expect("a policy");
    assert_eq!(one(json!({"ratio": 0.1})), one(json!({"ratio": {"ratio": 0.1, "draw": "random"}})));
    assert_eq!(one(json!({"trace_ratio": 1})), one(json!({"trace_ratio": {"ratio": 1.0, "incoming": "equalize"}})));
    assert_eq!(one(json!({"rate_limit": 5})), one(json!({"rate_limit": {"per_second": 5}})));
    let flows: SamplingConfig = serde_json::from_value(json!({"policies": [
        {"always_keep": {"sources": ["::ffff:192.0.2.1"]}},
        {"key_hash": {"ratio": 0, "key": ["exporter", "flow", "source"]}},
        {"ratio": {"ratio": 0.5, "draw": "systematic"}},
    ]}))
    .expect("settings");
    assert!(flows.compile(Input::Flows, 3).is_ok());
}

/// Errors name the key at fault and say what would be right.
#[test]
fn errors() {
    let policies = |policies: Value| json!({"policies": policies});
    for (config, input, parts) in [
        (json!({}), Input::Syslog, ["policies", "missing field"]),
        (json!({"policies": [], "sead": 1}), Input::Syslog, ["sead", "expected `seed` or `policies`"]),
        (policies(json!([])), Input::Syslog, ["policies: is empty", "at least one"]),
        (policies(json!([{"rato": 1}])), Input::Syslog, ["policies[0]", "expected one of `always_keep`"]),
        (policies(json!([{"ratio": "x"}])), Input::Syslog, ["policies[0].ratio", "a ratio from 0 to 1"]),
        (policies(json!([{"ratio": 1.5}])), Input::Syslog, ["policies[0].ratio: 1.5", "expected 0 to 1"]),
        (policies(json!([{"ratio": -1}])), Input::Syslog, ["policies[0].ratio: -1", "expected 0 to 1"]),
        (policies(json!([{"ratio": 1e-17}])), Input::Syslog, ["policies[0].ratio: ", "2^-56"]),
        (policies(json!([{"ratio": {"ratio": 0.5, "draws": 1}}])), Input::Syslog, ["draws", "`ratio` or `draw`"]),
        (policies(json!([{"trace_ratio": 2}])), Input::Syslog, ["policies[0].trace_ratio: 2", "0 to 1"]),
        (policies(json!([{"trace_flag": {}}])), Input::Syslog, ["policies[0].trace_flag", "`unsampled`"]),
        (
            policies(json!([{"trace_flag": {"unsampled": "no"}}])),
            Input::Syslog,
            ["policies[0].trace_flag.unsampled", "expected one of `drop`, `keep`, `pass`"],
        ),
        (policies(json!([{"always_keep": {}}])), Input::Syslog, ["policies[0].always_keep", "expected severity"]),
        (
            policies(json!([{"always_keep": {"severity": "error"}}])),
            Input::Syslog,
            ["policies[0].always_keep.severity", "`err`"],
        ),
        (
            policies(json!([{"always_keep": {"sources": ["a"]}}])),
            Input::Syslog,
            ["policies[0].always_keep.sources[0]: `a`", "192.0.2.0/24"],
        ),
        (
            policies(json!([{"always_keep": {"hosts": ["a", ""]}}])),
            Input::Syslog,
            ["policies[0].always_keep.hosts[1]", "expected a name"],
        ),
        (
            policies(json!([{"always_keep": {"severity": "err"}}])),
            Input::Flows,
            ["policies[0].always_keep.severity", "expected sources"],
        ),
        (
            policies(json!([{"trace_ratio": 0.5}])),
            Input::Flows,
            ["policies[0].trace_ratio: records of flows belong to no trace", "expected always_keep"],
        ),
        (
            policies(json!([{"key_hash": {"ratio": 0.5, "key": "flow"}}])),
            Input::Syslog,
            ["policies[0].key_hash.key: messages have no flow", "host, app, source"],
        ),
        (
            policies(json!([{"key_hash": {"ratio": 0.5, "key": ["host"]}}])),
            Input::Flows,
            ["policies[0].key_hash.key: records of flows have no host", "source, exporter, flow"],
        ),
        (
            policies(json!([{"key_hash": {"ratio": 0.5, "key": []}}])),
            Input::Flows,
            ["policies[0].key_hash.key: is empty", "source, exporter, flow"],
        ),
        (
            policies(json!([{"key_hash": {"ratio": 0.5, "key": ["host", "host"]}}])),
            Input::Syslog,
            ["policies[0].key_hash.key: host", "once"],
        ),
        (
            policies(json!([{"key_hash": {"ratio": 0.5, "key": "hosts"}}])),
            Input::Syslog,
            ["policies[0].key_hash.key", "`host`"],
        ),
        (
            policies(json!([{"key_hash": {"ratio": 5, "key": "host"}}])),
            Input::Syslog,
            ["policies[0].key_hash.ratio: 5", "0 to 1"],
        ),
        (policies(json!([{"rate_limit": 0}])), Input::Syslog, ["policies[0].rate_limit.per_second: 0", "0.01"]),
        (
            policies(json!([{"rate_limit": {"per_second": 10, "hard_cap": 9}}])),
            Input::Syslog,
            ["policies[0].rate_limit.hard_cap: 9", "per_second (10) or more"],
        ),
        (
            policies(json!([{"always_keep": {"severity": "err"}}, {"ratio": 0.5}, {"rate_limit": 1}])),
            Input::Syslog,
            ["policies[2].rate_limit: is never reached, as policies[1] (ratio)", "expected it last"],
        ),
    ] {
        let found = error(config.clone(), input);
        assert!(parts.iter().all(|part| found.contains(part)), "{config}: {found}");
        assert!(!found.starts_with(char::is_uppercase) && !found.ends_with('.'), "{found}");
    }
}
