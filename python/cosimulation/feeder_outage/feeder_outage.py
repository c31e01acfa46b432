"""An outage of a feeder takes its own meters down, and the reaction to its return comes late.

Two low-voltage feeders have six meters each, which report their voltage to a control centre. The
control centre raises the tap of the transformer while a reported voltage is below its limit.
Feeder 2 fails, and returns with twice its load (cold load pickup). Its meters and its concentrator
had no power: they have to start again, and their TCP connections to recover. With ideal
communication, the control centre acts at once.

``python feeder_outage.py`` prints the results, and writes ``feeder_outage.svg``.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any, NamedTuple

import mosaik
import mosaik_api_v3
import pandapower

import gridhaul

FOLDER = Path(__file__).parent
RESOLUTION_S = 0.001
STEP_S = 4
END_S = 300
FEEDERS = 2
METERS = 6
OUTAGE_S = (60, 160)
RESTART_S = 20
LIMIT_PU = 0.94
LOAD_MW = 0.0085
REPORT_BYTES = 120


class Outcome(NamedTuple):
    """The results of a co-simulation.

    Attributes:
        voltages: Lowest voltage of feeder 2 by time; None while it has no voltage.
        taps: Time and position of each change of the tap.
        delays_s: Delays of the reports of feeder 2 that were sent after the outage.

    """

    voltages: list[tuple[float, float | None]]
    taps: list[tuple[float, int]]
    delays_s: list[float]

    @property
    def reaction_s(self) -> float:
        """Time from the return of the feeder to the first change of the tap."""
        return min(at_s for at_s, _ in self.taps if at_s >= OUTAGE_S[1]) - OUTAGE_S[1]


class Grid(mosaik_api_v3.Simulator):
    """Two feeders: a power flow each four seconds, and the reports of the meters."""

    def __init__(self) -> None:
        models = {
            "Meter": {"public": True, "params": ["number"], "attrs": ["report"]},
            "Feeder": {"public": True, "params": ["number"], "attrs": ["energised"]},
            "Tap": {"public": True, "params": [], "attrs": ["command"]},
        }
        models["Meter"]["non-persistent"] = ["report"]
        models["Feeder"]["persistent"] = ["energised"]
        models["Tap"]["trigger"] = ["command"]
        super().__init__({"type": "hybrid", "models": models})

    def init(self, sid: str, time_resolution: float = 1.0, *, outcome: Outcome) -> Any:
        self.outcome = outcome
        self.net, self.lines, self.buses = network()
        self.voltages: list[float] = []
        self.next_step = 0
        self.is_new = False
        self.is_restarting = False
        return self.meta

    def create(self, num: int, model: str, number: int = 0) -> list[Any]:
        return [{"eid": f"{model}-{number}", "type": model} for _ in range(num)]

    def step(self, time: int, inputs: Any, max_advance: int) -> int:
        now_s = time * RESOLUTION_S
        for commands in inputs.get("Tap-0", {}).get("command", {}).values():
            for command in commands:
                self.net.trafo.loc[0, "tap_pos"] = command["payload"]
                self.outcome.taps.append((now_s, command["payload"]))
        self.is_new = time >= self.next_step
        if self.is_new:
            self.next_step = time + round(STEP_S / RESOLUTION_S)
            self.solve(now_s)
        return self.next_step

    def solve(self, now_s: float) -> None:
        is_out = OUTAGE_S[0] <= now_s < OUTAGE_S[1]
        # Modems and concentrator start, and register with each other.
        self.is_restarting = OUTAGE_S[0] <= now_s < OUTAGE_S[1] + RESTART_S
        self.net.line.loc[self.lines[1][0], "in_service"] = not is_out
        # Heaters that have cooled down all start at once, and half of them end within two minutes.
        since_s = now_s - OUTAGE_S[1]
        pickup = 1 + math.exp(-since_s / 173) if since_s >= 0 else 1.0
        second = self.net.load.bus.isin(self.buses[1])
        self.net.load["p_mw"] = [LOAD_MW * (pickup if own else 1) for own in second]
        pandapower.runpp(self.net, numba=False)
        buses = [bus for feeder in self.buses for bus in feeder]
        self.voltages = [float(self.net.res_bus.vm_pu[bus]) for bus in buses]
        own = self.voltages[METERS:]
        self.outcome.voltages.append((now_s, None if is_out else min(own)))

    def get_data(self, outputs: Any) -> Any:
        data: dict[str, dict[str, Any]] = {}
        for entity in outputs:
            kind, _, number = entity.partition("-")
            if kind == "Feeder":
                is_off = int(number) == 1 and self.is_restarting
                data[entity] = {"energised": not is_off}
            elif self.is_new and not math.isnan(voltage := self.voltages[int(number)]):
                message = {"to": "head", "bytes": REPORT_BYTES, "payload": voltage}
                data[entity] = {"report": message}
        return data


class Control(mosaik_api_v3.Simulator):
    """Raises the tap by a step while a voltage is low, at most once in ten seconds."""

    def __init__(self) -> None:
        attributes = ["reports", "command"]
        models = {"Control": {"public": True, "params": [], "attrs": attributes}}
        super().__init__({"type": "event-based", "models": models})

    def init(self, sid: str, time_resolution: float = 1.0, *, outcome: Outcome) -> Any:
        self.outcome = outcome
        self.tap, self.changed_s = 0, -math.inf
        self.command: dict[str, Any] | None = None
        return self.meta

    def create(self, num: int, model: str) -> list[Any]:
        return [{"eid": "control", "type": model} for _ in range(num)]

    def step(self, time: int, inputs: Any, max_advance: int) -> None:
        now_s, self.command = time * RESOLUTION_S, None
        for messages in inputs.get("control", {}).get("reports", {}).values():
            for message in messages:
                is_second = int(message["sender"][len("meter[") : -1]) >= METERS
                if is_second and message["sent_s"] >= OUTAGE_S[1]:
                    self.outcome.delays_s.append(message["delay_s"])
                is_low = message["payload"] < LIMIT_PU and message["sent_s"] > self.changed_s
                if is_low and now_s >= self.changed_s + 10 and self.tap > -2:
                    self.tap, self.changed_s = self.tap - 1, now_s
                    self.command = {"to": "tap", "bytes": 60, "payload": self.tap}

    def get_data(self, outputs: Any) -> Any:
        return {"control": {"command": self.command}} if self.command else {}


def network() -> tuple[Any, list[list[int]], list[list[int]]]:
    """Return a transformer with two feeders, their lines, and the buses of their meters."""
    net = pandapower.create_empty_network()
    high = pandapower.create_bus(net, 20.0)
    low = pandapower.create_bus(net, 0.4)
    pandapower.create_ext_grid(net, high, vm_pu=1.0)
    pandapower.create_transformer(net, high, low, "0.4 MVA 20/0.4 kV")
    net.trafo.loc[0, "tap_pos"] = 0
    lines: list[list[int]] = []
    buses: list[list[int]] = []
    for _ in range(FEEDERS):
        previous = low
        lines.append([])
        buses.append([])
        for _ in range(METERS):
            bus = pandapower.create_bus(net, 0.4)
            line = pandapower.create_line(net, previous, bus, 0.1, "NAYY 4x150 SE")
            pandapower.create_load(net, bus, p_mw=LOAD_MW, q_mvar=0.002)
            lines[-1].append(int(line))
            buses[-1].append(int(bus))
            previous = bus
    return net, lines, buses


def simulate(*, ideal: bool) -> Outcome:
    """Simulate the grid with the network of the scenario, or with ideal communication."""
    scenario = gridhaul.Scenario.load(FOLDER / "district.toml")
    if ideal:
        for link in ("line", "radio", "fibre"):
            scenario = scenario.set(f"link.{link}.both", {"rate": "10 Gbit/s", "delay": "0 s"})
    outcome = Outcome([], [], [])
    here = f"{Path(__file__).stem}:"
    simulators: Any = {
        "Grid": {"python": f"{here}Grid"},
        "Control": {"python": f"{here}Control"},
        "Network": {"python": "gridhaul.mosaik:Network"},
    }
    with mosaik.World(simulators, time_resolution=RESOLUTION_S, skip_greetings=True) as world:
        grid = world.start("Grid", outcome=outcome)
        # A report and the command that follows have the same time, which takes a group.
        with world.group():
            control = world.start("Control", outcome=outcome).Control()
            communication = world.start("Network", scenario=scenario)
        head = communication.Node(name="head")
        nodes = communication.Node.create(FEEDERS * METERS, name="meter")
        for number, node in enumerate(nodes):
            world.connect(grid.Meter(number=number), node, ("report", "send"))
        if not ideal:
            # An outage of a feeder is one of its own modems and concentrator.
            for number in range(FEEDERS):
                own = range(number * METERS, (number + 1) * METERS)
                supplied = [f"concentrator[{number}]", *(f"meter[{meter}]" for meter in own)]
                element = communication.Element(nodes=supplied)
                world.connect(grid.Feeder(number=number), element, "energised")
        world.connect(head, control, ("received", "reports"))
        world.connect(control, head, ("command", "send"), weak=True)
        tap = communication.Node(name="tap")
        world.connect(tap, grid.Tap(), ("received", "command"), time_shifted=1)
        world.run(until=round(END_S / RESOLUTION_S), print_progress=False)
    return outcome


def picture(real: Outcome, ideal: Outcome) -> str:
    """Return both voltages by time as SVG."""
    width, height, left, top = 720, 300, 60, 40
    low, high = 0.88, 1.0

    def x(at_s: float) -> float:
        return left + at_s / END_S * (width - left - 20)

    def y(voltage: float) -> float:
        return top + (high - voltage) / (high - low) * (height - top - 50)

    def lines(outcome: Outcome, colour: str, dash: str) -> str:
        segments: list[list[str]] = [[]]
        for at_s, voltage in outcome.voltages:
            if voltage is None:
                segments.append([])
            else:
                segments[-1].append(f"{x(at_s):.1f},{y(voltage):.1f}")
        style = f'fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'
        return "".join(f'<polyline {style} points="{" ".join(one)}"/>' for one in segments if one)

    text = 'font-family="sans-serif" font-size="12"'
    marks = [
        f'<text x="{left - 8}" y="{y(value) + 4:.1f}" text-anchor="end" {text}>{value:.2f}</text>'
        f'<path d="M{left} {y(value):.1f}H{width - 20}" stroke="#ddd"/>'
        for value in (0.88, 0.90, 0.92, 0.94, 0.96, 0.98, 1.0)
    ]
    marks += [
        f'<text x="{x(at_s):.1f}" y="{height - 30}" text-anchor="middle" {text}>{at_s}</text>'
        for at_s in range(0, END_S + 1, 50)
    ]
    limit = (
        f'<path d="M{left} {y(LIMIT_PU):.1f}H{width - 20}" stroke="#b00" stroke-dasharray="2 3"/>'
    )
    start, end = (x(at_s) for at_s in OUTAGE_S)
    outage = (
        f'<rect x="{start:.1f}" y="{top}" width="{end - start:.1f}" height="{height - top - 50}" '
        f'fill="#eee"/><text x="{(start + end) / 2:.1f}" y="{top + 20}" text-anchor="middle" '
        f"{text}>outage of feeder 2</text>"
    )
    title = (
        f"Lowest voltage of feeder 2 in p.u. by time in s: reaction after {ideal.reaction_s:.1f} s "
        f"(ideal communication, dashed) and {real.reaction_s:.1f} s"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}">'
        f'<rect width="{width}" height="{height}" fill="#fff"/>{outage}{"".join(marks)}{limit}'
        f"{lines(ideal, '#777', '6 4')}{lines(real, '#06c', '')}"
        f'<text x="{left}" y="20" {text}>{title}</text></svg>\n'
    )


def main() -> None:
    """Simulate both, print the results, and write the picture."""
    sys.path.insert(0, str(FOLDER))
    real, ideal = simulate(ideal=False), simulate(ideal=True)
    for name, outcome in [("simulated network", real), ("ideal communication", ideal)]:
        print(
            f"{name}: first reaction {outcome.reaction_s:.1f} s after the return of the feeder, "
            f"longest delay of a report {max(outcome.delays_s):.1f} s"
        )
    Path("feeder_outage.svg").write_text(picture(real, ideal))


if __name__ == "__main__":
    main()
