use otel_arrow_dfe_config::tls::TlsServerConfig;
use serde_json::json;

use super::*;
use crate::ingest::tcp::TLS_KEYS;

fn refused(value: Value) -> String {
    Config::parse(&value).expect_err("refused").to_string()
}

fn tcp(more: Value) -> Value {
    let mut tcp = json!({"listening_addr": "127.0.0.1:0"});
    for (key, value) in more.as_object().expect("map") {
        tcp[key] = value.clone();
    }
    json!({"tcp": tcp})
}

#[test]
fn defaults_are_those_of_the_docs() {
    let config = Config::parse(&tcp(json!({}))).expect("valid");
    assert_eq!(config.max_message_size, 65_536);
    assert_eq!((config.batch.max_messages, config.batch.max_duration.as_millis()), (100, 100));
    assert_eq!(config.max_messages_per_second_per_source, None);
    let tcp = config.tcp.expect("tcp");
    assert_eq!((tcp.max_connections, tcp.max_connections_per_source, tcp.idle_timeout), (1_024, None, None));
    assert_eq!(tcp.max_buffered_bytes, 67_108_864);
    let options = tcp.framer_options(config.max_message_size);
    assert_eq!((options.framing, options.max_message_size), (Framing::Auto, 65_536));
    assert!(options.trim_trailing_newline);
}

/// Each message names the key and what would be right.
#[test]
fn wrong_settings_are_explained() {
    let udp = |more: Value| {
        let mut config = json!({"udp": {"listening_addr": "127.0.0.1:1"}});
        for (key, value) in more.as_object().expect("map") {
            config[key] = value.clone();
        }
        config
    };
    for (config, key, right) in [
        (Value::Null, "config", "`udp`, `tcp`, `replay`"),
        (json!({"udp": {"listening_addr": "nowhere"}}), "config.udp.listening_addr", "IP:PORT"),
        (udp(json!({"timezone": "Mars"})), "config.timezone", "Europe/Paris"),
        (json!({"udp": {"listening_addr": "127.0.0.1:1", "timezone": "Mars"}}), "config.udp.timezone", "Europe/Paris"),
        (json!({"udp": {"listening_addr": "127.0.0.1:1", "receive_buffer": 3}}), "udp.receive_buffer", "1024 to"),
        (udp(json!({"sampling": {"policies": []}})), "config.sampling.policies", "at least one policy"),
        (udp(json!({"sampling": {"policies": [{"ratio": 2}]}})), "config.sampling.policies[0].ratio", "0 to 1"),
        (udp(json!({"sampling": {"policies": [{"ratoi": 1}]}})), "config.sampling.policies[0]", "`ratio`"),
        (
            udp(json!({"sampling": {"policies": [{"key_hash": {"ratio": 0.1, "key": "flow"}}]}})),
            "key_hash.key",
            "host, app",
        ),
        (tcp(json!({"timezone": "Mars"})), "config.tcp.timezone", "Europe/Paris"),
        (tcp(json!({"framing": "lines"})), "config.tcp.framing", "octet_counting"),
        (tcp(json!({"max_connections": 0})), "tcp.max_connections", "1 to 1000000"),
        (tcp(json!({"max_connections_per_source": 0})), "tcp.max_connections_per_source", "1 to 1000000"),
        (tcp(json!({"idle_timeout": "1ms"})), "tcp.idle_timeout", "10 to"),
        (tcp(json!({"max_buffered_bytes": 1})), "tcp.max_buffered_bytes", "1024 to"),
        (tcp(json!({"tls": {"cert_file": "c", "key_fil": "k"}})), "config.tcp.tls", "`key_file`"),
        (tcp(json!({"tls": {"key_file": "k"}})), "config.tcp.tls", "neither of `cert_file` and `cert_pem`"),
        (tcp(json!({"tls": {"cert_file": "c"}})), "config.tcp.tls", "neither of `key_file` and `key_pem`"),
        (
            tcp(json!({"tls": {"cert_file": "c", "cert_pem": "c", "key_file": "k"}})),
            "config.tcp.tls",
            "expected one of them",
        ),
        (
            tcp(json!({"tls": {"cert_file": "c", "key_file": "k", "watch_client_ca": true}})),
            "config.tcp.tls.watch_client_ca",
            "client_ca_file",
        ),
        (
            tcp(json!({"tls": {"cert_file": "c", "key_file": "k"}, "tls_client_subject": true})),
            "config.tcp.tls_client_subject",
            "client_ca_file",
        ),
        (udp(json!({"max_message_size": 0})), "max_message_size", "1 to 16777216"),
        (udp(json!({"max_messages_per_second_per_source": 0})), "max_messages_per_second_per_source", "1 to"),
        (udp(json!({"batch": {"max_messages": 0}})), "batch.max_messages", "1 to 8192"),
        (udp(json!({"max_in_flight_bytes": "lots"})), "config.max_in_flight_bytes", ""),
        (udp(json!({"sources": [{"prefix": "10.0.0.0/33", "timezone": "UTC"}]})), "sources[0].prefix", "10.1.0.0/16"),
        (udp(json!({"sources": [{"prefix": "10.1.2.3/16", "timezone": "UTC"}]})), "sources[0].prefix", "10.1.0.0/16"),
        (udp(json!({"sources": [{"prefix": "::/0", "timezone": "Mars"}]})), "sources[0].timezone", "Europe/Paris"),
        (
            udp(json!({"sources": [
                {"prefix": "10.0.0.1", "timezone": "UTC"}, {"prefix": "::ffff:10.0.0.1/128", "timezone": "UTC"}]})),
            "sources[1].prefix",
            "once",
        ),
        (json!({"replay": {"path": "x", "rate": "fast"}}), "config.replay.rate", "unlimited"),
    ] {
        let message = refused(config);
        assert!(message.contains(key) && message.contains(right), "{key}: {message}");
    }
}

/// A prefix beats the listener, and the listener beats the receiver.
#[test]
fn zones_are_found_by_prefix_listener_and_receiver() {
    let config = Config::parse(&json!({
        "udp": {"listening_addr": "127.0.0.1:0", "timezone": "+02:00"},
        "tcp": {"listening_addr": "127.0.0.1:0"},
        "timezone": "+01:00",
        "sources": [{"prefix": "10.1.0.0/16", "timezone": "Europe/Berlin"}, {"prefix": "10.1.2.3", "timezone": "local"}],
    }))
    .expect("valid");
    let of = |zones: &Zones, address: &str| (**zones.of(address.parse().ok())).clone();
    let zone = |name: &str| name.parse::<Zone>().expect("zone");
    let zones = &config.zones;
    assert_eq!(of(&zones.udp, "10.1.7.7"), zone("Europe/Berlin"));
    assert_eq!(of(&zones.tcp, "::ffff:10.1.7.7"), zone("Europe/Berlin"));
    assert_eq!(of(&zones.udp, "192.0.2.1"), zone("+02:00"));
    assert_eq!(of(&zones.tcp, "192.0.2.1"), zone("+01:00"));
    assert_eq!(of(&zones.replay, "192.0.2.1"), zone("+01:00"));
}

/// The keys of TLS are the engine's; its defaults hold.
#[test]
fn tls_takes_the_keys_of_the_engine() {
    let tls = json!({"cert_pem": "c", "key_file": "k", "client_ca_file": "ca", "handshake_timeout": "3s"});
    let config = Config::parse(&tcp(json!({"tls": tls, "tls_client_subject": true}))).expect("valid");
    let tls = config.tcp.expect("tcp").tls.expect("tls").0;
    assert_eq!(tls.handshake_timeout, Some(Duration::from_secs(3)));
    assert_eq!(tls.config.reload_interval, Some(Duration::from_secs(300)));
    for (at, key) in TLS_KEYS.iter().enumerate() {
        let known = serde_json::to_value(TlsServerConfig::default()).expect("map");
        assert!(known.get(*key).is_some(), "key {at} `{key}` is unknown to the engine");
        assert_eq!(known.as_object().expect("map").len(), TLS_KEYS.len(), "the engine has other keys");
    }
}
