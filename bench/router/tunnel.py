#!/usr/bin/env python3
"""Bytes that a tunnel of WireGuard adds to each packet of a link, compared with the byte model of paper `hybrid`.

Two network namespaces have one link (veth). At both sides boringtun, an implementation of WireGuard in user space, has a
TUN device. Datagrams of known sizes, and a transfer by TCP, cross the tunnel; counters of the TUN device and of the
link give the bytes before and after. No time is measured, so that other work on the machine does not matter.

    cargo install boringtun-cli --root boringtun
    sudo python3 bench/router/tunnel.py --boringtun boringtun/bin/boringtun-cli

The key `compression` of a link models a tunnel: `header` for the first 40 B of a packet, and `overhead` (docs/reference/scenario.md).
WireGuard pads packets to a multiple of 16 B, which boringtun does not. Exit code 1: a datagram has another size on the link
than the headers of WireGuard give, without padding.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from namespaces import Failure, Namespace  # noqa: E402

LINK = "link0"
ETHERNET = 14
# Headers of IPv4 and UDP; type, receiver and counter; authentication tag.
OUTER = 20 + 8
DATA_HEADER = 16
TAG = 16
PADDING = 16
ADDED = OUTER + DATA_HEADER + TAG
DATAGRAMS = 500
# An acknowledgement without and with timestamps, a message of 200 B, and full packets.
SIZES = (40, 52, 240, 576, 1280, 1420)
TRANSFER = 4_000_000
PORT = 4062
# Size of the header of an acknowledgement on GPRS that was fitted to Figure 6 of the paper.
FITTED = 22
P = 2**255 - 19


def public_key(secret):
    """X25519 of the base point (RFC 7748, section 5)."""
    scalar = bytearray(secret)
    scalar[0] &= 248
    scalar[31] = scalar[31] & 127 | 64
    number = int.from_bytes(scalar, "little")
    x2, z2, x3, z3, swapped = 1, 0, 9, 1, 0
    for bit in reversed(range(255)):
        wanted = number >> bit & 1
        if swapped ^ wanted:
            x2, z2, x3, z3 = x3, z3, x2, z2
        swapped = wanted
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        aa, bb, da, cb = a * a, b * b, d * a, c * b
        e = aa - bb
        x3, z3 = (da + cb) ** 2 % P, 9 * (da - cb) ** 2 % P
        x2, z2 = aa * bb % P, e * (aa + 121_665 * e) % P
    if swapped:
        x2, z2 = x3, z3
    return (x2 * pow(z2, P - 2, P) % P).to_bytes(32, "little")


class Side(Namespace):
    """A namespace with an end of the tunnel."""

    def __init__(self, name, number):
        super().__init__(f"ghr-tunnel-{name}")
        self.tunnel = f"gh{os.getpid()}{name[0]}"
        self.outer, self.inner = f"192.0.2.{number}", f"10.7.0.{number}"
        self.secret = os.urandom(32)
        self.process = None

    def begin(self, program, peer):
        words = (program, "--foreground", "--disable-drop-privileges", self.tunnel)
        self.process = self.start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        path = f"/var/run/wireguard/{self.tunnel}.sock"
        for _ in range(100):
            if os.path.exists(path):
                break
            time.sleep(0.1)
        else:
            raise Failure(f"{program} has not started")
        keys = (
            f"set=1\nprivate_key={self.secret.hex()}\nlisten_port=51820\n"
            f"public_key={public_key(peer.secret).hex()}\nendpoint={peer.outer}:51820\nallowed_ip=10.7.0.0/24\n\n"
        )
        with socket.socket(socket.AF_UNIX) as control:
            control.connect(path)
            control.sendall(keys.encode())
            answer = control.recv(1000).decode()
        if "errno=0" not in answer:
            raise Failure(f"{program} refuses its configuration: {answer.strip()}")
        self.run("ip", "address", "add", f"{self.inner}/24", "dev", self.tunnel)
        self.run("ip", "link", "set", self.tunnel, "mtu", "1420", "up")

    def sent(self, device):
        """Packets and bytes that a device has sent, without the header of Ethernet."""
        text = self.run("ip", "-j", "-s", "link", "show", "dev", device)
        counters = json.loads(text)[0]["stats64"]["tx"]
        header = ETHERNET if device == LINK else 0
        return Sent(counters["packets"], counters["bytes"] - header * counters["packets"])

    def end(self):
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait()
        self.delete()


class Sent:
    def __init__(self, packets, octets):
        self.packets, self.octets = packets, octets

    def since(self, before):
        return Sent(self.packets - before.packets, self.octets - before.octets)

    def mean(self):
        return self.octets / self.packets


def padded(size):
    """Size of a packet on the link with the padding of WireGuard."""
    return -(-size // PADDING) * PADDING + ADDED


def send_datagrams(side, peer, size):
    def work():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(DATAGRAMS):
                sender.sendto(bytes(size - OUTER), (peer.inner, PORT))
                time.sleep(0.001)

    before = [side.sent(device) for device in (side.tunnel, LINK)]
    side.enter(work)
    time.sleep(0.5)
    return [side.sent(device).since(old) for device, old in zip((side.tunnel, LINK), before)]


def transfer(sender, receiver):
    """A transfer by TCP: packets of data and of acknowledgements, before and after the tunnel."""
    listener = receiver.enter(lambda: socket.create_server((receiver.inner, PORT)))
    before = [side.sent(device) for side in (sender, receiver) for device in (side.tunnel, LINK)]

    def send():
        with sender.enter(lambda: socket.create_connection((receiver.inner, PORT))) as connection:
            connection.sendall(bytes(TRANSFER))

    thread = threading.Thread(target=send)
    thread.start()
    connection, _ = listener.accept()
    received = 0
    while data := connection.recv(1 << 16):
        received += len(data)
    thread.join()
    connection.close()
    listener.close()
    time.sleep(0.5)
    if received != TRANSFER:
        raise Failure(f"{received} of {TRANSFER} bytes have arrived")
    after = [side.sent(device) for side in (sender, receiver) for device in (side.tunnel, LINK)]
    return [new.since(old) for new, old in zip(after, before)]


def measure(sides):
    terminal, centre = sides
    failed = False
    print(
        "| IP packet | on the link, measured | added | with padding | model: `header = \"22 B\"` | model: also `overhead = \"60 B\"` |\n"
        "|--:|--:|--:|--:|--:|--:|"
    )
    for size in SIZES:
        inner, outer = send_datagrams(centre, terminal, size)
        # Each datagram is one packet of the tunnel and of the link.
        if inner.packets != DATAGRAMS or outer.packets < DATAGRAMS:
            raise Failure(f"{inner.packets} and {outer.packets} packets for {DATAGRAMS} datagrams")
        # Address resolution and keep-alive messages of the link are less than one byte for each datagram.
        value = outer.octets / inner.packets
        failed |= abs(value - size - ADDED) > 1
        model = size - 40 + FITTED
        row = (f"{value:.1f}", f"{value - size:.1f}", padded(size), model, model + ADDED)
        print(f"| {size} B |" + "".join(f" {number} B |" for number in row))
    print()
    data, data_on_link, acks, acks_on_link = transfer(centre, terminal)
    rows = (("data", data, data_on_link), ("acknowledgements", acks, acks_on_link))
    print("| TCP, 4 MB | packets | mean IP packet | mean on the link | bytes on the link, relative |\n|---|--:|--:|--:|--:|")
    for name, inner, outer in rows:
        ratio = outer.octets / inner.octets
        print(f"| {name} | {inner.packets} | {inner.mean():.1f} B | {outer.octets / inner.packets:.1f} B | {ratio:.3f} |")
    return not failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--boringtun", default="boringtun-cli", help="the program")
    args = parser.parse_args()
    sides = (Side("terminal", 2), Side("centre", 1))
    terminal, centre = sides
    try:
        for side in sides:
            # The kernel would send packets of IPv6 at any time.
            side.run("sysctl", "-q", "-w", "net.ipv6.conf.default.disable_ipv6=1")
        peer = ("peer", "name", LINK, "netns", centre.name)
        terminal.run("ip", "link", "add", LINK, "type", "veth", *peer)
        for side in sides:
            side.run("ip", "link", "set", LINK, "up")
            side.run("ip", "address", "add", f"{side.outer}/24", "dev", LINK)
            # Headers of 40 B, as in the paper.
            side.run("sysctl", "-q", "-w", "net.ipv4.tcp_timestamps=0")
        for side, peer in (sides, (centre, terminal)):
            side.begin(args.boringtun, peer)
        # The first packet begins the handshake.
        terminal.run("ping", "-c", "3", "-W", "5", centre.inner)
        sys.exit(0 if measure(sides) else 1)
    finally:
        for side in sides:
            side.end()


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(str(failure))
