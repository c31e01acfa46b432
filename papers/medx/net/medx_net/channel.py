"""Figure 1, the channel, and the receiver: colours, and the inscriptions of their arcs."""

from __future__ import annotations

from typing import NamedTuple

from .parameters import Parameters
from .random_stream import uniform
from .timed import Stamped


class Segment(NamedTuple):
    """A segment in transit. `copy` is 1 for the first transmission; `sent` is T_snd."""

    number: int
    copy: int
    sent: int


class Acknowledgement(NamedTuple):
    """
    The acknowledgement of a segment: the next expected segment, the segment that arrived, its delay, and its send
    time. A real header needs no field for the send time: it is the send time of the acknowledgement less the delay.
    """

    upto: int
    number: int
    copy: int
    delay: int
    sent: int


class Receiver(NamedTuple):
    """The next segment in order, and the buffered segments after it."""

    expected: int = 0
    held: tuple[int, ...] = ()


class Channel:
    """The inscriptions of channel and receiver, for one run. `lst` is the list of the paper."""

    def __init__(self, parameters: Parameters, seed: int) -> None:
        """Takes delays, error rate and buffer size from the parameters, and the seed."""
        self._seed = seed
        self._error = parameters["channel.error"]
        self._ack_error = parameters["channel.ack_error"]
        self._before = parameters["channel.before"]
        self._after = parameters["channel.after"]
        self._reverse = parameters["channel.reverse"]
        self._service = parameters["channel.service"]
        self._fifo = parameters["channel.fifo"]
        self._spread = parameters["channel.spread"]
        self._route_period = parameters["channel.route_period"]
        self._route_extra = parameters["channel.route_extra"]

    def ok(self, p: Stamped) -> bool:
        """Whether the wireless link transmits a segment without error."""
        return uniform(self._seed, "error", p.value.number, p.value.copy) >= self._error

    def delay(self, base: int, at: int, *key: object) -> int:
        """
        The delay of a token that enters a link at this time. An interval delay (section 3: fuzzy time functions) is
        any number from base - spread to base + spread, here with equal probability, so that tokens may overtake each
        other. Every second period has another route, which is longer.
        """
        changed = self._route_period > 0 and (at // self._route_period) % 2 == 1
        interval = round(self._spread * (2 * uniform(self._seed, *key) - 1)) if self._spread > 0 else 0
        return base + interval + (self._route_extra if changed else 0)

    def arrived(self, p: Stamped) -> tuple[Stamped, ...]:
        """'Transmit packet' to 'arrive': the segment after the link delay, or nothing if it is lost."""
        if not self.ok(p):
            return ()
        return (Stamped(p.at + self.delay(self._before, p.at, "delay", p.value.number, p.value.copy), p.value),)

    def in_error(self, p: Stamped) -> tuple[Stamped, ...]:
        """The lost segment, kept to count losses."""
        return () if self.ok(p) else (p,)

    def has_space(self, lst: Stamped) -> bool:
        """Whether the buffer has space for another segment."""
        return len(lst.value) < self._fifo

    def queued(self, p: Stamped, lst: Stamped) -> Stamped:
        """'Drop tail' to 'R_buffer': at the end of the list, if it is not full."""
        return Stamped(max(p.at, lst.at), (*lst.value, p.value) if self.has_space(lst) else lst.value)

    def dropped(self, p: Stamped, lst: Stamped) -> tuple[Stamped, ...]:
        """The lost segment, kept to count losses."""
        return () if self.has_space(lst) else (p,)

    def shorter(self, lst: Stamped, u: Stamped) -> Stamped:
        """The list without its head, which enters service."""
        return Stamped(max(lst.at, u.at), lst.value[1:])

    def served(self, lst: Stamped, u: Stamped) -> Stamped:
        """The head of the list, after its service time and the remaining link delay."""
        return Stamped(max(lst.at, u.at) + self._service + self._after, lst.value[0])

    def free(self, lst: Stamped, u: Stamped) -> Stamped:
        """The server, available again after the service time."""
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
        """The segments delivered to the application, in order."""
        after = self.received(p, r)
        return tuple(Stamped(after.at, number) for number in range(r.value.expected, after.value.expected))

    def acknowledged(self, p: Stamped, r: Stamped) -> Stamped:
        """Section 2, receiver: every segment is acknowledged immediately, with T_recv - T_snd attached."""
        now = max(p.at, r.at)
        upto = self.received(p, r).value.expected
        number, copy, sent = p.value
        return Stamped(now, Acknowledgement(upto, number, copy, now - sent, sent))

    def returned(self, a: Stamped) -> tuple[Stamped, ...]:
        """'Transmit ack': an acknowledgement after the delay of the reverse path, or nothing if it is lost."""
        key = (a.value.number, a.value.copy)
        ok = self._ack_error <= 0 or uniform(self._seed, "ack error", *key) >= self._ack_error
        return (Stamped(a.at + self.delay(self._reverse, a.at, "ack delay", *key), a.value),) if ok else ()
