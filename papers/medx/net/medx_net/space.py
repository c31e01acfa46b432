"""
All states of a small instance: three segments, window two, buffer one, and no time.

Without time everything that is enabled may happen in any order, so all schedules are looked at, and those that a
clock would rule out as well. Chance is a choice: a budget says how many segments or acknowledgements may be lost.

The timer waits until nothing is on its way, as a timer does that is longer than any round trip; a second budget says
how often it may fire too early all the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from snakes.data import MultiSet
from snakes.nets import (
    ArcAnnotation,
    Expression,
    Marking,
    ModeError,
    Place,
    StateGraph,
    Substitution,
    Test,
    Value,
    Variable,
)

from .net import Net
from .parameters import Parameters
from .timed import NEVER, Move, Stamped

WAYS = ("segments", "arrive", "behind router", "acks", "acks returned")
"""Places whose tokens are on their way; so are the segments in R_buffer."""


@dataclass(frozen=True)
class Bounds:
    """The size of an instance."""

    segments: int = 3
    window: int = 2
    fifo: int = 1
    losses: int = 1
    early_timeouts: int = 0


@dataclass
class Verdict:
    """What the state space shows. `faults` is empty if everything holds."""

    states: int = 0
    edges: int = 0
    final: int = 0
    dropped: int = 0
    """Edges in which the full buffer drops a segment."""
    repeated: int = 0
    """Edges in which a segment is sent again."""
    faults: list[str] = field(default_factory=list)


class Empty(ArcAnnotation):
    """
    An input arc that wants its place to be empty. (The `Inhibitor` of SNAKES 0.9.33 enables no transition that
    has variables of its own.)
    """

    input_allowed = True

    def __init__(self) -> None:
        """Needs nothing."""

    def copy(self) -> Empty:
        """Another of the same."""
        return Empty()

    def substitute(self, binding: Substitution) -> None:
        """Nothing to rename."""

    def vars(self) -> list[str]:
        """No variables."""
        return []

    def bind(self, binding: Substitution) -> tuple[()]:
        """Takes nothing."""
        return ()

    def flow(self, binding: Substitution) -> MultiSet:
        """Takes nothing."""
        return MultiSet()

    def check(self, binding: Substitution, tokens: MultiSet) -> bool:
        """Whether the place is empty."""
        return len(tokens) == 0

    def modes(self, values: Any) -> list[Substitution]:
        """One way to take nothing, if the place is empty."""
        if len(values) > 0:
            raise ModeError("not empty")
        return [Substitution()]


def bounded(parameters: Parameters, protocol: str, bounds: Bounds) -> Net:
    """The net without time and with choices in place of chance."""
    times = {name: 0 for name in ("channel.before", "channel.behind", "channel.back", "channel.service")}
    times |= {name: 0 for name in ("sender.rto_initial", "sender.rto_min", "sender.rto_max")}
    parameters = parameters.replaced(
        {
            **times,
            "channel.error": 0.0,
            "channel.ack_error": 0.0,
            "channel.fifo": bounds.fifo,
            "sender.receive_window": bounds.window,
            "sender.initial_window": bounds.window,
            # A window of two brings one duplicate at most.
            "sender.dupthresh": 1,
            "medx.list": 2,
        }
    )
    net = Net(parameters, protocol, seed=0, timed=False)
    petri = net.petri
    petri.place("clock").empty()
    petri.place("to send").reset([Stamped(0, bounds.segments)])
    petri.add_place(Place("losses left", [Stamped(0, bounds.losses)]))
    petri.add_place(Place("early timeouts left", [Stamped(0, bounds.early_timeouts)]))
    # Accounts of what was lost would tell apart states that have the same future.
    petri.remove_output("lost in queue", "Drop tail")
    petri.remove_output("lost in error", "Transmit packet")
    less = "Stamped(0, k.value - 1)"
    net.move("Lose packet", {"segments": "p", "losses left": "k"}, {"losses left": less}, guard="k.value > 0")
    net.move("Lose ack", {"acks": "a", "losses left": "k"}, {"losses left": less}, guard="k.value > 0")
    timeout = petri.transition("Timeout")
    early = Move("Timeout too early", timeout.guard & Expression("k.value > 0"))
    petri.add_transition(early)
    for place, label in timeout.input():
        petri.add_input(place.name, early.name, label.copy())
    for place, label in timeout.output():
        petri.add_output(place.name, early.name, label.copy())
    petri.add_input("early timeouts left", early.name, Variable("k"))
    petri.add_output("early timeouts left", early.name, Expression(less))
    for way in WAYS:
        petri.add_input(way, "Timeout", Empty())
    petri.add_input("R_buffer", "Timeout", Test(Value(Stamped(0, ()))))
    return net


def explore(net: Net, bounds: Bounds) -> Verdict:
    """Builds the state graph and checks every state and every edge."""
    graph = StateGraph(net.petri)
    graph.build()
    verdict = Verdict(states=len(graph))
    into: dict[int, list[int]] = {}
    final: list[int] = []
    for state in range(len(graph)):
        marking = graph[state]
        verdict.faults.extend(f"state {state}: {fault}" for fault in _faults(marking, bounds))
        successors = 0
        for target, move, _ in graph.successors(state):
            successors += 1
            into.setdefault(target, []).append(state)
            verdict.faults.extend(_lost_on_the_way(marking, graph[target], move.name, bounds))
            verdict.dropped += move.name == "Drop tail" and _queue(marking) == bounds.fifo
            verdict.repeated += move.name == "Send again"
        verdict.edges += successors
        if _is_final(marking, bounds):
            final.append(state)
            if successors > 0:
                verdict.faults.append(f"state {state}: final, and yet something may happen")
        elif successors == 0:
            verdict.faults.append(f"state {state}: nothing can happen, but not all is delivered: {marking}")
    verdict.final = len(final)
    reached = set(final)
    todo = deque(final)
    while todo:
        for state in into.get(todo.popleft(), []):
            if state not in reached:
                reached.add(state)
                todo.append(state)
    stuck = len(graph) - len(reached)
    if stuck:
        verdict.faults.append(f"from {stuck} states the end cannot be reached")
    return verdict


def _values(marking: Marking, place: str) -> list[Any]:
    """Colours in a place. SNAKES leaves empty places out of a marking."""
    return [token.value for token in marking(place).items()]


def _faults(marking: Marking, bounds: Bounds) -> Iterator[str]:
    """What must hold in every state."""
    (sender,), (receiver,) = _values(marking, "sender"), _values(marking, "receiver")
    delivered = sorted(_values(marking, "delivered"))
    if delivered != list(range(receiver.expected)):
        yield f"delivered to the application: {delivered}, expected 0 to {receiver.expected - 1}, each once"
    if not sender.una <= receiver.expected <= sender.next:
        yield f"acknowledged {sender.una}, expected {receiver.expected}, sent {sender.next}"
    (waiting,) = _values(marking, "to send")
    if waiting + sender.next != bounds.segments:
        yield f"{waiting} to send and {sender.next} sent are not {bounds.segments}"
    held = {*delivered, *receiver.held, *(out.number for out in sender.out)}
    gone = set(range(sender.next)) - held
    if gone:
        yield f"neither sender nor receiver has {gone}"
    if _queue(marking) > bounds.fifo:
        yield "R_buffer holds more than its limit"
    for place in ("sender", "receiver", "timer", "server", "R_buffer"):
        if len(_values(marking, place)) != 1:
            yield f"{place} does not hold one token"


def _lost_on_the_way(before: Marking, after: Marking, move: str, bounds: Bounds) -> Iterator[str]:
    """
    Segments and acknowledgements on their way: one more by sending, one less by taking an acknowledgement in, by
    a loss that the budget allows or at a full buffer, and otherwise as many as before.
    """
    change = {"Send new": 1, "Send again": 1, "Receive ack": -1, "Lose ack": -1, "Lose packet": -1}.get(move, 0)
    if move == "Drop tail" and _queue(before) == bounds.fifo:
        change = -1
    counted = _on_the_way(after) - _on_the_way(before)
    if counted != change:
        yield f"{move}: {counted} more on the way, expected {change}"


def _queue(marking: Marking) -> int:
    return len(_values(marking, "R_buffer")[0])


def _on_the_way(marking: Marking) -> int:
    return sum(len(_values(marking, place)) for place in WAYS) + _queue(marking)


def _is_final(marking: Marking, bounds: Bounds) -> bool:
    """Everything delivered and acknowledged, nothing on its way, and the timer off."""
    (sender,), (receiver,) = _values(marking, "sender"), _values(marking, "receiver")
    (timer,) = marking("timer").items()
    quiet = all(not _values(marking, way) for way in WAYS) and _values(marking, "R_buffer") == [()]
    done = sender.una == receiver.expected == bounds.segments and not sender.out
    return done and quiet and timer.at == NEVER
