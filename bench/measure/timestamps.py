"""Standard input of `mosquitto_pub -l`: 1,100 messages of 132 B, 100 in a second, each with the time at which it was written.

With `--report`, reads the lines of `mosquitto_sub -F '%U %p'` (time of arrival, then the message) and prints the quantiles of the
latency without the first 100 messages.
"""

import sys
import time

MESSAGES, WARM_UP, INTERVAL_S, BYTES = 1_100, 100, 0.01, 132


def publish():
    start = time.monotonic()
    for sequence in range(MESSAGES):
        time.sleep(max(0.0, start + sequence * INTERVAL_S - time.monotonic()))
        message = f"{time.time():.9f} ".ljust(BYTES, "x")
        print(message, flush=True)


def report():
    lines = list(sys.stdin)
    if len(lines) != MESSAGES:
        sys.exit(f"{len(lines)} of {MESSAGES} messages arrived")
    times = [line.split()[:2] for line in lines[WARM_UP:]]
    latencies = sorted(float(arrival) - float(written) for arrival, written in times)
    quantiles = {"p2": 0.02, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p98": 0.98}
    at = {name: latencies[int(share * len(latencies))] for name, share in quantiles.items()}
    print("ms", *(f"{name} {value * 1e3:.3f}" for name, value in at.items()))


report() if sys.argv[1:] == ["--report"] else publish()
