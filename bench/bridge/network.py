"""A chain of bridges between two hosts, in network namespaces, and the programs of the test."""

import ctypes
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from namespaces import Failure, Namespace, run  # noqa: E402

MODES = ("none", "reflect", "spoof", "snoop", "ack", "split")
# The bridge of the kernel alone, for comparison.
KERNEL = "kernel"
CLIENT, SERVER = "10.77.0.1", "10.77.0.2"
CLIENT_V6, SERVER_V6 = "fd00::1", "fd00::2"
MANAGEMENT = "127.0.0.1:9180"
SIOCETHTOOL = 0x8946
# ETHTOOL_STSO, ETHTOOL_SGSO, ETHTOOL_SGRO, ETHTOOL_SRXCSUM, ETHTOOL_STXCSUM, ETHTOOL_SSG.
OFFLOADS = (0x1F, 0x24, 0x2C, 0x15, 0x17, 0x19)


def need(packages):
    """Ends the program if a program is missing; `packages` has the Debian package of each."""
    path = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"
    missing = [package for program, package in packages.items() if not shutil.which(program, path=path)]
    if missing:
        sys.exit(f"missing programs: apt-get install {' '.join(missing)}")


def program(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") or name


class Host(Namespace):
    """A namespace of the chain, whose TCP keeps no metrics of earlier connections."""

    def __init__(self, name):
        super().__init__(f"ghb-{name}")
        self.run("sysctl", "-qw", "net.ipv4.tcp_no_metrics_save=1")


def disable_offloads(device):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in OFFLOADS:
            value = ctypes.create_string_buffer(struct.pack("II", command, 0))
            request = struct.pack("16sP", device.encode(), ctypes.addressof(value))
            try:
                fcntl.ioctl(control, SIOCETHTOOL, request)
            except OSError:
                # An offload that the device does not have.
                pass


class Box:
    """A bridge of the kernel with two ports and, unless the mode is `kernel`, a relay."""

    def __init__(self, number, chain):
        self.namespace, self.nice = Host(f"box{number}"), chain.nice
        self.folder, self.relay, self.mode = chain.folder, chain.relay, chain.mode
        self.config = os.path.join(self.folder, f"box{number}.toml")
        self.errors = os.path.join(self.folder, f"box{number}.errors")
        self.keys, self.process, self.has_lease = chain.keys, None, chain.has_lease
        self.namespace.run("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1", "net.ipv6.conf.all.disable_ipv6=1")

    def connect_ports(self):
        if not self.has_lease and self.mode != KERNEL:
            return
        self.namespace.run("ip", "link", "add", "br0", "type", "bridge")
        for device in ("left", "right"):
            self.namespace.run("ip", "link", "set", device, "master", "br0")
        self.namespace.run("ip", "link", "set", "br0", "up")

    def start(self):
        if self.mode == KERNEL:
            return
        toward = 'toward = "right"\n' if self.mode in ("snoop", "ack") else ""
        fail_open = "" if self.has_lease else "fail_open = false\n"
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(
                f'name = "box"\nmanagement.address = "{MANAGEMENT}"\n[bridge]\ninterfaces = ["left", "right"]\n{fail_open}'
                f'{self.keys.get("bridge", "")}\n[bridge.rule.all]\nmode = "{self.mode}"\n{toward}{self.keys.get("rule", "")}\n'
            )
        with open(self.errors, "ab") as errors:
            self.process = self.namespace.start("nice", "-n", self.nice, self.relay, "run", self.config, stderr=errors, stdin=subprocess.DEVNULL)
        for _ in range(3000):
            if self.process.poll() is not None:
                raise Failure(f"the relay has ended: {self.reports()}")
            try:
                self.document("/status")
                return
            except OSError:
                time.sleep(0.01)
        raise Failure("the relay does not answer")

    def document(self, path):
        def ask():
            with urllib.request.urlopen(f"http://{MANAGEMENT}{path}", timeout=20) as answer:
                return json.load(answer)

        return self.namespace.enter(ask)

    def reports(self):
        with open(self.errors, encoding="utf-8", errors="replace") as file:
            return file.read()

    def expirations(self):
        """How often other work on the processors has delayed the relay until its lease had expired."""
        return self.reports().count("did not answer in time") if self.process else 0

    def kill(self):
        self.process.kill()
        self.process.wait()

    def memory(self):
        """Largest memory of the process so far, in bytes."""
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            lines = dict(line.split(":", 1) for line in file)
        return int(lines["VmHWM"].split()[0]) * 1024

    def check(self):
        """The relay runs and has not panicked."""
        if self.mode != KERNEL and (self.process.poll() is not None or "panicked" in self.reports()):
            raise Failure(f"the relay has failed: {self.reports()}")

    def delete(self):
        if self.process:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        self.namespace.delete()


class Chain:
    """A client, boxes in a row, and a server. `links` has parameters of a link with faults by the number of the hop."""

    def __init__(self, options, mode, boxes, links=None, mtu=1500, host_mtus=None, offloads=True, keys=None):
        self.mode, self.relay, self.keys, self.nice = mode, options.relay, keys or {}, str(options.nice)
        self.has_lease = not getattr(options, "no_lease", False)  # Not an option of `kills`.
        self.temporary = tempfile.TemporaryDirectory(prefix="bridge-")
        self.folder = self.temporary.name
        self.link_processes, self.processes, self.boxes, self.namespaces = {}, [], [], []
        try:
            self.build(boxes, links or {}, mtu, host_mtus or (mtu, mtu), offloads)
        except BaseException:
            self.delete()
            raise

    def build(self, boxes, links, mtu, host_mtus, offloads):
        self.client, self.server = self.namespace("client"), self.namespace("server")
        for number in range(boxes):
            self.boxes.append(Box(number, self))
        ends = [(self.client, "eth0")]
        for box in self.boxes:
            ends += [(box.namespace, "left"), (box.namespace, "right")]
        ends.append((self.server, "eth0"))
        if links:
            self.link_namespace = self.namespace("links")
            self.link_namespace.run("sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1")
        for hop in range(boxes + 1):
            self.connect(hop, ends[2 * hop], ends[2 * hop + 1], mtu, hop in links, offloads)
        for host, addresses, host_mtu in (
            (self.client, (CLIENT, CLIENT_V6), host_mtus[0]),
            (self.server, (SERVER, SERVER_V6), host_mtus[1]),
        ):
            host.run("ip", "link", "set", "eth0", "mtu", str(host_mtu))
            host.run("ip", "address", "add", f"{addresses[0]}/24", "dev", "eth0")
            if host_mtu >= 1280:
                host.run("ip", "address", "add", f"{addresses[1]}/64", "dev", "eth0", "nodad")
        for box in self.boxes:
            box.connect_ports()
            box.start()
        for hop, parameters in links.items():
            self.start_link(hop, parameters)

    def namespace(self, name):
        namespace = Host(name)
        self.namespaces.append(namespace)
        return namespace

    def connect(self, hop, left, right, mtu, has_link, offloads):
        pairs = [(left, right)]
        if has_link:
            pairs = [(left, (self.link_namespace, f"l{hop}")), ((self.link_namespace, f"r{hop}"), right)]
        for one, other in pairs:
            one[0].run("ip", "link", "add", one[1], "type", "veth", "peer", "name", other[1], "netns", other[0].name)
            for namespace, device in (one, other):
                namespace.run("ip", "link", "set", device, "mtu", str(mtu), "up")
                if has_link or not offloads:
                    namespace.enter(lambda device=device: disable_offloads(device))

    def start_link(self, hop, parameters):
        """Starts the link of a hop, in place of the present one, whose counters are returned."""
        counters = self.stop_link(hop)
        words = [f"{key}={value}" for key, value in parameters.items()]
        self.link_processes[hop] = self.link_namespace.start(
            "nice", "-n", self.nice, self.link_program(), f"l{hop}", f"r{hop}", *words, stdout=subprocess.PIPE, text=True
        )
        if not self.link_processes[hop].stdout.readline():
            raise Failure(f"the link of hop {hop} does not start")
        return counters

    def stop_link(self, hop):
        process = self.link_processes.pop(hop, None)
        if process is None:
            return {}
        process.send_signal(signal.SIGTERM)
        text, _ = process.communicate()
        if process.returncode:
            raise Failure(f"the link of hop {hop} has ended with {process.returncode}")
        return json.loads(text)

    def link_program(self):
        path = os.path.join(self.folder, "link")
        if not os.path.exists(path):
            source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "link.c")
            run("cc", "-O2", "-Wall", "-o", path, source)
        return path

    def start_program(self, host, *words, **options):
        """Starts a program on a host, which ends with the chain."""
        process = host.start(*words, **options)
        self.processes.append(process)
        return process

    def statuses(self):
        return [box.document("/status") for box in self.boxes if self.mode != KERNEL]

    def opened(self):
        """Least number of connections that a box has passed through its proxy."""
        if self.mode in (KERNEL, "none"):
            return None
        return min(status["opened_count"][self.mode] for status in self.statuses())

    def expirations(self):
        return sum(box.expirations() for box in self.boxes)

    def check(self):
        """All relays run, and have lost no acknowledged byte."""
        for box in self.boxes:
            box.check()
        lost = sum(status["lost_byte"] for status in self.statuses())
        if lost:
            raise Failure(f"{lost} acknowledged bytes are lost")

    def delete(self):
        for process in [*self.processes, *self.link_processes.values()]:
            # SIGKILL would leave the workers of nginx.
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for box in self.boxes:
            box.delete()
        for namespace in self.namespaces:
            namespace.delete()
        self.temporary.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.delete()


class Table:
    """Rows that are printed when they are known. The last column is the result."""

    def __init__(self, *columns):
        self.failures = []
        print(f"| {' | '.join(columns)} | result |\n|{'---|' * (len(columns) + 1)}", flush=True)

    def add(self, *values, fault=None):
        cells = ["–" if value is None else str(value) for value in values]
        if fault:
            self.failures.append(f"{', '.join(cells[:3])}: {fault}")
            print(self.failures[-1], file=sys.stderr, flush=True)
        print(f"| {' | '.join(cells)} | {'**failed**' if fault else 'passed'} |", flush=True)

    def end(self):
        """Prints the causes of failures. Returns the exit code."""
        for failure in self.failures:
            print(f"failed: {failure}")
        return 1 if self.failures else 0
