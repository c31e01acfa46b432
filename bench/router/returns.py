#!/usr/bin/env python3
"""Return of a hybrid router to the preferred link, and connections over a link that works.

Two network namespaces have two links (veth), with a hybrid router at both sides (deaths.py). A transfer without end uses
the preferred link, and many connections with a message each second use the other link by their class. The preferred
link dies and works again, several times. Results:

- the time after the link works again from which at least 90 % of the bytes of the transfer use it, in one second;
- retransmitted segments of the connections over the other link, and their packets on the preferred link.

    cargo build --release -p gridhaul-relay
    sudo python3 bench/router/returns.py --relay target/release/gridhaul-relay

Exit code 1: a return took more than 10 s, or a connection over the other link was affected.
"""

import argparse
import os
import select
import socket
import struct
import sys
import threading
import time

from deaths import DEVICES, KINDS, Failure, RouterNetwork

PREFERRED, OTHER = DEVICES
STEADY_PORT, BULK_PORT = 4061, 4060
CLASS = (
    f'[router.class.steady]\nlinks = ["{OTHER}"]\n'
    f'packets = {{ protocol = "tcp", ports = [{STEADY_PORT}] }}\n'
)
MESSAGE = 100
SHARE = 0.9
RETURN_MAX = 10.0
# Offsets in struct tcp_info: tcpi_retransmits (of the timer, since the last acknowledgement) and tcpi_total_retrans.
TOTAL_RETRANS = 100
# Rate of the transfer in bytes per second: far above that of the other connections, whose bytes count as well.
RATE = 5_000_000
SO_MAX_PACING_RATE = 47


class Counters:
    """Bytes that a device has sent, in a namespace."""

    def __init__(self, side):
        folder = side.enter(lambda: os.open("/proc/thread-self/net/dev", os.O_RDONLY))
        self.file = folder

    def read(self):
        text = os.pread(self.file, 1 << 16, 0).decode()
        rows = {line.split(":")[0].strip(): line.split(":")[1].split() for line in text.splitlines()[2:]}
        return {device: int(rows[device][8]) for device in DEVICES}


class Steady:
    """Connections with a message each second from the terminal to the centre."""

    def __init__(self, network, count):
        self.listener = network.centre.enter(lambda: listen(STEADY_PORT, count))
        self.senders = network.terminal.enter(lambda: [connect(network, STEADY_PORT) for _ in range(count)])
        self.receivers = [self.listener.accept()[0] for _ in range(count)]
        self.sent = 0
        self.received = {receiver: 0 for receiver in self.receivers}
        self.stopped = False
        self.threads = [threading.Thread(target=work) for work in (self.send, self.receive)]
        for thread in self.threads:
            thread.start()

    def send(self):
        at = time.monotonic()
        while not self.stopped:
            for sender in self.senders:
                sender.sendall(bytes(MESSAGE))
            self.sent += 1
            at += 1
            time.sleep(max(0, at - time.monotonic()))

    def receive(self):
        poll = select.epoll()
        by_file = {receiver.fileno(): receiver for receiver in self.receivers}
        for file in by_file:
            poll.register(file, select.EPOLLIN)
        while not self.stopped or min(self.received.values()) < self.sent * MESSAGE:
            for file, _ in poll.poll(1):
                data = by_file[file].recv(1 << 16)
                if not data:
                    sys.exit("a connection over the other link has ended")
                self.received[by_file[file]] += len(data)

    def end(self):
        """Retransmitted segments of all connections, after all messages have arrived."""
        self.stopped = True
        for thread in self.threads:
            thread.join(30)
            if thread.is_alive():
                sys.exit("a message over the other link has not arrived")
        ends = self.senders + self.receivers
        infos = [end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256) for end in ends]
        return sum(struct.unpack_from("=I", info, TOTAL_RETRANS)[0] for info in infos)


class Transfer:
    """A transfer without end from the terminal to the centre."""

    def __init__(self, network):
        listener = network.centre.enter(lambda: listen(BULK_PORT, 1))
        self.sender = network.terminal.enter(lambda: connect(network, BULK_PORT))
        self.sender.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, RATE)
        self.receiver, _ = listener.accept()
        for work in (self.send, self.receive):
            threading.Thread(target=work, daemon=True).start()

    def send(self):
        try:
            while True:
                self.sender.sendall(bytes(1 << 16))
        except OSError:
            pass  # The measurement has ended.

    def receive(self):
        while self.receiver.recv(1 << 18):
            pass


def listen(port, backlog):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("", port))
    listener.listen(backlog)
    return listener


def connect(network, port):
    sender = socket.socket()
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sender.connect((network.address, port))
    return sender


def time_until_use(counters, device):
    """Time until at least 90 % of the bytes of a second use a device."""
    begun = time.monotonic()
    rows = [(begun, counters.read())]
    while time.monotonic() - begun < 3 * RETURN_MAX:
        time.sleep(0.1)
        now, read = time.monotonic(), counters.read()
        rows.append((now, read))
        first = next((row for row in reversed(rows) if row[0] <= now - 1), None)
        if first:
            sent = {name: read[name] - first[1][name] for name in DEVICES}
            if sent[device] >= SHARE * sum(sent.values()) and sum(sent.values()) > 1e5:
                # The second before this time has the share.
                return first[0] - begun
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--relay", default="target/release/gridhaul-relay", help="the program")
    parser.add_argument("--deaths", type=int, default=3, help="deaths of each kind")
    parser.add_argument("--connections", type=int, default=1000, help="connections over the other link")
    args = parser.parse_args()
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    failed = False
    for kind in KINDS:
        # Damping separates returns, so that each death has a network of its own.
        for death in range(args.deaths):
            failed |= not measure(args, kind, death)
    sys.exit(1 if failed else 0)


def measure(args, kind, death):
    network = RouterNetwork(os.path.abspath(args.relay), CLASS)
    try:
        network.await_links()
        steady = Steady(network, args.connections)
        transfer = Transfer(network)
        counters = Counters(network.terminal)
        if time_until_use(counters, PREFERRED) is None:
            sys.exit("the transfer does not use the preferred link")
        network.kill(kind, PREFERRED)
        if time_until_use(counters, OTHER) is None:
            sys.exit("the transfer does not leave the preferred link")
        time.sleep(2)
        network.revive(kind, PREFERRED)
        returned = time_until_use(counters, PREFERRED)
        retransmitted = steady.end()
        transfer.sender.shutdown(socket.SHUT_RDWR)
        text = "never" if returned is None else f"{returned:.1f} s"
        print(
            f"{kind}, {death + 1}: 90 % of the bytes on {PREFERRED} again after {text}; {args.connections} connections "
            f"over {OTHER}: {retransmitted} retransmitted segments",
            flush=True,
        )
        return returned is not None and returned <= RETURN_MAX and not retransmitted
    finally:
        network.delete()


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(str(failure))
