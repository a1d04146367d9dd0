//! Exporters of other projects on packets of known size and time. What they send goes to the engine and, from the same
//! socket, to nfcapd: both must find the same flows.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use catchment_tests::flows::number;
use catchment_tests::message::{received, socket_on};
use catchment_tests::pcap::{Capture, Ends};
use catchment_tests::{Flows, Nfcapd, Scene, Sender, protocol};
use serde_json::Value;

const SECOND: i64 = 1_000_000_000;
const MILLISECOND: i64 = 1_000_000;

/// Protocol, source, destination. Ports are 0 for ICMP, where exporters put other things in their place.
type Key = (String, SocketAddr, SocketAddr);

/// Packets and bytes of IP there, and those of the other direction in the same record.
type Counts = [u64; 4];

/// What goes over a line.
#[derive(Default)]
struct Traffic {
    capture: Capture,
    flows: BTreeMap<Key, Flow>,
}

#[derive(Default)]
struct Flow {
    packets: u64,
    bytes: u64,
    /// First and last packet, in seconds since 1970.
    first: u32,
    last: u32,
}

impl Traffic {
    fn add(&mut self, protocol: &str, ends: Ends, seconds: u32, headers: usize, payload: usize) {
        let ip = if ends.from.0.is_ipv4() { 20 } else { 40 };
        let flow = self.flows.entry((protocol.to_owned(), ends.from.into(), ends.to.into())).or_default();
        flow.packets += 1;
        flow.bytes += (ip + headers + payload) as u64;
        flow.first = if flow.packets == 1 { seconds } else { flow.first.min(seconds) };
        flow.last = flow.last.max(seconds);
    }

    fn udp(&mut self, seconds: u32, ends: Ends, payload: usize) {
        self.capture.udp(seconds, ends, &vec![0; payload]);
        self.add("udp", ends, seconds, 8, payload);
    }

    fn tcp(&mut self, seconds: u32, ends: Ends, flags: u8, payload: usize) {
        self.capture.tcp(seconds, ends, flags, &vec![0; payload]);
        self.add("tcp", ends, seconds, 20, payload);
    }

    fn ping(&mut self, seconds: u32, ends: Ends, payload: usize) {
        self.capture.ping(seconds, ends, &vec![0; payload]);
        self.add(if ends.from.0.is_ipv4() { "icmp" } else { "ipv6-icmp" }, ends, seconds, 8, payload);
    }

    /// Datagrams one way and both ways, a connection, and pings; in both versions of IP, within seven seconds from
    /// `begin` on.
    fn of_all_kinds(begin: u32) -> Self {
        let mut traffic = Self::default();
        let v4: [IpAddr; 2] = [[192, 0, 2, 1].into(), [198, 51, 100, 1].into()];
        let v6 = ["2001:db8::1", "2001:db8::2"].map(|text| text.parse().expect("an address"));
        for [client, server] in [v4, v6] {
            let there = |from, to| Ends { from: (client, from), to: (server, to) };
            let back = |from, to| Ends { from: (server, from), to: (client, to) };
            for number in 0..12u16 {
                for packet in 0..=u32::from(number % 3) {
                    traffic.udp(begin + packet, there(40_000 + number, 53), usize::from(10 + number));
                    if number % 2 == 1 {
                        traffic.udp(begin + packet, back(53, 40_000 + number), usize::from(40 + number));
                    }
                }
            }
            for (second, flags, bytes) in [(1, 0x02, 0), (3, 0x18, 700), (6, 0x11, 0)] {
                traffic.tcp(begin + second, there(50_000, 443), flags, bytes);
                traffic.tcp(begin + second, back(443, 50_000), flags, 2 * bytes);
            }
            for second in [2, 4] {
                traffic.ping(begin + second, there(0, 0), 56);
            }
        }
        traffic
    }
}

/// What an exporter run tells.
struct Told {
    flows: Vec<Value>,
    options: Vec<Value>,
    traffic: Traffic,
    missing: u64,
}

/// Runs `exporter` on the traffic, which is to send to the port it is given. Compares our flows with those of nfdump.
/// `None` where nfdump is missing.
fn compare(exporter: impl FnOnce(&Scene, &Path, SocketAddr)) -> Option<Told> {
    let scene = Scene::new();
    let nfcapd = Nfcapd::start(&scene)?;
    // Exporters tell uptimes, which begin with their own start: the packets are to be of later.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
    let traffic = Traffic::of_all_kinds(u32::try_from(now).expect("before 2106") + 3_600);
    let flows = Flows::start(&scene, Flows::UDP);
    let inbox = socket_on(1);
    exporter(&scene, &scene.write("traffic.pcap", traffic.capture.bytes()), inbox.local_addr().expect("an address"));
    let datagrams = received(&inbox);
    assert!(!datagrams.is_empty(), "nothing was exported");
    let outbox = socket_on(1);
    for datagram in &datagrams {
        for to in [flows.address(), nfcapd.address()] {
            let _ = outbox.send_to(datagram, to).expect("loopback takes it");
        }
    }
    let (receiver, caught) = flows.stop();
    assert_eq!(receiver.note("datagrams"), datagrams.len() as u64, "{receiver:?}");
    for note in ["malformed messages", "sets without template", "receive errors"] {
        assert_eq!(receiver.note(note), 0, "{note} of {receiver:?}");
    }
    let (flows, options): (Vec<_>, Vec<_>) = caught.records.into_iter().partition(Flows::is_flow);
    let (mut ours, mut theirs): (Vec<_>, Vec<_>) =
        (flows.iter().map(our_flow).collect(), nfcapd.flows().iter().map(their_flow).collect());
    ours.sort_unstable();
    theirs.sort_unstable();
    assert_eq!(ours, theirs, "ours, and those of nfdump");
    Some(Told { flows, options, traffic, missing: receiver.note("missing by sequence") })
}

fn end(address: &Value, port: u64, protocol: &str) -> SocketAddr {
    let address =
        address.as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("no address: {address}"));
    let port = if protocol.contains("icmp") { 0 } else { u16::try_from(port).expect("a port") };
    SocketAddr::new(address, port)
}

fn our_key(record: &Value) -> Key {
    let protocol = record["attributes"]["network.transport"].as_str().expect("a protocol");
    let end = |name: &str| {
        let port = record["attributes"][format!("{name}.port")].as_u64().unwrap_or_default();
        end(&record["attributes"][format!("{name}.address")], port, protocol)
    };
    (protocol.to_owned(), end("source"), end("destination"))
}

fn our_flow(record: &Value) -> (Key, Counts) {
    let back = |name: &str| record["attributes"][name].as_u64().unwrap_or_default();
    let counts = [
        number(record, "flow.io.packets"),
        number(record, "flow.io.bytes"),
        back("ipfix.reversePacketDeltaCount"),
        back("ipfix.reverseOctetDeltaCount"),
    ];
    (our_key(record), counts)
}

fn their_flow(flow: &Value) -> (Key, Counts) {
    let protocol = protocol(flow["proto"].as_i64());
    let protocol = protocol.as_str().expect("a keyword");
    let end = |side: &str| {
        let address = ["4", "6"].map(|version| &flow[format!("{side}{version}_addr")]);
        let address = address.into_iter().find(|address| address.is_string()).unwrap_or(&Value::Null);
        end(address, flow[format!("{side}_port")].as_u64().unwrap_or_default(), protocol)
    };
    let counts = ["in_packets", "in_bytes", "out_packets", "out_bytes"];
    let counts = counts.map(|name| flow[name].as_u64().unwrap_or_default());
    ((protocol.to_owned(), end("src"), end("dst")), counts)
}

/// Which times an exporter is to tell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Times {
    /// Start and end of every flow, as close to the truth as this.
    Within(i64),
    /// By an uptime whose beginning is in the options data: a receiver that does not look there has none.
    ByOptions,
}

/// The times of our flows lie in those of the traffic; if `whole`, they are the same.
fn check_times(told: &Told, times: Times, whole: bool) {
    let accuracy = if let Times::Within(accuracy) = times { accuracy } else { SECOND };
    for record in &told.flows {
        let flow = &told.traffic.flows[&our_key(record)];
        let time = |name: &str| record["attributes"][name].as_i64();
        let (Some(start), Some(end)) = (time("flow.start"), time("flow.end")) else {
            assert!(times == Times::ByOptions, "no times in {record}");
            continue;
        };
        let (first, last) = (i64::from(flow.first) * SECOND, i64::from(flow.last) * SECOND);
        assert!(start <= end && start >= first - accuracy && end <= last + accuracy, "{first} to {last}: {record}");
        assert!(!whole || start <= first + accuracy && end >= last - accuracy, "{first} to {last}: {record}");
    }
}

/// Every packet of the traffic is in one record, or in the other direction of one.
fn check_complete(told: &Told, versions: &[&str]) {
    let mut found: BTreeMap<Key, (u64, u64)> = BTreeMap::new();
    for (key, [packets, bytes, packets_back, bytes_back]) in told.flows.iter().map(our_flow) {
        let back = (key.0.clone(), key.2, key.1);
        for (key, packets, bytes) in [(key, packets, bytes), (back, packets_back, bytes_back)] {
            let sum = found.entry(key).or_default();
            *sum = (sum.0 + packets, sum.1 + bytes);
        }
    }
    found.retain(|_, (packets, _)| *packets > 0);
    let of_version = |key: &&Key| versions.contains(&if key.1.is_ipv4() { "ipv4" } else { "ipv6" });
    let all = told.traffic.flows.iter().filter(|(key, _)| of_version(key));
    let expected: BTreeMap<_, _> = all.map(|(key, flow)| (key.clone(), (flow.packets, flow.bytes))).collect();
    assert_eq!(found, expected);
}

fn check_type(told: &Told, flow_type: &str) {
    // softflowd leaves options data out of the sequence numbers of IPFIX.
    assert!(told.missing == 0 || flow_type == "ipfix", "{} missing", told.missing);
    for record in told.flows.iter().chain(&told.options) {
        assert_eq!(record["attributes"]["flow.type"], flow_type, "{record}");
    }
    for record in &told.flows {
        let family = if our_key(record).1.is_ipv4() { "ipv4" } else { "ipv6" };
        assert_eq!(record["attributes"]["network.type"], family, "{record}");
    }
}

fn softflowd(options: &[&str]) -> Option<Told> {
    let softflowd = Sender::find("softflowd")?;
    compare(|scene, file, to| {
        let to = to.to_string();
        let paths = [file, &scene.path("softflowd.pid")].map(|path| path.to_str().expect("a path of text").to_owned());
        let fixed = ["-r", &paths[0], "-p", &paths[1], "-n", &to, "-d", "-6", "-c", "none"];
        let _ = softflowd.run(&[&fixed, options].concat());
    })
}

/// IPFIX with times as uptime, whose beginning is in the options data.
#[test]
fn softflowd_ipfix() {
    let Some(told) = softflowd(&["-v", "10"]) else { return };
    check_type(&told, "ipfix");
    check_complete(&told, &["ipv4", "ipv6"]);
    check_times(&told, Times::ByOptions, true);
    assert_eq!(told.options.len(), 1);
    assert_eq!(told.options[0]["attributes"]["flow.sampling_rate"], 1);
}

/// NetFlow v9, whose header has whole seconds.
#[test]
fn softflowd_netflow_v9() {
    let Some(told) = softflowd(&["-v", "9"]) else { return };
    check_type(&told, "netflow_v9");
    check_complete(&told, &["ipv4", "ipv6"]);
    check_times(&told, Times::Within(SECOND), true);
}

/// NetFlow v5, which has no IPv6.
#[test]
fn softflowd_netflow_v5() {
    let Some(told) = softflowd(&["-v", "5"]) else { return };
    check_type(&told, "netflow_v5");
    check_complete(&told, &["ipv4"]);
    check_times(&told, Times::Within(10 * MILLISECOND), true);
}

/// Both directions in one record (RFC 5103).
#[test]
fn softflowd_both_directions() {
    let Some(told) = softflowd(&["-v", "10", "-b"]) else { return };
    check_complete(&told, &["ipv4", "ipv6"]);
    let both = told.flows.iter().filter(|record| our_flow(record).1[2] > 0).count();
    // Six of the datagrams and the connection are answered, in both versions of IP.
    assert_eq!(both, 14);
}

/// Times in each absolute form. softflowd makes fractions of a second by floating point.
#[test]
fn softflowd_absolute_times() {
    for (form, accuracy) in [("sec", SECOND), ("milli", MILLISECOND), ("micro", MILLISECOND), ("nano", MILLISECOND)] {
        let Some(told) = softflowd(&["-v", "10", "-A", form]) else { return };
        check_complete(&told, &["ipv4", "ipv6"]);
        check_times(&told, Times::Within(accuracy), true);
    }
}

/// One of two packets: v5 says so with each flow, the others in their options data.
#[test]
fn softflowd_sampled() {
    for version in ["5", "9", "10"] {
        let Some(told) = softflowd(&["-v", version, "-s", "2"]) else { return };
        check_sampled(&told, version == "5");
    }
}

/// The rate is 2 wherever it is told: in each flow if `in_flows`, else at least in the options data.
fn check_sampled(told: &Told, in_flows: bool) {
    let rate = |record: &Value| record["attributes"]["flow.sampling_rate"].as_u64();
    let packets: u64 = told.flows.iter().map(|record| number(record, "flow.io.packets")).sum();
    let all: u64 = told.traffic.flows.values().map(|flow| flow.packets).sum();
    assert!(packets > 0 && packets < all, "{packets} of {all}: counters are not scaled");
    assert!(told.flows.iter().all(|record| rate(record) == Some(2) || !in_flows && rate(record).is_none()));
    assert!(in_flows || told.options.iter().any(|record| rate(record) == Some(2)), "{:#?}", told.options);
}

/// pmacctd in one of its versions; it reads a file at the pace of its own and takes some seconds.
fn pmacctd(version: &str, more: &str) -> Option<Told> {
    let pmacctd = Sender::find("pmacctd")?;
    compare(|scene, file, to| {
        let config = format!(
            "daemonize: false\npcap_savefile: {}\nplugins: nfprobe[ip]\nnfprobe_receiver: {to}\nnfprobe_version: \
             {version}\nnfprobe_timeouts: tcp=1:maxlife=1\n{more}",
            file.display()
        );
        let config: PathBuf = scene.write("pmacctd.conf", config);
        // Its exit code tells whether its plugin or itself was first to end.
        let _ = pmacctd.start(&["-f", config.to_str().expect("a path of text")]).wait();
    })
}

#[test]
fn pmacctd_netflow_v5() {
    let Some(told) = pmacctd("5", "") else { return };
    check_type(&told, "netflow_v5");
    check_complete(&told, &["ipv4"]);
    check_times(&told, Times::Within(10 * MILLISECOND), false);
}

#[test]
fn pmacctd_netflow_v9() {
    let Some(told) = pmacctd("9", "") else { return };
    check_type(&told, "netflow_v9");
    check_complete(&told, &["ipv4", "ipv6"]);
    check_times(&told, Times::Within(SECOND), false);
}

#[test]
fn pmacctd_ipfix() {
    let Some(told) = pmacctd("10", "") else { return };
    check_type(&told, "ipfix");
    check_complete(&told, &["ipv4", "ipv6"]);
    check_times(&told, Times::Within(SECOND), false);
}

/// One of two packets, chosen at random.
#[test]
fn pmacctd_sampled() {
    let Some(told) = pmacctd("10", "sampling_rate: 2\n") else { return };
    check_sampled(&told, false);
}
