# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Reading a relay's metrics
#
# A relay near the meters stores their readings while the head is unreachable, and forwards them
# afterwards. How much does it store, and for how long? The relay answers at `/metrics` in the text
# format of Prometheus. This notebook starts a collector and a head on this machine
# (`gridhaul-relay`, without root), interrupts the head, and reads the metrics into a data frame.

# %%
import json
import re
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import polars as pl

folder = tempfile.TemporaryDirectory(prefix="gridhaul-relay-")
work = Path(folder.name)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


meters, management, head, head_management = (free_port() for _ in range(4))
(work / "collector.toml").write_text(f"""
name = "substation-12"
log.folder = "collector-log"
management.address = "127.0.0.1:{management}"
[collector]
upstream = "127.0.0.1:{head}"
tier = "local"
[collector.listener.readings]
address = "127.0.0.1:{meters}"
framing.delimiter.byte = 10
""")
(work / "head.toml").write_text(f"""
name = "head"
log.folder = "head-log"
management.address = "127.0.0.1:{head_management}"
[head]
address = "127.0.0.1:{head}"
deliver.file = "messages.jsonl"
""")

# %% [markdown]
# A line of the text format is a name, labels in braces, and a number. Comments begin with `#`.

# %%
LINE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
started = time.monotonic()


def metrics() -> dict[str, float]:
    """Read all metrics, and the time since the start."""
    with urllib.request.urlopen(f"http://127.0.0.1:{management}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    found = {
        name + (f"{{{labels}}}" if labels else ""): float(value)
        for name, labels, value in LINE.findall(text)
    }
    return {"time_s": time.monotonic() - started, **found}


def wait_for(
    condition: Callable[[dict[str, float]], bool], seconds: float = 30.0
) -> dict[str, float]:
    """Read the metrics until they meet a condition."""
    for _ in range(int(seconds / 0.05)):
        try:
            if condition(now := metrics()):
                return now
        except OSError:
            pass  # The relay has not opened its port yet.
        time.sleep(0.05)
    raise TimeoutError("the relay did not reach this state")


# %% [markdown]
# ## The head is unreachable
#
# The collector starts alone. Ten meters send a reading each, twenty times.


# %%
def start(file: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["gridhaul-relay", "run", file],
        cwd=work,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


samples: list[dict[str, float]] = []
collector = start("collector.toml")
wait_for(lambda now: True)
connections = [socket.create_connection(("127.0.0.1", meters)) for _ in range(10)]
for round_number in range(20):
    for meter, connection in enumerate(connections):
        connection.sendall(f"meter {meter} reading {round_number}\n".encode())
    time.sleep(0.02)
    samples.append(metrics())

# %% [markdown]
# The backlog grows, and so does the age of its oldest record: the time for which a reading has
# waited for the head.

# %%
columns = {
    "gridhaul_relay_received_bytes_total": "received_byte",
    "gridhaul_relay_backlog_bytes": "backlog_byte",
    "gridhaul_relay_oldest_record_age_seconds": "oldest_s",
    "gridhaul_relay_upstreams_connected": "connected",
}
outage = pl.DataFrame(samples).select("time_s", *columns).rename(columns)
outage

# %% [markdown]
# ## The head returns
#
# The collector delivers everything that it has stored. No reading is lost or doubled.

# %%
head_process = start("head.toml")
drained = wait_for(lambda now: now["gridhaul_relay_backlog_bytes"] == 0)
for connection in connections:
    connection.close()
summary = pl.DataFrame(
    {
        "quantity": ["largest backlog (B)", "oldest record (s)", "backlog afterwards (B)"],
        "value": [
            outage["backlog_byte"].max(),
            outage["oldest_s"].max(),
            drained["gridhaul_relay_backlog_bytes"],
        ],
    }
)
summary


# %%
def delivered() -> list[str]:
    """Read the readings that the head has written."""
    path = work / "messages.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    events = [json.loads(line) for line in lines if line.endswith("}")]
    return sorted(event["text"] for event in events if event["event"] == "data")


expected = sorted(
    f"meter {meter} reading {number}\n" for meter in range(10) for number in range(20)
)
# The head has stored them when the backlog is empty, and writes the file afterwards.
wait_for(lambda now: len(delivered()) >= len(expected))
for process in (collector, head_process):
    process.terminate()
    process.wait(timeout=30)
readings = delivered()
folder.cleanup()
assert readings == expected
assert outage["connected"].max() == 0
assert outage["backlog_byte"].is_sorted()
