#!/usr/bin/env python3
"""Captures between real kernels whose cause is known, explained.

Each case is a scenario with random parameters that `gridhaul run --on emu` runs: the TCP of both ends is the kernel's,
the proxy is the daemon. The capture is taken at the sender, between both ends, at the receiver, or at both sides of the
proxy. The script knows the cause from the parameters, and compares it with the limit that `gridhaul explain` names.

    sudo python3 bench/capture/causes.py --seed 1

Exit code 1: a limit is wrong, or fewer than 28 of 30 are right; the others are undecided.
"""

import argparse
import concurrent.futures
import json
import os
import random
import subprocess
import sys
import tempfile

POINTS = {"sender": ["access"], "line": ["line"], "receiver": ["exit"], "proxy": ["access", "line"]}
SEGMENT = 1500

SCENARIO = """\
title = "case"
duration = "{duration:.0f} s"
warmup = "0 s"
replications = 1
record = {{ pcap = ["access", "line", "exit"] }}

[node]
a = {{}}
m = {node}
n = {{}}
b = {{}}

[link.access]
from = "a"
to = "m"
both = {{ rate = "1 Gbit/s", delay = "20 us", queue = "10000 packets" }}

[link.line]
from = "m"
to = "n"
forward = {{ {forward} }}
reverse = {{ {reverse} }}

[link.exit]
from = "n"
to = "b"
both = {{ rate = "1 Gbit/s", delay = "20 us", queue = "10000 packets" }}

[stack.t]
{stack}

[flow.f]
from = "a"
to = "b"
stack = "t"
load = {load}
"""


class Case:
    """A scenario, and the limits that may be named."""

    def __init__(self, name, point, numbers):
        self.name, self.point, self.numbers = name, point, numbers
        self.rate, self.delay = numbers.uniform(2e6, 12e6), numbers.uniform(0.01, 0.06)
        self.control = numbers.choice(["cubic", "reno", "bbr"])
        self.stack, self.load, self.node, self.duration = [], '"bulk"', "{}", 12
        self.loss = self.outage = ""
        self.queue = 1000
        self.limits = {name}
        getattr(self, name)()

    def product(self):
        """Bytes in flight that fill the line."""
        return self.rate / 8 * 2 * self.delay + SEGMENT

    def receive_window(self):
        while self.product() < 60_000:
            self.rate, self.delay = self.numbers.uniform(2e6, 12e6), self.numbers.uniform(0.01, 0.06)
        window = max(12_000, self.product() * self.numbers.uniform(0.15, 0.5))
        self.stack.append(f'receive_window = "{window:.0f} B"')

    def link_rate(self):
        self.queue = max(20, self.product() * self.numbers.uniform(0.8, 2) / SEGMENT)

    def loss_rate(self):
        self.limits = {"loss"}
        # Losses do not limit BBR.
        self.control = self.numbers.choice(["cubic", "reno"])
        loss = self.numbers.uniform(0.008, 0.03)
        # Mathis et al. 1997: the rate at this loss is less than a third of the line's.
        self.rate = max(self.rate, 3 * 1448 * 8 * 1.22 / (2 * self.delay * loss**0.5))
        self.loss = f', loss = {{ bernoulli = "{100 * loss:.3f} %" }}'
        self.duration = 20

    def congestion_window(self):
        self.rate = self.numbers.uniform(40e6, 90e6)
        self.load = f'{{ transfer = {{ size = "{self.numbers.uniform(60, 300):.0f} kB" }} }}'
        # BBR paces its packets, also in its startup.
        self.control = self.numbers.choice(["cubic", "reno"])

    def application(self):
        every = 2 * self.delay * self.numbers.uniform(3, 8) + 0.05
        self.load = self.numbers.choice([
            f'{{ periodic = {{ size = "{self.numbers.uniform(100, 4000):.0f} B", every = "{1e3 * every:.1f} ms" }} }}',
            f'{{ poisson = {{ size = "{self.numbers.uniform(100, 900):.0f} B", every = "{2e3 * every:.1f} ms" }} }}',
            f'{{ request_response = {{ request = "{self.numbers.uniform(50, 400):.0f} B", '
            f'response = "{self.numbers.uniform(50, 900):.0f} B", think = "{self.numbers.uniform(5, 200):.0f} ms", '
            f'pause = "{self.numbers.uniform(20, 300):.0f} ms" }} }}',
        ])

    def timeout(self):
        # An outage in the middle of a transfer.
        start = 1 + 2 * self.delay + self.numbers.uniform(0.1, 0.4)
        length = self.numbers.uniform(3, 6)
        self.rate = self.numbers.uniform(2e6, 5e6)
        self.load = '{ transfer = { size = "500 kB" } }\nstart = "1 s"'
        self.outage = f', outage = [{{ start = "{start:.3f} s", length = "{length:.3f} s", mode = "drop" }}]'
        self.duration = 25

    def nagle(self):
        every = 2 * self.delay / self.numbers.uniform(5, 15)
        size = self.numbers.uniform(20, 60)
        self.load = f'{{ periodic = {{ size = "{size:.0f} B", every = "{1e3 * every:.3f} ms" }} }}'
        self.stack.append("nagle = true")

    def proxy(self, mode="split"):
        self.node = f'{{ proxy = {{ mode = "{mode}", buffer = "64 KiB" }} }}'

    def proxy_reflect(self):
        # The proxy keeps the sequence numbers: the captures show its buffer as a receive window.
        self.limits = {"proxy", "receive_window"}
        self.proxy("reflect")

    def proxy_spoof(self):
        self.limits = {"proxy", "receive_window"}
        self.proxy("spoof")

    def toml(self):
        line = f'rate = "{self.rate:.0f} bit/s", delay = "{1e3 * self.delay:.3f} ms"'
        forward = f'{line}, queue = "{self.queue:.0f} packets"{self.loss}{self.outage}'
        stack = "\n".join([f'congestion_control = "{self.control}"', *self.stack])
        reverse = f'{line}, queue = "1000 packets"'
        return SCENARIO.format(duration=self.duration, node=self.node, forward=forward, reverse=reverse, stack=stack,
                               load=self.load)


CASES = [
    *[("receive_window", point) for point in ("sender", "line", "receiver")],
    *[("link_rate", point) for point in ("sender", "line", "receiver", "sender", "line", "receiver")],
    *[("loss_rate", point) for point in ("sender", "line", "receiver")],
    *[("congestion_window", point) for point in ("sender", "line", "receiver")],
    *[("application", point) for point in ("sender", "line", "receiver", "sender", "line", "receiver")],
    *[("timeout", point) for point in ("sender", "line", "receiver")],
    *[("nagle", point) for point in ("sender", "line")],
    *[("proxy", "proxy"), ("proxy", "proxy"), ("proxy_reflect", "proxy"), ("proxy_spoof", "proxy")],
]


def explained(program, case, folder):
    """The first connection, or the text of an error."""
    path = os.path.join(folder, "case.toml")
    with open(path, "w", encoding="utf-8") as file:
        file.write(case.toml())
    results = os.path.join(folder, "results")
    words = [program, "run", path, "--on", "emu", "--out", results, "-q"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stderr.strip()
    files = [
        os.path.join(results, f"{link}.{direction}.pcapng")
        for link in POINTS[case.point] for direction in ("forward", "reverse")
    ]
    done = subprocess.run([program, "explain", *files, "--format", "json", "-q"], capture_output=True, text=True,
                          check=False)
    return json.loads(done.stdout)["connections"][0] if done.returncode == 0 else done.stderr.strip()


def outcome(program, kept, index, name, point, seed):
    case = Case(name, point, random.Random(f"{seed} {index} {name} {point}"))
    if kept:
        folder = os.path.join(kept, f"{seed}-{index}-{name}-{point}")
        os.makedirs(folder)
        return case, explained(program, case, folder)
    with tempfile.TemporaryDirectory() as folder:
        return case, explained(program, case, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--gridhaul", default="target/release/gridhaul", help="program")
    parser.add_argument("--seed", type=int, default=1, help="first seed")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds, each with all cases")
    parser.add_argument("--jobs", type=int, default=4, help="cases at the same time")
    parser.add_argument("--only", help="cases with this name")
    parser.add_argument("--keep", metavar="DIR", help="keep scenarios and captures in this folder")
    options = parser.parse_args()
    program = os.path.abspath(options.gridhaul)
    cases = [(index, *case) for index, case in enumerate(CASES) if options.only in (None, case[0])]
    seeds = range(options.seed, options.seed + options.seeds)
    right = wrong = undecided = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = [
            (seed, pool.submit(outcome, program, options.keep, index, name, point, seed))
            for seed in seeds for index, name, point in cases
        ]
        for seed, job in jobs:
            case, found = job.result()
            title = f"{seed} {case.name:<18}{case.point:<9}{case.control:<6}"
            if isinstance(found, str):
                print(f"{title} failed: {found}", flush=True)
                wrong += 1
                continue
            verdict = found["verdict"]
            limit = verdict["limit"]
            if limit is None:
                undecided += 1
                result = "undecided"
            elif limit in case.limits:
                right += 1
                result = "right"
            else:
                wrong += 1
                result = "WRONG"
            certainty = f"{limit or ''} ({verdict['confidence']})"
            print(f"{title} {result:<10}{certainty}: {verdict['evidence']}", flush=True)
    total = right + wrong + undecided
    print(f"{right} of {total} right, {undecided} undecided, {wrong} wrong")
    sys.exit(int(wrong > 0 or right * 30 < total * 28))


if __name__ == "__main__":
    main()
