"""
All states of a small instance: three segments, window two, buffer one, and no time.

Without time, enabled transitions may fire in any order. The exploration therefore covers all schedules, including those
that a clock would exclude. Losses are nondeterministic choices: a budget limits the number of lost segments and
acknowledgements.

The timer waits until nothing is in transit, as a timer longer than any round trip does. A second budget limits how
often the timer may fire too early.
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

IN_TRANSIT = ("segments", "arrive", "after router", "acks", "acks returned")
"""Places whose tokens are in transit. The segments in R_buffer are in transit as well."""


@dataclass(frozen=True)
class Bounds:
    """The size of an instance."""

    segments: int = 3
    window: int = 2
    fifo: int = 1
    losses: int = 1
    early_timeouts: int = 0


@dataclass
class Findings:
    """Results of the exploration. `faults` is empty if all properties hold."""

    states: int = 0
    edges: int = 0
    final: int = 0
    dropped: int = 0
    """Edges in which the full buffer drops a segment."""
    retransmitted: int = 0
    """Edges in which a segment is retransmitted."""
    faults: list[str] = field(default_factory=list)


class Empty(ArcAnnotation):
    """
    An input arc that requires its place to be empty. (The `Inhibitor` of SNAKES 0.9.33 never enables a transition with
    variables of its own.)
    """

    input_allowed = True

    def __init__(self) -> None:
        """Needs nothing."""

    def copy(self) -> Empty:
        """A copy."""
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
        """The one binding without variables, if the place is empty."""
        if len(values) > 0:
            raise ModeError("not empty")
        return [Substitution()]


def bounded(parameters: Parameters, protocol: str, bounds: Bounds) -> Net:
    """The net without time, with nondeterministic choices instead of random numbers."""
    times = {name: 0 for name in ("channel.before", "channel.after", "channel.reverse", "channel.service")}
    times |= {name: 0 for name in ("sender.rto_initial", "sender.rto_min", "sender.rto_max")}
    parameters = parameters.replaced(
        {
            **times,
            "channel.error": 0.0,
            "channel.ack_error": 0.0,
            "channel.fifo": bounds.fifo,
            "sender.receive_window": bounds.window,
            "sender.initial_window": bounds.window,
            # A window of two causes one duplicate acknowledgement at most.
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
    # Counting lost segments would distinguish states with the same future.
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
    for place in IN_TRANSIT:
        petri.add_input(place, "Timeout", Empty())
    petri.add_input("R_buffer", "Timeout", Test(Value(Stamped(0, ()))))
    return net


def explore(net: Net, bounds: Bounds) -> Findings:
    """Builds the state graph and checks every state and every edge."""
    graph = StateGraph(net.petri)
    graph.build()
    findings = Findings(states=len(graph))
    into: dict[int, list[int]] = {}
    final: list[int] = []
    for state in range(len(graph)):
        marking = graph[state]
        findings.faults.extend(f"state {state}: {fault}" for fault in _faults(marking, bounds))
        successors = 0
        for target, move, _ in graph.successors(state):
            successors += 1
            into.setdefault(target, []).append(state)
            findings.faults.extend(_lost_in_transit(marking, graph[target], move.name, bounds))
            findings.dropped += move.name == "Drop tail" and _queue(marking) == bounds.fifo
            findings.retransmitted += move.name == "Retransmit"
        findings.edges += successors
        if _is_final(marking, bounds):
            final.append(state)
            if successors > 0:
                findings.faults.append(f"state {state}: final, but a transition is enabled")
        elif successors == 0:
            findings.faults.append(f"state {state}: no transition is enabled, but not all data is delivered: {marking}")
    findings.final = len(final)
    reached = set(final)
    todo = deque(final)
    while todo:
        for state in into.get(todo.popleft(), []):
            if state not in reached:
                reached.add(state)
                todo.append(state)
    stuck = len(graph) - len(reached)
    if stuck:
        findings.faults.append(f"from {stuck} states no final state can be reached")
    return findings


def _values(marking: Marking, place: str) -> list[Any]:
    """Colours in a place. SNAKES leaves empty places out of a marking."""
    return [token.value for token in marking(place).items()]


def _faults(marking: Marking, bounds: Bounds) -> Iterator[str]:
    """Violations of the invariants of every state."""
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
    missing = set(range(sender.next)) - held
    if missing:
        yield f"neither sender nor receiver has {missing}"
    if _queue(marking) > bounds.fifo:
        yield "R_buffer holds more than its limit"
    for place in ("sender", "receiver", "timer", "server", "R_buffer"):
        if len(_values(marking, place)) != 1:
            yield f"{place} does not hold one token"


def _lost_in_transit(before: Marking, after: Marking, move: str, bounds: Bounds) -> Iterator[str]:
    """
    Violations of the number of segments and acknowledgements in transit: sending adds one; receiving an
    acknowledgement, a loss within the budget and a drop at the full buffer remove one; all other transitions keep it.
    """
    change = {"Send new": 1, "Retransmit": 1, "Receive ack": -1, "Lose ack": -1, "Lose packet": -1}.get(move, 0)
    if move == "Drop tail" and _queue(before) == bounds.fifo:
        change = -1
    counted = _in_transit(after) - _in_transit(before)
    if counted != change:
        yield f"{move}: {counted} more in transit, expected {change}"


def _queue(marking: Marking) -> int:
    return len(_values(marking, "R_buffer")[0])


def _in_transit(marking: Marking) -> int:
    return sum(len(_values(marking, place)) for place in IN_TRANSIT) + _queue(marking)


def _is_final(marking: Marking, bounds: Bounds) -> bool:
    """Whether everything is delivered and acknowledged, nothing is in transit, and the timer is off."""
    (sender,), (receiver,) = _values(marking, "sender"), _values(marking, "receiver")
    (timer,) = marking("timer").items()
    quiet = all(not _values(marking, place) for place in IN_TRANSIT) and _values(marking, "R_buffer") == [()]
    done = sender.una == receiver.expected == bounds.segments and not sender.out
    return done and quiet and timer.at == NEVER
