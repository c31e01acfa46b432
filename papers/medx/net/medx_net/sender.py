"""
The sender: its state as a colour, and the transitions of this state by acknowledgements and the timer.

RFC 5681, 3042 and 6298, counted in segments, with one of three recoveries: NewReno (RFC 6582), SACK (RFC 6675), or
"each", which also detects lost retransmissions. The protocols differ in the classification of a loss only: standard TCP
classifies every loss as congestion, MEDX uses its discriminator.
"""

from __future__ import annotations

from typing import NamedTuple

from .channel import Acknowledgement, Segment
from .medx import Delays, Discriminator
from .parameters import Parameters
from .timed import NEVER


class Out(NamedTuple):
    """A segment in flight: sent, and not known to have arrived."""

    number: int
    sent: int
    copies: int = 1
    lost: bool = False
    timed_out: bool = False
    order: int = 0
    passed: int = 0


class Sender(NamedTuple):
    """The state of the sender, which is the colour of its token. Windows are in segments, times in units."""

    una: int = 0
    next: int = 0
    cwnd: float = 2.0
    ssthresh: float = float("inf")
    out: tuple[Out, ...] = ()
    lost: int = 0
    duplicates: int = 0
    released: int = 0
    recover: int = -1
    recovering: bool = False
    began: int = 0
    partial: bool = False
    inflation: float = 0.0
    deflated: float = 0.0
    force: bool = False
    limited: bool = False
    srtt: int = 0
    rttvar: int = 0
    measured: bool = False
    backoff: int = 0
    last_sent: int = 0


class Classification(NamedTuple):
    """The classification of a loss."""

    number: int
    copy: int
    timeout: bool
    congestion: bool


class Step(NamedTuple):
    """Result of a firing: the sender, the expiry time of the timer, and the classification of a detected loss."""

    sender: Sender
    timer: int
    classified: Classification | None = None


class Protocol:
    """The rules of a sender: standard TCP if there is no discriminator."""

    def __init__(self, parameters: Parameters, discriminator: Discriminator | None, *, counted: bool = True) -> None:
        """
        Takes windows, timers and recovery from the parameters. `counted = False` limits the number of copies of a
        segment to two and does not count timeouts, so that the state space of a net without time is finite.
        """
        self.discriminator = discriminator
        self._counted = counted
        self._initial_window = float(parameters["sender.initial_window"])
        self._receive_window = parameters["sender.receive_window"]
        self._sack = parameters["sender.recovery"] in ("sack", "each")
        self._each = parameters["sender.recovery"] == "each"
        self._by_option = parameters["sender.timing"] == "option"
        self._dupthresh = parameters["sender.dupthresh"]
        self._rto_initial = parameters["sender.rto_initial"]
        self._rto_min = parameters["sender.rto_min"]
        self._rto_max = parameters["sender.rto_max"]
        self._halve_on_timeout = parameters["sender.on_timeout"] == "halve"

    def start(self) -> Sender:
        """The sender before anything is sent."""
        return Sender(cwnd=self._initial_window)

    # Transmission.

    def may_retransmit(self, s: Sender) -> bool:
        """Whether a lost segment may be retransmitted."""
        return s.lost > 0 and (s.force or self._window_open(s))

    def may_send_new(self, s: Sender) -> bool:
        """Whether a new segment may be sent, if there is one. Lost segments have priority."""
        return s.lost == 0 and self._window_open(s) and s.next - s.una < self._receive_window

    def retransmit(self, s: Sender, timer: int, now: int) -> tuple[Step, Segment]:
        """Retransmits the first lost segment."""
        old = next(out for out in s.out if out.lost)
        copies = old.copies + 1 if self._counted else 2
        new = old._replace(sent=now, copies=copies, lost=False)
        others = s.out
        if self._each:
            # The copy is sent after all segments in flight; the set of order numbers is unchanged.
            last = max(out.order for out in s.out)
            new = new._replace(passed=0, order=last)
            others = tuple(out._replace(order=out.order - 1) if out.order > old.order else out for out in s.out)
        out = tuple(new if other.number == new.number else other for other in others)
        return self._sent(s._replace(out=out, lost=s.lost - 1, force=False), new, timer, now)

    def send_new(self, s: Sender, timer: int, now: int) -> tuple[Step, Segment]:
        """Sends the next segment."""
        if not s.out and s.next > 0 and now - s.last_sent > self._rto(s):
            # RFC 5681, section 4.1.
            s = s._replace(cwnd=min(s.cwnd, self._initial_window))
        order = max((out.order for out in s.out), default=0) + 1 if self._each else 0
        new = Out(s.next, now, order=order)
        released = s.released + (1 if s.duplicates > 0 and not s.recovering else 0)
        s = s._replace(out=(*s.out, new), next=s.next + 1, released=released)
        return self._sent(s, new, timer, now)

    def _sent(self, s: Sender, out: Out, timer: int, now: int) -> tuple[Step, Segment]:
        s = s._replace(last_sent=now, limited=s.limited or not self._window_has_space(s))
        # RFC 6298, 5.1.
        timer = now + self._rto(s) if timer == NEVER else timer
        return Step(s, timer), Segment(out.number, out.copies, now)

    def _window_open(self, s: Sender) -> bool:
        return len(s.out) == s.lost or self._window_has_space(s)

    def _window_has_space(self, s: Sender) -> bool:
        return len(s.out) - s.lost + 1 <= s.cwnd + s.inflation

    # Acknowledgements.

    def acknowledged(self, s: Sender, a: Acknowledgement, delays: Delays, timer: int, now: int) -> Step:
        """Processes an acknowledgement; `delays` already contain its delay."""
        if not s.out:
            return Step(s, timer)
        if self._sack:
            return self._acknowledged_sack(s, a, delays, timer, now)
        if a.upto > s.una:
            return self._new_acknowledgement(s, a, timer, now)
        return self._duplicate(s, delays, timer, now)

    def _new_acknowledgement(self, s: Sender, a: Acknowledgement, timer: int, now: int) -> Step:
        covered = [out for out in s.out if out.number < a.upto]
        acked = a.upto - s.una
        s = s._replace(
            una=a.upto,
            out=s.out[len(covered) :],
            lost=s.lost - sum(out.lost for out in covered),
            duplicates=0,
            released=0,
        )
        s = self._timed(s, covered, a, now)
        restart = True
        if not s.recovering:
            s = self._grown(s._replace(inflation=0.0))
        elif s.una < s.recover:
            restart = not s.partial
            s = self._partial(s, acked)
        else:
            # RFC 6582, section 3.2, step 3, full acknowledgements, option 2: cwnd to ssthresh, where it was before
            # partial acknowledgements deflated it.
            s = s._replace(recovering=False, inflation=0.0, cwnd=s.cwnd + s.deflated)
        return Step(self._after_acknowledgement(s), self._timer(s, timer, now, restart))

    def _partial(self, s: Sender, acked: int) -> Sender:
        """
        RFC 6582, section 3.2, step 3, partial acknowledgements: the next segment is lost; the window is deflated by
        the amount acknowledged, with one segment added back.
        """
        s = self._first_lost(s)
        if s.inflation > acked:
            s = s._replace(inflation=s.inflation - acked + 1)
        else:
            cwnd = max(1.0, s.cwnd - (acked - s.inflation))
            s = s._replace(cwnd=cwnd, deflated=s.deflated + s.cwnd - cwnd, inflation=1.0)
        return s._replace(partial=True)

    def _duplicate(self, s: Sender, delays: Delays, timer: int, now: int) -> Step:
        s = s._replace(duplicates=s.duplicates + 1)
        classified = None
        if s.recovering:
            # RFC 5681, section 3.2, step 4.
            s = s._replace(inflation=s.inflation + 1)
        elif s.duplicates == self._dupthresh and s.una > s.recover:
            # RFC 6582, section 3.2, step 2. Segments sent by limited transmit do not count.
            first = s.out[0]
            classified = self._classify(first, delays, timeout=False)
            if classified.congestion:
                s = self._halved(s, s.next - s.una - s.released)
            s = self._first_lost(s)._replace(
                recover=s.next, recovering=True, partial=False, deflated=0.0, inflation=float(self._dupthresh)
            )
            timer = now + self._rto(s)
        else:
            # RFC 3042: each of the first two duplicates releases one new segment.
            s = s._replace(inflation=float(s.duplicates) if s.duplicates < self._dupthresh else 0.0)
        return Step(self._after_acknowledgement(s, clear=False), timer, classified)

    def _acknowledged_sack(self, s: Sender, a: Acknowledgement, delays: Delays, timer: int, now: int) -> Step:
        """SACK: each acknowledgement identifies the segment that arrived; the others are lost or in transit."""
        came = next((out for out in s.out if out.number == a.number), None)
        acked = a.upto > s.una
        progress = came is not None if self._each else acked
        s = self._measured_sack(s, a, came, now)
        left = tuple(self._overtaken(out, came, a) for out in s.out if out.number >= a.upto and out.number != a.number)
        s = s._replace(una=a.upto, out=left, lost=sum(out.lost for out in left))
        if s.recovering and s.una >= s.recover:
            s = s._replace(recovering=False)
        elif progress and not s.recovering:
            s = self._grown(s)
        if progress:
            s = s._replace(duplicates=0, released=0)
        elif came is not None:
            s = s._replace(duplicates=s.duplicates + 1)
        classified = None
        missing = next((out for out in s.out if out.passed >= self._dupthresh and not out.lost), None)
        if missing is not None and not s.recovering and (self._each or s.una > s.recover):
            classified = self._classify(missing, delays, timeout=False)
            if classified.congestion:
                s = self._halved(s, s.next - s.una - s.released)
            s = s._replace(recover=s.next, recovering=True, began=now, force=True)
        if s.recovering or self._each:
            s = self._missing_lost(s)
        timer = self._timer(s, timer, now, progress or classified is not None)
        return Step(self._after_acknowledgement(s, clear=progress), timer, classified)

    def _measured_sack(self, s: Sender, a: Acknowledgement, came: Out | None, now: int) -> Sender:
        """A round-trip sample of data acknowledged in order. With "each" the copy that arrived is known."""
        if self._each:
            known = came is not None and came.copies == a.copy
            return self._measured(s, now - came.sent) if came is not None and known else s
        covered = [out for out in s.out if out.number < a.upto]
        return self._timed(s, covered, a, now) if covered else s

    def _timed(self, s: Sender, covered: list[Out], a: Acknowledgement, now: int) -> Sender:
        """
        A round-trip sample of the last newly acknowledged segment. If one of them was retransmitted, the others have
        waited for its repair: they give no sample (RFC 6298, section 3, Karn), unless the acknowledgement contains the
        send time of the copy that it answers (RFC 7323, section 4.3: that of the segment that fills the gap).
        """
        if all(out.copies == 1 for out in covered):
            return self._measured(s, now - covered[-1].sent)
        return self._measured(s, now - a.sent) if self._by_option else s

    def _overtaken(self, out: Out, came: Out | None, a: Acknowledgement) -> Out:
        """
        Counts a segment as overtaken. RFC 6675, IsLost, counts segments with higher sequence numbers; "each" counts
        segments sent later, so that lost retransmissions are detected as well.
        """
        if came is None:
            return out
        later = out.order < came.order and came.copies == a.copy if self._each else out.number < came.number
        return out._replace(passed=out.passed + 1) if later else out

    def _missing_lost(self, s: Sender) -> Sender:
        """Marks segments overtaken `dupthresh` times as lost. RFC 6675 does not mark retransmitted segments again."""

        def marked(out: Out) -> Out:
            retransmitted = not self._each and out.copies > 1 and out.sent >= s.began
            return out._replace(lost=True) if out.passed >= self._dupthresh and not retransmitted else out

        after = tuple(marked(out) for out in s.out)
        return s._replace(out=after, lost=sum(out.lost for out in after))

    def _after_acknowledgement(self, s: Sender, *, clear: bool = True) -> Sender:
        """RFC 7661, simplified: the window grows only while it limits the sender."""
        limited = (s.limited and not clear) or not self._window_has_space(s)
        return s._replace(limited=limited, force=s.force and s.lost > 0)

    # Timeouts.

    def timed_out(self, s: Sender, delays: Delays, now: int) -> Step:
        """Processes a timeout: RFC 6298, 5.4 to 5.6; all segments in flight are marked lost."""
        first = s.out[0]
        classified = self._classify(first, delays, timeout=True)
        if classified.congestion:
            flight = s.next - s.una
            if self._halve_on_timeout:
                s = self._halved(s, flight)
            else:
                # RFC 5681, section 3.1: ssthresh is kept if the timer has already retransmitted this segment.
                ssthresh = s.ssthresh if first.timed_out else max(flight / 2, 2.0)
                s = s._replace(ssthresh=ssthresh, cwnd=1.0)
        lost = tuple(out._replace(lost=True) for out in s.out)
        s = s._replace(
            out=(lost[0]._replace(timed_out=True), *lost[1:]),
            lost=len(lost),
            recover=s.next,
            recovering=False,
            inflation=0.0,
            duplicates=0,
            released=0,
            backoff=min(s.backoff + 1, 16) if self._counted else 0,
        )
        return Step(s, now + self._rto(s), classified)

    # Rules of both protocols.

    def _classify(self, out: Out, delays: Delays, *, timeout: bool) -> Classification:
        """The only difference of the protocols: standard TCP classifies each loss as congestion."""
        congestion = self.discriminator is None or self.discriminator.congested(delays)
        return Classification(out.number, out.copies, timeout, congestion)

    @staticmethod
    def _halved(s: Sender, flight: int) -> Sender:
        """RFC 5681, section 3.1, equation 4."""
        return s._replace(ssthresh=max(flight / 2, 2.0), cwnd=max(flight / 2, 1.0))

    @staticmethod
    def _grown(s: Sender) -> Sender:
        """RFC 5681, section 3.1: slow start and congestion avoidance, for an acknowledgement of new data."""
        if not s.limited:
            return s
        if s.cwnd < s.ssthresh:
            return s._replace(cwnd=s.cwnd + min(1.0, max(s.ssthresh - s.cwnd, 1.0)))
        return s._replace(cwnd=s.cwnd + 1.0 / s.cwnd)

    @staticmethod
    def _first_lost(s: Sender) -> Sender:
        """Marks the first segment as lost and retransmits it regardless of the window."""
        first = s.out[0]
        return s._replace(out=(first._replace(lost=True), *s.out[1:]), lost=s.lost + (not first.lost), force=True)

    def _timer(self, s: Sender, timer: int, now: int, restart: bool) -> int:
        """RFC 6298, 5.2 and 5.3."""
        if not s.out:
            return NEVER
        return now + self._rto(s) if restart else timer

    @staticmethod
    def _measured(s: Sender, rtt: int) -> Sender:
        """RFC 6298, 2.2, 2.3 and 5.7."""
        if not s.measured:
            return s._replace(srtt=rtt, rttvar=rtt // 2, measured=True, backoff=0)
        rttvar = s.rttvar - s.rttvar // 4 + abs(s.srtt - rtt) // 4
        return s._replace(srtt=s.srtt - s.srtt // 8 + rtt // 8, rttvar=rttvar, backoff=0)

    def _rto(self, s: Sender) -> int:
        """RFC 6298, 2.3 to 2.5 and 5.5."""
        base = max(s.srtt + 4 * s.rttvar, self._rto_min) if s.measured else self._rto_initial
        return min(base << s.backoff, self._rto_max)
