"""Stepped simulation, for co-simulation with other programs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from types import TracebackType
from typing import NamedTuple

from gridhaul import _native
from gridhaul._errors import Interrupted, SessionError
from gridhaul._node_names import NodeNames
from gridhaul._scenario import Scenario, scenario_or_file
from gridhaul._values import U32_MAX, whole

__all__ = ["Message", "Session", "Snapshot"]


class Message(NamedTuple):
    """The end of a message.

    Attributes:
        id: The number that :meth:`Session.send` returned.
        sent_s: When it was sent, in seconds.
        at_s: When it was delivered or lost, in seconds.
        lost: Why it was lost, such as ``"queue_full"`` or ``"outage"``; None if it was delivered.
        altered: Whether it arrived with altered content and a valid checksum: after an attack
            ``alter``, or the key ``corrupt_undetected`` of a link.

    """

    id: int
    sent_s: float
    at_s: float
    lost: str | None
    altered: bool = False

    @property
    def delivered(self) -> bool:
        """Whether the message was delivered."""
        return self.lost is None

    @property
    def delay_s(self) -> float | None:
        """Time from sending to delivery in seconds; None if the message was lost."""
        return None if self.lost is not None else self.at_s - self.sent_s


class Snapshot:
    """The state of a session at one time; :meth:`Session.restore` takes it any number of times."""

    __slots__ = ("_inner",)
    _inner: _native.Snapshot

    def __init__(self, native: _native.Snapshot) -> None:
        """Wrap the native state; :meth:`Session.snapshot` creates snapshots."""
        self._inner = native

    @property
    def now_s(self) -> float:
        """Time of the state in seconds."""
        return self._inner.now_s

    def __repr__(self) -> str:
        """Show the time."""
        return f"<gridhaul.Snapshot at {self.now_s} s>"


class Session:
    """A simulation that its caller steps.

    The flows of load ``external`` of the scenario carry the messages that :meth:`send` passes to
    them; all other flows run meanwhile. The delays are those of a run with the same messages, in
    however many steps.

    A session is not shared between threads: a call during another one raises ``RuntimeError``.
    """

    __slots__ = ("_inner", "_names", "_scenario")
    _inner: _native.Session | None
    _names: NodeNames | None

    def __init__(
        self, scenario: Scenario | str | os.PathLike[str], *, replication: int = 0
    ) -> None:
        """Open a session at time 0.

        Args:
            scenario: The scenario, or the path of its file; at least one flow has
                ``load = "external"``.
            replication: Number of the replication, which selects the random numbers.

        Raises:
            SessionError: A key that a session does not support, such as a sweep, or a number of
                the replication below 0.

        """
        whole("replication", replication, most=U32_MAX, error=SessionError)
        self._scenario = scenario_or_file(scenario)
        self._inner = _native.Session(self._scenario._inner, replication)
        self._names = None

    @property
    def now_s(self) -> float:
        """Time up to which the simulation has advanced, in seconds."""
        return self._open().now_s

    @property
    def in_flight(self) -> int:
        """Number of messages that were sent and are neither delivered nor lost."""
        return self._open().in_flight

    def send(self, from_node: str, to_node: str, size_bytes: int, at_s: float | None = None) -> int:
        """Send a message over the external flow from one node to another.

        Args:
            from_node: The sender; a member of a group with its number, such as ``"meter[3]"``.
            to_node: The receiver.
            size_bytes: Payload in bytes.
            at_s: When to send, in seconds, now or later; None: now.

        Returns:
            The number of the message, from 0.

        Raises:
            SessionError: An unknown node, no flow between the nodes, a size below 1, or a time
                before that of the session.

        """
        native = self._open()
        _check_size("size_bytes", size_bytes)
        return native.send(from_node, to_node, size_bytes, native.now_s if at_s is None else at_s)

    def send_many(self, messages: Iterable[tuple[str, str, int, float]]) -> list[int]:
        """Send messages: sender, receiver, bytes and time of each, as in :meth:`send`."""
        native, sent = self._open(), list(messages)
        try:
            return native.send_many(sent)
        except OverflowError:
            # The module takes no number out of its range, and has then sent nothing.
            for index, (_, _, size_bytes, _) in enumerate(sent):
                _check_size(f"messages[{index}]: size_bytes", size_bytes)
            raise

    def advance_to(self, until_s: float) -> list[Message]:
        """Advance to a time in seconds. Return the messages that were delivered or lost.

        Messages that are sent at the time of the session follow all events of that time.

        Raises:
            SessionError: A time before that of the session.
            Interrupted: Ctrl-C; the session is then at an earlier time, and can go on. The
                messages so far are part of the next step.

        """
        return self._messages(*self._open().advance_to(until_s))

    def advance_to_report(self, until_s: float) -> list[Message]:
        """Advance to the first message that is delivered or lost, or to a time in seconds.

        Return the messages that end at the time reached, :attr:`now_s`.

        Raises:
            SessionError: A time before that of the session.
            Interrupted: Ctrl-C, as in :meth:`advance_to`.

        """
        return self._messages(*self._open().advance_to_report(until_s))

    def next_event(self) -> float | None:
        """Return a time in seconds before which nothing is delivered or lost.

        None if nothing will happen without a further message.
        """
        return self._open().next_event_s()

    def set_link(
        self,
        name: str,
        *,
        up: bool | None = None,
        rate: str | None = None,
        delay: str | None = None,
        loss: str | None = None,
    ) -> None:
        """Change a link from now on. What is None stays as it is.

        Args:
            name: ``"feeder"`` or ``"feeder[3]"`` for both directions, ``"feeder.forward"`` or
                ``"feeder.reverse[3]"`` for one; without a number all members of a group.
            up: Whether the link works. Packets in transmission when it fails are lost.
            rate: Transmission rate, such as ``"64 kbit/s"``, for packets that arrive from now on.
            delay: Propagation delay, such as ``"40 ms"``.
            loss: Probability of a loss, such as ``"5 %"``; replaces other loss processes.

        Raises:
            SessionError: An unknown link, or a value that a link cannot have.

        """
        self._open().set_link(name, up, rate, delay, loss)

    def set_node(self, name: str, *, up: bool) -> None:
        """Make a node fail or work again from now on.

        Args:
            name: ``"concentrator"``, ``"meter[3]"``, or ``"meter"`` for all members of a group.
            up: Whether the node works. While it does not, none of its links does.

        Raises:
            SessionError: An unknown node, or one member of a group that shares a link.

        """
        self._open().set_node(name, up)

    def snapshot(self) -> Snapshot:
        """Return the state, to which :meth:`restore` returns."""
        return Snapshot(self._open().snapshot())

    def restore(self, snapshot: Snapshot) -> None:
        """Return to a state of this session. Messages that were sent since are forgotten.

        Raises:
            SessionError: The snapshot is of another scenario.

        """
        native = self._open()
        if not isinstance(snapshot, Snapshot):
            raise TypeError(f"snapshot: expected a Snapshot, found {type(snapshot).__name__}")
        native.restore(snapshot._inner)

    def close(self) -> None:
        """Free the memory of the session; other calls then raise ``SessionError``."""
        self._inner = None

    def __enter__(self) -> Session:
        """Return the session."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the session."""
        self.close()

    def __repr__(self) -> str:
        """Show title and time."""
        if self._inner is None:
            return f"<gridhaul.Session {self._scenario.title!r}, closed>"
        return f"<gridhaul.Session {self._scenario.title!r} at {self.now_s} s>"

    def _node_names(self) -> NodeNames:
        """Return which names mean the same nodes; few sessions need them."""
        if self._names is None:
            self._names = NodeNames(self._scenario)
        return self._names

    def _messages(
        self,
        reports: list[tuple[int, float, float, str | None, bool]],
        error: BaseException | None,
    ) -> list[Message]:
        if error is not None:
            if isinstance(error, KeyboardInterrupt):
                raise Interrupted(f"interrupted at {self.now_s} s") from error
            raise error
        return [Message(*report) for report in reports]

    def _open(self) -> _native.Session:
        if self._inner is None:
            raise SessionError("the session is closed\n  help: open a new one")
        return self._inner


def _check_size(name: str, size_bytes: int) -> None:
    whole(name, size_bytes, least=1, error=SessionError)
