#!/usr/bin/env python3
"""Kill the relays, and the server, at random times; count confirmed bytes that are not delivered.

The program shares no code with gridhaul: it starts the relays as processes, and uses the documented
configuration, status, file, MQTT messages and PROXY headers only. A byte is confirmed when the collector
has answered FIN of its meter, or has reported it as durable at /meters. The server of --delivery tcp reads
what arrives, appends it to a file, and closes each connection after FIN; its death resets all connections
(SO_LINGER), as the guide of the relay asks for.

    cargo build --release -p gridhaul-relay
    python3 bench/relay/kills.py --relay target/release/gridhaul-relay --delivery tcp --kills 200

Exit code 1: a confirmed byte is missing, or differs.
"""

import argparse
import collections
import json
import os
import random
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

METERS = 12
LINE = 100
NO_LINGER = struct.pack("ii", 1, 0)
PROXY_SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"


def message(stream, number):
    """A line of a stream: every position differs from that of other streams."""
    text = f"{stream} {number} "
    return (text + "x" * (LINE - 1 - len(text)) + "\n").encode()


def expected(stream, start, end):
    first, last = start // LINE, (end + LINE - 1) // LINE
    text = b"".join(message(stream, number) for number in range(first, last))
    return text[start - first * LINE : end - first * LINE]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


# Meters


class Meters:
    """Meters that connect again and again, each in a thread of its own."""

    def __init__(self, port, seed):
        self.port = port
        self.lock = threading.Lock()
        self.next_stream = 0
        self.open = {}
        self.sent = collections.Counter()
        self.confirmed = {}
        self.resets = 0
        self.is_stopping = False
        seeds = random.Random(seed)
        self.threads = [
            threading.Thread(target=self.run, args=(random.Random(seeds.random()),), daemon=True)
            for _ in range(METERS)
        ]
        for thread in self.threads:
            thread.start()

    def run(self, rng):
        while not self.is_stopping:
            try:
                self.connect(rng)
            except OSError:
                self.resets += 1
                time.sleep(0.02)

    def connect(self, rng):
        meter = socket.create_connection(("127.0.0.1", self.port), 20)
        with meter:
            meter.settimeout(60)
            address = "%s:%d" % meter.getsockname()
            with self.lock:
                stream = self.next_stream
                self.next_stream += 1
                self.open[address] = stream
            try:
                self.send(rng, meter, stream)
            finally:
                with self.lock:
                    self.open.pop(address, None)

    def send(self, rng, meter, stream):
        kind = rng.random()
        # One in ten connects and resets without data, one in ten resets within its stream.
        count = 0 if kind < 0.1 else rng.randint(1, 40)
        for number in range(count):
            meter.sendall(message(stream, number))
            self.sent[stream] += LINE
            time.sleep(rng.uniform(0, 0.03))
        if kind < 0.2:
            meter.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
            return
        meter.shutdown(socket.SHUT_WR)
        if meter.recv(1) == b"":
            self.confirmed[stream] = count * LINE

    def stop(self):
        self.is_stopping = True
        for thread in self.threads:
            thread.join()


# Destinations. Each returns the delivered pieces by connection of a meter: (offset, bytes), and the ends.


class File:
    def __init__(self, folder):
        self.path = os.path.join(folder, "messages.jsonl")
        self.config = 'deliver.file = "messages.jsonl"'

    def start(self):
        pass

    def stop(self):
        pass

    kill = None

    def events(self):
        with open(self.path, encoding="utf-8") as lines:
            return [json.loads(line) for line in lines]

    def delivered(self):
        pieces, ends = collections.defaultdict(list), {}
        for event in self.events():
            key = f"{event['epoch']}-{event['meter']}"
            if event["event"] == "data":
                pieces[key].append((event["offset"], event["text"].encode()))
            elif event["event"] == "eof":
                ends[key] = event["offset"]
        return pieces, ends


class Mqtt(File):
    """The broker mosquitto, and a subscriber (MQTT 3.1.1, QoS 1)."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.config = f'deliver.mqtt.broker = "127.0.0.1:{self.port}"'
        self.messages, self.process = [], None

    def start(self):
        program = shutil.which("mosquitto") or "/usr/sbin/mosquitto"
        config = os.path.join(self.folder, "broker.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"listener {self.port} 127.0.0.1\nallow_anonymous true\nuser root\n")
            file.write("max_queued_messages 0\nlog_dest none\n")
        self.process = subprocess.Popen([program, "-c", config], stderr=subprocess.DEVNULL)
        for _ in range(200):
            try:
                self.socket = socket.create_connection(("127.0.0.1", self.port))
                break
            except OSError:
                time.sleep(0.05)
        self.socket.sendall(packet(0x10, b"\0\x04MQTT\x04\x02\0\0" + field(b"kills")))
        self.socket.sendall(packet(0x82, b"\0\x01" + field(b"#") + b"\x01"))
        threading.Thread(target=self.receive, daemon=True).start()

    def receive(self):
        stream = self.socket.makefile("rb")
        while kind := stream.read(1):
            length, shift = 0, 0
            while True:
                byte = stream.read(1)[0]
                length |= (byte & 127) << shift
                shift += 7
                if byte < 128:
                    break
            body = stream.read(length)
            if kind[0] >> 4 != 3:
                continue
            topic = int.from_bytes(body[:2], "big")
            self.messages.append(body[4 + topic :])
            self.socket.sendall(packet(0x40, body[2 + topic : 4 + topic]))

    def stop(self):
        count = -1
        while count != len(self.messages):
            count = len(self.messages)
            time.sleep(1)
        if self.process:
            self.process.kill()
            self.process.wait()

    def events(self):
        return [json.loads(message) for message in self.messages]


def field(value):
    return len(value).to_bytes(2, "big") + value


def packet(kind, body):
    length, rest = b"", len(body)
    while True:
        rest, low = rest >> 7, rest & 127
        length += bytes([low | (128 if rest else 0)])
        if not rest:
            return bytes([kind]) + length + body


class Tcp(File):
    """A server in a process of its own, which is killed as well."""

    def __init__(self, folder):
        self.port, self.path = free_port(), os.path.join(folder, "received")
        self.config = f'deliver.tcp.server = "127.0.0.1:{self.port}"'
        self.process = None

    def start(self):
        program = [sys.executable, os.path.abspath(__file__), "--serve", str(self.port), self.path]
        self.process = subprocess.Popen(program)

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()

    def kill(self):
        self.stop()

    def delivered(self):
        pieces, ends = collections.defaultdict(list), {}
        with open(self.path, encoding="utf-8") as lines:
            for line in lines:
                key, offset, text = line.rstrip("\n").split(" ")
                if text == "end":
                    ends[key] = int(offset)
                else:
                    pieces[key].append((int(offset), bytes.fromhex(text)))
        return pieces, ends


def serve(port, path):
    """Reads from all connections, and appends what was read to a file before more is read."""
    ledger = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Inherited: the death of the process resets connections whose data it has not stored.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
    listener.bind(("127.0.0.1", port))
    listener.listen(1024)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ, None)
    while True:
        for key, _ in selector.select():
            if key.data is None:
                connection, _ = listener.accept()
                selector.register(connection, selectors.EVENT_READ, {"head": b"", "key": None})
                continue
            connection, state = key.fileobj, key.data
            try:
                data = connection.recv(65_536)
            except OSError:
                selector.unregister(connection)
                connection.close()
                continue
            if state["key"] is None:
                state["head"] += data
                found = proxy_header(state["head"])
                if found is not None:
                    state["key"], state["offset"], text = found
                    store(ledger, state, text)
            else:
                store(ledger, state, data)
            if data == b"":
                if state["key"] is not None:
                    os.write(ledger, f"{state['key']} {state['offset']} end\n".encode())
                selector.unregister(connection)
                # The stream is stored: the connection is closed with FIN, which confirms it.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 0, 0))
                connection.close()


def store(ledger, state, data):
    if data:
        os.write(ledger, f"{state['key']} {state['offset']} {data.hex()}\n".encode())
        state["offset"] += len(data)


def proxy_header(data):
    """Identity and offset of a PROXY header of version 2, and what follows it; None if it is incomplete."""
    if len(data) < 16 or len(data) < 16 + int.from_bytes(data[14:16], "big"):
        return None
    assert data[:12] == PROXY_SIGNATURE, data[:12]
    end = 16 + int.from_bytes(data[14:16], "big")
    at = 16 + {0: 0, 1: 12, 2: 36}[data[13] >> 4]
    identity, offset = None, None
    while at < end:
        kind, length = data[at], int.from_bytes(data[at + 1 : at + 3], "big")
        value = data[at + 3 : at + 3 + length]
        at += 3 + length
        if kind == 0x05:
            identity = value.decode()
        elif kind == 0xE0:
            offset = int.from_bytes(value, "big")
    return identity, offset, data[end:]


# Relays


class Relay:
    def __init__(self, program, folder, name, text):
        self.program, self.folder, self.name = program, folder, name
        self.port, self.process = free_port(), None
        with open(os.path.join(folder, name + ".toml"), "w", encoding="utf-8") as file:
            file.write(f'name = "{name}"\nmanagement.address = "127.0.0.1:{self.port}"\n{text}')

    def start(self):
        log = open(os.path.join(self.folder, self.name + ".log"), "ab")
        command = [self.program, "run", self.name + ".toml"]
        self.process = subprocess.Popen(command, cwd=self.folder, stderr=log)
        begun = time.monotonic()
        while self.ask("/status") is None:
            assert self.process.poll() is None, f"{self.name} has ended: see {log.name}"
            assert time.monotonic() - begun < 120, f"{self.name} does not answer"
            time.sleep(0.02)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()

    def ask(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return json.load(answer)
        except (OSError, ValueError):
            return None


def relays(program, folder, tier, delivery):
    upstream, meters = free_port(), free_port()
    head = f'log.folder = "head-log"\nlog.segment = "1 MiB"\n[head]\naddress = "127.0.0.1:{upstream}"\n{delivery}\n'
    log = 'log.folder = "collector-log"\nlog.segment = "1 MiB"\n' if tier == "local" else ""
    collector = (
        f'{log}[collector]\ntier = "{tier}"\nupstream = "127.0.0.1:{upstream}"\nshards = 2\n'
        f'[collector.listener.meters]\naddress = "127.0.0.1:{meters}"\nframing.delimiter.byte = 10\n'
    )
    head, collector = Relay(program, folder, "head", head), Relay(program, folder, "collector", collector)
    return head, collector, meters


def note_durable(collector, meters, reported):
    """Durable bytes of open streams, as the collector reports them."""
    with meters.lock:
        before = dict(meters.open)
    answer = collector.ask("/details")
    with meters.lock:
        after = dict(meters.open)
    for meter in (answer or {}).get("meters", []):
        stream = before.get(meter["peer"])
        # A port may have been used by two streams meanwhile.
        if stream is not None and after.get(meter["peer"]) == stream:
            reported[stream] = max(reported.get(stream, 0), meter["durable_byte"])


def wait_until_delivered(head, collector, limit):
    begun = time.monotonic()
    while time.monotonic() - begun < limit:
        upper, lower = head.ask("/status"), collector.ask("/status")
        if upper and lower and not (
            lower["backlog_byte"] or lower["bytes_at_risk_byte"] or upper["backlog_byte"]
        ):
            return True
        time.sleep(0.2)
    print("not everything is delivered:", upper, lower)
    return False


def check(meters, reported, pieces, ends):
    """Counts of confirmed bytes that are missing, and of bytes that were delivered more than once."""
    covered, complete, repeated = {}, {}, 0
    for key, parts in pieces.items():
        parts.sort()
        if parts[0][0] != 0:
            continue
        stream = int(parts[0][1].split(b" ")[0])
        end = 0
        for offset, data in parts:
            if offset > end:
                break
            text = expected(stream, offset, offset + len(data))
            if data != text:
                print(f"stream {stream}: other bytes at {offset} than were sent")
                break
            repeated += min(end - offset, len(data))
            end = max(end, offset + len(data))
        covered[stream] = max(covered.get(stream, 0), end)
        if key in ends:
            complete[stream] = ends[key]
    lost = collections.Counter()
    for stream, length in meters.confirmed.items():
        if length:
            missing = max(length - covered.get(stream, 0), 0)
            lost["answered FIN"] += missing
            lost["streams without their end"] += complete.get(stream) != length
    for stream, length in reported.items():
        lost["reported as durable"] += max(length - covered.get(stream, 0), 0)
    return lost, repeated


def run(options, name, folder):
    processes = []
    try:
        return kill_repeatedly(options, name, folder, processes)
    finally:
        for process in processes:
            process.stop()


def kill_repeatedly(options, name, folder, processes):
    destination = {"file": File, "mqtt": Mqtt, "tcp": Tcp}[name](folder)
    head, collector, port = relays(options.relay, folder, options.tier, destination.config)
    processes += [collector, head, destination]
    destination.start()
    head.start()
    collector.start()
    meters, reported = Meters(port, options.seed), {}
    rng, counts = random.Random(options.seed), collections.Counter()
    begun = time.monotonic()
    victims = ["collector", "head", "both"] + (["server", "server and head"] if destination.kill else [])
    for cycle in range(options.kills):
        time.sleep(rng.uniform(0.1, 0.5))
        note_durable(collector, meters, reported)
        victim = rng.choice(victims)
        counts[victim] += 1
        if victim in ("collector", "both"):
            collector.kill()
        if victim in ("head", "both", "server and head"):
            head.kill()
        if victim.startswith("server"):
            destination.kill()
            destination.start()
        if victim in ("head", "both", "server and head"):
            head.start()
        if victim in ("collector", "both"):
            collector.start()
        if (cycle + 1) % 50 == 0:
            print(f"{name}: {cycle + 1} kills in {time.monotonic() - begun:.0f} s", flush=True)
    meters.stop()
    is_delivered = wait_until_delivered(head, collector, 180)
    destination.stop()
    lost, repeated = check(meters, reported, *destination.delivered())
    confirmed = sum(meters.confirmed.values())
    print(
        f"{name}, tier {options.tier}: {options.kills} kills ({dict(counts)}), {meters.next_stream} streams, "
        f"{len(meters.confirmed)} with an answered FIN ({confirmed} bytes), {len(reported)} with bytes reported as "
        f"durable ({sum(reported.values())} bytes), {meters.resets} connections reset; lost: {dict(lost)}; "
        f"bytes delivered again: {repeated}",
        flush=True,
    )
    return is_delivered and not any(lost.values()) and len(meters.confirmed) > options.kills // 10


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--relay", default="gridhaul-relay", help="the program")
    parser.add_argument("--delivery", default="all", choices=["all", "file", "mqtt", "tcp"])
    parser.add_argument("--tier", default="local", choices=["local", "server"])
    parser.add_argument("--kills", type=int, default=200, help="number of kills for each delivery")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the folders of the relays")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(int(options.serve[0]), options.serve[1])
    options.relay = os.path.abspath(shutil.which(options.relay) or options.relay)
    names = ["file", "mqtt", "tcp"] if options.delivery == "all" else [options.delivery]
    results = []
    for name in names:
        folder = tempfile.mkdtemp(prefix=f"kills-{name}-")
        results.append(run(options, name, folder))
        if options.keep or not results[-1]:
            print(f"{name}: files are in {folder}")
        else:
            shutil.rmtree(folder)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
