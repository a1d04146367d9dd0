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
    """Numbers, texts, byte strings, null and arrays of these, in their shortest form (RFC 8949)."""
    if value is None:
        return b"\xf6"

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


def sequence(choice, datagrams):
    """Input of ipfix_admit: the leading datagrams that fit."""
    parts = [bytes([choice])]
    for datagram in datagrams:
        part = struct.pack(">H", len(datagram)) + datagram
        if sum(map(len, parts)) + len(part) > MAX_FILE_BYTES:
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
        yield "ipfix_admit", name + "-limits", sequence(choice | 2, datagrams)
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
    yield "exact_run", "count", b"CQRN" + bytes([1, 1, 0, 0]) + b"\xff" * 12 + bytes(8)


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
    for seeds in (syslog_seeds(), syslog_batch_seeds(), ipfix_seeds(), quantile_seeds(), capture_seeds()):
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
