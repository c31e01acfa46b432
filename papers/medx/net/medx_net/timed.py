"""
Time for SNAKES: tokens with time stamps, and a scheduler with the rules of timed coloured Petri nets.

SNAKES has no concept of time. Here a token is a colour with the time from which it may be taken (K. Jensen, Coloured
Petri Nets, volume 2, chapter 5). A binding becomes ready at the largest stamp among its tokens; the scheduler fires
the binding that is ready first, and the clock of the model advances to this time. Tokens created by output arcs have
this stamp or a later one.

If several bindings are ready at the same time, the rules do not define an order. Here the order in which the
transitions were added to the net decides, then the order in which tokens were created, so that runs are reproducible.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from snakes.nets import ModeError, PetriNet, Place, Substitution, Transition, Variable

NEVER = 1 << 62
"""A stamp that no run reaches, used for a timer that is off."""

Result = TypeVar("Result")
Observer = Callable[[int, str, Substitution], None]
"""Receives the time, the transition and the binding of each firing, before it fires."""


class Stamped(NamedTuple):
    """A token: a colour and the time from which it may be taken."""

    at: int
    value: Any


class First(Variable):
    """
    An input arc that takes the token with the smallest stamp, and of equal stamps the token created first.

    This arc offers the binding that is ready first, unless a guard chooses between the tokens of one place. No guard of
    this net does. The plain `Variable` offers all tokens; the exploration of the state space uses it.
    """

    def modes(self, values: Any) -> list[Substitution]:
        """The one binding of the variable."""
        token = min(values, key=lambda token: token.at, default=None)
        if token is None:
            raise ModeError("no value to bind")
        return [Substitution({self.name: token})]


class Ahead(Variable):
    """
    An input arc that takes a token before its time, as a preemptive arc does.

    An acknowledgement uses it to stop or restart the timer, whose stamp is its expiry time.
    """


class Move(Transition):
    """
    A transition whose output arcs are evaluated only when it fires.

    SNAKES evaluates them for each candidate binding to check the types of the places. The places of this net accept
    every colour.
    """

    def _check(self, binding: Substitution, tokens: bool, input: bool) -> bool:
        if not self.guard(binding):
            return False
        return not tokens or all(label.check(binding, place.tokens) for place, label in self.input())


def once(function: Callable[..., Result]) -> Callable[..., Result]:
    """Caches the last result of a pure function of tokens, because several arcs of a firing need parts of it."""
    last: list[Any] = [None, None]

    def remembered(*tokens: Any) -> Result:
        known = last[0]
        if known is None or len(known) != len(tokens) or any(a is not b for a, b in zip(known, tokens, strict=True)):
            last[1] = function(*tokens)
            last[0] = tokens
        return last[1]

    return remembered


class Scheduler:
    """Runs a net whose tokens are all `Stamped`."""

    def __init__(self, net: PetriNet, observe: Observer | None = None) -> None:
        """Takes the net in its current marking; `observe` is called for each firing."""
        self.now = 0
        self.fired = 0
        self._observe = observe
        self._moves = list(net.transition())
        self._ahead = [{label.name for _, label in move.input() if isinstance(label, Ahead)} for move in self._moves]
        self._ready = [self._first(index) for index in range(len(self._moves))]
        # Transitions that a firing may enable or disable: those with an input place that the firing changes.
        self._affected = []
        for move in self._moves:
            places = {place.name for place, _ in move.input()} | {place.name for place, _ in move.output()}
            affected = [
                index
                for index, other in enumerate(self._moves)
                if any(place.name in places for place, _ in other.input())
            ]
            self._affected.append(affected)

    def run(self, until: int) -> None:
        """Fires whatever is ready before `until`."""
        while self.step(until):
            pass

    def step(self, until: int) -> bool:
        """Fires the binding that is ready first. Returns whether one was ready before `until`."""
        index = min(range(len(self._moves)), key=lambda index: self._ready[index][0])
        at, binding = self._ready[index]
        if at >= until or binding is None:
            return False
        if at < self.now:
            raise RuntimeError(f"{self._moves[index].name} was ready at {at}, but it is {self.now}")
        self.now = at
        self.fired += 1
        move = self._moves[index]
        if self._observe is not None:
            self._observe(at, move.name, binding)
        move.fire(binding)
        for other in self._affected[index]:
            self._ready[other] = self._first(other)
        return True

    def _first(self, index: int) -> tuple[int, Substitution | None]:
        """The time and the binding of a transition that is ready first."""
        ahead = self._ahead[index]
        best: tuple[int, Substitution | None] = (NEVER, None)
        for binding in self._moves[index].modes():
            at = max(token.at for name, token in binding.items() if name not in ahead)
            if at < best[0]:
                best = (at, binding)
        return best


def tokens(place: Place) -> list[Stamped]:
    """The tokens of a place, including duplicates."""
    return list(place.tokens.items())


def only(place: Place) -> Any:
    """The colour of the one token of a place."""
    (token,) = tokens(place)
    return token.value
