"""Random faults on the links before and after a bridge, or a chain of them.

Connections transfer data in both directions all the time. Faults that TCP repairs (loss, duplicates, reordering, corrupt or
truncated frames, unknown and malformed options) must not change, end or reset a connection. Forged segments, which have a
correct checksum, harm TCP itself: the relay must survive them, its memory must stay bounded, the connections must end, and
connections afterwards must be intact; `kernel` is the bridge of the kernel alone, for comparison.
"""

import random
import socket
import threading
import time

from ends import PATTERN, Network
from network import KERNEL, MODES, Chain, Failure, Table

FAULTS = {
    "loss": {"loss": 0.05},
    "reordering": {"reorder": 0.1},
    "duplication": {"duplicate": 0.1},
    "corrupt frames": {"corrupt": 0.03},
    "truncated frames": {"truncate": 0.03},
    "options": {"options": 0.1},
    "all of these": {
        "loss": 0.01, "reorder": 0.03, "duplicate": 0.03, "corrupt": 0.01, "truncate": 0.01, "options": 0.03,
    },
    "forged segments": {"forge": 0.01},
}
FORGED = "forged segments"
LINK = {"rate": 100, "delay": 2}
WORKERS = 8
SIZES = (1, 1_000, 30_000, 300_000, 1_000_000)
FIRST_PORT = 7000
# Longest time of a transfer: retransmissions of SYN alone may take a minute.
LIMIT = 100
# Limit of payload in the configuration, and memory that the relay may use in all.
MEMORY = 16_000_000
MEMORY_LIMIT = 96_000_000
# Options need space in a packet.
HOST_MTU = 1400


class Transfers:
    """Connections of one worker, one after the other."""

    def __init__(self, network, number, seed):
        self.network, self.port = network, FIRST_PORT + number
        self.random = random.Random(f"{seed} {number}")
        self.counts = {"complete": 0, "reset": 0, "stalled": 0, "changed": 0}
        self.faults = []
        self.listener = network.listen(self.port)
        self.is_stopping = False

    def run(self):
        while not self.is_stopping:
            try:
                result = self.transfer(self.random.choice(SIZES), self.random.choice(SIZES))
            except TimeoutError:
                result = "stalled"
            except OSError as error:
                result = "reset"
                self.faults.append(str(error))
            self.counts[result] += 1

    def transfer(self, request, reply):
        server, results = None, []
        client = self.network.connect(self.port)
        client.settimeout(LIMIT)
        try:
            server = self.accept(client)
            sender = threading.Thread(target=self.answer, args=(server, request, reply, results))
            sender.start()
            try:
                client.sendall(PATTERN[:request])
                client.shutdown(socket.SHUT_WR)
                received = read(client)
            finally:
                if results == []:
                    # The server may wait for data that do not come.
                    sender.join(LIMIT)
            if sender.is_alive():
                return "stalled"
            if isinstance(results[0], OSError):
                raise results[0]
            is_intact = received == PATTERN[:reply] and results[0] == PATTERN[:request]
            return "complete" if is_intact else "changed"
        finally:
            client.close()
            if server:
                server.close()

    def accept(self, client):
        """The server's end of a connection; those of earlier ones are closed."""
        self.listener.settimeout(LIMIT)
        while True:
            server, peer = self.listener.accept()
            server.settimeout(LIMIT)
            if peer[1] == client.getsockname()[1]:
                return server
            server.close()

    @staticmethod
    def answer(server, request, reply, results):
        try:
            received = read(server)
            server.sendall(PATTERN[:reply])
            server.shutdown(socket.SHUT_WR)
            results.append(received)
        except OSError as error:
            results.append(error)


def read(end):
    found = bytearray()
    while part := end.recv(1 << 16):
        found += part
    return bytes(found)


def transfer_during(network, seconds, seed):
    """Counts of transfers that begin during a time."""
    workers = [Transfers(network, number, seed) for number in range(WORKERS)]
    threads = [threading.Thread(target=worker.run) for worker in workers]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    for worker in workers:
        worker.is_stopping = True
    for thread in threads:
        thread.join()
    counts, faults = {}, []
    for worker in workers:
        worker.listener.close()
        faults += worker.faults
        for name, count in worker.counts.items():
            counts[name] = counts.get(name, 0) + count
    return counts, faults


def judge(name, counts, faults, chain):
    for box in chain.boxes:
        box.check()
        memory = box.memory() if box.process else 0
        if memory > MEMORY_LIMIT:
            raise Failure(f"the relay has used {memory} bytes of memory")
    if chain.mode == KERNEL:
        return
    if name != FORGED and any(counts[kind] for kind in ("reset", "stalled", "changed")):
        raise Failure(f"{counts}: {', '.join(sorted(set(faults))[:3])}")
    if not counts["complete"]:
        raise Failure("no transfer was complete")


def measure(options, mode, boxes, name, table):
    keys = {"bridge": f'memory = "{MEMORY} B"\nconnections = 1000'}
    clean = {hop: {**LINK, "seed": options.seed + hop} for hop in (0, boxes)}
    counts, fault, counters, after = {}, None, {}, None
    with Chain(options, mode, boxes, links=clean, host_mtus=(HOST_MTU, HOST_MTU), keys=keys) as chain:
        network = Network(chain, False)
        try:
            for hop, parameters in clean.items():
                chain.start_link(hop, {**parameters, **FAULTS[name]})
            counts, faults = transfer_during(network, options.seconds, options.seed)
            for hop, parameters in clean.items():
                for kind, count in chain.start_link(hop, parameters).items():
                    counters[kind] = counters.get(kind, 0) + count
            judge(name, counts, faults, chain)
            after, faults = transfer_during(network, 2, options.seed)
            judge("no faults", after, faults, chain)
        except (Failure, OSError) as error:
            fault = error
        memory = max((box.memory() / 1e6 for box in chain.boxes if box.process), default=None)
        dropped = {}
        if not fault:
            for status in chain.statuses():
                for cause, count in status["dropped_count"].items():
                    dropped[cause] = dropped.get(cause, 0) + count
        causes = ", ".join(f"{cause} {count}" for cause, count in dropped.items() if count)
        table.add(
            name, mode, boxes, sum(counters.get(kind, 0) for kind in FAULTS[name]),
            counts.get("complete"), counts.get("changed"), counts.get("reset"), counts.get("stalled"), causes or None,
            memory and f"{memory:.0f} MB", fault=fault,
        )


def main(options):
    table = Table(
        "faults", "mode", "boxes", "frames with faults", "complete", "changed", "reset", "stalled", "dropped by the relay",
        "memory",
    )
    for boxes in options.boxes or (1,):
        for name in options.fault or FAULTS:
            for mode in options.mode or (*MODES, KERNEL):
                if mode == KERNEL and name != FORGED and not options.mode:
                    continue
                measure(options, mode, boxes, name, table)
    return table.end()


def arguments(parser):
    parser.add_argument("--fault", action="append", choices=FAULTS, help="only these faults")
    parser.add_argument("--boxes", action="append", type=int, help="lengths of the chain; default: 1")
    parser.add_argument("--mode", action="append", choices=(*MODES, KERNEL), help="only these modes")
    parser.add_argument("--seconds", type=float, default=20, help="time in which transfers begin")
    parser.add_argument("--seed", type=int, default=1)
