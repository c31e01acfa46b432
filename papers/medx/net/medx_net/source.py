"""Figure 2, data generation: the inscriptions of its arcs."""

from __future__ import annotations

from typing import NamedTuple

from .parameters import Parameters
from .random_stream import uniform
from .timed import Stamped


class Traffic(NamedTuple):
    """A token with its traffic type, "O" ordinary or "C" congestion, and the number of segments left to generate."""

    kind: str
    left: int


class Source:
    """The inscriptions of the page, for one run."""

    def __init__(self, parameters: Parameters, seed: int) -> None:
        """Takes the gaps and the kind of random mode from the parameters, and the seed."""
        self._seed = seed
        self._share = parameters["source.congested_share"]
        self._gap = {"O": parameters["source.normal_gap"], "C": parameters["source.congested_gap"]}
        self._period = parameters["source.mode_period"] if parameters["source.draw"] == "period" else None

    def drawn(self, c: Stamped) -> Stamped:
        """
        The arc from 'Gen. tokens with traffic type'. Its inscription in the paper is
        if randint(0, 999) < 900 then (e, O) else (e, C), whose shares section 4 contradicts.
        """
        kind = "C" if uniform(self._seed, "mode", c.value) < self._share else "O"
        return Stamped(c.at, Traffic(kind, 1 if self._period is None else max(1, self._period // self._gap[kind])))

    def next_draw(self, c: Stamped) -> Stamped:
        """The clock: the next random draw, after the period or after the gap of a single segment."""
        wait = self._gap[self.drawn(c).value.kind] if self._period is None else self._period
        return Stamped(c.at + wait, c.value + 1)

    def rest(self, x: Stamped) -> tuple[Stamped, ...]:
        """The token after one more segment; nothing after its last segment."""
        kind, left = x.value
        return (Stamped(x.at + self._gap[kind], Traffic(kind, left - 1)),) if left > 1 else ()

    def one_more(self, b: Stamped, x: Stamped) -> Stamped:
        """One more segment to send."""
        return Stamped(max(b.at, x.at), b.value + 1)
