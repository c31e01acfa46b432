from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

import gridhaul

# A shell starts programs in the background with SIGINT ignored, which tests of Ctrl-C would
# wait for without end.
signal.signal(signal.SIGINT, signal.default_int_handler)

DOWNLOAD = """
title = "A download"
duration = "2 s"
[node]
head = {}
meter = {}
[link.feeder]
from = "head"
to = "meter"
both = { rate = "1 Mbit/s", delay = "10 ms", loss = { bernoulli = "1 %" } }
[flow.download]
from = "head"
to = "meter"
load = "bulk"
"""

METERS = """
title = "Meters of a district"
duration = "60 s"
[node]
meter = { count = 20 }
concentrator = {}
head = {}
[link.street]
from = "meter"
to = "concentrator"
both = { rate = "64 kbit/s", delay = "20 ms" }
[link.uplink]
from = "concentrator"
to = "head"
both = { rate = "1 Mbit/s", delay = "40 ms" }
[flow.reports]
from = "meter"
to = "head"
load = "external"
[flow.alarms]
from = "meter"
to = "head"
transport = "datagram"
load = "external"
[flow.commands]
from = "head"
to = "meter"
load = "external"
"""


def long(seconds: int = 10_000_000) -> gridhaul.Scenario:
    """Return a scenario whose run takes minutes."""
    return gridhaul.Scenario.from_toml(DOWNLOAD.replace("2 s", f"{seconds} s"))


@pytest.fixture
def download() -> gridhaul.Scenario:
    return gridhaul.Scenario.from_toml(DOWNLOAD)


@pytest.fixture
def meters() -> gridhaul.Scenario:
    # Two external flows from meters to the head would be ambiguous.
    text = METERS.replace(
        METERS[METERS.index("[flow.alarms]") : METERS.index("[flow.commands]")], ""
    )
    return gridhaul.Scenario.from_toml(text)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def written(text: str, name: str = "scenario.toml") -> Path:
        path = tmp_path / name
        path.write_text(dedent(text))
        return path

    return written


@pytest.fixture(scope="session")
def command() -> str:
    """Return the path of the command that was built with the module."""
    import shutil

    found = shutil.which("gridhaul")
    assert found is not None, "the test command puts the program into the path"
    return found
