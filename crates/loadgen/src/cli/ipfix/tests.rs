use std::io::Read as _;
use std::net::{TcpListener, UdpSocket};

use catchment_ipfix::{Admitted, Limits, Session, Transport};

use super::*;
use crate::cli::Command;
use crate::cli::send::tests::command;

fn ipfix_command(words: &str) -> Result<Summary, CliError> {
    let words: Vec<&str> = words.split(' ').collect();
    let Command::Ipfix(args) = command(&words) else { panic!("not ipfix") };
    ipfix(&args)
}

fn sonic_command(words: &str) -> Result<Summary, CliError> {
    let words: Vec<&str> = words.split(' ').collect();
    let Command::Sonic(args) = command(&words) else { panic!("not sonic") };
    sonic(&args)
}

/// Admits messages that follow each other.
fn admit(session: &mut Session, mut stream: &[u8]) -> Admitted {
    let mut admitted = Admitted::default();
    while let Some(length) = catchment_ipfix::stream_message_length(stream).unwrap() {
        let (message, rest) = stream.split_at(length);
        session.admit(message, &mut admitted);
        stream = rest;
    }
    assert!(stream.is_empty());
    assert_eq!(admitted.problems, []);
    admitted
}

/// Flow messages arrive whole, and their records are counted.
#[test]
fn ipfix_datagrams() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = format!("udp://{}", socket.local_addr().unwrap());
    let args =
        ["ipfix", "--to", &to, "--protocol", "ipfix", "--fields", "softflowd", "--messages", "3", "--domain", "7"];
    let Command::Ipfix(args) = command(&args) else { panic!("not ipfix") };
    let summary = ipfix(&args).unwrap();
    assert_eq!(summary.messages, 3);
    assert!(summary.records > summary.messages);
    let mut bytes = 0;
    for _ in 0..3 {
        let mut datagram = [0; 2_000];
        let length = socket.recv(&mut datagram).unwrap();
        assert_eq!(datagram[..2], [0, 10], "the version of IPFIX");
        assert_eq!(usize::from(u16::from_be_bytes([datagram[2], datagram[3]])), length);
        assert_eq!(datagram[12..16], [0, 0, 0, 7], "the observation domain");
        bytes += length as u64;
    }
    assert_eq!(summary.bytes, bytes);
}

/// A file holds all messages of all domains, and lost ones are counted instead.
#[test]
fn ipfix_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flows.ipfix");
    let to = format!("file:{}", file.display());
    let words = "--protocol ipfix --fields ios_xr --messages 60 --exporters 2 --domains 3 --options-every 5 \
                 --lose-every 10";
    let summary = ipfix_command(&format!("ipfix --to {to} {words}")).unwrap();
    let stream = std::fs::read(&file).unwrap();
    let admitted = admit(&mut Session::new(Transport::Udp, Limits::default()), &stream);
    let counters = admitted.counters;
    assert_eq!((summary.messages, summary.bytes), (60, stream.len() as u64));
    assert_eq!(counters.messages, 60);
    assert_eq!(counters.flow_records + counters.options_records, summary.records);
    assert!(counters.options_records > 0);
    // The last message of an exporter that got lost is missed only by its successor.
    let lost = summary.lost_records.unwrap();
    assert!(summary.lost_messages == Some(6) && counters.lost_records > 0 && counters.lost_records <= lost);
    let domains: std::collections::BTreeSet<u32> = admitted.messages.iter().map(|message| message.domain).collect();
    assert_eq!(domains.len(), 6);
}

/// Exporters have ports of their own over UDP, and connections over TCP.
#[test]
fn several_exporters() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = socket.local_addr().unwrap();
    let words = "--protocol netflow_v5 --messages 6 --exporters 3";
    let summary = ipfix_command(&format!("ipfix --to udp://{to} {words}")).unwrap();
    assert_eq!((summary.messages, summary.records), (6, 180));
    let senders: Vec<_> = (0..6).map(|_| socket.recv_from(&mut [0; 1_500]).unwrap().1).collect();
    assert_eq!(senders[..3], senders[3..]);
    assert!(senders[0] != senders[1] && senders[1] != senders[2] && senders[2] != senders[0]);

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let reader = std::thread::spawn(move || {
        let connection = || {
            let mut stream = Vec::new();
            let _ = listener.accept().unwrap().0.read_to_end(&mut stream).unwrap();
            let mut session = Session::new(Transport::Stream, Limits::default());
            admit(&mut session, &stream).counters.flow_records
        };
        (0..2).map(|_| connection()).sum::<u64>()
    });
    let words = "--protocol ipfix --fields basic --messages 9 --exporters 2";
    let summary = ipfix_command(&format!("ipfix --to tcp://{to} {words}")).unwrap();
    assert_eq!(reader.join().unwrap(), summary.records);
}

/// What cannot be is refused with what would be right.
#[test]
fn refused() {
    for (words, expected) in [
        ("--to tcp://127.0.0.1:9 --protocol netflow_v9 --fields router", "udp://"),
        ("--to file:/tmp/none --protocol netflow_v5", "pcap:"),
        ("--to udp://127.0.0.1:9 --protocol netflow_v5 --templates never", "netflow_v5"),
        ("--to udp://127.0.0.1:9 --protocol ipfix --fields basic --records-per-message 0", "records_per_message"),
    ] {
        let error = ipfix_command(&format!("ipfix {words} --messages 1")).unwrap_err().to_string();
        assert!(error.contains(expected), "{words}: {error}");
    }
    let error = sonic_command("sonic --to udp://127.0.0.1:9 --objects 1 --stats 99 --messages 1").unwrap_err();
    assert!(error.to_string().contains("statistics"), "{error}");
}

/// The session goes to its files, the payloads to theirs, and both fit together.
#[test]
fn sonic_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let [stream, row, config] = ["stream.ipfix", "session.json", "session.ipfix"].map(path);
    let summary = sonic_command(&format!(
        "sonic --to file:{stream} --objects 200 --stats 50 --messages 3 --messages-per-payload 4 \
         --session-file {row} --session-config-file {config}"
    ))
    .unwrap();
    let row: serde_json::Value = serde_json::from_slice(&std::fs::read(row).unwrap()).unwrap();
    let fields = &row["redis"]["fields"];
    assert_eq!(row["redis"]["key"], "HIGH_FREQUENCY_TELEMETRY_SESSION_TABLE|hft0|PORT");
    assert_eq!(fields["object_names"].as_str().unwrap().split(',').count(), 200);
    let config = std::fs::read(config).unwrap();
    let digits: String = config.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(fields["session_config_hex"], digits.as_str());

    let mut session = Session::new(Transport::Udp, Limits::default());
    assert_eq!(admit(&mut session, &config).counters.templates_new, 2);
    let counters = admit(&mut session, &std::fs::read(stream).unwrap()).counters;
    assert_eq!((summary.messages, counters.messages, counters.unknown_template_sets), (3, 12, 0));
    assert_eq!(summary.records, counters.flow_records);
    assert_eq!(summary.counters, Some(6 * 200 * 50));
}
