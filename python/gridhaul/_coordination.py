"""Diagnosis of a mosaik co-simulation that makes no progress."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

__all__ = ["SimulatorState", "Watchdog", "simulators", "table"]


class SimulatorState(NamedTuple):
    """The state of a simulator of mosaik.

    Attributes:
        name: Its ID in mosaik.
        reached: Time of mosaik before which it has done all its work.
        step: Time of the step that it computes, or of its next step; None without a step.
        is_computing: Whether it computes a step.
        has_ended: Whether it has reached the end.
        sources: Names of the simulators whose outputs its next step needs, or that may cause a
            step of it, and that are behind.

    """

    name: str
    reached: int
    step: int | None
    is_computing: bool
    has_ended: bool
    sources: tuple[str, ...]


def simulators(runners: Mapping[str, Any], until: int) -> list[SimulatorState]:
    """Return the states of the simulators of a world that runs, sorted by name."""
    return [_state(name, runners[name], until) for name in sorted(runners)]


def table(states: list[SimulatorState]) -> str:
    """Return a line for each simulator: its time, its step, and what it waits for."""
    rows = [("simulator", "reached", "step", "waits for")]
    for state in states:
        step = "-" if state.step is None else str(state.step)
        rows.append((state.name, str(state.reached), step, _waits_for(state, states)))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


class Watchdog:
    """Observes a co-simulation in a thread of its own, since a simulator may block the others."""

    def __init__(
        self, world: Any, until: int, report_after_s: float, timeout_s: float | None
    ) -> None:
        """Prepare to observe a world of mosaik; :meth:`start` begins."""
        self.error: str | None = None
        self._world = world
        self._until = until
        self._report_after_s = report_after_s
        self._timeout_s = timeout_s
        self._ended = threading.Event()
        self._ignores_interrupt = False
        self._is_main = threading.current_thread() is threading.main_thread()
        self._thread = threading.Thread(target=self._watch, name="gridhaul watchdog", daemon=True)

    def start(self) -> None:
        """Begin to observe."""
        # A shell that is not interactive starts commands in the background with this signal
        # ignored: there it must interrupt a simulator that hangs, and nothing else.
        self._ignores_interrupt = (
            self._is_main and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        )
        if self._ignores_interrupt:
            signal.signal(signal.SIGINT, self._interrupt)
        self._thread.start()

    def stop(self) -> None:
        """End: the co-simulation has ended."""
        self._ended.set()
        self._thread.join()
        if self._ignores_interrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def _interrupt(self, *_: object) -> None:
        if self.error is not None:
            raise KeyboardInterrupt

    def _watch(self) -> None:
        known: list[SimulatorState] | None = None
        changed, report_s = time.monotonic(), self._report_after_s
        shortest = min(self._report_after_s, self._timeout_s or self._report_after_s)
        while not self._ended.wait(min(0.5, shortest / 5)):
            states = self._states()
            if states != known:
                known, changed, report_s = states, time.monotonic(), self._report_after_s
                continue
            waited_s = time.monotonic() - changed
            if self._timeout_s is not None and waited_s >= self._timeout_s:
                self.error = _diagnosis(states, self._timeout_s)
                self._cancel()
                return
            if waited_s >= report_s:
                print(_diagnosis(states, report_s), file=sys.stderr, flush=True)
                report_s *= 2

    def _states(self) -> list[SimulatorState]:
        # Before the start of the simulation, there are no runners. The thread of the world changes
        # them meanwhile, which at worst delays a report.
        try:
            runners = self._world._async_world._get_sim_runners()
            return simulators(runners, self._until)
        except (AttributeError, IndexError, RuntimeError):
            return []

    def _cancel(self) -> None:
        """End the simulation: tasks that wait, and a simulator that computes in this process."""
        loop = self._world.loop

        def cancel() -> None:
            for runner in self._world._async_world._get_sim_runners().values():
                runner.task.cancel()

        loop.call_soon_threadsafe(cancel)
        if not self._ended.wait(1.0) and self._is_main:
            # As Ctrl-C, which mosaik regards as the end of the simulation.
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            if not self._ended.wait(5.0):
                print(f"error: {self.error}", file=sys.stderr, flush=True)
                os._exit(1)


def _diagnosis(states: list[SimulatorState], waited_s: float) -> str:
    return f"the co-simulation has made no progress for {waited_s:g} s\n{table(states)}"


def _waits_for(state: SimulatorState, states: list[SimulatorState]) -> str:
    if state.has_ended:
        return "nothing: it has reached the end"
    if state.is_computing:
        return f"nothing: it computes the step of {state.step}"
    if not state.sources:
        return "mosaik to start its step"
    computing = {other.name for other in states if other.is_computing}
    # A simulator that computes is the cause; others wait for it as well.
    named = [name for name in state.sources if name in computing] or list(state.sources)
    return ", ".join(named) + " to go on"


def _state(name: str, runner: Any, until: int) -> SimulatorState:
    current, scheduled = runner.current_step, runner.next_steps
    step = current if current is not None else (scheduled[0] if scheduled else None)
    reached = runner.progress.time.time
    task = runner.task
    has_ended = current is None and (reached >= until or (task is not None and task.done()))
    limit = step.time if step is not None else until
    related = {*runner.input_delays, *runner.successors, *runner.triggering_ancestors}
    # A source that has reached the time of the step may still have to compute its own step of it.
    sources = sorted(
        other.sid
        for other in related
        if other is not runner and (other.progress.time.time <= limit or _computes(other))
    )
    return SimulatorState(
        name=name,
        reached=reached,
        step=None if step is None else step.time,
        is_computing=_computes(runner),
        has_ended=has_ended,
        sources=() if has_ended else tuple(sources),
    )


def _computes(runner: Any) -> bool:
    return runner.current_step is not None
