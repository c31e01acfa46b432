"""Start many federates of HELICS with one network, and print time and memory.

    python federates.py --federates 1000

Each federate has a core of its own, sends a message through the network, and ends. They are divided
among ``--processes``, in threads; broker and network are in this process. All communication is
over the loopback interface.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import helics

import gridhaul
import gridhaul.helics

UNTIL_S = 10.0

SCENARIO = """
title = "Many federates"
duration = "1 h"
[node]
meter = { count = COUNT }
head = {}
[link.line]
from = "meter"
to = "head"
both = { rate = "100 Mbit/s", delay = "40 ms", queue = "unlimited" }
[flow.reports]
from = "meter"
to = "head"
transport = "datagram"
load = "external"
"""


def join(name: str, options: argparse.Namespace) -> object:
    info = helics.helicsCreateFederateInfo()
    helics.helicsFederateInfoSetCoreTypeFromString(info, options.core)
    helics.helicsFederateInfoSetCoreInitString(
        info, f"--federates=1 --broker_address=127.0.0.1 --timeout={options.timeout}s"
    )
    return helics.helicsCreateMessageFederate(name, info)


def federate(number: int, options: argparse.Namespace, joined: threading.Barrier) -> None:
    """Join, send a message at 1 s, and leave at the end."""
    member = join(f"federate-{number}", options)
    endpoint = helics.helicsFederateRegisterGlobalEndpoint(member, f"meter[{number}]", "")
    joined.wait()
    helics.helicsFederateEnterExecutingMode(member)
    while helics.helicsFederateGetCurrentTime(member) < 1:
        helics.helicsFederateRequestTime(member, 1.0)
    helics.helicsEndpointSendBytesTo(endpoint, bytes(100), "head")
    while helics.helicsFederateGetCurrentTime(member) < UNTIL_S:
        helics.helicsFederateRequestTime(member, UNTIL_S)
    helics.helicsFederateDisconnect(member)


def head(options: argparse.Namespace, found: list[float]) -> None:
    """Receive the messages."""
    member = join("control", options)
    endpoint = helics.helicsFederateRegisterGlobalEndpoint(member, "head", "")
    helics.helicsFederateEnterExecutingMode(member)
    granted_s = 0.0
    while granted_s < UNTIL_S:
        granted_s = helics.helicsFederateRequestTime(member, UNTIL_S)
        while helics.helicsEndpointHasMessage(endpoint):
            found.append(helics.helicsMessageGetTime(helics.helicsEndpointGetMessage(endpoint)))
    helics.helicsFederateDisconnect(member)


def members(numbers: range, options: argparse.Namespace) -> None:
    """Run federates in threads of this process."""
    joined = threading.Barrier(len(numbers))
    threads = [
        threading.Thread(target=federate, args=(number, options, joined)) for number in numbers
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> None:
    options = arguments()
    if options.first is not None:
        members(range(options.first, options.first + options.federates), options)
        return
    begun = time.monotonic()
    settings = f"-f {options.federates + 2} --loglevel=error --timeout={options.timeout}s"
    broker = helics.helicsCreateBroker(options.core, "", settings)
    shares = [options.federates * n // options.processes for n in range(options.processes + 1)]
    command = [sys.executable, "-P", str(Path(__file__).resolve()), "--core", options.core]
    command += ["--timeout", str(options.timeout)]
    processes = [
        subprocess.Popen([*command, "--first", str(start), "--federates", str(end - start)])
        for start, end in itertools.pairwise(shares)
    ]
    found: list[float] = []
    receiver = threading.Thread(target=head, args=(options, found))
    receiver.start()
    network = gridhaul.helics.Network(
        gridhaul.Scenario.from_toml(SCENARIO.replace("COUNT", str(options.federates))),
        core_type=options.core,
        core_init=f"--federates=1 --broker_address=127.0.0.1 --timeout={options.timeout}s",
        timeout_s=options.timeout,
    )
    print(f"joined after {time.monotonic() - begun:.1f} s", flush=True)
    network.run(UNTIL_S)
    receiver.join(options.timeout)
    for process in processes:
        process.wait(options.timeout)
    helics.helicsBrokerWaitForDisconnect(broker, 10_000)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processor_s = sum(usage.ru_utime + usage.ru_stime for usage in used)
    print(
        f"{options.federates} federates in {options.processes} processes, core {options.core}: "
        f"{len(found)} messages received, "
        f"{time.monotonic() - begun:.1f} s, {processor_s:.1f} s of processor time, "
        f"{used[0].ru_maxrss / 1024:.0f} MB here, "
        f"at most {used[1].ru_maxrss / 1024:.0f} MB in each other process"
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--federates", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--core", default="zmqss", help="type of the cores")
    parser.add_argument("--timeout", type=int, default=300, help="seconds without progress")
    parser.add_argument("--first", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
