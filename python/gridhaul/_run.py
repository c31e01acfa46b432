"""Runs, sweeps, plans, comparisons and papers."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeAlias

from gridhaul import _native
from gridhaul._answer import Answer, labelled
from gridhaul._chart import Chart, charts
from gridhaul._dask import DaskClient, compute
from gridhaul._errors import InputError, Interrupted
from gridhaul._scenario import Scenario, scenario_or_file
from gridhaul._values import Value, values, whole

__all__ = [
    "Comparison",
    "Plan",
    "Progress",
    "Reproduction",
    "compare",
    "paper",
    "plan",
    "run",
    "sweep",
]

Progress: TypeAlias = bool | Callable[[str, int, int], object]
"""True: a line on standard error. A function: called about ten times a second with the part of
the work, and the numbers of finished and of all items; an exception of it ends the run."""

_Native = Callable[[str, int, int], object] | None


def run(
    scenario: Scenario | str | os.PathLike[str],
    *,
    on: str | Sequence[str] = "sim",
    replications: int | Mapping[str, Value] | None = None,
    seed: int | None = None,
    threads: int = 0,
    ignore_estimate: bool = False,
    progress: Progress = False,
) -> Answer:
    """Run a scenario, its sweep included.

    Other threads of Python run meanwhile. Ctrl-C ends the run within 100 ms.

    Args:
        scenario: The scenario, or the path of its file.
        on: Backends: ``"sim"``, ``"model"``, ``"emu"`` (as root), or a list such as
            ``["sim", "model"]``.
        replications: Number of replications, or a dict such as ``{"until": "5 %", "max": 100}`` for
            more of them where a confidence interval is wide; None: those of the scenario.
        seed: Seed of all random numbers; None: that of the scenario.
        threads: Threads for points and replications; 0: one for each core. The answer does not
            depend on it.
        ignore_estimate: Run even if the estimate of memory or time exceeds the limits.
        progress: Report the progress.

    Raises:
        InputError: An invalid argument or scenario, or a key that a backend does not support.
        Interrupted: Ctrl-C; its ``answer`` has the finished replications.

    """
    changed = _scenario(scenario, seed, replications)
    whole("threads", threads)
    with _Reported(progress) as report:
        outcome = _native.sweep(
            changed._inner, [], None, _names(on), threads, ignore_estimate, report
        )
    return _answer(*outcome)


def sweep(
    scenario: Scenario | str | os.PathLike[str],
    vary: Mapping[str, Sequence[Value] | str],
    *,
    on: str | Sequence[str] = "sim",
    replications: int | Mapping[str, Value] | None = None,
    seed: int | None = None,
    threads: int = 0,
    ignore_estimate: bool = False,
    units: str | os.PathLike[str] | None = None,
    client: DaskClient | None = None,
    progress: Progress = False,
) -> Answer:
    """Run a scenario for several values of keys; all combinations, the last key fastest.

    Args:
        scenario: The scenario, or the path of its file.
        vary: For each key a list of values, such as ``{"link.feeder.both.delay": ["10 ms",
            "40 ms"]}``, or a range, such as ``"lin:10 ms:100 ms:10"``.
        on: Backends, as in :func:`run`.
        replications: Number of replications, or a dict such as ``{"until": "5 %", "max": 100}`` for
            more of them where a confidence interval is wide; None: those of the scenario.
        seed: Seed of all random numbers; None: that of the scenario.
        threads: Threads, as in :func:`run`.
        ignore_estimate: Run even if the estimate of memory or time exceeds the limits.
        units: Folder in which the result of each run is stored, as by ``gridhaul sweep``: the same
            call resumes an interrupted sweep, and repeats only runs that a change of the scenario
            affects. Backend ``"sim"`` alone, without recordings.
        client: A ``dask.distributed.Client``: its workers compute the runs, and a run is repeated
            if its worker dies. The answer is that of this process. Workers need the same version
            of gridhaul. Conditions as for ``units``.
        progress: Report the progress.

    Raises:
        InputError: An invalid argument, key or value.
        Interrupted: Ctrl-C; its ``answer`` has the finished points.

    """
    if not isinstance(vary, Mapping):
        raise TypeError(f"vary: expected a dict of keys and values, found {type(vary).__name__}")
    changed = _scenario(scenario, seed, replications)
    whole("threads", threads)
    axes = [values(key, of_key) for key, of_key in vary.items()]
    with _Reported(progress) as report:
        if client is not None:
            swept = _native.swept(changed._inner, axes, _names(on))
            with _folder(units) as folder:
                outcome = compute(swept, folder, client, report)
        else:
            outcome = _native.sweep(
                changed._inner, axes, units, _names(on), threads, ignore_estimate, report
            )
    return _answer(*outcome)


class Plan:
    """The cheapest configuration that meets the limits of a scenario's ``[plan]``."""

    __slots__ = ("_inner",)
    _inner: _native.PlanOutcome

    def __init__(self, native: _native.PlanOutcome) -> None:
        """Wrap the native outcome; :func:`plan` creates plans."""
        self._inner = native

    @property
    def choice(self) -> Scenario | None:
        """The scenario with the chosen values; None if no candidate meets every limit."""
        chosen = self._inner.choice
        return None if chosen is None else Scenario(chosen)

    @property
    def answer(self) -> Answer:
        """The answers of the model and of the simulator to the choice."""
        return Answer(self._inner.answers)

    @property
    def summary(self) -> str:
        """The result in a few sentences."""
        return self._inner.summary

    @property
    def document(self) -> dict[str, Any]:
        """The outcome as in ``plan.json``: choices, costs, limits and alternatives."""
        document: dict[str, Any] = json.loads(self._inner.document)
        return document

    @property
    def charts(self) -> list[Chart]:
        """Charts of the limits around the choice."""
        return charts(self._inner.charts)

    def __repr__(self) -> str:
        """Show the summary."""
        return f"<gridhaul.Plan: {self.summary}>"


def plan(
    scenario: Scenario | str | os.PathLike[str],
    *,
    verify: str | None = "winner",
    max_candidates: int = 64,
    runs: int = 20,
    threads: int = 0,
    ignore_estimate: bool = False,
    progress: Progress = False,
) -> Plan:
    """Find the cheapest candidate that meets every limit of the scenario's ``[plan]``.

    Args:
        scenario: The scenario, or the path of its file.
        verify: Candidates to simulate: ``"winner"``, ``"full"``, or None: the model decides.
        max_candidates: Maximum number of candidates to simulate.
        runs: Runs of the choice with different seeds, all of which must meet every limit.
        threads: Threads for the simulations; 0: one for each core.
        ignore_estimate: Simulate even if the estimate exceeds the limits.
        progress: Report the progress.

    Raises:
        InputError: A scenario without a plan, or one that the model does not support.
        Interrupted: Ctrl-C.

    """
    changed = _scenario(scenario, None, None)
    whole("max_candidates", max_candidates, least=1)
    whole("runs", runs, least=1)
    whole("threads", threads)
    with _Reported(progress) as report:
        outcome, error, _notes = _native.plan(
            changed._inner,
            "none" if verify is None else verify,
            max_candidates,
            runs,
            threads,
            ignore_estimate,
            report,
        )
    _raise(error, None)
    assert outcome is not None
    return Plan(outcome)


class Comparison:
    """Answers compared with the first one."""

    __slots__ = ("_document",)

    def __init__(self, document: str) -> None:
        """Read the JSON of a comparison."""
        self._document: dict[str, Any] = json.loads(document)

    @property
    def labels(self) -> list[str]:
        """Names of the answers; the first is the reference."""
        return list(self._document["labels"])

    @property
    def rows(self) -> list[dict[str, Any]]:
        """An entry for each compared metric, as in ``comparison.json``."""
        return list(self._document["rows"])

    @property
    def differences(self) -> list[dict[str, Any]]:
        """The entries with a statistically significant difference."""
        return [
            row for row in self.rows if any(other["result"] == "differ" for other in row["others"])
        ]

    def __repr__(self) -> str:
        """Show the numbers of compared metrics and of differences."""
        return (
            f"<gridhaul.Comparison of {' and '.join(self.labels)}: {len(self.rows)} metrics, "
            f"{len(self.differences)} differ>"
        )


def compare(
    *answers: Answer, labels: Sequence[str] | None = None, only: Sequence[str] = ()
) -> Comparison:
    """Compare answers with the first one, point by point and row by row.

    Args:
        answers: Answers of the same or of different scenarios; one with several backends counts
            as several answers.
        labels: Names of the answers; None: the titles of their scenarios.
        only: Metrics to compare, by column name; empty: the headline metrics.

    Raises:
        InputError: Fewer than two answers, or answers without common rows.

    """
    for answer in answers:
        if not isinstance(answer, Answer):
            raise TypeError(f"answers: expected answers of runs, found {type(answer).__name__}")
    named = labelled(answers)
    if labels is not None:
        if len(labels) != len(answers):
            raise TypeError(
                f"labels: expected {len(answers)}, one for each answer, found {len(labels)}"
            )
        named = [(label, native) for label, (_, native) in zip(labels, named, strict=True)]
    return Comparison(_native.compare(named, list(only)))


class Reproduction:
    """A reproduced paper: every published figure, checked.

    Attributes:
        summary: The result in a sentence.
        checks: Number of checks.
        failed: Names of the failed checks.
        charts: Charts of the report.
        report: The report as one HTML page.
        answers: Answers by the name of the scenario.
        notes: Parts that were skipped, with the reason.

    """

    __slots__ = ("answers", "charts", "checks", "failed", "notes", "report", "summary")

    def __init__(
        self,
        summary: str,
        checks: int,
        failed: list[str],
        drawn: list[tuple[str, str, str]],
        report: str,
        answers: list[tuple[str, _native.Answers]],
        notes: list[str],
    ) -> None:
        """Create the reproduction; :func:`paper` does."""
        self.summary = summary
        self.checks = checks
        self.failed = failed
        self.charts: list[Chart] = charts(drawn)
        self.report = report
        self.answers: dict[str, Answer] = {name: Answer(native) for name, native in answers}
        self.notes = notes

    def __repr__(self) -> str:
        """Show the summary."""
        return f"<gridhaul.Reproduction: {self.summary}>"


def paper(
    name: str,
    *,
    quick: bool = False,
    on: str | Sequence[str] = "sim",
    threads: int = 0,
    ignore_estimate: bool = False,
    progress: Progress = False,
) -> Reproduction:
    """Reproduce the experiments of a paper and check every published figure.

    Args:
        name: Name of the paper, such as ``"plc"``.
        quick: Use fewer replications.
        on: Backends of the scenarios for which the paper names none.
        threads: Threads; 0: one for each core.
        ignore_estimate: Run even if the estimate exceeds the limits.
        progress: Report the progress.

    Raises:
        InputError: An unknown paper.
        Interrupted: Ctrl-C.

    """
    whole("threads", threads)
    with _Reported(progress) as report:
        result, error, notes = _native.paper(
            name, quick, _names(on), threads, ignore_estimate, report
        )
    _raise(error, None)
    assert result is not None
    return Reproduction(*result, notes)


class _Reported:
    """The progress function of a call, and the end of its line."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._printed = False

    def __enter__(self) -> _Native:
        if self._progress is True:
            return self._print
        if self._progress is False or self._progress is None:
            return None
        if not callable(self._progress):
            found = type(self._progress).__name__
            raise TypeError(f"progress: expected True, False or a function, found {found}")
        return self._progress

    def __exit__(self, *_: object) -> None:
        if self._printed:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _print(self, part: str, done: int, total: int) -> None:
        if total:
            self._printed = True
            sys.stderr.write(f"\r\x1b[K{part}: {100 * done // total} %")
            sys.stderr.flush()


def _folder(units: str | os.PathLike[str] | None) -> AbstractContextManager[str]:
    """Return the folder of stored results, or a temporary one."""
    if units is not None:
        return nullcontext(os.fspath(units))
    return tempfile.TemporaryDirectory(prefix="gridhaul-")


def _scenario(
    scenario: Scenario | str | os.PathLike[str],
    seed: int | None,
    replications: int | Mapping[str, Value] | None,
) -> Scenario:
    scenario = scenario_or_file(scenario)
    if replications is not None:
        scenario = scenario.with_replications(replications)
    return scenario if seed is None else scenario.with_seed(seed)


def _names(on: str | Sequence[str]) -> list[str]:
    names = [name.strip() for name in on.split(",")] if isinstance(on, str) else list(on)
    if not names:
        raise InputError(
            'on: expected at least one backend, found none\n  help: leave it out, or write on="sim"'
        )
    return names


def _answer(
    native: _native.Answers | None, error: BaseException | None, _notes: list[str]
) -> Answer:
    answer = None if native is None else Answer(native)
    _raise(error, answer)
    assert answer is not None
    return answer


def _raise(error: BaseException | None, answer: Answer | None) -> None:
    """Raise the exception that interrupted a run, with the finished results."""
    if error is None:
        return
    if not isinstance(error, KeyboardInterrupt):
        # Of the handler of another signal, or of the progress function.
        raise error
    kept = "nothing was finished" if answer is None else f"finished: {answer!r}"
    raise Interrupted(f"interrupted; {kept}", answer) from error
