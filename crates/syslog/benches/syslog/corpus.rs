//! Lines of the shapes that load tests of syslog receivers use: the same 256 of each shape in every run.

/// Lines of one shape.
pub(super) const LINES: usize = 256;

const HOSTS: [&str; 6] = ["edge-eu-01", "edge-us-02", "app-eu-01", "app-us-02", "store-eu-02", "store-us-01"];

const TEXTS: [&str; 6] = [
    "link {n} of pair {m} came up after {k} ms, carrier steady, renegotiated once with peer",
    "accepted key for deploy from 192.0.2.{m} port {k} ssh2: session {n} opened by uid {m}",
    "GET /v1/items/{n}?page={m} 200 {k} bytes in {m} ms for client 198.51.100.{m}, cached",
    "queue depth {n}, oldest entry {k} s, {m} workers busy, back to normal after the restart",
    "disk sd{m} reports {n} reallocated sectors, temperature {m} C, self test {k} without fault",
    "lease 203.0.113.{m} renewed for host-{n}, expires in {k} s, pool main has {m} left",
];

const EVENTS: [&str; 5] = [
    "CEF:0|Norwall|NX-OSF|11.2.4|SSH probe({n})|SSH probe|{m}|act=drop app=ssh src=192.0.2.{m} dst=198.51.100.{m} \
     spt={k} dpt=22 proto=TCP cnt={n} cs1=THREAT cs2=brute-force dvchost=NX-{k} deviceExternalId=sess-{n}",
    "CEF:0|Palisade|Gateway|6.4.9|0100032002|admin login failed|{m}|src=192.0.2.{m} dst=198.51.100.{m} spt={k} \
     dpt=8443 proto=TCP act=deny user=operator session_id=sess-{n} reason=bad_credentials cn1={k} msg=third in a row",
    "CEF:0|Kestrel|EDR|2.18|ProcessBlocked|Suspicious process|{m}|src=192.0.2.{m} dst=198.51.100.{m} \
     fname=/var/tmp/run_{n}.sh fileHash=00ff{n}{k}aa77 act=kill cs1=Behaviour uid=u{k} cnt={m} sproc=/usr/bin/env",
    "CEF:0|Brightnet|ASX|9.20|106100|access list hit|{m}|src=192.0.2.{m} spt={k} dst=198.51.100.{m} dpt={k} \
     proto=UDP act=deny cs1=dmz_in cn1={n} reason=acl session=sess-{n} cs2=lan to dmz policy",
    "CEF:0|Skyproxy|Feed|7.0|UrlPolicy|URL refused|{m}|src=192.0.2.{m} dst=198.51.100.{m} dpt=443 \
     request=https://files.example.net/get/00ff{n}{k} act=blocked cs1=Unknown cs2=storage uid=u{k} cnt={n}",
];

/// Where the stamp of a line goes.
const STAMP: &str = "{stamp}";

/// Name of a shape, template of its lines, and the stamp of each line in it.
type Shape = (&'static str, &'static str, fn(usize) -> String);

const SHAPES: [Shape; 8] = [
    ("rfc3164", "<134>{stamp} {host} loadgen[{k}]: {text}", bsd_stamp),
    ("rfc5424", "<134>1 {stamp} {host} loadgen {k} EV{m} - {text}, reported by the supervisor", iso_stamp),
    (
        "rfc5424_sd",
        "<134>1 {stamp} {host} loadgen {k} EV{m} [ctx@32473 req=\"00ff{n}\" zone=\"z{m}\" retry=\"{m}\"]\
         [origin ip=\"192.0.2.{m}\"] {text}; and then {text}, reported by the supervisor of this pair of hosts",
        iso_stamp,
    ),
    ("cef_in_rfc3164", "<134>{stamp} {host} loadgen: {event}", bsd_stamp),
    ("cef", "{event}", bsd_stamp),
    ("short_rfc3164", "<134>{stamp} {host} app[{k}]: link {n} of pair {m} came up", bsd_stamp),
    ("short_rfc5424", "<134>1 {stamp} {host} app {k} ID{m} - link {n} is up", iso_stamp),
    ("short_cef", "CEF:0|Norwall|NX|11.2|{n}|probe|{m}|src=192.0.2.{m} spt={k} act=drop", bsd_stamp),
];

fn bsd_stamp(number: usize) -> String {
    format!("Nov {:2} {:02}:{:02}:{:02}", 1 + number % 30, number % 24, number % 60, number * 7 % 60)
}

fn iso_stamp(number: usize) -> String {
    let micros = number * 3_907 % 1_000_000;
    format!("2026-11-{:02}T{:02}:{:02}:{:02}.{micros:06}Z", 1 + number % 30, number % 24, number % 60, number * 7 % 60)
}

/// Every shape with its lines.
pub(super) fn shapes() -> impl Iterator<Item = (&'static str, Vec<String>)> {
    SHAPES.iter().map(|&(name, template, stamp)| {
        let line = |number: usize| {
            template
                .replace("{text}", TEXTS[number % TEXTS.len()])
                .replace("{event}", EVENTS[number % EVENTS.len()])
                .replace(STAMP, &stamp(number))
                .replace("{host}", HOSTS[number % HOSTS.len()])
                .replace("{n}", &(number * 7_919 % 1_000_000).to_string())
                .replace("{m}", &(number * 31 % 200 + 1).to_string())
                .replace("{k}", &(number * 263 % 60_000 + 1_024).to_string())
        };
        (name, (0..LINES).map(line).collect())
    })
}
