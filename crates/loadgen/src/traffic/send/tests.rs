//! What arrives is what the senders say; the pace is kept against a clock that is not the machine's.

use std::io::Read;
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

use super::*;
use crate::traffic::{FlowExporter, FlowFields, FlowOptions, FlowProtocol};
use crate::traffic::{Payloads, SyslogFormat, SyslogLines};

/// As fast as it goes.
fn unpaced(count: u64) -> SendOptions {
    SendOptions { count, per_second: None }
}

fn loopback() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// Sends over TCP to a listener that reads to the end, and gives both sides of the story.
fn over_tcp(source: &mut impl Source, framing: Framing, count: u64) -> (Sent, Vec<u8>) {
    let listener = TcpListener::bind(loopback()).unwrap();
    let target = listener.local_addr().unwrap();
    let receiver = thread::spawn(move || {
        let mut received = Vec::new();
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_to_end(&mut received).unwrap();
        received
    });
    let sent = send_tcp(target, source, framing, &unpaced(count)).unwrap();
    (sent, receiver.join().unwrap())
}

/// Each datagram is one message, and the counts are exact.
#[test]
fn udp_counts() {
    let socket = UdpSocket::bind(loopback()).unwrap();
    let limit = Some(Duration::from_secs(10));
    socket.set_read_timeout(limit).unwrap();
    let options = FlowOptions::new(FlowProtocol::Ipfix, FlowFields::Router, 9, 1);
    let mut exporter = FlowExporter::new(options.clone()).unwrap();
    let target = socket.local_addr().unwrap();
    let sent = send_udp(target, &mut exporter, &unpaced(20)).unwrap();

    let mut same = FlowExporter::new(options).unwrap();
    let (mut bytes, mut records) = (0, 0);
    for _ in 0..20 {
        let mut received = [0; 2_000];
        let length = socket.recv(&mut received).unwrap();
        let mut expected = Vec::new();
        records += same.append_next(&mut expected).unwrap();
        assert_eq!(received[..length], expected);
        bytes += length as u64;
    }
    let messages = 20;
    assert_eq!(sent, Sent { messages, records, bytes });
}

/// A source that ends before the count, and a count of nothing.
#[test]
fn fewer_than_the_count() {
    let socket = UdpSocket::bind(loopback()).unwrap();
    let target = socket.local_addr().unwrap();
    let mut source = Payloads([b"one".as_slice(), b"three"].into_iter());
    let sent = send_udp(target, &mut source, &unpaced(100)).unwrap();
    assert_eq!((sent.messages, sent.records, sent.bytes), (2, 2, 8));
    let mut lines = SyslogLines::new(SyslogFormat::Cef, 1);
    assert_eq!(send_udp(target, &mut lines, &unpaced(0)).unwrap(), Sent::default());
}

/// A datagram that is too large is an error that says what went out before it.
#[test]
fn udp_failure() {
    let socket = UdpSocket::bind(loopback()).unwrap();
    let target = socket.local_addr().unwrap();
    let mut source = Payloads([vec![1; 10], vec![2; 70_000]].into_iter());
    let error = send_udp(target, &mut source, &unpaced(2)).unwrap_err();
    assert_eq!((error.sent.messages, error.sent.bytes), (1, 10));
    let message = error.to_string();
    assert!(message.starts_with(&format!("sending to {target} failed after 1 messages: ")));
}

/// Lines over TCP: more than the buffer, in order, counted without their framing.
#[test]
fn tcp_newline() {
    let (sent, received) = over_tcp(&mut SyslogLines::new(SyslogFormat::Rfc5424, 5), Framing::Newline, 2_345);
    let lines: Vec<&[u8]> = received.split(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len(), 2_346);
    assert_eq!((sent.messages, sent.records), (2_345, 2_345));
    assert_eq!(sent.bytes, received.len() as u64 - 2_345);
    let mut same = SyslogLines::new(SyslogFormat::Rfc5424, 5);
    for line in &lines[..2_345] {
        let mut expected = Vec::new();
        same.append_next(&mut expected);
        assert_eq!(*line, expected);
    }
}

/// Counted frames, with a message that holds what would end a line; and bare messages.
#[test]
fn tcp_other_framings() {
    let messages = || Payloads(["ab\nc", "", "defghijklm"].iter());
    let (sent, received) = over_tcp(&mut messages(), Framing::Octet, 10);
    assert_eq!(received, b"4 ab\nc0 10 defghijklm");
    assert_eq!((sent.messages, sent.bytes), (3, 14));
    let (sent, received) = over_tcp(&mut messages(), Framing::None, 2);
    assert_eq!(received, b"ab\nc");
    assert_eq!((sent.messages, sent.bytes), (2, 4));
}

/// Nobody listens: an error over TCP, nothing to notice over UDP.
#[test]
fn nobody_listens() {
    let target = {
        let listener = TcpListener::bind(loopback()).unwrap();
        listener.local_addr().unwrap()
    };
    let mut lines = SyslogLines::new(SyslogFormat::Rfc3164, 1);
    let error = send_tcp(target, &mut lines, Framing::Newline, &unpaced(5)).unwrap_err();
    assert_eq!(error.source.kind(), io::ErrorKind::ConnectionRefused);
    assert_eq!(error.sent, Sent::default());
    let sent = send_udp(target, &mut lines, &unpaced(5)).unwrap();
    assert_eq!(sent.messages, 5);
}

/// Time that goes by only by sleeping, and by a cost for each burst.
struct ManualClock {
    now: Duration,
    sleeps: Vec<Duration>,
}

impl Clock for ManualClock {
    fn elapsed(&mut self) -> Duration {
        self.now
    }

    fn sleep(&mut self, duration: Duration) {
        self.now += duration;
        self.sleeps.push(duration);
    }
}

fn sleeps(count: u64, per_second: u64) -> (Vec<u64>, ManualClock) {
    let mut clock = ManualClock { now: Duration::ZERO, sleeps: Vec::new() };
    let options = SendOptions { count, per_second: NonZeroU64::new(per_second) };
    let mut bursts = Vec::new();
    let mut sent = Sent::default();
    paced(&options, &mut clock, &mut sent, |burst, sent| {
        bursts.push(burst);
        sent.messages += burst;
        Ok(true)
    })
    .unwrap();
    assert_eq!(sent.messages, count);
    (bursts, clock)
}

/// Slow rates send one by one, fast ones in bursts; the first goes at once and the last on time.
#[test]
fn pace_is_kept() {
    let (bursts, clock) = sleeps(11, 10);
    assert_eq!(bursts, [1; 11]);
    assert_eq!(clock.now, Duration::from_secs(1));
    assert_eq!(clock.sleeps, [Duration::from_millis(100); 10]);

    let (bursts, clock) = sleeps(100_050, 100_000);
    assert_eq!(bursts.len(), 1_001);
    assert_eq!(bursts.last(), Some(&50));
    assert_eq!(clock.now, Duration::from_secs(1));

    let (bursts, clock) = sleeps(2_500, 0);
    assert_eq!(bursts, [1_000, 1_000, 500]);
    assert!(clock.sleeps.is_empty());
}

/// Whoever was held up sends without waiting until it has caught up.
#[test]
fn delay_is_made_good() {
    let mut clock = ManualClock { now: Duration::ZERO, sleeps: Vec::new() };
    let options = SendOptions { count: 40, per_second: NonZeroU64::new(10) };
    let mut times = Vec::new();
    let mut sent = Sent::default();
    // The clock cannot be seen from within: a held-up start stands for a slow socket.
    clock.now = Duration::from_secs(2);
    paced(&options, &mut clock, &mut sent, |burst, sent| {
        sent.messages += burst;
        times.push(sent.messages);
        Ok(true)
    })
    .unwrap();
    assert_eq!(times.len(), 40);
    // Twenty were due already, the one at the second mark too; the others come each in its time.
    assert_eq!(clock.sleeps.len(), 19);
    assert_eq!(clock.now, Duration::from_millis(3_900));
}
