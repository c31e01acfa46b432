"""Times and memory of the Python module, which is installed with the command next to it.

Prints a line of JSON with the name and the value of each quantity. Each quantity is the best of
several attempts, so that other processes influence it little.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import gridhaul

DOWNLOAD = """
title = "A download"
duration = "%s"
[node]
head = {}
meter = {}
[link.feeder]
from = "head"
to = "meter"
both = { rate = "1 Mbit/s", delay = "10 ms", loss = { bernoulli = "1 %%" } }
[flow.download]
from = "head"
to = "meter"
load = "bulk"
"""
MESSAGES = """
title = "Messages"
duration = "1 h"
[node]
meter = { count = 100 }
head = {}
[link.feeder]
from = "meter"
to = "head"
both = { rate = "10 Mbit/s", delay = "%s" }
[flow.reports]
from = "meter"
to = "head"
load = "external"
"""
COMMAND = Path(sys.executable).with_name("gridhaul")


def best(attempts: int, measure) -> float:
    """Return the smallest of several measurements."""
    return min(measure() for _ in range(attempts))


def seconds(work) -> float:
    """Return the time of a function."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def process(program: str, *arguments: str) -> tuple[float, str]:
    """Return the time and the output of a program in another Python process."""
    command = [sys.executable, "-c", program, *arguments]
    start = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return time.perf_counter() - start, done.stdout


def import_s() -> float:
    """Time of `import gridhaul` in a new interpreter."""
    program = "import time; t = time.perf_counter(); import gridhaul; print(time.perf_counter()-t)"
    return best(10, lambda: float(process(program)[1]))


def first_frame_s() -> float:
    """Time of a new process that runs a scenario and makes a frame of polars."""
    program = (
        "import sys, gridhaul\n"
        "answer = gridhaul.run(gridhaul.Scenario.from_toml(sys.argv[1]), replications=10)\n"
        "assert answer.flows.to_polars().height == 1"
    )
    return best(3, lambda: process(program, DOWNLOAD % "60 s")[0])


def overhead_ratio() -> float:
    """Time of a run of about ten seconds, relative to that of the command."""
    short = gridhaul.Scenario.from_toml(DOWNLOAD % "2000 s")
    one = best(3, lambda: seconds(lambda: gridhaul.run(short, threads=1)))
    text = DOWNLOAD % f"{int(2000 * 10 / one)} s"
    scenario = gridhaul.Scenario.from_toml(text)
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, "a.toml"), Path(folder, "out")
        file.write_text(text)
        command = [COMMAND, "run", file, "--threads", "1", "--quiet", "--out", out, "--force"]
        by_command, by_module = [], []
        for _ in range(3):
            by_command.append(
                seconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))
            )
            by_module.append(seconds(lambda: gridhaul.run(scenario, threads=1).flows.to_polars()))
    return min(by_module) / min(by_command) - 1


def recorded(rows: int) -> gridhaul.Frame:
    """Return a series with this number of rows."""
    scenario = gridhaul.Scenario.from_toml(DOWNLOAD % f"{rows} ms")
    answer = gridhaul.run(scenario.set("record.interval", "1 ms"))
    return answer.series["windows"]


def million_rows_s() -> float:
    """Time to make a frame of polars of a million rows."""
    frame = recorded(1_000_000)
    assert frame.shape[0] >= 999_000
    return best(5, lambda: seconds(frame.to_polars))


def ten_million_rows_byte() -> int:
    """Peak memory of a process that reads ten million rows batch by batch."""
    program = (
        "import resource, sys, gridhaul, pyarrow\n"
        "scenario = gridhaul.Scenario.from_toml(sys.argv[1])\n"
        "series = gridhaul.run(scenario.set('record.interval', '1 ms')).series['windows']\n"
        "reader = pyarrow.RecordBatchReader.from_stream(series)\n"
        "rows = sum(batch.num_rows for batch in reader)\n"
        "assert rows > 9_990_000, rows\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
    )
    return int(process(program, DOWNLOAD % "9999999 ms")[1])


def ctrl_c_s() -> float:
    """Longest time from Ctrl-C to the exception, of ten."""
    scenario = gridhaul.Scenario.from_toml(DOWNLOAD % "1000 s")
    longest = 0.0
    for attempt in range(10):
        sent = 0.0

        def send() -> None:
            nonlocal sent
            sent = time.perf_counter()
            os.kill(os.getpid(), signal.SIGINT)

        threading.Timer(0.5 + attempt / 97, send).start()
        try:
            gridhaul.run(scenario, replications=100_000, ignore_estimate=True)
        except gridhaul.Interrupted as error:
            longest = max(longest, time.perf_counter() - sent)
            assert error.answer is not None
    return longest


def first_unit_s() -> float:
    """Time from the start of a sweep of a million points to its first stored results."""
    with tempfile.TemporaryDirectory() as folder:
        file, units = Path(folder, "a.toml"), Path(folder, "units")
        file.write_text(DOWNLOAD % "100 ms")
        vary = "link.feeder.both.delay=lin:1 us:1000000 us:1000000"
        command = [COMMAND, "sweep", file, "--vary", vary, "--units", units, "--quiet"]
        start = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as sweep:
            while sweep.poll() is None and not any(units.glob("unit-*")):
                time.sleep(0.001)
            waited = time.perf_counter() - start
            sweep.kill()
        assert any(units.glob("unit-*"))
        return waited


def merge_s(points: int) -> float:
    """Time to merge the stored results of a sweep of so many points."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "a.toml")
        file.write_text(DOWNLOAD % "100 ms")
        vary = f"link.feeder.both.delay=lin:1 us:{points} us:{points}"
        common = ["--vary", vary, "--units", Path(folder, "units"), "--quiet"]
        sweep = [COMMAND, "sweep", file, *common, "--shard", "1/1"]
        subprocess.run(sweep, check=True)
        merge = [COMMAND, "merge", file, *common, "--out", Path(folder, "out")]
        return seconds(lambda: subprocess.run(merge, check=True, stdout=subprocess.DEVNULL))


def messages_per_s() -> float:
    """Messages that a session sends and delivers in a second, in steps of a second."""

    def work() -> None:
        with gridhaul.Session(gridhaul.Scenario.from_toml(MESSAGES % "40 ms")) as session:
            delivered = 0
            for second in range(10):
                session.send_many(
                    [
                        (f"meter[{index % 100}]", "head", 200, second + index / 10_000)
                        for index in range(10_000)
                    ]
                )
                delivered += len(session.advance_to(second + 1))
            assert delivered > 90_000, delivered

    return 100_000 / best(3, lambda: seconds(work))


def snapshot_s() -> float:
    """Time of a snapshot, or of restoring it, with ten thousand messages in flight."""
    with gridhaul.Session(gridhaul.Scenario.from_toml(MESSAGES % "10 s")) as session:
        session.advance_to(30)
        session.send_many([(f"meter[{index % 100}]", "head", 200, 31) for index in range(10_000)])
        session.advance_to(35)
        assert session.in_flight == 10_000, session.in_flight
        state = session.snapshot()
        saved = best(10, lambda: seconds(session.snapshot))
        return max(saved, best(10, lambda: seconds(lambda: session.restore(state))))


def main() -> None:
    """Print all quantities; the argument is the number of points to merge."""
    points = int(sys.argv[1])
    measured = {
        "import_s": import_s,
        "first_frame_s": first_frame_s,
        "overhead_ratio": overhead_ratio,
        "million_rows_s": million_rows_s,
        "ten_million_rows_byte": ten_million_rows_byte,
        "ctrl_c_s": ctrl_c_s,
        "first_unit_s": lambda: best(3, first_unit_s),
        "merge_s": lambda: merge_s(points),
        "messages_per_s": messages_per_s,
        "snapshot_s": snapshot_s,
    }
    for name, measure in measured.items():
        print(json.dumps({"name": name, "value": measure()}), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"name": "peak_byte", "value": peak}), flush=True)


if __name__ == "__main__":
    main()
