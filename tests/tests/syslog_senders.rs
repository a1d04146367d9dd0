//! Senders of other projects into one engine with UDP, TCP, TLS and mutual TLS: each message comes exactly once, with
//! everything that it says.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};

use catchment_tests::{Caught, Certificates, Listeners, Rsyslog, Scene, Sender, free_port, local, wait_until};
use serde_json::Value;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SPAN: &str = "b7ad6b7169203331";

fn attribute<'a>(record: &'a Value, key: &str) -> &'a str {
    record["attributes"][key].as_str().unwrap_or_else(|| panic!("no {key} in {record}"))
}

/// Text of either format.
fn message(record: &Value) -> &str {
    let is_new = attribute(record, "input.format") == "rfc5424";
    attribute(record, if is_new { "syslog.message" } else { "syslog.content" })
}

/// The records by their texts, each of which comes once.
fn by_message(caught: &Caught) -> BTreeMap<String, &Value> {
    let found: BTreeMap<_, _> = caught.records.iter().map(|record| (message(record).to_owned(), record)).collect();
    assert_eq!(found.len(), caught.records.len(), "a message came twice");
    found
}

/// Format, way, facility, severity, host and application of a record, and that its time is that of the test.
fn assert_is(record: &Value, format: &str, transport: &str, priority: (u64, u64), host: Option<&str>, app: &str) {
    assert_eq!((attribute(record, "input.format"), attribute(record, "network.transport")), (format, transport));
    let (facility, severity) = (&record["attributes"]["syslog.facility"], &record["attributes"]["syslog.severity"]);
    assert_eq!((facility.as_u64(), severity.as_u64()), (Some(priority.0), Some(priority.1)), "{record}");
    if let Some(host) = host {
        assert_eq!(attribute(record, "syslog.host_name"), host, "{record}");
    }
    assert_eq!(attribute(record, "syslog.app_name"), app, "{record}");
    let instant = |key: &str| record[key].as_str().and_then(|text| text.parse::<jiff::Timestamp>().ok());
    let (sent, received) = (instant("time").expect("a time"), instant("observed_time").expect("a time"));
    let age = received.duration_since(sent);
    // Senders of RFC 3164 leave out the fraction; no test takes longer than its patience.
    assert!((-1..=120).contains(&age.as_secs()), "sent {sent}, received {received}");
}

/// Lines to the UDP input of a relay.
fn feed(port: u16, lines: impl Iterator<Item = String>) {
    let socket = UdpSocket::bind(local(0)).expect("a free port");
    for line in lines {
        let _ = socket.send_to(line.as_bytes(), local(port)).expect("loopback takes it");
    }
}

/// The time in milliseconds; rsyslog reads no more than six digits of a fraction.
fn now() -> jiff::Timestamp {
    jiff::Timestamp::now().round(jiff::Unit::Millisecond).expect("the time is in range")
}

/// What rsyslog reads: a UDP input on a free port.
fn input(port: u16) -> String {
    format!("module(load=\"imudp\")\ninput(type=\"imudp\" address=\"127.0.0.1\" port=\"{port}\")\n")
}

fn structured(number: usize) -> String {
    let now = now();
    format!("<165>1 {now} origin-1 relayed 77 ID{number} [x@32473 n=\"{number}\" q=\"a \\\"b\\\"\"] text {number}")
}

/// rsyslog in its traditional format and in that of RFC 5424, by UDP and by TCP with lines.
#[test]
fn rsyslog_in_both_formats() {
    const COUNT: usize = 50;
    let Some(rsyslog) = Rsyslog::find() else { return };
    let scene = Scene::new();
    let listeners = Listeners::start(&scene);
    let (relay, port) = (free_port(), listeners.engine.port("plain"));
    let mut actions = String::new();
    for (template, protocol) in [
        ("RSYSLOG_TraditionalForwardFormat", "udp"),
        ("RSYSLOG_TraditionalForwardFormat", "tcp"),
        ("RSYSLOG_ForwardFormat", "tcp"),
        ("RSYSLOG_SyslogProtocol23Format", "udp"),
        ("RSYSLOG_SyslogProtocol23Format", "tcp"),
    ] {
        actions += &format!(
            "action(type=\"omfwd\" target=\"127.0.0.1\" port=\"{port}\" protocol=\"{protocol}\" template=\"{template}\")\n"
        );
    }
    let inputs = input(relay);
    let process =
        rsyslog.start(&scene, &format!("{inputs}if $syslogfacility-text == \"local4\" then {{\n{actions}}}\n"));
    wait_until("rsyslog listens", || UdpSocket::bind(local(relay)).is_err());
    feed(relay, (0..COUNT).map(structured));
    let (_, caught) = listeners.finish(5 * COUNT);
    let _ = process.terminate(catchment_tests::PATIENCE).expect_code(0);
    let mut seen: BTreeMap<(String, String, String), usize> = BTreeMap::new();
    for record in &caught.records {
        let (format, transport) = (attribute(record, "input.format"), attribute(record, "network.transport"));
        *seen.entry((format.to_owned(), transport.to_owned(), message(record).to_owned())).or_default() += 1;
        assert_is(record, format, transport, (20, 5), Some("origin-1"), "relayed");
        assert_eq!(record["attributes"]["syslog.process_id"], 77, "{record}");
        if format == "rfc5424" {
            assert_eq!(attribute(record, "syslog.msg_id"), message(record).replace("text ", "ID"));
            let data = &record["attributes"]["syslog.structured_data"]["x@32473"];
            assert_eq!((&data["n"], &data["q"]), (&message(record)[5..].into(), &"a \"b\"".into()), "{record}");
        }
    }
    // Two of the old formats go over TCP.
    let old_tcp = |key: &(String, String, String)| key.0 == "rfc3164" && key.1 == "tcp";
    assert_eq!(seen.len(), 4 * COUNT);
    assert!(seen.iter().all(|(key, times)| *times == if old_tcp(key) { 2 } else { 1 }), "{seen:?}");
}

/// rsyslog with octet counting over TLS, shown by its certificate.
#[test]
fn rsyslog_with_mutual_tls() {
    const COUNT: usize = 100;
    let Some(rsyslog) = Rsyslog::find() else { return };
    let scene = Scene::new();
    let listeners = Listeners::start(&scene);
    let (relay, port) = (free_port(), listeners.engine.port("mutual"));
    let Certificates { authority, client, client_key, .. } = &listeners.certificates;
    let config = format!(
        "global(defaultNetstreamDriverCAFile=\"{}\" defaultNetstreamDriverCertFile=\"{}\" \
         defaultNetstreamDriverKeyFile=\"{}\")\n{}if $syslogfacility-text == \"local4\" then {{\naction(type=\"omfwd\" \
         target=\"127.0.0.1\" port=\"{port}\" protocol=\"tcp\" TCP_Framing=\"octet-counted\" \
         template=\"RSYSLOG_SyslogProtocol23Format\" StreamDriver=\"gtls\" StreamDriverMode=\"1\" \
         StreamDriverAuthMode=\"x509/name\" StreamDriverPermittedPeers=\"localhost\")\n}}\n",
        authority.display(),
        client.display(),
        client_key.display(),
        input(relay)
    );
    let process = rsyslog.start(&scene, &config);
    wait_until("rsyslog listens", || UdpSocket::bind(local(relay)).is_err());
    feed(relay, (0..COUNT).map(structured));
    let (report, caught) = listeners.finish(COUNT);
    let _ = process.terminate(catchment_tests::PATIENCE).expect_code(0);
    assert_eq!(report.node("edge/mutual").sent, COUNT as u64);
    assert_eq!(by_message(&caught).len(), COUNT);
    for record in &caught.records {
        assert_is(record, "rfc5424", "tcp", (20, 5), Some("origin-1"), "relayed");
        assert_eq!(attribute(record, "tls.client.subject"), Certificates::CLIENT);
        let number = message(record).strip_prefix("text ").expect("no line end, which rsyslog counts");
        assert_eq!(record["attributes"]["syslog.structured_data"]["x@32473"]["n"], number);
    }
}

/// `loggen` over UDP, TCP and TLS, in lines and counted. Its counted messages begin with a byte order mark and end with
/// a line end, neither of which is text.
#[test]
fn loggen() {
    const EACH: usize = 200;
    let Some(loggen) = Sender::find("loggen") else { return };
    let scene = Scene::new();
    let listeners = Listeners::start(&scene);
    let (plain, tls) = (listeners.engine.port("plain").to_string(), listeners.engine.port("tls").to_string());
    let data = "--sdata=[probe@32473 traceparent=\"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\"]";
    let number = EACH.to_string();
    let runs: [(&[&str], &str); 7] = [
        (&["-i", "-D"], &plain),
        (&["-i", "-S"], &plain),
        (&["-i", "-S", "-P", data], &plain),
        (&["-i", "-S", "-P", "-F"], &plain),
        (&["-i", "-D", "-P", "-F"], &plain),
        (&["-U"], &tls),
        (&["-U", "-P", data], &tls),
    ];
    for (more, port) in runs {
        let rest = ["-r", "2000", "-s", "250", "-Q", "-n", &number, "127.0.0.1", port];
        let _ = loggen.run(&[more, &rest[..]].concat());
    }
    let (report, caught) = listeners.finish(runs.len() * EACH);
    assert_eq!(report.node("edge/tls").sent, 2 * EACH as u64);
    let mut streams: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for record in &caught.records {
        let format = attribute(record, "input.format");
        let transport = attribute(record, "network.transport");
        assert_is(record, format, transport, (4, 6), Some("localhost"), "prg00000");
        assert_eq!(record["attributes"]["syslog.process_id"], 1234);
        let data = &record["attributes"]["syslog.structured_data"]["probe@32473"];
        let traced = if data.is_null() { (None, None) } else { (Some(TRACE), Some(SPAN)) };
        assert_eq!((record["trace_id"].as_str(), record["span_id"].as_str()), traced, "{record}");
        let text = message(record);
        assert!(!text.ends_with('\n') && !text.ends_with('\0'), "{text:?}");
        let number = text.strip_prefix("seq: ").and_then(|rest| rest.split(',').next()).expect("its own number");
        let port = record["attributes"]["network.peer.port"].as_u64().expect("a port");
        streams.entry(port).or_default().push(number.parse().expect("a number"));
    }
    assert_eq!(streams.len(), runs.len());
    for numbers in streams.values_mut() {
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(0..EACH as u64), "{numbers:?}");
    }
    assert_eq!(caught.records.iter().filter(|record| record["trace_id"] == TRACE).count(), 2 * EACH);
}

/// A frontend that answers by itself, with a log line for each request that says its number and its trace.
fn haproxy_config(ports: [u16; 3], listeners: &Listeners) -> String {
    let [http, relay_udp, relay_tcp] = ports;
    let (plain, mutual) = (listeners.engine.port("plain"), listeners.engine.port("mutual"));
    let (both, ca) = (listeners.certificates.client_both.display(), listeners.certificates.authority.display());
    let ring = |name: &str, format: &str, server: &str| {
        format!(
            "ring {name}\n    format {format}\n    maxlen 4096\n    size 65536\n    timeout connect 5s\n    timeout server \
             10s\n    server s {server}\n"
        )
    };
    format!(
        "global\n    log 127.0.0.1:{plain} len 4096 format rfc5424 local2\n    log 127.0.0.1:{plain} len 4096 format \
         rfc3164 local3\n    log ring@counted len 4096 format rfc5424 local4\n    log ring@secret len 4096 format rfc5424 \
         local5\n    log-send-hostname proxy-1\n    log-tag balancer\n\
         defaults\n    timeout client 10s\n    timeout connect 10s\n    timeout server 10s\n\
         frontend web\n    mode http\n    bind 127.0.0.1:{http}\n    log global\n    http-request set-var(txn.trace) \
         req.hdr(traceparent)\n    http-request set-var(txn.number) req.hdr(number)\n    log-format \
         \"request %[var(txn.number)] %ST\"\n    log-format-sd \"[http@32473 number=\\\"%[var(txn.number)]\\\" \
         traceparent=\\\"%[var(txn.trace)]\\\"]\"\n    http-request return status 200\n\
         log-forward new\n    dgram-bind 127.0.0.1:{relay_udp}\n    bind 127.0.0.1:{relay_tcp}\n    log ring@counted \
         format rfc5424 local6\n    log 127.0.0.1:{plain} format rfc3164 local6\n{}{}",
        ring("counted", "rfc5424", &format!("127.0.0.1:{plain} log-proto octet-count")),
        ring(
            "secret",
            "rfc5424",
            &format!("127.0.0.1:{mutual} log-proto octet-count ssl crt {both} ca-file {ca} verifyhost localhost")
        ),
    )
}

/// HAProxy: its own log by UDP in both formats, through a ring by TCP and by mutual TLS, with a trace of the request in
/// the structured data; and messages of others that it forwards.
#[test]
fn haproxy() {
    const REQUESTS: usize = 20;
    let Some(haproxy) = Sender::find("haproxy") else { return };
    let scene = Scene::new();
    let listeners = Listeners::start(&scene);
    let ports = [free_port(), free_port(), free_port()];
    let config = scene.write("haproxy.cfg", haproxy_config(ports, &listeners));
    let mut process = haproxy.start(&["-db", "-f", config.to_str().expect("a path of text")]);
    let web = local(ports[0]);
    wait_until("haproxy listens", || {
        assert!(process.is_running(), "{}", process.stderr());
        TcpStream::connect(local(ports[2])).is_ok()
    });
    for number in 0..REQUESTS {
        let mut stream = TcpStream::connect(web).expect("it listens");
        write!(stream, "GET / HTTP/1.0\r\ntraceparent: 00-{TRACE}-{SPAN}-01\r\nnumber: {number}\r\n\r\n")
            .expect("open");
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with("HTTP/1.0 200") || answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    let now = now();
    feed(ports[1], (0..REQUESTS).map(|number| format!("<134>1 {now} router-1 fwd 5 - - datagram {number}")));
    let mut stream = TcpStream::connect(local(ports[2])).expect("it listens");
    for number in 0..REQUESTS {
        writeln!(stream, "<134>1 {now} router-1 fwd 5 - - line {number}").expect("open");
    }
    // Four logs of each request, two of each message that is forwarded.
    let wanted = 8 * REQUESTS;
    let is_of_test =
        |record: &Value| ["request ", "datagram ", "line "].iter().any(|word| message(record).starts_with(word));
    wait_until("all messages of the test", || {
        listeners.sink.records().iter().filter(|record| is_of_test(record)).count() >= wanted
    });
    let _ = process.terminate(catchment_tests::PATIENCE);
    // HAProxy tells of itself as well, such as that it goes.
    let mut count = 0;
    wait_until("all that was received is at the sink", || {
        let received =
            usize::try_from(listeners.engine.metric("receiver.syslog", "messages_received")).expect("a count");
        count = listeners.sink.records().len();
        received == count && count >= wanted
    });
    let (_, caught) = listeners.finish(count);
    let mut seen: BTreeMap<(String, u64, String), usize> = BTreeMap::new();
    for record in caught.records.iter().filter(|record| is_of_test(record)) {
        let (format, transport) = (attribute(record, "input.format"), attribute(record, "network.transport"));
        let facility = record["attributes"]["syslog.facility"].as_u64().expect("a facility");
        *seen.entry((format.to_owned(), facility, message(record).to_owned())).or_default() += 1;
        if facility == 16 {
            assert_is(record, format, transport, (16, 6), Some("router-1"), "fwd");
            continue;
        }
        assert_is(record, format, transport, (facility, 6), Some("proxy-1"), "balancer");
        assert_eq!(transport, if facility < 20 { "udp" } else { "tcp" });
        let subject = record["attributes"]["tls.client.subject"].as_str();
        assert_eq!(subject, (facility == 21).then_some(Certificates::CLIENT));
        let is_new = format == "rfc5424";
        assert_eq!(is_new, facility != 19);
        let traced = if is_new { (Some(TRACE), Some(SPAN)) } else { (None, None) };
        assert_eq!((record["trace_id"].as_str(), record["span_id"].as_str()), traced, "{record}");
        if is_new {
            let number = message(record).split(' ').nth(1).expect("a number");
            assert_eq!(record["attributes"]["syslog.structured_data"]["http@32473"]["number"], number);
        }
    }
    assert!(seen.values().all(|times| *times == 1), "{seen:?}");
    assert_eq!(seen.len(), wanted);
}
