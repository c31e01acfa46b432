"""The net: places, transitions and arcs of figures 1 to 3, for either protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from snakes.nets import Expression, Flush, PetriNet, Place, Variable

from .channel import Acknowledgement, Channel, Receiver, Segment
from .medx import Delays, Discriminator
from .parameters import Parameters
from .sender import Protocol, Sender, Step
from .source import Source
from .timed import NEVER, Ahead, First, Move, Stamped, once

PROTOCOLS = ("standard", "medx")


class Inscriptions:
    """The functions of the sender as inscriptions of arcs, which take and return tokens."""

    def __init__(self, protocol: Protocol) -> None:
        """Takes the rules of the protocol."""
        self._protocol = protocol
        self.retransmitted = once(self._retransmitted)
        self.new = once(self._new)
        self.acked = once(self._acked)
        self.expired = once(self._expired)

    def may_retransmit(self, s: Stamped) -> bool:
        """Guard of 'Retransmit'."""
        return self._protocol.may_retransmit(s.value)

    def may_send_new(self, s: Stamped, b: Stamped) -> bool:
        """Guard of 'Send new'."""
        return b.value > 0 and self._protocol.may_send_new(s.value)

    def one_less(self, b: Stamped, s: Stamped) -> Stamped:
        """One segment less to send."""
        return Stamped(max(b.at, s.at), b.value - 1)

    def _retransmitted(self, s: Stamped, t: Stamped) -> Sent:
        step, segment = self._protocol.retransmit(s.value, t.at, s.at)
        return Sent(s.at, step, t.value, segment)

    def _new(self, s: Stamped, b: Stamped, t: Stamped) -> Sent:
        now = max(s.at, b.at)
        step, segment = self._protocol.send_new(s.value, t.at, now)
        return Sent(now, step, t.value, segment)

    def _acked(self, s: Stamped, a: Stamped, t: Stamped, d: Stamped | None = None) -> Done:
        now = max(s.at, a.at)
        delays = Delays()
        if d is not None and self._protocol.discriminator is not None:
            # Figure 3, update_prop_list().
            delays = self._protocol.discriminator.update(d.value, a.value.delay)
        return Done(now, self._protocol.acknowledged(s.value, a.value, delays, t.at, now), t.value, delays)

    def _expired(self, s: Stamped, t: Stamped, d: Stamped | None = None) -> Done:
        now = max(s.at, t.at)
        delays = Delays() if d is None else d.value
        return Done(now, self._protocol.timed_out(s.value, delays, now), t.value, delays)


class Done:
    """The tokens that a firing of the sender creates."""

    def __init__(self, now: int, step: Step, timer: str, delays: Delays = Delays()) -> None:  # noqa: B008
        """Stamps the sender with the current time, and the timer with its expiry time."""
        self.classified = step.classified
        self.delays = Stamped(now, delays if step.classified is None else delays._replace(fresh=False))
        self.sender = Stamped(now, step.sender)
        self.timer = Stamped(step.timer, timer)


class Sent(Done):
    """The tokens that a firing creates when it sends a segment."""

    def __init__(self, now: int, step: Step, timer: str, segment: Segment) -> None:
        """Stamps the segment with the current time as well."""
        super().__init__(now, step, timer)
        self.segment = Stamped(now, segment)


class Net:
    """The net of a protocol. `petri` is the SNAKES net, `inscriptions` the functions of the sender."""

    def __init__(self, parameters: Parameters, protocol: str, seed: int, *, timed: bool = True) -> None:
        """Builds the net with time, or without time: then any token may be taken, and the state space can be finite."""
        if protocol not in PROTOCOLS:
            raise ValueError(f"protocol {protocol!r}: expected one of {', '.join(PROTOCOLS)}")
        self.medx = protocol == "medx"
        discriminator = Discriminator(parameters) if self.medx else None
        self.protocol = Protocol(parameters, discriminator, counted=timed)
        self.inscriptions = Inscriptions(self.protocol)
        self.channel = Channel(parameters, seed)
        self.source = Source(parameters, seed)
        self.petri = PetriNet(protocol)
        self.pages: dict[str, list[str]] = {}
        self._take: Callable[[str], Variable] = First if timed else Variable
        for page in (self.inscriptions, self.channel, self.source):
            for name in dir(page):
                if not name.startswith("_"):
                    self.petri.globals[name] = getattr(page, name)
        self.petri.globals["NEVER"] = NEVER
        self.petri.globals["Stamped"] = Stamped
        self._places()
        # The order resolves ties: transitions that take from a queue or a link fire first.
        for page, add in (
            ("Receiver", self._receiver_page),
            ("Channel", self._channel_page),
            ("Sender", self._sender_page),
            ("Data generation", self._data_generation_page),
        ):
            before = {move.name for move in self.petri.transition()}
            add()
            self.pages[page] = [move.name for move in self.petri.transition() if move.name not in before]

    def _places(self) -> None:
        start: dict[str, list[Any]] = {
            "clock": [0],
            "with traffic type": [],
            "to send": [0],
            "sender": [self.protocol.start()],
            "segments": [],
            "lost in error": [],
            "arrive": [],
            "lost in queue": [],
            "R_buffer": [()],
            "server": ["free"],
            "after router": [],
            "receiver": [Receiver()],
            "delivered": [],
            "acks": [],
            "acks returned": [],
        }
        for name, values in start.items():
            self.petri.add_place(Place(name, [Stamped(0, value) for value in values]))
        self.petri.add_place(Place("timer", [Stamped(NEVER, "RTO")]))
        if self.medx:
            self.petri.add_place(Place("propagation buffer", [Stamped(0, Delays())]))

    def _data_generation_page(self) -> None:
        """Figure 2."""
        self.move(
            "Gen. tokens with traffic type",
            {"clock": "c"},
            {"clock": "next_draw(c)", "with traffic type": "drawn(c)"},
        )
        for name, kind in (("Ordinary", "O"), ("Congested", "C")):
            self.move(
                name,
                {"with traffic type": "x", "to send": "b"},
                {"with traffic type": "*rest(x)", "to send": "one_more(b, x)"},
                guard=f"x.value.kind == '{kind}'",
            )

    def _sender_page(self) -> None:
        """Window, retransmission and, for MEDX, figure 3."""
        d = ", d" if self.medx else ""
        buffer = {"propagation buffer": "d"} if self.medx else {}
        self.move(
            "Receive ack",
            {"acks returned": "a", "sender": "s", "timer": "~t", **buffer},
            {
                "sender": f"acked(s, a, t{d}).sender",
                "timer": f"acked(s, a, t{d}).timer",
                **({"propagation buffer": "acked(s, a, t, d).delays"} if self.medx else {}),
            },
        )
        self.move(
            "Timeout",
            {"timer": "t", "sender": "s", **buffer},
            {
                "sender": f"expired(s, t{d}).sender",
                "timer": f"expired(s, t{d}).timer",
                **({"propagation buffer": "expired(s, t, d).delays"} if self.medx else {}),
            },
            guard="t.at < NEVER",
        )
        self.move(
            "Retransmit",
            {"sender": "s", "timer": "~t"},
            {
                "sender": "retransmitted(s, t).sender",
                "timer": "retransmitted(s, t).timer",
                "segments": "retransmitted(s, t).segment",
            },
            guard="may_retransmit(s)",
        )
        self.move(
            "Send new",
            {"to send": "b", "sender": "s", "timer": "~t"},
            {
                "to send": "one_less(b, s)",
                "sender": "new(s, b, t).sender",
                "timer": "new(s, b, t).timer",
                "segments": "new(s, b, t).segment",
            },
            guard="may_send_new(s, b)",
        )

    def _channel_page(self) -> None:
        """Figure 1."""
        self.move(
            "Serve",
            {"R_buffer": "lst", "server": "u"},
            {"R_buffer": "shorter(lst, u)", "server": "free(lst, u)", "after router": "served(lst, u)"},
            guard="len(lst.value) > 0",
        )
        self.move(
            "Drop tail",
            {"arrive": "p", "R_buffer": "lst"},
            {"R_buffer": "queued(p, lst)", "lost in queue": "*dropped(p, lst)"},
        )
        self.move(
            "Transmit packet",
            {"segments": "p"},
            {"arrive": "*arrived(p)", "lost in error": "*in_error(p)"},
        )
        self.move("Transmit ack", {"acks": "a"}, {"acks returned": "*returned(a)"})

    def _receiver_page(self) -> None:
        self.move(
            "Receive packet",
            {"after router": "p", "receiver": "r"},
            {"receiver": "received(p, r)", "delivered": "*delivered(p, r)", "acks": "acknowledged(p, r)"},
        )

    def move(self, name: str, inputs: dict[str, str], outputs: dict[str, str], guard: str = "True") -> None:
        """Adds a transition. `~t` takes a token before its time, `*f(x)` creates any number of tokens."""
        self.petri.add_transition(Move(name, Expression(guard)))
        for place, label in inputs.items():
            arc = Ahead(label[1:]) if label.startswith("~") else self._take(label)
            self.petri.add_input(place, name, arc)
        for place, label in outputs.items():
            arc = Flush(label[1:]) if label.startswith("*") else Expression(label)
            self.petri.add_output(place, name, arc)


__all__ = ["PROTOCOLS", "Acknowledgement", "Net", "Segment", "Sender"]
