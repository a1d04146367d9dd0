//! Connections that break, idle, flood or speak another language, and a backend that takes nothing: what was taken in
//! is told and delivered, and nobody else is hurt.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use catchment_tests::{
    Behind, Caught, Certificates, Engine, HEAD, Listeners, Scene, Sender, Sink, free_port, local, octet_counted,
    start_loadgen, wait_until,
};
use nix::sys::signal::Signal;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, setsockopt, socket, sockopt::Linger,
};
use serde_json::Value;

const GOOD: &str = "<13>1 2026-11-30T12:00:00Z host app - - - ";

/// An engine with a syslog receiver that has `tcp` beside its address, and a sink behind it.
struct Small {
    engine: Engine,
    sink: Sink,
}

impl Small {
    fn start(scene: &Scene, settings: &str) -> Self {
        let sink = Sink::start(scene);
        let engine = Engine::start(scene, &Self::yaml(settings), &[("otap", sink.otap())]);
        Self { engine, sink }
    }

    /// `settings` is of TCP.
    fn yaml(settings: &str) -> String {
        let address = "listening_addr: \"127.0.0.1:@syslog@\"";
        let yaml = Behind::new().batch().otap().yaml("");
        yaml.replace(&format!("{address}, framing: octet_counting"), &format!("{address}{settings}"))
    }

    fn address(&self) -> SocketAddr {
        self.engine.address("syslog")
    }

    fn metric(&self, name: &str) -> u64 {
        self.engine.metric("receiver.syslog", name)
    }

    /// Stops both; everything that came in has been acknowledged. Gives the line of the receiver.
    fn stop(self) -> (catchment_tests::NodeLine, Caught) {
        let stopped = self.engine.stop();
        let caught = self.sink.stop();
        let line = stopped.expect_clean().node("edge/syslog").clone();
        assert_eq!((line.received, line.note("acknowledged")), (Some(line.sent), line.sent), "{line:?}");
        assert_eq!(caught.logs, line.sent);
        (line, caught)
    }
}

fn texts<'c>(caught: &'c Caught) -> Vec<&'c str> {
    let text = |record: &'c Value| {
        record["attributes"]["syslog.message"].as_str().unwrap_or_else(|| panic!("no text in {record}"))
    };
    let mut texts: Vec<_> = caught.records.iter().map(text).collect();
    texts.sort_unstable();
    texts
}

/// Whether the other side has closed the connection, cleanly or not.
fn assert_closed(mut stream: &TcpStream) {
    stream.set_read_timeout(Some(catchment_tests::PATIENCE)).expect("a setting of sockets");
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => {}
        Err(error) => assert_ne!(error.kind(), ErrorKind::WouldBlock, "the connection was not closed"),
    }
}

/// A reset in the middle of a frame: what was whole is there, the beginning of the frame is marked as cut, and the next
/// connection is not touched.
#[test]
fn a_reset_in_the_middle_of_a_frame() {
    let scene = Scene::new();
    let small = Small::start(&scene, "");
    let mut stream = TcpStream::connect(small.address()).expect("it listens");
    let whole = octet_counted(format!("{GOOD}whole").as_bytes());
    let half = format!("999 {GOOD}half");
    stream.write_all(&[&whole[..], half.as_bytes()].concat()).expect("open");
    // A reset takes away what has not been read.
    wait_until("the beginning of the frame is read", || small.metric("bytes_buffered") > 0);
    setsockopt(&stream, Linger, &nix::libc::linger { l_onoff: 1, l_linger: 0 }).expect("a setting of sockets");
    drop(stream);
    wait_until("the connection is gone", || small.metric("connections_open") == 0);
    let mut next = TcpStream::connect(small.address()).expect("it listens");
    next.write_all(&octet_counted(format!("{GOOD}next").as_bytes())).expect("open");
    wait_until("the next is read", || small.metric("messages_received") >= 2);
    drop(next);
    let (line, caught) = small.stop();
    let found = texts(&caught);
    assert!(found.contains(&"whole") && found.contains(&"next"), "{found:?}");
    assert!(found.len() <= 3, "{found:?}");
    for record in &caught.records {
        let is_cut = record["attributes"]["syslog.truncated"] == true;
        assert_eq!(is_cut, record["attributes"]["syslog.message"] == "half", "{record}");
    }
    assert_eq!(line.note("truncated"), found.len() as u64 - 2);
}

/// A backend that stands still: the receiver stops reading, so that the sender has to wait, and holds little. When the
/// backend goes on, everything comes once.
#[test]
fn a_backend_that_stands_still() {
    const MIB: u64 = 1 << 20;
    let scene = Scene::new();
    let sink = Sink::start(&scene);
    let yaml = Behind::new().otlp().yaml(", max_in_flight_bytes: 1 MiB, batch: {max_messages: 1000}");
    let engine = Engine::start(&scene, &yaml, &[("otlp", sink.otlp())]);
    let mut stream = TcpStream::connect(engine.address("syslog")).expect("it listens");
    stream.set_write_timeout(Some(Duration::from_secs(3))).expect("a setting of sockets");
    stream.write_all(&octet_counted(format!("{GOOD}first").as_bytes())).expect("open");
    wait_until("the exporter is connected", || engine.metric("receiver.syslog", "messages_acknowledged") == 1);
    let before = engine.resident_bytes();
    sink.signal(Signal::SIGSTOP);
    let block: Vec<u8> = (0..256)
        .flat_map(|number| octet_counted(format!("{GOOD}{number:04} {}", "x".repeat(1000)).as_bytes()))
        .collect();
    let (mut sent, mut pending) = (0, &block[..]);
    loop {
        match stream.write(pending) {
            Ok(count) => {
                pending = &pending[count..];
                sent += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("the connection broke: {error}"),
        }
        if pending.is_empty() {
            pending = &block;
        }
        assert!(sent < 256 * MIB, "the sender is never pushed back");
    }
    let grown = engine.resident_bytes().saturating_sub(before);
    assert!(grown < 64 * MIB, "{grown} bytes more after {sent} were sent");
    sink.signal(Signal::SIGCONT);
    stream.set_write_timeout(Some(catchment_tests::PATIENCE)).expect("a setting of sockets");
    stream.write_all(pending).expect("it is read again");
    let total = (sent + pending.len() as u64) / block.len() as u64 * 256 + 1;
    stream.shutdown(Shutdown::Write).expect("open");
    wait_until("all is acknowledged", || engine.metric("receiver.syslog", "messages_acknowledged") == total);
    let stopped = engine.stop();
    let caught = sink.stop();
    let line = stopped.expect_clean().node("edge/syslog");
    assert_eq!((line.received, line.note("acknowledged"), caught.logs), (Some(total), total, total));
    for number in 0..256 {
        let text = format!("{number:04} ");
        let times = caught.records.iter().filter(|record| {
            record["attributes"]["syslog.message"].as_str().is_some_and(|message| message.starts_with(&text))
        });
        assert_eq!(times.count() as u64, total / 256, "message {number}");
    }
}

/// A thousand connections that say nothing, one that does.
#[test]
fn a_thousand_idle_connections() {
    let scene = Scene::new();
    let small = Small::start(&scene, "");
    let idle: Vec<_> = (0..1_000).map(|_| TcpStream::connect(small.address()).expect("it listens")).collect();
    wait_until("all are accepted", || small.metric("connections_open") == 1_000);
    let mut stream = TcpStream::connect(small.address()).expect("it listens");
    for number in 0..100 {
        writeln!(stream, "{GOOD}{number:02}").expect("open");
    }
    wait_until("all lines are acknowledged", || small.metric("messages_acknowledged") == 100);
    assert_eq!(small.metric("connections_refused"), 0);
    drop((idle, stream));
    let (line, caught) = small.stop();
    assert_eq!((line.sent, texts(&caught).len()), (100, 100));
}

/// A connection from a certain address of the loopback interface.
fn connect_from(last: u8, to: SocketAddr) -> TcpStream {
    let stream = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).expect("a socket");
    let from = SockaddrIn::new(127, 0, 0, last, 0);
    bind(std::os::fd::AsRawFd::as_raw_fd(&stream), &from).expect("an address of loopback");
    connect(std::os::fd::AsRawFd::as_raw_fd(&stream), &SockaddrIn::new(127, 0, 0, 1, to.port())).expect("it listens");
    TcpStream::from(stream)
}

/// The limit of a source closes its further connections and nobody else's.
#[test]
fn connections_of_one_source_are_limited() {
    let scene = Scene::new();
    let small = Small::start(&scene, ", max_connections_per_source: 2");
    let mut first = connect_from(1, small.address());
    let _second = connect_from(1, small.address());
    wait_until("two are accepted", || small.metric("connections_open") == 2);
    let third = connect_from(1, small.address());
    assert_closed(&third);
    let mut other = connect_from(2, small.address());
    writeln!(first, "{GOOD}first").expect("open");
    writeln!(other, "{GOOD}other").expect("open");
    wait_until("both lines are read", || small.metric("messages_received") == 2);
    assert_eq!((small.metric("connections_refused"), small.metric("connections_refused_per_source")), (1, 1));
    let (_, caught) = small.stop();
    assert_eq!(texts(&caught), ["first", "other"]);
}

/// Plain text to a TLS port, a client without the certificate that is asked for, and TLS to a port without: closed,
/// counted, no records; those who speak as they should are heard.
#[test]
fn wrong_languages() {
    // The beginning of a ClientHello: handshake record, TLS 1.0, 512 bytes.
    const HELLO: [u8; 11] = [0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03];
    let scene = Scene::new();
    let listeners = Listeners::start(&scene);
    let errors = || listeners.engine.metric("receiver.syslog", "tls_handshake_errors");
    for (at, (port, bytes)) in
        [("tls", format!("{GOOD}text\n").as_bytes()), ("mutual", format!("{GOOD}text\n").as_bytes()), ("plain", &HELLO)]
            .into_iter()
            .enumerate()
    {
        let mut stream = TcpStream::connect(listeners.engine.address(port)).expect("it listens");
        stream.write_all(bytes).expect("open");
        assert_closed(&stream);
        wait_until("it is counted", || errors() == at as u64 + 1);
    }
    let mut stream = TcpStream::connect(listeners.engine.address("plain")).expect("it listens");
    writeln!(stream, "{GOOD}heard").expect("open");
    drop(stream);
    let mut count = 1;
    if let Some(loggen) = Sender::find("loggen") {
        let (tls, mutual) = (listeners.engine.port("tls").to_string(), listeners.engine.port("mutual").to_string());
        let arguments = ["-U", "-Q", "-r", "1000", "-n", "20", "127.0.0.1"];
        let _ = loggen.run(&[&arguments[..], &[&tls]].concat());
        count += 20;
        // It has no certificate. Whether it notices that it is not heard is its own affair.
        let _ = loggen.start(&[&arguments[..], &[&mutual]].concat()).wait();
        wait_until("it is counted", || errors() >= 4);
    }
    let (report, _) = listeners.finish(count);
    assert_eq!(report.node("edge/mutual").received, Some(0));
}

/// SIGTERM while senders send by UDP, TCP and TLS: the books balance, and the sink has what was acknowledged.
#[test]
fn an_end_while_senders_send() {
    const ENDLESS: &str = "1000000000";
    let scene = Scene::new();
    let listeners = Listeners::start(&scene);
    let engine = &listeners.engine;
    let arguments = ["--format", "rfc5424_sd", "--count", ENDLESS];
    let udp = start_loadgen("syslog", &engine.udp("plain"), &[&arguments[..], &["--rate", "2000"]].concat());
    let tcp = start_loadgen("syslog", &engine.tcp("plain"), &[&arguments[..], &["--connections", "3"]].concat());
    let tls = engine.port("tls").to_string();
    let secret =
        Sender::find("loggen").map(|loggen| loggen.start(&["-U", "-P", "-Q", "-T", "-r", "2000", "127.0.0.1", &tls]));
    let wanted = 5_000;
    wait_until("lines are acknowledged", || engine.metric("receiver.syslog", "messages_acknowledged") >= wanted);
    if secret.is_some() {
        wait_until("lines over TLS", || {
            listeners.sink.records().iter().any(|record| record["attributes"]["syslog.app_name"] == "prg00000")
        });
    }
    let Listeners { engine, sink, certificates: Certificates { .. } } = listeners;
    let stopped = engine.stop();
    drop((udp, tcp, secret));
    let caught = sink.stop();
    let report = stopped.expect_clean();
    let mut sent = 0;
    for receiver in ["edge/plain", "edge/tls", "edge/mutual"] {
        let line = report.node(receiver);
        assert_eq!((line.received, line.note("acknowledged")), (Some(line.sent), line.sent), "{line:?}");
        sent += line.sent;
    }
    assert!(sent >= wanted, "{sent}");
    assert_eq!(caught.logs, sent);
}

/// The next engine takes the ports of the one before, whose connections were still open.
#[test]
fn a_restart_on_the_same_ports() {
    let scene = Scene::new();
    let sink = Sink::start(&scene);
    let port = free_port();
    let yaml = format!(
        "{HEAD}groups:\n  site:\n    pipelines:\n      edge:\n        nodes:\n          syslog: {{type: \
         \"urn:catchment:receiver:syslog\", config: {{udp: {{listening_addr: \"127.0.0.1:@syslog@\"}}, tcp: \
         {{listening_addr: \"127.0.0.1:@syslog@\"}}}}}}\n          otap: {{type: exporter:otap, config: \
         {{grpc_endpoint: \"http://127.0.0.1:@otap@\"}}}}\n        connections: [{{from: syslog, to: otap}}]\n"
    );
    let mut open = Vec::new();
    for round in 0..3 {
        let engine = Engine::start(&scene, &yaml, &[("otap", sink.otap()), ("syslog", port)]);
        let mut stream = TcpStream::connect(local(port)).expect("it listens");
        writeln!(stream, "{GOOD}tcp {round}").expect("open");
        let socket = UdpSocket::bind(local(0)).expect("a free port");
        let _ = socket.send_to(format!("{GOOD}udp {round}").as_bytes(), local(port)).expect("loopback takes it");
        wait_until("both are acknowledged", || engine.metric("receiver.syslog", "messages_acknowledged") == 2);
        let stopped = engine.stop();
        assert_eq!(stopped.expect_clean().node("edge/syslog").received, Some(2));
        open.push(stream);
    }
    let caught = sink.stop();
    assert_eq!(texts(&caught), ["tcp 0", "tcp 1", "tcp 2", "udp 0", "udp 1", "udp 2"]);
}
