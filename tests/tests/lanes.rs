//! The lanes exporter against a server that is well: everything arrives, decoded, once, in order.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use catchment_tests::otlp::{Signal, post, request};
use catchment_tests::{Certificates, Engine, HEAD, Scene, ScriptedSink, local, wait_until};

const PROTOCOLS: [&str; 3] = ["otap", "otlp_grpc", "otlp_http"];

/// OTLP over HTTP into lanes. `lanes` is the configuration of the exporter but for protocol and address.
fn config(protocol: &str, lanes: &str) -> String {
    format!(
        r#"{HEAD}groups:
  site:
    pipelines:
      main:
        nodes:
          otlp:
            type: receiver:otlp
            config: {{protocols: {{http: {{listening_addr: "127.0.0.1:@otlp@", wait_for_result: true, timeout: 20s}}}}}}
            header_capture: {{headers: [{{match_names: [x-key]}}]}}
          lanes:
            type: urn:catchment:exporter:lanes
            config: {{protocol: {protocol}, client: {{endpoint: "http://127.0.0.1:@sink@"}}, {lanes}}}
        connections: [{{from: otlp, to: lanes}}]
"#
    )
}

fn start(scene: &Scene, sink: &ScriptedSink, protocol: &str, lanes: &str) -> Engine {
    let engine = Engine::start(scene, &config(protocol, lanes), &[("sink", sink.port(protocol))]);
    engine.wait_listening("otlp");
    engine
}

const HEALTHY: &str = "steps: []";
const KEYS: [&str; 4] = ["a", "b", "c", "d"];

/// Sends `rounds` requests of ten items of each signal and key, a thread a key; all are answered with success.
fn send(engine: &Engine, rounds: u64) {
    send_rounds(engine, 0..rounds);
}

fn send_rounds(engine: &Engine, rounds: Range<u64>) {
    let address = engine.address("otlp");
    std::thread::scope(|scope| {
        for key in KEYS {
            let rounds = rounds.clone();
            let _ = scope.spawn(move || {
                for round in rounds {
                    for (signal, name) in Signal::ALL.into_iter().zip(["logs", "metrics", "traces"]) {
                        let body = request(signal, &format!("{key}-{name}"), round * 10..round * 10 + 10);
                        assert_eq!(post(address, signal, &format!("X-Key: {key}\r\n"), &body), 200);
                    }
                }
            });
        }
    });
}

/// All signals over all protocols, by all keys, in requests that are put together, and in such as are cut.
#[test]
fn everything_arrives() {
    let variants = [
        "lanes: {key: series}",
        "lanes: {key: \"header:x-key\", count: 2}, batch: {min_items: 25, max_delay: 20ms}",
        "lanes: {key: single}, batch: {max_items: 7}",
        "lanes: {key: peer}, compression: {codec: gzip, layer: message}",
        "lanes: {key: single}, compression: {codec: zstd, level: 3, layer: message}",
    ];
    for protocol in PROTOCOLS {
        for lanes in variants {
            let scene = Scene::new();
            let sink = ScriptedSink::start(&scene, HEALTHY);
            let engine = start(&scene, &sink, protocol, lanes);
            send(&engine, 3);
            let stopped = engine.stop();
            let lanes = stopped.expect_clean().node("main/lanes").clone();
            assert_eq!((lanes.received, lanes.sent, lanes.dropped), (Some(360), 360, 0), "{lanes:?}");
            assert_eq!(lanes.note("batches unkeyed"), 0, "{lanes:?}");
            let followed = sink.stop();
            followed.assert_all_in_order(360);
            for signal in ["logs", "points", "spans"] {
                assert_eq!(followed.count(signal), 120);
            }
        }
    }
}

/// What the metrics say balances, and raw bytes are more than those on the wire.
#[test]
fn metrics_balance() {
    for protocol in PROTOCOLS {
        let scene = Scene::new();
        let sink = ScriptedSink::start(&scene, HEALTHY);
        let engine = start(&scene, &sink, protocol, "compression: {codec: zstd, layer: message}, lanes: {count: 2}");
        send(&engine, 2);
        let metric = |name: &str| engine.metric("exporter.lanes", name);
        wait_until("all is told", || metric("items_delivered") == 240);
        assert_eq!((metric("items_received"), metric("batches_received"), metric("batches_acked")), (240, 24, 24));
        assert!(metric("requests") > 0 && metric("requests") == metric("attempts"));
        assert!(metric("bytes_wire") > 0 && metric("bytes_wire") < metric("bytes_raw"));
        assert_eq!(metric("batches_unkeyed"), 0, "upstream's receiver gives the peer");
        assert_eq!(engine.metric("exporter.lanes.lane", "items_delivered"), 240);
        let lanes = engine.measurements("exporter.lanes.lane", "items_delivered");
        assert_eq!(lanes.len(), 2, "{lanes:?}");
        let _ = engine.stop().expect_clean();
        sink.stop().assert_all_in_order(240);
    }
}

/// Every signal to a server of its own.
#[test]
fn a_server_for_each_signal() {
    let scene = Scene::new();
    let sinks: Vec<ScriptedSink> = Signal::ALL.iter().map(|_| ScriptedSink::start(&scene, HEALTHY)).collect();
    let endpoints = r#"{logs_endpoint: "http://127.0.0.1:@logs@/v1/logs",
              metrics_endpoint: "http://127.0.0.1:@metrics@/v1/metrics", traces_endpoint: "http://127.0.0.1:@traces@/v1/traces"}"#;
    let yaml = config("otlp_http", "").replace(r#"{endpoint: "http://127.0.0.1:@sink@"}"#, endpoints);
    let port = |at: usize| sinks[at].port("otlp_http");
    let engine = Engine::start(&scene, &yaml, &[("logs", port(0)), ("metrics", port(1)), ("traces", port(2))]);
    engine.wait_listening("otlp");
    send(&engine, 2);
    let _ = engine.stop().expect_clean();
    for (sink, signal) in sinks.into_iter().zip(["logs", "points", "spans"]) {
        let followed = sink.stop();
        assert_eq!(followed.count(signal), 80);
        followed.assert_all_in_order(80);
    }
}

/// A proxy that opens tunnels to this machine; gives its port and how many it has opened.
fn proxy() -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind(local(0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let opened = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&opened);
    let _ = std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let count = Arc::clone(&count);
            let _ = std::thread::spawn(move || tunnel(client, &count));
        }
    });
    (port, opened)
}

fn tunnel(mut client: TcpStream, opened: &AtomicUsize) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && client.read(&mut byte).is_ok_and(|read| read == 1) {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head);
    assert!(head.starts_with("CONNECT backend.test:") && head.contains("Proxy-Authorization: Basic "), "{head}");
    let port = head.split([':', ' ']).nth(2).and_then(|port| port.parse().ok()).expect("a port");
    let mut server = TcpStream::connect(local(port)).expect("the server");
    client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").expect("it reads");
    let _ = opened.fetch_add(1, Ordering::Relaxed);
    let (mut from, mut to) = (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
    let up = std::thread::spawn(move || std::io::copy(&mut from, &mut to));
    let _ = std::io::copy(&mut server, &mut client);
    let _ = client.shutdown(Shutdown::Both);
    let _ = up.join();
}

/// Through a proxy that asks for a password, to a name that it alone knows.
#[test]
fn through_a_proxy() {
    for protocol in PROTOCOLS {
        let scene = Scene::new();
        let sink = ScriptedSink::start(&scene, HEALTHY);
        let (port, opened) = proxy();
        let client = format!(
            r#"{{endpoint: "http://backend.test:{}", proxy: {{http_proxy: "http://user:secret@127.0.0.1:{port}", no_proxy: "other.test"}}}}"#,
            sink.port(protocol)
        );
        let yaml = config(protocol, "lanes: {count: 2}");
        let yaml = yaml.replace(r#"{endpoint: "http://127.0.0.1:@sink@"}"#, &client);
        let engine = Engine::start(&scene, &yaml, &[]);
        engine.wait_listening("otlp");
        send_rounds(&engine, 1..2);
        let stopped = engine.stop();
        assert_eq!(stopped.expect_clean().node("main/lanes").sent, 120);
        assert!(opened.load(Ordering::Relaxed) > 0);
        assert!(!stopped.ended.stderr.contains("secret"));
        sink.stop().assert_all_in_order(120);
    }
}

const SECURE: [(&str, &str); 3] = [
    ("otlp_grpc", "type: receiver:otlp\n            config: {protocols: {grpc: {LISTEN, wait_for_result: true}}}"),
    ("otlp_http", "type: receiver:otlp\n            config: {protocols: {http: {LISTEN, wait_for_result: true}}}"),
    (
        "otap",
        "type: receiver:otap\n            config: {LISTEN, response_stream_channel_size: 8, wait_for_result: true}",
    ),
];

/// Lanes that show a certificate and know one authority.
fn outer(protocol: &str, certificates: &Certificates) -> String {
    let client = format!(
        "{{endpoint: \"https://localhost:@inner@\", tls: {{ca_file: {:?}, cert_file: {:?}, key_file: {:?}, \
         include_system_ca_certs_pool: false}}}}",
        certificates.authority, certificates.client, certificates.client_key
    );
    config(protocol, "lanes: {count: 2}").replace(r#"{endpoint: "http://127.0.0.1:@sink@"}"#, &client)
}

/// A pipeline that asks clients for a certificate, into the sink.
fn inner(receiver: &str, certificates: &Certificates) -> String {
    let listen = format!(
        "listening_addr: \"127.0.0.1:@inner@\", tls: {{cert_file: {:?}, key_file: {:?}, client_ca_file: {:?}}}",
        certificates.server, certificates.server_key, certificates.authority
    );
    format!(
        r#"      inner:
        nodes:
          secure:
            {}
          lanes:
            type: urn:catchment:exporter:lanes
            config: {{protocol: otlp_grpc, client: {{endpoint: "http://127.0.0.1:@sink@"}}, lanes: {{key: single}}}}
        connections: [{{from: secure, to: lanes}}]
"#,
        receiver.replace("LISTEN", &listen)
    )
}

/// TLS with certificates on both sides, into another pipeline of the same engine.
#[test]
fn mutual_tls() {
    for (protocol, receiver) in SECURE {
        let scene = Scene::new();
        let certificates = Certificates::new(&scene);
        let sink = ScriptedSink::start(&scene, HEALTHY);
        let yaml = format!("{}{}", outer(protocol, &certificates), inner(receiver, &certificates));
        let engine = Engine::start(&scene, &yaml, &[("sink", sink.port("otlp_grpc"))]);
        engine.wait_listening("otlp");
        engine.wait_listening("inner");
        send(&engine, 2);
        let stopped = engine.stop();
        let report = stopped.expect_clean();
        assert_eq!(report.node("main/lanes").sent, 240);
        sink.stop().assert_all_in_order(240);
    }
}

/// The files of authority, server and client are replaced while lanes run, and the server begins anew with its own: lanes
/// connect with what the files have then.
#[test]
fn certificates_are_replaced() {
    for (protocol, receiver) in SECURE {
        let (near, far) = (Scene::new(), Scene::new());
        let certificates = Certificates::new(&near);
        let sink = ScriptedSink::start(&far, HEALTHY);
        let secure = |ports: &[(&str, u16)]| {
            let yaml = format!("{HEAD}groups:\n  site:\n    pipelines:\n{}", inner(receiver, &certificates));
            let ports: Vec<_> = ports.iter().copied().chain([("sink", sink.port("otlp_grpc"))]).collect();
            let engine = Engine::start(&far, &yaml, &ports);
            engine.wait_listening("inner");
            engine
        };
        let server = secure(&[]);
        let port = server.address("inner").port();
        let engine = Engine::start(&near, &outer(protocol, &certificates), &[("inner", port)]);
        engine.wait_listening("otlp");
        send_rounds(&engine, 0..1);
        // It is killed: with connections open it would wait for its clients.
        drop(server);
        // Another authority, which has nothing to do with the one before, under the same names.
        let before = std::fs::read(&certificates.authority).expect("a certificate");
        assert_eq!(Certificates::new(&near).authority, certificates.authority);
        assert_ne!(std::fs::read(&certificates.authority).expect("a certificate"), before);
        let server = secure(&[("inner", port)]);
        send_rounds(&engine, 1..2);
        let stopped = engine.stop();
        assert_eq!(stopped.expect_clean().node("main/lanes").sent, 240);
        drop(server);
        sink.stop().assert_all_in_order(240);
    }
}
