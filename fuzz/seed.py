#!/usr/bin/env python3
"""Makes the seeds of the fuzz corpus from the test data of the crates.

Writes fuzz/corpus/TARGET/seed-NAME for every target and removes seeds that it no longer makes; other files of the
corpus stay. The same test data gives the same files. Needs nothing but Python 3.9.
"""

import base64
import json
import struct
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "fuzz/corpus"
SYSLOG = ROOT / "crates/syslog/tests/data/cases.ndjson"
IPFIX = ROOT / "crates/ipfix/tests/data"
QUANTILE = ROOT / "crates/quantile/tests/data"

MAX_FILE_BYTES = 4096

# 2026-11-30T12:00:00Z in nanoseconds.
NOON = 1_796_040_000 * 10**9

# The first byte of syslog_framing, see crates/fuzzing/src/syslog.rs.
FRAMINGS = {"auto": 0, "newline": 1, "octet_counting": 2, "nul": 3}


def syslog_seeds():
    """Every case as one message; the streams among them also as streams."""
    for line in SYSLOG.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if "input_b64" in case:
            message = base64.b64decode(case["input_b64"])
        else:
            message = case["input"].encode()
        yield "syslog_parse", case["id"], message
        framing = case["framing"]
        if framing in FRAMINGS:
            longest = case.get("config", {}).get("max_message_size", 255)
            for trim, name in ((0, ""), (4, "-untrimmed")):
                head = bytes([FRAMINGS[framing] | trim, min(longest, 255), 1])
                yield "syslog_framing", case["id"] + name, head + message
            yield "syslog_framing", case["id"] + "-max16", bytes([FRAMINGS[framing], 16, 2]) + message
    ids = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
    parent = "00-%s-%s-01" % ids
    for name, text in (
        ("traceparent", f'<14>1 - - - - - [t@1 traceparent="x" TraceParent="{parent}"] m'),
        ("trace-ids", '<14>1 - - - - - [t@1 trace_id="%s" span_id="%s" trace_flags="01"] m' % ids),
        ("trace-cef", f"CEF:0|v|p|1|2|n|3|traceparent={parent} trace_id=%s  span_id=%s" % ids),
    ):
        yield "syslog_parse", name, text.encode()
    lengths = b"4 <1>a 0012 <1> 99999999999 <1>b\n12 CEF:0|a|b|c\n7 text <1>c\r\n\0"
    for framing, number in FRAMINGS.items():
        yield "syslog_framing", f"lengths-{framing}", bytes([number, 3, 5]) + lengths


def sampling_seeds():
    """Every case as a message, and messages of traces in the forms that programs write them in."""
    for line in SYSLOG.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        if case["framing"] == "datagram" and "input" in case:
            yield "syslog_sampling", case["id"], b"\x00" + case["input"].encode()
    parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-%s"
    state = "vendor=1,ot=th:8;rv:9b8233f7e3a151"
    forms = {
        "structured": '<14>1 - h a - - [t@1 traceparent="{parent}" tracestate="{state}"] m',
        "cef": "CEF:0|v|p|1|2|n|3|traceparent={parent} tracestate=vendor\\=1,ot\\=th:c",
        "json": '<14>Nov 30 10:00:00 h a[1]: {{"traceparent":"{parent}","tracestate":"{state}"}}',
        "escaped": '<14>1 - h a - - - "{{\\"traceparent\\":\\"{parent}\\"}}"',
        "text": "<11>h a: traceparent: {parent} tracestate : {state} traceparent= {parent}",
    }
    for name, form in forms.items():
        messages = [form.format(parent=parent % flags, state=state).encode() for flags in ("00", "01", "0", "ff")]
        yield "syslog_sampling", name, b"\xc8" + b"\xff".join(messages)
    yield "syslog_sampling", "headers", b"\x01" + b"\xff".join(((parent % "01").encode(), state.encode(), b"ot=th:0;th:8,ot=rv:1"))


BATCHED = (
    b"<34>Nov 30 10:00:00 web01 sshd[42]: text",
    b'<165>1 2026-11-30T10:31:00Z h app p1 ID1 [a@1 x="1" x="2"][origin ip="192.0.2.1" swVersion="3"] text',
    b"<13>Nov 30 10:00:00 h CEF:0|v|p|1|2|n|3|src=192.0.2.1 cef.name=x src=192.0.2.2",
    b"no header, caf\xe9",
    b'<14>1 - - - - - [t@1 trace_id="4bf92f3577b34da6a3ce929d0e0e4736" span_id="00f067aa0ba902b7"] m',
    b"<34>Nov 30 10:00:00 web01 sshd[42]: text",
)


def job_input(choice, records, size, given_up, messages):
    """Input of syslog_job: options, budget, the step to give up after, and messages of all senders in turn."""
    parts = [bytes([choice, records, size, given_up])]
    for number, message in enumerate(messages):
        parts.append(struct.pack(">BH", number % 8, len(message)) + message)
    return b"".join(parts)


def cbor(value):
    """Numbers, texts, byte strings, booleans, null, and arrays and maps of these, in their shortest form (RFC 8949)."""
    if value is None:
        return b"\xf6"
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, float):
        return b"\xfb" + struct.pack(">d", value)

    def head(major, number):
        for extra, (code, limit) in enumerate(((">B", 1 << 8), (">H", 1 << 16), (">I", 1 << 32))):
            if number < 24:
                return bytes([major << 5 | number])
            if number < limit:
                return bytes([major << 5 | 24 + extra]) + struct.pack(code, number)
        raise ValueError(number)

    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, dict):
        return head(5, len(value)) + b"".join(cbor(key) + cbor(entry) for key, entry in value.items())
    return head(4, len(value)) + b"".join(map(cbor, value))


def payload(options, sources, entries, messages, version=1):
    """A payload of syslog-batch-v1; entries are (length, source, time in ns, flags)."""
    return cbor([version, options, sources, b"".join(struct.pack("<IIqB", *entry) for entry in entries), messages])


def syslog_batch_seeds():
    """Jobs with options and budgets of all kinds; payloads that are whole and some that are damaged."""
    for name, head in {
        "upstream": (0, 255, 255, 0),
        "otel": (1, 1, 255, 3),
        "text-bytes": (2 << 1 | 8, 2, 255, 1),
        "flat-prefix": (3 << 1 | 1 << 4, 255, 1, 4),
        "otel-map-clash": (1 | 1 << 1 | 3 << 4, 3, 8, 9),
        "no-budget": (1 | 8 | 2 << 4, 0, 0, 2),
    }.items():
        yield "syslog_job", name, job_input(*head, BATCHED)
    same = [b"<13>Nov 30 10:00:00 h%d a%d: x" % (n % 2, n % 3) for n in range(40)]
    yield "syslog_job", "groups", job_input(1, 7, 255, 5, same)
    params = " ".join(f'p{n % 30}="{n}"' for n in range(40))
    elements = "".join(f'[e{n}@1 n="{n}"]' for n in range(20))
    pairs = " ".join(f"k{n % 25}={n}" for n in range(30))
    many = [f"<14>1 - - - - - [a@1 {params}]{elements} m".encode(), f"CEF:0|v|p|1|2|n|3|{pairs}".encode()]
    yield "syslog_job", "many-names", job_input(0, 1, 255, 1, many)
    clashing = b'<14>1 - - - - - [a.b c="1"][a b.c="2"][e][facility] m'
    yield "syslog_job", "names-flat", job_input(3 << 1 | 1, 1, 255, 1, [clashing])
    yield "syslog_job", "empty", job_input(0, 1, 1, 1, [b"", b"", b"x"])

    now = 1_796_040_000_000_000_000
    options = [0, 0, "", 0]
    sources = [
        ["192.0.2.1", 514, 0, "UTC", None],
        ["2001:db8::1", 40000, 1, "Europe/Berlin", "CN=a,O=b"],
        [None, 0, 2, "-03:30", None],
    ]
    entries = [(len(message), number % 3, now + number, number % 2) for number, message in enumerate(BATCHED)]
    messages = b"".join(BATCHED)
    yield "syslog_encoded", "whole", payload(options, sources, entries, messages)
    yield "syslog_encoded", "otel", payload([1, 3, "x.", 1], sources, entries, messages)
    yield "syslog_encoded", "no-messages", payload(options, [], [], b"")
    yield "syslog_encoded", "empty-messages", payload(options, sources, [(0, 0, 0, 0)] * 3, b"")
    yield "syslog_encoded", "zones", payload(
        options, [[None, 7, 1, zone, ""] for zone in ("utc", "Z", "europe/berlin", "+00:00")], [(1, 3, -1, 255)], b"x"
    )
    yield "syslog_encoded", "cut", payload(options, sources, entries, messages)[:-1]
    yield "syslog_encoded", "version", payload(options, sources, entries, messages, version=2)
    yield "syslog_encoded", "left-over", payload(options, sources, entries, messages + b"x")
    yield "syslog_encoded", "behind", payload(options, sources, entries, messages) + b"x"
    yield "syslog_encoded", "too-long", payload(options, sources, [(0xFFFFFFFF, 0, 0, 0)], b"x")
    yield "syslog_encoded", "no-source", payload(options, sources[:1], [(1, 1, 0, 0)], b"x")
    yield "syslog_encoded", "no-zone", payload(options, [[None, 0, 1, "Mars/Phobos", None]], [], b"")
    # Arrays that claim to be long, and one of no stated length.
    head = b"\x85\x01" + cbor(options)
    yield "syslog_encoded", "many-sources", head + b"\x9b" + b"\xff" * 8
    yield "syslog_encoded", "endless-sources", head + b"\x9f\xff\x40\x40"
    yield "syslog_encoded", "deep", b"\x85\x01" + b"\x81" * 500


def sonic_batch_seeds():
    """Payloads of ipfix-batch-v1 with SONiC's records, whole ones and some that are damaged."""
    time = struct.pack(">HH", 325, 8)

    def counter(label, statistic, width=8, object_type=1):
        return struct.pack(">HHHH", 0x8000 | label, width, object_type, statistic)

    def record(number, *fields):
        return struct.pack(">HH", number, len(fields)) + b"".join(fields)

    def lane(template, records, source, has_times=0):
        return struct.pack("<IIQB", template, records, source, has_times)

    def content(settings, cumulative, templates, lanes, times, records, points, count, kind=2):
        head = [1, kind, points, count, settings, cumulative, templates]
        return cbor(head + [b"".join(lanes), b"".join(struct.pack("<q", time) for time in times), records])

    now = 1_796_040_000_000_000_000
    timed = [3, record(256, time, *(counter(label, 4 * label % 11) for label in range(1, 9))), {1: "Ethernet0", 2: "a,b"}]
    timeless = [0, record(257, counter(7, 1, 1), struct.pack(">HHI", 0x8000, 2, 0), counter(7, 2, 3)), {7: "Queue|7"}]
    twice = [0, record(258, counter(1, 1), counter(1, 1), counter(2, 1)), {}]
    timed_records = b"".join(struct.pack(">9Q", now + n, *(n << 8 * counter for counter in range(8))) for n in range(3))
    rest = bytes(range(12)) + bytes(48)
    lanes = [lane(0, 3, 1), lane(1, 2, 1, 1), lane(2, 2, 1 << 63, 1)]
    times = [now, now + 1, -1, 0]
    for name, settings, cumulative in (
        ("plain", [0, 0, 0, 0, 8192, 0], []),
        ("wire", [0, 0, 1, 1, 8192, 1], ["SAI_PORT_*"]),
        ("resource-legacy", [1, 1, 1, 0, 16, 2], ["*"]),
        ("transport", [0, 0, 0, 1, 24, 0], ["SAI_PORT_STAT_IF_IN_OCTETS", "*_OCTETS", "*IN*"]),
        ("no-points-wanted", [0, 1, 0, 1, 0, 0], []),
    ):
        templates = [timed, timeless, twice]
        whole = content(settings, cumulative, templates, lanes, times, timed_records + rest, 34, 7)
        yield "sonic_encoded", name, whole
    yield "sonic_encoded", "cut", whole[:-7]
    yield "sonic_encoded", "longer", whole + b"\x00"
    plain = [0, 0, 0, 0, 8192, 0]
    small = [0, record(256, counter(1, 1, 1)), {1: "x"}]
    one = [lane(0, 1, 0)]
    yield "sonic_encoded", "one", content(plain, [], [small], one, [], b"\x05", 1, 1)
    yield "sonic_encoded", "none", content(plain, [], [], [], [], b"", 0, 0)
    yield "sonic_encoded", "no-records", content(plain, [], [small], [lane(0, 0, 0, 1)], [], b"", 0, 0)
    yield "sonic_encoded", "points", content(plain, [], [small], one, [], b"\x05", 9, 1)
    yield "sonic_encoded", "kind", content(plain, [], [small], one, [], b"\x05", 1, 1, kind=1)
    yield "sonic_encoded", "template", content(plain, [], [small], [lane(1, 1, 0)], [], b"\x05", 1, 1)
    yield "sonic_encoded", "times", content(plain, [], [small], one, [now], b"\x05", 1, 1)
    yield "sonic_encoded", "records", content(plain, [], [small], [lane(0, 0xFFFFFFFF, 0)], [], b"\x05", 1, 1)
    yield "sonic_encoded", "definition", content(plain, [], [[0, small[1] + b"\x00", {}]], one, [], b"\x05", 1, 1)
    yield "sonic_encoded", "reserved", content(plain, [], [[0, record(2, counter(1, 1)), {}]], one, [], bytes(8), 1, 1)
    yield "sonic_encoded", "many-patterns", content(plain, ["*a" * 20] * 40, [timed], lanes[:1], [], timed_records, 24, 3)
    yield "sonic_encoded", "endless-patterns", cbor([1, 2, 0, 0, plain])[:-1] + b"\x9f" + b"\x60" * 9


def pcap_frames(path):
    """The frames of a little-endian pcap file."""
    data = path.read_bytes()
    assert data[:4] == b"\xd4\xc3\xb2\xa1", path
    at = 24
    while at < len(data):
        length = struct.unpack_from("<I", data, at + 8)[0]
        yield data[at + 16 : at + 16 + length]
        at += 16 + length


def udp_payload(frame):
    """The payload of an Ethernet frame with IPv4 and UDP."""
    ip = 14
    assert frame[12:14] == b"\x08\x00" and frame[ip + 9] == 17
    udp = ip + 4 * (frame[ip] & 15)
    return frame[udp + 8 : udp + struct.unpack_from(">H", frame, udp + 4)[0]]


def sequence(choice, datagrams, limit=MAX_FILE_BYTES):
    """Input of ipfix_admit: the leading datagrams that fit."""
    parts = [bytes([choice])]
    for datagram in datagrams:
        part = struct.pack(">H", len(datagram)) + datagram
        if sum(map(len, parts)) + len(part) > limit:
            break
        parts.append(part)
    return b"".join(parts)


def ipfix_message(*sets, sequence_number=0, domain=1):
    body = b"".join(struct.pack(">HH", number, 4 + len(content)) + content for number, content in sets)
    return struct.pack(">HHIII", 10, 16 + len(body), 60, sequence_number, domain) + body


def template(number, *fields):
    return struct.pack(">HH", number, len(fields)) + b"".join(struct.pack(">HH", *field) for field in fields)


def lists():
    """Two messages: templates with the three kinds of lists (elements 291 to 293), and data for them."""
    variable = 65535
    templates = ipfix_message(
        (2, template(256, (8, 4), (7, 2)) + template(257, (291, variable), (292, variable), (293, variable))),
        (2, template(258, (4, 1), (292, 20))),
        (3, struct.pack(">HHH", 259, 2, 1) + struct.pack(">HHHH", 149, 4, 160, 8)),
    )
    flow = bytes([192, 0, 2, 1, 0, 80])
    basic = bytes([3]) + struct.pack(">HH", 4, 1) + bytes([6, 17])
    sub = bytes([255]) + struct.pack(">H", 256) + flow * 2
    multi = bytes([4]) + struct.pack(">HH", 256, 4 + len(flow)) + flow + struct.pack(">HH", 258, 0)
    nested = bytes([0]) + struct.pack(">HH", 292, variable) + bytes([len(sub)]) + sub
    record = b"".join(bytes([len(part)]) + part for part in (basic, sub, multi))
    deep = b"".join(bytes([len(part)]) + part for part in (nested, b"\x00\x09\x09", b"\x01"))
    data = ipfix_message(
        (257, record + deep + bytes(2)),
        (258, bytes([6]) + (sub + bytes(20))[:20]),
        (259, struct.pack(">IQ", 1, 1_796_040_000_000)),
        (300, bytes(8)),
        sequence_number=0,
    )
    return [templates, data]


def ipfix_seeds():
    for path in sorted(IPFIX.glob("local-*.pcap")):
        name = path.stem.removeprefix("local-")
        datagrams = [udp_payload(frame) for frame in pcap_frames(path)]
        choice = 1 if "tcp" in name else 0
        yield "ipfix_admit", name, sequence(choice, datagrams)
        if choice == 0:
            yield "ipfix_admit", name + "-limits", sequence(choice | 2, datagrams, 2000)
    for path in sorted(IPFIX.glob("sonic/*.session_config.ipfix")):
        name = path.name.removesuffix(".session_config.ipfix")
        datagrams = [path.read_bytes()]
        datagrams += [other.read_bytes() for other in sorted(path.parent.glob(f"{name}.datagram-*.ipfix"))]
        yield "ipfix_admit", name, sequence(4, datagrams)
        yield "ipfix_stream", name, b"".join(datagrams)
    yield "ipfix_admit", "lists", sequence(0, lists())
    yield "ipfix_admit", "lists-early", sequence(0, lists()[::-1])
    yield "ipfix_stream", "lists", b"".join(lists())
    again = ipfix_message((2, template(256, (4, 1))), sequence_number=9)
    withdrawals = ipfix_message((2, template(256)), (2, template(2)), (3, template(3)), sequence_number=3)
    yield "ipfix_stream", "withdrawals", lists()[0] + again + withdrawals
    yield "ipfix_admit", "withdrawals", sequence(1, [lists()[0], again, withdrawals, lists()[1]])
    stream = (IPFIX / "local-softflowd-ipfix-tcp-stream.ipfix").read_bytes()
    yield "ipfix_stream", "tcp-stream-begin", stream[:MAX_FILE_BYTES]
    yield "ipfix_stream", "tcp-stream-middle", stream[1000:1400]


def exchange(head, steps, limit=MAX_FILE_BYTES):
    """Input of ipfix_collector and flow_*: steps of sender, seconds and datagram, as many as fit."""
    parts = [bytes(head)]
    for who, seconds, datagram in steps:
        part = struct.pack(">BBH", who, seconds, len(datagram)) + datagram
        if sum(map(len, parts)) + len(part) <= limit:
            parts.append(part)
    return b"".join(parts)


def options(number, scopes, *fields):
    record = template(number, *fields)
    return record[:4] + struct.pack(">H", scopes) + record[4:]


def collector_seeds():
    for path in sorted(IPFIX.glob("local-*.pcap")):
        name = path.stem.removeprefix("local-")
        datagrams = [udp_payload(frame) for frame in pcap_frames(path)]
        who = 64 if "tcp" in name else 1
        yield "ipfix_collector", name, exchange([2], [(who, 1, datagram) for datagram in datagrams], 2400)
        yield "ipfix_collector", name + "-late", exchange([6], [(who, 0, datagram) for datagram in datagrams[::-1]], 2400)
    learn = ipfix_message((2, template(256, (4, 1))))
    data = ipfix_message((256, bytes([6, 17])))
    names = ipfix_message(
        (3, options(257, 1, (10, 1), (82, 4)) + options(258, 1, (48, 1), (34, 2))),
        (257, b"\x01eth1\x02eth2"),
        (258, b"\x01\x00\x64"),
    )
    steps = [(1, 0, data), (1, 1, learn), (1, 2, names), (1, 2, data), (9, 0, data), (65, 0, learn), (65, 0, data)]
    yield "ipfix_collector", "waiting", exchange([2], steps)
    yield "ipfix_collector", "shared", exchange([3], steps)
    flood = [(who, 0, ipfix_message((2, template(300 + who, *[(4, 1)] * 8)))) for who in range(2, 32)]
    yield "ipfix_collector", "flood", exchange([2], steps[:4] + flood + steps[3:4])
    junk = [(1, 1, b"\x00\x01")] * 6
    yield "ipfix_collector", "shut-out", exchange([4], junk + steps[1:4] + [(129, 9, data), (1, 255, data)])

    variable = 255
    for name, scopes, fields, records in (
        ("interfaces", 1, ((9, 1), (18, 4), (19, variable)), b"\x01eth1\x02up" + b"\x02eth2\x00" + b"\x01xe-1\x00"),
        ("samplers", 1, ((7, 1), (0, 2)), b"\x01\x00\x64\x02\x00\x0a\x01\x00\x00"),
        ("spaces", 1, ((8, 1), (2, 1), (3, 1), (4, 1), (5, 2)), bytes([1, 1, 9, 0, 0, 0, 2, 1, 0, 1, 1, 0])),
        ("probability", 0, ((6, 8),), struct.pack(">dd", 0.25, float("nan"))),
        ("vrfs", 1, ((15, 1), (17, 4), (16, 1)), b"\x01red\x00\x01\x02blue\x02"),
        ("applications", 1, ((20, 4), (21, 3), (22, variable)), b"\x00\x00\x00\x01egp\x01x\x00\x00\x00\x01bgp\x00"),
        ("elements", 2, ((25, 4), (24, 2), (26, 1), (27, 1), (29, 3)), bytes([0, 0, 0, 1, 0, 1, 4, 3]) + b"abc" * 5),
        ("start", 1, ((30, 1), (23, 8)), b"\x01" + struct.pack(">Q", 1_796_040_000_000) * 2),
    ):
        head = bytes([len(fields) << 4 | scopes]) + bytes(part for field in fields for part in field)
        yield "ipfix_options", name, head + records * 2

    flow = bytes([6, 5, 3, 0, 4, 0, 1])
    basic = bytes([3]) + struct.pack(">HH", 4, 1) + bytes([6, 17])
    sub = bytes([255]) + struct.pack(">H", 257) + flow * 2
    multi = bytes([4]) + struct.pack(">HH", 259, 6) + bytes([0, 80]) + struct.pack(">HHHH", 300, 4, 258, 0)
    inner = bytes([0]) + struct.pack(">HH", 292, 65535) + bytes([len(sub)]) + sub

    def record(*lists):
        return b"".join(bytes([len(part)]) + part for part in lists)

    deep = bytes([3]) + struct.pack(">HH", 4, 1)
    for _ in range(10):
        deep = bytes([3]) + struct.pack(">HH", 291, 65535) + bytes([len(deep)]) + deep
    yield "ipfix_lists", "all", b"\x00" + record(basic, sub, multi)
    yield "ipfix_lists", "nested", b"\x00" + record(inner, sub, multi) + record(deep, b"", b"\x01")
    yield "ipfix_lists", "malformed", b"\x02" + record(basic[:-1], sub[:-3], multi[:7]) + record(b"\x03", b"\x03\x01", b"")
    yield "ipfix_lists", "fixed", b"\x01\x06" + (sub + bytes(9))[:9] + record(inner)
    yield "ipfix_lists", "flat", b"\x00" + record(bytes([3]) + struct.pack(">HH", 4, 1) + bytes(200), b"", b"")


def enterprise_template(number, *fields):
    """A template of (element, length) and (element, length, enterprise)."""
    body = b"".join(
        struct.pack(">HHI", 0x8000 | field[0], field[1], field[2]) if len(field) == 3 else struct.pack(">HH", *field)
        for field in fields
    )
    return struct.pack(">HH", number, len(fields)) + body


def flow_steps():
    """Datagrams of all kinds on their way to logs and metrics, as steps of sender, seconds and datagram."""
    for path in sorted(IPFIX.glob("local-*.pcap")):
        name = path.stem.removeprefix("local-")
        datagrams = [udp_payload(frame) for frame in pcap_frames(path)]
        if "tcp" not in name:
            yield name, [(1, 1, datagram) for datagram in datagrams]
    yield "lists", [(1, 0, lists()[0]), (1, 1, lists()[1])]
    yield "lists-late", [(1, 0, lists()[1]), (66, 0, lists()[0]), (1, 1, lists()[0])]
    reverse, noon = 29305, 1_796_040_000_000
    flow = bytes([192, 0, 2, 1, 198, 51, 100, 1, 0, 80, 1, 187, 6])
    biflows = ipfix_message(
        (2, enterprise_template(256, (8, 4), (12, 4), (7, 2), (11, 2), (4, 1), (1, 4), (1, 4, reverse), (152, 8), (2, 8))),
        (256, (flow + struct.pack(">IIQq", 1500, 40, noon, -1)) * 3),
    )
    yield "biflows", [(1, 0, biflows), (2, 0, biflows), (66, 1, biflows)]
    described = (303, 2), (346, 4), (339, 1), (344, 1), (341, 3)
    known = ipfix_message(
        (2, enterprise_template(256, (5, 4, 9), (10, 1), (14, 1), (34, 1), (234, 1), (95, 4), (48, 1), (58, 2), (58, 2))),
        (3, options(257, 1, (10, 1), (82, 4)) + options(258, 1, (48, 1), (34, 2)) + options(259, 2, *described)),
        (3, options(260, 1, (95, 4), (96, 4)) + options(261, 1, (234, 1), (236, 3))),
        (257, b"\x01eth1\x02eth2"),
        (258, b"\x01\x00\x64\x02\x00\x0a"),
        (259, struct.pack(">HIBB", 5, 9, 3, 0) + b"abc"),
        (260, bytes([1, 0, 0, 8]) + b"http"),
        (261, b"\x01red"),
        (256, bytes([0, 0, 0, 7, 1, 2, 3, 1, 1, 0, 0, 8, 1, 0, 10, 0, 20])),
    )
    yield "known", [(1, 0, known), (9, 1, known)]
    names = template(256, (82, 65535), (1, 8), (83, 65535), (4, 1), (8, 4), (27, 16), (56, 6), (321, 8), (311, 4))
    record = b"\x04eth1" + struct.pack(">q", -1) + b"\xff\x00\x02a\xff" + b"\x06" + bytes(34)
    varied = ipfix_message((2, names), (256, record * 4 + b"\x00"))
    yield "variable", [(1, 0, varied), (34, 0, varied)]


def flow_seeds():
    heads = [(0, 0, 0, 255, 255), (1, 3, 1, 1, 255), (0x9E, 1, 2, 3, 2), (0xFF, 8, 128, 2, 9), (0x50, 5, 129, 0, 0)]
    for number, (name, steps) in enumerate(flow_steps()):
        for head in {heads[0], heads[1 + number % 4]}:
            yield "flow_job", f"{name}-{head[0]}", exchange(head, steps, 1800)
        if name == "known":
            yield "flow_job", f"{name}-used", exchange((0, 2, 0, 1, 1), steps, 1800)
        yield "flow_metrics", name, exchange((1 + number % 3, 1 + number, 200), steps, 1800)

    def fields(*specs):
        return b"".join(struct.pack("<BHIH", *spec) for spec in specs)

    plain = fields((0, 8, 0, 4), (0, 1, 0, 4), (0, 5, 9, 2))
    scoped = fields((128, 10, 0, 1), (0, 82, 0, 65535))
    wide = fields((0, 291, 0, 65535), (1, 1, 0, 4), (2, 1, 0, 4))
    templates = [[256, 0, plain], [257, 1, scoped], [258, 0, wide], [5, 2, b""]]
    rates, names = [[[None, 1, None, None, 256, 100.0]], [[1, "eth1"]]]
    facts = [[1_796_040_000, False, 1, rates, names, [], [[b"\x01\x00\x00\x08", "http"]], [[9, 5, "abc", 3]]]]
    exporters = [["192.0.2.1", 4739], ["2001:db8::1", 1]]
    now = 1_796_040_000_000_000_000
    none = 0xFFFFFFFF
    basic = bytes([3]) + struct.pack(">HH", 4, 1) + bytes([6, 17])
    contents = [bytes(range(20)), b"\x01\x04eth1", bytes([len(basic)]) + basic + bytes(8), bytes(48)]

    def entries(*numbers):
        return b"".join(
            struct.pack("<6IqqIIIHBB", *head, len(contents[head[0]]), now, now - 1, 7, 1, 9, 10, version, flags)
            for *head, version, flags in numbers
        )

    sets = [(0, none, 0, 0, 2, 10, 0), (1, none, 0, 1, 1, 10, 0), (2, 0, none, 0, 1, 9, 1), (3, none, none, none, 1, 5, 3)]

    def batch(settings, chosen=sets, records=None, facts=facts, content=None, templates=templates, version=1, kind=1):
        records = sum(one[4] for one in chosen) if records is None else records
        content = b"".join(contents[one[0]] for one in chosen) if content is None else content
        groups = [[0, 2]] if len(templates) > 2 else []
        return cbor([version, kind, records, settings, templates, groups, facts, exporters, entries(*chosen), content])

    settings = [0] * 12
    yield "flow_encoded", "whole", batch(settings)
    yield "flow_encoded", "settings", batch([1] * 12)
    yield "flow_encoded", "numbers", batch([1, 1, 1, 1, 2, 2, 1, 1, 1, 1, 2, 1])
    yield "flow_encoded", "no-sets", batch(settings, [], templates=[], facts=[])
    yield "flow_encoded", "cut", batch(settings)[:-1]
    yield "flow_encoded", "behind", batch(settings) + b"x"
    yield "flow_encoded", "left-over", batch(settings, content=b"".join(contents) + b"x")
    yield "flow_encoded", "version", batch(settings, version=2)
    yield "flow_encoded", "kind", batch(settings, kind=2)
    yield "flow_encoded", "records", batch(settings, records=9)
    yield "flow_encoded", "no-template", batch(settings, sets[:1], templates=[])
    yield "flow_encoded", "empty-fields", batch(settings, sets[:1], templates=[[256, 0, plain + fields(*[(0, 2, 0, 0)] * 300)]])
    yield "flow_encoded", "many-templates", b"\x8a\x01\x01\x00" + cbor(settings) + b"\x9b" + b"\xff" * 8


def sonic_seeds():
    """Sessions with their payloads; the bits of the first byte are those of the mapping."""
    kinds = {0: (128, 1, 255), 1: (2 | 4 | 64, 255, 1), 2: (1 | 8 | 32 | 192, 2, 9), 3: (16 | 128, 0, 0)}

    def items(head, parts):
        return bytes(head) + b"".join(struct.pack(">BH", kind, len(part)) + part for kind, part in parts)

    for number, path in enumerate(sorted(IPFIX.glob("sonic/*.session_config.ipfix"))):
        name = path.name.removesuffix(".session_config.ipfix").removeprefix("sonic-")
        config = path.read_bytes()
        payloads = [other.read_bytes() for other in sorted(path.parent.glob(f"sonic-{name}.datagram-*.ipfix"))]
        parts = [(0, config)] + [(4 | index % 2, payload) for index, payload in enumerate(payloads)]
        yield "sonic_admit", name, items(kinds[number % 4], parts)
        yield "sonic_admit", name + "-resource", items((192 | 2, 255, 255), parts)
    counters = ((0x8001, 8, 1, 0), (0x8002, 4, 1, 2), (0x8001, 8, 21, 0))
    fields = b"".join(struct.pack(">HHHH", *counter) for counter in counters)
    with_time = struct.pack(">HHHH", 256, 4, 325, 8) + fields
    repeated = struct.pack(">HHHH", 0x8001, 8, 1, 0)
    without = struct.pack(">HH", 257, 4) + fields + repeated
    time = struct.pack(">Q", 1_796_040_000_000_000_000)
    record = struct.pack(">QIQ", 1 << 63, 7, 9)
    learned = ipfix_message((2, with_time + without))
    data = ipfix_message((256, (time + record) * 3), (257, (record + bytes([255] * 8)) * 3 + bytes(3)))
    for name, head in (("learned", (192, 3, 3)), ("learned-double", (2 | 4 | 16 | 64, 1, 1)), ("learned-few", (8 | 64, 1, 1))):
        yield "sonic_admit", name, items(head, [(4, data), (4, learned), (4, data), (5, data), (5, learned + data), (20, data)])
    other = ipfix_message((2, struct.pack(">HH", 258, 1) + fields[:8]))
    parts = [(0, learned), (4, data), (0, learned + other), (4, ipfix_message((258, bytes(8)))), (4, data), (1, other)]
    yield "sonic_admit", "changes", items((64, 9, 255), parts + [(8, b""), (4, data), (16, learned), (33, other), (3, b"x")])


def cache_seeds():
    exporter = bytes([1, 4, 192, 0, 2, 1]) + bytes(4)
    exporter6 = bytes([1, 6]) + bytes.fromhex("20010db8") + bytes(16)

    def stored(protocol, kind, number, scopes, *fields):
        head = struct.pack(">BBIBHHH", 2, protocol, 1, kind, number, len(fields), scopes)
        return head + b"".join(fields)

    plain = struct.pack(">HH", 4, 1)
    flows = stored(10, 0, 256, 0, plain, struct.pack(">HHI", 0x8005, 4, 9), struct.pack(">HH", 82, 65535))
    v9_options = stored(9, 1, 257, 1, struct.pack(">HH", 2, 4), struct.pack(">HH", 33002, 2))
    fact = struct.pack(">BI", 3, 1)
    text = struct.pack(">H", 4) + b"eth1"
    facts = [
        b"\x00" + bytes(7) + b"\x05",
        b"\x01\x01" + struct.pack(">Qd", 7, 100.0),
        b"\x02" + struct.pack(">Q", 1) + text,
        b"\x03" + struct.pack(">Q", 2) + text,
        b"\x04" + struct.pack(">H", 4) + bytes([1, 0, 0, 8]) + text,
        b"\x05" + struct.pack(">IHBB", 9, 5, 4, 3) + text,
    ]
    body = exporter + flows + v9_options + b"".join(fact + one for one in facts) + exporter6 + flows
    sealed = b"CTIX\x01" + struct.pack(">I", crc32c(body)) + body
    yield "ipfix_template_cache", "whole", sealed
    yield "ipfix_template_cache", "body", body
    yield "ipfix_template_cache", "empty", b""
    yield "ipfix_template_cache", "cut", body[:-3]
    yield "ipfix_template_cache", "no-exporter", flows
    yield "ipfix_template_cache", "twice", body + body
    yield "ipfix_template_cache", "checksum", sealed[:-1]
    yield "ipfix_template_cache", "senseless", exporter + stored(10, 0, 255, 0, plain)
    yield "ipfix_template_cache", "scopes", exporter + stored(10, 1, 256, 2, plain)


def quantile_seeds():
    """Images small enough to be changed by a fuzzer in a useful way, all damaged ones, and runs."""
    for path in sorted(QUANTILE.glob("*.bin")):
        if path.stat().st_size <= 900:
            yield "kll_image", path.stem.removeprefix("ref-"), path.read_bytes()
    for path in sorted(QUANTILE.glob("hostile/*.bin")):
        yield "kll_image", "hostile-" + path.stem, path.read_bytes()
    # Level 0 with both zeros in the wrong order, and a count that only the top levels hold.
    yield "kll_image", "zeros", full_image(8, 3, [[0.0, -0.0, 0.0]], 0.0, -0.0, flags=2)
    top = [[]] * 60 + [[1.5]]
    yield "kll_image", "top-level", full_image(8, 1 << 60, top, 1.5, 1.5)
    yield "kll_image", "largest-count", full_image(200, (1 << 61) - 1, [[float(n)] for n in range(61)], 0.0, 60.0)

    infinity = float("inf")
    for name, values in {
        "empty": [],
        "one": [1.5],
        "zeros": [-infinity, -0.0, 0.0, 0.0, infinity],
        "hundred": [n / 8 for n in range(100)],
        "unsorted": [2.0, 1.0],
        "nan": [float("nan")],
    }.items():
        head = b"CQRN" + bytes([1, 1, 0, 0]) + struct.pack("<Q", len(values))
        body = b"".join(struct.pack("<d", value) for value in values)
        yield "exact_run", name, head + struct.pack("<I", crc32c(head + body)) + body
        yield "exact_run", name + "-checksum", head + bytes(4) + body
    head = b"CQRN" + bytes([1, 1, 1, 0]) + struct.pack("<Q", 3)
    body = struct.pack("<3d3Q", 1.0, 2.0, 2.0, 5, 1, 1 << 60)
    yield "exact_run", "weights", head + struct.pack("<I", crc32c(head + body)) + body
    yield "exact_run", "count", b"CQRN" + bytes([1, 1, 0, 0]) + b"\xff" * 12 + bytes(8)


def asapv1_seeds():
    """Envelopes of doubles and integers, with either key of the seed and none, of one and several levels."""

    def text(value):
        return bytes([0xA0 | len(value)]) + value.encode()

    def envelope(form, k, item_type, seed, offsets, items, coin):
        metadata = bytes([0x84 + bool(seed)]) + text("metadata_version") + b"\x01" + text("k") + b"\xcd"
        metadata += struct.pack(">H", k) + text("m") + b"\x08" + text("item_type") + text(item_type)
        metadata += text(seed) + b"\x2a" if seed else b""
        payload = b"\x93" + bytes([0x90 | len(offsets)]) + bytes(offsets) + b"\xdc" + struct.pack(">H", len(items))
        payload += b"".join(items) + b"\x93" + coin
        return b"ASAPv1\x01\x02\x06" + bytes([form]) + struct.pack(">II", len(metadata), len(payload)) + metadata + payload

    def double(value):
        return b"\xcb" + struct.pack(">d", value)

    coin = b"\x03\x00\x00"
    for name, seed in (("", None), ("-seed", "seed"), ("-compaction-seed", "compaction_seed")):
        items = [double(value / 4) for value in range(-6, 6)]
        yield "kll_asapv1", "doubles" + name, envelope(0, 200, "f64", seed, [0, 12], items, coin)
    yield "kll_asapv1", "empty", envelope(0, 200, "f64", None, [0, 0], [], coin)
    integers = [bytes([value]) for value in range(20)] + [b"\xff", b"\xd3" + bytes([0x80] + [0] * 7)]
    yield "kll_asapv1", "integers", envelope(1, 8, "i64", None, [0, 9, 15, 22], integers, coin)
    full = [double(float(value)) for value in range(60)]
    yield "kll_asapv1", "too-many", envelope(1, 8, "f64", None, [0, 20, 60], full, b"\xcf" + b"\xff" * 8 + b"\x01\x40")
    yield "kll_asapv1", "nan", envelope(0, 8, "f64", None, [0, 1, 3], [double(float("nan")), b"\x01", b"\xca" + bytes(4)], coin)


def quantile_state_seeds():
    """Operations on a sketch, and messages for a collector."""
    kinds = [bytes([kind, 3 + 9 * kind, 7 * kind, kind]) for kind in range(7)]
    yield "kll_operations", "each", b"\x08" + b"".join(kinds) * 3
    yield "kll_operations", "bulk", b"\x10" + bytes([2, 255, 9, 1]) * 40
    yield "kll_operations", "weights", b"\x08" + b"".join(bytes([3, 0, 255, high]) for high in range(64))
    parts = [bytes([source, window, part | 0x20, 2 * window + part, 0x1C, 0]) for source in (0, 1) for window in (0, 20) for part in (0, 1)]
    yield "quantile_exchange", "parts", b"\x11" + b"".join(parts)
    yield "quantile_exchange", "repeats", b"\x40" + b"".join(bytes([0, window, 0x10, window, kind, 60]) for window in range(9) for kind in (0x14, 0x18, 0x10))
    yield "quantile_exchange", "restarts", b"\x21" + b"".join(bytes([instance << 2, 5, 0x20, 1, 0x1C, 0]) for instance in range(6))


def field(number, value):
    """A field of protobuf: a number, a float, or bytes."""

    def varint(value):
        out = b""
        while value >= 0x80:
            out += bytes([value & 0x7F | 0x80])
            value >>= 7
        return out + bytes([value])

    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def fixed(number, value):
    """A field of protobuf of eight bytes."""
    return field(number, 0.0)[:-8] + struct.pack("<Q", value)


def attribute(number, key, value):
    """An attribute as a field: text, bytes, boolean, integer, double, list or map."""

    def any_value(value):
        if isinstance(value, str):
            return field(1, value.encode())
        if isinstance(value, bool):
            return field(2, int(value))
        if isinstance(value, int):
            return field(3, value)
        if isinstance(value, float):
            return field(4, value)
        if isinstance(value, bytes):
            return field(7, value)
        if isinstance(value, list):
            return field(5, b"".join(field(1, any_value(one)) for one in value))
        return field(6, b"".join(attribute(1, *one) for one in value.items()))

    return field(number, field(1, key.encode()) + field(2, any_value(value)))


def otlp_seeds():
    """Requests with log records, points of all kinds and sketches; some cut short."""
    resource = field(1, attribute(1, "r", "x"))
    scope = field(1, field(1, b"s") + attribute(3, "s", 5))
    values = ("12", 3, 2.5, float("nan"), "no", True, [1], {"a": ["x"]})
    records = [fixed(1, NOON + at) + attribute(6, "v", value) + attribute(6, "g", {"a": [at % 3]}) for at, value in enumerate(values)]
    records += [fixed(11, NOON) + attribute(6, "v", 4) + attribute(6, "w", 10)]
    logs = field(1, resource + field(2, scope + b"".join(field(2, record) for record in records)))
    points = [fixed(3, NOON) + part + attribute(7, "g", "x") for part in (field(4, 1.5), fixed(6, 7), b"", field(8, 1) + field(4, 2.0))]
    points = b"".join(field(1, point) for point in points)
    kinds = (field(5, points), field(7, points + field(2, 1)), field(7, points + field(2, 2) + field(3, 1)), field(9, field(1, fixed(4, 1))))
    names = (b"m1", b"m2", b"m3", b"m4", b"other")
    metrics = [field(1, name) + kind for name, kind in zip(names, kinds + (field(5, points),))]
    metrics = field(1, resource + field(2, scope + b"".join(field(2, metric) for metric in metrics)) + field(2, b""))
    for signal, name, request in ((0, "logs", logs), (1, "metrics", metrics)):
        for options, pattern in ((0, 0xFF), (2, 0x55), (0, 0x0F), (2, 0)):
            yield "quantile_otlp", f"{name}-{options}-{pattern}", bytes([signal | options, pattern]) + request
        yield "quantile_otlp", f"{name}-cut", bytes([signal, 0xFF]) + request[:-9]

    def sketch(kind, encoding, envelope, count, *more):
        of_resource = attribute(1, "sketch.agg_id", 1) + attribute(1, "sketch.type", kind) + attribute(1, "sketch.encoding", encoding)
        of_resource += attribute(1, "sketch.schema_version", 1)
        point = fixed(2, NOON) + fixed(3, NOON + 10**10) + fixed(4, count) + attribute(7, "sketch.envelope", envelope)
        point += attribute(7, "sketch.window_start_ms", NOON // 10**6) + attribute(7, "sketch.window_end_ms", NOON // 10**6 + 10**4)
        point += b"".join(attribute(7, *one) for one in more)
        of_scope = field(1, field(1, b"asap.series") + attribute(3, "sketch.series_id", 1) + attribute(3, "g", "x"))
        metric = field(1, b"m") + field(3, b"ms") + field(11, field(1, point))
        return field(1, field(1, of_resource) + field(2, of_scope + field(2, metric)))

    identity = (("sketch.source", "a/0"), ("sketch.instance", bytes(16)), ("sketch.part", 1), ("sketch.parts", 2), ("sketch.sequence", 3))
    exact = [(f"sketch.{name}", struct.pack(">d", value)) for name, value in (("min", 1.0), ("max", 2.0), ("sum", 3.0))]
    told = (("sketch.dropped.late", 4), ("sketch.sources", "1/2"), ("sketch.switched", True))
    whole = sketch("run.f64", "RUN", b"run", 2, *identity, *exact, *told)
    yield "quantile_carrier", "run", whole
    yield "quantile_carrier", "foreign", sketch("KLLSketch", "MSGPACK", b"ASAPv1", 2)
    yield "quantile_carrier", "two", whole + sketch("kll.datasketches.f64", "DATASKETCHES", b"kll", 9, *identity)
    yield "quantile_carrier", "sources", sketch("run.f64", "RUN", b"", 0, *identity, ("sketch.sources", "3/2"))
    yield "quantile_carrier", "cut", whole[:-5]
    yield "quantile_carrier", "metrics", metrics


def level_capacity(k, depth):
    """Capacity of a level so many below the top: k times two thirds to the power of depth, at least 8."""
    twice = ((2 * k << depth) // 3**depth + 1) // 2 if depth < 31 else 0
    return max(8, twice)


def full_image(k, count, levels, least, greatest, flags=0):
    """A full image of doubles."""
    capacity = sum(level_capacity(k, depth) for depth in range(len(levels)))
    offset = capacity - sum(map(len, levels))
    offsets = []
    for level in levels:
        offsets.append(offset)
        offset += len(level)
    values = [least, greatest] + [value for level in levels for value in level]
    head = bytes([5, 1, 15, flags]) + struct.pack("<HBBQHBB", k, 8, 0, count, k, len(levels), 0)
    return head + struct.pack(f"<{len(offsets)}I", *offsets) + struct.pack(f"<{len(values)}d", *values)


def crc32c(data):
    """CRC of the Castagnoli polynomial, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def pcap(order, magic, link_type, frames, cut=0):
    parts = [struct.pack(order + "IHHIIII", magic, 2, 4, 0, 0, 65535, link_type)]
    parts += [struct.pack(order + "IIII", 60, 7, len(frame), len(frame) + cut) + frame for frame in frames]
    return b"".join(parts)


def pcapng(order, link_type, frames):
    """A section with an interface, a block to be passed over, and the frames in the three kinds of packet blocks."""

    def block(kind, body):
        body += bytes(-len(body) % 4)
        length = struct.pack(order + "I", 12 + len(body))
        return struct.pack(order + "I", kind) + length + body + length

    def option(code, value):
        return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)

    options = option(9, bytes([9])) + option(14, struct.pack(order + "q", 5)) + option(0, b"")
    parts = [
        block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1)),
        block(1, struct.pack(order + "HHI", link_type, 0, 0) + options),
        block(4, bytes(8)),
    ]
    for index, frame in enumerate(frames):
        length = len(frame)
        kind, head = (
            (6, struct.pack(order + "IIIII", 0, 1, 2, length, length)),
            (3, struct.pack(order + "I", length)),
            (2, struct.pack(order + "HHIIII", 0, 0, 1, 2, length, length)),
        )[index % 3]
        parts.append(block(kind, head + frame))
    return b"".join(parts)


def capture_seeds():
    for path in sorted(IPFIX.glob("local-*.pcap")):
        data = path.read_bytes()
        if len(data) <= MAX_FILE_BYTES:
            yield "capture_reader", path.stem.removeprefix("local-"), data
    payload = b"<13>text"
    udp = struct.pack(">HHHH", 5000, 514, 8 + len(payload), 0) + payload
    tcp = struct.pack(">HHIIHHHH", 5000, 514, 0, 0, 0x5000, 0, 0, 0)

    def ip4(protocol, content, fragment=0):
        head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(content), 0, fragment, 64, protocol, 0)
        return head + bytes([192, 0, 2, 1, 192, 0, 2, 2]) + content

    address = bytes.fromhex("20010db8") + bytes(12)
    ip6 = struct.pack(">IHBB", 0x60000000, len(udp) + 8, 0, 64) + address * 2 + bytes([17, 0, 1, 4, 0, 0, 0, 0]) + udp
    four, six = ip4(17, udp), ip6
    packets = [four, six, ip4(6, tcp), ip4(17, udp, 0x2000), ip4(1, bytes(8))]
    ethernet = [bytes(12) + b"\x08\x00" + four, bytes(12) + b"\x81\x00\x00\x05\x86\xdd" + six, bytes(12) + b"\x08\x06"]
    sll = [bytes(14) + b"\x08\x00" + four, bytes(15)]
    sll2 = [b"\x86\xdd" + bytes(18) + six]
    loopback = [struct.pack("<I", 2) + four, bytes(3), struct.pack("<I", 9) + b"\x00"]
    for name, link_type, frames in (
        ("ethernet", 1, ethernet),
        ("raw", 101, packets),
        ("sll", 113, sll),
        ("sll2", 276, sll2),
        ("loopback", 0, loopback),
        ("other-link", 147, [b"\x00"]),
    ):
        yield "capture_reader", f"pcap-{name}", pcap("<", 0xA1B2C3D4, link_type, frames)
        yield "capture_reader", f"pcapng-{name}", pcapng(">" if name == "raw" else "<", link_type, frames * 3)
    yield "capture_reader", "pcap-nano-big", pcap(">", 0xA1B23C4D, 101, packets)
    yield "capture_reader", "pcap-cut", pcap("<", 0xA1B2C3D4, 101, [frame[:30] for frame in packets], 100)
    yield "capture_reader", "pcap-end", pcap("<", 0xA1B2C3D4, 101, packets)[:-5]
    yield "capture_reader", "pcapng-end", pcapng("<", 101, packets)[:-5]
    yield "capture_reader", "pcapng-sections", pcapng("<", 101, [four]) + pcapng(">", 101, [six])
    yield "capture_reader", "messages", b"".join(lists())
    yield "capture_reader", "messages-end", b"".join(lists())[:-1]
    yield "capture_reader", "lines", b"<13>one\r\n\n<14>a line that is longer than sixteen\n" + b"x" * 16 + b"\r\n\r\n\r\r\nend"


def main():
    made = {}
    makers = (syslog_seeds, sampling_seeds, syslog_batch_seeds, sonic_batch_seeds, ipfix_seeds, collector_seeds, flow_seeds, sonic_seeds)
    quantiles = (quantile_seeds, asapv1_seeds, quantile_state_seeds, otlp_seeds)
    for seeds in (maker() for maker in (*makers, cache_seeds, *quantiles, capture_seeds)):
        for target, name, data in seeds:
            assert len(data) <= MAX_FILE_BYTES, (target, name, len(data))
            path = CORPUS / target / f"seed-{name}"
            assert path not in made, path
            made[path] = data
    for old in CORPUS.glob("*/seed-*"):
        if old not in made:
            old.unlink()
    for path, data in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    print(f"{len(made)} seeds, {sum(map(len, made.values()))} bytes")


if __name__ == "__main__":
    main()
