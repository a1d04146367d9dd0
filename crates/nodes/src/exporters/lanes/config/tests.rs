//! What is right, what is wrong, and how that is said.

use serde_json::json;

use super::*;

const ALL: [&str; 3] = ["otap", "otlp_grpc", "otlp_http"];

/// `config` with an address, for a protocol.
fn parse(protocol: &str, mut config: Value) -> Result<Config, Error> {
    let map = config.as_object_mut().expect("a map");
    let _ = map.insert("protocol".to_owned(), protocol.into());
    let _ = map.entry("client").or_insert_with(|| json!({"endpoint": "http://localhost:4317"}));
    Config::parse(&config)
}

fn refused(protocol: &str, config: Value) -> String {
    parse(protocol, config).expect_err("refused").to_string()
}

/// An address is enough. OTAP is compressed inside, OTLP not at all, because not every server can read it.
#[test]
fn defaults() {
    for protocol in ALL {
        let config = parse(protocol, json!({})).expect("valid");
        assert_eq!((config.count.get(), config.key), (4, LaneKey::Peer));
        assert_eq!(config.compression, Compression::None);
        assert_eq!(config.ipc_level, (protocol == "otap").then_some(1));
        assert_eq!(config.lane.attempt_timeout.as_secs(), if protocol == "otap" { 30 } else { 10 });
        let expected = LaneSettings { attempt_timeout: config.lane.attempt_timeout, ..LaneSettings::default() };
        assert_eq!(config.lane, expected);
    }
}

/// Every setting of lanes arrives where it belongs.
#[test]
fn all_settings() {
    let config = parse(
        "otap",
        json!({
            "client": {
                "endpoint": "https://collector:4317", "headers": {"x-tenant": "a"}, "connect_timeout": "2s",
                "tls": {"ca_file": "/ca.pem", "cert_file": "/c.pem", "key_file": "/k.pem"},
            },
            "connection": {"max_age": "10m"},
            "lanes": {
                "count": 3, "key": "header:X-Tenant", "max_queue_batches": 5, "max_queue_bytes": "2 MiB",
                "on_full": "drop_oldest", "close_timeout": "3s",
            },
            "batch": {"min_items": 100, "max_items": 1000, "max_bytes": "1 MiB", "max_delay": "200ms"},
            "request": {"max_bytes": "8 MiB", "max_response_bytes": "1 MiB", "attempt_timeout": "20s"},
            "compression": {"codec": "gzip", "level": 9, "layer": "message"},
            "retry": {
                "initial": "100ms", "max": "10s", "multiplier": 1.5, "jitter": "full", "max_server_delay": "1m",
                "max_elapsed": "none", "on_exhausted": "permanent", "resource_exhausted": "strict",
                "budget": {"per_second": 2.5, "burst": 7},
            },
            "stream": {
                "max_lifetime": "none", "max_batches": 9, "status_timeout": "15s", "close_timeout": "2s",
                "downgrade": "never", "probe_after": "1m",
            },
            "drain": {"margin": "1s", "timeout": "7s"},
        }),
    )
    .expect("valid");
    assert_eq!((config.count.get(), config.key), (3, LaneKey::Header("x-tenant".to_owned())));
    let lane = &config.lane;
    assert_eq!((lane.max_queue_batches, lane.max_queue_bytes, lane.close_timeout.as_secs()), (5, 2 << 20, 3));
    assert_eq!((lane.batch.min_items, lane.batch.max_items, lane.batch.max_bytes), (100, 1_000, 1 << 20));
    assert_eq!((lane.batch.max_delay.as_millis(), lane.attempt_timeout.as_secs()), (200, 20));
    assert_eq!((lane.retry.initial.as_millis(), lane.retry.max.as_secs(), lane.retry.multiplier), (100, 10, 1.5));
    assert_eq!((lane.retry.max_server_delay.as_secs(), lane.retry.max_elapsed), (60, None));
    assert_eq!((config.max_request_bytes, config.max_response_bytes), (8 << 20, 1 << 20));
    assert_eq!((config.compression, config.ipc_level), (Compression::Gzip(9), None));
    assert!(config.exhausted_is_permanent && config.resource_exhausted == ResourceExhausted::Strict);
    assert_eq!(config.budget, Some((2.5, 7)));
    let stream = &config.stream;
    assert_eq!((stream.max_lifetime, stream.max_batches, stream.downgrade), (None, Some(9), None));
    assert_eq!((stream.status_timeout.as_secs(), stream.close_timeout.as_secs()), (15, 2));
    assert_eq!((config.max_connection_age.map(|age| age.as_secs()), config.margin.as_secs()), (Some(600), 1));
    assert_eq!(config.drain_timeout.as_secs(), 7);
    let Client::Grpc(client) = config.client else { panic!("gRPC") };
    assert_eq!((client.grpc_endpoint.as_str(), client.headers.len()), ("https://collector:4317", 1));
}

/// Signals go to the paths of the specification, or wherever they are sent.
#[test]
fn addresses_of_http() {
    let targets = |client: Value| match parse("otlp_http", json!({"client": client})).expect("valid").client {
        Client::Http(client) => client.targets.map(|target| target.to_string()),
        Client::Grpc(_) => panic!("HTTP"),
    };
    assert_eq!(
        targets(json!({"endpoint": "http://host:4318/base", "traces_endpoint": "https://other/t"})),
        ["http://host:4318/base/v1/logs", "http://host:4318/base/v1/metrics", "https://other/t"]
    );
    let all = json!({"logs_endpoint": "http://a/l", "metrics_endpoint": "http://b/m", "traces_endpoint": "http://c/t"});
    assert_eq!(targets(all), ["http://a/l", "http://b/m", "http://c/t"]);
}

/// The key at fault is named, and what would be right.
#[test]
fn errors_say_what_is_right() {
    let cases = [
        ("otap", json!({"lane": {}}), "config.lane: unknown field `lane`"),
        (
            "otlp",
            json!({}),
            "config.protocol: unknown variant `otlp`, expected one of `otap`, `otlp_grpc`, `otlp_http`",
        ),
        ("otap", json!({"lanes": {"key": "host"}}), "config.lanes.key: `host` is no key, expected `peer`"),
        ("otap", json!({"lanes": {"key": "header:"}}), "`header:` is no key"),
        ("otap", json!({"lanes": {"key": "single", "count": 2}}), "config.lanes.count: 2, expected 1"),
        ("otap", json!({"lanes": {"count": 0}}), "config.lanes.count: 0 is out of range, expected 1 to 1024"),
        ("otap", json!({"batch": {"min_items": 9, "max_items": 8}}), "config.batch.min_items: 9"),
        ("otap", json!({"retry": {"max": "1ms"}}), "config.retry.max: 1ms is out of range, expected 200ms"),
        ("otap", json!({"retry": {"max_elapsed": "never"}}), "or `none`"),
        ("otap", json!({"stream": {"status_timeout": "31s"}}), "no longer than `request.attempt_timeout`"),
        ("otlp_grpc", json!({"stream": {}}), "config.stream: belongs to `protocol: otap`"),
        ("otlp_grpc", json!({"compression": {"codec": "zstd", "layer": "ipc"}}), "expected `message`"),
        ("otap", json!({"compression": {"codec": "gzip", "layer": "ipc"}}), "Arrow has no gzip"),
        ("otap", json!({"compression": {"codec": "zstd", "level": 23}}), "config.compression.level: 23"),
        ("otap", json!({"compression": {"codec": "none", "level": 1}}), "config.compression.level: nothing"),
        ("otap", json!({"client": {}}), "config.client.endpoint: missing"),
        ("otap", json!({"client": {"endpoint": "localhost:4317"}}), "config.client.endpoint: `localhost:4317` is no"),
        ("otap", json!({"client": {"endpoint": "http://a", "timeout": "1s"}}), "use `config.request.attempt_timeout`"),
        ("otap", json!({"client": {"endpoint": "http://a", "logs_endpoint": "http://b"}}), "`protocol: otlp_http`"),
        (
            "otap",
            json!({"client": {"endpoint": "http://a", "tls": {"ca_fil": "x"}}}),
            "config.client.tls.ca_fil: unknown",
        ),
        ("otap", json!({"client": {"endpoint": "http://a", "tls": {"ca_file": "x"}}}), "expected https://"),
        ("otap", json!({"client": {"endpoint": "https://a", "tls": {"cert_file": "x"}}}), "expected both or neither"),
        (
            "otap",
            json!({"client": {"endpoint": "https://a", "tls": {"insecure_skip_verify": true}}}),
            "always verified",
        ),
        ("otap", json!({"client": {"endpoint": "http://a", "headers": {"te": "x"}}}), "reserved"),
        ("otlp_http", json!({"client": {"endpoint": "http://a", "headers": {"host": "x"}}}), "reserved"),
        ("otlp_http", json!({"client": {"logs_endpoint": "http://a"}}), "all three"),
        ("otlp_http", json!({"client": {"endpoint": "http://a", "http2_adaptive_window": true}}), "unknown field"),
    ];
    for (protocol, config, expected) in cases {
        let text = refused(protocol, config);
        assert!(text.contains(expected), "{text}\nhas not: {expected}");
    }
    let missing = Config::parse(&Value::Null).expect_err("refused").to_string();
    assert!(missing.contains("missing field `protocol`"), "{missing}");
}

/// Values of headers are secrets.
#[test]
fn secrets_are_not_shown() {
    for protocol in ALL {
        let client = json!({"endpoint": "http://a", "headers": {"authorization": "Bearer hunter2"}});
        let config = parse(protocol, json!({"client": client})).expect("valid");
        assert!(!format!("{config:?}").contains("hunter2"));
    }
}
