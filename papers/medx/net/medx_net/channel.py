"""Figure 1, the channel, and the receiver: colours, and the inscriptions of their arcs."""

from __future__ import annotations

from typing import NamedTuple

from .chance import uniform
from .parameters import Parameters
from .timed import Stamped


class Segment(NamedTuple):
    """A segment on its way. `copy` is 1 when it is sent first; `sent` is T_snd."""

    number: int
    copy: int
    sent: int


class Acknowledgement(NamedTuple):
    """
    What the receiver returns for each segment: the next that it expects, the one that came, its delay, and when it
    was sent. On the wire the last is the time of sending of the acknowledgement less the delay; it is nothing more.
    """

    upto: int
    number: int
    copy: int
    delay: int
    sent: int


class Receiver(NamedTuple):
    """The next segment in order, and those beyond it that are kept."""

    expected: int = 0
    held: tuple[int, ...] = ()


class Channel:
    """The inscriptions of channel and receiver, for one run. `lst` is the list of the paper."""

    def __init__(self, parameters: Parameters, seed: int) -> None:
        """Takes delays, error and buffer, and the seed."""
        self._seed = seed
        self._error = parameters["channel.error"]
        self._ack_error = parameters["channel.ack_error"]
        self._before = parameters["channel.before"]
        self._behind = parameters["channel.behind"]
        self._back = parameters["channel.back"]
        self._service = parameters["channel.service"]
        self._fifo = parameters["channel.fifo"]

    def ok(self, p: Stamped) -> bool:
        """Whether a segment survives the wireless way."""
        return uniform(self._seed, "error", p.value.number, p.value.copy) >= self._error

    def arrived(self, p: Stamped) -> tuple[Stamped, ...]:
        """'Transmit packet' to 'arrive': if it survives, the segment after its way, else nothing."""
        return (Stamped(p.at + self._before, p.value),) if self.ok(p) else ()

    def in_error(self, p: Stamped) -> tuple[Stamped, ...]:
        """The rest of it, kept for the account."""
        return () if self.ok(p) else (p,)

    def room(self, lst: Stamped) -> bool:
        """Whether the buffer takes one more."""
        return len(lst.value) < self._fifo

    def queued(self, p: Stamped, lst: Stamped) -> Stamped:
        """'Drop tail' to 'R_buffer': at the end of the list, if it is not full."""
        return Stamped(max(p.at, lst.at), (*lst.value, p.value) if self.room(lst) else lst.value)

    def dropped(self, p: Stamped, lst: Stamped) -> tuple[Stamped, ...]:
        """The rest of it, kept for the account."""
        return () if self.room(lst) else (p,)

    def shorter(self, lst: Stamped, u: Stamped) -> Stamped:
        """The list without its head, which is served."""
        return Stamped(max(lst.at, u.at), lst.value[1:])

    def served(self, lst: Stamped, u: Stamped) -> Stamped:
        """The head of the list, after service and the rest of its way."""
        return Stamped(max(lst.at, u.at) + self._service + self._behind, lst.value[0])

    def free(self, lst: Stamped, u: Stamped) -> Stamped:
        """The server, which serves again when it has served this."""
        return Stamped(max(lst.at, u.at) + self._service, u.value)

    def received(self, p: Stamped, r: Stamped) -> Stamped:
        """The receiver after a segment."""
        expected, held = r.value
        kept = {*held, p.value.number} if p.value.number >= expected else set(held)
        while expected in kept:
            kept.remove(expected)
            expected += 1
        return Stamped(max(p.at, r.at), Receiver(expected, tuple(sorted(kept))))

    def delivered(self, p: Stamped, r: Stamped) -> tuple[Stamped, ...]:
        """What the application is given: segments in order."""
        after = self.received(p, r)
        return tuple(Stamped(after.at, number) for number in range(r.value.expected, after.value.expected))

    def acknowledged(self, p: Stamped, r: Stamped) -> Stamped:
        """Section 2, receiver: every segment is acknowledged at once, with T_recv - T_snd attached."""
        now = max(p.at, r.at)
        upto = self.received(p, r).value.expected
        number, copy, sent = p.value
        return Stamped(now, Acknowledgement(upto, number, copy, now - sent, sent))

    def returned(self, a: Stamped) -> tuple[Stamped, ...]:
        """'Transmit ack': an acknowledgement after its way back, if it survives."""
        key = (a.value.number, a.value.copy)
        ok = self._ack_error <= 0 or uniform(self._seed, "ack error", *key) >= self._ack_error
        return (Stamped(a.at + self._back, a.value),) if ok else ()
