"""Diagnosis of a HELICS federation that makes no progress."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

__all__ = ["FederateState", "federates", "table"]

# The largest time of HELICS, which stands for "no time".
_NEVER_S = 9e9


class FederateState(NamedTuple):
    """The state of a federate in the answer to the query ``global_time_debugging``."""

    name: str
    state: str
    granted_s: float | None
    requested_s: float | None

    @property
    def is_running(self) -> bool:
        """Whether the federate has its time, and has not requested another one."""
        return self.state == "executing" and self.requested_s is None

    @property
    def has_begun(self) -> bool:
        """Whether the federate has entered the executing mode."""
        return self.state not in {"created", "startup", "initializing", "connecting"}

    @property
    def has_ended(self) -> bool:
        """Whether the federate has left the federation."""
        return self.state in {"finished", "disconnected", "error", "terminating"}


def federates(answer: object) -> list[FederateState]:
    """Return the federates of an answer to ``global_time_debugging``, sorted by name."""
    found = {state.name: state for state in _states(answer)}
    return [found[name] for name in sorted(found)]


def table(states: list[FederateState]) -> str:
    """Return a line for each federate: its time, its last request, and what it waits for."""
    rows = [("federate", "state", "granted", "requested", "waits for")]
    for state in states:
        rows.append(
            (
                state.name,
                state.state,
                _time(state.granted_s),
                _time(state.requested_s),
                _waits_for(state, states),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def _waits_for(state: FederateState, states: list[FederateState]) -> str:
    if state.has_ended:
        return "nothing: it has left"
    if state.is_running:
        return "nothing: it has not requested a time"
    others = [other for other in states if other.name != state.name and not other.has_ended]
    late = [other.name for other in others if not other.has_begun]
    running = [other.name for other in others if other.is_running]
    earlier = [other.name for other in others if _is_earlier(other, state)]
    reasons = [
        (late, " to enter the executing mode"),
        (running, " to request a time"),
        (earlier, " to be granted an earlier time"),
    ]
    for names, awaited in reasons:
        if names:
            return ", ".join(names) + awaited
    if not state.has_begun:
        return "further federates, or its own call to enter the executing mode"
    return "a grant of HELICS: no other federate is earlier"


def _is_earlier(other: FederateState, state: FederateState) -> bool:
    if other.requested_s is None or state.requested_s is None:
        return False
    return other.requested_s < state.requested_s


def _states(answer: object) -> Iterator[FederateState]:
    """Find the federates in the tree of brokers and cores."""
    if isinstance(answer, Mapping):
        for federate in answer.get("federates") or ():
            if isinstance(federate, Mapping):
                state = _state(federate)
                if state is not None:
                    yield state
        for key in ("brokers", "cores"):
            for inner in answer.get(key) or ():
                yield from _states(inner)


def _state(federate: Mapping[str, Any]) -> FederateState | None:
    name = str((federate.get("attributes") or {}).get("name") or federate.get("name") or "")
    # The coordinator of the filters of a core is no federate of its own.
    if not name or name.endswith("_filters"):
        return None
    kind = federate.get("federate_state") or federate.get("state") or "unknown"
    granted = _seconds(federate.get("granted"))
    requested = None if federate.get("granted_mode") else _seconds(federate.get("requested"))
    if requested is None and federate.get("granted_mode") is False:
        # The largest time of HELICS: the federate waits for messages and values only.
        requested = math.inf
    return FederateState(name, str(kind), granted, requested)


def _seconds(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and abs(value) < _NEVER_S else None


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return "the end" if math.isinf(seconds) else f"{seconds:.9g} s"
