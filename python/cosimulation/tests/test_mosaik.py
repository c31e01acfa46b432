"""The simulator of mosaik, with the real package."""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from typing import Any

import mosaik
import mosaik_api_v3
import pytest
from conftest import district, plain, reports

import gridhaul
import gridhaul.mosaik

RESOLUTION_S = 0.001
UNTIL_S = 20


class Meters(mosaik_api_v3.Simulator):
    """Sends the reports of one meter, as an event-based simulator."""

    def __init__(self) -> None:
        super().__init__(
            {
                "type": "event-based",
                "models": {
                    "Meter": {"public": True, "params": [], "attrs": ["report", "command"]},
                },
            }
        )

    def init(self, sid: str, time_resolution: float = 1.0, *, meter: str = "") -> Any:
        self.plan = [
            (round(at_s / RESOLUTION_S), {"to": "head", "bytes": size, "payload": meter})
            for at_s, name, size in reports()
            if name == meter
        ]
        self.output: list[Any] = []
        self.commands: list[Any] = []
        return self.meta

    def create(self, num: int, model: str) -> list[Any]:
        return [{"eid": "meter", "type": model} for _ in range(num)]

    def step(self, time: int, inputs: Any, max_advance: int) -> int | None:
        for values in inputs.get("meter", {}).get("command", {}).values():
            self.commands += values
        self.output = [message for at, message in self.plan if at == time]
        later = [at for at, _ in self.plan if at > time]
        return min(later) if later else None

    def get_data(self, outputs: Any) -> Any:
        return {"meter": {"report": self.output}} if self.output else {}


class Control(mosaik_api_v3.Simulator):
    """Records what arrives, and answers every tenth report."""

    def __init__(self) -> None:
        super().__init__(
            {
                "type": "event-based",
                "models": {
                    "Control": {
                        "public": True,
                        "params": [],
                        "attrs": ["reports", "lost", "commands"],
                    },
                },
            }
        )

    def init(self, sid: str, time_resolution: float = 1.0, *, found: Any = None) -> Any:
        self.found = found
        return self.meta

    def create(self, num: int, model: str) -> list[Any]:
        return [{"eid": "control", "type": model} for _ in range(num)]

    def step(self, time: int, inputs: Any, max_advance: int) -> int | None:
        self.output = []
        for name, sources in sorted(inputs.get("control", {}).items()):
            for source in sorted(sources):
                for message in sources[source]:
                    self.found.append((time, name, message))
                    if name == "reports" and len(self.found) % 10 == 0:
                        self.output.append({"to": message["sender"], "bytes": 30})
        return None

    def get_data(self, outputs: Any) -> Any:
        return {"control": {"commands": self.output}} if self.output else {}


SIMULATORS = {
    "Network": {"python": "gridhaul.mosaik:Network"},
    "Meters": {"python": f"{__name__}:Meters"},
    "Control": {"python": f"{__name__}:Control"},
}


def simulate(
    scenario: gridhaul.Scenario, *, answers: bool = False, order: int = 0
) -> list[tuple[int, str, Any]]:
    """Return what the control centre gets: step, attribute, message."""
    found: list[tuple[int, str, Any]] = []
    starts = ["Network", "Control", *(f"meter[{n}]" for n in range(20))]
    if order:
        random.Random(order).shuffle(starts)
    with mosaik.World(SIMULATORS, time_resolution=RESOLUTION_S, skip_greetings=True) as world:
        groups: dict[str, Any] = {}

        def start(name: str) -> None:
            if name == "Network":
                groups[name] = world.start("Network", sim_id="network", scenario=scenario)
            elif name == "Control":
                groups[name] = world.start("Control", sim_id="control", found=found)
            else:
                groups[name] = world.start("Meters", sim_id=f"sim-{name}", meter=name)
                world.set_initial_event(f"sim-{name}")

        # Network and control centre exchange messages at one time of mosaik, which takes a group.
        loop = [name for name in starts if not name.startswith("meter")]
        for name in starts:
            if name == loop[0]:
                with world.group():
                    for member in loop:
                        start(member)
            elif name not in loop:
                start(name)
        network = groups["Network"]
        head = network.Node(name="head")
        control = groups["Control"].Control()
        for name in starts:
            if name.startswith("meter"):
                node = network.Node(name=name)
                world.connect(groups[name].Meter(), node, ("report", "send"))
                world.connect(node, control, "lost")
        world.connect(head, control, ("received", "reports"))
        if answers:
            world.connect(control, head, ("commands", "send"), weak=True)
        world.run(until=round(UNTIL_S / RESOLUTION_S), print_progress=False)
    return found


@pytest.mark.parametrize("datagrams", [False, True])
def test_the_delays_are_those_of_the_plain_simulator(datagrams: bool) -> None:
    scenario = district(datagrams=datagrams)
    found = simulate(scenario)
    ends = sorted(
        (message["payload"], message["sent_s"], message["at_s"], message["lost"])
        for _, _, message in found
    )
    assert ends == plain(scenario, UNTIL_S)
    assert len(ends) == 100
    assert any(lost for *_, lost in ends) == datagrams
    for step, name, message in found:
        # mosaik delivers a message at the first step of its clock that is not before its arrival.
        assert 0 <= step * RESOLUTION_S - message["at_s"] < RESOLUTION_S + 1e-9
        assert name == ("reports" if message["lost"] is None else "lost")


def test_twenty_orders_of_start_give_the_same_bytes() -> None:
    first = json.dumps(simulate(district(), answers=True))
    assert len(json.loads(first)) == 100
    for order in range(1, 20):
        assert json.dumps(simulate(district(), answers=True, order=order)) == first


class Grid(mosaik_api_v3.Simulator):
    """De-energises a feeder from 0.4 s to 0.8 s, and cuts a link at 1 s."""

    def __init__(self) -> None:
        models = {"Feeder": {"public": True, "params": [], "attrs": ["energised", "closed"]}}
        super().__init__({"type": "time-based", "models": models})

    def create(self, num: int, model: str) -> list[Any]:
        return [{"eid": "feeder", "type": model} for _ in range(num)]

    def step(self, time: int, inputs: Any, max_advance: int) -> int | None:
        self.values = {"energised": not 400 <= time < 800, "closed": time < 1_000}
        return time + 100

    def get_data(self, outputs: Any) -> Any:
        return {"feeder": self.values}


def test_an_outage_of_a_feeder_takes_its_nodes_down() -> None:
    found: list[tuple[int, str, Any]] = []
    simulators = {**SIMULATORS, "Grid": {"python": f"{__name__}:Grid"}}
    with mosaik.World(simulators, time_resolution=RESOLUTION_S, skip_greetings=True) as world:
        network = world.start("Network", scenario=district(datagrams=True))
        control = world.start("Control", found=found).Control()
        feeder = world.start("Grid").Feeder()
        element = network.Element(nodes=["concentrator"])
        world.connect(feeder, element, "energised")
        world.connect(feeder, network.Link(name="uplink"), ("closed", "up"))
        meters = network.Node.create(20, name="meter")
        world.connect(network.Node(name="head"), control, ("received", "reports"))
        for number, node in enumerate(meters):
            started = world.start("Meters", sim_id=f"sim-{number}", meter=f"meter[{number}]")
            world.set_initial_event(f"sim-{number}")
            world.connect(started.Meter(), node, ("report", "send"))
            world.connect(node, control, "lost")
        world.run(until=10_000, print_progress=False)
    outages = [message["sent_s"] for _, _, message in found if message["lost"] == "outage"]
    arrived = [message["sent_s"] for _, _, message in found if message["lost"] is None]
    assert min(outages) >= 0.2
    assert {sent for sent in outages if sent < 0.8} >= {0.4, 0.5, 0.6, 0.7}
    assert not any(0.4 <= sent < 0.75 for sent in arrived)
    assert any(0.8 <= sent < 0.9 for sent in arrived)
    assert max(arrived) < 1 <= max(outages)
    assert len(found) == 100


@pytest.mark.parametrize(
    ("create", "text"),
    [
        (lambda network: network.Node(name="metre"), "there is no node `metre`"),
        (lambda network: network.Node(), "a name is missing"),
        (lambda network: network.Node(name="meter"), r"help: create it as Node\(name=\"meter\[0\]"),
        (lambda network: network.Element(nodes=["metre"]), "there is no node `metre`"),
        (lambda network: network.Element(), "expected a list of nodes"),
        (lambda network: network.Link(name="x"), "there is no link `x`"),
    ],
)
def test_wrong_entities_are_refused(create: Any, text: str) -> None:
    with mosaik.World(SIMULATORS, skip_greetings=True) as world:
        network = world.start("Network", scenario=district())
        with pytest.raises(gridhaul.GridhaulError, match=text):
            create(network)


def test_head_0_is_the_node_head() -> None:
    network = gridhaul.mosaik.Network()
    network.init("network", 1.0, scenario=district())
    network.create(1, "Node", name="meter[0]")
    assert [entity["eid"] for entity in network.create(1, "Node", name="head[0]")] == ["head"]
    message = {"to": "head[0]", "bytes": 9}
    following = network.step(0, {"meter[0]": {"send": {"sim.meter": message}}}, 10)
    assert following is not None
    network.step(following, {}, 10)
    outputs = network.get_data({"head": ["received"]})
    assert [received["to"] for received in outputs["head"]["received"]] == ["head[0]"]


def test_a_wrong_message_is_refused() -> None:
    network = gridhaul.mosaik.Network()
    network.init("network", 1.0, scenario=district())
    network.create(1, "Node", name="meter[0]")
    for message, text in [
        ("report", "expected a message, found 'report'"),
        ({"to": "head"}, "expected a message"),
        ({"to": "hea", "bytes": 9}, "there is no node `hea`"),
        ({"to": "head", "bytes": 0}, "expected 1 or more, found 0"),
    ]:
        with pytest.raises(gridhaul.GridhaulError, match=text):
            network.step(0, {"meter[0]": {"send": {"sim.meter": message}}}, 10)


ATTACKS = """
[attack.forge]
start = "1 s"
length = "1 s"
action.alter.link = "street"
[attack.silence]
start = "500 ms"
length = "200 ms"
action.drop.link = "street.forward"
"""


def test_attacked_messages_are_marked_or_lost() -> None:
    scenario = gridhaul.Scenario.from_toml(district(datagrams=True).to_toml() + ATTACKS)
    messages = [message for _, _, message in simulate(scenario)]
    altered = {message["sent_s"] for message in messages if message["altered"]}
    dropped = {message["sent_s"] for message in messages if message["lost"] == "attack"}
    # A report of up to 950 B needs at most 123 ms on its street, after which the attacker acts.
    assert altered
    assert all(0.85 <= sent_s < 2 for sent_s in altered)
    assert dropped
    assert all(0.35 <= sent_s < 0.7 for sent_s in dropped)


class Sleeper(mosaik_api_v3.Simulator):
    """Hangs in its step of time 20, or answers each step."""

    def __init__(self) -> None:
        models = {"Sleeper": {"public": True, "params": [], "attrs": ["report"]}}
        super().__init__({"type": "time-based", "models": models})

    def init(self, sid: str, time_resolution: float = 1.0, *, hangs_s: float = 60) -> Any:
        self.hangs_s = hangs_s
        return self.meta

    def create(self, num: int, model: str) -> list[Any]:
        return [{"eid": "sleeper", "type": model} for _ in range(num)]

    def step(self, time_: int, inputs: Any, max_advance: int) -> int | None:
        if time_ == 20:
            time.sleep(self.hangs_s)
        return time_ + 10

    def get_data(self, outputs: Any) -> Any:
        return {}


PROCESS = {"cmd": f"{sys.executable} {__file__} %(addr)s"}
HERE = {"python": f"{__name__}:Sleeper"}


@pytest.mark.parametrize("starter", [HERE, PROCESS], ids=["same process", "own process"])
def test_a_simulator_that_hangs_is_named_and_ended(
    starter: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    simulators = {**SIMULATORS, "Sleeper": starter}
    config = {"start_timeout": 60, "stop_timeout": 1}
    begun = time.monotonic()
    with mosaik.World(
        simulators, mosaik_config=config, time_resolution=RESOLUTION_S, skip_greetings=True
    ) as world:
        network = world.start("Network", sim_id="network", scenario=district())
        head = network.Node(name="head")
        sleeper = world.start("Sleeper", sim_id="sleeper").Sleeper()
        control = world.start("Control", sim_id="control", found=[]).Control()
        world.connect(sleeper, head, ("report", "send"))
        world.connect(head, control, ("received", "reports"))
        with pytest.raises(gridhaul.mosaik.NoProgressError) as error:
            gridhaul.mosaik.run_world(
                world, 100, timeout_s=5, report_after_s=0.5, print_progress=False
            )
    assert time.monotonic() - begun < 40
    reported = capsys.readouterr().err
    assert "the co-simulation has made no progress for 0.5 s" in reported
    text = str(error.value)
    assert "no progress for 5 s" in text
    rows = {line.split()[0]: line for line in text.splitlines() if line}
    assert "nothing: it computes the step of 20" in rows["sleeper"]
    assert rows["network"].endswith("sleeper to go on")
    assert "network" in rows["control"] or "sleeper" in rows["control"]


def test_a_simulator_that_hangs_is_ended_where_interrupts_are_ignored() -> None:
    """As in a command that a shell has started in the background."""
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        simulators = {**SIMULATORS, "Sleeper": HERE}
        with mosaik.World(simulators, time_resolution=RESOLUTION_S, skip_greetings=True) as world:
            sleeper = world.start("Sleeper").Sleeper()
            network = world.start("Network", scenario=district())
            world.connect(sleeper, network.Node(name="head"), ("report", "send"))
            with pytest.raises(gridhaul.mosaik.NoProgressError):
                gridhaul.mosaik.run_world(world, 100, timeout_s=1, print_progress=False)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, previous)


def test_a_co_simulation_with_progress_is_not_reported(capsys: pytest.CaptureFixture[str]) -> None:
    simulators = {**SIMULATORS, "Sleeper": HERE}
    with mosaik.World(simulators, time_resolution=RESOLUTION_S, skip_greetings=True) as world:
        network = world.start("Network", scenario=district())
        sleeper = world.start("Sleeper", hangs_s=0.0).Sleeper()
        world.connect(sleeper, network.Node(name="head"), ("report", "send"))
        gridhaul.mosaik.run_world(world, 100, timeout_s=30, print_progress=False)
    assert "no progress" not in capsys.readouterr().err


def test_a_thousand_entities_start() -> None:
    scenario = district().set("node.meter.count", 1000)
    found: list[tuple[int, str, Any]] = []
    begun = time.monotonic()
    with mosaik.World(SIMULATORS, time_resolution=RESOLUTION_S, skip_greetings=True) as world:
        network = world.start("Network", scenario=scenario)
        control = world.start("Control", found=found).Control()
        meters = network.Node.create(1000, name="meter")
        sender = world.start("Meters", sim_id="sim", meter="meter[7]").Meter()
        world.set_initial_event("sim")
        world.connect(sender, meters[999], ("report", "send"))
        for node in meters:
            world.connect(node, control, "lost")
        world.connect(network.Node(name="head"), control, ("received", "reports"))
        world.run(until=5_000, print_progress=False)
    assert len(found) == sum(name == "meter[7]" for _, name, _ in reports())
    print(f"1,000 entities: {time.monotonic() - begun:.1f} s")


if __name__ == "__main__":
    mosaik_api_v3.start_simulation(Sleeper())
