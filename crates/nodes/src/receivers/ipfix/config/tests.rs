use serde_json::{Value, json};

use super::*;

fn udp(more: Value) -> Value {
    let mut config = json!({"udp": {"listening_addr": "0.0.0.0:4739"}});
    let (Some(all), Value::Object(more)) = (config.as_object_mut(), more) else { unreachable!("maps") };
    all.extend(more);
    config
}

fn refused(value: Value) -> String {
    Config::parse(&value).expect_err("refused").to_string()
}

/// What is left out has the value that the README tells.
#[test]
fn defaults() {
    let config = Config::parse(&udp(json!({}))).expect("valid");
    assert_eq!((config.max_exporters, config.max_templates, config.exporter_metrics), (4_096, 2_048, 64));
    assert_eq!((config.profile, config.signal()), (Profile::Flows, Signal::Logs));
    assert_eq!((config.batch.max_messages, config.batch.max_bytes), (8_192, 2 * 1024 * 1024));
    assert_eq!(config.udp.as_ref().map(|udp| udp.steering), Some(Steering::Address));
    let limits = config.collector_limits();
    assert_eq!(limits.session.template_lifetime, Some(Duration::from_secs(3_600)));
    assert_eq!(limits.pending.map(|pending| pending.bytes_per_session), Some(1024 * 1024));
}

/// Keys of a batch that are left out keep the defaults of this receiver.
#[test]
fn a_part_of_the_batch_settings() {
    let config = Config::parse(&udp(json!({"batch": {"max_duration": "1s"}}))).expect("valid");
    assert_eq!((config.batch.max_messages, config.batch.max_duration), (8_192, Duration::from_secs(1)));
    let config = Config::parse(&udp(json!({"batch": {"max_messages": 7, "max_bytes": "4 KiB"}}))).expect("valid");
    assert_eq!((config.batch.max_messages, config.batch.max_bytes), (7, 4_096));
}

/// Nothing is held back if that is asked for.
#[test]
fn pending_can_be_switched_off() {
    let config = Config::parse(&udp(json!({"pending": {"max_bytes_per_exporter": 0}}))).expect("valid");
    assert_eq!(config.collector_limits().pending, None);
}

/// Errors name the key at fault and say what would be right.
#[test]
fn errors_name_the_key() {
    for (value, expected) in [
        (Value::Null, "`udp`, `tcp`, `netlink`, `unix`, `replay`"),
        (json!({"udp": {"listening_addr": "0.0.0.0:4739", "port": 1}}), "config.udp.port"),
        (json!({"udp": {"listening_addr": "0.0.0.0:1", "receive_buffer": 1}}), "udp.receive_buffer"),
        (json!({"tcp": {"listening_addr": "0.0.0.0:1", "max_connections": 0}}), "tcp.max_connections"),
        (json!({"replay": {"path": ""}}), "config.replay.path"),
        (udp(json!({"max_exporters": 0})), "max_exporters"),
        (udp(json!({"schema": "ecs"})), "config.schema"),
        (udp(json!({"template_lifetime": "5s"})), "template_lifetime (s): 5"),
        (udp(json!({"template_cache": {"path": ""}})), "template_cache.path"),
        (udp(json!({"signal": "metrics"})), "at least one rule"),
        (udp(json!({"metrics": [{"elements": ["octetDeltaCount"]}]})), "expected `signal: metrics`"),
        (udp(json!({"signal": "metrics", "metrics": [{"elements": []}]})), "config.metrics: rule 0"),
        (udp(json!({"signal": "metrics", "metrics": [{"elements": ["octets"]}]})), "\"octets\""),
        (
            udp(json!({"signal": "metrics", "metrics": [{"elements": ["octetDeltaCount"], "keys": ["port"]}]})),
            "\"port\"",
        ),
        (
            udp(
                json!({"signal": "metrics", "metrics": [{"elements": ["octetDeltaCount", "packetDeltaCount"], "name": "x"}]}),
            ),
            "is for 2 elements",
        ),
        (udp(json!({"signal": "metrics", "metrics": [{"elements": ["9/x"]}]})), "config.metrics[0].elements[0]: `9/x`"),
        (udp(json!({"emit": "encoded", "parent_ids": "transport"})), "config.parent_ids"),
        (udp(json!({"profile": "sonic_hft"})), "expected `files` or `redis`"),
        (udp(json!({"profile": "sonic_hft", "signal": "logs"})), "config.signal"),
        (udp(json!({"sonic": {"names": "legacy"}})), "config.sonic: is of `profile: sonic_hft`"),
        (
            udp(json!({"profile": "sonic_hft", "sonic": {"sessions": {"files": ["a"]}}, "pending": {}})),
            "config.pending: is of `profile: flows`",
        ),
        (udp(json!({"pending": "off"})), "config.pending: invalid type: string \"off\", expected a map"),
        (udp(json!({"template_cache": "a"})), "config.template_cache: invalid type: string \"a\", expected a map"),
        (udp(json!({"batch": {"max_records": 100_000}})), "config.batch.max_records: 100000"),
        (udp(json!({"netlink": {}})), "config.netlink"),
        (
            udp(json!({"profile": "sonic_hft", "sonic": {"sessions": {"files": ["a"]}, "cumulative": [""]}})),
            "config.sonic.cumulative",
        ),
        (
            udp(
                json!({"profile": "sonic_hft", "sonic": {"sessions": {"files": ["a"]}, "cumulative": ["x".repeat(20_000)]}}),
            ),
            "config.sonic.cumulative (bytes of all): 20000",
        ),
        (udp(json!({"profile": "sonic_hft", "sonic": {"sessions": {"redis": {}}}})), "sonic.sessions.redis.url"),
    ] {
        let error = refused(value);
        assert!(error.contains(expected), "{error} does not say {expected}");
    }
}

/// Elements by name, by number as text or not, and with their enterprise.
#[test]
fn elements_of_metrics() {
    let rules = |elements| udp(json!({"signal": "metrics", "metrics": [{"elements": elements}]}));
    let expected = Config::parse(&rules(json!(["octetDeltaCount", "9/8232"]))).and_then(|config| config.metric_rules());
    let expected = expected.expect("valid");
    for elements in [json!([1, "9/8232"]), json!(["1", "9/8232"]), json!(["0/1", "9/8232"])] {
        let found = Config::parse(&rules(elements)).and_then(|config| config.metric_rules());
        assert_eq!(found.expect("valid"), expected);
    }
    assert!(refused(rules(json!([true]))).contains("config.metrics[0].elements[0]: invalid type: boolean"));
}

/// SONiC's telemetry gives metrics by itself, and what every core would get whole is for one core.
#[test]
fn sonic_is_metrics_on_one_core() {
    let config = json!({
        "profile": "sonic_hft",
        "netlink": {"family": "sonic_stel", "group": "ipfix"},
        "sonic": {
            "names": "legacy",
            "attributes_at": "resource",
            "cumulative": ["SAI_PORT_STAT_IF_*_OCTETS"],
            "sessions": {"redis": {"unix_socket": "/var/run/redis/redis.sock"}},
        },
    });
    let config = Config::parse(&config).expect("valid");
    assert_eq!(config.signal(), Signal::Metrics);
    assert!(config.check_cores(1).is_ok());
    assert!(config.check_cores(2).expect_err("refused").to_string().contains("config.netlink"));
}

/// A map under `sampling` says which records are kept, a word what becomes of packet sampling, which has a key of its own too.
#[test]
fn both_kinds_of_sampling() {
    let with = |more| Config::parse(&udp(more)).expect("valid");
    let applies = |config: &Config| config.flow_mapping().sampling == catchment_columns::flow::SamplingUse::Apply;
    let plain = with(json!({}));
    assert!(plain.head_sampling().is_none() && !applies(&plain));
    for more in [json!({"sampling": "apply"}), json!({"packet_sampling": "apply"})] {
        let config = with(more);
        assert!(config.head_sampling().is_none() && applies(&config));
    }
    let both = with(json!({"packet_sampling": "apply", "sampling": {"seed": 1, "policies": [{"ratio": 0.5}]}}));
    assert!(applies(&both));
    assert_eq!(both.head_sampling().map(|sampling| sampling.policies.len()), Some(1));
    for (value, expected) in [
        (udp(json!({"sampling": "keep", "packet_sampling": "keep"})), "config.sampling: a word"),
        (udp(json!({"sampling": "some"})), "config.sampling: unknown variant `some`, expected `keep` or `apply`"),
        (udp(json!({"sampling": 0.1})), "a map with `policies`, or `keep` or `apply`"),
        (udp(json!({"sampling": {"policies": [{"trace_flag": {"unsampled": "drop"}}]}})), "policies[0].trace_flag"),
        (udp(json!({"sampling": {"policies": [{"ratio": {"ratio": 0.5, "drw": 1}}]}})), "config.sampling.policies[0]"),
        (
            json!({"profile": "sonic_hft", "unix": {"path": "/run/x"}, "sampling": {"policies": [{"ratio": 0.5}]}}),
            "cumulative or gauges",
        ),
    ] {
        let error = refused(value);
        assert!(error.contains(expected), "{error}");
    }
}
