#!/usr/bin/env python3
"""The servers and clients that make.sh records. Standard library only, seeded, loopback only.

  traffic.py servers      HTTP on 127.0.0.1:8081-8083, line service on 9000 (IPv4 and IPv6), name service on UDP 53
  traffic.py clients N    N HTTP requests through the proxy on port 8080, and some other traffic beside them
  traffic.py sink PORT    takes UDP datagrams and forgets them, so that an exporter finds a collector
"""
import http.client, random, socket, socketserver, struct, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Objects(BaseHTTPRequestHandler):
    """/NAME/BYTES/MICROSECONDS answers with so many bytes after so long a wait; any other path is not found."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            *_, size, wait = self.path.split("/")
            size, wait, status = int(size), int(wait), 200
        except ValueError:
            size, wait, status = 64, 500, 404
        time.sleep(wait / 1e6)
        try:
            self.send_response(status)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            self.wfile.write(b"o" * size)
        except OSError:
            pass  # the proxy gave up waiting

    do_POST = do_GET

    def log_message(self, *_):
        pass


class Lines(socketserver.StreamRequestHandler):
    """Answers each line with itself, ten times."""

    def handle(self):
        for line in self.rfile:
            self.wfile.write(line * 10)


class Names(socketserver.BaseRequestHandler):
    """Answers every question with one address of the documentation range."""

    def handle(self):
        query, sock = self.request
        answer = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 300, 4) + bytes([192, 0, 2, query[-5]])
        sock.sendto(query[:2] + b"\x81\x80\0\1\0\1\0\0\0\0" + query[12:] + answer, self.client_address)


class ThreadingTCP6(socketserver.ThreadingTCPServer):
    address_family = socket.AF_INET6


def servers():
    all_servers = [ThreadingHTTPServer(("127.0.0.1", port), Objects) for port in (8081, 8082, 8083)]
    all_servers += [socketserver.ThreadingTCPServer(("127.0.0.1", 9000), Lines), ThreadingTCP6(("::1", 9000), Lines)]
    all_servers += [socketserver.UDPServer(("127.0.0.1", 53), Names)]
    for server in all_servers:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever).start()


def plan(count):
    """The requests: sizes and waits log-normal, so that the tails are long; a few are missing or too slow."""
    r = random.Random(20)
    for i in range(count):
        name = r.choices(["assets", "api/orders", "api/search"], [6, 3, 1])[0]
        slow = 1.0 if name == "assets" else 4.0
        size = min(int(r.lognormvariate(8.3, 1.9)), 1_500_000)
        wait = min(int(r.lognormvariate(8.0, 1.1) * slow), 800_000)
        path = f"/{name}/{size}/{wait}"
        if i % 97 == 50:
            path = f"/{name}/{size}/1500000"
        elif r.random() < 0.03:
            path = f"/missing/item-{i}"
        upload = int(r.lognormvariate(7, 1.5)) if name == "api/orders" and r.random() < 0.5 else 0
        # The busiest client makes every third request; one in ten comes over IPv6.
        client = "::1" if i % 10 == 3 else "127.0.0.1" if i % 3 == 0 else f"127.0.0.{r.randint(2, 9)}"
        yield path, upload, client


def request(path, upload, client):
    connection = http.client.HTTPConnection("::1" if ":" in client else "127.0.0.1", 8080, source_address=(client, 0))
    headers = {"Connection": "close", "User-Agent": "traffic/1"}
    connection.request("POST" if upload else "GET", path, b"u" * upload if upload else None, headers)
    connection.getresponse().read()
    connection.close()


def line_talk(i):
    r = random.Random(i)
    with socket.create_connection(("::1" if i % 4 == 0 else "127.0.0.1", 9000)) as s:
        for _ in range(r.randint(1, 12)):
            s.sendall(b"%d\n" % r.getrandbits(8 * r.randint(1, 60)))
            s.recv(65536)


def name_talk(i):
    r = random.Random(i)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind((f"127.0.0.{1 + i % 9}", 0))
        s.settimeout(2)
        label = b"host-%d" % r.randint(1, 10 ** r.randint(1, 12))
        s.sendto(struct.pack(">H", i) + b"\1\0\0\1\0\0\0\0\0\0" + bytes([len(label)]) + label + b"\7example\0\0\1\0\1",
                 ("127.0.0.1", 53))
        s.recv(512)


def clients(count):
    work = list(plan(count))
    lock = threading.Lock()

    def client():
        r = random.Random()
        while True:
            with lock:
                if not work:
                    return
                item, left = work.pop(), len(work)
            request(*item)
            if left % 12 == 0:
                line_talk(left)
            if left % 6 == 0:
                name_talk(left)
            time.sleep(r.expovariate(20))

    threads = [threading.Thread(target=client) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def sink(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", port))
        while True:
            s.recv(65535)


match sys.argv[1:]:
    case ["servers"]:
        servers()
    case ["clients", count]:
        clients(int(count))
    case ["sink", port]:
        sink(int(port))
    case _:
        sys.exit(__doc__)
