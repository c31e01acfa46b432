#!/usr/bin/env python3
"""Kill one of two links again and again; measure how long data of a TCP connection is interrupted.

Two network namespaces have two links (veth). A connection carries 200 bytes every 100 ms from the terminal to the
centre. The link that carries the data dies: it loses carrier at the centre, or it swallows packets in one direction or
in both (nft). The longest time between two arrivals after the death is the gap. The hybrid router runs at both sides,
with one address for each; Multipath TCP of the kernel runs in a network of the same kind, with an address for each
link, and a new connection for each death, because a subflow that has died does not return by itself.

    cargo build --release -p gridhaul-relay
    sudo python3 bench/router/deaths.py --relay target/release/gridhaul-relay --deaths 200

The load of the machine at the start and at the end is printed: with other work on the processors, gaps are longer.

Exit code 1: a 99th percentile of the router exceeds its limit (1 s for carrier, 3 s for swallowed packets), or data was
lost or changed. A death during which the machine has delayed a sleep of this program by more than 0.25 s is counted, but
not among the gaps: other work on the processors has delayed the routers as well.
"""

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from namespaces import Failure, Namespace  # noqa: E402

MESSAGE = 200
INTERVAL = 0.1
DEVICES = ("dvbt0", "gprs0")
KINDS = ("carrier", "one direction", "both directions")
LIMITS = {"carrier": 1.0, "one direction": 3.0, "both directions": 3.0}
# Delay of a sleep above which the machine is too busy for a measurement.
DISTURBANCE = 0.25
# A gap is measured up to this time.
GAP_MAX = 30.0
IPPROTO_MPTCP = 262


class Side(Namespace):
    def sent_packets(self, device):
        text = self.run("ip", "-j", "-s", "link", "show", "dev", device)
        return json.loads(text)[0]["stats64"]["tx"]["packets"]


class Network:
    """Two namespaces with two links."""

    def __init__(self, name):
        self.terminal, self.centre = Side(f"{name}-t"), Side(f"{name}-c")
        for device in DEVICES:
            peer = ("peer", "name", device, "netns", self.centre.name)
            self.terminal.run("ip", "link", "add", device, "type", "veth", *peer)
            for side in self.sides():
                side.run("ip", "link", "set", device, "up")

    def sides(self):
        return (self.terminal, self.centre)

    def kill(self, kind, device):
        if kind == "carrier":
            self.centre.run("ip", "link", "set", device, "down")
            return
        sides = self.sides() if kind == "both directions" else (self.centre,)
        for side in sides:
            rules = (
                f"table netdev death {{\nchain {device} {{\n"
                f"type filter hook ingress device {device} priority 0; policy drop;\n}}\n}}\n"
            )
            side.run("nft", "-f", "-", text=rules)

    def revive(self, kind, device):
        if kind == "carrier":
            self.centre.run("ip", "link", "set", device, "up")
            return
        sides = self.sides() if kind == "both directions" else (self.centre,)
        for side in sides:
            side.run("nft", "delete", "table", "netdev", "death")

    def device_in_use(self):
        before = [self.terminal.sent_packets(device) for device in DEVICES]
        time.sleep(1)
        sent = [self.terminal.sent_packets(device) - old for device, old in zip(DEVICES, before)]
        return DEVICES[sent.index(max(sent))]

    def delete(self):
        for side in self.sides():
            side.delete()


class RouterNetwork(Network):
    address = "10.9.0.1"
    protocol = 0

    def __init__(self, relay, keys=""):
        super().__init__("ghr-router")
        self.folder = tempfile.TemporaryDirectory()
        self.routers = []
        self.messages = []
        ends = (("terminal", "10.9.0.2", "10.9.0.1"), ("centre", "10.9.0.1", "10.9.0.2"))
        for side, (name, own, peer) in zip(self.sides(), ends):
            side.run("ip", "address", "add", f"{own}/32", "dev", "lo")
            config = os.path.join(self.folder.name, f"{name}.toml")
            links = "".join(f"link.{device}.device = \"{device}\"\n" for device in DEVICES)
            with open(config, "w", encoding="utf-8") as file:
                file.write(
                    f'name = "{name}"\nmanagement.address = "127.0.0.1:9180"\n[router]\naddress = "{own}"\n'
                    f'peer = "{peer}"\ndestinations = ["{peer}"]\nstate = "state"\n{links}{keys}'
                )
            words = ("ip", "netns", "exec", side.name, relay, "run", config)
            router = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
            threading.Thread(target=self.read_messages, args=(name, router.stderr), daemon=True).start()
            self.routers.append((side, router))
            self.relay = relay
        time.sleep(3)

    def read_messages(self, name, lines):
        for line in lines:
            self.messages.append((time.monotonic(), f"{name}: {line.strip()}"))

    def usable(self, side):
        config = os.path.join(self.folder.name, "terminal.toml" if side is self.terminal else "centre.toml")
        return json.loads(side.run(self.relay, "status", config, "--details"))["links"]

    def await_links(self):
        """Waits until all links answer; a link that is held back is used if the other one dies."""
        for _ in range(200):
            links = [link for side in self.sides() for link in self.usable(side)]
            if all(link["state"].startswith(("usable", "answers")) for link in links):
                return
            time.sleep(0.1)
        sys.exit(f"a link does not answer: {links}")

    def delete(self):
        for side, router in self.routers:
            router.send_signal(signal.SIGTERM)
            router.wait()
            if "gridhaul_router" in side.run("nft", "list", "tables"):
                sys.exit("the packet filter was not removed")
        super().delete()
        self.folder.cleanup()


class MptcpNetwork(Network):
    address = "10.1.0.1"
    protocol = IPPROTO_MPTCP

    def __init__(self, _relay):
        super().__init__("ghr-mptcp")
        for number, device in enumerate(DEVICES, 1):
            for host, side in enumerate(reversed(self.sides()), 1):
                side.run("ip", "address", "add", f"10.{number}.0.{host}/24", "dev", device)
        for side in self.sides():
            side.run("ip", "mptcp", "limits", "set", "subflow", "4", "add_addr_accepted", "4")
        self.centre.run("ip", "mptcp", "endpoint", "add", "10.2.0.1", "dev", DEVICES[1], "signal")

    def await_links(self):
        time.sleep(2)

    def delete(self):
        rows = [line.split() for line in self.centre.run("cat", "/proc/net/netstat").splitlines() if "MPTcpExt" in line]
        joined = int(dict(zip(*rows))["MPJoinAckRx"])
        super().delete()
        if not joined:
            sys.exit("Multipath TCP has made no further subflow: the comparison is not valid")


class Machine:
    """Delays of this program by other work on the machine."""

    def __init__(self):
        self.delays = []
        threading.Thread(target=self.observe, daemon=True).start()

    def observe(self):
        while True:
            begun = time.monotonic()
            time.sleep(0.01)
            now = time.monotonic()
            self.delays.append((now, now - begun - 0.01))

    def delay_since(self, begun):
        """The longest delay since a time; earlier ones are forgotten."""
        self.delays = [delay for delay in self.delays if delay[0] >= begun]
        return max((delay for _, delay in self.delays), default=0)


class Flow:
    """A connection with periodic messages, and the times of their arrivals."""

    def __init__(self, network):
        # Further subflows need the listener, at all addresses.
        self.listener = network.centre.enter(lambda: self.listen(network))
        self.sender = network.terminal.enter(lambda: self.connect(network))
        self.receiver, _ = self.listener.accept()
        self.arrivals = [time.monotonic()]
        self.stopped = False
        self.sent = 0
        self.fault = None
        self.threads = [threading.Thread(target=work) for work in (self.send, self.receive)]
        for thread in self.threads:
            thread.start()

    @staticmethod
    def listen(network):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, network.protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", 4060))
        listener.listen(1)
        return listener

    @staticmethod
    def connect(network):
        sender = socket.socket(socket.AF_INET, socket.SOCK_STREAM, network.protocol)
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sender.connect((network.address, 4060))
        return sender

    def send(self):
        at = time.monotonic()
        while not self.stopped:
            try:
                self.sender.sendall(bytes([self.sent % 256]) * MESSAGE)
            except OSError as error:
                self.fault = error
                return
            self.sent += 1
            at += INTERVAL
            time.sleep(max(0, at - time.monotonic()))
        self.sender.shutdown(socket.SHUT_WR)

    def receive(self):
        received = 0
        while True:
            message = b""
            while len(message) < MESSAGE:
                try:
                    part = self.receiver.recv(MESSAGE - len(message))
                except OSError as error:
                    self.fault = error
                    return
                if not part:
                    if message or received != self.sent:
                        self.fault = f"{received} of {self.sent} messages"
                    return
                message += part
            if message != bytes([received % 256]) * MESSAGE:
                self.fault = f"message {received} is wrong"
                return
            received += 1
            self.arrivals.append(time.monotonic())

    def await_gap(self, death):
        """The gap after a death: it ends when messages arrive regularly again for a second."""
        while True:
            time.sleep(0.1)
            now = time.monotonic()
            if now - death > GAP_MAX:
                return GAP_MAX
            recent = [at for at in self.arrivals if at > now - 1]
            if now - death > 4 and len(recent) >= 8:
                break
        times = [at for at in self.arrivals if at > death - 2 * INTERVAL]
        return max(later - at for at, later in zip(times, times[1:]))

    def end(self, must_arrive):
        self.stopped = True
        if not must_arrive:
            # A connection that does not continue is reset.
            for end in (self.sender, self.receiver):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        for thread in self.threads:
            thread.join()
        for end in (self.sender, self.receiver, self.listener):
            end.close()
        return self.fault if must_arrive else None


def measure(network, deaths, kinds, seed, show):
    """Gaps of each kind of death."""
    numbers = random.Random(seed)
    gaps = {kind: [] for kind in kinds}
    disturbed = {kind: 0 for kind in kinds}
    machine = Machine()
    for death in range(deaths):
        kind = kinds[death % len(kinds)]
        network.await_links()
        flow = Flow(network)
        time.sleep(1 + numbers.random())
        device = network.device_in_use()
        at = time.monotonic()
        network.kill(kind, device)
        gap = flow.await_gap(at)
        delay = machine.delay_since(at)
        network.revive(kind, device)
        fault = flow.end(gap < GAP_MAX)
        if fault:
            sys.exit(f"death {death} ({kind}): {fault}")
        if delay > DISTURBANCE:
            disturbed[kind] += 1
        else:
            gaps[kind].append(gap)
        show(f"{death + 1} of {deaths}: {kind}, {device}: {gap:.2f} s (longest delay of the machine {delay:.2f} s)")
        for time_of_message, message in getattr(network, "messages", []):
            if time_of_message >= at:
                show(f"    {time_of_message - at:.2f} s: {message}")
    return gaps, disturbed


def quantile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--relay", default="target/release/gridhaul-relay", help="the program")
    parser.add_argument("--deaths", type=int, default=200, help="deaths of links in each network")
    parser.add_argument("--mptcp-deaths", type=int, help="deaths with Multipath TCP; absent: as many")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", action="append", choices=KINDS, help="only deaths of this kind; may be repeated")
    parser.add_argument("--verbose", action="store_true", help="print each gap, and messages of the routers")
    args = parser.parse_args()
    show = print if args.verbose else lambda _line: None
    relay = os.path.abspath(args.relay)
    mptcp_deaths = args.deaths if args.mptcp_deaths is None else args.mptcp_deaths
    failed = False
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors\n")
    print("| system | death | deaths | disturbed | median gap | 99th percentile | longest |\n|---|---|---|---|---|---|---|")
    for name, make, deaths in (
        ("hybrid router", RouterNetwork, args.deaths),
        ("Multipath TCP", MptcpNetwork, mptcp_deaths),
    ):
        if not deaths:
            continue
        network = make(relay)
        try:
            gaps, disturbed = measure(network, deaths, args.kind or KINDS, args.seed, show)
        finally:
            network.delete()
        for kind, values in gaps.items():
            if not values:
                continue
            median, most, longest = quantile(values, 0.5), quantile(values, 0.99), max(values)
            text = [f"≥ {value:.0f} s" if value >= GAP_MAX else f"{value:.2f} s" for value in (median, most, longest)]
            deaths_of_kind = len(values) + disturbed[kind]
            print(f"| {name} | {kind} | {deaths_of_kind} | {disturbed[kind]} | {' | '.join(text)} |", flush=True)
            failed |= make is RouterNetwork and most > LIMITS[kind]
    print(f"\nload of the machine: {os.getloadavg()[0]:.1f}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(str(failure))
