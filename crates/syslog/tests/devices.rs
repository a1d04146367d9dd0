//! Lines as devices and daemons send them, each with what it must be read as and why.
#![allow(clippy::unwrap_used, reason = "test code; clippy exempts only the test functions themselves")]

use catchment_syslog::{Format, Receipt, Zone, parse};

/// Fields of RFC 3164 lines; an empty text means that the field is absent.
struct Line {
    line: &'static str,
    /// Host, name, process id, prefix.
    header: [&'static str; 4],
    /// RFC 3339, or absent.
    time: &'static str,
    message: &'static str,
    /// Whether nothing else needs to be kept.
    whole: bool,
    why: &'static str,
}

const fn line(
    line: &'static str,
    header: [&'static str; 4],
    time: &'static str,
    message: &'static str,
    why: &'static str,
) -> Line {
    Line { line, header, time, message, whole: true, why }
}

/// As [`line`], where something of the line is in no field.
const fn partly(
    text: &'static str,
    header: [&'static str; 4],
    time: &'static str,
    message: &'static str,
    why: &'static str,
) -> Line {
    Line { whole: false, ..line(text, header, time, message, why) }
}

const TEN: &str = "2026-11-30T10:00:00Z";

fn check(zone: &str, lines: &[Line]) {
    let zone: Zone = zone.parse().unwrap();
    let received: jiff::Timestamp = "2026-11-30T12:00:00Z".parse().unwrap();
    let receipt = Receipt { time_unix_nano: i64::try_from(received.as_nanosecond()).unwrap(), zone: &zone };
    for Line { line, header, time, message, whole, why } in lines {
        let record = parse(line.as_bytes(), &receipt);
        assert_eq!(record.format, Format::Rfc3164, "{line}");
        let text =
            |field: Option<&[u8]>| field.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()).unwrap_or_default();
        let read = [record.hostname, record.app_name, record.proc_id, record.prefix].map(text);
        assert_eq!(read, *header, "{line}\n{why}");
        assert_eq!(text(record.message), *message, "{line}\n{why}");
        let wanted = (!time.is_empty()).then(|| time.parse::<jiff::Timestamp>().unwrap().as_nanosecond());
        assert_eq!(record.time_unix_nano.map(i128::from), wanted, "{line}\n{why}");
        assert_eq!(record.fully_parsed, *whole, "{line}\n{why}");
    }
}

/// Counters, origins, clock marks and uptimes of IOS, IOS-XR and NX-OS.
#[test]
#[rustfmt::skip]
fn cisco() {
    check("UTC", &[
        line("<189>237: *Mar  1 18:46:11: %SYS-5-CONFIG_I: Configured from console by vty2", ["", "", "", "237: *"], "2026-03-01T18:46:11Z", "%SYS-5-CONFIG_I: Configured from console by vty2", "counter, clock never set"),
        line("<189>237: 000241: Nov 30 10:00:00.123 UTC: %LINK-3-UPDOWN: Interface Gi0/1 up", ["", "", "", "237: 000241:"], "2026-11-30T10:00:00.123Z", "%LINK-3-UPDOWN: Interface Gi0/1 up", "two counters, fraction, zone"),
        line("<189>29: .Nov 30 10:00:00.5: %X-5-Y: z", ["", "", "", "29: ."], "2026-11-30T10:00:00.5Z", "%X-5-Y: z", "clock not in step"),
        line("<189>29: sw1: Nov 30 10:00:00 GMT: %X-5-Y: z", ["sw1", "", "", "29: sw1:"], TEN, "%X-5-Y: z", "origin behind the counter is the host"),
        line("<189>29: sw1: *Nov 30 2026 10:00:00.5 UTC: %X-5-Y: z", ["sw1", "", "", "29: sw1: *"], "2026-11-30T10:00:00.5Z", "%X-5-Y: z", "origin, mark and year"),
        line("<189>sw1: Nov 30 10:00:00: %X-5-Y: z", ["sw1", "", "", ""], TEN, "%X-5-Y: z", "the colon behind the stamp tells an origin from a tag"),
        line("<189>192.0.2.1: Nov 30 10:00:00: %X-5-Y: z", ["192.0.2.1", "", "", ""], TEN, "%X-5-Y: z", "an address as origin is no counter"),
        line("<189>44: 2001:db8::7: Nov 30 10:00:00: %X-5-Y: z", ["2001:db8::7", "", "", "44: 2001:db8::7:"], TEN, "%X-5-Y: z", "origin with colons of its own"),
        partly("<190>5: Nov 30 10:00:00.000 EST: %SEC-6-IPACCESSLOGP: list 101 denied", ["", "", "", "5:"], TEN, "%SEC-6-IPACCESSLOGP: list 101 denied", "EST is a zone, but not the configured one"),
        line("<187>22: 13w1d: %LINK-3-UPDOWN: x", ["", "", "", "22: 13w1d:"], "", "%LINK-3-UPDOWN: x", "uptime behind a counter: no instant"),
        line("<187>22: 1y02w: %A-1-B: c", ["", "", "", "22: 1y02w:"], "", "%A-1-B: c", "uptime in years"),
        line("<187>22: 00:00:46: %A-1-B: c", ["", "", "", "22: 00:00:46:"], "", "%A-1-B: c", "uptime in its first day"),
        line("<187>7: %SYS-5-RESTART: x", ["", "", "", "7:"], "", "%SYS-5-RESTART: x", "counter alone, as a message name follows"),
        line("<189>: Nov 30 10:00:00: %SYS-5-X: y", ["", "", "", ""], TEN, "%SYS-5-X: y", "lone colon"),
        line("<189>:Nov 30 10:00:00 UTC: %ASA-6-X: y", ["", "", "", ""], TEN, "%ASA-6-X: y", "the EMBLEM colon touches the stamp"),
        line("<189>: 2026 Nov 30 10:00:00.123 UTC: %VSHD-5-VSHD_SYSLOG_CONFIG_I: x", ["", "", "", ""], "2026-11-30T10:00:00.123Z", "%VSHD-5-VSHD_SYSLOG_CONFIG_I: x", "NX-OS: year first"),
        line("<189>: 2026 Nov  3 10:00:00 UTC: %ETHPORT-5-IF_UP: x", ["", "", "", ""], "2026-11-03T10:00:00Z", "%ETHPORT-5-IF_UP: x", "NX-OS: padded day"),
        line("<189>2026 Nov 30 10:00:00.123 n7k %VSHD-5-X: y", ["n7k", "", "", ""], "2026-11-30T10:00:00.123Z", "%VSHD-5-X: y", "a message name is no tag"),
        line("<189>7: RP/0/RSP0/CPU0:Nov 30 10:00:00.123 UTC: config[65710]: %MGBL-CONFIG-6-DB_COMMIT : x", ["RP/0/RSP0/CPU0", "config", "65710", "7: RP/0/RSP0/CPU0:"], "2026-11-30T10:00:00.123Z", "%MGBL-CONFIG-6-DB_COMMIT : x", "IOS-XR: the origin touches the stamp"),
        line("<134>wlc1: *spamApTask3: Nov 30 10:00:00.123: %CAPWAP-3-X: y", ["", "wlc1", "", ""], "", "*spamApTask3: Nov 30 10:00:00.123: %CAPWAP-3-X: y", "a task stands where only a stamp makes an origin"),
        line("<134>1 1796032800.123456789 mx1 flows src=192.0.2.1", ["", "", "", ""], "", "1 1796032800.123456789 mx1 flows src=192.0.2.1", "seconds since 1970 are neither a form of stamp nor RFC 5424"),
    ]);
}

/// Firewalls: ASA, FTD, and those that write pairs, with and without a header.
#[test]
#[rustfmt::skip]
fn firewalls() {
    check("UTC", &[
        line("<166>Nov 30 2026 10:00:00 fw1 : %ASA-6-302013: Built outbound", ["fw1", "", "", ""], TEN, "%ASA-6-302013: Built outbound", "a colon alone behind the host goes"),
        line("<166>Nov 30 2026 10:00:00 192.0.2.7 : %ASA-6-302013: x", ["192.0.2.7", "", "", ""], TEN, "%ASA-6-302013: x", "address as host"),
        line("<166>Nov 30 2026 10:00:00: %ASA-6-302013: x", ["", "", "", ""], TEN, "%ASA-6-302013: x", "a message name is no host"),
        line("<166>%ASA-6-302013: x", ["", "", "", ""], "", "%ASA-6-302013: x", "nor a tag"),
        line("<113>2026-11-30T10:00:00Z ftd1 : %FTD-1-430003: DeviceUUID: x", ["ftd1", "", "", ""], TEN, "%FTD-1-430003: DeviceUUID: x", "RFC 3339 stamp"),
        line("<189>date=2026-11-30 time=10:00:00 devname=\"FG1\" logid=\"0001\"", ["", "", "", ""], "", "date=2026-11-30 time=10:00:00 devname=\"FG1\" logid=\"0001\"", "Fortinet: pairs are passed on whole"),
        line("<189>Nov 30 10:00:00 fg1 date=2026-11-30 time=10:00:00", ["fg1", "", "", ""], TEN, "date=2026-11-30 time=10:00:00", "and behind a header"),
        line("<134>id=firewall sn=0017C5 time=\"2026-11-30 10:00:00 UTC\" msg=\"a: b\"", ["", "", "", ""], "", "id=firewall sn=0017C5 time=\"2026-11-30 10:00:00 UTC\" msg=\"a: b\"", "SonicWall"),
        line("<134>  id=firewall sn=1", ["", "", "", ""], "", "id=firewall sn=1", "spaces behind PRI go"),
        line("<140>Nov 30 10:00:00 XTM_2Series firewall: msg_id=\"3000-0148\" Allow", ["XTM_2Series", "firewall", "", ""], TEN, "msg_id=\"3000-0148\" Allow", "WatchGuard"),
        line("<140>Nov 30 10:00:00 FB1 0CA (2026-11-30T10:00:00) http-proxy[1]: x", ["FB1", "", "", ""], TEN, "0CA (2026-11-30T10:00:00) http-proxy[1]: x", "serial and time behind the host are content"),
        line("<30>device=\"SFW\" date=2026-11-30 timezone=\"CET\"", ["", "", "", ""], "", "device=\"SFW\" date=2026-11-30 timezone=\"CET\"", "Sophos"),
        line("<30>2026:11:30-10:00:00 utm1 httpproxy[1234]: id=\"0001\"", ["", "", "", ""], "", "2026:11:30-10:00:00 utm1 httpproxy[1234]: id=\"0001\"", "an unknown form of stamp makes nothing a host"),
        line("<14>Nov 30 10:00:00 pa1 1,2026/11/30 10:00:00,0018,TRAFFIC,end", ["pa1", "", "", ""], TEN, "1,2026/11/30 10:00:00,0018,TRAFFIC,end", "comma-separated content"),
        line("<134>Nov 30 10:00:00 filterlog[1234]: 4,,,1000,igb0,match,block", ["", "filterlog", "1234", ""], TEN, "4,,,1000,igb0,match,block", "a tag in the place of the host"),
        line("<13>firewall,info forward: in:ether1 out:ether2", ["", "", "", ""], "", "firewall,info forward: in:ether1 out:ether2", "a comma is in no host"),
        line("<13>Nov 30 10:00:00 mt1 system,info,account user admin logged in", ["mt1", "", "", ""], TEN, "system,info,account user admin logged in", "nor in a tag"),
    ]);
}

/// Junos, HAProxy, UniFi, ESXi, switches.
#[test]
#[rustfmt::skip]
fn other_devices() {
    check("UTC", &[
        line("<29>Nov 30 10:00:00 mx1 rpd[1234]: RPD_BGP_NEIGHBOR_STATE_CHANGED: x", ["mx1", "rpd", "1234", ""], TEN, "RPD_BGP_NEIGHBOR_STATE_CHANGED: x", "the second word with a colon is content"),
        line("<29>Nov 30 10:00:00.123 2026 mx1 rpd[1]: x", ["mx1", "rpd", "1", ""], "2026-11-30T10:00:00.123Z", "x", "Junos with year and milliseconds"),
        line("<29>Nov 30 10:00:00  mx1 /kernel: %KERN-5: x", ["mx1", "/kernel", "", ""], TEN, "%KERN-5: x", "spaces before the host; a slash in the tag"),
        line("<29>2026-11-30T10:00:00.123+01:00 srx1 mgd[7]: x", ["srx1", "mgd", "7", ""], "2026-11-30T09:00:00.123Z", "x", "RFC 3339 in a BSD header"),
        line("<134>Nov 30 10:00:00 lb1 haproxy[1234]: 192.0.2.1:4000 [30/Nov/2026:10:00:00.123] fe be/s1 200", ["lb1", "haproxy", "1234", ""], TEN, "192.0.2.1:4000 [30/Nov/2026:10:00:00.123] fe be/s1 200", "HAProxy"),
        line("<134>Nov 30 10:00:00 haproxy[1234]: 192.0.2.1:4000 x", ["", "haproxy", "1234", ""], TEN, "192.0.2.1:4000 x", "HAProxy sends no host by default"),
        line("<30>Nov 30 10:00:00 U7PG2,788a20aabbcc,v6.5.28: hostapd[1]: ath0: STA", ["", "", "", ""], TEN, "U7PG2,788a20aabbcc,v6.5.28: hostapd[1]: ath0: STA", "UniFi: commas, so neither host nor tag"),
        line("<30>Nov 30 10:00:00 (\"U7PG2,788a20aabbcc,v4.3\") hostapd: x", ["", "", "", ""], TEN, "(\"U7PG2,788a20aabbcc,v4.3\") hostapd: x", "UniFi: brackets"),
        line("<4>Nov 30 10:00:00 USG kernel: [LAN_IN-2000-D]IN=eth1 SRC=192.0.2.1", ["USG", "kernel", "", ""], TEN, "[LAN_IN-2000-D]IN=eth1 SRC=192.0.2.1", "a host that could be a zone word is none"),
        line("<166>2026-11-30T10:00:00.123Z esx1.example.net Hostd: info hostd[2100] [Originator@6876 sub=x] y", ["esx1.example.net", "Hostd", "", ""], "2026-11-30T10:00:00.123Z", "info hostd[2100] [Originator@6876 sub=x] y", "ESXi"),
        line("<166>2026-11-30T10:00:00.123Z esx1 vmkernel: cpu3:2097)NMP: x", ["esx1", "vmkernel", "", ""], "2026-11-30T10:00:00.123Z", "cpu3:2097)NMP: x", "ESXi kernel"),
        line("<14>2026-11-30T10:00:00.123Z esx1 vobd[2097]:  [netCorrelator] 1us: x", ["esx1", "vobd", "2097", ""], "2026-11-30T10:00:00.123Z", " [netCorrelator] 1us: x", "one space goes, the next stays"),
        line("<14> Nov 30 10:00:00 192.0.2.5 00076 ports: port 1 is now on-line", ["192.0.2.5", "", "", ""], TEN, "00076 ports: port 1 is now on-line", "a number before the tag: all is content"),
        line("<141>Nov 30 10:00:00 2026 sw1 stm[1]: <501080> <NOTI> x", ["sw1", "stm", "1", ""], TEN, "<501080> <NOTI> x", "year behind the time"),
        line("<134>Nov 30 10:00:00 f5 notice tmm1[1234]: 01230140:5: x", ["f5", "", "", ""], TEN, "notice tmm1[1234]: 01230140:5: x", "a level before the tag"),
        line("<13>Nov 30 10:00:00 Message forwarded from aix1: sshd[1]: x", ["Message", "", "", ""], TEN, "forwarded from aix1: sshd[1]: x", "the host is one word, whatever it says"),
    ]);
}

/// Daemons and relays.
#[test]
#[rustfmt::skip]
fn daemons() {
    check("UTC", &[
        line("<22>Nov 30 10:00:00 h postfix/smtpd[12]: connect", ["h", "postfix/smtpd", "12", ""], TEN, "connect", "slash"),
        line("<78>Nov 30 10:00:00 h /usr/sbin/cron[12]: (root) CMD (x)", ["h", "/usr/sbin/cron", "12", ""], TEN, "(root) CMD (x)", "path"),
        line("<13>Nov 30 10:00:00 h sshd(pam_unix)[1]: x", ["h", "", "", ""], TEN, "sshd(pam_unix)[1]: x", "round brackets are in no tag"),
        line("<13>Nov 30 10:00:00 h su: pam_unix(su:auth): failure", ["h", "su", "", ""], TEN, "pam_unix(su:auth): failure", "the first colon ends the tag"),
        line("<13>Nov 30 10:00:00 h k8s.pod@ns#1~a+b[1-2-3]: x", ["h", "k8s.pod@ns#1~a+b", "1-2-3", ""], TEN, "x", "all marks a tag may have"),
        line("<13>Nov 30 10:00:00 h app name[1]: x", ["h", "", "", ""], TEN, "app name[1]: x", "no space in the name"),
        line("<13>Nov 30 10:00:00 h app[worker 1]: x", ["h", "app", "worker 1", ""], TEN, "x", "spaces in brackets that a colon follows"),
        line("<13>Nov 30 10:00:00 h app[1]", ["h", "app", "1", ""], TEN, "", "brackets may end the tag"),
        line("<13>Nov 30 10:00:00 h apache2[1]: [client 192.0.2.1] x", ["h", "apache2", "1", ""], TEN, "[client 192.0.2.1] x", "only the first brackets"),
        line("<13>Nov 30 10:00:00 h last message repeated 3 times", ["h", "", "", ""], TEN, "last message repeated 3 times", "a first word without colon is no tag"),
        line("<46>Nov 30 10:00:00 h -- MARK --", ["h", "", "", ""], TEN, "-- MARK --", "mark line"),
        line("<13>Nov 30 10:00:00 relay Nov 30 09:59:59 origin app: x", ["relay", "", "", ""], TEN, "Nov 30 09:59:59 origin app: x", "a second header is content"),
        line("<13>Nov 30 10:00:00 sol1 sshd[1]: [ID 800047 auth.info] x", ["sol1", "sshd", "1", ""], TEN, "[ID 800047 auth.info] x", "Solaris"),
        line("<33>Nov 30 10:00:00 ids snort[1]: [1:2000:1] x", ["ids", "snort", "1", ""], TEN, "[1:2000:1] x", "colons in the content"),
        line("<13>2026-11-30 10:00:00,123 h a: x", ["h", "a", "", ""], "2026-11-30T10:00:00.123Z", "x", "comma and space as log4j writes them"),
        line("<38>2026-11-30T10:00:00 localhost prg00000[1234]: seq: 1", ["localhost", "prg00000", "1234", ""], TEN, "seq: 1", "no offset: configured zone"),
        line("<13>Nov 30 10:00:00 h {\"time\": \"10:00:00\"}", ["h", "", "", ""], TEN, "{\"time\": \"10:00:00\"}", "JSON is passed on"),
        line("<13>Nov 30 10:00:00 h LEEF:2.0|V|P|1|id|^|src=192.0.2.1", ["h", "", "", ""], TEN, "LEEF:2.0|V|P|1|id|^|src=192.0.2.1", "so is LEEF"),
        line("<13>Nov 30 10:00:00 h NOT-CEF:0|a|b|c|d|e|5|x=1", ["h", "NOT-CEF", "", ""], TEN, "0|a|b|c|d|e|5|x=1", "not CEF, and so a tag"),
        line("<13>ntp is synchronized to: x", ["", "", "", ""], "", "ntp is synchronized to: x", "no month, no host before a verb"),
        partly("Nov 30 10:00:00 h a: x", ["h", "a", "", ""], TEN, "x", "no PRI"),
        partly("<192>Nov 30 10:00:00 h a: x", ["", "", "", ""], "", "<192>Nov 30 10:00:00 h a: x", "PRI out of range"),
    ]);
}

/// Hosts that are addresses, years in every place, ends of lines.
#[test]
#[rustfmt::skip]
fn hosts_years_and_ends() {
    check("UTC", &[
        line("<13>Nov 30 10:00:00 2001:db8::53 named[1]: x", ["2001:db8::53", "named", "1", ""], TEN, "x", "an address that begins like a year"),
        line("<13>Nov 30 10:00:00 fe80::1%eth0 kernel: x", ["fe80::1%eth0", "kernel", "", ""], TEN, "x", "address with its link"),
        line("<13>Nov 30 10:00:00 ::ffff:192.0.2.1 app: x", ["::ffff:192.0.2.1", "app", "", ""], TEN, "x", "colons first"),
        line("<13>Nov 30 10:00:00 2001:db8::1: x", ["2001:db8::1", "", "", ""], TEN, "x", "address with a colon of the header"),
        line("<13>Nov 30 10:00:00 [2001:db8::1] app: x", ["", "", "", ""], TEN, "[2001:db8::1] app: x", "brackets are in no host"),
        line("<13>Nov 30 10:00:00 192.0.2.1:514 app: x", ["192.0.2.1:514", "app", "", ""], TEN, "x", "with port"),
        line("<13>Nov 30 10:00:00 cafe: x", ["", "cafe", "", ""], TEN, "x", "hexadecimal, and yet a tag"),
        line("<13>Nov 30 2025 10:00:00 h a: x", ["h", "a", "", ""], "2025-11-30T10:00:00Z", "x", "year behind the day"),
        line("<13>Nov 30 10:00:00 2025 h a: x", ["h", "a", "", ""], "2025-11-30T10:00:00Z", "x", "year behind the time"),
        line("<13>2025 Nov 30 10:00:00 h a: x", ["h", "a", "", ""], "2025-11-30T10:00:00Z", "x", "year first"),
        line("<13>Nov 30 10:00:00 2025", ["2025", "", "", ""], TEN, "", "no space follows: a host"),
        line("<13>Nov 30 10:00:00 3000 a: x", ["3000", "a", "", ""], TEN, "x", "no year of this calendar's range: a host"),
        line("<13>Dec  7 10:00:00 h a: x", ["h", "a", "", ""], "2026-12-07T10:00:00Z", "x", "within seven days"),
        line("<13>Dec  8 10:00:00 h a: x", ["h", "a", "", ""], "2025-12-08T10:00:00Z", "x", "more than seven days ahead"),
        partly("<13>Feb 29 10:00:00 h a: x", ["h", "a", "", ""], "", "x", "neither this year nor the one before has it"),
        partly("<13>Nov 30 25:00:00 h a: x", ["h", "a", "", ""], "", "x", "no such time, but the header is found"),
        line("<13>Nov 30 10:00:00 h a: x\r", ["h", "a", "", ""], TEN, "x\r", "line ends are the framing's"),
        line("<13>Nov 30 10:00:00 h a:\tx", ["h", "a", "", ""], TEN, "\tx", "only a space goes"),
        line("<13>Nov 30 10:00:00 h a: \u{feff}x", ["h", "a", "", ""], TEN, "\u{feff}x", "a byte order mark belongs to RFC 5424"),
        line("<13>Nov 30 10:00:00 h a:", ["h", "a", "", ""], TEN, "", "empty content"),
        line("<13>Nov 30 10:00:00 h a: ", ["h", "a", "", ""], TEN, "", "one space is no content"),
        line("<13>Nov 30 10:00:00 ", ["", "", "", ""], TEN, "", "header alone"),
        line("<13>Nov 30 10:00:00", ["", "", "", ""], TEN, "", "stamp alone"),
    ]);
}

/// Zone words, and the changes of the clocks of a named zone.
#[test]
#[rustfmt::skip]
fn zones() {
    check("Europe/Berlin", &[
        line("<13>Nov 30 10:00:00 h a: x", ["h", "a", "", ""], "2026-11-30T09:00:00Z", "x", "configured zone"),
        line("<13>Nov 30 10:00:00 CET h a: x", ["h", "a", "", ""], "2026-11-30T09:00:00Z", "x", "the zone's own word"),
        line("<189>: 2026 Nov 30 10:00:00 CET: %X-1-Y: z", ["", "", "", ""], "2026-11-30T09:00:00Z", "%X-1-Y: z", "before a colon"),
        line("<13>Nov 30 10:00:00 UTC h a: x", ["h", "a", "", ""], TEN, "x", "UTC goes before the configured zone"),
        line("<13>2026-11-30T10:00:00-05:00 h a: x", ["h", "a", "", ""], "2026-11-30T15:00:00Z", "x", "so does an offset"),
        partly("<13>Nov 30 10:00:00 EST h a: x", ["h", "a", "", ""], "2026-11-30T09:00:00Z", "x", "another zone's word says what is not kept"),
        line("<13>Nov 30 10:00:00 CETI h a: x", ["CETI", "", "", ""], "2026-11-30T09:00:00Z", "h a: x", "longer than a zone word"),
        line("<13>Oct 25 02:30:00 h a: x", ["h", "a", "", ""], "2026-10-25T01:30:00Z", "x", "shown twice: the later, as that is past"),
        line("<13>Mar 29 02:30:00 h a: x", ["h", "a", "", ""], "2026-03-29T01:30:00Z", "x", "never shown: the offset before the change"),
    ]);
    check("+05:30", &[line("<13>Nov 30 10:00:00 h a: x", ["h", "a", "", ""], "2026-11-30T04:30:00Z", "x", "fixed offset")]);
}

/// RFC 5424 as routers, hypervisors and daemons send it: host, name, process id, message id, then
/// structured data, message, and whether that is all.
#[test]
#[rustfmt::skip]
fn rfc5424() {
    let junos = "[junos@2636.1.1.1.2.129 source-address=\"192.0.2.1\" source-port=\"1\"]";
    let receipt = Receipt { time_unix_nano: 1_796_040_000_000_000_000, zone: &Zone::Utc };
    for (line, header, data, message, whole, why) in [
        (format!("<28>1 2026-11-30T10:00:00.000Z srx1 RT_FLOW - RT_FLOW_CREATE {junos} "), ["srx1", "RT_FLOW", "", "RT_FLOW_CREATE"], junos, "", true, "Junos, empty message"),
        (format!("<28>1 2026-11-30T10:00:00.000Z srx1 RT_FLOW - RT_FLOW_CREATE {junos}"), ["srx1", "RT_FLOW", "", "RT_FLOW_CREATE"], junos, "", true, "Junos, no message"),
        (format!("<28>1 2026-11-30T11:00:00+01:00 srx1 RT_FLOW - X {junos} [b] x"), ["srx1", "RT_FLOW", "", "X"], junos, "[b] x", true, "behind a space a bracket is text"),
        ("<14>1 2026-11-30T10:00:00.000000+00:00 vc1 vpxd 4321 - -  info".into(), ["vc1", "vpxd", "4321", ""], "", " info", true, "a second space is text"),
        ("<134>1 2026-11-30T10:00:00Z cp1 CheckPoint 12 - [action:\"Accept\"; flags:\"1\"]".into(), ["cp1", "CheckPoint", "12", ""], "", "[action:\"Accept\"; flags:\"1\"]", false, "what is no structured data is the message"),
        ("<134>1 2026-11-30T10:00:00Z fw filterlog 12 - [meta sequenceId=\"1\"] 4,,,".into(), ["fw", "filterlog", "12", ""], "[meta sequenceId=\"1\"]", "4,,,", true, "OPNsense"),
        ("<13>1 2026-11-30T10:00:00Z 2001:db8::1 a - - - \u{feff}x".into(), ["2001:db8::1", "a", "", ""], "", "x", true, "the byte order mark goes"),
        ("<13>1 2026-11-30T10:00:00Z h a - - - \u{feff}\u{feff}x".into(), ["h", "a", "", ""], "", "\u{feff}x", true, "once"),
        ("<13>1 2026-11-30T10:00:00 CET a - - - x".into(), ["CET", "a", "", ""], "", "x", true, "no zone words here"),
        ("<13>1 2026-11-30T10:00:00Z h a - - [x@1 p=\"C:\\dir\\\\\"] m".into(), ["h", "a", "", ""], "[x@1 p=\"C:\\dir\\\\\"]", "m", true, "backslashes before the quote pair up"),
        ("<13>1 2026-11-30T10:00:00Z  a - - - x".into(), ["", "a", "", ""], "", "x", false, "an empty field is not well formed"),
        ("<13>1 2026-11-30T10:00:00Z h a".into(), ["h", "a", "", ""], "", "", false, "the header ends early"),
    ] {
        let record = parse(line.as_bytes(), &receipt);
        let text = |field: Option<&[u8]>| field.map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()).unwrap_or_default();
        assert_eq!(record.format, Format::Rfc5424, "{line}");
        assert_eq!([record.hostname, record.app_name, record.proc_id, record.msg_id].map(text), header, "{line}\n{why}");
        assert_eq!(text(record.structured_data.map(|data| data.raw())), data, "{line}\n{why}");
        assert_eq!(text(record.message), message, "{line}\n{why}");
        assert_eq!(record.fully_parsed, whole, "{line}\n{why}");
        assert_eq!(record.time_unix_nano, Some(1_796_032_800_000_000_000), "{line}\n{why}");
    }
}
