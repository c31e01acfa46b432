"""Simulator of a communication network for `mosaik <https://mosaik.offis.de>`_.

Entities are nodes of a scenario: meters, concentrators, control centres. What a simulator of the
power grid sends to the attribute ``send`` of a node arrives at the attribute ``received`` of
another one when the simulated network delivers it.

Example::

    world = mosaik.World({"Network": {"python": "gridhaul.mosaik:Network"}}, time_resolution=0.001)
    network = world.start("Network", scenario="district.toml")
    meters = network.Node.create(100, name="meter")
    head = network.Node(name="head")
    world.connect(sensor, meters[3], ("report", "send"))
    world.connect(head, controller, ("received", "reports"))

"""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypedDict

from gridhaul._coordination import Watchdog
from gridhaul._errors import GridhaulError, InputError
from gridhaul._scenario import Scenario
from gridhaul._session import Message, Session
from gridhaul._supply import Supply

try:
    import mosaik_api_v3
except ImportError as error:
    raise ImportError(
        "gridhaul.mosaik needs the package mosaik-api-v3\n  help: pip install mosaik"
    ) from error

__all__ = ["Network", "NoProgressError", "Received", "Sent", "run_world"]


class NoProgressError(GridhaulError):
    """No simulator made progress until the timeout; the text names what each one waits for."""


class Sent(TypedDict, total=False):
    """A message for the attribute ``send`` of a node. ``to`` and ``bytes`` are required.

    Attributes:
        to: The node that receives the message, such as ``"head"``.
        bytes: Payload in bytes.
        payload: Content of any kind, which the receiver gets unchanged.

    """

    to: str
    bytes: int
    payload: Any


class Received(TypedDict):
    """A message of the attributes ``received`` (of the receiver) and ``lost`` (of the sender).

    Attributes:
        id: Number of the message.
        sender: The node that sent it.
        to: The node to which it was sent.
        bytes: Payload in bytes.
        payload: Content, as it was sent.
        sent_s: When it was sent, in seconds.
        at_s: When it was delivered or lost; mosaik delivers it at the next step of its clock.
        delay_s: Time from sending to delivery; None if it was lost.
        lost: Why it was lost, such as ``"queue_full"``; None if it was delivered.
        altered: Whether it arrived with altered content; ``payload`` is that of the sender.

    """

    id: int
    sender: str
    to: str
    bytes: int
    payload: Any
    sent_s: float
    at_s: float
    delay_s: float | None
    lost: str | None
    altered: bool


_META = {
    "api_version": "3.0",
    "type": "event-based",
    # Attributes of an event-based simulator are events: a persistent message would be delivered
    # again with each step of its receiver.
    "models": {
        "Node": {"public": True, "params": ["name"], "attrs": ["send", "received", "lost"]},
        "Element": {"public": True, "params": ["nodes"], "attrs": ["energised"]},
        "Link": {"public": True, "params": ["name"], "attrs": ["up"]},
    },
}


class Network(mosaik_api_v3.Simulator):  # type: ignore[misc, unused-ignore]
    """A communication network, as an event-based simulator of mosaik.

    Parameters of ``world.start``: ``scenario`` (path, dict or ``Scenario``; the flows that carry
    messages have ``load = "external"``) and ``replication``.

    Models:
        Node: A node of the scenario, ``Node(name="head")``. ``Node.create(100, name="meter")``
            creates the first 100 members of a group. ``send`` takes a message or a list of
            messages (:class:`Sent`); ``received`` and ``lost`` are lists of :class:`Received`.
        Element: An element of the power grid, with the ``nodes`` that it supplies. While its
            input ``energised`` is false or 0, these nodes do not work.
        Link: A link, ``Link(name="uplink")``, with the input ``up``.

    """

    _session: Session
    _resolution_s: float

    def __init__(self) -> None:
        """Describe the models; mosaik calls this."""
        super().__init__(_META)
        self._supply = Supply({})
        self._entities: dict[str, str] = {}
        self._links: dict[str, str] = {}
        self._sent: dict[int, tuple[str, Sent]] = {}
        # Messages that have ended, and are not handed to mosaik yet.
        self._ended: list[Message] = []
        self._outputs: dict[str, dict[str, list[Received]]] = {}

    def init(
        self,
        sid: str,
        time_resolution: float = 1.0,
        *,
        scenario: Scenario | Mapping[str, Any] | str | os.PathLike[str],
        replication: int = 0,
    ) -> Any:
        """Open the session; mosaik calls this with the parameters of ``world.start``."""
        if isinstance(scenario, Mapping):
            scenario = Scenario.from_dict(scenario)
        self._session = Session(scenario, replication=replication)
        self._resolution_s = time_resolution
        return self.meta

    def create(
        self,
        num: int,
        model: str,
        name: str | None = None,
        nodes: Sequence[str] | None = None,
    ) -> list[Any]:
        """Create entities; mosaik calls this."""
        if model == "Element":
            return [self._create_element(nodes) for _ in range(num)]
        if not name:
            raise InputError(
                f'{model}: a name is missing\n  help: create it as {model}(name="head")'
            )
        entities = [name] if num == 1 else [f"{name}[{member}]" for member in range(num)]
        if model == "Node":
            entities = [self._node(entity) for entity in entities]
        for entity in entities:
            if entity in self._entities:
                raise InputError(f"the entity {entity!r} exists\n  help: use the first one")
            if model == "Node":
                # A name that the scenario does not have is an error here, and not at some step.
                self._session.set_node(entity, up=True)
            else:
                self._session.set_link(entity)
            self._entities[entity] = model
        return [{"eid": entity, "type": model} for entity in entities]

    def step(self, time: int, inputs: Any, max_advance: int) -> int | None:
        """Send the messages of a time; mosaik calls this."""
        now_s = self._seconds(time)
        # Messages of now precede events of now, as if they had been sent in advance.
        before_s = now_s - 1e-9
        if self._session.now_s < before_s:
            self._ended += self._session.advance_to(before_s)
        self._change(inputs)
        for source, message in _messages(inputs):
            number = self._send(source, message, now_s)
            self._sent[number] = (source, message)
        self._ended += self._session.advance_to(now_s)
        due = self._take_due(time)
        # Nothing is sent before the end of `max_advance`, unless a receiver answers now: the next
        # step is that of the first report.
        last = max(time, max_advance)
        while not due and not self._ended and self._session.in_flight > 0:
            if not (reports := self._session.advance_to_report(self._seconds(last))):
                break
            self._ended += reports
            due = self._take_due(time)
        self._outputs = self._received(due)
        if self._ended:
            return self._ticks(self._ended[0].at_s)
        if self._session.in_flight == 0:
            return None
        return time + 1 if due else last + 1

    def get_data(self, outputs: Mapping[str, Sequence[str]]) -> Any:
        """Return the messages that ended at the time of the step; mosaik calls this."""
        found = {
            entity: {name: values[name] for name in names if name in values}
            for entity, names in outputs.items()
            if (values := self._outputs.get(entity))
        }
        return {entity: values for entity, values in found.items() if values}

    def finalize(self) -> None:
        """Close the session; mosaik calls this."""
        if hasattr(self, "_session"):
            self._session.close()

    def _take_due(self, time: int) -> list[Message]:
        """Remove and return the messages that have ended by a step of the clock of mosaik."""
        due = [message for message in self._ended if self._ticks(message.at_s) <= time]
        self._ended = self._ended[len(due) :]
        return due

    def _node(self, name: str) -> str:
        """Return the only name of a node, which is that of its entity."""
        names = self._session._node_names()
        node = names.canonical(name)
        if (size := names.size(node)) > 1:
            raise InputError(
                f"`{node}` is a group of {size}, and an entity is one node\n"
                f'  help: create it as Node(name="{node}[0]"), or all members by '
                f'Node.create({size}, name="{node}")'
            )
        return node

    def _create_element(self, nodes: Sequence[str] | None) -> dict[str, str]:
        name = f"element-{len(self._entities)}"
        self._supply.add(name, nodes or ())
        for node in self._supply.nodes(name):
            self._session.set_node(node, up=True)
        self._entities[name] = "Element"
        return {"eid": name, "type": "Element"}

    def _change(self, inputs: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
        for entity in sorted(inputs):
            for name, values in inputs[entity].items():
                if name == "energised":
                    self._supply.set(self._session, entity, energised=any(values.values()))
                elif name == "up":
                    self._session.set_link(entity, up=all(values.values()))

    def _send(self, source: str, message: Sent, now_s: float) -> int:
        if not isinstance(message, Mapping) or not {"to", "bytes"} <= message.keys():
            raise InputError(
                f"{source}: expected a message, found {message!r:.60}\n"
                '  help: send {"to": "head", "bytes": 200, "payload": ...}'
            )
        return self._session.send(source, message["to"], message["bytes"], now_s)

    def _received(self, ended: Sequence[Message]) -> dict[str, dict[str, list[Received]]]:
        outputs: dict[str, dict[str, list[Received]]] = {}
        canonical = self._session._node_names().canonical
        for end in ended:
            source, message = self._sent.pop(end.id)
            received: Received = {
                "id": end.id,
                "sender": source,
                "to": message["to"],
                "bytes": message["bytes"],
                "payload": message.get("payload"),
                "sent_s": end.sent_s,
                "at_s": end.at_s,
                "delay_s": end.delay_s,
                "lost": end.lost,
                "altered": end.altered,
            }
            receiver = canonical(message["to"])
            entity, name = (receiver, "received") if end.delivered else (source, "lost")
            outputs.setdefault(entity, {}).setdefault(name, []).append(received)
        return outputs

    def _seconds(self, ticks: int) -> float:
        # Whole nanoseconds, so that a resolution such as 0.001 gives exact times.
        return round(ticks * self._resolution_s * 1e9) / 1e9

    def _ticks(self, seconds: float) -> int:
        """Return the first step of the clock of mosaik that is not before a time."""
        ticks = max(0, math.floor(seconds / self._resolution_s) - 1)
        while self._seconds(ticks) < seconds:
            ticks += 1
        return ticks


def run_world(
    world: Any,
    until: int,
    *,
    timeout_s: float | None = None,
    report_after_s: float = 10.0,
    **arguments: Any,
) -> None:
    """Run a co-simulation as ``world.run`` does, and report one without progress.

    Args:
        world: A ``mosaik.World``.
        until: End of the co-simulation, in steps of the clock of mosaik.
        timeout_s: End with an error if no simulator makes progress for this real time.
        report_after_s: Print what each simulator waits for after this real time without progress,
            and again each time it has doubled.
        arguments: Further arguments of ``world.run``, such as ``print_progress``.

    Raises:
        NoProgressError: No progress until the timeout. A simulator that hangs in this process is
            interrupted as by Ctrl-C, if this function was called in the main thread; if it does
            not react, the process ends with status 1.

    """
    watchdog = Watchdog(world, until, report_after_s, timeout_s)
    watchdog.start()
    try:
        world.run(until, **arguments)
    except (asyncio.CancelledError, KeyboardInterrupt):
        if watchdog.error is None:
            raise
    finally:
        watchdog.stop()
    if watchdog.error is not None:
        raise NoProgressError(
            f"{watchdog.error}\n  help: end the simulator that does not answer"
        ) from None


def _messages(
    inputs: Mapping[str, Mapping[str, Mapping[str, Any]]],
) -> Iterator[tuple[str, Sent]]:
    """Return senders and messages in an order that does not depend on that of the simulators."""
    for entity in sorted(inputs):
        sources = inputs[entity].get("send", {})
        for source in sorted(sources):
            values = sources[source]
            for message in values if isinstance(values, list) else [values]:
                yield entity, message
