from __future__ import annotations

import gridhaul

DISTRICT = """
title = "Reports and commands"
duration = "1 h"
seed = 3
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
both = { rate = "256 kbit/s", delay = "40 ms", queue = "20 packets", loss = { bernoulli = "3 %" } }
[flow.reports]
from = "meter"
to = "head"
load = "external"
[flow.commands]
from = "head"
to = "meter"
load = "external"
"""

TRANSPORT = 'transport = "datagram"\nload = "external"'


def district(*, datagrams: bool = False) -> gridhaul.Scenario:
    """Return 20 meters that share an uplink with losses and a short queue."""
    text = DISTRICT.replace('load = "external"', TRANSPORT) if datagrams else DISTRICT
    return gridhaul.Scenario.from_toml(text)


def reports(count: int = 100) -> list[tuple[float, str, int]]:
    """Return messages of the meters, some of them at the same time: time, meter, bytes."""
    return [(n // 4 / 20, f"meter[{n * 7 % 20}]", 50 + n * 37 % 900) for n in range(count)]


def plain(
    scenario: gridhaul.Scenario, until_s: float
) -> list[tuple[str, float, float, str | None]]:
    """Return the ends of the messages of the plain simulator: meter, sent, ended, reason."""
    session = gridhaul.Session(scenario)
    sent = sorted(reports(), key=lambda report: (report[0], report[1]))
    session.send_many([(meter, "head", size, at_s) for at_s, meter, size in sent])
    meters = [meter for _, meter, _ in sent]
    ended = session.advance_to(until_s)
    return sorted((meters[end.id], end.sent_s, end.at_s, end.lost) for end in ended)
