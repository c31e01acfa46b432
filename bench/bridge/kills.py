"""kill -9 of a relay with traffic, again and again.

Connections send in both directions through a box, or a chain of them, before a slow and lossy link; one receiver does not
read. At a random time, the bytes at risk are read from the relay and it is killed. Each connection must continue through
the bridge of the kernel with all bytes, or end with a reset at both hosts. `none`, `snoop` and `ack` must lose nothing. The
others must lose at most the bytes at risk that the relay has shown, and those that it has acknowledged between that and its
death, which the sender counts (TCP_INFO). The resets may come 0.9 s after the kill, at the end of the relay's lease. Kills
for which other work on the processors has delayed a relay so long that its lease expired are counted as disturbed.
"""

import errno
import os
import random
import socket
import struct
import threading
import time
import traceback

from ends import LIMIT, Network, read_exactly
from network import MODES, Chain, Failure, Table

FIRST_PORT = 7000
# A prime number, so that equal bytes are not at the same place of neighbouring segments.
PERIOD = 65_521
PATTERN = os.urandom(PERIOD) * 3
PIECE = 16_384
# Offset of tcpi_bytes_acked in struct tcp_info of Linux.
BYTES_ACKED = 120
LOSSLESS = ("none", "snoop", "ack")
# Senders. Those of the client are the first.
DIRECTIONS = ("client", "client", "server")
# Loss on the link after the boxes makes the proxies keep data.
LINK = {"rate": 40, "delay": 5, "loss": 0.01}
BUFFER = 131_072
# Time after which the acknowledgements of a killed relay have arrived, and duration of its lease.
IN_FLIGHT, LEASE = 0.05, 0.9


def acknowledged(end):
    information = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return struct.unpack_from("Q", information, BYTES_ACKED)[0]


class Flow:
    """A connection that one host fills and whose other end compares what arrives."""

    def __init__(self, network, listener, port, sender, is_stalled):
        client = network.connect(port)
        server, _ = listener.accept()
        server.settimeout(LIMIT)
        # Through the box in both directions, so that both hosts have completed the handshake.
        client.sendall(b"?")
        read_exactly(server, 1)
        server.sendall(b"!")
        read_exactly(client, 1)
        self.address = f"{client.getsockname()[0]}:{client.getsockname()[1]}"
        self.is_from_client = sender == "client"
        self.sender, self.receiver = (client, server) if self.is_from_client else (server, client)
        # SYN of the client counts as one byte.
        self.baseline = 2 if self.is_from_client else 1
        while acknowledged(self.sender) < self.baseline:
            time.sleep(0.001)
        self.sent, self.received = 0, 0
        self.send_fault, self.receive_fault, self.is_ended = None, None, False
        self.may_read, self.is_stopping = threading.Event(), False
        if not is_stalled:
            self.may_read.set()
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self.send, self.receive)]
        for thread in self.threads:
            thread.start()

    def send(self):
        try:
            while not self.is_stopping:
                start = self.sent % PERIOD
                self.sent += self.sender.send(PATTERN[start : start + PIECE])
            self.sender.shutdown(socket.SHUT_WR)
        except OSError as error:
            self.send_fault = error

    def receive(self):
        self.may_read.wait()
        try:
            while part := self.receiver.recv(PERIOD):
                start = self.received % PERIOD
                if part != PATTERN[start : start + len(part)]:
                    raise Failure(f"other bytes than were sent after {self.received}")
                self.received += len(part)
            self.is_ended = True
        except (OSError, Failure) as error:
            self.receive_fault = error

    def acknowledged(self):
        return acknowledged(self.sender) - self.baseline

    def outcome(self, is_settled):
        """"continued" or "reset", when it is known: after the end of the lease and the start of the next relay."""
        self.may_read.set()
        target, until = self.sent + PIECE, time.monotonic() + LIMIT
        while time.monotonic() < until:
            if self.send_fault and self.receive_fault:
                for fault in (self.send_fault, self.receive_fault):
                    if getattr(fault, "errno", None) not in (errno.ECONNRESET, errno.EPIPE):
                        raise Failure(f"no reset: {fault}")
                return "reset"
            if isinstance(self.receive_fault, Failure):
                raise self.receive_fault
            if is_settled.is_set() and self.received > target:
                return self.finish()
            time.sleep(0.005)
        raise Failure(f"neither continued nor reset: sender {self.send_fault}, receiver {self.receive_fault}")

    def finish(self):
        """Ends a connection that has continued. All bytes must have arrived."""
        self.is_stopping = True
        for thread in self.threads:
            thread.join(2 * LIMIT)
        if not self.is_ended or self.received != self.sent:
            fault = self.send_fault or self.receive_fault
            raise Failure(f"{self.received} of {self.sent} bytes after the bridge of the kernel took over: {fault}")
        return "continued"

    def close(self):
        self.is_stopping = True
        for end in (self.sender, self.receiver):
            end.close()


class Series:
    """Kills of the relays of one chain."""

    def __init__(self, chain, options):
        self.chain, self.random, self.is_verbose = chain, random.Random(options.seed), options.verbose
        self.network, self.listeners = Network(chain, False), []
        self.outcomes = {"continued": 0, "reset": 0}
        self.lost = self.shown = self.later = self.most_lost = self.losses = 0

    def open_flows(self, flows):
        for number, sender in enumerate(DIRECTIONS):
            port = FIRST_PORT + number
            if len(self.listeners) <= number:
                self.listeners.append(self.network.listen(port))
            is_stalled = number == 1
            flows.append(Flow(self.network, self.listeners[number], port, sender, is_stalled))

    def bytes_at_risk(self, box):
        """Bytes at risk by the address of the client."""
        listed = box.document("/details")["connections"]
        return {entry["client"]: entry["bytes_at_risk_byte"] for entry in listed}

    def cycle(self):
        """Returns false if the machine has delayed a relay so long that its lease has expired."""
        expired = self.chain.expirations()
        flows = []
        try:
            self.open_flows(flows)
            self.kill_one(flows)
        except (Failure, OSError) as fault:
            if self.chain.expirations() == expired:
                raise
            if self.is_verbose:
                print(f"disturbed: {fault}", flush=True)
            return False
        finally:
            for flow in flows:
                flow.close()
        return True

    def kill_one(self, flows):
        time.sleep(self.random.uniform(0.2, 0.8))
        victim = self.random.choice(self.chain.boxes)
        before = [flow.acknowledged() for flow in flows]
        # In the order in which the bytes pass the boxes, so that each is counted at least once.
        boxes = self.chain.boxes
        orders = {True: boxes} if len(boxes) == 1 else {True: boxes, False: boxes[::-1]}
        at_risk = {order: [self.bytes_at_risk(box) for box in orders[order]] for order in orders}
        victim.kill()
        killed = time.monotonic()
        results, is_settled = {}, threading.Event()
        threads = [threading.Thread(target=self.observe, args=(flow, is_settled, results)) for flow in flows]
        for thread in threads:
            thread.start()
        # The link delays the acknowledgements of the server's data.
        after = [flow.acknowledged() for flow in flows if flow.is_from_client]
        time.sleep(IN_FLIGHT)
        after += [flow.acknowledged() for flow in flows if not flow.is_from_client]
        # Silent hosts are reset by the next relay.
        time.sleep(self.random.uniform(0, 2 * LEASE))
        victim.start()
        time.sleep(max(LEASE, killed + 2 * LEASE - time.monotonic()) / 2)
        is_settled.set()
        for thread in threads:
            thread.join()
        for flow, early, late in zip(flows, before, after):
            if results[flow] == "reset":
                found = at_risk.get(flow.is_from_client, at_risk[True])
                # The other boxes of a chain go on acknowledging data until the reset reaches them.
                last = late if len(boxes) == 1 else flow.acknowledged()
                self.judge(flow, sum(in_box.get(flow.address, 0) for in_box in found), last - early)
        faults = [result for result in results.values() if isinstance(result, Exception)]
        if faults:
            raise faults[0]

    def observe(self, flow, is_settled, results):
        try:
            results[flow] = flow.outcome(is_settled)
            self.outcomes[results[flow]] += 1
        except (Failure, OSError) as fault:
            results[flow] = fault
            if self.is_verbose:
                hosts = (self.chain.client, self.chain.server)
                print(fault, flow.address, *(host.run("ss", "-tinO") for host in hosts), sep="\n", flush=True)

    def judge(self, flow, shown, later):
        lost = max(0, flow.acknowledged() - flow.received)
        self.lost += lost
        self.losses += lost > 0
        self.most_lost = max(self.most_lost, lost)
        self.shown += shown
        self.later += later
        if self.chain.mode in LOSSLESS:
            raise Failure(f"a connection was reset, {lost} bytes are lost")
        if lost > shown + later:
            raise Failure(f"{lost} bytes are lost, {shown} were shown to be at risk, and {later} acknowledged later")


def measure(options, mode, boxes, table):
    keys = {"rule": f'buffer = "{BUFFER} B"' if mode not in ("ack", "none") else ""}
    fault, done, disturbed = None, 0, 0
    with Chain(options, mode, boxes, links={boxes: {**LINK, "seed": options.seed}}, keys=keys) as chain:
        series = Series(chain, options)
        try:
            while done < options.kills:
                done += 1
                disturbed += not series.cycle()
                for box in chain.boxes:
                    box.check()
        except (Failure, OSError) as error:
            fault = error
            if options.verbose:
                traceback.print_exception(error)
                print("\n".join(box.reports() for box in chain.boxes))
        table.add(
            mode, boxes, done, disturbed, series.outcomes["continued"], series.outcomes["reset"], series.losses, series.lost,
            series.most_lost, series.shown, series.later, fault=fault and f"kill {done}: {fault}",
        )


def main(options):
    table = Table(
        "mode", "boxes", "kills", "disturbed", "connections continued", "reset at both hosts", "of these with lost bytes", "lost bytes",
        "most of a connection", "bytes shown at risk", "acknowledged later",
    )
    for boxes in options.boxes or (1,):
        for mode in options.mode or MODES:
            measure(options, mode, boxes, table)
    return table.end()


def arguments(parser):
    parser.add_argument("--kills", type=int, default=10, help="kills for each mode")
    parser.add_argument("--boxes", action="append", type=int, help="lengths of the chain; default: 1")
    parser.add_argument("--mode", action="append", choices=MODES, help="only these modes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="print the state of connections and the messages of the relays after a failure")
