//! What the generated log lines are made of.
//!
//! The numbers (16 texts, 5 of them CEF, 12 hosts, 10 priorities, 8 to 12 pairs in a text) and the sizes are those of the
//! load tests that syslog receivers of this engine are usually measured with, so that results can be compared.

/// Host names.
pub(super) const HOSTS: [&str; 12] = [
    "edge-eu-01",
    "edge-eu-02",
    "edge-us-01",
    "edge-us-02",
    "app-eu-01",
    "app-eu-02",
    "app-us-01",
    "app-us-02",
    "store-eu-01",
    "store-eu-02",
    "store-us-01",
    "store-us-02",
];

/// PRI values (RFC 5424 section 6.2.1).
pub(super) const PRIORITIES: [u8; 10] = [134, 131, 132, 133, 142, 139, 150, 147, 86, 84];

/// Message texts. `{a}` and `{b}` are addresses, `{p}` and `{q}` ports, `{s}` a session, `{u}` a user, `{h}` 16 hex
/// digits, `{n}` a count, `{sev}` a severity, `{ms}` the time in milliseconds. Those that begin with `NOT-` only look
/// like CEF; they become CEF without it.
#[rustfmt::skip]
pub(super) const TEXTS: [&str; 16] = [
    "CEF:0|Norwall|NX-OSF|11.2.4|SSH brute force attempt(40015)|SSH brute force attempt|{sev}|act=drop app=ssh src={a} dst={b} spt={p} dpt=22 proto=TCP cnt={n} cs1=THREAT cs2=brute-force dvchost=NX-{u} deviceExternalId={s} rt={ms}",
    "CEF:0|Palisade|Gateway|6.4.9|0100032002|admin login failed|{sev}|src={a} dst={b} spt={p} dpt=8443 proto=TCP act=deny user=operator session_id={s} reason=bad_credentials cn1={n} msg=third failure in a row",
    "CEF:0|Kestrel|EDR|2.18|ProcessBlocked|Suspicious process|{sev}|src={a} dst={b} fname=/var/tmp/run_{h}.sh fileHash={h} act=kill cs1=Behaviour uid={u} cnt={n} sproc=/usr/bin/env",
    "CEF:0|Brightnet|ASX|9.20|106100|access list hit|{sev}|src={a} spt={p} dst={b} dpt={q} proto=UDP act=deny cs1=dmz_in cn1={n} reason=acl session={s} cs2=lan to dmz policy",
    "CEF:0|Skyproxy|Feed|7.0|UrlPolicy|URL refused|{sev}|src={a} dst={b} dpt=443 request=https://files.example.net/get/{h} act=blocked cs1=Unknown cs2=storage uid={u} cnt={n}",
    "NOT-CEF:0|Sentry|anomaly-watch|3.1|{n}|unusual connection|{sev}|src={a} dst={b} spt={p} dpt={q} proto=TCP act=alert cs1Label=Model cs1=Outlier cs2Label=Ticket cs2={s} uid={u} zone=z{sev}",
    "NOT-CEF:0|Ramparts|fw-pair|4.0|{n}|burst limit reached|{sev}|src={a} dst={b} spt={p} dpt={q} proto=UDP act=shape cs1Label=Rule cs1=BR-{h} cs2Label=Count cs2={n} zone=z{sev}",
    "NOT-CEF:0|Watchtower|nids|7.0|{n}|probable sweep|{sev}|src={a} dst={b} spt={p} dpt={q} proto=TCP act=alert cs1Label=Sig cs1=SW-{h} cs2Label=Class cs2=recon zone=z{sev}",
    "NOT-CEF:0|Forward|webcache|6.6|{n}|tunnel opened|{sev}|src={a} dst={b} spt={p} dpt={q} proto=TCP act=allow cs1Label=Verb cs1=CONNECT cs2Label=Target cs2=svc-{u}.example.org:{q} zone=z{sev}",
    "NOT-CEF:0|Balance|l7lb|3.0|{n}|upstream slow|{sev}|src={a} dst={b} spt={p} dpt={q} proto=TCP act=504 cs1Label=Pool cs1=pool-{h} cs2Label=Took cs2={n}ms zone=z{sev}",
    "NOT-CEF:0|Bulwark|waf|2.9|{n}|injection pattern|{sev}|src={a} dst={b} spt={p} dpt=443 proto=TCP act=deny cs1Label=Rule cs1=931100 cs2Label=Part cs2=x or 1 is 1 {h} zone=z{sev}",
    "NOT-CEF:0|Resolve|dns|1.20|{n}|name not found|{sev}|src={a} dst={b} spt={p} dpt=53 proto=UDP act=nxdomain cs1Label=Name cs1={h}.c2.example cs2Label=Type cs2=AAAA zone=z{sev}",
    "NOT-CEF:0|Tunnel|vpn|1.4|{n}|key exchange done|{sev}|src={a} dst={b} spt={p} dpt=51820 proto=UDP act=allow cs1Label=Peer cs1=peer-{u} cs2Label=Device cs2=wg1 zone=z{sev}",
    "NOT-CEF:0|Access|sshd|9.6|{n}|public key accepted|{sev}|src={a} dst={b} spt={p} dpt=22 proto=TCP act=accept cs1Label=Login cs1=ci-{u} cs2Label=Print cs2=SHA256:{h} zone=z{sev}",
    "NOT-CEF:0|Post|smtp|3.9|{n}|mail handed over|{sev}|src={a} dst={b} spt={p} dpt=25 proto=TCP act=sent cs1Label=Queue cs1={s} cs2Label=To cs2=box-{u}@example.org zone=z{sev}",
    "NOT-CEF:0|Keep|objects|2026|{n}|object stored|{sev}|src={a} dst={b} spt={p} dpt=9000 proto=TCP act=PUT cs1Label=Bucket cs1=lake-{u} cs2Label=Key cs2=out/{h}.parquet zone=z{sev}",
];

/// Events as `app text`, filled in anew for each line: with an RFC 3164 header 136 bytes in the mean. `{h}` never comes
/// twice.
pub(super) const SHORT_EVENTS: [&str; 6] = [
    "sshd Accepted publickey for {u} from {a} port {p} ssh2: SHA256:{h}",
    "postfix {h}: to=<box-{u}@example.org>, relay={a}:25, delay={n}, sent",
    "kernel fw-drop IN=eth0 SRC={a} DST={b} PROTO=TCP SPT={p} DPT={q} ID={h}",
    "nginx {a} {u} POST /api/v2/items/{h} 201 {n} bytes from {b}:{q}",
    "dhcpd DHCPACK on {a} to {h} via eth1 relay {b} lease {n} seconds",
    "sudo {u} : PWD=/srv/{u} ; USER=root ; COMMAND=/usr/bin/rotate --id {h}",
];

/// The same, longer: with an RFC 5424 header and a time with microseconds 184 bytes in the mean.
pub(super) const EVENTS: [&str; 6] = [
    "sshd Accepted publickey for {u} from {a} port {p} ssh2: ED25519 SHA256:{h} opened",
    "postfix {h}: to=<box-{u}@example.org>, relay=mx.example.org[{a}]:25, delay={n}, status=sent",
    "kernel fw-drop IN=eth0 OUT= SRC={a} DST={b} LEN={n} PROTO=TCP SPT={p} DPT={q} ID={h}",
    "nginx {a} {u} POST /api/v2/items/{h} 201 {n} bytes from upstream {b}:{q}",
    "dhcpd DHCPACK on {a} to {h} (host-{u}) via eth1 relay {b} lease {n} seconds",
    "sudo {u} : TTY=pts/{sev} ; PWD=/srv/{u} ; USER=root ; COMMAND=/usr/bin/rotate --id {h} -n {n}",
];

/// CEF events, filled in anew for each line: with an RFC 3164 header 247 bytes in the mean. `{h}` never comes twice.
#[rustfmt::skip]
pub(super) const CEF_EVENTS: [&str; 4] = [
    "CEF:0|Norwall|NX-OSF|11.2.4|traffic|session closed|{sev}|src={a} dst={b} spt={p} dpt={q} proto=TCP act=allow app=web suser={u} in={n} cs1Label=Rule cs1=lan-out externalId={h}",
    "CEF:0|Kestrel|EDR|2.18|ProcessStarted|process started|{sev}|src={a} suser={u} fname=/opt/jobs/run.sh fileHash={h} spid={p} cnt={n} act=observe cs1=/usr/bin/env dvchost=NX-{u} rt={ms}",
    "CEF:0|Skyproxy|Feed|7.0|UrlPolicy|request allowed|{sev}|src={a} dst={b} dpt=443 request=https://files.example.net/get/{h} in={n} suser={u} act=allowed cs2=storage cs1=z{sev} rt={ms}",
    "CEF:0|Palisade|Gateway|6.4.9|0100032002|admin login failed|{sev}|src={a} dst={b} spt={p} dpt=8443 proto=TCP act=deny duser={u} reason=bad_credentials cn1={n} cnt={sev} externalId={h}",
];
