"""Real applications through chains of bridges: HTTP, HTTPS, many short requests, SSH, MQTT, IEC 104.

The received bytes are compared with the sent ones. All applications pass chains of 1, 3 and 7 boxes; transfers pass one box
to servers with other MTUs, with and without the offloads of the interfaces.
"""

import hashlib
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time

from network import CLIENT, KERNEL, MODES, SERVER, Chain, Failure, Table, need, program, run

PACKAGES = {
    "nginx": "nginx-light",
    "curl": "curl",
    "openssl": "openssl",
    "sshd": "openssh-server",
    "ssh": "openssh-client",
    "mosquitto": "mosquitto",
    "mosquitto_pub": "mosquitto-clients",
}
# Short requests: processes of curl, and connections of each.
CLIENTS, CONNECTIONS = 4, 250
MTUS = (296, 576, 1500, 9000)
# MTU of the links where hosts have others.
LINK_MTU = 9000
# Longest time of an application in seconds.
LIMIT = 3000
# Time in which a relay that was delayed reports the end of its lease.
REPORT_TIME = 2
FOLDER = os.path.dirname(os.path.abspath(__file__))

NGINX = """
daemon off;
user root;
pid {folder}/nginx.pid;
error_log {folder}/nginx.errors;
worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen {address}:80 backlog=4096;
        listen {address}:443 ssl;
        ssl_certificate {folder}/certificate.pem;
        ssl_certificate_key {folder}/key.pem;
        root {folder}/files;
    }}
}}
"""

SSHD = """
Port 22
ListenAddress {address}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
PermitRootLogin yes
StrictModes no
UsePAM no
PidFile none
"""


class Files:
    """The files that are transferred, made once."""

    def __init__(self, folder, size):
        self.folder, self.size = folder, size
        self.root = os.path.join(folder, "files")
        os.makedirs(os.path.join(self.root, "short"))
        self.large = self.write("large", size)
        self.medium = self.write("medium", min(size, 20_000_000))
        self.short = [self.write(f"short/{number}", 100 + number * 37 % 20_000) for number in range(CONNECTIONS)]
        certificate = ("-keyout", f"{folder}/key.pem", "-out", f"{folder}/certificate.pem", "-subj", "/CN=server")
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *certificate)
        for name in ("host_key", "user_key"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{folder}/{name}")

    def write(self, name, size):
        """Writes random bytes. Returns their hash."""
        found, path = hashlib.sha256(), os.path.join(self.root, name)
        with open(path, "wb") as file:
            while size > 0:
                data = os.urandom(min(size, 1 << 20))
                found.update(data)
                file.write(data)
                size -= len(data)
        return found.hexdigest()


def hash_of(path):
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while data := file.read(1 << 20):
            found.update(data)
    return found.hexdigest()


def expect(found, expected, name):
    if found != expected:
        raise Failure(f"{name}: other bytes than were sent")


def output(host, *words, stdin=None):
    done = subprocess.run(
        ("ip", "netns", "exec", host.name, *words), stdin=stdin, capture_output=True, timeout=LIMIT, check=False
    )
    if done.returncode:
        raise Failure(f"{words[0]}: {done.stderr.decode(errors='replace').strip() or done.returncode}")
    return done.stdout


def await_port(chain, port):
    """Waits on the server itself, so that no connection passes the boxes before the application."""
    for _ in range(500):
        listening = chain.server.run("ss", "-Hltn", "sport", "=", f":{port}")
        if listening.strip():
            return
        time.sleep(0.02)
    raise Failure(f"no program listens at port {port}")


def start_nginx(chain, files):
    path = os.path.join(chain.folder, "nginx.conf")
    for name in ("files", "certificate.pem", "key.pem"):
        os.symlink(os.path.join(files.folder, name), os.path.join(chain.folder, name))
    with open(path, "w", encoding="utf-8") as file:
        file.write(NGINX.format(folder=chain.folder, address=SERVER))
    chain.start_program(chain.server, program("nginx"), "-c", path, "-p", chain.folder, stderr=subprocess.DEVNULL)
    await_port(chain, 80)


def fetch(chain, url, expected):
    """Downloads a file by curl."""
    script = 'set -o pipefail; curl --silent --show-error --fail --insecure --max-time "$2" "$1" | sha256sum'
    text = output(chain.client, "bash", "-c", script, "bash", url, str(LIMIT))
    expect(text.split()[0].decode(), expected, url)


def http(chain, files, name="large"):
    fetch(chain, f"http://{SERVER}/{name}", getattr(files, name))
    return os.path.getsize(os.path.join(files.root, name))


def https(chain, files, name="large"):
    fetch(chain, f"https://{SERVER}/{name}", getattr(files, name))
    return os.path.getsize(os.path.join(files.root, name))


def short_requests(chain, files):
    """1,000 connections at the same time, each with one request."""
    clients = []
    for number in range(CLIENTS):
        folder = os.path.join(chain.folder, f"received{number}")
        words = ["curl", "--silent", "--show-error", "--fail", "--parallel", "--parallel-immediate", "--no-keepalive"]
        words += ["--parallel-max", str(CONNECTIONS), "--create-dirs", "--max-time", "300"]
        words += ["--output", f"{folder}/#1", f"http://{SERVER}/short/[0-{CONNECTIONS - 1}]"]
        clients.append((folder, chain.start_program(chain.client, *words, stderr=subprocess.PIPE, text=True)))
    total = 0
    for folder, client in clients:
        _, errors = client.communicate(timeout=LIMIT)
        if client.returncode:
            raise Failure(f"curl: {errors.strip().splitlines()[-1:]}")
        for number, expected in enumerate(files.short):
            path = os.path.join(folder, str(number))
            expect(hash_of(path), expected, f"request {number}")
            total += os.path.getsize(path)
    return total


def ssh_words(files):
    options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "BatchMode=yes")
    words = ["ssh", "-F", "none", "-i", os.path.join(files.folder, "user_key")]
    for option in options:
        words += ["-o", option]
    return [*words, f"root@{SERVER}"]


def ssh(chain, files):
    """A session with lines that are answered, an upload and a download."""
    os.makedirs("/run/sshd", exist_ok=True)
    path = os.path.join(chain.folder, "sshd.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(SSHD.format(folder=files.folder, address=SERVER))
    chain.start_program(chain.server, program("sshd"), "-D", "-f", path, stderr=subprocess.DEVNULL)
    await_port(chain, 22)
    words = ssh_words(files)
    session = chain.start_program(
        chain.client, *words, "cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    for number in range(100):
        session.stdin.write(f"line {number}\n")
        session.stdin.flush()
        expect(session.stdout.readline(), f"line {number}\n", "session")
    _, errors = session.communicate(timeout=60)
    if session.returncode:
        raise Failure(f"ssh: {errors.strip()}")
    with open(os.path.join(files.root, "medium"), "rb") as file:
        text = output(chain.client, *words, "sha256sum", stdin=file)
    expect(text.split()[0].decode(), files.medium, "upload")
    found = hashlib.sha256(output(chain.client, *words, f"cat {files.root}/medium")).hexdigest()
    expect(found, files.medium, "download")
    return 2 * os.path.getsize(os.path.join(files.root, "medium"))


def mqtt(chain, files):
    """2,000 messages with QoS 1 and one of 20 MB, through a broker to a subscriber."""
    path = os.path.join(chain.folder, "mosquitto.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"listener 1883 {SERVER}\nallow_anonymous true\nuser root\nmax_queued_messages 0\nlog_dest none\n")
    chain.start_program(chain.server, program("mosquitto"), "-c", path, stderr=subprocess.DEVNULL)
    await_port(chain, 1883)
    lines = "".join(f"{number:08} {'reading ' * (number % 25)}\n" for number in range(2000))
    subscribe = ("mosquitto_sub", "-h", SERVER, "-q", "1")
    subscribers = [
        chain.start_program(chain.client, *subscribe, "-t", "lines", "-C", "2000", stdout=subprocess.PIPE),
        chain.start_program(chain.client, *subscribe, "-t", "file", "-C", "1", "-N", stdout=subprocess.PIPE),
    ]
    # A message that is published before the subscription does not arrive.
    time.sleep(2)
    publish = ("mosquitto_pub", "-h", SERVER, "-q", "1")
    publisher = chain.start_program(chain.client, *publish, "-t", "lines", "-l", stdin=subprocess.PIPE, text=True)
    publisher.communicate(lines, timeout=LIMIT)
    output(chain.client, *publish, "-t", "file", "-f", os.path.join(files.root, "medium"))
    received, _ = subscribers[0].communicate(timeout=300)
    expect(received.decode(), lines, "messages")
    received, _ = subscribers[1].communicate(timeout=LIMIT)
    expect(hashlib.sha256(received).hexdigest(), files.medium, "large message")
    return 2 * (len(lines) + os.path.getsize(os.path.join(files.root, "medium")))


def iec104(chain, files):
    """A controlled station and a controlling one of lib60870: measured values and set points."""
    script = os.path.join(FOLDER, "iec104.py")
    station = chain.start_program(
        chain.server, files.python, "-B", script, "station", SERVER, stdout=subprocess.PIPE, text=True
    )
    await_port(chain, 2404)
    text = output(chain.client, files.python, "-B", script, "control", SERVER).decode()
    received, _ = station.communicate(timeout=120)
    expected = "".join(f"{number}\n" for number in range(1000))
    expect(text, expected, "measured values")
    # Without repetitions of set points whose confirmation c104 has missed (iec104.py).
    distinct = "".join(f"{value}\n" for value, _ in itertools.groupby(received.split()))
    expect(distinct, "".join(f"{number}\n" for number in range(100)), "set points")
    return 1000 * 30 + 100 * 30


def provide_c104(options):
    """Python with c104, in the version of the tests of `gridhaul-measure`."""
    if options.python:
        return options.python
    root = os.path.join(FOLDER, "..", "..")
    requirements = os.path.join(root, "crates", "gridhaul-measure", "tests", "protocols", "requirements.txt")
    folder = os.path.join(root, "target", "bridge-peers")
    python = os.path.join(folder, "bin", "python")
    with open(requirements, encoding="utf-8") as file:
        wanted = next(line.strip() for line in file if line.startswith("c104"))
    installed = os.path.exists(python) and not subprocess.run((python, "-c", "import c104"), check=False).returncode
    if not installed:
        run(sys.executable, "-m", "venv", "--clear", folder)
        run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wanted)
    return python


def medium_http(chain, files):
    return http(chain, files, "medium")


def medium_https(chain, files):
    return https(chain, files, "medium")


APPLICATIONS = {"http": http, "https": https, "short": short_requests, "ssh": ssh, "mqtt": mqtt, "iec104": iec104}
# Those of chains with other MTUs.
TRANSFERS = {"http": medium_http, "https": medium_https, "ssh": ssh}
NAMES = {
    "http": "HTTP",
    "https": "HTTPS",
    "short": f"{CLIENTS * CONNECTIONS} short requests",
    "ssh": "SSH",
    "mqtt": "MQTT",
    "iec104": "IEC 104",
}


class Measurement:
    def __init__(self, options, files):
        self.options, self.files = options, files
        self.table = Table("application", "mode", "boxes", "MTU", "offloads", "bytes", "seconds", "Mbit/s", "connections")

    def describe(self, chain):
        """Prints what the relays and the hosts show after a failure."""
        if self.options.verbose:
            documents = [box.document(path) for box in chain.boxes if box.process for path in ("/status", "/details")]
            reports = [box.reports() for box in chain.boxes if box.process]
            sockets = [host.run("ss", "-tinO") for host in (chain.client, chain.server)]
            print(*(json.dumps(document) for document in documents), *reports, *sockets, sep="\n", flush=True)

    def run(self, name, mode, boxes, mtus=None, offloads=True, work=None):
        """One application through a new chain. `mtus` has the MTU of the links and that of the server."""
        begun, size, fault, opened, expirations = time.monotonic(), None, None, None, 0
        link_mtu, server_mtu = mtus or (1500, 1500)
        try:
            with Chain(
                self.options, mode, boxes, mtu=link_mtu, host_mtus=(link_mtu, server_mtu), offloads=offloads
            ) as chain:
                if name in ("http", "https", "short"):
                    start_nginx(chain, self.files)
                begun = time.monotonic()
                try:
                    size = (work or APPLICATIONS[name])(chain, self.files)
                    seconds = time.monotonic() - begun
                    chain.check()
                except (Failure, subprocess.TimeoutExpired):
                    # The kernel resets at the end of a lease; the relay reports it when it has the processor again.
                    time.sleep(REPORT_TIME)
                    expirations = chain.expirations()
                    self.describe(chain)
                    raise
                opened = chain.opened()
                if opened == 0:
                    raise Failure("no connection has passed a proxy")
        except (Failure, subprocess.TimeoutExpired, OSError) as error:
            fault, seconds = error, time.monotonic() - begun
            if expirations:
                fault = f"{error} (the machine was busy: the lease of a relay has expired {expirations} times)"
        rate = f"{size * 8 / seconds / 1e6:.0f}" if size else None
        offload = "on" if offloads else "off"
        self.table.add(NAMES[name], mode, boxes, server_mtu, offload, size, f"{seconds:.1f}", rate, opened, fault=fault)


def main(options):
    need(PACKAGES)
    modes = options.mode or MODES
    with open("/proc/loadavg", encoding="utf-8") as file:
        print(f"load average at the start: {file.read().split()[0]}, {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory(prefix="bridge-files-") as folder:
        files = Files(folder, options.size)
        os.chmod(folder, 0o755)
        names = options.application or list(APPLICATIONS)
        if "iec104" in names:
            files.python = provide_c104(options)
        measurement = Measurement(options, files)
        for boxes in () if options.mtu else options.boxes or (1, 3, 7):
            for mode in modes:
                for name in names:
                    measurement.run(name, mode, boxes)
        for mtu in options.mtu or (() if options.boxes else MTUS):
            for mode in modes:
                for offloads in (True, False):
                    for name in names:
                        if name in TRANSFERS:
                            measurement.run(name, mode, 1, (LINK_MTU, mtu), offloads, TRANSFERS[name])
        return measurement.table.end()


def arguments(parser):
    parser.add_argument("--application", action="append", choices=APPLICATIONS, help="only these")
    parser.add_argument("--boxes", action="append", type=int, help="only chains, of these lengths; default: 1, 3 and 7")
    parser.add_argument("--size", type=int, default=1_000_000_000, help="bytes of a transfer by HTTP and HTTPS")
    parser.add_argument("--mtu", action="append", type=int, help=f"only servers with these MTUs; default: {MTUS}")
    parser.add_argument("--mode", action="append", choices=(*MODES, KERNEL), help="only these modes")
    parser.add_argument("--verbose", action="store_true", help="print counters and messages of the relays after a failure")
    parser.add_argument("--python", help="a Python with c104; default: a virtual environment in target")
