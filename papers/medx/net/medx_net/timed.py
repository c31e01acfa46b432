"""
Time for SNAKES: tokens with stamps, and a scheduler after the rules of timed coloured Petri nets.

SNAKES knows no time. Here a token is a colour with the time from which it may be taken (K. Jensen, Coloured Petri
Nets, volume 2, chapter 5). A binding becomes ready at the largest stamp among its tokens; the scheduler fires the
binding that is ready first, and the clock of the model jumps there. What an output arc puts down carries that time
or a later one.

Where several bindings are ready at the same time, the rules leave the choice open. It is made by the order in which
the transitions were added to the net, then by the order in which tokens were put down. So a run is reproducible.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from snakes.nets import ModeError, PetriNet, Place, Substitution, Transition, Variable

NEVER = 1 << 62
"""A stamp that no run reaches: the timer that is off."""

Result = TypeVar("Result")
Observer = Callable[[int, str, Substitution], None]
"""Is told the time, the transition and the binding of each firing, before it fires."""


class Stamped(NamedTuple):
    """A token: a colour and the time from which it may be taken."""

    at: int
    value: Any


class First(Variable):
    """
    An input arc that takes the token with the least stamp, and of equal ones the one put down first.

    The binding that is ready first is among those it offers, unless a guard chooses between the tokens of one place.
    No guard of this net does. The plain `Variable` offers all tokens and is what the state space is explored with.
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

    With it an acknowledgement stops or restarts the timer, whose stamp is when it runs out.
    """


class Move(Transition):
    """
    A transition whose output arcs are evaluated only when it fires.

    SNAKES evaluates them for each binding that it considers, to check the types of the places; the places of this
    net take every colour.
    """

    def _check(self, binding: Substitution, tokens: bool, input: bool) -> bool:
        if not self.guard(binding):
            return False
        return not tokens or all(label.check(binding, place.tokens) for place, label in self.input())


def once(function: Callable[..., Result]) -> Callable[..., Result]:
    """Keeps the last result of a pure function for the same tokens: several arcs of a firing ask for its parts."""
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
        """Takes the net in its present marking; `observe` sees each firing."""
        self.now = 0
        self.fired = 0
        self._observe = observe
        self._moves = list(net.transition())
        self._ahead = [{label.name for _, label in move.input() if isinstance(label, Ahead)} for move in self._moves]
        self._ready = [self._first(index) for index in range(len(self._moves))]
        # What a firing may enable or disable: transitions that take from a place it takes from or puts into.
        self._touched = []
        for move in self._moves:
            places = {place.name for place, _ in move.input()} | {place.name for place, _ in move.output()}
            near = [
                index
                for index, other in enumerate(self._moves)
                if any(place.name in places for place, _ in other.input())
            ]
            self._touched.append(near)

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
        for near in self._touched[index]:
            self._ready[near] = self._first(near)
        return True

    def _first(self, index: int) -> tuple[int, Substitution | None]:
        """The binding of a transition that is ready first, and when."""
        ahead = self._ahead[index]
        best: tuple[int, Substitution | None] = (NEVER, None)
        for binding in self._moves[index].modes():
            at = max(token.at for name, token in binding.items() if name not in ahead)
            if at < best[0]:
                best = (at, binding)
        return best


def tokens(place: Place) -> list[Stamped]:
    """The tokens of a place, each as often as it lies there."""
    return list(place.tokens.items())


def only(place: Place) -> Any:
    """The colour of the one token of a place."""
    (token,) = tokens(place)
    return token.value
