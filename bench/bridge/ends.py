"""Ends of connections through chains of bridges: each host gets all data, and the end that the other host has made.

The first cases are those of the split proxy (crates/gridhaul-relay/tests/split/matrix.rs).
"""

import errno
import socket
import struct
import threading
import time

from network import CLIENT, CLIENT_V6, KERNEL, MODES, SERVER, SERVER_V6, Chain, Failure

NO_LINGER = struct.pack("ii", 1, 0)
# Time after which an end that waits has failed.
LIMIT = 30
# Time for which a slow reader does not read.
SLOW = 0.8
REPLY = 1000
FIRST_PORT = 7000
RESET = (errno.ECONNRESET, errno.EPIPE)


# Bytes that identify their position.
PATTERN = bytes((index // 251 + index) & 255 for index in range(1_000_000))


def data(size):
    return PATTERN[:size]


class Ends:
    """Client and server of one connection, after one byte in each direction."""

    def __init__(self, network, port, slow=None):
        self.network, self.port = network, port
        self.listener = network.listen(port, slow == "server")
        self.client = network.connect(port, slow == "client")
        self.client.sendall(b"?")
        self.server, _ = self.listener.accept()
        self.server.settimeout(LIMIT)
        read_exactly(self.server, 1)
        self.server.sendall(b"!")
        read_exactly(self.client, 1)

    def ordered(self, first):
        return (self.client, self.server) if first == "client" else (self.server, self.client)


class Network:
    """Sockets of the hosts of a chain."""

    def __init__(self, chain, is_v6):
        self.chain, self.is_v6 = chain, is_v6
        self.family = socket.AF_INET6 if is_v6 else socket.AF_INET
        self.server = SERVER_V6 if is_v6 else SERVER
        self.client = CLIENT_V6 if is_v6 else CLIENT

    def listen(self, port, is_slow=False):
        def work():
            listener = socket.socket(self.family)
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if is_slow:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            listener.bind((self.server, port))
            listener.listen(16)
            listener.settimeout(LIMIT)
            return listener

        return self.chain.server.enter(work)

    def connect(self, port, is_slow=False, own_port=0):
        def work():
            client = socket.socket(self.family)
            client.settimeout(LIMIT)
            if is_slow:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
            if own_port:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                client.bind((self.client, own_port))
            client.connect((self.server, port))
            return client

        return self.chain.client.enter(work)


def read_exactly(end, size):
    found = b""
    while len(found) < size:
        part = end.recv(size - len(found))
        if not part:
            raise Failure(f"FIN after {len(found)} of {size} bytes")
        found += part
    return found


def read_all(end, name, expected):
    """Reads to the end, which must be FIN."""
    found = bytearray()
    try:
        while part := end.recv(1 << 16):
            found += part
    except OSError as error:
        raise Failure(f"{name} got {len(found)} of {len(expected)} bytes, then {error}") from error
    if found != expected:
        raise Failure(f"{name} got {len(found)} of {len(expected)} bytes, then FIN")


def read_reset(end, name):
    """Reads to the end, which must be a reset."""
    try:
        while end.recv(1 << 16):
            pass
    except TimeoutError as error:
        raise Failure(f"{name} got no reset") from error
    except OSError as error:
        if error.errno in RESET:
            return
        raise Failure(f"{name} got no reset: {error}") from error
    raise Failure(f"{name} got FIN")


def reset(end):
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
    end.close()


def concurrently(*works):
    """Runs functions at the same time; the first failure is raised."""
    faults = []

    def inside(work):
        try:
            work()
        except (Failure, OSError) as error:
            faults.append(error)

    threads = [threading.Thread(target=inside, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]


def close_first(first, second, size, pause=0.0):
    """One end sends data and FIN; the other one reads to the end, and replies."""

    def send():
        first.sendall(data(size))
        first.shutdown(socket.SHUT_WR)

    def reply():
        time.sleep(pause)
        read_all(second, "the reader", data(size))
        second.sendall(data(REPLY))
        second.shutdown(socket.SHUT_WR)

    concurrently(send, reply)
    read_all(first, "the sender", data(REPLY))


def long_half_close(first, second):
    """The reply comes in pieces, long after FIN."""
    first.shutdown(socket.SHUT_WR)
    read_all(second, "the reader", b"")
    for piece in range(10):
        time.sleep(0.2)
        second.sendall(data(REPLY)[piece * 100 : piece * 100 + 100])
    second.shutdown(socket.SHUT_WR)
    read_all(first, "the sender", data(REPLY))


def reset_first(first, second, size):
    """One end resets the connection while data of it has not been read."""
    first.setblocking(False)
    sent, text = 0, data(size)
    try:
        while sent < size:
            sent += first.send(text[sent:])
    except BlockingIOError:
        pass
    time.sleep(0.05)
    reset(first)
    read_reset(second, "the other end")


def reset_after_fin(first, second):
    """One end sends FIN, which the other one reads, and then resets the connection."""
    first.shutdown(socket.SHUT_WR)
    read_all(second, "the other end", b"")
    reset(first)
    until = time.monotonic() + LIMIT
    while not second.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
        if time.monotonic() > until:
            raise Failure("the other end got no reset")
        time.sleep(0.01)


def close_unread(first, second):
    """One end closes with data that it has not read, which is a reset (RFC 2525, section 2.17)."""
    second.sendall(data(REPLY))
    time.sleep(0.3)
    first.close()
    read_reset(second, "the other end")


def both_fin(ends):
    """Both ends send data and FIN at the same time."""

    def work(end, name):
        end.sendall(data(80_000))
        end.shutdown(socket.SHUT_WR)
        read_all(end, name, data(80_000))

    concurrently(lambda: work(ends.client, "the client"), lambda: work(ends.server, "the server"))


def server_down(network, port):
    """The server does not exist: a refusal or a reset, but no FIN."""
    try:
        client = network.connect(port)
        client.sendall(data(80_000))
        client.shutdown(socket.SHUT_WR)
    except TimeoutError as error:
        raise Failure("the client got no answer") from error
    except OSError as error:
        if error.errno in (*RESET, errno.ECONNREFUSED):
            return
        raise
    read_reset(client, "the client")


def reset_before_accept(network, port):
    """The client resets before the server accepts."""
    listener = network.listen(port)
    client = network.connect(port)
    client.sendall(data(10))
    time.sleep(0.3)
    reset(client)
    time.sleep(0.3)
    server, _ = listener.accept()
    server.settimeout(LIMIT)
    read_reset(server, "the server")


def same_ports(network, port):
    """The server closes first, and the next connection has the same addresses and ports."""
    listener = network.listen(port)
    for _ in range(3):
        client = connect_again(network, port)
        server, _ = listener.accept()
        server.settimeout(LIMIT)
        server.sendall(data(REPLY))
        server.shutdown(socket.SHUT_WR)
        read_all(client, "the client", data(REPLY))
        client.close()
        read_all(server, "the server", b"")
        server.close()


def connect_again(network, port):
    """Connects as soon as the acknowledgement of FIN has ended the last connection."""
    until = time.monotonic() + LIMIT
    while True:
        try:
            return network.connect(port, own_port=40_000 + port)
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL or time.monotonic() > until:
                raise
            time.sleep(0.01)


def on_ends(work, first, *values, slow=None):
    def case(network, port):
        ends = Ends(network, port, slow)
        work(*ends.ordered(first), *values)

    return case


def cases():
    found = {}
    for first in ("client", "server"):
        for size in (0, 80_000, 1_000_000):
            found[f"{first} closes first, {size // 1000} kB pending"] = on_ends(close_first, first, size)
    for first, slow in (("client", "server"), ("server", "client")):
        found[f"{first} closes first, 1000 kB pending, slow reader"] = on_ends(
            close_first, first, 1_000_000, SLOW, slow=slow
        )
    for first in ("client", "server"):
        found[f"{first} resets"] = on_ends(reset_first, first, 10)
        found[f"{first} resets, 1000 kB unread"] = on_ends(reset_first, first, 1_000_000)
    for first in ("client", "server"):
        found[f"{first} resets after its FIN"] = on_ends(reset_after_fin, first)
    found["both close at once, 80 kB each"] = lambda network, port: both_fin(Ends(network, port))
    found["client closes, server is down"] = server_down
    for first in ("client", "server"):
        found[f"{first} closes first, reply during 2 s"] = on_ends(long_half_close, first)
        found[f"{first} closes with unread data"] = on_ends(close_unread, first)
    found["client resets before the server accepts"] = reset_before_accept
    found["server closes first, same ports again"] = same_ports
    return found


def results(chain, is_v6, chosen):
    """Fault of each case, or null."""
    network, faults = Network(chain, is_v6), {}

    def work(name, case, port):
        try:
            case(network, port)
            faults[name] = None
        except Exception as error:
            faults[name] = error

    threads = [
        threading.Thread(target=work, args=(name, case, FIRST_PORT + number))
        for number, (name, case) in enumerate(cases().items())
        if not chosen or name in chosen
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return faults


def main(options):
    modes = options.mode or MODES
    failures = []
    for boxes in options.boxes or (1, 3):
        columns = {}
        for mode in modes:
            link = {"delay": options.delay, "loss": options.loss}
            links = {hop: {**link, "seed": hop + 1} for hop in range(boxes + 1)} if options.loss or options.delay else {}
            with Chain(options, mode, boxes, links=links) as chain:
                columns[mode] = results(chain, options.ipv6, options.case)
                for box in chain.boxes:
                    box.check()
        loss = f", {options.loss:.1%} loss and {options.delay:g} ms on each hop" if options.loss or options.delay else ""
        print(f"\nboxes: {boxes}, {'IPv6' if options.ipv6 else 'IPv4'}{loss}\n")
        print(f"| case | {' | '.join(modes)} |\n|{'---|' * (len(modes) + 1)}")
        for name in (name for name in cases() if name in columns[modes[0]]):
            row = [columns[mode][name] for mode in modes]
            print(f"| {name} | {' | '.join('**lost**' if fault else 'kept' for fault in row)} |", flush=True)
            failures += [f"{boxes} boxes, {mode}: {name}: {fault}" for mode, fault in zip(modes, row) if fault]
        kept = [sum(fault is None for fault in columns[mode].values()) for mode in modes]
        print(f"| kept of {len(columns[modes[0]])} | {' | '.join(map(str, kept))} |", flush=True)
    for failure in failures:
        print(f"failed: {failure}")
    return 1 if failures else 0


def arguments(parser):
    parser.add_argument("--boxes", action="append", type=int, help="lengths of the chain; default: 1 and 3")
    parser.add_argument("--mode", action="append", choices=(*MODES, KERNEL), help="only these modes")
    parser.add_argument("--case", action="append", choices=list(cases()), help="only these cases")
    parser.add_argument("--ipv6", action="store_true")
    parser.add_argument("--loss", type=float, default=0, help="probability of a loss on each hop")
    parser.add_argument("--delay", type=float, default=0, help="delay of each hop in ms")
