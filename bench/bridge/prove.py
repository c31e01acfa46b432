#!/usr/bin/env python3
"""Prove the bridge with real programs, on kernel TCP in network namespaces; root is needed.

    cargo build --release -p gridhaul-relay
    sudo apt-get install nginx-light curl openssl openssh-server openssh-client mosquitto mosquitto-clients gcc python3-venv
    sudo python3 bench/bridge/prove.py applications
    sudo python3 bench/bridge/prove.py ends
    sudo python3 bench/bridge/prove.py faults
    sudo python3 bench/bridge/prove.py kills --kills 200

Each prints a table. The exit code is 1 if a result is not the expected one.
"""

import argparse
import os
import signal
import sys

import applications
import ends
import faults
import kills

SUBJECTS = {"applications": applications, "ends": ends, "faults": faults, "kills": kills}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="subject", required=True)
    for name, module in SUBJECTS.items():
        command = commands.add_parser(name, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        command.add_argument("--relay", default="target/release/gridhaul-relay", help="the program")
        command.add_argument("--nice", type=int, default=0, help="nice value of the relays; negative on a busy machine")
        if name != "kills":
            command.add_argument("--no-lease", action="store_true", help="relays without `fail_open`: a delay resets nothing")
        module.arguments(command)
    options = parser.parse_args()
    options.relay = os.path.abspath(options.relay)
    if os.geteuid():
        sys.exit("root is needed for network namespaces")
    if not os.access(options.relay, os.X_OK):
        sys.exit(f"{options.relay}: no such program; cargo build --release -p gridhaul-relay")
    # The namespaces and programs are removed at any end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    sys.exit(SUBJECTS[options.subject].main(options))


if __name__ == "__main__":
    main()
