"""Figure 3 and section 2: classification of a loss as congestion or error."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from .parameters import Parameters


class Delays(NamedTuple):
    """The propagation buffer, oldest first, and the average of all delays."""

    recent: tuple[int, ...] = ()
    average: float = 0.0
    known: bool = False
    fresh: bool = False


class Discriminator:
    """The congestion test of TCP-MEDX."""

    def __init__(self, parameters: Parameters) -> None:
        """Takes alpha, beta and the length of the list from the parameters."""
        self._alpha = parameters["medx.alpha"]
        self._beta = parameters["medx.beta"]
        self._length = parameters["medx.list"]
        self._measure = parameters["medx.measure"]
        self._cautious = parameters["medx.without_delays"] == "congestion"

    def update(self, delays: Delays, new: int) -> Delays:
        """Figure 3, lines 1 and 2, and equation 1: P = alpha P + (1 - alpha) P_new."""
        recent = (*delays.recent, new)[-self._length :]
        average = self._alpha * delays.average + (1 - self._alpha) * new if delays.known else float(new)
        return Delays(recent, average, known=True, fresh=True)

    def congested(self, delays: Delays) -> bool:
        """Figure 3, lines 3 to 11. A full list and a delay since the last classification are required."""
        recent = delays.recent
        if len(recent) < self._length or not delays.fresh:
            return self._cautious
        current = recent[-1] if self._measure == "current" else sum(recent) / len(recent)
        # Line 6, criterion I.
        if current <= self._beta * delays.average:
            return False
        # Lines 8 to 11, criterion II.
        return all(before <= after for before, after in pairwise(recent))
