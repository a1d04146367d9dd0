//! IPFIX over TCP and TLS: streams cut anywhere, a real exporter, connections that begin with something else, and templates
//! that end with their connection.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::Command;

use catchment_tests::expected::own_captures;
use catchment_tests::flows::number;
use catchment_tests::message::{counters, counters_template, message};
use catchment_tests::pcap::{Capture, Ends};
use catchment_tests::{Certificates, Flows, PATIENCE, Scene, Sender, catchment, run, run_with_input, wait_until};
use serde_json::Value;

const TCP: &str = "tcp: {listening_addr: \"127.0.0.1:@flows@\"}";
const STREAM: &str = "local-softflowd-ipfix-tcp-stream.ipfix";
/// Withdrawal of template 256 (RFC 7011 section 8.1).
const WITHDRAWAL: [u8; 4] = [1, 0, 0, 0];

fn stream() -> Vec<u8> {
    std::fs::read(own_captures().join(STREAM)).expect("the stream")
}

/// The records of the stream as `catchment decode` prints them, [`comparable`].
fn decoded() -> Vec<Value> {
    let ended = run(catchment().args(["decode", "ipfix"]).arg(own_captures().join(STREAM)));
    let lines = ended.expect_code(0).stdout.lines();
    comparable(lines.map(|line| serde_json::from_str(line).expect("each line is JSON")).collect())
}

/// Records without what is of their way and not of their message, sorted.
fn comparable(mut records: Vec<Value>) -> Vec<Value> {
    let of_the_way = |key: &str| key.starts_with("network.peer.") || key.starts_with("tls.");
    let of_receipt = ["flow.time_received", "flow.sampler_address"];
    for record in &mut records {
        let record = record.as_object_mut().expect("an object");
        let _ = record.remove("observed_time");
        let attributes = record.get_mut("attributes").and_then(Value::as_object_mut).expect("attributes");
        attributes.retain(|key, _| !of_the_way(key) && !of_receipt.contains(&key.as_str()));
    }
    records.sort_by_cached_key(Value::to_string);
    records
}

fn connect(flows: &Flows) -> TcpStream {
    let stream = TcpStream::connect(flows.address()).expect("it listens");
    stream.set_nodelay(true).expect("a setting of sockets");
    stream.set_read_timeout(Some(PATIENCE)).expect("a setting of sockets");
    stream
}

/// Waits until the other side has closed the connection, cleanly or not.
fn assert_closed(mut stream: &TcpStream) {
    match stream.read_to_end(&mut Vec::new()) {
        Ok(_) => {}
        Err(error) => assert_ne!(error.kind(), ErrorKind::WouldBlock, "the connection was not closed"),
    }
}

/// However the stream is cut into pieces, the same records come: pieces of one size, and two pieces with a pause between
/// them at every place near the beginning of a message.
#[test]
fn a_stream_cut_anywhere() {
    let scene = Scene::new();
    let flows = Flows::start(&scene, TCP);
    let whole = stream();
    let mut connections = 0;
    for size in [1, 2, 3, 7, 15, 16, 17, 64, 1_000, 1_345, whole.len()] {
        let mut stream = connect(&flows);
        for piece in whole.chunks(size) {
            stream.write_all(piece).expect("it is read");
        }
        connections += 1;
    }
    let first_length = usize::from(u16::from_be_bytes([whole[2], whole[3]]));
    let near = |at: usize| at.saturating_sub(3)..at + 20;
    let mut half_open = Vec::new();
    for cut in near(3).chain(near(first_length)) {
        let mut stream = connect(&flows);
        stream.write_all(&whole[..cut]).expect("it is read");
        half_open.push((stream, cut));
        connections += 1;
    }
    // All have been read as far as they go before the rest follows.
    let messages = || flows.metric("messages_received");
    let so_far: u64 = 4 * 11 + half_open.iter().filter(|(_, cut)| *cut >= first_length).count() as u64;
    wait_until("the beginnings are read", || messages() == so_far);
    for (stream, cut) in &mut half_open {
        stream.write_all(&whole[*cut..]).expect("it is read");
        stream.shutdown(Shutdown::Write).expect("it is open");
    }
    let once = decoded();
    let count = (connections * once.len()) as u64;
    let (line, caught) = flows.finish(count);
    assert_eq!(line.note("framing errors"), 0, "{line:?}");
    for record in &caught.records {
        assert_eq!(record["attributes"]["flow.sampler_address"], "127.0.0.1", "{record}");
    }
    let all = comparable(caught.records);
    let repeated: Vec<_> = once.iter().flat_map(|record| std::iter::repeat_n(record, connections)).collect();
    assert!(all.iter().eq(repeated), "the records are not those of the stream");
}

/// softflowd over TCP: all packets are there.
#[test]
fn softflowd_over_tcp() {
    let Some(softflowd) = Sender::find("softflowd") else { return };
    let scene = Scene::new();
    let flows = Flows::start(&scene, TCP);
    let mut capture = Capture::default();
    for number in 0..200u16 {
        let ends = Ends { from: ([192, 0, 2, 1].into(), 40_000 + number), to: ([198, 51, 100, 1].into(), 53) };
        capture.udp(1_796_000_000, ends, &vec![0; usize::from(number)]);
    }
    let paths = [scene.write("traffic.pcap", capture.bytes()), scene.path("softflowd.pid")];
    let [file, pid] = paths.each_ref().map(|path| path.to_str().expect("a path of text"));
    let to = flows.address().to_string();
    let _ = softflowd.run(&["-r", file, "-n", &to, "-v", "10", "-P", "tcp", "-d", "-c", "none", "-p", pid]);
    wait_until("all is read", || flows.metric("records_received") >= 200);
    let (_, caught) = flows.stop();
    let mut bytes: Vec<_> = caught
        .records
        .iter()
        .filter(|record| Flows::is_flow(record))
        .map(|record| number(record, "flow.io.bytes"))
        .collect();
    bytes.sort_unstable();
    assert_eq!(bytes, (28..228).collect::<Vec<_>>());
}

/// What begins with no header of a message closes its connection and is counted; other connections go on.
#[test]
fn a_wrong_header_closes_the_connection() {
    let scene = Scene::new();
    let flows = Flows::start(&scene, TCP);
    let mut good = connect(&flows);
    good.write_all(&message(0, 9, &[counters_template(), counters(1, 1)])).expect("it is read");
    let whole = message(0, 9, &[counters_template()]);
    let wrong: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\nHost: flows\r\n\r\n",
        // NetFlow v9, a length too short for a header, and a text of syslog.
        &[0, 9, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0, 10, 0, 15, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        b"<13>1 - host app - - - text\n",
        // A message as it should be, and then something else.
        &[&whole[..], &[0xff; 32]].concat(),
    ];
    for (at, bytes) in (1..).zip(wrong) {
        let mut stream = connect(&flows);
        stream.write_all(bytes).expect("open");
        assert_closed(&stream);
        wait_until("it is counted", || flows.metric("framing_errors") == at);
    }
    good.write_all(&message(1, 9, &[counters(2, 2)])).expect("still open");
    let (line, caught) = flows.finish(2);
    assert_eq!(line.note("framing errors"), 5, "{line:?}");
    assert_eq!(caught.records.iter().map(|record| number(record, "flow.io.bytes")).sum::<u64>(), 3);
}

/// A connection that ends inside of a message: what was whole before is there.
#[test]
fn a_connection_that_ends_inside_of_a_message() {
    let scene = Scene::new();
    let flows = Flows::start(&scene, TCP);
    let first = message(0, 9, &[counters_template(), counters(1, 1)]);
    let second = message(1, 9, &[counters(2, 2)]);
    for cut in [1, 3, 4, 16, second.len() - 1] {
        let mut stream = connect(&flows);
        stream.write_all(&[&first[..], &second[..cut]].concat()).expect("it is read");
    }
    wait_until("all connections have ended", || {
        flows.metric("messages_received") == 5 && flows.metric("connections_open") == 0
    });
    let (line, caught) = flows.finish(5);
    assert_eq!(line.note("framing errors"), 0, "{line:?}");
    assert!(caught.records.iter().all(|record| number(record, "flow.io.bytes") == 1));
}

/// Templates end with their connection, and by a withdrawal.
#[test]
fn templates_end_with_their_connection() {
    let scene = Scene::new();
    let flows = Flows::start(&scene, TCP);
    let unknown = || flows.metric("unknown_template_sets");
    let mut first = connect(&flows);
    first.write_all(&message(0, 9, &[counters_template(), counters(1, 1)])).expect("it is read");
    wait_until("the template is known", || flows.metric("records_received") == 1);
    // At the same time, and after it.
    let mut second = connect(&flows);
    second.write_all(&message(1, 9, &[counters(2, 2)])).expect("it is read");
    wait_until("it is unknown to another connection", || unknown() == 1);
    drop(first);
    wait_until("one connection has ended", || flows.metric("connections_open") == 1);
    let mut third = connect(&flows);
    third.write_all(&message(1, 9, &[counters(3, 3)])).expect("it is read");
    wait_until("it is unknown after a reconnection", || unknown() == 2);
    third.write_all(&message(2, 9, &[counters_template(), counters(4, 4)])).expect("it is read");
    let withdrawn = message(3, 9, &[(2, WITHDRAWAL.to_vec()), counters(5, 5)]);
    third.write_all(&withdrawn).expect("it is read");
    wait_until("it is withdrawn", || unknown() == 3);
    let (line, caught) = flows.finish(3);
    let mut bytes: Vec<_> = caught.records.iter().map(|record| number(record, "flow.io.bytes")).collect();
    bytes.sort_unstable();
    // The third connection's first record has waited for its template.
    assert_eq!(bytes, [1, 3, 4]);
    assert_eq!((line.note("sets held"), line.note("sets released")), (3, 1), "{line:?}");
}

/// openssl as an exporter that sends `bytes` and ends.
fn tls_client(flows: &Flows, certificates: &Certificates, with_certificate: bool, bytes: &[u8]) {
    let mut command = Command::new("openssl");
    let _ = command.args(["s_client", "-quiet", "-no_ign_eof", "-nocommands", "-verify_return_error"]);
    let _ = command.args(["-connect", &flows.address().to_string(), "-servername", "localhost", "-CAfile"]);
    let _ = command.arg(&certificates.authority);
    let file = |path: &Path| path.to_str().expect("a path of text").to_owned();
    if with_certificate {
        let _ = command.args(["-cert", &file(&certificates.client), "-key", &file(&certificates.client_key)]);
    }
    // What it makes of being refused is its own affair.
    let _ = run_with_input(&mut command, bytes);
}

/// An exporter that shows its certificate is heard; one without, and one without TLS, are not, and are counted.
#[test]
fn mutual_tls() {
    if Sender::find("openssl").is_none() {
        return;
    }
    let scene = Scene::new();
    let certificates = Certificates::new(&scene);
    let (cert, key, ca) = (&certificates.server, &certificates.server_key, &certificates.authority);
    let tls = format!("cert_file: {}, key_file: {}, client_ca_file: {}", cert.display(), key.display(), ca.display());
    let flows = Flows::start(&scene, &format!("tcp: {{listening_addr: \"127.0.0.1:@flows@\", tls: {{{tls}}}}}"));
    let errors = || flows.metric("tls_handshake_errors");
    tls_client(&flows, &certificates, false, &stream());
    wait_until("an exporter without a certificate is counted", || errors() == 1);
    let mut plain = connect(&flows);
    plain.write_all(&stream()).expect("open");
    assert_closed(&plain);
    wait_until("an exporter without TLS is counted", || errors() == 2);
    assert_eq!(flows.metric("records_received"), 0);
    tls_client(&flows, &certificates, true, &stream());
    let expected = decoded();
    let (_, caught) = flows.finish(expected.len() as u64);
    assert_eq!(comparable(caught.records), expected);
}
